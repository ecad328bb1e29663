//! Errors of an experiment.

use std::io;
use std::path::Path;

/// The result of an experiment's steps.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an experiment could not be run, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was not begun: nothing was changed on the server.
    #[error("{0}")]
    Refused(String),
    /// The server, or the way to it.
    #[error("{0}")]
    Server(#[from] binlogz_source::Error),
    /// A private server, or a workload.
    #[error("{0}")]
    Sandbox(#[from] binlogz_sandbox::Error),
    /// A program that puts load on the server.
    #[error("{0}")]
    Load(String),
    /// A file of ours.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed, as in "write results.json".
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// It ended, and the server was not fully restored.
    #[error("{cause}; {left}: {remedy}")]
    NotRestored {
        /// Why.
        cause: String,
        /// The setting that was not restored.
        left: String,
        /// The statement to run.
        remedy: String,
    },
}

/// Adds the attempted operation and the file to an error of the system.
pub(crate) trait IoErrorContext<T> {
    fn at(self, verb: &str, path: &Path) -> Result<T>;
}

impl<T> IoErrorContext<T> for io::Result<T> {
    fn at(self, verb: &str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { what: format!("{verb} {}", path.display()), source })
    }
}
