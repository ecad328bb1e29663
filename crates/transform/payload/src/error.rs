//! Errors when a transaction is compressed or expanded.

use std::io;

use binlogz_binlog::Error as BinlogError;

/// The result of compressing or expanding.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a transaction could not be compressed or expanded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not follow the format.
    #[error(transparent)]
    Binlog(#[from] binlogz_binlog::Error),
    /// A payload's contents are wrong.
    #[error("at {offset}: TransactionPayload event: the payload is damaged: {found}")]
    Payload {
        /// Offset at which the payload event begins.
        offset: u64,
        /// The value found in it.
        found: String,
    },
    /// libzstd failed for a reason that has nothing to do with the input.
    #[error("zstd: {0}")]
    Zstd(&'static str),
    /// A helper program, which has another libzstd, has ended, does not answer, or gives no sensible answer.
    #[error("{program} {wrong}")]
    Helper {
        /// The program.
        program: String,
        /// The rest of the message: what the program did wrong.
        wrong: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Turns an error code of libzstd into text.
    pub(crate) fn zstd(code: usize) -> Self {
        Error::Zstd(zstd_safe::get_error_name(code))
    }

    /// An error inside the payload of the event at `offset`; offsets of the error itself count the payload's
    /// uncompressed bytes.
    #[must_use]
    pub fn in_payload(self, offset: u64) -> Self {
        let found = match self {
            Error::Binlog(BinlogError::At { offset, event_type, source }) => {
                let event = event_type.map(|event_type| format!("{event_type} event ")).unwrap_or_default();
                format!("{event}{offset} bytes into it: {source}")
            }
            Error::Binlog(error @ BinlogError::Io(_)) => return error.into(),
            Error::Binlog(error) => error.to_string(),
            Error::Zstd(message) => format!("zstd: {message}"),
            other => return other,
        };
        Error::Payload { offset, found }
    }

    /// The offset at which the error happened, where known.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::Binlog(error) => error.offset(),
            Error::Payload { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// Whether the log simply ends inside an event.
    pub fn is_truncation(&self) -> bool {
        matches!(self, Error::Binlog(error) if error.is_truncation())
    }
}
