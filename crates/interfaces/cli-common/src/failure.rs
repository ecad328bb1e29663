//! An error as one line: `FILE at OFFSET: what: found, expected`.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use binlogz_archive::input::Unreadable;
use binlogz_binlog::printable;
use binlogz_encryption::Error as EncryptionError;
use binlogz_flow::CutEvent;
pub use binlogz_flow::error::INDEX;
use binlogz_flow::error::in_log;
use binlogz_flow::events::UnreadChanges;
use binlogz_payload::Error as PayloadError;

use crate::Exit;
use crate::program::name;
use crate::progress;
use crate::terminal;

/// Why a command, or its work on one file, ended.
#[derive(Debug)]
pub enum CommandFailure {
    /// The reader of our output has gone: a quiet success.
    ClosedPipe,
    /// A line for stderr.
    Line(String),
}

/// The result of work on a file.
pub type Result<T, E = CommandFailure> = std::result::Result<T, E>;

impl CommandFailure {
    /// Trouble with a file.
    pub fn of(name: &dyn Display, what: impl Display) -> Self {
        CommandFailure::Line(format!("{name}: {what}"))
    }

    /// Trouble with a server, whose address the error may have already.
    pub fn of_server(server: &str, what: impl Display) -> Self {
        CommandFailure::Line(with_server(server, &what))
    }

    /// An archive that can't be read.
    pub fn of_archive(error: &Unreadable) -> Self {
        CommandFailure::Line(error.to_string())
    }

    /// An error in writing a file; a pipe without a reader is not an error.
    pub fn writing(name: &dyn Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandFailure::ClosedPipe,
            _ => CommandFailure::of(name, format_args!("write: {error}")),
        }
    }

    /// Trouble with a log that goes through the pipeline from `input` to `output`.
    pub fn rewriting(input: &dyn Display, output: &dyn Display, error: &binlogz_flow::Error) -> Self {
        match error {
            error if error.is_closed_pipe() => CommandFailure::ClosedPipe,
            binlogz_flow::Error::Output(PayloadError::Io(error)) => CommandFailure::writing(output, error),
            binlogz_flow::Error::Output(error) => CommandFailure::in_log(output, error),
            binlogz_flow::Error::Input(error) => CommandFailure::in_log(input, error),
            other => CommandFailure::of(input, other),
        }
    }

    /// Trouble with a log that is only read.
    pub fn reading(log: &dyn Display, error: &binlogz_flow::Error) -> Self {
        CommandFailure::rewriting(log, log, error)
    }

    /// Trouble with an encrypted log, or with a keyring.
    pub fn with_encryption(name: &dyn Display, error: &EncryptionError) -> Self {
        CommandFailure::Line(error.in_file(name))
    }

    /// An error in a log.
    pub fn in_log(name: &dyn Display, error: &PayloadError) -> Self {
        CommandFailure::Line(in_log(name, error))
    }
}

/// Trouble with a server: its name, unless the words have its address already.
pub fn with_server(server: &str, what: &dyn Display) -> String {
    let what = what.to_string();
    // A name may begin with the account.
    let (_, address) = server.rsplit_once('@').unwrap_or(("", server));
    if what.contains(address) { what } else { format!("{server}: {what}") }
}

/// Tells of trouble; the exit code.
pub fn ended(ran: Result<Exit>) -> ExitCode {
    let exit = ran.unwrap_or_else(|failure| match failure {
        CommandFailure::ClosedPipe => Exit::Done,
        CommandFailure::Line(line) => {
            complain(&line);
            Exit::Trouble
        }
    });
    ExitCode::from(exit as u8)
}

/// Reports trouble on stderr. If even that is closed, the exit code must do.
pub fn complain(line: &str) {
    let line = with_way_to_password(line);
    let _ = progress::above(|| writeln!(io::stderr(), "{}: {}", name(), printable(&line)));
}

/// The words with which a server refuses a login.
const LOGIN_REFUSED: &str = "server says 1045 ";
/// The ways to give a password.
const PASSWORD_WAYS: &str = "-p asks for a password; MYSQL_PWD and option files may have it too";

/// A line of trouble; if a server refused the login, with the ways to give a password.
pub fn with_way_to_password(line: &str) -> Cow<'_, str> {
    match line.contains(LOGIN_REFUSED) {
        true => Cow::Owned(format!("{line}; {PASSWORD_WAYS}")),
        false => Cow::Borrowed(line),
    }
}

/// Reports the activity of a command that runs until it is stopped. On a terminal, lines are broken between words.
pub fn say(line: &str) {
    let line = format!("{}: {}", name(), printable(line));
    let _ = progress::above(|| writeln!(io::stderr(), "{}", terminal::within_width_of(&io::stderr(), &line)));
}

/// Reports something that is not an error, but should be known.
pub fn warn(line: &str) {
    complain(&format!("warning: {line}"));
}

/// Names the changes of a log that could not be read; `came_of_it` names the output that lacks them. If there are any,
/// the answer is [`Exit::Negative`].
pub fn name_unread(log: &dyn Display, unread: &UnreadChanges, came_of_it: &str) -> Exit {
    for unread in unread.iter() {
        complain(&format!("{log} {unread}; {came_of_it}"));
    }
    if unread.unnamed() > 0 {
        complain(&format!("{log}: {} more events could not be read; {came_of_it}", unread.unnamed()));
    }
    if unread.is_empty() { Exit::Done } else { Exit::Negative }
}

/// Reports that a log in use ends inside an event. `came_of_it` ends the line: it says what became of those bytes.
pub fn warn_cut(log: &dyn Display, cut: CutEvent, came_of_it: &str) {
    let CutEvent { offset, size } = cut;
    warn(&format!(
        "{log} at {offset}: the log is in use and ends inside an event, of which {size} bytes are there{came_of_it}"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_is_told_with_the_ways_to_give_a_password() {
        let line = "db1:3306: logging in: server says 1045 (28000): Access denied for user 'root'@'localhost' (using password: NO)";
        let told = with_way_to_password(line);
        assert_eq!(
            told,
            format!("{line}; -p asks for a password; MYSQL_PWD and option files may have it too")
        );
        let other = "db1:3306: server says 1227 (42000): Access denied; you need the SUPER privilege";
        assert_eq!(with_way_to_password(other), other);
    }

    #[test]
    fn a_server_is_named_once() {
        for what in ["connect to db1:3306: refused", "refused"] {
            for server in ["db1:3306", "mysql://root@db1:3306"] {
                let line = with_server(server, &what);
                assert_eq!(line.matches("db1:3306").count(), 1, "{line}");
            }
        }
    }
}
