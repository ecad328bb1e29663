//! The commands that lead back, ready to paste, and whether they work: each is run as it is printed, without its effect.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::Gtid;
use binlogz_figures::{utc, wrapped};
use binlogz_source::{ConnectOptions, Connection};
use serde_json::{Value, json};

use super::IncidentCommand;
use crate::failure::{CommandFailure, Result};

/// Where the commands' continued lines begin.
const INDENT: &str = "      ";
/// Lines that a check says at the most.
const NOTES_MAX: usize = 4;
/// How often a running check is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How the script names later changes of the same rows.
const LATER: &str = "-- changed again later, which this would lose: ";

/// The words of a command of binlogz, without the program.
#[derive(Debug, Clone)]
pub(super) struct IncidentWords(Vec<String>);

impl IncidentWords {
    fn of(words: &[&str]) -> Self {
        IncidentWords(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn with(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.0.extend(more);
        self
    }

    /// This program with these words.
    pub(super) fn command(&self) -> std::io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(self.0.iter().map(OsStr::new)).stdin(Stdio::null());
        Ok(command)
    }

    /// As a shell reads it.
    pub(super) fn shown(&self) -> String {
        let words = ["binlogz"].into_iter().chain(self.0.iter().map(String::as_str));
        words.map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// Collects the lines of a program's errors, without its name.
    pub(super) fn read_errors(errors: ChildStderr) -> JoinHandle<Vec<String>> {
        thread::spawn(move || {
            let lines = BufReader::new(errors).lines().map_while(std::result::Result::ok);
            // The rest is read too: a program whose output nobody reads would never end.
            let mut told = Vec::new();
            for line in lines {
                if told.len() <= NOTES_MAX {
                    told.push(line.strip_prefix("binlogz: ").unwrap_or(&line).to_owned());
                }
            }
            told
        })
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A command that is printed.
#[derive(Debug)]
pub(super) struct PrintedCommand {
    /// What it does.
    purpose: &'static str,
    /// `None`: there is none, and the notes say why.
    words: Option<IncidentWords>,
    /// What follows it in the shell.
    tail: String,
    /// Whether it did what it is for.
    works: bool,
    notes: Vec<String>,
}

impl PrintedCommand {
    fn none(purpose: &'static str, why: &str) -> Self {
        PrintedCommand {
            purpose,
            words: None,
            tail: String::new(),
            works: false,
            notes: vec![why.to_owned()],
        }
    }

    fn text(&self) -> Option<String> {
        self.words.as_ref().map(|words| words.shown() + &self.tail)
    }

    /// For people; the shell takes the broken lines as one.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let state = match (&self.words, self.works) {
            (None, _) => "not possible",
            (Some(_), true) => "checked",
            (Some(_), false) => "checked, and does not do all",
        };
        let mut lines = vec![format!("{} ({state}):", self.purpose)];
        lines.extend(self.text().map(|text| broken(&text, width)).unwrap_or_default());
        for note in self.notes.iter().take(NOTES_MAX) {
            lines.extend(wrapped(note, "  ", "    ", Some(width)).lines().map(str::to_owned));
        }
        lines
    }

    /// For machines.
    pub(super) fn json(&self) -> Value {
        json!({"purpose": self.purpose, "command": self.text(), "works": self.works, "notes": self.notes})
    }
}

/// A command in lines of at most so many characters, each but the last with a backslash at its end.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = "  ".to_owned();
    let mut is_empty = true;
    for word in shell_words(text) {
        if !is_empty && line.chars().count() + word.chars().count() + " \\".len() + 1 > width {
            lines.push(format!("{line} \\"));
            line = INDENT.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// Splits at the spaces outside of quotes.
fn shell_words(text: &str) -> Vec<&str> {
    let (mut words, mut begin, mut is_quoted) = (Vec::new(), 0, false);
    for (place, c) in text.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                words.extend(text.get(begin..place));
                begin = place + 1;
            }
            _ => {}
        }
    }
    words.extend(text.get(begin..));
    words
}

/// The end of a check.
struct CheckedRun {
    /// `None`: it took too long, and was ended.
    status: Option<ExitStatus>,
    notes: Vec<String>,
    /// Comments of a script that tell of later changes, and its last line.
    later: Vec<String>,
    last: String,
}

impl CheckedRun {
    /// Runs a command, without what it would write.
    fn of(words: &IncidentWords, time: Duration) -> Result<Self> {
        let failure = |error: std::io::Error| CommandFailure::of(&words.shown(), error);
        let mut command = words.command().map_err(failure)?;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failure)?;
        let errors = child.stderr.take().map(IncidentWords::read_errors);
        let script = child.stdout.take().map(read_script);
        let status = wait(&mut child, time).map_err(failure)?;
        let notes = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let (later, last) = script.and_then(|thread| thread.join().ok()).unwrap_or_default();
        Ok(CheckedRun { status, notes, later, last })
    }

