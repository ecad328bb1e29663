//! Puts logs into an archive, one after the other. Each is packed into a segment; when that is full, or no log is
//! left, it is stored, read back and compared, and only then the manifest names the logs that are complete.

use std::io::{self, Read, Write};
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::PreviousGtidsEvent;
use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::ReadAt;
use sha2::{Digest, Sha256};

use crate::cut::Cutter;
use crate::error::{Error, Result};
use crate::index;
use crate::manifest::{FileEntry, Manifest};
use crate::payloads::{self, Expanded, Payloads};
use crate::segment::Segment;
use crate::storage::Storage;

/// Plain bytes of a block: one transaction is restored by unpacking one block and those that it refers to.
const BLOCK_SIZE: usize = 8 << 20;

/// What came of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It is in the archive now.
    Added(FileEntry),
    /// It was there already.
    Known(FileEntry),
}

/// Puts a log under `name` into an archive. When it returns, the archive holds it durably and gave it back byte
/// for byte.
///
/// # Errors
///
/// A log that can't be read, an archive that can't be written, another log of the same name in it.
pub fn add(storage: &dyn Storage, name: &str, log: Arc<dyn ReadAt>, workers: usize) -> Result<Created> {
    let mut created = None;
    let mut told = |one: &Created| created = Some(one.clone());
    let mut creator = Creator::new(storage, workers, &mut told)?;
    creator.add(name, log)?;
    creator.finish()?;
    created.ok_or_else(|| Error::damaged("log", "was not added"))
}

/// Puts logs into an archive, several into each segment.
pub struct Creator<'a> {
    storage: &'a dyn Storage,
    workers: usize,
    canonical_payloads: bool,
    /// Of the payloads of the last log that had some: the next one's very likely have it too.
    level: u8,
    /// Is told of each log once the archive holds it durably.
    told: &'a mut dyn FnMut(&Created),
    manifest: Manifest,
    segment: Option<Segment>,
    /// Logs that are packed, and stored but for the segment that is open.
    packed: Vec<FileEntry>,
}

impl std::fmt::Debug for Creator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Creator").field("packed", &self.packed).finish_non_exhaustive()
    }
}

