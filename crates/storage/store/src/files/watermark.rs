//! The watermark: up to which place the log certainly was durable. Recovery never cuts before it.
//!
//! ```text
//! BASE.durable
//! offset  size
//!      0   512   a record, padded with spaces
//!    512   512   another record; of those with a correct checksum, the one with the higher number counts
//!
//! a record
//! binlogz-durable 1
//! number 42                              counts the records
//! log 000007 at 1337                     the end of a whole transaction, or of an event between transactions
//! crc32 89abcdef                         over the lines before
//! ```
//!
//! A record is written after each sync of the log and before that sync is announced, but it is not synced
//! itself. So it survives the end of the process at once, and a crash of the system after the next sync of
//! this file. That sync comes with the first record after an interval, with each rotation, and when a log is
//! opened. Unsynced records all go to the same half of the file. The other half holds the last synced record,
//! so no crash can tear both.

use parking_lot::Mutex;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_binlog::checksum::crc32;

use crate::error::{Error, Result};
use crate::files::Position;
use crate::files::meta::{FORMAT_VERSION, is_member};
use crate::files::names::{FileNumber, LogNames};
use crate::storage::{self, Storage, StorageFile};

const RECORD_SIZE: usize = 512;
const TITLE: &str = "binlogz-durable";

/// How far a log is known to have been durable, when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Nothing: an earlier version kept this log, it is new, or the file was removed.
    Unknown,
    /// Durable at least up to here.
    At(Position),
    /// The file exists, but none of its records is valid: no crash leaves that.
    Unreadable,
}

/// Writes the records; see the module docs.
#[derive(Debug)]
pub(crate) struct Watermark {
    name: String,
    interval: Duration,
    inner: Mutex<WatermarkFile>,
}

#[derive(Debug)]
struct WatermarkFile {
    /// `None` until the first record is written.
    file: Option<Arc<dyn StorageFile>>,
    floor: Floor,
    number: u64,
    /// The half that the next record goes to.
    half: u64,
    synced_at: Instant,
}

impl Watermark {
    /// Reads what is there.
    pub(crate) fn open(
        storage: &dyn Storage,
        names: &LogNames,
        present: &[String],
        interval: Duration,
    ) -> Result<Watermark> {
        let name = names.durable();
        let mut inner = WatermarkFile {
            file: None,
            floor: Floor::Unknown,
            number: 0,
            half: 0,
            synced_at: Instant::now(),
        };
        if present.contains(&name) {
            let file = storage.open(&name, false).map_err(Error::io("open", &name))?;
            let mut found = None;
            for half in 0..2 {
                let mut bytes = [0; RECORD_SIZE];
                let count =
                    file.read_at(half * RECORD_SIZE as u64, &mut bytes).map_err(Error::io("read", &name))?;
                let bytes = bytes.get(..count).unwrap_or_default();
                if let Some(version) = version(bytes).filter(|version| *version != FORMAT_VERSION) {
                    return Err(Error::unfit(&name, format!("format version {version}"), "version 1"));
                }
                let record = decode(bytes);
                found = found.max(record.map(|(number, position)| (number, half, position)));
            }
            match found {
                // Written again to the same half and synced before the other half is touched.
                Some((number, half, position)) => {
                    inner =
                        WatermarkFile { file: Some(file), floor: Floor::At(position), number, half, ..inner };
                }
                None => inner.floor = Floor::Unreadable,
            }
        }
        Ok(Watermark { name, interval, inner: Mutex::new(inner) })
    }

    /// How often the file is synced.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Takes over what recovery found, which read the file again.
    pub(crate) fn becomes(&self, found: Watermark) {
        *self.inner.lock() = found.inner.into_inner();
    }

    /// The position that recovery must not cut before.
    pub(crate) fn floor(&self) -> Floor {
        self.inner.lock().floor
    }

    /// The log is durable up to here. With `now` the record is durable too when the call returns. The
    /// watermark may then also go down, before recovery cuts a transaction that its source never ended.
    pub(crate) fn note(&self, storage: &dyn Storage, position: Position, now: bool) -> Result<()> {
        let mut inner = self.inner.lock();
        let known = matches!(inner.floor, Floor::At(floor) if floor >= position);
        if known && !now {
            return Ok(());
        }
        let number = inner.number + 1;
        let record = encode(number, position);
        match &inner.file {
            None => {
                let both = [record.as_slice(), record.as_slice()].concat();
                let failed = || Error::io("write", &self.name);
                storage::replace(storage, &self.name, &both).map_err(failed())?;
                inner.file = Some(storage.open(&self.name, false).map_err(failed())?);
                inner.synced_at = Instant::now();
            }
            Some(file) => {
                let offset = inner.half * RECORD_SIZE as u64;
                file.write_at(offset, &record).map_err(Error::io("write", &self.name))?;
                if now || inner.synced_at.elapsed() >= self.interval {
                    file.sync().map_err(Error::io("sync", &self.name))?;
                    (inner.half, inner.synced_at) = (1 - inner.half, Instant::now());
                }
            }
        }
        (inner.number, inner.floor) = (number, Floor::At(position));
        Ok(())
    }
}

