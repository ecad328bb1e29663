//! `binlogz man`: manual pages from the same definitions as the help, one for each command and subcommand.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process;

use clap::Args;
use clap_mangen::Man as Page;

use super::described::described;
use crate::Exit;
use crate::failure::{CommandFailure, Result};
use crate::output;
use crate::pager;

/// Show a manual page, or write all of them into a folder
///
/// On a terminal man(1) shows the page; into a file or pipe goes its roff.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// Write all pages into this folder: binlogz.1, binlogz-compress.1, binlogz-relay-run.1 and so on
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    to: Option<PathBuf>,
    /// Replace pages that are there
    #[arg(long, requires = "to")]
    force: bool,
    /// The command, such as compress or relay run; without one, binlogz as a whole
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// The program that shows manual pages.
const MAN: &str = "man";

const EXAMPLES: &str = "Examples:
  binlogz man relay run
  binlogz man relay run > binlogz-relay-run.1
  binlogz man --to ~/.local/share/man/man1";

impl Man {
    pub(super) fn run(self) -> Result<Exit> {
        // `help` as a command has no page.
        let mut all = described().disable_help_subcommand(true);
        all.build();
        if let Some(folder) = self.to {
            write_all(&all, &folder, self.force)?;
            return Ok(Exit::Done);
        }
        let mut command = &all;
        for name in &self.command {
            let found = command.find_subcommand(name);
            command = found.ok_or_else(|| {
                CommandFailure::of(name, format_args!("is no command of {}", command.get_name()))
            })?;
        }
        let page = roff(command);
        if io::stdout().is_terminal() && opened(&Page::new(command.clone()).get_filename(), &page)? {
            return Ok(Exit::Done);
        }
        let written = io::stdout().write_all(&page);
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}

/// Shows a page with man(1); whether there is one.
fn opened(name: &str, page: &[u8]) -> Result<bool> {
    let in_folder = |error| CommandFailure::of(&"a folder for the page", error);
    let folder = tempfile::Builder::new().prefix("binlogz-man-").tempdir().map_err(in_folder)?;
    // A name with a slash is a file to every man(1).
    let path = folder.path().join(name);
    fs::write(&path, page).map_err(|error| CommandFailure::of(&path.display(), error))?;
    let mut man = process::Command::new(MAN);
    man.arg(&path);
    if let Some(pager) = pager::named() {
        man.env("MANPAGER", pager);
    }
    match pager::hand_over(|| man.status()) {
        Ok(status) if status.success() => Ok(true),
        Ok(status) => Err(CommandFailure::of(&MAN, status)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(CommandFailure::of(&MAN, error)),
    }
}

fn write_all(command: &clap::Command, folder: &Path, force: bool) -> Result<()> {
    let target = output::target(folder.join(Page::new(command.clone()).get_filename()), &[], force)?;
    let mut page = target.create()?;
    page.write_all(&roff(command)).map_err(|error| CommandFailure::writing(&target, &error))?;
    page.finish()?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.into_iter().try_for_each(|command| write_all(command, folder, force))
}

fn roff(command: &clap::Command) -> Vec<u8> {
    let mut roff = Vec::new();
    // A vector takes all that is written to it.
    let _ = Page::new(command.clone()).render(&mut roff);
    roff
}
