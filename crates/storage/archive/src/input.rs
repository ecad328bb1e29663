//! Archives as input: naming an archive means all its logs, and `ARCHIVE/LOG` means one of them. Every
//! program that reads logs gets them here: [`expand`] replaces archives by such names, and [`find`] opens the
//! log that has one. A program that looks for something gets a log without the parts that can't have it
//! ([`ArchivedLog::input_of`]).
//!
//! An archive is opened once a run: its manifest is read once, and what objects tell of their blocks, as far as there is memory for
//! that. A program that runs for long can [`forget`] it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::{Input, LogFacts};
use parking_lot::Mutex;

use crate::directory::{LogDirectory, NeededDirectory};
use crate::error::Error;
use crate::format::{ErasedLogs, FileEntry, Manifest, masked_in_words};
use crate::part::{BlockRun, LogParts, ObjectContents, PickedLog};
use crate::restore::{self, LastObject};
use crate::storage::{self, ArchiveStorage};

/// The number of pieces that may be restored before they are read.
const PIECE_SIZE: usize = 1 << 20;
const PIECES_MAX: usize = 4;
/// Blocks unpacked at once: each takes up to 200 MiB.
const WORKERS: usize = 2;

/// A log in an archive.
pub struct ArchivedLog {
    archive: Arc<Archive>,
    entry: FileEntry,
}

/// A path that was to be an archive, and why it can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct Unreadable {
    /// The path.
    pub path: PathBuf,
    /// The error.
    #[source]
    pub error: Error,
}

/// An archive.
struct Archive {
    storage: Box<dyn ArchiveStorage>,
    manifest: Manifest,
    /// Its logs, by name: their numbers in the manifest.
    logs: HashMap<String, usize>,
    /// Objects that were opened: the next log may begin in the last one, and the next question needs them all.
    objects: Mutex<OpenedObjects>,
    last_object: LastObject,
}

impl Archive {
    fn new(storage: Box<dyn ArchiveStorage>, manifest: Manifest) -> Self {
        let logs = manifest.files.iter().zip(0..).map(|(file, number)| (String::from(&*file.name), number));
        Archive {
            logs: logs.collect(),
            storage,
            manifest,
            objects: Mutex::default(),
            last_object: LastObject::default(),
        }
    }

    fn object(&self, name: &str) -> Result<Arc<ObjectContents>, Error> {
        let mut objects = self.objects.lock();
        if let Some(told) = objects.get(name) {
            return Ok(told);
        }
        let told = Arc::new(ObjectContents::open(&self.storage, &self.last_object, name)?);
        objects.put(name, &told);
        Ok(told)
    }
}

/// Objects that were opened, the most recently used last: what they tell of their blocks, and the unpacked blocks of the last alone.
#[derive(Default)]
struct OpenedObjects(VecDeque<(String, Arc<ObjectContents>)>);

/// Memory of what opened objects tell, as far as it is known, and how many there may be: each has a file or a request of its own.
const OPENED_MEMORY_MAX: u64 = 64 << 20;
const OPENED_MAX: usize = 64;

impl OpenedObjects {
    fn get(&mut self, name: &str) -> Option<Arc<ObjectContents>> {
        let place = self.0.iter().rposition(|(there, _)| there == name)?;
        let opened = self.0.remove(place)?;
        let told = Arc::clone(&opened.1);
        if place < self.0.len() {
            self.forget_blocks();
        }
        self.0.push_back(opened);
        Some(told)
    }

    fn put(&mut self, name: &str, told: &Arc<ObjectContents>) {
        self.forget_blocks();
        self.0.push_back((name.to_owned(), Arc::clone(told)));
        let mut memory: u64 = self.0.iter().map(|(_, told)| told.memory()).sum();
        while self.0.len() > OPENED_MAX || (memory > OPENED_MEMORY_MAX && self.0.len() > 1) {
            let oldest = self.0.pop_front();
            memory -= oldest.map_or(0, |(_, told)| told.memory());
        }
    }

    /// Each would otherwise keep those that were unpacked last.
    fn forget_blocks(&self) {
        self.0.iter().for_each(|(_, told)| told.forget_blocks());
    }
}

/// The archives that were opened, by their places. Locked for as long as a place is looked up: an archive that takes long to open
/// holds up those who want that one.
static OPENED: Mutex<Vec<(PathBuf, ArchiveSlot)>> = Mutex::new(Vec::new());

/// The room for an archive: empty until one reader has opened it for all.
type ArchiveSlot = Arc<Mutex<Option<Arc<Archive>>>>;

