//! What can be wrong with a store.

use std::io;

use crate::storage;

/// The result of work on a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Sorted by blame: the disk, an earlier trouble with it, what stands in the directory, the caller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed.
    #[error("{file}: {operation}: {source}")]
    Io {
        /// What was to be done, as a verb.
        operation: &'static str,
        /// The file, by its name in the directory.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A write or a sync failed earlier: what is on disk is not known until the store is reopened.
    #[error("the store refuses writes until it is reopened, since an earlier error: {first}")]
    Latched {
        /// The error that it began with.
        first: String,
    },
    /// Bytes that were durable are damaged: nothing is written until they are repaired.
    #[error("{damage}; the log is not written to until that is repaired")]
    Refusing {
        /// The file, and where in it.
        damage: String,
    },
    /// A reader came to a place that is damaged.
    #[error("{damage}")]
    Unreadable {
        /// The file, and where in it.
        damage: String,
    },
    /// Another process has the directory.
    #[error("{directory}: another process uses this store")]
    InUse {
        /// The directory.
        directory: String,
    },
    /// A file holds bytes that no crash leaves there.
    #[error("{file} {source}")]
    Damaged {
        /// The file.
        file: String,
        /// Where and what.
        source: binlogz_binlog::Error,
    },
    /// An encrypted log that can't be opened.
    #[error("{file}: {source}")]
    Encryption {
        /// The file.
        file: String,
        /// Why.
        source: binlogz_encryption::Error,
    },
    /// The files and the index, or what stands beside them, don't fit together.
    #[error("{file}: {found}, expected {expected}")]
    Unfit {
        /// The file.
        file: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
    /// The caller asked for what can't be.
    #[error("{what}: {found}, expected {expected}")]
    Misuse {
        /// What was asked for.
        what: &'static str,
        /// What was given.
        found: String,
        /// What should have been.
        expected: &'static str,
    },
}

impl Error {
    /// Whether the same may work when it is tried again, or when a disk that was full or failing works again: what is
    /// stored is not what is wrong.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Io { .. } | Error::Latched { .. })
    }

    /// Whether it may be gone in a moment, although nobody repairs anything: see [`storage::is_transient`].
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Io { source, .. } if storage::is_transient(source))
    }

    pub(crate) fn io(operation: &'static str, file: &str) -> impl FnOnce(io::Error) -> Error + use<> {
        let file = file.to_owned();
        move |source| Error::Io { operation, file, source }
    }

    pub(crate) fn unfit(file: &str, found: impl ToString, expected: &'static str) -> Error {
        Error::Unfit { file: file.to_owned(), found: found.to_string(), expected }
    }
}
