//! Gives logs back: whole ones byte for byte, or chosen transactions as binlog files of their own.

use std::io::{self, BufWriter, Write};
use std::slice;
use std::sync::Arc;

use binlogz_binlog::frame::set_end_log_pos;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{Boundary, ChecksumAlgorithm, EventHeader, TransactionBoundaryParser};
use binlogz_flow::ReadAt;
use binlogz_scratch_file::Scratch;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::format::index;
use crate::format::{FileEntry, Manifest, objects};
use crate::log::events::{self, has_checksum};
use crate::log::payloads::{Codec, compress};
use crate::operations::digest::Hasher;
use crate::operations::selection::{EventChoice, TransactionSelection};
use crate::segment::Object;
use crate::storage::ArchiveStorage;

/// Opens an object.
///
/// # Errors
///
/// An object that is missing or damaged.
pub fn open(storage: &dyn ArchiveStorage, object: &str) -> Result<Object> {
    let opened = storage.get(object).and_then(|bytes| Object::open(object, bytes));
    opened.map_err(|error| gone(storage, [object], error))
}

/// The object that was opened last: the next log may be in it, too. Its index is read once then, and so are blocks that both
/// logs need, as far as they are kept.
#[derive(Debug, Default)]
pub struct LastObject(Mutex<Option<(String, Arc<Object>)>>);

impl LastObject {
    /// Opens an object, if it isn't the last one.
    ///
    /// # Errors
    ///
    /// As [`open`].
    pub fn open(&self, storage: &dyn ArchiveStorage, name: &str) -> Result<Arc<Object>> {
        let mut last = self.0.lock();
        if let Some((_, object)) = last.as_ref().filter(|(there, _)| there == name) {
            return Ok(Arc::clone(object));
        }
        // The memory of one is enough.
        *last = None;
        let object = Arc::new(open(storage, name)?);
        *last = Some((name.to_owned(), Arc::clone(&object)));
        Ok(object)
    }
}

/// The error, or that another run has taken these objects out of the archive since the reader's manifest was read.
pub(crate) fn gone<'a>(
    storage: &dyn ArchiveStorage,
    objects: impl IntoIterator<Item = &'a str>,
    error: Error,
) -> Error {
    if !error.is_of_storage() {
        return error;
    }
    let Ok(Some(manifest)) = Manifest::read(storage) else { return error };
    let named = manifest.objects();
    match objects.into_iter().find(|object| !named.contains(object)) {
        Some(object) => Error::Gone { object: object.into() },
        None => error,
    }
}

/// Writes a log as it was. Its bytes are hashed while they are written: an error at the end says that they are not the
/// log's, although each block was whole. In that case discard the output. A log that was packed again since `file` was
/// read is read from its new place.
///
/// # Errors
///
/// Damaged blocks, output that fails, bytes with another SHA-256, payloads of another codec.
pub fn whole(
    storage: &dyn ArchiveStorage,
    file: &FileEntry,
    out: &mut dyn Write,
    workers: usize,
) -> Result<()> {
    whole_after(storage, &LastObject::default(), file, out, workers)
}

/// Writes a log as [`whole`] does, for callers that write several logs in order. `last` keeps the last object open
/// between calls.
///
/// # Errors
///
/// As [`whole`].
pub fn whole_after(
    storage: &dyn ArchiveStorage,
    last: &LastObject,
    file: &FileEntry,
    out: &mut dyn Write,
    workers: usize,
) -> Result<()> {
    let mut written = CountingWriter { out, size: 0 };
    match whole_of(storage, last, file, &mut written, workers) {
        Err(error @ Error::Gone { .. }) if written.size == 0 => match packed_anew(storage, file) {
            Some(now) => whole_of(storage, last, &now, &mut written, workers),
            None => Err(error),
        },
        done => done,
    }
}

