//! The only error of a fleet: its file of targets. Whatever is wrong with a target is a row.

use std::io;
use std::path::PathBuf;

/// The result of reading the file of targets.
pub(crate) type Result<T, E = FleetError> = std::result::Result<T, E>;

/// Why a file of targets can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// It can't be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is no file that a person wrote.
    #[error("{}: is larger than 4 MiB, expected a file of targets", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It names something unknown, nothing, or the same name twice.
    #[error("{} {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The error, after the line where that is known.
        why: String,
    },
}
