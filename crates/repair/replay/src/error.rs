//! The only error of replaying logs, sorted by blame: the logs, what the caller named, the server, this process.

use binlogz_archive::input::Unreadable;
use binlogz_relay::LogError;

/// The result of replaying.
pub(crate) type Result<T, E = ReplayError> = std::result::Result<T, E>;

/// Why logs can't be replayed, or a server can't be brought forward with them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The logs can't be read, don't follow one another, or don't have the moment to stop at.
    #[error(transparent)]
    Logs(#[from] LogError),
    /// An archive can't be read.
    #[error(transparent)]
    Archive(#[from] Unreadable),
    /// A file or folder that the caller named.
    #[error("{place}: {why}")]
    Place {
        /// The path, or the archive.
        place: String,
        /// The trouble with it.
        why: String,
    },
    /// A server can't be reached, or refuses a statement.
    #[error(transparent)]
    Server(#[from] binlogz_source::Error),
    /// A server is not as it has to be.
    #[error("{server}: {why}")]
    Unfit {
        /// The server's name.
        server: String,
        /// Found and expected.
        why: String,
    },
    /// The source inside this process.
    #[error(transparent)]
    Serving(Box<binlogz_relay::Error>),
    /// The operating system gives no random numbers for a password.
    #[error("random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// The private server of a drill.
    #[error("the private server: {0}")]
    PrivateServer(#[from] binlogz_private_server::Error),
}

impl From<binlogz_relay::Error> for ReplayError {
    fn from(error: binlogz_relay::Error) -> ReplayError {
        ReplayError::Serving(Box::new(error))
    }
}

impl ReplayError {
    /// A server that is not as it has to be.
    pub(crate) fn unfit(server: &str, why: impl Into<String>) -> ReplayError {
        ReplayError::Unfit { server: server.to_owned(), why: why.into() }
    }

    /// Trouble with something that the caller named.
    pub(crate) fn place(place: impl ToString, why: impl ToString) -> ReplayError {
        ReplayError::Place { place: place.to_string(), why: why.to_string() }
    }
}
