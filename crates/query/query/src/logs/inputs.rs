//! The inputs of a query: logs that can be read as often as it needs them.
//!
//! A query may read a table twice, and a user table's columns are found before its rows are read. So input from a pipe is
//! kept in a temporary file without a name. So are logs that leave by a policy, once they are masked: see [`masked`].

mod masked;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::{panic, thread};

use binlogz_archive::directory::{LogDirectory, NeededDirectory};
use binlogz_archive::format::ErasedLogs;
use binlogz_archive::format::contents::ListedTable;
use binlogz_archive::part::{BlockRun, PickedLog};
use binlogz_archive::{Scratch, input};
use binlogz_arrow::is_same_column;
use binlogz_binlog::reader::not_a_log;
use binlogz_binlog::{MAGIC, MAGIC_ENCRYPTED};
use binlogz_encryption::{Error as EncryptionError, HEADER_SIZE, Keyring};
use binlogz_flow::error::in_log;
use binlogz_flow::events::{ReadSummary, RunSummary};
use binlogz_flow::read::meter::{MeteredLog, MeteredPass, ReadMeter};
use binlogz_flow::{CutEvent, Input, ReadAt};
use binlogz_schema::{HistoryPlace, SchemaFile, SchemaFileError, TablesOfLogs};
use parking_lot::Mutex;

use super::base::TableBase;
use super::known_keys::KnownKeys;
use super::readings::{LogReading, LogReadings};
use super::unwanted::{ReadingEnd, wanted_input};
use crate::error::{Error, LogError, Result};
use masked::LogExits;

/// The most lines about changes that could not be read.
const TOLD_MAX: usize = 1000;

/// The decisions over prepared transactions, by XA identifier: each one's place, and whether it is a commit.
pub(super) type XaDecisions = HashMap<String, Vec<(HistoryPlace, bool)>>;

/// Takes lines.
type TellLines = Box<dyn Fn(&str) + Send + Sync>;

/// Logs, in order.
pub struct Logs {
    logs: Vec<Log>,
    keyring: Option<Arc<Keyring>>,
    schema: Option<Arc<SchemaStatements>>,
    /// When the tables were as the schema has them.
    schema_time: SchemaTime,
    /// The tables by the schema and the statements of the logs, once somebody asked.
    tables: OnceLock<Result<TablesOfLogs, String>>,
    /// The decisions over prepared transactions, once somebody asked.
    decisions: OnceLock<Result<XaDecisions, String>>,
    warn: TellLines,
    /// The logs whose end was reported.
    warned: Mutex<HashSet<usize>>,
    /// Lines about changes that could not be read, and whether there were any.
    told: Mutex<BTreeSet<String>>,
    unread: Arc<AtomicBool>,
    /// Whether they end the query.
    unread_is_error: bool,
    meter: Option<Arc<ReadMeter>>,
    /// Where tables are known as they were.
    base: Option<Arc<dyn TableBase>>,
    /// Bytes of all of them, once they were counted.
    size: OnceLock<Option<u64>>,
    readings: LogReadings,
    /// One reads all logs for `tables`, or for `decisions`.
    reading_all: Mutex<()>,
    /// The keys that parts of archived logs were found to have.
    pub(super) known_keys: KnownKeys,
    /// How they were masked, if they leave by a policy.
    exits: Option<LogExits>,
}

/// CREATE TABLE statements, which name columns.
#[derive(Debug)]
pub(crate) struct SchemaStatements {
    file: SchemaFile,
    text: String,
}

/// When the tables of a schema were what it says: after these many bytes of the last log, and before those. It may be in use meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaTime {
    /// Bytes of the last log before the schema was read.
    pub begin: u64,
    /// Bytes of it after that.
    pub end: u64,
}

impl SchemaTime {
    /// After all logs.
    pub(super) const END: SchemaTime = SchemaTime { begin: u64::MAX, end: u64::MAX };
}

