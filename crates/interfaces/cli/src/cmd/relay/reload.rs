//! `relay reload`: tells a running relay to read its configuration again.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::{orders, read};
use crate::Exit;
use crate::failure::{CommandFailure, Result};
use crate::terminal;

/// Let a running relay read its configuration again: sources and accounts are added, changed and removed, and replicas of
/// the other sources notice nothing. SIGHUP does the same.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Reload {
    /// The relay's configuration; it says where the relay can be reached.
    #[arg(long, value_name = "FILE", default_value = "relay.toml")]
    config: PathBuf,
}

const EXAMPLES: &str = "Examples:
  binlogz relay reload --config /etc/binlogz/relay.toml
  binlogz relay check-config --config relay.toml && binlogz relay reload --config relay.toml";

impl Reload {
    pub(super) fn run(self) -> Result<Exit> {
        let name = self.config.display();
        let directory = read(&self.config)?.directory().map_err(|error| CommandFailure::of(&name, error))?;
        let said = orders::order(&directory).map_err(CommandFailure::Line)?;
        let written = io::stdout().write_all(terminal::within_width(&said).as_bytes());
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}