    fn code(&self) -> Option<i32> {
        self.status.as_ref().and_then(ExitStatus::code)
    }

    fn has_worked(&self) -> bool {
        self.code() == Some(0)
    }

    /// What is to be said of it.
    fn told(&self, time: Duration) -> Vec<String> {
        let slow = format!("not checked to its end: it takes longer than {} s", time.as_secs());
        let slow = self.status.is_none().then_some(slow);
        slow.into_iter().chain(self.notes.iter().cloned()).collect()
    }
}

fn wait(child: &mut Child, time: Duration) -> std::io::Result<Option<ExitStatus>> {
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Goes through a script for what it says of itself.
fn read_script(out: impl Read + Send + 'static) -> JoinHandle<(Vec<String>, String)> {
    thread::spawn(move || {
        let (mut later, mut last) = (Vec::new(), String::new());
        for line in BufReader::new(out).split(b'\n').map_while(std::result::Result::ok) {
            if !line.starts_with(b"-- ") {
                continue;
            }
            last = String::from_utf8_lossy(&line).into_owned();
            if let Some(change) = last.strip_prefix(LATER) {
                later.push(change.to_owned());
            }
        }
        (later, last)
    })
}

/// The transaction that the commands take back or lead to.
pub(super) struct IncidentPlace<'p> {
    pub(super) gtid: Gtid,
    /// The transaction before it.
    pub(super) previous: Option<Gtid>,
    /// When it was committed, in microseconds since 1970, if the log tells.
    pub(super) time: Option<u64>,
    /// The tables that it changed, each by database and name.
    pub(super) tables: Vec<(String, String)>,
    pub(super) has_rows: bool,
    /// The logs, as they were given.
    pub(super) files: Vec<String>,
    /// The server that has the logs.
    pub(super) server: Option<&'p ConnectOptions>,
    /// The server that tells names and keys.
    pub(super) schema: Option<(String, ConnectOptions)>,
}

