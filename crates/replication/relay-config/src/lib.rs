//! The relay's configuration, `relay.toml`: read, checked, and made the relay's options.
//!
//! ```text
//! relay.toml → RelayConfig::read (its keys, errors with their line) → resolve (option files, passwords, keyrings) → RelayOptions
//!                                                                   → log (format, levels) → LogSettings
//! ```
//!
//! Nothing here follows a source, tries a place or prints: warnings come back beside the options. [`COMMENTED`] is the configuration that
//! shows every key with its default.

mod config;
mod error;
mod form_name;
mod log_levels;
mod masked_accounts;
mod resolve;

pub use config::{HttpConfig, ListenConfig, LogConfig, RelayConfig, SourceConfig, StoreConfig};
pub use error::{ConfigError, Result};
pub use form_name::{FormName, StoreName};
pub use log_levels::{LogFormat, LogSettings, OWN_TARGETS, default_levels, levels};
pub use masked_accounts::MaskedAccount;

/// A configuration with a comment on every key; each commented line has its default, or an example.
pub const COMMENTED: &str = include_str!("relay.toml");