/// A log.
#[derive(Debug)]
struct Log {
    /// The log's name as the user gave it, for errors.
    path: String,
    /// The name of its file: the column `log`.
    name: String,
    source: Source,
    /// Bytes of a file when it was named.
    size_then: Option<u64>,
    /// Bytes of the file when it was first read: with a schema each pass reads these, whatever others write.
    size_read: OnceLock<u64>,
}

/// A part of a temporary file.
struct ScratchPart {
    file: Arc<Scratch>,
    part: Range<u64>,
}

impl ReadAt for ScratchPart {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let begin = self.part.start.saturating_add(offset);
        let left = usize::try_from(self.part.end.saturating_sub(begin)).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        self.file.read_at(buffer.get_mut(..size).unwrap_or_default(), begin)
    }
}

/// The beginning of a file.
struct FileFront {
    file: File,
    size: u64,
}

impl ReadAt for FileFront {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        ReadAt::read_at(&self.file, buffer.get_mut(..size).unwrap_or_default(), offset)
    }
}

#[derive(Debug)]
enum Source {
    /// A file, or a log in an archive.
    Path(PathBuf),
    /// The contents of a pipe, and how many bytes they are.
    Spooled(Arc<Scratch>, u64),
    /// A log that was masked, in the file of all.
    Masked(Arc<Scratch>, Range<u64>),
    /// Parts of a log that a server sent.
    Received(Arc<Scratch>, Vec<Range<u64>>),
}

/// Parts of a server's log, with its name there.
#[derive(Debug)]
pub(crate) struct ReceivedParts {
    pub(crate) name: String,
    pub(crate) file: Arc<Scratch>,
    /// The parts of the log that are not in the file.
    pub(crate) gaps: Vec<Range<u64>>,
}

/// A file from its beginning on, with an offset of its own.
struct FileFromStart {
    file: Arc<Scratch>,
    offset: u64,
}

impl Read for FileFromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl std::fmt::Debug for Logs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.logs.iter().map(|log| &log.path)).finish()
    }
}

impl Default for Logs {
    /// No logs.
    fn default() -> Self {
        Logs {
            logs: Vec::new(),
            keyring: None,
            schema: None,
            schema_time: SchemaTime::END,
            tables: OnceLock::new(),
            decisions: OnceLock::new(),
            warn: Box::new(|_| {}),
            warned: Mutex::default(),
            told: Mutex::default(),
            unread: Arc::default(),
            unread_is_error: false,
            meter: None,
            base: None,
            size: OnceLock::new(),
            readings: LogReadings::default(),
            reading_all: Mutex::default(),
            known_keys: KnownKeys::default(),
            exits: None,
        }
    }
}

