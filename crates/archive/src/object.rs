//! An archived log as one immutable object: packed blocks, then their index.
//!
//! ```text
//! offset       size  field
//! 0               8  magic "binlogzA"
//! 8               4  version, 1
//! 12                 packed blocks, one behind the other (block.rs)
//! index_offset       index (index.rs)
//! end - 24        8  index_offset
//! end - 16        4  index_size
//! end - 12        4  crc32 of the index
//! end - 8         8  magic "Azgolnib"
//! ```

use std::io::{Read, Write};

use crate::block;
use crate::cut::{Cutter, Piece};
use crate::error::{Error, Result};
use crate::index::{self, BlockEntry, Index};

/// What every object begins with.
pub const MAGIC: [u8; 8] = *b"binlogzA";
/// What every object ends with.
pub const MAGIC_END: [u8; 8] = *b"Azgolnib";
/// The version written.
pub const VERSION: u32 = 1;
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

/// Writes a log as an object, packing `workers` blocks at once. Each is unpacked and compared before it is
/// written.
pub fn write(log: impl Read, out: &mut dyn Write, workers: usize) -> Result<Index> {
    write_cut(Cutter::new(log), out, workers)
}

/// The same with a cutter of the caller's.
pub fn write_cut<R: Read>(mut cutter: Cutter<R>, out: &mut dyn Write, workers: usize) -> Result<Index> {
    let write = |out: &mut dyn Write, bytes: &[u8]| out.write_all(bytes).map_err(Error::io("write"));
    write(out, &MAGIC)?;
    write(out, &VERSION.to_le_bytes())?;
    let mut at = HEAD_SIZE;
    let mut index = Index::default();
    loop {
        let mut pieces = Vec::new();
        while pieces.len() < workers.clamp(1, WORKERS_MAX) {
            match cutter.next_piece()? {
                Some(piece) => pieces.push(piece),
                None => break,
            }
        }
        if pieces.is_empty() {
            break;
        }
        if let Some(first) = pieces.first().filter(|first| first.offset == 0) {
            index.head = index::head(&first.log);
        }
        for packed in pack_at_once(&pieces) {
            let (packed, mut entry) = packed?;
            entry.at = at;
            at += packed.len() as u64;
            write(out, &packed)?;
            index.blocks.push(entry);
        }
    }
    let bytes = index.encode();
    write(out, &bytes)?;
    write(out, &at.to_le_bytes())?;
    write(out, &(bytes.len() as u32).to_le_bytes())?;
    write(out, &crc32fast::hash(&bytes).to_le_bytes())?;
    write(out, &MAGIC_END)?;
    Ok(index)
}

/// Blocks packed at once: each takes up to 200 MiB.
const WORKERS_MAX: usize = 2;

fn pack_at_once(pieces: &[Piece]) -> Vec<Result<(Vec<u8>, BlockEntry)>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = pieces.iter().map(|piece| scope.spawn(|| pack(piece))).collect();
        let panicked = |_| Err(Error::damaged("block", "made its packer panic"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    })
}

fn pack(piece: &Piece) -> Result<(Vec<u8>, BlockEntry)> {
    let mut entry = BlockEntry::of(piece);
    let (packed, method) = block::pack(&piece.log, piece.offset, &piece.maps)?;
    entry.method = method;
    entry.packed_size = packed.len() as u64;
    entry.crc32 = crc32fast::hash(&packed);
    Ok((packed, entry))
}

/// An object that is read.
pub struct Object {
    /// Its name, for errors.
    name: String,
    bytes: Box<dyn ReadRange>,
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
        Ok(Object { name: name.into(), bytes, index })
    }

    /// Unpacks a block.
    ///
    /// # Errors
    ///
    /// One that can't be read or is damaged; it is named with the transactions that are in it.
    pub fn block(&self, entry: &BlockEntry) -> Result<Vec<u8>> {
        let read = || {
            let packed_size = usize::try_from(entry.packed_size).unwrap_or(usize::MAX);
            if packed_size > 2 * block::BLOCK_SIZE_MAX {
                return Err(Error::damaged("block", "is larger than blocks can be"));
            }
            let packed = self.bytes.read(entry.at, packed_size)?;
            if crc32fast::hash(&packed) != entry.crc32 {
                return Err(Error::unexpected(
                    format!("block of log bytes {} to {}", entry.offset, entry.offset + entry.size),
                    "damaged (checksum differs)",
                    format!("the packed transactions {}", Shown(entry)),
                ));
            }
            block::unpack(&packed, entry.size as usize, entry.offset)
        };
        read().map_err(|error| in_object(&self.name, entry.at, error))
    }
}

struct Shown<'a>(&'a BlockEntry);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.gtids.is_empty() {
            true if self.0.continues => f.write_str("(part of the one before)"),
            true => f.write_str("(without GTIDs)"),
            false => write!(f, "{}", self.0.gtids),
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
    match version.map(u32::from_le_bytes) {
        Some(VERSION) => {}
        Some(other) => return Err(Error::unexpected("version", other, "1, the only one known here")),
        None => return Err(Error::damaged("object", "does not begin with its magic")),
    }
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
    Index::decode(&index)
}
