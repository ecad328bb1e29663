//! The inputs of a query: logs that can be read as often as it needs them.
//!
//! A query may read a table twice, and a user table's columns are found before its rows are read. So input from a pipe is
//! kept in a temporary file without a name.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::{panic, thread};

use binlogz_archive::format::contents::ListedTable;
use binlogz_archive::part::{BlockRun, PickedLog};
use binlogz_archive::{Scratch, input, storage};
use binlogz_binlog::reader::not_a_log;
use binlogz_binlog::row::{ColumnSchema, TableSchema};
use binlogz_binlog::{MAGIC, MAGIC_ENCRYPTED};
use binlogz_encryption::{Error as EncryptionError, Keyring};
use binlogz_flow::error::in_log;
use binlogz_flow::events::{ReadSummary, RunSummary};
use binlogz_flow::read::meter::{MeteredLog, MeteredPass, ReadMeter};
use binlogz_flow::{CutEvent, Input, ReadAt};
use binlogz_schema::{SchemaFile, SchemaFileError};
use parking_lot::Mutex;

use crate::error::{Error, LogError, Result};
use crate::logs::piece::ReadPiece;

/// The most lines about changes that could not be read.
const TOLD_MAX: usize = 1000;

/// Takes lines.
type TellLines = Box<dyn Fn(&str) + Send + Sync>;

/// Logs, in order.
pub struct Logs {
    logs: Vec<Log>,
    keyring: Option<Arc<Keyring>>,
    schema: Option<Arc<SchemaStatements>>,
    warn: TellLines,
    /// The logs whose end was reported.
    warned: Mutex<HashSet<usize>>,
    /// Lines about changes that could not be read, and whether there were any.
    told: Mutex<BTreeSet<String>>,
    unread: Arc<AtomicBool>,
    /// Whether they end the query.
    unread_is_error: bool,
    meter: Option<Arc<ReadMeter>>,
    /// Bytes of all of them, once they were counted.
    size: OnceLock<Option<u64>>,
}

/// CREATE TABLE statements, which name columns.
#[derive(Debug)]
pub(crate) struct SchemaStatements {
    file: SchemaFile,
    text: String,
}

/// The settings with which an executor of a cluster reads: they are its own, and never sent.
#[derive(Default)]
pub struct Site {
    keyring: Option<Arc<Keyring>>,
    /// Takes lines about the logs that were read.
    tell: Option<TellLines>,
}

/// A log.
#[derive(Debug)]
struct Log {
    /// The log's name as the user gave it, for errors.
    path: String,
    /// The name of its file: the column `log`.
    name: String,
    source: Source,
    /// The blocks that are read of an archived log: those that begin in these bytes of it; `None`: all.
    part: Option<Range<u64>>,
}

#[derive(Debug)]
enum Source {
    /// A file, or a log in an archive.
    Path(PathBuf),
    /// The contents of a pipe, and how many bytes they are.
    Spooled(Arc<Scratch>, u64),
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
            warn: Box::new(|_| {}),
            warned: Mutex::default(),
            told: Mutex::default(),
            unread: Arc::default(),
            unread_is_error: false,
            meter: None,
            size: OnceLock::new(),
        }
    }
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").finish_non_exhaustive()
    }
}

impl Site {
    /// An executor with this keyring; `tell` takes lines about the logs it read.
    pub fn new(keyring: Option<Keyring>, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Site { keyring: keyring.map(Arc::new), tell: Some(Box::new(tell)) }
    }