impl Logs {
    /// The logs that these paths name: files, pipes, archives, logs in archives, `-` for standard input. `warn` gets a
    /// line for each log that is still being written.
    ///
    /// # Errors
    ///
    /// A path that names nothing that can be read.
    pub fn new(
        paths: Vec<PathBuf>,
        keyring: Option<Keyring>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self> {
        if paths.iter().filter(|path| *path == "-").count() > 1 {
            return Err(Error::Log("standard input: named more than once".to_owned()));
        }
        let masked = input::masked(&paths).map_err(|error| Error::Log(error.to_string()))?;
        masked.iter().for_each(|line| warn(line));
        let paths = input::expand(paths).map_err(|error| Error::Log(error.to_string()))?;
        let logs = paths
            .into_iter()
            .map(|path| {
                let shown = path.display().to_string();
                Log::new(path).map_err(|error| Error::Log(format!("{shown}: {error}")))
            })
            .collect::<Result<_>>()?;
        let keyring = keyring.map(Arc::new);
        Ok(Logs { logs, keyring, warn: Box::new(warn), ..Logs::default() })
    }

    /// Logs that a server sent; `warn` gets lines about what could not be read.
    pub(crate) fn of_received(
        received: Vec<ReceivedParts>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let logs = received.into_iter().map(|ReceivedParts { name, file, gaps }| Log {
            path: name.clone(),
            name,
            source: Source::Received(file, gaps),
            size_then: None,
            size_read: OnceLock::new(),
        });
        Logs { logs: logs.collect(), warn: Box::new(warn), ..Logs::default() }
    }

    /// A log in a temporary file, of this many bytes.
    pub(crate) fn of_scratch(name: &str, file: Scratch, size: u64) -> Self {
        let log = Log {
            path: name.to_owned(),
            name: name.to_owned(),
            source: Source::Spooled(Arc::new(file), size),
            size_then: None,
            size_read: OnceLock::new(),
        };
        Logs { logs: vec![log], unread_is_error: true, ..Logs::default() }
    }

    /// Takes the rows of tables from a base: a table has the rows that it had at the end of the logs, or those of another moment.
    #[must_use]
    pub fn with_base(self, base: Arc<dyn TableBase>) -> Self {
        Logs { base: Some(base), ..self }
    }

    /// The base, if there is one.
    pub(crate) fn base(&self) -> Option<&Arc<dyn TableBase>> {
        // Its rows aren't masked.
        self.base.as_ref().filter(|_| !self.are_masked())
    }

    /// Bytes of all logs, those in archives unpacked; `None`: the size of one is unknown.
    pub(crate) fn size(&self) -> Option<u64> {
        let sizes = || self.logs.iter().map(|log| Some(log.size()).filter(|size| *size > 0)).sum();
        *self.size.get_or_init(|| apart(sizes))
    }

    /// The logs in archives from which values were erased.
    pub fn erased(&self) -> Option<ErasedLogs> {
        let path = |log: &Log| match &log.source {
            Source::Path(path) => Some(path.clone()),
            Source::Spooled(..) | Source::Masked(..) | Source::Received(..) => None,
        };
        let paths: Vec<PathBuf> = self.logs.iter().filter_map(path).collect();
        input::erased(paths.iter().map(PathBuf::as_path))
    }

    /// Looks whether each begins as a log, encrypted or not.
    ///
    /// # Errors
    ///
    /// The first that doesn't, or can't be read.
    pub fn check(&self) -> Result<()> {
        for log in &self.logs {
            let front = log.front().map_err(|error| Error::Log(format!("{}: {error}", log.path)))?;
            if let Some(front) = front.filter(|front| *front != MAGIC && *front != MAGIC_ENCRYPTED) {
                return Err(Error::Log(in_log(&log.path, &not_a_log(&front).into())));
            }
        }
        Ok(())
    }

    /// A log that stands encrypted where it is read: by its server, or in an encrypted archive; its path.
    pub(crate) fn encrypted(&self) -> Result<Option<&str>> {
        if let Some(exits) = &self.exits {
            return Ok(exits.encrypted());
        }
        for log in &self.logs {
            let is_secret =
                log.is_encrypted().map_err(|error| Error::Log(format!("{}: {error}", log.path)))?;
            if is_secret {
                return Ok(Some(&log.path));
            }
        }
        Ok(None)
    }

    /// Takes names and keys of columns from this text of CREATE TABLE statements, where the logs lack them. Logs that grow stay what they
    /// are when they are read first.
    ///
    /// # Errors
    ///
    /// A text that is no schema.
    pub fn with_schema(self, text: String) -> Result<Self, SchemaFileError> {
        let file = SchemaFile::parse(&text)?;
        let schema_time = self.logs.last().and_then(Log::schema_time).unwrap_or(SchemaTime::END);
        Ok(Logs { schema: Some(Arc::new(SchemaStatements { file, text })), schema_time, ..self })
    }

    /// Takes a schema that another process read, at a time that it tells.
    ///
    /// # Errors
    ///
    /// A text that is no schema.
    pub fn with_schema_of(self, text: String, schema_time: SchemaTime) -> Result<Self, SchemaFileError> {
        Ok(Logs { schema_time, ..self.with_schema(text)? })
    }

    /// Whether the last log may grow without being read further.
    pub fn stay_as_they_are(&self) -> bool {
        self.schema.is_some() && self.logs.last().is_some_and(|log| log.size_then.is_some())
    }

    /// When the schema was read.
    pub fn schema_time(&self) -> SchemaTime {
        self.schema_time
    }

    /// Counts the bytes that are read on this meter.
    pub fn metered(self, meter: Arc<ReadMeter>) -> Self {
        Logs { meter: Some(meter), ..self }
    }

    /// Bytes of a log, unpacked; 0: unknown.
    pub(super) fn size_of(&self, index: usize) -> u64 {
        self.logs.get(index).map_or(0, Log::size)
    }

    /// Begins a pass through the logs that are wanted, for the meter if there is one.
    pub(crate) fn pass(&self, is_wanted: impl Fn(usize) -> bool) -> Option<MeteredPass> {
        let meter = self.meter.as_ref()?;
        let wanted = self.logs.iter().enumerate().filter(|(index, _)| is_wanted(*index));
        Some(meter.pass(wanted.map(|(_, log)| log.size()).sum()))
    }

    /// A log that is read in parts, or by other means than [`Logs::open`], for the meter if there is one.
    pub(crate) fn reading(&self, index: usize) -> Option<Arc<MeteredLog>> {
        let meter = self.meter.as_ref()?;
        self.logs.get(index).map(|log| Arc::new(MeteredLog::new(Arc::clone(meter), log.size())))
    }

    pub(super) fn schema_file(&self) -> Option<&SchemaFile> {
        self.schema.as_ref().map(|schema| &schema.file)
    }

    pub(super) fn read_once(
        &self,
        read: impl FnOnce() -> Result<TablesOfLogs, String>,
    ) -> Result<&TablesOfLogs, LogError> {
        self.known_or_read(&self.tables, read)
    }

    pub(super) fn decided_once(
        &self,
        read: impl FnOnce() -> Result<XaDecisions, String>,
    ) -> Result<&XaDecisions, LogError> {
        self.known_or_read(&self.decisions, read)
    }

    /// What was read of all logs, also if that failed, but not if the reading was ended.
    fn known_or_read<'k, T>(
        &self,
        known: &'k OnceLock<Result<T, String>>,
        read: impl FnOnce() -> Result<T, String>,
    ) -> Result<&'k T, LogError> {
        if known.get().is_none() {
            let _one = self.reading_all.lock();
            if known.get().is_none() {
                let reading = self.reading_now();
                let read = read();
                if let (Err(line), true) = (&read, reading.is_over()) {
                    return Err(LogError(line.clone()));
                }
                let _first = known.set(read);
            }
        }
        let known = known.get().ok_or_else(|| LogError("what was read is lost".to_owned()))?;
        known.as_ref().map_err(|line| LogError(line.clone()))
    }

    /// The readings that begin now.
    pub(crate) fn reading_now(&self) -> LogReading {
        self.readings.begin()
    }

    /// Ends the readings that were begun.
    pub(crate) fn stop_readings(&self) {
        self.readings.end_all();
    }

    /// About how many transactions there are: those that archives tell, and of other logs one for so many bytes.
    pub(crate) fn transaction_count(&self, size: u64) -> u64 {
        let of_log = |index: usize| {
            let (mut count, mut is_told) = (0u64, true);
            let is_divided = self.each_run(index, &mut |run| {
                is_told &= !run.may_lack_gtids();
                count = count.saturating_add(u64::try_from(run.gtids.count()).unwrap_or(u64::MAX));
            });
            match is_divided {
                Ok(true) if is_told => count,
                // Whoever reads the log says that it can't be read.
                Ok(_) | Err(_) => self.size_of(index) / size.max(1),
            }
        };
        (0..self.len()).map(of_log).fold(0, u64::saturating_add)
    }

    /// The log as the user gave it.
    pub(super) fn path(&self, index: usize) -> &str {
        self.logs.get(index).map_or("", |log| &log.path)
    }

    /// Where a log is that isn't the contents of a pipe or of a connection.
    pub(super) fn path_of(&self, index: usize) -> Option<&Path> {
        match &self.logs.get(index)?.source {
            Source::Path(path) => Some(path),
            Source::Spooled(..) | Source::Masked(..) | Source::Received(..) => None,
        }
    }

    /// Whether one of them is in an archive.
    pub(crate) fn are_archived(&self) -> bool {
        self.logs.iter().any(|log| matches!(log.source, Source::Path(_)) && log.size_then.is_none())
    }

    /// Whether a server sent them.
    pub(super) fn are_received(&self) -> bool {
        self.logs.iter().any(|log| matches!(log.source, Source::Received(..)))
    }

    /// Looks whether each is a file or in an archive, which another process can read too.
    ///
    /// # Errors
    ///
    /// The first that came through a pipe.
    pub fn can_be_read_again(&self) -> Result<()> {
        let piped = self.logs.iter().find(|log| !matches!(log.source, Source::Path(_)));
        match piped {
            Some(log) => {
                let path = &log.path;
                Err(Error::Log(format!("{path}: a pipe, expected a file, an archive, or a log in one")))
            }
            None => Ok(()),
        }
    }

    /// The text of its CREATE TABLE statements.
    pub fn schema_text(&self) -> Option<&str> {
        self.schema.as_ref().map(|schema| schema.text.as_str())
    }

    /// Whether a column of this name is the one of a table whose keys an archive knows.
    pub(crate) fn is_key(&self, table: &ListedTable, column: &str) -> bool {
        let Some(key) = &table.key else { return false };
        match (&key.name, &self.schema) {
            (Some(name), _) => is_same_column(&String::from_utf8_lossy(name), column),
            // A table has either name, and nothing under the other.
            (None, _) if column == format!("@{}", key.index + 1) => true,
            // Elsewhere in the logs another column may have the name.
            (None, Some(_)) if self.may_change(&table.database, &table.table) => false,
            (None, Some(schema)) => schema
                .file
                .column(&table.database, &table.table, key.index)
                .is_some_and(|name| name == column.as_bytes()),
            (None, None) => false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.logs.len()
    }

    /// The name of a log's file.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.logs.get(index).map_or("", |log| &log.name)
    }

    /// Opens a log without the parts that the query doesn't need; an encrypted one with a key of the keyring.
    pub(crate) fn open(
        &self,
        index: usize,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<Input, LogError> {
        self.open_parts(index, is_wanted).map(|(input, _)| input)
    }

    /// Opens a log as [`Self::open`] does, and says whether everything is there: also the parts that the query doesn't
    /// need, if the log can't be given without them.
    pub(crate) fn open_parts(
        &self,
        index: usize,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<(Input, bool), LogError> {
        self.open_within(index, self.reading(index).as_ref(), is_wanted)
    }

    /// Opens a log as [`Self::open_parts`] does, for a reading of which it is a part.
    pub(crate) fn open_within(
        &self,
        index: usize,
        reading: Option<&Arc<MeteredLog>>,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<(Input, bool), LogError> {
        let Some(log) = self.logs.get(index) else { return Err(LogError("no such log".to_owned())) };
        let mut open = || -> Result<(Input, bool), EncryptionError> {
            let input = match &log.source {
                Source::Spooled(file, _) => Input::Places(Arc::clone(file) as _),
                Source::Masked(file, part) => {
                    Input::Places(Arc::new(ScratchPart { file: Arc::clone(file), part: part.clone() }))
                }
                Source::Received(file, gaps) => Input::Sparse {
                    stream: Box::new(FileFromStart { file: Arc::clone(file), offset: 0 }),
                    gaps: gaps.clone(),
                },
                Source::Path(path) => match input::find(path)? {
                    Some(archived) => archived.input_of(is_wanted)?,
                    None => match self.schema.as_ref().and(log.size_then) {
                        Some(_) => log.front_of_file(path)?,
                        None => Input::open(path)?,
                    },
                },
            };
            let is_whole = !matches!(input, Input::Sparse { .. });
            let input = wanted_input(input, Arc::new(self.reading_now()));
            let input = match reading {
                Some(reading) => reading.watch(input),
                None => input,
            };
            match &self.keyring {
                Some(keyring) => input.decrypted(keyring).map(|input| (input, is_whole)),
                None => Ok((input, is_whole)),
            }
        };
        open().map_err(|error: EncryptionError| LogError(error.in_file(&log.path)))
    }

    /// Opens an archived log for columns of one table; `None`: it has to be read as a log.
    pub(crate) fn picked(
        &self,
        index: usize,
        with_positions: bool,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> Option<bool>,
    ) -> Result<Option<PickedLog>, LogError> {
        let Some(Log { path: shown, source: Source::Path(path), .. }) = self.logs.get(index) else {
            return Ok(None);
        };
        let archived = input::find(path).and_then(|archived| match archived {
            Some(archived) => archived.picked(with_positions, is_wanted),
            None => Ok(None),
        });
        archived.map_err(|error| LogError(format!("{shown}: {error}")))
    }

    /// Goes through the parts of an archived log, in its order; `false`: it has to be read as a whole.
    pub(crate) fn each_run(
        &self,
        index: usize,
        take: &mut dyn FnMut(&BlockRun<'_>),
    ) -> Result<bool, LogError> {
        let log = self.picked(index, false, &mut |run| {
            take(run);
            Some(false)
        })?;
        Ok(log.is_some())
    }

    /// Whether any of the parts of a log can be read without the others.
    pub(crate) fn divides(&self, index: usize) -> Result<bool, LogError> {
        let Some(Log { path: shown, source: Source::Path(path), .. }) = self.logs.get(index) else {
            return Ok(false);
        };
        let divides = input::find(path).and_then(|archived| match archived {
            Some(archived) => archived.divides(),
            None => Ok(false),
        });
        divides.map_err(|error| LogError(format!("{shown}: {error}")))
    }

    /// The transactions of an archived log, as far as its archive tells them; `None`: it has to be read as a log.
    pub(crate) fn directory(
        &self,
        index: usize,
        needed: NeededDirectory,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> Result<Option<LogDirectory>, LogError> {
        let Some(Log { path: shown, source: Source::Path(path), .. }) = self.logs.get(index) else {
            return Ok(None);
        };
        let archived = input::find(path).and_then(|archived| match archived {
            Some(archived) => archived.directory(needed, is_wanted),
            None => Ok(None),
        });
        archived.map_err(|error| LogError(format!("{shown}: {error}")))
    }

    /// Tells apart how an archived log was packed; `None`: it isn't archived.
    pub(super) fn packing(&self, index: usize) -> Option<u32> {
        let Some(Log { source: Source::Path(path), .. }) = self.logs.get(index) else { return None };
        input::find(path).ok().flatten().map(|archived| archived.packing())
    }

    /// The error of an archived log.
    pub(crate) fn archive_error(&self, index: usize, error: &binlogz_archive::Error) -> LogError {
        let path = self.logs.get(index).map_or("", |log| &log.path);
        LogError(format!("{path}: {error}"))
    }

    /// The error of a log.
    pub(crate) fn error(&self, index: usize, error: &binlogz_flow::Error) -> LogError {
        let path = self.logs.get(index).map_or("", |log| &log.path);
        let (binlogz_flow::Error::Input(error) | binlogz_flow::Error::Output(error)) = error else {
            return LogError(format!("{path}: {error}"));
        };
        LogError(in_log(&path, error))
    }

    /// Notes how a log ended, and the changes in it that could not be read: they are reported once, and [`Logs::unread`]
    /// says so.
    ///
    /// # Errors
    ///
    /// Changes that could not be read in a query whose client sees no lines: it is another machine, or that of a server.
    pub(crate) fn ended(&self, index: usize, ran: &RunSummary) -> Result<(), LogError> {
        let RunSummary { read: ReadSummary { bytes_read: _, cut }, unread } = ran;
        let path = self.logs.get(index).map_or("", |log| &log.path);
        for unread in unread.iter() {
            let line = format!("{path} {unread}; the answer lacks its changes");
            self.tell_once(line)?;
        }
        if let Some(cut) = *cut {
            self.ended_cut(index, cut);
        }
        Ok(())
    }

    /// Tells once what could not be read or isn't known; [`Logs::unread`] says so.
    ///
    /// # Errors
    ///
    /// The line itself, where nobody sees lines.
    pub(super) fn tell_once(&self, line: String) -> Result<(), LogError> {
        if self.unread_is_error {
            return Err(LogError(line));
        }
        self.unread.store(true, Ordering::Relaxed);
        self.say_once(line);
        Ok(())
    }

    /// Says something once that changes no answer.
    pub(super) fn say_once(&self, line: String) {
        let mut told = self.told.lock();
        if told.len() < TOLD_MAX && told.insert(line.clone()) {
            (self.warn)(&line);
        }
    }

    /// Makes what could not be read or isn't known an error of the query that meets it, for clients that see no lines.
    #[must_use]
    pub fn with_unread_as_error(mut self) -> Self {
        self.unread_is_error = true;
        self
    }

    /// Whether changes were met that could not be read, or rows whose columns aren't known; it is set while queries run.
    pub fn unread(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unread)
    }

    fn ended_cut(&self, index: usize, cut: CutEvent) {
        if self.warned.lock().insert(index) {
            let path = self.logs.get(index).map_or("", |log| &log.path);
            let offset = cut.offset;
            let size = cut.size;
            (self.warn)(&format!(
                "{path} at {offset}: the log is in use and ends inside an event, of which {size} bytes are there; they \
                 are left out"
            ));
        }
    }
}

impl Log {
    fn new(path: PathBuf) -> io::Result<Self> {
        if path == Path::new("-") {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                return Err(io::Error::other("is a terminal, expected a binary log"));
            }
            let source = spooled(&mut stdin.lock())?;
            return Ok(Log {
                path: "standard input".to_owned(),
                name: "-".to_owned(),
                source,
                size_then: None,
                size_read: OnceLock::new(),
            });
        }
        let shown = path.display().to_string();
        let name = path.file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into_owned());
        let source = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                let what = format!(
                    "is a directory, expected a binary log; name the logs in it: {}/binlog.0*",
                    shown.trim_end_matches('/')
                );
                return Err(io::Error::new(io::ErrorKind::IsADirectory, what));
            }
            // Opening it would wait for somebody who writes, for ever if nobody does. The shell's own pipes are open already.
            Ok(metadata) if metadata.file_type().is_fifo() && !is_open(&path) => {
                let what = "is a named pipe, expected a binary log; cat gives its bytes to standard input: -";
                return Err(io::Error::other(what));
            }
            Ok(metadata) if !metadata.is_file() => spooled(&mut File::open(&path)?)?,
            Ok(_) => Source::Path(path),
            Err(error) => match input::find(&path)? {
                Some(_) => Source::Path(path),
                None => return Err(error),
            },
        };
        let log = Log { path: shown, name, source, size_then: None, size_read: OnceLock::new() };
        Ok(Log { size_then: log.file_size(), ..log })
    }
}