impl<'a> Creator<'a> {
    /// For an archive that is there or not.
    ///
    /// # Errors
    ///
    /// A manifest that can't be read.
    pub fn new(
        storage: &'a dyn Storage,
        workers: usize,
        told: &'a mut dyn FnMut(&Created),
    ) -> Result<Creator<'a>> {
        let manifest = Manifest::read(storage)?.unwrap_or_default();
        let canonical_payloads = false;
        Ok(Creator {
            storage,
            workers,
            canonical_payloads,
            level: payloads::LEVEL_DEFAULT,
            told,
            manifest,
            segment: None,
            packed: Vec::new(),
        })
    }

    /// Whether payloads that no level gives back come back with equal meaning instead of being kept as they are.
    pub fn canonical_payloads(&mut self, canonical: bool) {
        self.canonical_payloads = canonical;
    }

    /// Packs a log. The archive holds it when `told` was told so, at the latest when [`Creator::finish`] returns.
    ///
    /// # Errors
    ///
    /// A log that can't be read, an archive that can't be written, another log of the same name in it. Then no
    /// more can be added; what was added before is kept by [`Creator::finish`].
    pub fn add(&mut self, name: &str, log: Arc<dyn ReadAt>) -> Result<()> {
        self.add_file(name, log, None)
    }

    /// The same for a log that is a file which these may read and write, as chmod counts.
    ///
    /// # Errors
    ///
    /// As [`Creator::add`].
    pub fn add_file(&mut self, name: &str, log: Arc<dyn ReadAt>, mode: Option<u32>) -> Result<()> {
        let (sha256, size, crc32) = digest(&mut Reader::new(log.as_ref()))?;
        if let Some(known) = known(self.manifest.files.iter().chain(&self.packed), name, &sha256)? {
            (self.told)(&Created::Known(known));
            return Ok(());
        }
        let payloads = Payloads::of(log.as_ref());
        if payloads.count > 0
            && let Some(segment) = &mut self.segment
        {
            segment.slim();
        }
        let expanded = match payloads.count {
            0 => None,
            _ => payloads::expanded(&log, payloads, self.level, self.workers, self.canonical_payloads)?,
        };
        if let Some(expanded) = &expanded {
            self.level = expanded.level;
        }
        let mut entry = FileEntry {
            name: name.into(),
            objects: Vec::new(),
            size,
            sha256,
            source_sha256: None,
            packed_size: 0,
            payload_level: expanded.as_ref().map(|expanded| expanded.level),
            payload_codec: expanded.as_ref().map(|_| payloads::codec()),
            payloads_kept: if expanded.is_some() { 0 } else { payloads.count },
            previous_gtids: String::new(),
            gtids: String::new(),
            times: None,
            mode,
        };
        if let Some(Expanded { file, level, exact: false }) = &expanded {
            let mut hasher = Hasher::default();
            let plain = file.reopen().map_err(Error::io("read a temporary file"))?;
            payloads::compress(Arc::new(plain), (*level).into(), &mut hasher, self.workers)?;
            let (sha256, size) = hasher.finish();
            entry.source_sha256 = Some(std::mem::replace(&mut entry.sha256, sha256));
            entry.size = size;
        }
        let packed = match &expanded {
            Some(expanded) => self.pack(&mut entry, Reader::new(expanded.file.as_file())).map(drop),
            None => self.pack(&mut entry, Reader::new(log.as_ref())).and_then(|packed| {
                let changed =
                    || Error::unexpected(format!("{name}: CRC-32 at a second reading"), packed, crc32);
                if packed == crc32 { Ok(()) } else { Err(changed()) }
            }),
        };
        packed?;
        self.packed.push(entry);
        Ok(())
    }

    /// Packs a log's bytes; gives their CRC-32.
    fn pack(&mut self, entry: &mut FileEntry, log: Reader<'_>) -> Result<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut cutter = Cutter::with_size(log, BLOCK_SIZE);
        let mut gtids = GtidSet::default();
        let mut held = cutter.next_piece()?;
        let head = held.as_ref().map(|piece| index::head(&piece.log)).unwrap_or_default();
        entry.previous_gtids = previous_gtids(&head);
        if let Some(piece) = &held {
            hasher.update(&piece.log);
        }
        loop {
            let segment = match &mut self.segment {
                Some(segment) => segment,
                None => self.segment.insert(Segment::new()?),
            };
            let mark = segment.mark();
            let number = segment.begin(&entry.name, &head);
            let mut next = || {
                if let Some(piece) = held.take() {
                    return Ok(Some(piece));
                }
                let piece = cutter.next_piece()?;
                if let Some(piece) = &piece {
                    hasher.update(&piece.log);
                }
                Ok(piece)
            };
            let packed = segment.pack(number, &mut next, self.workers);
            let rest = match packed {
                Ok(rest) => rest,
                Err(error) => {
                    segment.give_back(mark);
                    return Err(error);
                }
            };
            let blocks = || segment.index().blocks.iter().filter(|block| block.log == number);
            entry.packed_size += blocks().map(|block| block.packed_size).sum::<u64>();
            gtids.union(&index::gtids(blocks()));
            entry.times = index::join_times(entry.times, index::times(blocks()));
            if rest.is_none() {
                break;
            }
            held = rest;
            let object = self.store()?;
            entry.objects.push(object);
        }
        entry.gtids = gtids.to_string();
        Ok(hasher.finalize())
    }

    /// Stores the segment that is open, reads it back and compares it; then the manifest names the logs that are
    /// complete with it. Gives its name.
    fn store(&mut self) -> Result<String> {
        let Some(segment) = self.segment.take() else { return Ok(String::new()) };
        let (file, size, _) = segment.finish()?;
        let (sha256, _, _) = digest(&mut Reader::new(&file).up_to(size))?;
        let object = format!("segment-{}.binlogz", sha256.get(..32).unwrap_or_default());
        self.storage.put(&object, &mut |out| {
            io::copy(&mut Reader::new(&file).up_to(size), out).map(drop).map_err(Error::io("write"))
        })?;
        let stored = self.storage.get(&object)?;
        let mut hasher = Hasher::default();
        for offset in (0..size).step_by(READ_BACK) {
            let part = stored.read(offset, READ_BACK.min((size - offset) as usize))?;
            hasher.write_all(&part).map_err(Error::writing)?;
        }
        let (back, _) = hasher.finish();
        if back != sha256 || stored.size()? != size {
            return Err(Error::unexpected(format!("{object}: SHA-256 of what was read back"), back, sha256));
        }
        if !self.packed.is_empty() {
            for entry in &mut self.packed {
                entry.objects.push(object.clone());
            }
            self.record()?;
            for entry in self.packed.drain(..) {
                (self.told)(&Created::Added(entry));
            }
        }
        Ok(object)
    }

    /// Names what is packed in the manifest, and in that of whoever was faster.
    fn record(&mut self) -> Result<()> {
        let mut attempts = 1;
        loop {
            let mut manifest = self.manifest.clone();
            manifest.files.extend(self.packed.iter().cloned());
            match manifest.write(self.storage) {
                Ok(()) => {
                    self.manifest = manifest;
                    return Ok(());
                }
                Err(Error::Changed) if attempts < ATTEMPTS_MAX => attempts += 1,
                Err(error) => return Err(error),
            }
            self.manifest = Manifest::read(self.storage)?.unwrap_or_default();
            // What another run archived meanwhile is known now.
            for entry in std::mem::take(&mut self.packed) {
                match known(&self.manifest.files, &entry.name, &entry.sha256)? {
                    Some(known) => (self.told)(&Created::Known(known)),
                    None => self.packed.push(entry),
                }
            }
        }
    }

    /// Stores what is packed; where that is nothing, what a run that was killed left undone.
    ///
    /// # Errors
    ///
    /// An archive that can't be written.
    pub fn finish(mut self) -> Result<()> {
        if self.packed.is_empty() { Manifest::mend_copy(self.storage) } else { self.store().map(drop) }
    }
}

