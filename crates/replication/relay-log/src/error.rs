//! Errors of stored logs: the disk, the bytes on it, and what a caller asks of them. Readers of the log in any form have the same errors.

use std::io;
use std::sync::Arc;

use binlogz_store::is_transient;

/// The result of keeping or reading logs.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a log can't be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed, or its contents are bad.
    #[error(transparent)]
    Store(#[from] binlogz_store::Error),
    /// One of the relay's own files has unexpected contents.
    #[error("{file} in the relay's directory is damaged: found {found}, expected {expected}")]
    Damaged {
        /// The file's name.
        file: String,
        /// The contents found, shortened.
        found: String,
        /// The contents expected.
        expected: String,
    },
    /// One of the relay's own files is of a version that this relay does not know.
    #[error(
        "{file} in the relay's directory: format version {found}, expected version {known}: another version of binlogz wrote it"
    )]
    Version {
        /// The file's name.
        file: String,
        /// The file's format version.
        found: u32,
        /// The version that is known here.
        known: u32,
    },
    /// The source's log is not the one stored here.
    #[error("{0}")]
    Lineage(String),
    /// Bad bytes.
    #[error(transparent)]
    Binlog(#[from] binlogz_binlog::Error),
    /// A transaction that can't be expanded.
    #[error(transparent)]
    Payload(#[from] binlogz_payload::Error),
    /// An error that several readers get, since they wait for the same thing: a transaction that can't be converted to a form.
    #[error("{0}")]
    Shared(Arc<Error>),
    /// Stored data can't be read or converted to a form.
    #[error("{file} {source}")]
    Stored {
        /// The stored file, to which offsets refer.
        file: String,
        /// The error there.
        source: Box<Error>,
    },
    /// The stored log is damaged there; what precedes and follows the damage is served.
    #[error("{0}")]
    DamagedLog(String),
    /// What was asked for can't be had; the client gets the reason.
    #[error("{0}")]
    Refused(String),
    /// The logs don't have the requested place or transaction.
    #[error("{0}")]
    Unmet(String),
    /// An error of the archive at this location.
    #[error("archive {0}: {1}")]
    Archive(String, binlogz_archive::Error),
    /// An operation failed in the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// The attempted operation, as in "write relay.cuts".
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

/// How many characters of a damaged file an error shows.
const FOUND_MAX: usize = 80;

impl Error {
    /// The error for unexpected contents in one of the relay's own files.
    pub fn damaged(file: &str, found: &str, expected: impl Into<String>) -> Error {
        let shown: String = found.chars().take(FOUND_MAX).collect();
        let more = if shown.len() < found.len() { " …" } else { "" };
        Error::Damaged { file: file.to_owned(), found: format!("{shown:?}{more}"), expected: expected.into() }
    }

    /// Makes an error of the system's, which says what was attempted.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }

    /// An error from reading a stored log.
    pub fn of_stored(source: io::Error) -> Error {
        match source.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(binlogz_store::Error::Unreadable { damage }) => Error::DamagedLog(damage.clone()),
            _ => Error::io("read a stored log")(source),
        }
    }

    /// Adds the stored file's name, if bad bytes in it are the cause.
    pub fn in_stored(self, file: impl FnOnce() -> String) -> Error {
        match self.is_bad_bytes() {
            true => Error::Stored { file: file(), source: Box::new(self) },
            false => self,
        }
    }

    /// The stored file with bad bytes.
    pub(crate) fn stored_file(&self) -> Option<&str> {
        match self {
            Error::Stored { file, .. } | Error::Store(binlogz_store::Error::Damaged { file, .. }) => {
                Some(file)
            }
            Error::Shared(error) => error.stored_file(),
            _ => None,
        }
    }

    fn is_bad_bytes(&self) -> bool {
        match self {
            Error::Binlog(error) => error.offset().is_some(),
            Error::Payload(error) => error.offset().is_some(),
            Error::Shared(error) => error.is_bad_bytes(),
            _ => false,
        }
    }

    /// The error's category, for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Store(_) => "store",
            Error::Damaged { .. } | Error::DamagedLog(_) | Error::Version { .. } => "damaged",
            Error::Lineage(_) => "lineage",
            Error::Binlog(_) => "binlog",
            Error::Payload(_) => "payload",
            Error::Shared(error) => error.kind(),
            Error::Stored { source, .. } => source.kind(),
            Error::Refused(_) | Error::Unmet(_) => "refused",
            Error::Archive(..) => "archive",
            Error::Io { .. } => "io",
        }
    }

    /// Whether retrying can't help: someone must decide or repair something first.
    pub fn is_final(&self) -> bool {
        match self {
            // The next connection repairs it.
            Error::Store(binlogz_store::Error::Refusing { .. }) => false,
            Error::Store(error) => !error.may_pass(),
            Error::Damaged { .. } | Error::Version { .. } | Error::Lineage(_) => true,
            _ => false,
        }
    }

    /// Whether the cause is this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Error::Store(_) | Error::Io { .. } | Error::Payload(binlogz_payload::Error::Io(_)) => true,
            Error::Shared(error) => error.is_local(),
            _ => false,
        }
    }

    /// Whether it may pass without repair, as when descriptors run out.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Store(error) => error.is_transient(),
            Error::Io { source, .. } | Error::Payload(binlogz_payload::Error::Io(source)) => {
                is_transient(source)
            }
            Error::Shared(error) => error.is_transient(),
            _ => false,
        }
    }
}
