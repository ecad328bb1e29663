//! What can be wrong with a store.

use std::io;

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
    /// A write or a sync failed earlier: what is on disk is not known until the store is opened again.
    #[error("the store refuses since an earlier error, and must be opened again: {first}")]
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
    pub(crate) fn io(operation: &'static str, file: &str) -> impl FnOnce(io::Error) -> Error + use<> {
        let file = file.to_owned();
        move |source| Error::Io { operation, file, source }
    }

    pub(crate) fn unfit(file: &str, found: impl ToString, expected: &'static str) -> Error {
        Error::Unfit { file: file.to_owned(), found: found.to_string(), expected }
    }
}
