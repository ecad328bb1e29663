//! `binlogz archive`: logs packed by column, across transactions, and restored byte for byte.

mod change_key;
mod check;
mod copy;
mod coverage;
mod create;
mod erase;
pub(in crate::cmd) mod json;
mod list;
mod manner;
mod merge;
mod prometheus;
mod prune;
mod remove;
mod restore;
mod serve;
mod source_logs;
mod upkeep;

use std::io::Write;
use std::path::Path;

use binlogz_archive::chosen_tables::TableChoice;
use binlogz_archive::format::{Manifest, masked_in_words};
use binlogz_archive::storage::{ArchiveStorage, Manner};
use binlogz_archive::{Error, existing};
use binlogz_binlog::printable;
use binlogz_figures::Zone;
use binlogz_figures::wrapped;
use clap::{Args, Subcommand};

use crate::Exit;
use crate::failure::{CommandFailure, Result, warn};
use crate::terminal;
use change_key::ChangeKey;
use check::CheckCommand;
use copy::Copy;
use create::Create;
use erase::Erase;
use list::List;
use merge::Merge;
use prune::Prune;
use remove::Remove;
use restore::{Cat, Restore};
use serve::Serve;

/// Pack binary logs by column into an archive, and restore them byte for byte
///
/// An archive is a folder, or a place in object storage, with a manifest and immutable objects, each a segment of up
/// to 512 MiB of logs. It takes about half of what `xz -6` makes of the same logs; one transaction is restored by
/// reading a few blocks. Settings of object storage come from the usual environment: AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL and so on.
///
/// An archive is encrypted if there is a key when it is made: BINLOGZ_ARCHIVE_KEY_FILE names a file with 32 bytes in
/// base64 or hexadecimal digits (`openssl rand -base64 32`), or BINLOGZ_ARCHIVE_KEY_COMMAND is a command that prints them. The
/// same key is then needed to read it, by any command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArchiveCommand {
    #[command(subcommand)]
    what: ArchiveAction,
}

const EXAMPLES: &str = "Examples:
  binlogz archive create --to /backup/db1 /var/lib/mysql/binlog.[0-9]*
  binlogz archive list /backup/db1
  binlogz archive restore --to back /backup/db1 binlog.000042";

#[derive(Debug, Subcommand)]
enum ArchiveAction {
    Create(Create),
    List(List),
    Check(CheckCommand),
    Restore(Restore),
    Cat(Cat),
    Remove(Remove),
    Prune(Prune),
    Copy(Copy),
    Merge(Merge),
    Erase(Box<Erase>),
    ChangeKey(ChangeKey),
    Serve(Box<Serve>),
}

impl ArchiveCommand {
    pub(super) fn run(self) -> Result<Exit> {
        if let Some(problem) = Zone::of_process().problem() {
            warn(problem);
        }
        match self.what {
            ArchiveAction::Create(create) => create.run(),
            ArchiveAction::List(list) => list.run(),
            ArchiveAction::Check(check) => check.run(),
            ArchiveAction::Restore(restore) => restore.run(),
            ArchiveAction::Cat(cat) => cat.run(),
            ArchiveAction::Remove(remove) => remove.run(),
            ArchiveAction::Prune(prune) => prune.run(),
            ArchiveAction::Copy(copy) => copy.run(),
            ArchiveAction::Merge(merge) => merge.run(),
            ArchiveAction::Erase(erase) => erase.run(),
            ArchiveAction::ChangeKey(change) => change.run(),
            ArchiveAction::Serve(serve) => serve.run(),
        }
    }
}

/// What a selection of tables lacks, in words.
fn selection_line(selection: &TableChoice) -> String {
    format!("a selection of tables ({selection}): others were left out, so no log may be purged for it")
}

/// What is said of an archive whose logs aren't those of their servers.
fn marks_of(manifest: &Manifest) -> Vec<String> {
    let selection = manifest.selection.iter().map(selection_line);
    selection.chain(manifest.exits.as_deref().map(masked_line)).collect()
}

/// What masked logs lack, in words.
fn masked_line(digest: &str) -> String {
    format!("{}: rows and values were left out, so no log may be purged for it", masked_in_words(digest))
}

fn open(archive: &Path) -> Result<(Box<dyn ArchiveStorage>, Manifest)> {
    open_in(archive, &Manner::default())
}

/// Opens an archive whose objects are stored in this manner. Errs if there is none.
fn open_in(archive: &Path, manner: &Manner) -> Result<(Box<dyn ArchiveStorage>, Manifest)> {
    existing::open(archive, manner).map_err(failure(archive))
}

/// The place of an archive, whether or not there is one yet.
fn storage_at(archive: &Path) -> Result<Box<dyn ArchiveStorage>> {
    storage_in(archive, &Manner::default())
}

/// The place of an archive, whether or not there is one yet; objects are stored in this manner.
fn storage_in(archive: &Path, manner: &Manner) -> Result<Box<dyn ArchiveStorage>> {
    existing::storage_at(archive, manner).map_err(failure(archive))
}

fn failure(path: &Path) -> impl FnOnce(Error) -> CommandFailure {
    move |error| CommandFailure::of(&path.display(), error)
}

fn print(out: &mut impl Write, line: &str) -> Result<()> {
    let line = wrapped(&printable(line), "", "  ", terminal::width());
    writeln!(out, "{line}").map_err(|error| CommandFailure::writing(&"standard output", &error))
}