impl IncidentPlace<'_> {
    /// `binlogz rows`, for what the transaction did.
    pub(super) fn rows(&self, command: &IncidentCommand, is_json: bool) -> IncidentWords {
        let gtid = self.gtid.to_string();
        let mut names = self.tables.iter().map(|(database, table)| format!("{database}.{table}"));
        let first = names.next().unwrap_or_default();
        let others = names.flat_map(|name| ["--table".to_owned(), name]);
        let words = IncidentWords::of(&["rows", &first, "--gtids", &gtid]).with(others);
        let format = is_json.then_some(["--format".to_owned(), "json".to_owned()]);
        words.with(format.into_iter().flatten()).with(command.log_words()).with(self.files.clone())
    }

    /// `binlogz undo`, with what it takes to get all rows back, if anything does.
    pub(super) fn checked_undo(
        &self,
        command: &IncidentCommand,
        time: Duration,
        later: &mut Vec<String>,
    ) -> Result<PrintedCommand> {
        let purpose = "take it back";
        let base = IncidentWords::of(&["undo", "--gtids", &self.gtid.to_string()]).with(command.log_words());
        let mut words = base.clone().with(self.files.clone());
        let mut run = CheckedRun::of(&words, time)?;
        if !run.has_worked()
            && run.notes.iter().any(|note| note.contains("--cascades"))
            && let Some(place) = self.named_server(command)
        {
            let cascades = ["--cascades".to_owned(), place];
            words = base.with(cascades).with(self.files.clone());
            run = CheckedRun::of(&words, time)?;
        }
        later.append(&mut run.later);
        let mut notes = run.told(time);
        notes.extend(run.last.strip_prefix("-- ").map(str::to_owned));
        let connect = self.server.or(self.schema.as_ref().map(|(_, connect)| connect));
        let mut tail = " > undo.sql".to_owned();
        if let Some(connect) = connect {
            let client = command.mysql_client(connect);
            tail = format!(" | {}", client.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
            if self.has_triggers(connect)? {
                words = words.with(["--format", "binlog", "--output", "-"].map(str::to_owned));
                tail = format!(" | binlogz dump --skip-gtids -{tail}");
                notes.push("as a binary log: its tables have triggers, which would run again".to_owned());
            }
        }
        Ok(PrintedCommand { purpose, works: run.has_worked(), words: Some(words), tail, notes })
    }

    /// The server that has the tables, as an option names it.
    fn named_server(&self, command: &IncidentCommand) -> Option<String> {
        let of_logs = self.server.map(|connect| command.server.clone().unwrap_or_else(|| connect.server()));
        of_logs.or(self.schema.as_ref().map(|(place, _)| place.clone()))
    }

    /// Whether a table of the transaction has triggers.
    fn has_triggers(&self, connect: &ConnectOptions) -> Result<bool> {
        let failure = |error: binlogz_source::Error| CommandFailure::of(&connect.server(), error);
        let mut connection = Connection::open(connect).map_err(failure)?;
        let names =
            self.tables.iter().map(|(database, table)| format!("({}, {})", sql(database), sql(table)));
        let names = names.collect::<Vec<_>>().join(", ");
        let statement = format!(
            "SELECT 1 FROM information_schema.triggers WHERE (event_object_schema, event_object_table) IN ({names}) LIMIT 1"
        );
        Ok(!connection.query(&statement).map_err(failure)?.is_empty())
    }

    /// `binlogz table-at`: its tables as they were before it.
    pub(super) fn checked_table_at(
        &self,
        command: &IncidentCommand,
        time: Duration,
    ) -> Result<PrintedCommand> {
        let purpose = "its tables as they were before it";
        let Some(place) = self.named_server(command) else {
            return Ok(PrintedCommand::none(
                purpose,
                "it reads the tables of a server: name it with --schema",
            ));
        };
        let at = match (self.previous, self.time) {
            (Some(previous), _) => previous.to_string(),
            (None, Some(micros)) => format!("{}Z", utc(micros)),
            (None, None) => {
                return Ok(PrintedCommand::none(purpose, "the logs don't tell the moment before it"));
            }
        };
        let names = self.tables.iter().map(|(database, table)| format!("{database}.{table}"));
        let words = IncidentWords::of(&["table-at"]).with(names);
        let words = words.with(["--at".to_owned(), at, "--server".to_owned(), place]);
        let words = words.with(command.connection_words());
        let run = CheckedRun::of(&words, time)?;
        let tail = " > before.sql".to_owned();
        Ok(PrintedCommand {
            purpose,
            works: run.has_worked(),
            words: Some(words),
            tail,
            notes: run.told(time),
        })
    }

    /// `binlogz recover`: a restored server, brought forward to before it.
    pub(super) fn checked_recover(
        &self,
        command: &IncidentCommand,
        time: Duration,
    ) -> Result<PrintedCommand> {
        let purpose = "a restored server, brought forward to before it";
        if self.server.is_some() {
            let why = "it reads files or an archive: name these instead of the server that has the logs";
            return Ok(PrintedCommand::none(purpose, why));
        }
        let Some(to) = &command.to else {
            let why = "name the server into which a backup was restored: --to SERVER";
            return Ok(PrintedCommand::none(purpose, why));
        };
        let gtid = self.gtid.to_string();
        let words = IncidentWords::of(&["recover", "--to", to, "--stop-before-gtid", &gtid]);
        let words = words.with(command.account_words()).with(["--from".to_owned()]).with(self.files.clone());
        let run = CheckedRun::of(&words.clone().with(["--check".to_owned()]), time)?;
        let (tail, notes) = (String::new(), run.told(time));
        Ok(PrintedCommand { purpose, works: run.has_worked(), words: Some(words), tail, notes })
    }
}

/// A text in SQL, whatever the session's mode: in hexadecimal.
fn sql(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(x'{digits}' USING utf8mb4)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        let words =
            IncidentWords::of(&["undo", "--schema", "it's here.sql", "/var/lib/mysql/binlog.000042", ""]);
        assert_eq!(
            words.shown(),
            r"binlogz undo --schema 'it'\''s here.sql' /var/lib/mysql/binlog.000042 ''"
        );
    }

    #[test]
    fn long_commands_are_broken_between_words() {
        let text = "binlogz undo --schema 'a b c d e f' binlog.000041 binlog.000042 > undo.sql";
        let lines = broken(text, 40);
        let expected = [
            "  binlogz undo --schema 'a b c d e f' \\",
            "      binlog.000041 binlog.000042 > \\",
            "      undo.sql",
        ];
        assert_eq!(lines, expected);
    }
}
