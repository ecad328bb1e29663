//! The passes over an archive: one that finds what is to be erased, and one that writes what is left.
//!
//! Both go over all logs in their order, since statements tell what columns a table had: of logs without such rows, only the parts that have
//! statements are read.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use binlogz_archive::erase::{self, EraseCandidates, LogRemains, PlainLog, PlainLogs, WrittenRemains};
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::{ArchiveStorage, ObjectName};
use binlogz_archive::{Error as ArchiveError, Result as ArchiveResult, Scratch};
use binlogz_row_changes::{
    Condition, Eraser, ErasureAim, ErasureCounts, LogErasure, RowSelection, StatementFindings,
};
use binlogz_schema::{SchemaFile, TablesOfLogs};

use super::super::failure;
use crate::cmd::dump::tables::read_ahead;
use crate::cmd::row_changes::{RecoverSearch, WHOLE_LOG};
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;
use crate::progress::WorkProgress;

/// The archive, as it was when the run began.
#[derive(Clone, Copy)]
pub(super) struct EraseArchive<'p> {
    pub(super) place: &'p Path,
    pub(super) storage: &'p dyn ArchiveStorage,
    pub(super) manifest: &'p Manifest,
}

impl EraseArchive<'_> {
    fn log(&self, file: &FileEntry) -> LogPath {
        LogPath::File(self.place.join(&file.name))
    }
}

/// The passes over it.
pub(super) struct ErasePasses<'p> {
    archive: EraseArchive<'p>,
    aim: &'p ErasureAim,
    selections: Vec<RowSelection>,
    schema: Option<&'p SchemaFile>,
    workers: usize,
}

/// What the first pass found.
pub(super) struct EraseSurvey {
    /// The logs that have such rows, and what would be erased from each.
    pub(super) held: Vec<(FileEntry, ErasureCounts)>,
    /// Logs with such rows of which only a part is there: the next `create` would bring them back.
    pub(super) in_use: Vec<FileEntry>,
    /// Objects with parts that nobody looks for, and that may have such rows.
    pub(super) strays: BTreeSet<ObjectName>,
    /// How many logs were looked at for such rows; of the others, statements alone were read.
    pub(super) read: usize,
    /// How many there are.
    pub(super) logs: usize,
    pub(super) counts: ErasureCounts,
    pub(super) findings: StatementFindings,
}

impl EraseSurvey {
    /// The tables that lose anything, as `database.table`; if only texts go, those that were named.
    pub(super) fn changed(&self, aim: &ErasureAim) -> String {
        let names = aim.names().into_iter().zip(&self.counts.tables);
        let changed: Vec<String> =
            names.filter(|(_, counts)| counts.erased > 0).map(|(name, _)| name).collect();
        if changed.is_empty() { aim.shown() } else { changed.join(", ") }
    }
}

impl<'p> ErasePasses<'p> {
    pub(super) fn new(
        archive: EraseArchive<'p>,
        aim: &'p ErasureAim,
        schema: Option<&'p SchemaFile>,
        workers: usize,
    ) -> Self {
        ErasePasses { archive, aim, selections: selections(aim), schema, workers }
    }

    /// The tables of the logs, by the schema and by their statements.
    fn tables(&self) -> Result<TablesOfLogs> {
        let Some(schema) = self.schema else { return Ok(TablesOfLogs::forward(None).for_masks()) };
        let logs: Vec<_> = self.archive.manifest.files.iter().map(|file| self.archive.log(file)).collect();
        Ok(read_ahead(schema.clone(), &logs, None, self.workers)?.for_masks())
    }

    /// Finds what is to be erased. Logs are gone through again as long as there are more rows that refer to chosen ones. Returns also what
    /// these refer to.
    pub(super) fn survey(&self, every_log: bool) -> Result<(EraseSurvey, Eraser<'p>)> {
        let tables = Arc::new(self.tables()?);
        let candidates = self.candidates(&tables, every_log)?;
        let mut eraser = Eraser::new(self.aim, tables);
        let held = loop {
            let held = self.look(&candidates, &mut eraser)?;
            if !eraser.has_grown() {
                break held;
            }
            eraser = eraser.following(Arc::new(self.tables()?));
        };
        if let [column, ..] = eraser.unmet_columns().as_slice() {
            let line = format!("{}: has no column {column} in these logs", self.aim.shown());
            return Err(CommandFailure::Line(line));
        }
        let (in_use, held) = held.into_iter().partition::<Vec<_>, _>(|(file, _)| file.active_size.is_some());
        let survey = EraseSurvey {
            held,
            in_use: in_use.into_iter().map(|(file, _)| file).collect(),
            strays: candidates.strays,
            read: candidates.logs.len(),
            logs: self.archive.manifest.files.len(),
            counts: eraser.counts().clone(),
            findings: eraser.findings().clone(),
        };
        Ok((survey, eraser))
    }

    /// Goes over all logs; gives those that hold what is to be erased.
    fn look(
        &self,
        candidates: &EraseCandidates,
        eraser: &mut Eraser<'p>,
    ) -> Result<Vec<(FileEntry, ErasureCounts)>> {
        let storage = self.archive.storage;
        candidates
            .read_ahead(storage, self.workers, |plain_logs| self.look_at(candidates, plain_logs, eraser))
    }