/// The manifest's present entry of the same log, in other objects.
fn packed_anew(storage: &dyn ArchiveStorage, file: &FileEntry) -> Option<FileEntry> {
    let manifest = Manifest::read(storage).ok()??;
    let mut files = manifest.files.into_iter();
    files.find(|now| now.name == file.name && now.sha256 == file.sha256 && now.objects != file.objects)
}

/// Counts the bytes written.
struct CountingWriter<'a> {
    out: &'a mut dyn Write,
    size: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn whole_of(
    storage: &dyn ArchiveStorage,
    last: &LastObject,
    file: &FileEntry,
    out: &mut dyn Write,
    workers: usize,
) -> Result<()> {
    let mut out = HashingWriter { out, hasher: Hasher::default() };
    let missing = |error| gone(storage, objects(slice::from_ref(file)), error);
    match file.payload_level {
        None => blocks(storage, last, file, &mut out, workers).map_err(missing)?,
        Some(level) => {
            let codec = codec_of(file, level)?;
            let mut plain = Scratch::new().map_err(Error::io("make a temporary file"))?;
            blocks(storage, last, file, &mut plain, workers).map_err(missing)?;
            drop(compress(Arc::new(plain), codec, &mut out, workers)?);
        }
    }
    let (sha256, size) = out.hasher.finish();
    if size != file.size {
        return Err(Error::unexpected("size of the log", size, file.size));
    }
    match sha256 == file.sha256 {
        true => Ok(()),
        false => Err(Error::unexpected("SHA-256", sha256, &file.sha256)),
    }
}

/// A log as it is packed, without payloads that are made again, in a temporary file; the log's SHA-256 was compared.
pub(crate) fn plain(storage: &dyn ArchiveStorage, file: &FileEntry, workers: usize) -> Result<Arc<Scratch>> {
    let last = LastObject::default();
    let missing = |error| gone(storage, objects(slice::from_ref(file)), error);
    let log = Scratch::new().map_err(Error::io("make a temporary file"))?;
    let mut out = BufWriter::with_capacity(1 << 18, log);
    let mut written = HashingWriter { out: &mut out, hasher: Hasher::default() };
    blocks(storage, &last, file, &mut written, workers).map_err(missing)?;
    let mut hasher = written.hasher;
    let log = out.into_inner().map_err(|error| Error::io("write a temporary file")(error.into_error()))?;
    let shared = Arc::new(log);
    if let Some(level) = file.payload_level {
        let codec = codec_of(file, level)?;
        hasher = Hasher::default();
        drop(compress(Arc::clone(&shared) as Arc<dyn ReadAt>, codec, &mut hasher, workers)?);
    }
    let (sha256, _) = hasher.finish();
    if sha256 != file.sha256 {
        return Err(Error::unexpected("SHA-256", sha256, &file.sha256));
    }
    Ok(shared)
}

/// Another library, or another version of it, may not make the same payloads.
pub(crate) fn codec_of(file: &FileEntry, level: u8) -> Result<Codec> {
    let Some(name) = &file.payload_codec else { return Ok(Codec { level, ..Codec::DEFAULT }) };
    let ours = || Codec::DEFAULT.name();
    Codec::named(name, level).ok_or_else(|| Error::Codec { found: name.clone(), ours: ours() })
}

/// Hashes the bytes written.
struct HashingWriter<'a> {
    out: &'a mut dyn Write,
    hasher: Hasher,
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hasher.write_all(bytes.get(..count).unwrap_or_default())?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a log back and compares it with its SHA-256.
///
/// # Errors
///
/// As [`whole`].
pub fn verify(storage: &dyn ArchiveStorage, file: &FileEntry, workers: usize) -> Result<()> {
    whole(storage, file, &mut io::sink(), workers)
}

/// Writes the content of a log's blocks, unpacking several at once.
fn blocks(
    storage: &dyn ArchiveStorage,
    last: &LastObject,
    file: &FileEntry,
    out: &mut dyn Write,
    workers: usize,
) -> Result<()> {
    let mut offset = 0;
    for object in &file.objects {
        let object = last.open(storage, object)?;
        let (_, numbers) = object.log(&file.name)?;
        object.blocks(&numbers, workers, &mut |entry, block| {
            if entry.offset != offset {
                return Err(Error::unexpected("begin of a block", entry.offset, offset));
            }
            offset += entry.size;
            out.write_all(&block.log).map_err(Error::io("write"))
        })?;
    }
    Ok(())
}

