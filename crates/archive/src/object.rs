//! A segment as one immutable object: packed blocks of one or several logs, then their index. [`crate::segment`]
//! makes it.
//!
//! ```text
//! offset       size  field
//! 0               8  magic "binlogzA"
//! 8               4  version, 3; 1 and 2 are read: see block.rs and index.rs
//! 12                 blocks, one behind the other: header (block_header.rs), then the packed block (block.rs)
//! index_offset       index (index.rs)
//! end - 32        8  index_offset
//! end - 24        4  index_size
//! end - 20        4  crc32 of the index
//! end - 16        4  version, as above
//! end - 12        4  crc32 of the 20 bytes before
//! end - 8         8  magic "Azgolni3"
//! ```
//!
//! The end alone says where and what the index is; what stands in front is for whoever finds the end damaged. Versions 1
//! and 2 had no headers of blocks, and ended with index_offset, index_size, crc32 of the index, and "Azgolnib".

use std::sync::{Arc, Mutex, PoisonError};

use crate::block;
use crate::block_header::{BlockHeader, index_anew};
use crate::blocks::{self, Kept};
use crate::error::{Error, Result};
use crate::former::Unpacked;
use crate::index::{BlockEntry, Index};

/// What every object begins with.
pub const MAGIC: [u8; 8] = *b"binlogzA";
/// What every object ends with.
const MAGIC_END: [u8; 8] = *b"Azgolni3";
/// What they ended with before version 3.
const MAGIC_END_2: [u8; 8] = *b"Azgolnib";
/// The version written.
pub const VERSION: u32 = 3;
/// The first version with headers of blocks.
const VERSION_HEADERS: u32 = 3;
/// Bytes before the first block.
pub const HEAD_SIZE: u64 = 12;
/// Bytes behind the index.
const TAIL_SIZE: u64 = 32;
/// The same before version 3.
const TAIL_SIZE_2: u64 = 24;
/// An index is no larger than this.
const INDEX_SIZE_MAX: u32 = 256 << 20;

/// Bytes that can be read at any place: a file, an object by range requests.
pub trait ReadRange: Send + Sync {
    /// How many there are.
    fn size(&self) -> Result<u64>;
    /// Exactly these.
    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>>;
}

/// An object that is read.
pub struct Object {
    /// Its name, for errors.
    name: String,
    bytes: Box<dyn ReadRange>,
    kept: Mutex<Kept>,
    /// What it holds.
    pub index: Index,
    version: u32,
    /// The index was damaged, and made anew of the blocks: those that lost their headers too are not in it.
    pub(crate) made_anew: bool,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Object {
    /// Reads the index.
    ///
    /// # Errors
    ///
    /// An object that can't be read, of another version, or with a damaged index.
    pub fn open(name: &str, bytes: Box<dyn ReadRange>) -> Result<Object> {
        let read = || match read_end(bytes.as_ref()) {
            Ok((index, version)) => Ok((index, version, false)),
            Err(error) => match read_version(bytes.as_ref()) {
                Ok(version @ VERSION_HEADERS..=VERSION) if !matches!(error, Error::Io { .. }) => {
                    let index = index_anew(bytes.as_ref())?;
                    if index.blocks.is_empty() { Err(error) } else { Ok((index, version, true)) }
                }
                _ => Err(error),
            },
        };
        let (index, version, made_anew) = read().map_err(|error| in_object(name, 0, error))?;
        Ok(Object { name: name.into(), bytes, kept: Mutex::default(), index, version, made_anew })
    }

    /// What of it is damaged beside the blocks themselves, as far as it concerns a log: all that is needed is there a
    /// second time.
    pub fn inspect(&self, log: u32) -> Vec<Error> {
        let mut problems = Vec::new();
        let size = self.bytes.size().unwrap_or_default();
        if let Err(damage) = read_end(self.bytes.as_ref()) {
            let index = "index, which was made anew of the blocks,".to_owned();
            let copy = Error::Copy { what: index, source: Box::new(damage) };
            problems.push(in_object(&self.name, size, copy));
        }
        let begin = match read_version(self.bytes.as_ref()) {
            Ok(version) if version == self.version => Ok(()),
            Ok(other) => Err(Error::unexpected("version", other, self.version)),
            Err(error) => Err(error),
        };
        if let Err(error) = begin {
            let copy = Error::Copy { what: "begin".into(), source: Box::new(error) };
            problems.push(in_object(&self.name, 0, copy));
        }
        if self.version < VERSION_HEADERS {
            return problems;
        }
        let mut at = HEAD_SIZE;
        for (number, entry) in (0..).zip(&self.index.blocks) {
            let begin = std::mem::replace(&mut at, entry.at.saturating_add(entry.packed_size).min(size));
            if entry.log != log {
                continue;
            }
            let same =
                |(header, _): (BlockHeader, u64)| match header.number == number && header.entry == *entry {
                    true => Ok(()),
                    false => Err(Error::damaged("header of a block", "says something else than the index")),
                };
            if let Err(error) = BlockHeader::read(self.bytes.as_ref(), begin).and_then(same) {
                let what = format!("header of {}", entry.describe());
                problems.push(in_object(&self.name, begin, Error::Copy { what, source: Box::new(error) }));
            }
        }
        problems
    }

    /// The number of a log and those of its blocks.
    ///
    /// # Errors
    ///
    /// An object that does not hold it.
    pub fn log(&self, name: &str) -> Result<(u32, Vec<u32>)> {
        let log = self.index.log(name);
        let log = log.ok_or_else(|| Error::unexpected(&self.name, "without that log", name))?;
        Ok((log, self.index.blocks_of(log)))
    }

    /// Unpacks a block, and the blocks that it needs.
    ///
    /// # Errors
    ///
    /// One that can't be read or is damaged; it is named with the transactions that are in it.
    pub fn block(&self, number: u32, workers: usize) -> Result<Arc<Unpacked>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        blocks::one(&self.index.blocks, &|entry| self.read(entry), &mut kept, number, workers)
            .map_err(|error| self.name_it(number, error))
    }