impl Log {
    /// The time of a schema that was read since the log was named; `None`: the log doesn't tell.
    fn schema_time(&self) -> Option<SchemaTime> {
        // Statements have the offsets of the log, not of the encrypted file.
        let header = if self.is_encrypted().ok()? { HEADER_SIZE as u64 } else { 0 };
        let [begin, end] = [self.size_then?, self.file_size()?].map(|size| size.saturating_sub(header));
        Some(SchemaTime { begin, end })
    }

    /// The beginning of its file, as it was when it was first read.
    fn front_of_file(&self, path: &Path) -> io::Result<Input> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let size = *self.size_read.get_or_init(|| size);
        Ok(Input::Places(Arc::new(FileFront { file, size })))
    }

    /// Bytes of a file that others may write; `None`: it is none.
    fn file_size(&self) -> Option<u64> {
        let Source::Path(path) = &self.source else { return None };
        std::fs::metadata(path).ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len())
    }

    /// Size of the log in bytes; 0: unknown.
    fn size(&self) -> u64 {
        match &self.source {
            Source::Path(path) => size_of(path).unwrap_or_default(),
            Source::Spooled(_, size) => *size,
            Source::Masked(_, part) => part.end.saturating_sub(part.start),
            Source::Received(..) => 0,
        }
    }

    fn is_encrypted(&self) -> io::Result<bool> {
        match &self.source {
            // A server sends what it decrypted, and asks for TLS where it wants that.
            Source::Received(..) => Ok(false),
            // As they are masked, they are decrypted.
            Source::Masked(..) => Ok(false),
            Source::Path(path) if let Some(archived) = input::find(path)? => archived.is_encrypted(),
            // A file without even that is no log, which is said where it is read.
            Source::Path(_) | Source::Spooled(..) => {
                Ok(self.front()?.is_some_and(|front| front == MAGIC_ENCRYPTED))
            }
        }
    }

    /// The first bytes of a file, as many as say that it is a log; `None`: it is none.
    fn front(&self) -> io::Result<Option<Vec<u8>>> {
        let read = |file: &dyn ReadAt| -> io::Result<Vec<u8>> {
            let mut front = vec![0; MAGIC.len()];
            let count = file.read_at(&mut front, 0)?;
            front.truncate(count);
            Ok(front)
        };
        match &self.source {
            Source::Spooled(file, _) => read(file.as_ref()).map(Some),
            Source::Masked(..) | Source::Received(..) => Ok(None),
            Source::Path(path) => match input::find(path)? {
                Some(_) => Ok(None),
                None => read(&File::open(path)?).map(Some),
            },
        }
    }
}