/// The result of restoring chosen transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// Transactions written.
    pub transactions: u64,
    /// Blocks unpacked.
    pub blocks: u64,
    /// Whether the selection ends here, so that nothing later is wanted.
    pub ended: bool,
}

/// Writes the chosen transactions of a log as a log: its head, then the transactions, with payloads expanded.
/// `out` is called for the output once the first transaction is found.
///
/// # Errors
///
/// As [`whole`].
pub fn chosen(
    storage: &dyn ArchiveStorage,
    file: &FileEntry,
    selection: &TransactionSelection,
    workers: usize,
    out: &mut dyn FnMut() -> Result<Box<dyn Write>>,
) -> Result<RestoreSummary> {
    chosen_after(storage, &LastObject::default(), file, selection, workers, out)
}

/// Writes transactions as [`chosen`] does, for callers that read several logs in order. `last` keeps the last object open
/// between calls.
///
/// # Errors
///
/// As [`whole`].
pub fn chosen_after(
    storage: &dyn ArchiveStorage,
    last: &LastObject,
    file: &FileEntry,
    selection: &TransactionSelection,
    workers: usize,
    out: &mut dyn FnMut() -> Result<Box<dyn Write>>,
) -> Result<RestoreSummary> {
    let chosen = chosen_of(storage, last, file, selection, workers, out);
    chosen.map_err(|error| gone(storage, objects(slice::from_ref(file)), error))
}

fn chosen_of(
    storage: &dyn ArchiveStorage,
    last: &LastObject,
    file: &FileEntry,
    selection: &TransactionSelection,
    workers: usize,
    out: &mut dyn FnMut() -> Result<Box<dyn Write>>,
) -> Result<RestoreSummary> {
    let gtid_set = file.gtid_set()?;
    if !selection.may_be_in(&gtid_set, file.times) {
        return Ok(RestoreSummary::default());
    }
    let mut restored = ChosenTransactions {
        selection,
        filter: Filter::default(),
        writer: None,
        told: RestoreSummary::default(),
        out,
    };
    let mut made_anew = false;
    let mut known = GtidSet::default();
    for object in &file.objects {
        let object = last.open(storage, object)?;
        made_anew |= object.made_anew;
        let (log, numbers) = object.log(&file.name)?;
        let gtids = index::gtids(object.index.blocks.iter().filter(|block| block.log == log));
        if !gtids.is_subset(&gtid_set) {
            // This is a segment of another log: its blocks are whole all the same.
            return Err(Error::unexpected("set of GTIDs of its blocks", gtids, &file.gtids));
        }
        known.union(&gtids);
        for number in numbers {
            restored.block(&object, log, number, workers)?;
            if restored.told.ended {
                return finish(restored.writer, restored.told);
            }
        }
    }
    if made_anew && known != gtid_set {
        return Err(Error::damaged(
            "index",
            "damage, also in headers of blocks: transactions are missing",
            "all of them",
        ));
    }
    finish(restored.writer, restored.told)
}

/// The chosen transactions of a log, on their way from its blocks to a log that begins with the first of them.
struct ChosenTransactions<'a> {
    selection: &'a TransactionSelection,
    /// What of the block before goes on.
    filter: Filter,
    writer: Option<LogWriter>,
    told: RestoreSummary,
    out: &'a mut dyn FnMut() -> Result<Box<dyn Write>>,
}