/// How often a manifest is read again that other runs replace all the time.
const ATTEMPTS_MAX: u32 = 10;

/// The log of this name that is there, which has to be the same.
fn known<'a>(
    files: impl IntoIterator<Item = &'a FileEntry>,
    name: &str,
    sha256: &str,
) -> Result<Option<FileEntry>> {
    match files.into_iter().find(|file| file.name == name) {
        Some(known) if known.source_sha256() != sha256 => Err(Error::unexpected(
            format!("{name}: SHA-256"),
            sha256,
            format!("{}, that of the log of this name in the archive", known.source_sha256()),
        )),
        known => Ok(known.cloned()),
    }
}

/// Bytes read back at once.
const READ_BACK: usize = 4 << 20;

/// SHA-256 in hexadecimal, size, and CRC-32.
fn digest(log: &mut impl Read) -> Result<(String, u64, u32)> {
    let (mut hasher, mut crc32) = (Hasher::default(), crc32fast::Hasher::new());
    let mut buffer = vec![0; 1 << 18];
    loop {
        let count = log.read(&mut buffer).map_err(Error::io("read the log"))?;
        let part = buffer.get(..count).unwrap_or_default();
        if part.is_empty() {
            break;
        }
        hasher.write_all(part).map_err(Error::writing)?;
        crc32.update(part);
    }
    let (sha256, size) = hasher.finish();
    Ok((sha256, size, crc32.finalize()))
}

/// A writer that keeps nothing but a SHA-256.
#[derive(Default)]
pub(crate) struct Hasher {
    sha256: Sha256,
    size: u64,
}

impl Hasher {
    pub(crate) fn finish(self) -> (String, u64) {
        let hash = self.sha256.finalize();
        (hash.iter().map(|byte| format!("{byte:02x}")).collect(), self.size)
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sha256.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a log from its begin on.
pub(crate) struct Reader<'a> {
    log: &'a dyn ReadAt,
    offset: u64,
    end: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(log: &'a dyn ReadAt) -> Self {
        Reader { log, offset: 0, end: u64::MAX }
    }

    /// The first bytes alone.
    pub(crate) fn up_to(self, end: u64) -> Self {
        Reader { end, ..self }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(usize::try_from(self.end - self.offset).unwrap_or(usize::MAX));
        let count = self.log.read_at(buffer.get_mut(..size).unwrap_or_default(), self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

fn previous_gtids(head: &[u8]) -> String {
    let events = index::events(head, 0);
    let frames =
        events.filter_map(index::frame).filter(|frame| frame.event_type() == EventType::PREVIOUS_GTIDS);
    let sets = frames.filter_map(|frame| PreviousGtidsEvent::decode_frame(&frame).ok());
    sets.last().map(|event| event.gtid_set.to_string()).unwrap_or_default()
}