fn encode(number: u64, position: Position) -> Vec<u8> {
    let mut text =
        format!("{TITLE} {FORMAT_VERSION}\nnumber {number}\nlog {} at {}\n", position.file, position.offset);
    let checksum = crc32(text.as_bytes());
    // Writing to a string can't fail.
    let _ = writeln!(text, "crc32 {checksum:08x}");
    let mut record = text.into_bytes();
    record.resize(RECORD_SIZE - 1, b' ');
    record.push(b'\n');
    record
}

/// The lines of a record whose checksum is right.
fn verified(record: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(record).ok()?;
    let (before, checksum) = text.split_once("crc32 ")?;
    let checksum = u32::from_str_radix(checksum.lines().next()?, 16).ok()?;
    (checksum == crc32(before.as_bytes())).then_some(before)
}

/// The version of a whole record.
fn version(record: &[u8]) -> Option<u32> {
    verified(record)?.lines().next()?.strip_prefix(TITLE)?.trim().parse().ok()
}

fn decode(record: &[u8]) -> Option<(u64, Position)> {
    if version(record)? != FORMAT_VERSION {
        return None;
    }
    let mut lines = verified(record)?.lines().skip(1);
    let number = lines.next()?.strip_prefix("number ")?.parse().ok()?;
    let (file, offset) = lines.next()?.strip_prefix("log ")?.split_once(" at ")?;
    let position = Position { file: FileNumber(file.parse().ok()?), offset: offset.parse().ok()? };
    // Lines that another release may have added are passed over.
    lines.all(is_member).then_some((number, position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;

    fn open(storage: &MemoryStorage) -> Watermark {
        let names = LogNames::new("binlog").unwrap();
        Watermark::open(storage, &names, &storage.list().unwrap(), Duration::MAX).unwrap()
    }

    fn at(offset: u64) -> Position {
        Position { file: FileNumber(7), offset }
    }

    #[test]
    fn a_record_is_found_again_and_one_that_is_damaged_is_none() {
        let record = encode(42, at(1337));
        assert_eq!(record.len(), RECORD_SIZE);
        assert!(record.starts_with(b"binlogz-durable 1\nnumber 42\nlog 000007 at 1337\ncrc32 "));
        assert_eq!(decode(&record), Some((42, at(1337))));
        let meant = record.iter().position(|byte| *byte == b' ').unwrap();
        let end = record.windows(2).position(|pair| pair == b"\n ").unwrap();
        for byte in 0..end {
            let mut damaged = record.clone();
            damaged[byte] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {byte}");
            assert_eq!(decode(&record[..byte]), None, "cut at {byte}");
        }
        assert!(meant < end);
    }

    #[test]
    fn another_releases_lines_are_passed_over_and_another_version_is_refused() {
        let record = |text: &str| {
            let mut record = format!("{text}crc32 {:08x}\n", crc32(text.as_bytes())).into_bytes();
            record.resize(RECORD_SIZE, b' ');
            record
        };
        let later = record("binlogz-durable 1\nnumber 42\nlog 000007 at 1337\nlater 1 2\n");
        assert_eq!(decode(&later), Some((42, at(1337))));
        assert_eq!(decode(&record("binlogz-durable 1\nnumber 42\nlog 000007 at 1337\nmore\n")), None);
        let storage = MemoryStorage::new();
        let two = record("binlogz-durable 2\nsomething else\n");
        storage::replace(&storage, "binlog.durable", &[later, two].concat()).unwrap();
        let names = LogNames::new("binlog").unwrap();
        let opened = Watermark::open(&storage, &names, &storage.list().unwrap(), Duration::MAX);
        assert_eq!(opened.unwrap_err().to_string(), "binlog.durable: format version 2, expected version 1");
    }

    #[test]
    fn unsynced_records_leave_the_synced_half_alone() {
        let storage = MemoryStorage::new();
        let watermark = open(&storage);
        assert_eq!(watermark.floor(), Floor::Unknown);
        watermark.note(&storage, at(100), false).unwrap();
        watermark.note(&storage, at(200), true).unwrap();
        for offset in 201..210 {
            watermark.note(&storage, at(offset), false).unwrap();
            assert_eq!(open(&storage).floor(), Floor::At(at(offset)));
            // A crash that loses the unsynced bytes, or tears them.
            let torn = storage.open("binlog.durable", false).unwrap();
            let half = watermark.inner.lock().half * RECORD_SIZE as u64;
            let mut whole = vec![0; RECORD_SIZE];
            torn.read_at(half, &mut whole).unwrap();
            torn.write_at(half, &[0; 40]).unwrap();
            assert_eq!(open(&storage).floor(), Floor::At(at(200)));
            torn.write_at(half, &whole).unwrap();
        }
        let file = storage.open("binlog.durable", false).unwrap();
        file.write_at(20, b"damage").unwrap();
        file.write_at(532, b"damage").unwrap();
        assert_eq!(open(&storage).floor(), Floor::Unreadable);
    }
}
