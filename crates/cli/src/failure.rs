//! An error as one line: `FILE at OFFSET: what: found, expected`.

use std::fmt::Display;
use std::io::{self, Write};

use binlogz_binlog::{Error as BinlogError, printable};
use binlogz_encryption::Error as EncryptionError;
use binlogz_flow::CutEvent;
use binlogz_payload::Error as PayloadError;

use crate::progress;

/// Why a command, or its work on one file, ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of our output has gone: a quiet success.
    ClosedPipe,
    /// A line for stderr.
    Line(String),
}

/// The result of work on a file.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Trouble with a file.
    pub(crate) fn of(name: &dyn Display, what: impl Display) -> Self {
        Failure::Line(format!("{name}: {what}"))
    }

    /// An error in writing a file; a pipe without a reader is not an error.
    pub(crate) fn writing(name: &dyn Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::of(name, format_args!("write: {error}")),
        }
    }

    /// Trouble with a log that goes through the pipeline from `input` to `output`.
    pub(crate) fn rewriting(input: &dyn Display, output: &dyn Display, error: &binlogz_flow::Error) -> Self {
        match error {
            error if error.is_closed_pipe() => Failure::ClosedPipe,
            binlogz_flow::Error::Output(PayloadError::Io(error)) => Failure::writing(output, error),
            binlogz_flow::Error::Output(error) => Failure::in_log(output, error),
            binlogz_flow::Error::Input(error) => Failure::in_log(input, error),
            other => Failure::of(input, other),
        }
    }

    /// Trouble with a log that is only read.
    pub(crate) fn reading(log: &dyn Display, error: &binlogz_flow::Error) -> Self {
        Failure::rewriting(log, log, error)
    }

    /// Trouble with an encrypted log, or with a keyring.
    pub(crate) fn with_encryption(name: &dyn Display, error: &EncryptionError) -> Self {
        match error {
            EncryptionError::Format(error) if error.offset().is_some() => {
                Failure::Line(format!("{name} {error}"))
            }
            error => Failure::of(name, error),
        }
    }

    /// What is wrong with a log. The error tells the offset, where it is about one.
    pub(crate) fn in_log(name: &dyn Display, error: &PayloadError) -> Self {
        let hint = match error {
            PayloadError::Binlog(error) => hint(&name.to_string(), error),
            _ => "",
        };
        match error.offset() {
            Some(_) => Failure::Line(format!("{name} {error}{hint}")),
            None => Failure::of(name, format_args!("{error}{hint}")),
        }
    }
}

/// How the name ends of the file in which a server lists its logs.
pub(crate) const INDEX: &str = ".index";

/// What to do about it, where that is known.
fn hint(name: &str, error: &BinlogError) -> &'static str {
    match error {
        BinlogError::Magic { .. } if name.ends_with(INDEX) => "; this is the index, which lists the logs",
        BinlogError::Encrypted => "; --keyring FILE names it",
        BinlogError::Magic { found } if found.starts_with("1f 8b") => {
            "; this is gzip: zcat FILE | binlogz … -"
        }
        BinlogError::Magic { found } if found == "28 b5 2f fd" => {
            "; this is a zstd file: zstdcat FILE | binlogz … -"
        }
        _ => "",
    }
}

/// Reports trouble on stderr. If even that is closed, the exit code must do.
pub(crate) fn complain(line: &str) {
    let _ = progress::above(|| writeln!(io::stderr(), "binlogz: {}", printable(line)));
}

/// Reports something that is not an error, but should be known.
pub(crate) fn warn(line: &str) {
    complain(&format!("warning: {line}"));
}

/// Reports that a log in use ends inside an event, and what was done with those bytes.
pub(crate) fn warn_cut(log: &dyn Display, cut: CutEvent, came_of_it: &str) {
    let CutEvent { offset, size } = cut;
    warn(&format!(
        "{log} at {offset}: the log is in use and ends inside an event, of which {size} bytes are there{came_of_it}"
    ));
}
