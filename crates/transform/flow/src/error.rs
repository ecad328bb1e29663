//! Errors while a log goes through the pipeline.

use std::fmt::Display;
use std::io;

use binlogz_binlog::Error as BinlogError;
use binlogz_payload::Error as PayloadError;

use crate::unread::UnreadChanges;

/// Sorted by blame: the log, or its destination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log can't be read, or its bytes are bad.
    #[error(transparent)]
    Input(binlogz_payload::Error),
    /// The output can't be written.
    #[error(transparent)]
    Output(binlogz_payload::Error),
    /// The log was read to its end, but changes may stand in it that could not be read.
    #[error("{}", unread_in_words(.0))]
    Unread(Box<UnreadChanges>),
}

/// The first of them, and how many there are.
fn unread_in_words(unread: &UnreadChanges) -> String {
    let others = match unread.events() {
        0 | 1 => String::new(),
        events => format!("; {events} events in all could not be read"),
    };
    match unread.iter().next() {
        Some(first) => format!("{first}{others}"),
        None => format!("changes could not be read{others}"),
    }
}

impl Error {
    /// Whether the output's reader is gone.
    pub fn is_closed_pipe(&self) -> bool {
        let Error::Output(error) = self else { return false };
        let io = match error {
            binlogz_payload::Error::Io(error) => error,
            binlogz_payload::Error::Binlog(BinlogError::Io(error)) => error,
            _ => return false,
        };
        io.kind() == io::ErrorKind::BrokenPipe
    }
}

/// How the name ends of the file in which a server lists its logs.
pub const INDEX: &str = ".index";

/// An error in a log as one line: `LOG at OFFSET: what: found, expected`. The error tells the offset, where it is
/// about one.
pub fn in_log(name: &dyn Display, error: &PayloadError) -> String {
    let hint = match error {
        PayloadError::Binlog(error) => hint(&name.to_string(), error),
        _ => "",
    };
    match error.offset() {
        Some(_) => format!("{name} {error}{hint}"),
        None => format!("{name}: {error}{hint}"),
    }
}

/// Advice for the error, where there is any.
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

impl From<BinlogError> for Error {
    fn from(error: BinlogError) -> Self {
        Error::Input(error.into())
    }
}

impl From<binlogz_payload::Error> for Error {
    fn from(error: binlogz_payload::Error) -> Self {
        Error::Input(error)
    }
}
