//! `relay init`: writes a configuration with a comment on everything.

use std::io::{self, Write};
use std::path::PathBuf;

use binlogz_relay_config::COMMENTED;
use clap::Args;

use crate::Exit;
use crate::failure::{CommandFailure, Result};
use crate::output;

/// Write a commented configuration.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    /// Where to.
    #[arg(default_value = "relay.toml", value_name = "FILE")]
    file: PathBuf,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "Examples:
  binlogz relay init
  binlogz relay init /etc/binlogz/relay.toml";

impl Init {
    pub(super) fn run(self) -> Result<Exit> {
        let target = output::target(self.file, &[], self.force)?;
        let mut out = target.create()?;
        out.write_all(COMMENTED.as_bytes()).map_err(|error| CommandFailure::writing(&target, &error))?;
        out.finish()?;
        let said = format!(
            "wrote {target}: set the source and the users in it, then\n  binlogz relay run --config {target}\n"
        );
        let written = io::stdout().write_all(said.as_bytes());
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}
