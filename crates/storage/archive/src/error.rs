//! Errors of archives.

use std::borrow::Cow;
use std::io;

/// Why an archive could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that no packer writes.
    #[error("{what}: {found}, expected {expected}")]
    Damaged {
        /// The part of the archive.
        what: &'static str,
        /// The value found.
        found: Cow<'static, str>,
        /// The value expected.
        expected: &'static str,
    },
    /// An impossible number.
    #[error("{what} is {found}, expected {expected}")]
    Unexpected {
        /// The thing read or checked.
        what: String,
        /// The value found.
        found: String,
        /// The value expected.
        expected: String,
    },
    /// An error in one object of an archive.
    #[error("{object} at {offset}: {source}")]
    In {
        /// The object's name.
        object: String,
        /// The offset in it.
        offset: u64,
        /// The problem.
        source: Box<Error>,
    },
    /// A block's bytes are not those that were stored.
    #[error("{block} is damaged (checksum differs)")]
    Block {
        /// The block, and its transactions.
        block: String,
    },
    /// Damage to something that is stored twice.
    #[error("{what} is damaged ({source}); nothing is lost, since it is there a second time")]
    Copy {
        /// The damaged part.
        what: String,
        /// The problem with it.
        #[source]
        source: Box<Error>,
    },
    /// A whole block can't be unpacked without another that is damaged.
    #[error("{block} needs an earlier block: {source}")]
    Needs {
        /// The block, and its transactions.
        block: String,
        /// The problem with the other block.
        source: Box<Error>,
    },
    /// Payloads that this program can't reproduce.
    #[error(
        "its payloads were compressed by {found}, this program has {ours}, which need not give the same bytes; chosen \
         transactions (--gtids and so on) come expanded, whatever compressed them"
    )]
    Codec {
        /// The library that produces their bytes.
        found: String,
        /// The library we have.
        ours: String,
    },
    /// Reading or writing failed.
    #[error("{doing}: {source}")]
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// Another run replaced the manifest meanwhile.
    #[error("another run changed the archive meanwhile; nothing is lost: run this again")]
    Changed,
    /// An object that a reader still wanted is gone.
    #[error(
        "{object} was taken out of the archive meanwhile, by prune, merge, remove or create: run this again"
    )]
    Gone {
        /// The object's name.
        object: String,
    },
    /// A place that has no archive, and what it is instead.
    #[error("{0}")]
    NoArchive(&'static str),
    /// An encrypted archive, and no key.
    #[error(
        "it is encrypted with the key {key}, expected the key from BINLOGZ_ARCHIVE_KEY_FILE or \
         BINLOGZ_ARCHIVE_KEY_COMMAND, which are not set"
    )]
    Locked {
        /// The name of the key.
        key: String,
    },
    /// An archive without the rows of other tables, for a program that takes what it reads for all there was.
    #[error(
        "is a selection of tables ({selection}), expected whole logs: others were left out, which would go unnoticed here; \
         `archive restore` gives its logs"
    )]
    Selection {
        /// The tables, in words.
        selection: String,
    },
    /// A transaction that was asked for is not there.
    #[error("{gtid} is not in the archive")]
    Unmet {
        /// The transaction.
        gtid: String,
    },
    /// A closed log that doesn't end with an event, or has an event with another checksum than its bytes give.
    #[error("{0}: it was cut, or is damaged, so it is not archived as a whole log")]
    Torn(binlogz_binlog::Error),
    /// A log that can't be read.
    #[error(transparent)]
    Binlog(#[from] binlogz_binlog::Error),
    /// The manifest is not valid.
    #[error("manifest: {0}")]
    Manifest(#[from] serde_json::Error),
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Bytes that no packer writes.
    pub(crate) fn damaged(
        what: &'static str,
        found: impl Into<Cow<'static, str>>,
        expected: &'static str,
    ) -> Self {
        Error::Damaged { what, found: found.into(), expected }
    }

    /// A value other than the expected one.
    pub(crate) fn unexpected(what: impl Into<String>, found: impl ToString, expected: impl ToString) -> Self {
        Error::Unexpected { what: what.into(), found: found.to_string(), expected: expected.to_string() }
    }

    /// A system call that failed while `doing` something.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }

    /// An error writing the output.
    pub fn writing(error: io::Error) -> Self {
        Error::io("write")(error)
    }

    /// Whether the same may succeed a moment later: reading failed, and what is read is not missing.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() != io::ErrorKind::NotFound)
    }

    /// Whether it says that something isn't there.
    pub(crate) fn is_not_found(&self) -> bool {
        match self {
            Error::In { source, .. } | Error::Needs { source, .. } => source.is_not_found(),
            error => matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound),
        }
    }

    /// Whether nothing is known: reading failed otherwise than by something that isn't there, or there is no key.
    pub(crate) fn is_trouble(&self) -> bool {
        match self {
            Error::In { source, .. } | Error::Needs { source, .. } => source.is_trouble(),
            Error::Locked { .. } | Error::Changed => true,
            error => error.may_pass(),
        }
    }

    /// Whether storage failed, perhaps since an object is missing.
    pub(crate) fn is_of_storage(&self) -> bool {
        match self {
            Error::In { source, .. } | Error::Needs { source, .. } => source.is_of_storage(),
            error => matches!(error, Error::Io { .. }) && !error.is_closed_pipe(),
        }
    }

    /// Whether the reader of our output stopped reading.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