impl ChosenTransactions<'_> {
    /// Takes what is chosen of a block, which is opened only where that may be something.
    fn block(&mut self, object: &Object, log: u32, number: u32, workers: usize) -> Result<()> {
        let Some(entry) = object.index.blocks.get(number as usize) else { return Ok(()) };
        let goes_on = entry.continues && self.filter.chosen;
        if !goes_on && !self.selection.may_be_in(&entry.gtids, entry.times) {
            self.filter = Filter::default();
            return Ok(());
        }
        if !entry.continues {
            self.filter = Filter::default();
        }
        self.told.blocks += 1;
        let mut bytes = std::mem::take(&mut self.filter.cut);
        let begin = if bytes.is_empty() { entry.offset } else { 1 };
        bytes.extend_from_slice(&object.block(number, workers)?.log);
        let mut size = if begin == 0 { binlogz_binlog::MAGIC.len() } else { 0 };
        for event in events::events(&bytes, begin) {
            size += event.len();
            match self.filter.choose(event, self.selection) {
                EventChoice::Leave => {}
                EventChoice::End => {
                    self.told.ended = true;
                    return Ok(());
                }
                EventChoice::Take { begins } => {
                    self.told.transactions += u64::from(begins);
                    self.writer(object, log)?.write(event)?;
                }
            }
        }
        self.filter.cut = bytes.split_off(size.min(bytes.len()));
        Ok(())
    }

    /// The log that is written; the first chosen event begins it, with the head of the log from which it comes.
    fn writer(&mut self, object: &Object, log: u32) -> Result<&mut LogWriter> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let head = object.index.logs.get(log as usize);
                let head = head.map(|log| log.head.as_slice()).unwrap_or_default();
                if head.is_empty() && object.made_anew {
                    return Err(Error::damaged(
                        "index",
                        "damage, also in the header of the log's first block",
                        "one of the two whole",
                    ));
                }
                LogWriter::new((self.out)()?, head)?
            }
        };
        Ok(self.writer.insert(writer))
    }
}

fn finish(writer: Option<LogWriter>, restored: RestoreSummary) -> Result<RestoreSummary> {
    if let Some(mut writer) = writer {
        writer.out.flush().map_err(Error::io("write"))?;
    }
    Ok(restored)
}

/// Which events belong to chosen transactions.
#[derive(Default)]
struct Filter {
    assembler: TransactionBoundaryParser,
    chosen: bool,
    /// The start of an event that continues in the next block.
    cut: Vec<u8>,
}

impl Filter {
    fn choose(&mut self, event: &[u8], selection: &TransactionSelection) -> EventChoice {
        let Ok(header) = EventHeader::decode(event) else { return EventChoice::Leave };
        let boundary = self.assembler.feed(&header, events::body(event)).boundary;
        match boundary {
            Boundary::Outside => {
                self.chosen = false;
                EventChoice::Leave
            }
            Boundary::Begin | Boundary::BeginAgain | Boundary::Single => {
                let committed = selection.has_times().then(|| events::commit_time_of(event)).flatten();
                let choice = selection.choose(events::gtid_of(event).as_ref(), header.timestamp, committed);
                self.chosen = matches!(choice, EventChoice::Take { .. });
                choice
            }
            Boundary::Inside | Boundary::End if self.chosen => EventChoice::Take { begins: false },
            Boundary::Inside | Boundary::End => EventChoice::Leave,
        }
    }
}

/// Writes events so that each has its new position.
struct LogWriter {
    out: Box<dyn Write>,
    at: u64,
}

impl LogWriter {
    fn new(out: Box<dyn Write>, head: &[u8]) -> Result<Self> {
        let mut writer = LogWriter { out, at: 0 };
        writer.put(head)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes).map_err(Error::io("write"))
    }

    fn write(&mut self, event: &[u8]) -> Result<()> {
        // An event whose checksum is wrong keeps it.
        let checksum = match has_checksum(event) {
            true => ChecksumAlgorithm::CRC32,
            false => ChecksumAlgorithm::NONE,
        };
        let mut event = event.to_vec();
        let end = (self.at + event.len() as u64) as u32;
        set_end_log_pos(&mut event, end, checksum)?;
        self.put(&event)
    }
}
