//! Errors of a transaction on its way into the log.

use std::sync::Arc;

use binlogz_binlog::gtid::Gtid;
use binlogz_variables::VariableError;

/// The result of work with the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Sorted by blame: the disk, the transaction, the caller. Cloned for each of a group that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log could not be written or synced. Reopening it shows whether the transaction is in it; until
    /// then the engine refuses everything.
    #[error(transparent)]
    Store(Arc<binlogz_store::Error>),
    /// Bytes that are no events.
    #[error(transparent)]
    Event(Arc<binlogz_binlog::Error>),
    /// Compressing or expanding failed.
    #[error(transparent)]
    Payload(Arc<binlogz_payload::Error>),
    /// A transaction outgrew `max_cache_size` (the server's error 1197).
    #[error("the transaction needs more than {max} bytes of cache")]
    CacheFull {
        /// The bound.
        max: usize,
    },
    /// The GTID that was given is in the log already.
    #[error("GTID {gtid} has been committed already")]
    GtidTaken {
        /// The GTID.
        gtid: Gtid,
    },
    /// A variable was not set.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The caller asked for something impossible.
    #[error("{what}: {found}, expected {expected}")]
    Misuse {
        /// The request.
        what: &'static str,
        /// The actual state.
        found: String,
        /// The required state.
        expected: &'static str,
    },
}

impl Error {
    pub(crate) fn misuse(what: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Error::Misuse { what, found: found.to_string(), expected }
    }
}

impl From<binlogz_store::Error> for Error {
    fn from(error: binlogz_store::Error) -> Self {
        Error::Store(Arc::new(error))
    }
}

impl From<binlogz_binlog::Error> for Error {
    fn from(error: binlogz_binlog::Error) -> Self {
        Error::Event(Arc::new(error))
    }
}

impl From<binlogz_payload::Error> for Error {
    fn from(error: binlogz_payload::Error) -> Self {
        Error::Payload(Arc::new(error))
    }
}
