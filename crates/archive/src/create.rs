//! Puts logs into an archive, one after the other: each is packed, stored, read back and compared before the
//! manifest names it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::PreviousGtidsEvent;
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, HEADER_SIZE};
use binlogz_flow::{Input, ReadAt, Rewrite, rewrite};
use binlogz_payload::{CompressOptions, CompressionLevel};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::folder::Storage;
use crate::index::{self, Index};
use crate::manifest::{FileEntry, Manifest};
use crate::object;
use crate::restore;

/// Levels that a server's payloads may have, the usual ones first. Those above 19 need more memory than an
/// archive may take.
const LEVELS: [i64; 19] = [3, 1, 19, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18];

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
    let mut manifest = Manifest::read(storage)?.unwrap_or_default();
    let (sha256, size) = digest(&mut Reader::new(log.as_ref()))?;
    if let Some(known) = manifest.files.iter().find(|file| file.name == name) {
        if known.sha256 == sha256 {
            return Ok(Created::Known(known.clone()));
        }
        return Err(Error::unexpected(
            format!("{name}: SHA-256"),
            sha256,
            format!("{}, that of the log of this name in the archive", known.sha256),
        ));
    }
    let payloads = count_payloads(log.as_ref());
    let expanded = if payloads > 0 { expanded(&log, workers) } else { None };
    let object = format!("{name}-{}.binlogz", sha256.get(..16).unwrap_or_default());
    let mut index = Index::default();
    storage.put(&object, &mut |out| {
        index = match &expanded {
            Some((file, _)) => object::write(Reader::new(file.as_file()), out, workers)?,
            None => object::write(Reader::new(log.as_ref()), out, workers)?,
        };
        Ok(())
    })?;
    let entry = FileEntry {
        name: name.into(),
        packed_size: storage.get(&object)?.size()?,
        object,
        size,
        sha256,
        payload_level: expanded.as_ref().map(|(_, level)| *level),
        payloads_kept: if expanded.is_some() { 0 } else { payloads },
        previous_gtids: previous_gtids(&index),
        gtids: index.gtids().to_string(),
        times: index.times(),
    };
    drop(expanded);
    restore::verify(storage, &entry, workers)?;
    manifest.files.push(entry.clone());
    manifest.write(storage)?;
    Ok(Created::Added(entry))
}

/// SHA-256 in hexadecimal, and size.
fn digest(log: &mut impl Read) -> Result<(String, u64)> {
    let mut hasher = Hasher::default();
    io::copy(log, &mut hasher).map_err(Error::io("read the log"))?;
    Ok(hasher.finish())
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
}

impl<'a> Reader<'a> {
    pub(crate) fn new(log: &'a dyn ReadAt) -> Self {
        Reader { log, offset: 0 }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.log.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// How many transaction payloads a log has, as far as its events can be followed.
fn count_payloads(log: &dyn ReadAt) -> u64 {
    let mut count = 0;
    let mut offset = binlogz_binlog::MAGIC.len() as u64;
    let mut header = [0; HEADER_SIZE];
    while log.read_at(&mut header, offset).is_ok_and(|read| read == HEADER_SIZE) {
        let size = header.get(EVENT_SIZE_OFFSET..).and_then(|size| size.first_chunk());
        let size = size.map_or(0, |size| u32::from_le_bytes(*size));
        if (size as usize) < HEADER_SIZE {
            break;
        }
        let event_type = header.get(EVENT_TYPE_OFFSET).copied().map(EventType);
        count += u64::from(event_type == Some(EventType::TRANSACTION_PAYLOAD));
        offset += u64::from(size);
    }
    count
}

/// The log without payloads, and the level at which compressing it gives the log again; `None`: there is none.
fn expanded(log: &Arc<dyn ReadAt>, workers: usize) -> Option<(tempfile::NamedTempFile, u8)> {
    let mut file = tempfile::NamedTempFile::new().ok()?;
    let mut out = io::BufWriter::with_capacity(1 << 20, file.as_file_mut());
    let summary =
        rewrite(Input::Places(log.clone()), &mut out, Rewrite::Expand, workers, None, &mut |_| {}).ok()?;
    out.flush().ok()?;
    drop(out);
    if summary.cut.is_some() {
        return None;
    }
    let level = LEVELS.into_iter().find(|&level| {
        let plain = file.reopen().map(|file| Arc::new(file) as Arc<dyn ReadAt>);
        plain.is_ok_and(|plain| {
            let mut compare = Compare { log: log.as_ref(), offset: 0 };
            compress(plain, level, &mut compare, workers).is_ok() && compare.at_end()
        })
    })?;
    Some((file, level as u8))
}

/// Writes a log with its transactions compressed as its server did.
pub(crate) fn compress(log: Arc<dyn ReadAt>, level: i64, out: &mut dyn Write, workers: usize) -> Result<()> {
    let level =
        CompressionLevel::new(level).ok_or_else(|| Error::unexpected("payload level", level, "1 to 22"))?;
    let options = CompressOptions { level, ..CompressOptions::default() };
    rewrite(Input::Places(log), out, Rewrite::Compress(options), workers, None, &mut |_| {})
        .map(drop)
        .map_err(|error| Error::io("compress payloads")(io::Error::other(error)))
}

/// A writer that fails where what is written is not the log.
struct Compare<'a> {
    log: &'a dyn ReadAt,
    offset: u64,
}

impl Compare<'_> {
    fn at_end(&self) -> bool {
        self.log.read_at(&mut [0], self.offset).is_ok_and(|count| count == 0)
    }
}

impl Write for Compare<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut there = vec![0; bytes.len()];
        let mut have = 0;
        while have < there.len() {
            match self.log.read_at(there.get_mut(have..).unwrap_or_default(), self.offset + have as u64)? {
                0 => break,
                count => have += count,
            }
        }
        if there.get(..have) != Some(bytes) {
            return Err(io::Error::other("other bytes"));
        }
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn previous_gtids(index: &Index) -> String {
    let events = index::events(&index.head, 0);
    let frames =
        events.filter_map(index::frame).filter(|frame| frame.event_type() == EventType::PREVIOUS_GTIDS);
    let sets = frames.filter_map(|frame| PreviousGtidsEvent::decode_frame(&frame).ok());
    sets.last().map(|event| event.gtid_set.to_string()).unwrap_or_default()
}
