//! Errors: of the policy, or of a log that may not leave by it.

use std::path::PathBuf;

use binlogz_atomic_file::SecretFileError;

/// A policy that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file of the policy can't be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file isn't TOML, or has fields of other names or types.
    #[error("{file}: {text}")]
    Format {
        /// The file.
        file: String,
        /// The parser's words, on one line.
        text: String,
    },
    /// A line of it.
    #[error("{file} line {line}: {text}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What was found there, and what was expected.
        text: String,
    },
    /// The key can't be used.
    #[error("{}: {source}", path.display())]
    Key {
        /// The file of the key.
        path: PathBuf,
        /// Why.
        source: SecretFileError,
    },
}

/// A log that can't leave by the policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExitError {
    /// The policy doesn't say what is to become of this.
    #[error("at {offset}: {text}")]
    Refused {
        /// The offset of the event, or of the payload that holds it.
        offset: u64,
        /// Which table and column, what was found, and which line of the policy is meant.
        text: String,
    },
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] binlogz_flow::Error),
    /// An event can't be read or written.
    #[error(transparent)]
    Event(#[from] binlogz_binlog::Error),
    /// A temporary file.
    #[error("temporary file: {0}")]
    Spill(#[source] std::io::Error),
}
