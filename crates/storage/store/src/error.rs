//! Errors of a store.

use std::io;

/// The result of work on a store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Sorted by blame: the disk, an earlier disk error, the directory's content, the caller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed.
    #[error("{file}: {operation}: {source}")]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file, by its name in the directory.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// A write or a sync failed earlier: we don't know what is on disk until the store is reopened.
    #[error("the store refuses writes until it is reopened, since an earlier error: {first}")]
    Latched {
        /// The first error.
        first: String,
    },
    /// Bytes that were durable are damaged: nothing is written until they are repaired.
    #[error("{damage}; the log is not written to until that is repaired")]
    Refusing {
        /// The file, and where in it.
        damage: String,
    },
    /// A reader reached damaged bytes.
    #[error("{damage}")]
    Unreadable {
        /// The file, and where in it.
        damage: String,
    },
    /// Another process has the directory open.
    #[error("{directory}: another process uses this store")]
    InUse {
        /// The directory.
        directory: String,
    },
    /// A file holds bytes that no crash could leave.
    #[error("{file} {source}")]
    Damaged {
        /// The file.
        file: String,
        /// Where the bytes are, and what is wrong with them.
        source: binlogz_binlog::Error,
    },
    /// An encrypted log can't be opened.
    #[error("{file}: {source}")]
    Encryption {
        /// The file.
        file: String,
        /// The reason.
        source: binlogz_encryption::Error,
    },
    /// The files, the index and the store's other files don't fit together.
    #[error("{file}: {found}, expected {expected}")]
    Unfit {
        /// The file.
        file: String,
        /// The value found.
        found: String,
        /// The value expected.
        expected: &'static str,
    },
    /// The caller asked for something impossible.
    #[error("{what}: {found}, expected {expected}")]
    Misuse {
        /// The request.
        what: &'static str,
        /// The value given.
        found: String,
        /// The value expected.
        expected: &'static str,
    },
}

impl Error {
    /// Whether a retry may work, now or once a full or failing disk works again: the stored data is not at
    /// fault.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Io { .. } | Error::Latched { .. })
    }

    /// Whether the error may go away shortly without any repair: see [`is_transient`].
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Io { source, .. } if is_transient(source))
    }

    pub(crate) fn io(operation: &'static str, file: &str) -> impl FnOnce(io::Error) -> Error + use<> {
        let file = file.to_owned();
        move |source| Error::Io { operation, file, source }
    }

    pub(crate) fn unfit(file: &str, found: impl ToString, expected: &'static str) -> Error {
        Error::Unfit { file: file.to_owned(), found: found.to_string(), expected }
    }
}

/// Whether a retry may succeed without any repair: no descriptor or memory was left, the call was
/// interrupted, or there was no room.
pub fn is_transient(error: &io::Error) -> bool {
    /// ENFILE, EMFILE.
    const NO_DESCRIPTOR: [i32; 2] = [23, 24];
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
    matches!(error.kind(), Interrupted | WouldBlock | OutOfMemory | StorageFull | QuotaExceeded)
        || error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code))
}
