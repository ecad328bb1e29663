//! The only error of sandboxes and the testkit: it distinguishes a server or program that is unavailable here from a
//! failure.

use std::path::Path;
use std::{fmt, io};

/// Why the testkit could not run a server or a program.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A program is not available on this machine: the test that needs it is skipped.
    Unavailable(String),
    /// Reading, writing or starting something failed: the attempt, and the system's answer.
    Io(String, io::Error),
    /// A program that ran and failed, with its message.
    Failed(String),
}

/// The testkit's result.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable(reason) | Error::Failed(reason) => f.write_str(reason),
            Error::Io(what, source) => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(_, source) => Some(source),
            _ => None,
        }
    }
}

/// Adds the attempted operation to an error of the system.
pub trait IoContext<T> {
    /// Adds a verb phrase ("copy data directory") and the path it was about.
    fn at(self, verb: &str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, verb: &str, path: &Path) -> Result<T> {
        self.map_err(|error| Error::Io(format!("{verb} {}", path.display()), error))
    }
}
