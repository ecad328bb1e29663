//! Why a configuration can't be used.

use std::fmt::Display;

use binlogz_encryption::Error as EncryptionError;

/// The result of reading or resolving a configuration.
pub type Result<T, E = ConfigError> = std::result::Result<T, E>;

/// A line for a person: the file or section, the key, what was found, what was expected. Never a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

impl ConfigError {
    /// Trouble with a file or a section.
    pub(crate) fn of(place: &dyn Display, what: impl Display) -> Self {
        ConfigError(format!("{place}: {what}"))
    }

    /// Trouble with a keyring.
    pub(crate) fn with_encryption(place: &dyn Display, error: &EncryptionError) -> Self {
        ConfigError(error.in_file(place))
    }
}
