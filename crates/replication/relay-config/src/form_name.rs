//! The names of forms in a configuration, and as values of options.

use binlogz_relay::{Form, FormPolicy};
use serde::Deserialize;

/// The form for clients that name no file: the name of a [`FormPolicy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum FormName {
    /// The source's own bytes, file names and positions.
    Received,
    /// Every transaction that may be compressed is.
    Compressed,
    /// No compressed transactions, as if the feature did not exist.
    Uncompressed,
    /// What each can read: received for mysqld and mysqlbinlog since 8.0.20, uncompressed for all others.
    #[default]
    Auto,
}

impl FormName {
    /// The policy of this name.
    #[must_use]
    pub fn form(self) -> FormPolicy {
        match self {
            FormName::Received => FormPolicy::Always(Form::Received),
            FormName::Compressed => FormPolicy::Always(Form::Compressed),
            FormName::Uncompressed => FormPolicy::Always(Form::Uncompressed),
            FormName::Auto => FormPolicy::Auto,
        }
    }
}

/// How the log is stored: the name of a [`binlogz_relay::StoredForm`], whose level is a key of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum StoreName {
    /// The source's own bytes.
    #[default]
    Received,
    /// Plain transactions compressed, by as many threads as there are cores, up to 8.
    Compressed,
}