    fn look_at(
        &self,
        candidates: &EraseCandidates,
        plain_logs: &mut PlainLogs,
        eraser: &mut Eraser<'p>,
    ) -> Result<Vec<(FileEntry, ErasureCounts)>> {
        let files = &self.archive.manifest.files;
        let mut held = Vec::new();
        let progress = WorkProgress::counting("look for rows", "logs", files.len() as u64);
        for (number, file) in (0..).zip(files) {
            progress.at(number);
            if !candidates.logs.iter().any(|log| log.name == file.name) {
                self.pass(eraser, file)?;
                continue;
            }
            let PlainLog { bytes, gaps } = plain_logs.next_log().map_err(failure(self.archive.place))?;
            let counts = eraser.look(&file.name, bytes, &gaps).map_err(|error| self.failure(file, &error))?;
            if counts.is_any() {
                held.push((file.clone(), counts));
            }
        }
        Ok(held)
    }

    /// The logs and objects that the index doesn't exclude.
    fn candidates(&self, tables: &TablesOfLogs, every_log: bool) -> Result<EraseCandidates> {
        let mut searches: Vec<_> =
            self.selections.iter().map(|selection| self.search(selection, tables)).collect();
        let found = erase::candidates(self.archive.storage, self.archive.manifest, &mut |run| {
            searches.iter_mut().any(|search| search.may_be_in(run))
        });
        let mut candidates = found.map_err(failure(self.archive.place))?;
        if every_log {
            candidates.all_logs(self.archive.manifest);
        }
        Ok(candidates)
    }

    fn search<'s>(&'s self, selection: &'s RowSelection, tables: &TablesOfLogs) -> RecoverSearch<'s> {
        let mut named = selection.tables.iter();
        // The names of now tell nothing of what is in an archive, if they were others.
        let may_change = named.any(|(database, table)| tables.may_change(database, table));
        RecoverSearch::new((selection, None), self.schema.filter(|_| !may_change), WHOLE_LOG, false)
    }

    fn pass(&self, eraser: &mut Eraser<'_>, file: &FileEntry) -> Result<()> {
        let log = self.archive.log(file);
        let input = log.open_part(None, &mut |run| run.may_have_statements())?;
        eraser.pass(&file.name, input).map_err(|error| self.failure(file, &error))
    }

    fn failure(&self, file: &FileEntry, error: &binlogz_row_changes::Error) -> CommandFailure {
        CommandFailure::of(&self.archive.log(file), error)
    }

    /// What is left of the logs, for the last pass; `surveyed` was the one before it.
    pub(super) fn remains(&self, mut surveyed: Eraser<'p>) -> Result<ErasedRemains<'_, 'p>> {
        let eraser = surveyed.following(Arc::new(self.tables()?));
        Ok(ErasedRemains { passes: self, eraser, failed: None })
    }
}

/// The rows to look for in the index: of each table those of each of its conditions, of a child table all.
fn selections(aim: &ErasureAim) -> Vec<RowSelection> {
    let of_table = |(name, conditions): (&(String, String), &[Condition])| -> Vec<RowSelection> {
        let one = |condition: Option<Condition>| RowSelection {
            tables: vec![name.clone()],
            condition,
            ..RowSelection::default()
        };
        match conditions.is_empty() || aim.is_child(name) {
            true => vec![one(None)],
            false => conditions.iter().map(|condition| one(Some(condition.clone()))).collect(),
        }
    };
    aim.tables().flat_map(of_table).collect()
}

/// Writes what is left of the logs.
pub(super) struct ErasedRemains<'s, 'p> {
    passes: &'s ErasePasses<'p>,
    eraser: Eraser<'p>,
    /// Why a log could not be read or written, with its place.
    pub(super) failed: Option<CommandFailure>,
}

impl ErasedRemains<'_, '_> {
    /// Keeps why it can't go on.
    fn kept<T>(&mut self, done: Result<T>) -> ArchiveResult<T> {
        done.map_err(|failure| {
            self.failed = Some(failure);
            ArchiveError::writing(io::Error::other("the run was ended"))
        })
    }
}

impl LogRemains for ErasedRemains<'_, '_> {
    fn pass(&mut self, file: &FileEntry) -> ArchiveResult<()> {
        // One that came meanwhile is the last.
        if !self.passes.archive.manifest.files.contains(file) {
            return Ok(());
        }
        let done = self.passes.pass(&mut self.eraser, file);
        self.kept(done)
    }

    fn write(
        &mut self,
        file: &FileEntry,
        plain: Arc<Scratch>,
        blocks: &[u64],
        out: &mut dyn Write,
    ) -> ArchiveResult<WrittenRemains> {
        let written = self.eraser.write(&file.name, plain, blocks, out);
        let written = written.map_err(|error| self.passes.failure(file, &error));
        let LogErasure { counts, same_until, block_begins, changed_blocks } = self.kept(written)?;
        let same_until = same_until.unwrap_or_default();
        Ok(WrittenRemains { rows: counts.rows, same_until, block_begins, changed_blocks })
    }
}
