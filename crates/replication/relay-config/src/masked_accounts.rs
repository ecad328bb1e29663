//! The accounts whose logs are masked, for those who look at a configuration without serving by it.

use std::path::Path;

use binlogz_exits::{ExitPolicy, PolicyError};
use binlogz_relay_forms::MaskedForm;

use crate::config::{AccountConfig, RelayConfig};

/// An account that is sent a masked log.
#[derive(Debug)]
pub struct MaskedAccount<'a> {
    /// The name of the account.
    pub user: &'a str,
    /// The policy's file.
    pub policy: &'a Path,
    /// What names the policy and its key in the names of files; or why it can't be read.
    pub digest: std::result::Result<String, PolicyError>,
}

impl RelayConfig {
    /// The accounts of a source whose logs are masked.
    pub fn masked_accounts<'a>(&'a self, source: &'a str) -> impl Iterator<Item = MaskedAccount<'a>> {
        let is_of_source =
            move |account: &&AccountConfig| account.source.as_deref().is_none_or(|name| name == source);
        self.accounts.iter().filter(is_of_source).filter_map(AccountConfig::masked)
    }
}

impl AccountConfig {
    fn masked(&self) -> Option<MaskedAccount<'_>> {
        let policy = self.exits.as_deref()?;
        let digest = ExitPolicy::read(policy).map(|policy| MaskedForm::new(policy).shown_digest().to_owned());
        Some(MaskedAccount { user: &self.user, policy, digest })
    }
}
