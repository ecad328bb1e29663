//! The passes over an archive: one that finds what is to be erased, and one that writes what is left.
//!
//! Both go over all logs in their order, since statements tell what columns a table had: of logs without such rows, only the parts that have
//! statements are read.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use binlogz_archive::erase::{self, EraseCandidates, LogRemains, WrittenRemains};
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::{ArchiveStorage, ObjectName};
use binlogz_archive::{Error as ArchiveError, Result as ArchiveResult, Scratch};
use binlogz_row_changes::{Eraser, ErasureAim, ErasureCounts, LogErasure, RowSelection, StatementFindings};
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
    selection: &'p RowSelection,
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
    /// How many logs were read whole.
    pub(super) read: usize,
    /// How many there are.
    pub(super) logs: usize,
    pub(super) counts: ErasureCounts,
    pub(super) findings: StatementFindings,
}

impl<'p> ErasePasses<'p> {
    pub(super) fn new(
        archive: EraseArchive<'p>,
        aim: &'p ErasureAim,
        (selection, schema): (&'p RowSelection, Option<&'p SchemaFile>),
        workers: usize,
    ) -> Self {
        ErasePasses { archive, aim, selection, schema, workers }
    }

    /// The tables of the logs, by the schema and by their statements.
    fn tables(&self) -> Result<TablesOfLogs> {
        let Some(schema) = self.schema else { return Ok(TablesOfLogs::forward(None).for_masks()) };
        let logs: Vec<_> = self.archive.manifest.files.iter().map(|file| self.archive.log(file)).collect();
        Ok(read_ahead(schema.clone(), &logs, None, self.workers)?.for_masks())
    }

    /// Finds what is to be erased.
    pub(super) fn survey(&self, every_log: bool) -> Result<EraseSurvey> {
        let tables = Arc::new(self.tables()?);
        let candidates = self.candidates(&tables, every_log)?;
        let files = &self.archive.manifest.files;
        let mut eraser = Eraser::new(self.aim, Arc::clone(&tables));
        let mut survey = EraseSurvey {
            held: Vec::new(),
            in_use: Vec::new(),
            strays: candidates.strays,
            read: candidates.logs.len(),
            logs: files.len(),
            counts: ErasureCounts::default(),
            findings: StatementFindings::default(),
        };
        let progress = WorkProgress::counting("look for rows", "logs", files.len() as u64);
        for (number, file) in (0..).zip(files) {
            progress.at(number);
            if !candidates.logs.iter().any(|log| log.name == file.name) {
                self.pass(&mut eraser, file)?;
                continue;
            }
            let plain = erase::plain(self.archive.storage, file, self.workers)
                .map_err(failure(self.archive.place))?;
            let erasure = eraser
                .write(&file.name, plain, &mut io::sink())
                .map_err(|error| self.failure(file, &error))?;
            let counts = erasure.counts;
            match (counts.is_any(), file.active_size) {
                (false, _) => {}
                (true, None) => survey.held.push((file.clone(), counts)),
                (true, Some(_)) => survey.in_use.push(file.clone()),
            }
        }
        drop(progress);
        if let [column, ..] = eraser.unmet_columns().as_slice() {
            let line = format!("{}: has no column {column} in these logs", self.aim.shown());
            return Err(CommandFailure::Line(line));
        }
        survey.counts = eraser.counts().clone();
        survey.findings = eraser.findings().clone();
        Ok(survey)
    }

    /// The logs and objects that the index doesn't exclude.
    fn candidates(&self, tables: &TablesOfLogs, every_log: bool) -> Result<EraseCandidates> {
        let (database, table) = &self.aim.table;
        // The names of now tell nothing of what is in an archive, if they were others.
        let schema = self.schema.filter(|_| !tables.may_change(database, table));
        let mut search = RecoverSearch::new((self.selection, None), schema, WHOLE_LOG, false);
        let found =
            erase::candidates(self.archive.storage, self.archive.manifest, &mut |run| search.may_be_in(run));
        let mut candidates = found.map_err(failure(self.archive.place))?;
        if every_log {
            candidates.logs.clone_from(&self.archive.manifest.files);
        }
        Ok(candidates)
    }

    fn pass(&self, eraser: &mut Eraser<'_>, file: &FileEntry) -> Result<()> {
        let log = self.archive.log(file);
        let input = log.open_part(None, &mut |run| run.may_have_statements())?;
        eraser.pass(&file.name, input).map_err(|error| self.failure(file, &error))
    }

    fn failure(&self, file: &FileEntry, error: &binlogz_row_changes::Error) -> CommandFailure {
        CommandFailure::of(&self.archive.log(file), error)
    }

    /// What is left of the logs, for the second pass.
    pub(super) fn remains(&self) -> Result<ErasedRemains<'_>> {
        let eraser = Eraser::new(self.aim, Arc::new(self.tables()?));
        Ok(ErasedRemains { passes: self, eraser, failed: None })
    }
}

/// Writes what is left of the logs.
pub(super) struct ErasedRemains<'p> {
    passes: &'p ErasePasses<'p>,
    eraser: Eraser<'p>,
    /// Why a log could not be read or written, with its place.
    pub(super) failed: Option<CommandFailure>,
}

impl ErasedRemains<'_> {
    /// Keeps why it can't go on.
    fn kept<T>(&mut self, done: Result<T>) -> ArchiveResult<T> {
        done.map_err(|failure| {
            self.failed = Some(failure);
            ArchiveError::writing(io::Error::other("the run was ended"))
        })
    }
}

impl LogRemains for ErasedRemains<'_> {
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
        out: &mut dyn Write,
    ) -> ArchiveResult<WrittenRemains> {
        let written = self.eraser.write(&file.name, plain, out);
        let written = written.map_err(|error| self.passes.failure(file, &error));
        let LogErasure { counts, same_until } = self.kept(written)?;
        Ok(WrittenRemains { rows: counts.rows, same_until: same_until.unwrap_or_default() })
    }
}
