//! Errors between two peers, sorted by blame.

use std::time::Duration;

use crate::response::ErrPacket;

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the conversation can't continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message or an event is malformed.
    #[error("malformed answer while {doing}: {source}")]
    Malformed {
        /// The session's activity, as in "logging in".
        doing: String,
        /// The error in the bytes.
        source: binlogz_binlog::Error,
    },
    /// The peer sent something well-formed that does not belong here.
    #[error("protocol broken while {doing}: found {found}, expected {expected}")]
    Protocol {
        /// The session's activity.
        doing: String,
        /// The peer's packet.
        found: String,
        /// The packet expected.
        expected: &'static str,
    },
    /// The peer refused, with an error of its own.
    #[error("{doing}: server says {error}")]
    Server {
        /// The session's activity.
        doing: String,
        /// The peer's own words.
        error: ServerError,
    },
    /// The peer lacks or requires something that we don't share.
    #[error("{0}")]
    Unsupported(String),
    /// The protocol can't express the caller's request.
    #[error("{0}")]
    Usage(String),
    /// The peer was silent for too long.
    #[error("no answer within {} s while {doing}", after.as_secs_f32())]
    Timeout {
        /// The session's activity.
        doing: String,
        /// How long it waited.
        after: Duration,
    },
    /// The peer ended the connection without a word.
    #[error("connection ended by the server while {doing}")]
    Closed {
        /// The session's activity.
        doing: String,
    },
}

/// An error that a server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The server's error number, as in 1045 for a refused login.
    pub code: u16,
    /// SQLSTATE; absent in errors sent before the client has named its capabilities.
    pub sqlstate: Option<[u8; 5]>,
    /// The server's message.
    pub message: String,
}

impl ServerError {
    /// Access denied: wrong user or password.
    pub const ACCESS_DENIED: u16 = 1045;
    /// Access denied to a client that wanted to become this user: the connection ends.
    pub const ACCESS_DENIED_CHANGE_USER: u16 = 1873;
    /// A command is longer than the server takes.
    pub const PACKET_TOO_LARGE: u16 = 1153;
    /// A system variable that this server does not know.
    pub const UNKNOWN_SYSTEM_VARIABLE: u16 = 1193;
    /// A privilege is missing.
    pub const SPECIFIC_ACCESS_DENIED: u16 = 1227;
    /// The source can't send the requested log.
    pub const SOURCE_FATAL_ERROR_READING_BINLOG: u16 = 1236;
    /// The client can't prove its identity in any way that this server accepts.
    pub const NOT_SUPPORTED_AUTH_MODE: u16 = 1251;
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(sqlstate) = &self.sqlstate {
            write!(f, " ({})", sqlstate.escape_ascii())?;
        }
        write!(f, ": {}", self.message)
    }
}

impl From<ErrPacket<'_>> for ServerError {
    fn from(packet: ErrPacket<'_>) -> Self {
        ServerError {
            code: packet.code,
            sqlstate: packet.sqlstate,
            message: String::from_utf8_lossy(packet.message).into_owned(),
        }
    }
}

/// Adds the session's current activity when a decoder finds bad bytes.
pub(crate) trait DecodeContext<T> {
    fn during(self, doing: &str) -> Result<T>;
}

impl<T> DecodeContext<T> for binlogz_binlog::Result<T> {
    fn during(self, doing: &str) -> Result<T> {
        self.map_err(|source| Error::Malformed { doing: doing.to_owned(), source })
    }
}