    /// Unpacks blocks one after the other.
    ///
    /// # Errors
    ///
    /// As [`Object::block`], and those of `sink`.
    pub fn blocks(
        &self,
        numbers: &[u32],
        workers: usize,
        sink: &mut dyn FnMut(&BlockEntry, &Unpacked) -> Result<()>,
    ) -> Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        blocks::each(&self.index.blocks, &|entry| self.read(entry), &mut kept, numbers, workers, sink)
    }

    /// A block's packed bytes, checked.
    fn read(&self, entry: &BlockEntry) -> Result<Vec<u8>> {
        if entry.is_lost() {
            return Err(in_object(&self.name, 0, Error::damaged("block", "is lost, and its header")));
        }
        let read = || {
            let packed_size = usize::try_from(entry.packed_size).unwrap_or(usize::MAX);
            if packed_size > 2 * block::BLOCK_SIZE_MAX {
                return Err(Error::damaged("block", "is larger than blocks can be"));
            }
            let packed = self.bytes.read(entry.at, packed_size)?;
            if packed.len() != packed_size || crc32fast::hash(&packed) != entry.crc32 {
                return Err(Error::Block { block: entry.describe() });
            }
            Ok(packed)
        };
        read().map_err(|error| in_object(&self.name, entry.at, error))
    }

    /// Names the object where the error does not.
    fn name_it(&self, number: u32, error: Error) -> Error {
        let at = self.index.blocks.get(number as usize).map_or(0, |entry| entry.at);
        match error {
            error @ Error::In { .. } => error,
            error => in_object(&self.name, at, error),
        }
    }
}

fn in_object(name: &str, offset: u64, error: Error) -> Error {
    Error::In { object: name.into(), offset, source: Box::new(error) }
}

/// What stands behind the blocks, which end at `offset`.
pub(crate) fn end(offset: u64, index: &[u8]) -> Vec<u8> {
    let mut numbers = offset.to_le_bytes().to_vec();
    for number in [index.len() as u32, crc32fast::hash(index), VERSION] {
        numbers.extend_from_slice(&number.to_le_bytes());
    }
    let crc32 = crc32fast::hash(&numbers).to_le_bytes();
    [index, &numbers, &crc32, &MAGIC_END].concat()
}

/// The version that an object begins with.
fn read_version(bytes: &dyn ReadRange) -> Result<u32> {
    let head = bytes.read(0, HEAD_SIZE as usize)?;
    let version = head.strip_prefix(&MAGIC).and_then(|version| version.first_chunk()).copied();
    match version.map(u32::from_le_bytes) {
        Some(version @ 1..=VERSION) => Ok(version),
        Some(other) => Err(unknown_version(other)),
        None => Err(Error::damaged("object", "does not begin with its magic")),
    }
}

fn unknown_version(version: u32) -> Error {
    Error::unexpected("version", version, format!("1 to {VERSION}"))
}

/// The index, and the version of the object.
fn read_end(bytes: &dyn ReadRange) -> Result<(Index, u32)> {
    let size = bytes.size()?;
    if size < HEAD_SIZE + TAIL_SIZE_2 {
        return Err(Error::unexpected("size", size, "that of an object"));
    }
    let tail = bytes.read(size - TAIL_SIZE.min(size), TAIL_SIZE.min(size) as usize)?;
    let field = |at: usize, width: usize| {
        let bytes = tail.get(at..at + width).unwrap_or_default();
        bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let (version, tail_size) = match tail.last_chunk() {
        Some(&MAGIC_END) => {
            let numbers = tail.get(..20).unwrap_or_default();
            if u64::from(crc32fast::hash(numbers)) != field(20, 4) {
                return Err(Error::damaged("end of the object", "is damaged (checksum differs)"));
            }
            (field(16, 4) as u32, TAIL_SIZE)
        }
        Some(&MAGIC_END_2) => (read_version(bytes)?, TAIL_SIZE_2),
        _ => return Err(Error::damaged("object", "does not end with its magic")),
    };
    if !(1..=VERSION).contains(&version) {
        return Err(unknown_version(version));
    }
    let at = (TAIL_SIZE - tail_size) as usize;
    let (offset, index_size, crc32) = (field(at, 8), field(at + 8, 4), field(at + 12, 4));
    if index_size > u64::from(INDEX_SIZE_MAX) || offset.checked_add(index_size + tail_size) != Some(size) {
        return Err(Error::damaged("object", "has an index that is not where it should be"));
    }
    let index = bytes.read(offset, index_size as usize)?;
    if u64::from(crc32fast::hash(&index)) != crc32 {
        return Err(Error::damaged("index", "is damaged (checksum differs)"));
    }
    Ok((Index::decode(&index, version)?, version))
}
