//! Errors on the way to a server.

use std::io;
use std::path::{Path, PathBuf};

use binlogz_wire::ServerError;

/// The result of talking to a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server could not be reached or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option that can't be followed.
    #[error("{0}")]
    Option(String),
    /// A file that an option names.
    #[error("{verb} {}: {source}", path.display())]
    File {
        /// The action that failed, as in "read".
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A line of an option file.
    #[error("{} line {line}: {problem}", path.display())]
    OptionFile {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The problem with it.
        problem: String,
    },
    /// The server could not be reached.
    #[error("connect to {server}: {source}")]
    Connect {
        /// Host and port, or the socket.
        server: String,
        /// The system's answer.
        source: io::Error,
    },
    /// TLS could not be negotiated, or the server is not the expected one.
    #[error("TLS with {server}: {source}")]
    Tls {
        /// Host and port, or the socket.
        server: String,
        /// TLS's own error.
        source: io::Error,
    },
    /// The connection broke.
    #[error("connection to {server} broke while {doing}: {source}")]
    Io {
        /// Host and port, or the socket.
        server: String,
        /// The session's activity at the time.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The conversation failed.
    #[error("{server}: {source}")]
    Wire {
        /// Host and port, or the socket.
        server: String,
        /// The peer's error.
        source: binlogz_wire::Error,
    },
    /// An answer that is not what the statement asks for.
    #[error("{server}: {statement} answered {answer}, expected {expected}")]
    Answer {
        /// Host and port, or the socket.
        server: String,
        /// The statement.
        statement: String,
        /// What was answered.
        answer: String,
        /// What it should have been.
        expected: &'static str,
    },
}

impl Error {
    /// The server's own error, where it refused.
    pub fn server_error(&self) -> Option<&ServerError> {
        match self {
            Error::Wire { source: binlogz_wire::Error::Server { error, .. }, .. } => Some(error),
            _ => None,
        }
    }
}

/// Adds the attempted operation and the file to an error of the system.
pub(crate) trait FileContext<T> {
    fn at(self, verb: &'static str, path: &Path) -> Result<T>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn at(self, verb: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::File { verb, path: path.to_owned(), source })
    }
}
