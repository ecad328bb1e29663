//! A segment as one immutable object: packed blocks of one or several logs, then their index. [`crate::segment`]
//! makes it.
//!
//! ```text
//! offset       size  field
//! 0               8  magic "binlogzA"
//! 8               4  version, 2; 1 is read: see block.rs and index.rs
//! 12                 packed blocks, one behind the other (block.rs)
//! index_offset       index (index.rs)
//! end - 24        8  index_offset
//! end - 16        4  index_size
//! end - 12        4  crc32 of the index
//! end - 8         8  magic "Azgolnib"
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use crate::block;
use crate::blocks::{self, Kept};
use crate::error::{Error, Result};
use crate::former::Unpacked;
use crate::index::{BlockEntry, Index};

/// What every object begins with.
pub const MAGIC: [u8; 8] = *b"binlogzA";
/// What every object ends with.
pub const MAGIC_END: [u8; 8] = *b"Azgolnib";
/// The version written.
pub const VERSION: u32 = 2;
/// Bytes before the first block.
pub const HEAD_SIZE: u64 = 12;
/// Bytes behind the index.
pub const TAIL_SIZE: u64 = 24;
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
        let index = read_index(bytes.as_ref()).map_err(|error| in_object(name, 0, error))?;
        Ok(Object { name: name.into(), bytes, kept: Mutex::default(), index })
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

fn read_index(bytes: &dyn ReadRange) -> Result<Index> {
    let size = bytes.size()?;
    if size < HEAD_SIZE + TAIL_SIZE {
        return Err(Error::unexpected("size", size, "that of an object"));
    }
    let head = bytes.read(0, HEAD_SIZE as usize)?;
    let version = head.strip_prefix(&MAGIC).and_then(|version| version.first_chunk()).copied();
    let version = match version.map(u32::from_le_bytes) {
        Some(version @ 1..=VERSION) => version,
        Some(other) => return Err(Error::unexpected("version", other, format!("1 to {VERSION}"))),
        None => return Err(Error::damaged("object", "does not begin with its magic")),
    };
    let tail = bytes.read(size - TAIL_SIZE, TAIL_SIZE as usize)?;
    let Some((numbers, MAGIC_END)) = tail.split_last_chunk().map(|(numbers, magic)| (numbers, *magic)) else {
        return Err(Error::damaged("object", "does not end with its magic"));
    };
    let field = |at: usize, width: usize| {
        let bytes = numbers.get(at..at + width).unwrap_or_default();
        bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let (offset, index_size, crc32) = (field(0, 8), field(8, 4), field(12, 4));
    if index_size > u64::from(INDEX_SIZE_MAX) || offset.checked_add(index_size + TAIL_SIZE) != Some(size) {
        return Err(Error::damaged("object", "has an index that is not where it should be"));
    }
    let index = bytes.read(offset, index_size as usize)?;
    if u64::from(crc32fast::hash(&index)) != crc32 {
        return Err(Error::damaged("index", "is damaged (checksum differs)"));
    }
    Index::decode(&index, version)
}