/// Bytes of the log at a path.
fn size_of(path: &Path) -> io::Result<u64> {
    match input::find(path)? {
        Some(archived) => Ok(archived.size()),
        None => Ok(std::fs::metadata(path)?.len()),
    }
}

/// Runs work that waits for object storage on a thread of its own: DataFusion plans on threads that must not wait.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
}

/// Whether a path is a file that this process has open, as the shell gives them: `<(…)`.
fn is_open(path: &Path) -> bool {
    ["/dev/fd/", "/dev/stdin", "/proc/self/fd/"].iter().any(|open| path.to_string_lossy().starts_with(open))
}

/// All bytes of a pipe.
fn spooled(pipe: &mut dyn Read) -> io::Result<Source> {
    let mut file = Scratch::new()?;
    let size = io::copy(pipe, &mut file)?;
    Ok(Source::Spooled(Arc::new(file), size))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn with_a_schema_a_log_is_what_it_was_then() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&MAGIC).unwrap();
        let logs = Logs::new(vec![file.path().to_owned()], None, |_| {}).unwrap();
        file.write_all(b"while").unwrap();
        let logs = logs.with_schema("USE shop; CREATE TABLE t (a INT)".to_owned()).unwrap();
        assert_eq!(logs.schema_time(), SchemaTime { begin: 4, end: 9 });
        for _ in 0..2 {
            let input = logs.open(0, &mut |_| true).unwrap();
            let Input::Places(places) = input else { panic!("expected a file") };
            assert_eq!(places.fill_at(&mut [0; 64], 0).unwrap(), 9);
            file.write_all(b"later").unwrap();
        }
    }
}
