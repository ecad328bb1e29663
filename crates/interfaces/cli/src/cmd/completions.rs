//! `binlogz completions SHELL`: the script by which a shell completes binlogz's commands and options.

use std::io::{self, Write};

use clap::Args;
use clap_complete::Shell;

use super::described::described;
use crate::Exit;
use crate::failure::{CommandFailure, Result};

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    shell: Shell,
}

const EXAMPLES: &str = "Examples:
  binlogz completions bash > ~/.local/share/bash-completion/completions/binlogz
  binlogz completions zsh > ~/.zfunc/_binlogz
  binlogz completions fish > ~/.config/fish/completions/binlogz.fish";

impl Completions {
    pub(super) fn run(self) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut described(), "binlogz", &mut script);
        let written = io::stdout().write_all(&script);
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}
