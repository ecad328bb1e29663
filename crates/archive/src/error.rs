//! What can go wrong with an archive.

use std::io;

/// Why an archive could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that no packer writes.
    #[error("{what}: {problem}")]
    Damaged {
        /// The part of the archive.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A number that can't be.
    #[error("{what} is {found}, expected {expected}")]
    Unexpected {
        /// What was read or checked.
        what: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// Trouble with one object of an archive.
    #[error("{object} at {offset}: {source}")]
    In {
        /// The object's name.
        object: String,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        source: Box<Error>,
    },
    /// A block's bytes are not those that were stored.
    #[error("{block} is damaged (checksum differs)")]
    Block {
        /// The block, and its transactions.
        block: String,
    },
    /// Something that is there a second time.
    #[error("{what} is damaged ({source}); nothing is lost, since it is there a second time")]
    Copy {
        /// What it is.
        what: String,
        /// What is wrong with it.
        #[source]
        source: Box<Error>,
    },
    /// A block that is whole can't be had without another that is not.
    #[error("{block} needs an earlier block: {source}")]
    Needs {
        /// The block, and its transactions.
        block: String,
        /// What is wrong with the other.
        source: Box<Error>,
    },
    /// Payloads that this program can't make again.
    #[error(
        "its payloads were compressed by {found}, this program has {ours}, which need not give the same bytes; chosen \
         transactions (--gtids and so on) come expanded, whatever compressed them"
    )]
    Codec {
        /// The library that gives its bytes.
        found: String,
        /// The one at hand.
        ours: String,
    },
    /// Reading or writing failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
    /// Another run replaced the manifest meanwhile.
    #[error("another run changed the archive meanwhile; nothing is lost: run this again")]
    Changed,
    /// A log that can't be read.
    #[error(transparent)]
    Binlog(#[from] binlogz_binlog::Error),
    /// The manifest is not what it should be.
    #[error("manifest: {0}")]
    Manifest(#[from] serde_json::Error),
}

/// The result of work on an archive.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Bytes that no packer writes.
    pub(crate) fn damaged(what: &'static str, problem: &'static str) -> Self {
        Error::Damaged { what, problem }
    }

    /// Something else than should be.
    pub(crate) fn unexpected(what: impl Into<String>, found: impl ToString, expected: impl ToString) -> Self {
        Error::Unexpected { what: what.into(), found: found.to_string(), expected: expected.to_string() }
    }

    /// A system call that failed while `doing` something.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }

    /// Output that can't be written.
    pub fn writing(error: io::Error) -> Self {
        Error::io("write")(error)
    }

    /// Whether the system refused to read or write something, which may pass.
    pub fn is_io(&self) -> bool {
        matches!(self, Error::Io { .. })
    }

    /// Whether whoever read our output stopped reading.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