    pub(crate) fn tell(&self, line: &str) {
        if let Some(tell) = &self.tell {
            tell(line);
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
        let paths = input::expand(paths).map_err(|error| Error::Log(error.to_string()))?;
        let logs = paths.into_iter().map(|path| {
            let shown = path.display().to_string();
            Log::new(path).map_err(|error| Error::Log(format!("{shown}: {error}")))
        });
        let logs = logs.collect::<Result<_>>()?;
        let keyring = keyring.map(Arc::new);
        Ok(Logs { logs, keyring, warn: Box::new(warn), ..Logs::default() })
    }

    /// Logs that a server sent.
    pub(crate) fn of_received(received: Vec<ReceivedParts>) -> Self {
        let logs = received.into_iter().map(|ReceivedParts { name, file, gaps }| Log {
            path: name.clone(),
            name,
            source: Source::Received(file, gaps),
            part: None,
        });
        Logs { logs: logs.collect(), ..Logs::default() }
    }

    /// The logs of pieces of a query, as this executor finds them.
    pub(crate) fn of_pieces(
        pieces: &[ReadPiece],
        site: Arc<Site>,
        schema: Option<Arc<SchemaStatements>>,
    ) -> Result<Self, LogError> {
        let logs = pieces.iter().map(|piece| {
            Log::of_piece(piece).or_else(|_| {
                // An executor lives long: the archive may have changed since it was opened.
                piece.forget();
                Log::of_piece(piece)
            })
        });
        let logs = logs.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let keyring = site.keyring.clone();
        let warn = move |line: &str| site.tell(line);
        Ok(Logs { logs, keyring, schema, warn: Box::new(warn), unread_is_error: true, ..Logs::default() })
    }

    /// Where a log is, and its size: for other machines, which can't read bytes that came from a pipe.
    pub(crate) fn found(&self, index: usize) -> Result<(&Path, u64)> {
        let Some(log) = self.logs.get(index) else { return Err(Error::Log("no such log".to_owned())) };
        let Source::Path(path) = &log.source else {
            let what = "a pipe, which executors can't read; expected a file, an archive, or a log in one";
            return Err(Error::Log(format!("{}: {what}", log.path)));
        };
        size_of(path)
            .map(|size| (path.as_path(), size))
            .map_err(|error| Error::Log(format!("{}: {error}", log.path)))
    }

    /// Bytes of all logs, those in archives unpacked; `None`: the size of one is unknown.
    pub(crate) fn size(&self) -> Option<u64> {
        let sizes = || self.logs.iter().map(|log| Some(log.size()).filter(|size| *size > 0)).sum();
        *self.size.get_or_init(|| apart(sizes))
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
        for log in &self.logs {
            let is_secret =
                log.is_encrypted().map_err(|error| Error::Log(format!("{}: {error}", log.path)))?;
            if is_secret {
                return Ok(Some(&log.path));
            }
        }
        Ok(None)
    }

    /// Takes names and keys of columns from this text of CREATE TABLE statements, where the logs lack them.
    ///
    /// # Errors
    ///
    /// A text that is no schema.
    pub fn with_schema(self, text: String) -> Result<Self, SchemaFileError> {
        let file = SchemaFile::parse(&text)?;
        Ok(Logs { schema: Some(Arc::new(SchemaStatements { file, text })), ..self })
    }

    /// Counts the bytes that are read on this meter.
    pub fn metered(self, meter: Arc<ReadMeter>) -> Self {
        Logs { meter: Some(meter), ..self }
    }

    /// Begins a pass through the logs that are wanted, for the meter if there is one.
    pub(crate) fn pass(&self, is_wanted: impl Fn(usize) -> bool) -> Option<MeteredPass> {
        let meter = self.meter.as_ref()?;
        let wanted = self.logs.iter().enumerate().filter(|(index, _)| is_wanted(*index));
        Some(meter.pass(wanted.map(|(_, log)| log.size()).sum()))
    }

    /// A log that is read by other means than [`Logs::open`], for the meter if there is one.
    pub(crate) fn reading(&self, index: usize) -> Option<MeteredLog> {
        let meter = self.meter.as_ref()?;
        self.logs.get(index).map(|log| MeteredLog::new(Arc::clone(meter), log.size()))
    }

    pub(crate) fn schema(&self) -> Option<Arc<SchemaStatements>> {
        self.schema.clone()
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

    /// The names of a table's columns, and which of them are its key: as the log tells, else as the schema file does. A
    /// column without a name is `@1`, `@2`, as mysqlbinlog has it.
    pub(crate) fn columns(&self, table: &TableSchema) -> (Vec<String>, Vec<usize>) {
        let told = self.schema.as_ref().and_then(|schema| schema.file.told(table));
        let (names, key) = told.unwrap_or_default();
        let columns = table.columns().iter().enumerate();
        let logged_key: Vec<_> = columns.clone().filter(|(_, column)| column.primary_key.is_some()).collect();
        let name = |(index, column): (usize, &ColumnSchema)| match (&column.name, names.get(index)) {
            (Some(name), _) => String::from_utf8_lossy(name).into_owned(),
            (None, Some(name)) => name.clone(),
            (None, None) => format!("@{}", index + 1),
        };
        let key = if logged_key.is_empty() {
            key
        } else {
            logged_key.into_iter().map(|(index, _)| index).collect()
        };
        (columns.map(name).collect(), key)
    }

    /// Whether a column of this name is the one of a table whose keys an archive knows.
    pub(crate) fn is_key(&self, table: &ListedTable, column: &str) -> bool {
        let Some(key) = &table.key else { return false };
        match (&key.name, &self.schema) {
            (Some(name), _) => String::from_utf8_lossy(name) == column,
            // A table has either name, and nothing under the other.
            (None, _) if column == format!("@{}", key.index + 1) => true,
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
        let Some(log) = self.logs.get(index) else { return Err(LogError("no such log".to_owned())) };
        let mut is_left_out = false;
        let is_wanted = &mut |run: &BlockRun<'_>| {
            let is_of_part = log.has(run);
            is_left_out |= !is_of_part;
            is_of_part && is_wanted(run)
        };
        let mut open = || -> Result<(Input, bool), EncryptionError> {
            let input = match &log.source {
                Source::Spooled(file, _) => Input::Places(Arc::clone(file) as _),
                Source::Received(file, gaps) => Input::Sparse {
                    stream: Box::new(FileFromStart { file: Arc::clone(file), offset: 0 }),
                    gaps: gaps.clone(),
                },
                Source::Path(path) => match input::find(path)? {
                    Some(archived) => archived.input_of(is_wanted)?,
                    None => Input::open(path)?,
                },
            };
            let is_whole = !matches!(input, Input::Sparse { .. });
            let input = match self.reading(index) {
                Some(reading) => reading.watch(input),
                None => input,
            };
            match &self.keyring {
                Some(keyring) => input.decrypted(keyring).map(|input| (input, is_whole)),
                None => Ok((input, is_whole)),
            }
        };
        let opened = open().map_err(|error| match error {
            EncryptionError::Format(error) if error.offset().is_some() => {
                LogError(format!("{} {error}", log.path))
            }
            error => LogError(format!("{}: {error}", log.path)),
        })?;
        match opened {
            // Another part reads the same rows.
            (_, true) if is_left_out => {
                Err(LogError(format!("{}: can't be divided, although its archive said so", log.path)))
            }
            opened => Ok(opened),
        }
    }

    /// Opens an archived log for columns of one table; `None`: it has to be read as a log.
    pub(crate) fn picked(
        &self,
        index: usize,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> Option<bool>,
    ) -> Result<Option<PickedLog>, LogError> {
        let Some(log @ Log { path: shown, source: Source::Path(path), .. }) = self.logs.get(index) else {
            return Ok(None);
        };
        let is_wanted = &mut |run: &BlockRun<'_>| if log.has(run) { is_wanted(run) } else { Some(false) };
        let archived = input::find(path).and_then(|archived| match archived {
            Some(archived) => archived.picked(is_wanted),
            None => Ok(None),
        });
        archived.map_err(|error| LogError(format!("{shown}: {error}")))
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
    /// Changes that could not be read in a part of a query that another machine asked for: it sees no lines.
    pub(crate) fn ended(&self, index: usize, ran: &RunSummary) -> Result<(), LogError> {
        let RunSummary { read: ReadSummary { bytes_read: _, cut }, unread } = ran;
        let path = self.logs.get(index).map_or("", |log| &log.path);
        for unread in unread.iter() {
            let line = format!("{path} {unread}; the answer lacks its changes");
            if self.unread_is_error {
                return Err(LogError(line));
            }
            let mut told = self.told.lock();
            if told.len() < TOLD_MAX && told.insert(line.clone()) {
                (self.warn)(&line);
            }
        }
        if !unread.is_empty() {
            self.unread.store(true, Ordering::Relaxed);
        }
        if let Some(cut) = *cut {
            self.ended_cut(index, cut);
        }
        Ok(())
    }

    /// Whether changes were met that could not be read; it is set while queries run.
    pub fn unread(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unread)
    }

    fn ended_cut(&self, index: usize, cut: CutEvent) {
        if self.warned.lock().insert(index) {
            let path = self.logs.get(index).map_or("", |log| &log.path);
            let (offset, size) = (cut.offset, cut.size);
            (self.warn)(&format!(
                "{path} at {offset}: the log is in use and ends inside an event, of which {size} bytes are there; they \
                 are left out"
            ));
        }
    }
}

impl Log {
    /// The log of a piece: at least what it was when the query was planned. `None`: the log can't be divided, and its first piece
    /// reads all of it.
    fn of_piece(piece: &ReadPiece) -> Result<Option<Self>, LogError> {
        let path = piece.path();
        let failed = |error: &dyn Display| LogError(format!("{}: {error}", path.display()));
        if !path.is_absolute() && storage::in_object_storage(path).is_none() {
            return Err(failed(&"expected a whole path"));
        }
        let log = Log::new(path.to_owned()).map_err(|error| failed(&error))?;
        let size = size_of(path).map_err(|error| failed(&error))?;
        if size < piece.size {
            let expected = piece.size;
            return Err(failed(&format!(
                "has {size} bytes here, expected the {expected} that the query was planned with"
            )));
        }
        let Some(part) = &piece.part else { return Ok(Some(log)) };
        let archived = input::find(path).map_err(|error| failed(&error))?;
        let Some(archived) = archived.filter(|archived| archived.packing() == part.packing) else {
            return Err(failed(&"was packed anew since the query was planned: repeat the query"));
        };
        Ok(match archived.divides().map_err(|error| failed(&error))? {
            true => Some(Log { part: Some(part.bytes.clone()), ..log }),
            false if part.bytes.start == 0 => Some(log),
            false => None,
        })
    }

    /// Whether these blocks are of the part that is read.
    fn has(&self, run: &BlockRun<'_>) -> bool {
        self.part.as_ref().is_none_or(|part| part.contains(&run.start()))
    }

    fn new(path: PathBuf) -> io::Result<Self> {
        if path == Path::new("-") {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                return Err(io::Error::other("is a terminal, expected a binary log"));
            }
            let source = spooled(&mut stdin.lock())?;
            return Ok(Log { path: "standard input".to_owned(), name: "-".to_owned(), source, part: None });
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
        Ok(Log { path: shown, name, source, part: None })
    }
}

impl Log {
    /// Size of the log in bytes; 0: unknown.
    fn size(&self) -> u64 {
        match &self.source {
            Source::Path(path) => size_of(path).unwrap_or_default(),
            Source::Spooled(_, size) => *size,
            Source::Received(..) => 0,
        }
    }

    fn is_encrypted(&self) -> io::Result<bool> {
        match &self.source {
            // A server sends what it decrypted, and asks for TLS where it wants that.
            Source::Received(..) => Ok(false),
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
            Source::Received(..) => Ok(None),
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
