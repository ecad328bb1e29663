//! `binlogz man [COMMAND]`: manual pages from the same definitions as the help.

use std::io::{self, Write};

use clap::{Args, CommandFactory};

use crate::failure::{Failure, Result};
use crate::{Cli, Exit};

/// Print the manual page of binlogz, or of one of its commands, as roff
#[derive(Debug, Args)]
pub(crate) struct Man {
    command: Option<String>,
}

impl Man {
    pub(super) fn run(self) -> Result<Exit> {
        let mut page = Cli::command();
        page.build();
        if let Some(name) = self.command {
            let command = page.find_subcommand(&name).cloned();
            page = command.ok_or_else(|| Failure::of(&name, "is no command of binlogz"))?;
        }
        let mut roff = Vec::new();
        let rendered = clap_mangen::Man::new(page).render(&mut roff);
        let written = rendered.and_then(|()| io::stdout().write_all(&roff));
        written.map_err(|error| Failure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}
