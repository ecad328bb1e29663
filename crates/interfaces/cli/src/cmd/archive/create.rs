//! `binlogz archive create`: packs logs into an archive. Here are its options; [`additions`] goes through the logs.

mod additions;

use binlogz_cli_common::malloc::keep_small;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use binlogz_archive::Level;
use binlogz_archive::chosen_tables::TableChoice;
use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::presence::{CheckDepth, Inspector};
use binlogz_archive::storage::{ArchiveStorage, KeySource};
use binlogz_flow::Input;
use clap::{Args, ValueEnum};

use super::manner::MannerArgs;
use super::source_logs::{Objects, purge_line};
use super::{failure, open, print, selection_line, storage_in};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain};
use crate::keyring::KeyringArg;
use crate::log_path::LogPath;
use crate::terminal::SizesArg;
use crate::units;
use additions::{AddedLines, Additions, TornLogs};

/// Put logs into an archive
///
/// Each is packed, stored, read back and compared before the archive names it. Of what is in the archive already the objects are
/// asked for; those that are missing or damaged are stored again. Nothing is deleted. Logs that their server encrypted are only put into an encrypted archive, unless
/// --plaintext is given.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Create {
    /// The archive: a folder, which is made where it is not there, or a place in object storage
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX")]
    to: PathBuf,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    /// How small, and how fast
    #[arg(long, value_enum, default_value_t)]
    level: LevelArg,
    /// Expand payloads that no compression level would give back too: they come back with equal meaning, as
    /// `compress` makes them at level 3, not byte for byte
    #[arg(long)]
    canonical_payloads: bool,
    /// Store the transactions of a log in use that are whole. They are replaced once the log is given again, longer or
    /// closed
    #[arg(long)]
    include_active: bool,
    /// Store the whole transactions of a closed log that ends inside an event, or of one with a damaged event those before it;
    /// it counts as a part, and the exit code is 1
    #[arg(long)]
    salvage: bool,
    /// Store these tables only: DATABASE.TABLE with * for any letters; several times for several
    ///
    /// The archive is then a selection: logs are named BASE-selected.NNNNNN, and no log may be purged for it. Statements that can't
    /// be told from those of other tables stay, with exit code 1.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = PARTS)]
    table: Vec<String>,
    /// Store all tables but these, likewise
    #[arg(long, value_name = "PATTERN", conflicts_with_all = PARTS)]
    ignore_table: Vec<String>,
    /// Read all objects of the given logs that are in the archive already, and compare each with its SHA-256: otherwise it is
    /// asked whether they are there as a whole
    #[arg(long)]
    verify: bool,
    /// Put logs that their server encrypted into an archive that is not encrypted
    #[arg(long)]
    plaintext: bool,
    #[command(flatten)]
    sizes: SizesArg,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    manner: MannerArgs,
    /// Binary logs or relay logs that are no longer written
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A selection is of closed logs, and has no payloads.
const PARTS: [&str; 3] = ["include_active", "salvage", "canonical_payloads"];

const EXAMPLES: &str = "Examples:
  binlogz archive create --to /backup/db1 /var/lib/mysql/binlog.[0-9]*
  binlogz archive create --to s3://bucket/db1 --include-active /var/lib/mysql/binlog.[0-9]*
  binlogz archive create --to /backup/shop --table 'shop.*' --ignore-table 'shop.log_*' binlog.000042

Exit codes: 0 all logs are in the archive, 1 of a torn or damaged one only a part, or of a selection
not all is certain, 2 bad usage, bad input or I/O trouble.";

/// How small and how fast an archive is packed; all are read alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LevelArg {
    /// Texts by zstd: several times as fast on logs of long texts, and a third to a half larger there
    Fast,
    /// Texts by PPMd where it pays
    #[default]
    Default,
    /// Everything is tried on everything: a megabyte a second
    Max,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Level {
        match level {
            LevelArg::Fast => Level::Fast,
            LevelArg::Default => Level::Default,
            LevelArg::Max => Level::Max,
        }
    }
}

impl Create {
    pub(super) fn run(self) -> Result<Exit> {
        keep_small();
        let keyring = self.keyring.open()?;
        let storage = storage_in(&self.to, &self.manner.manner())?;
        let choice = self.choice()?;
        let is_encrypted = storage.is_encrypted().map_err(failure(&self.to))?;
        if !is_encrypted && KeySource::from_environment().is_some() {
            let found = "is not encrypted, though the environment names a key: `archive copy` makes an encrypted copy";
            return Err(CommandFailure::of(&self.to.display(), found));
        }
        let torn = TornLogs::default();
        let mut lines = AddedLines::new(&torn, self.sizes);
        let mut told = |created: &CreateOutcome| lines.print(created);
        let mut creator = self.creator(storage.as_ref(), &mut told)?;
        if let Some(choice) = &choice {
            creator.selection(choice.clone()).map_err(failure(&self.to))?;
        }
        let mut additions = Additions::new(&self, keyring.as_ref(), is_encrypted, &torn, choice.as_ref());
        additions.add_all(&mut creator)?;
        let manifest = creator.finish();
        if let Err(error) = &manifest {
            complain(&format!("{}: {error}", self.to.display()));
            additions.exit = Exit::Trouble;
        }
        lines.printed?;
        let out = &mut io::stdout().lock();
        for name in additions.in_use {
            let or = if choice.is_none() { ", or use --include-active" } else { "" };
            let line = format!("{name}: is in use and was left out: give it again once it is closed{or}");
            print(out, &line)?;
        }
        if let Some(choice) = &choice {
            for table in choice.named().filter(|table| !additions.met.contains(table)) {
                print(out, &format!("{table}: has no rows in these logs"))?;
            }
            print(out, &format!("{}: {}", self.to.display(), selection_line(choice)))?;
            return Ok(additions.exit);
        }
        if let Some((name, path)) =
            additions.given.into_iter().rfind(|(name, _)| lines.archived.contains(name))
            && let Input::Places(log) = LogPath::File(path.clone()).open(keyring.as_ref())?
        {
            let manifest = manifest.or_else(|_| open(&self.to).map(|(_, manifest)| manifest))?;
            let inspector = Inspector::new(storage.as_ref(), self.depth());
            let objects = &mut Objects { storage: storage.as_ref(), inspector };
            let line =
                purge_line(&manifest, &name, path, log.as_ref(), objects).map_err(failure(&self.to))?;
            line.map_or(Ok(()), |line| print(out, &line))?;
        }
        Ok(additions.exit)
    }

    /// The tables whose rows are stored; `None`: all logs are stored as they are.
    fn choice(&self) -> Result<Option<TableChoice>> {
        let choice = TableChoice::new(&self.table, &self.ignore_table)
            .map_err(|error| CommandFailure::Line(format!("--table and --ignore-table: {error}")))?;
        Ok((!choice.is_all()).then_some(choice))
    }

    fn creator<'a>(
        &self,
        storage: &'a dyn ArchiveStorage,
        told: &'a mut dyn FnMut(&CreateOutcome),
    ) -> Result<Creator<'a>> {
        let mut creator = Creator::new(storage, workers(self.jobs), told).map_err(failure(&self.to))?;
        creator.canonical_payloads(self.canonical_payloads);
        creator.level(self.level.into());
        creator.depth(self.depth());
        Ok(creator)
    }

    /// How closely objects are looked at that the archive has already.
    fn depth(&self) -> CheckDepth {
        if self.verify { CheckDepth::Hash } else { CheckDepth::Presence }
    }
}