/// Replaces archives by their logs, in the order they were archived; `-` and files stay.
///
/// # Errors
///
/// An archive that can't be read.
pub fn expand(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<PathBuf>, Unreadable> {
    let mut expanded = Vec::new();
    for path in paths {
        let archive = if may_be_archive(&path) { open_whole(&path) } else { Ok(None) };
        match archive.map_err(|error| Unreadable { path: path.clone(), error })? {
            Some(archive) => {
                expanded.extend(archive.manifest.files.iter().map(|file| path.join(&file.name)));
            }
            None => expanded.push(path),
        }
    }
    Ok(expanded)
}

/// The logs among these, as [`expand`] gives them, from which values were erased; `None`: there is none. What can't be read has an error of its own
/// when it is opened.
pub fn erased<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Option<ErasedLogs> {
    let entries: Vec<FileEntry> =
        paths.into_iter().filter_map(|path| find(path).ok().flatten()).map(|log| log.entry).collect();
    ErasedLogs::among(&entries)
}

/// A line for each archive of masked logs that these paths name, or of which they name a log.
///
/// # Errors
///
/// An archive that can't be read.
pub fn masked(paths: &[PathBuf]) -> Result<Vec<String>, Unreadable> {
    let mut lines = BTreeSet::new();
    for path in paths {
        let archives = std::iter::once(path.as_path()).chain(path.parent());
        let Some(place) = archives.into_iter().find(|place| may_be_archive(place)) else { continue };
        let archive = open(place).map_err(|error| Unreadable { path: path.clone(), error })?;
        if let Some(digest) = archive.as_ref().and_then(|archive| archive.manifest.exits.as_deref()) {
            lines.insert(format!("{}: {}", place.display(), masked_in_words(digest)));
        }
    }
    Ok(lines.into_iter().collect())
}

/// The archived log that a path names; `None`: it names none.
///
/// # Errors
///
/// An archive that can't be read, or that lacks the log.
pub fn find(path: &Path) -> io::Result<Option<ArchivedLog>> {
    let (Some(archive), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    if !may_be_archive(archive) || (storage::in_object_storage(path).is_none() && path.exists()) {
        return Ok(None);
    }
    let found = open_whole(archive).map_err(io::Error::other)?;
    let Some(found) = found else {
        return match storage::in_object_storage(path) {
            Some(_) => Err(io::Error::new(io::ErrorKind::NotFound, "is neither an archive nor a log in one")),
            None => Ok(None),
        };
    };
    let number = name.to_str().and_then(|name| found.logs.get(name));
    let entry = number.and_then(|number| found.manifest.files.get(*number)).cloned();
    match entry {
        Some(entry) => Ok(Some(ArchivedLog { archive: found, entry })),
        None => Err(io::Error::new(io::ErrorKind::NotFound, "is not in the archive")),
    }
}

/// Opens an archive again when it is named next: one that was opened long ago may have changed.
pub fn forget(archive: &Path) {
    let mut opened = OPENED.lock();
    opened.retain(|(there, _)| there != archive);
}

fn may_be_archive(path: &Path) -> bool {
    storage::in_object_storage(path).is_some() || path.join("manifest.json").is_file()
}

/// Opens an archive. A selection of tables is refused: what it lacks would go unnoticed.
fn open_whole(path: &Path) -> Result<Option<Arc<Archive>>, Error> {
    let opened = open(path)?;
    match opened.as_ref().and_then(|archive| archive.manifest.selection.as_ref()) {
        Some(selection) => Err(Error::Selection { selection: selection.to_string() }),
        None => Ok(opened),
    }
}

fn open(path: &Path) -> Result<Option<Arc<Archive>>, Error> {
    let place = {
        let mut opened = OPENED.lock();
        match opened.iter().find(|(there, _)| there == path) {
            Some((_, place)) => Arc::clone(place),
            None => {
                let place = Arc::default();
                opened.push((path.to_owned(), Arc::clone(&place)));
                place
            }
        }
    };
    let mut place = place.lock();
    if let Some(archive) = place.as_ref() {
        return Ok(Some(Arc::clone(archive)));
    }
    let storage = storage::at(path)?;
    let Some(manifest) = Manifest::read(&storage)? else { return Ok(None) };
    let archive = Arc::new(Archive::new(storage, manifest));
    *place = Some(Arc::clone(&archive));
    Ok(Some(archive))
}

impl ArchivedLog {
    /// Bytes of the log.
    pub fn size(&self) -> u64 {
        self.entry.size
    }

    /// Whether it stands encrypted in its archive.
    ///
    /// # Errors
    ///
    /// An archive that can't be read.
    pub fn is_encrypted(&self) -> io::Result<bool> {
        self.archive.storage.is_encrypted().map_err(io::Error::other)
    }

    /// The log's transactions, as the archive's manifest has them; `None`: the manifest's GTIDs can't be read.
    pub fn gtids(&self) -> Option<GtidSet> {
        self.entry.gtid_set().ok()
    }

    /// The facts that place this log among others, from the archive's manifest.
    ///
    /// # Errors
    ///
    /// A manifest with GTIDs that can't be read.
    pub fn facts(&self, name: String) -> io::Result<LogFacts> {
        let entry = &self.entry;
        Ok(LogFacts {
            name,
            created: entry.times.map_or(0, |(first, _)| first),
            previous: Some(entry.previous_gtid_set().map_err(io::Error::other)?),
            gtids: Some(entry.gtid_set().map_err(io::Error::other)?),
            ..LogFacts::default()
        })
    }

    /// Whether several readers can divide it among them, each with the runs that begin in its part of the log.
    ///
    /// # Errors
    ///
    /// Objects that are missing or damaged.
    pub fn divides(&self) -> io::Result<bool> {
        LogParts::divides(&self.entry, &self.objects()?).map_err(io::Error::other)
    }

    /// Tells apart how it was packed: after a merge it is another.
    pub fn packing(&self) -> u32 {
        let mut hash = crc32fast::Hasher::new();
        for object in &self.entry.objects {
            hash.update(object.as_bytes());
            hash.update(&[0]);
        }
        hash.finalize()
    }

    fn objects(&self) -> io::Result<Vec<Arc<ObjectContents>>> {
        let objects = self.entry.objects.iter().map(|object| self.archive.object(object));
        objects.collect::<Result<_, _>>().map_err(io::Error::other)
    }

    /// The log as it was, restored while it is read.
    pub fn input(self) -> Input {
        Input::Stream(stream(move |out| {
            let Archive { storage, last_object, .. } = &*self.archive;
            restore::whole_after(storage, last_object, &self.entry, out, WORKERS)
        }))
    }

    /// Columns of one table in it; `None`: they can't be picked ([`PickedLog::choose`]).
    ///
    /// # Errors
    ///
    /// Objects that are missing or damaged.
    pub fn picked(
        &self,
        with_positions: bool,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> Option<bool>,
    ) -> io::Result<Option<PickedLog>> {
        PickedLog::choose(&self.entry, self.objects()?, with_positions, is_wanted).map_err(io::Error::other)
    }

    /// Its transactions, as far as its archive tells them; `None`: it has to be read ([`LogDirectory::choose`]).
    ///
    /// # Errors
    ///
    /// Objects that are missing or damaged.
    pub fn directory(
        &self,
        needed: NeededDirectory,
        is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
    ) -> io::Result<Option<LogDirectory>> {
        LogDirectory::choose(&self.entry, self.objects()?, needed, is_wanted).map_err(io::Error::other)
    }

    /// The log without the parts that the caller doesn't need.
    ///
    /// # Errors
    ///
    /// Objects that are missing or damaged.
    pub fn input_of(self, is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool) -> io::Result<Input> {
        let parts = LogParts::choose(&self.entry, self.objects()?, is_wanted).map_err(io::Error::other)?;
        let Some(parts) = parts else { return Ok(self.input()) };
        let gaps = parts.gaps.clone();
        Ok(Input::Sparse { stream: stream(move |out| parts.write(out, WORKERS)), gaps })
    }
}

/// The output of `write`, which runs on a thread of its own, as it is read.
fn stream(write: impl FnOnce(&mut dyn Write) -> Result<(), Error> + Send + 'static) -> Box<dyn Read + Send> {
    let (sender, receiver) = sync_channel(PIECES_MAX);
    thread::spawn(move || {
        let mut out = PieceSender { sender, piece: Vec::new() };
        let written = write(&mut out).and_then(|()| out.flush().map_err(Error::writing));
        // The reader may have gone.
        let _ = out
            .sender
            .send(written.map_or_else(|error| InputPiece::Failed(error.to_string()), |()| InputPiece::End));
    });
    Box::new(RestoredReader { receiver, piece: io::Cursor::default(), ended: false })
}

enum InputPiece {
    Bytes(Vec<u8>),
    Failed(String),
    End,
}

/// Passes written bytes on to the reader.
struct PieceSender {
    sender: SyncSender<InputPiece>,
    piece: Vec<u8>,
}

impl Write for PieceSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_SIZE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        self.sender.send(InputPiece::Bytes(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

struct RestoredReader {
    receiver: Receiver<InputPiece>,
    piece: io::Cursor<Vec<u8>>,
    ended: bool,
}

impl Read for RestoredReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 || self.ended || buffer.is_empty() {
                return Ok(count);
            }
            match self.receiver.recv() {
                Ok(InputPiece::Bytes(bytes)) => self.piece = io::Cursor::new(bytes),
                Ok(InputPiece::End) => self.ended = true,
                Ok(InputPiece::Failed(problem)) => return Err(io::Error::other(problem)),
                Err(_) => return Err(io::Error::other("restoring it ended half-way")),
            }
        }
    }
}
