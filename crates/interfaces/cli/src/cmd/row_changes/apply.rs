//! `undo --apply SERVER`: the changes go to a server, compared first; a dry run unless it is to execute.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use binlogz_binlog::gtid::GtidSet;
use binlogz_figures::counted;
use binlogz_row_changes::{
    AppliedChanges, ApplyOptions, Direction, RowSelection, Script, SplitTables, TableSummary,
};
use binlogz_source::ConnectOptions;
use clap::{Args, ValueEnum};

use super::rewind::ChangesSince;
use super::verb;
use crate::Exit;
use crate::failure::{CommandFailure, Result, warn};

/// The options of applying changes to a server. Each row is compared first; nothing is changed without `--execute`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Applying to a server")]
pub(super) struct ApplyArgs {
    /// Apply the changes to this server, each row compared first; a dry run unless --execute
    ///
    /// A row that isn't as the log left it is a conflict: it is reported, with what the log left and what is there.
    /// Columns and keys are those of the server, unless --schema is given.
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["format", "output", "compress"])]
    pub(super) apply: Option<String>,
    /// Change rows; without it everything is done in one transaction and rolled back
    #[arg(long, requires = "apply")]
    execute: bool,
    /// Apply the changes also to a server that replicates from another, which would lack them
    #[arg(long, requires = "execute", hide_short_help = true)]
    on_replica: bool,
    /// Rows in a transaction
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "apply", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    batch: u64,
    /// What to do with a row that somebody changed since
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnConflict::Leave, requires = "apply", hide_short_help = true)]
    on_conflict: OnConflict,
    /// Note in this file how far it came; the same command with the same file goes on where a run was killed
    #[arg(long, value_name = "FILE", requires = "execute", hide_short_help = true)]
    journal: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnConflict {
    /// Leave it as it is
    Leave,
    /// Overwrite it, found by its key
    Overwrite,
}

impl ApplyArgs {
    /// Applies the chosen changes, and reports the result.
    pub(super) fn run(
        &self,
        script: Script<'_>,
        connect: &ConnectOptions,
        (selection, since): (&RowSelection, Option<&ChangesSince>),
        direction: Direction,
    ) -> Result<Exit> {
        let unsplit = SplitTables::new();
        let options = ApplyOptions {
            connect,
            batch: self.batch,
            overwrite: self.on_conflict == OnConflict::Overwrite,
            execute: self.execute,
            on_replica: self.on_replica,
            journal: self.journal.as_deref().map(open_journal).transpose()?,
            tells_earlier: since.is_some(),
            split: since.map_or(&unsplit, |since| &since.summary.split),
        };
        let mut out = BufWriter::new(io::stdout().lock());
        if let Some(since) = since {
            let written = writeln!(out, "{}", since.shown());
            written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        }
        let applied = script.apply(options, &mut out);
        // Lines that were reported before an error count as well.
        let flushed = out.flush();
        let applied = applied.map_err(|error| CommandFailure::of_server(&connect.server(), error))?;
        flushed
            .and_then(|()| self.tell(&mut out, &applied, direction))
            .map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        let others = since.map(|since| since.name_others(connect, &applied)).transpose()?;
        Ok(self.exit(&applied, (selection, since), direction).max(others.unwrap_or(Exit::Done)))
    }

    fn tell(&self, out: &mut dyn Write, applied: &AppliedChanges, direction: Direction) -> io::Result<()> {
        let would = if self.execute { "" } else { "would be " };
        for (table, summary) in &applied.tables {
            let TableSummary { inserted, updated, deleted, overwritten, conflicts } = *summary;
            writeln!(
                out,
                "{table}: rows that {}{inserted} inserted, {updated} updated, {deleted} deleted; {overwritten} of them \
                 overwritten; {conflicts} conflicts",
                if self.execute { "were " } else { would }
            )?;
        }
        if applied.done_before > 0 {
            writeln!(out, "{} rows were done by earlier runs with this journal", applied.done_before)?;
        }
        let verb = verb(direction);
        match self.execute {
            false => writeln!(out, "dry run: nothing is {verb}; --execute does it")?,
            true if applied.batches == 0 && conflicts(applied) > 0 => {
                writeln!(out, "nothing is {verb} by this run: each row is in conflict")?;
            }
            true => writeln!(out, "{verb} in {}", counted(applied.batches, "transactions"))?,
        }
        if !applied.gtids.is_empty() {
            writeln!(out, "GTIDs: {}; binlogz undo --gtids takes them back", as_set(&applied.gtids))?;
        } else if let Some((log, position, thread)) = &applied.place {
            writeln!(
                out,
                "binlogz undo --thread-id {thread} --start-position {position} takes them back, from {log} on"
            )?;
        }
        out.flush()
    }

    fn exit(
        &self,
        applied: &AppliedChanges,
        asked: (&RowSelection, Option<&ChangesSince>),
        direction: Direction,
    ) -> Exit {
        let conflicts = conflicts(applied);
        if conflicts > 0 {
            warn(&format!("{} in conflict; the output names each", counted(conflicts, "rows")));
        }
        super::tell(&applied.summary, asked, direction).max(if conflicts > 0 {
            Exit::Negative
        } else {
            Exit::Done
        })
    }
}

/// The rows that were left, since somebody had changed them.
fn conflicts(applied: &AppliedChanges) -> u64 {
    applied.tables.values().map(|table| table.conflicts).sum()
}

/// Transactions as a set, in which those that follow one another are a range; one by one where it is none of MySQL's.
fn as_set(gtids: &[String]) -> String {
    let all = gtids.join(",");
    all.parse::<GtidSet>().map_or(all, |set| set.to_string())
}

/// It tells of rows: only the user who applies them may read it.
fn open_journal(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(|error| CommandFailure::of(&path.display(), error))
}
