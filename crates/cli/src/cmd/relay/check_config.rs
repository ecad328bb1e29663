//! `relay check-config`: reads a configuration and everything that it names, and changes nothing.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::config::Config;
use crate::Exit;
use crate::failure::{Failure, Result};

/// Check a configuration, with the passwords and certificates that it names, and show what it means.
#[derive(Debug, Args)]
pub(super) struct CheckConfig {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = "relay.toml")]
    config: PathBuf,
}

impl CheckConfig {
    pub(super) fn run(self) -> Result<Exit> {
        let name = self.config.display();
        let options = Config::read(&self.config)?.resolve().map_err(|failure| match failure {
            Failure::Line(line) => Failure::of(&name, line),
            closed => closed,
        })?;
        options.check().map_err(|error| Failure::of(&name, error))?;
        let servers: Vec<_> = options.sources.iter().map(|source| source.server()).collect();
        let accounts: Vec<_> = options.accounts.iter().map(|account| account.user.as_str()).collect();
        let accounts = match accounts.is_empty() {
            true => "the source's account".to_owned(),
            false => accounts.join(", "),
        };
        let (dir, listen) = (options.directory.display(), options.listen);
        let said = format!(
            "{name}: follows {}, keeps its log in {dir}, serves {accounts} on {listen}\n",
            servers.join(" or ")
        );
        io::stdout()
            .write_all(said.as_bytes())
            .map_err(|error| Failure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}
