//! The two ends of an object: the bytes before the first block, and those after the last.
//!
//! ```text
//! offset       size  field
//! 0               8  magic "binlogzA"
//! 8               4  version, 13; 1 to 3, 5, 6, 8, 9 and 11 are read: see packed.rs and index.rs
//! 12                 blocks, one after the other: header (block_header.rs), then the packed block (packed.rs)
//!                    what the blocks hold (contents.rs), since version 6; the index says where
//!                    their transactions (directory.rs), since version 11; the index says where
//! index_offset       index (index.rs)
//! end - 32        8  index_offset
//! end - 24        4  index_size
//! end - 20        4  crc32 of the index
//! end - 16        4  version, as above
//! end - 12        4  crc32 of the 20 bytes before
//! end - 8         8  magic "Azgolni3"
//! ```
//!
//! The end alone says where and what the index is; the start matters only if the end is damaged. Versions 1
//! and 2 had no block headers, and ended with index_offset, index_size, crc32 of the index, and "Azgolnib".

use crate::error::{Error, Result};
use crate::format::Index;
use crate::format::version::{VERSION, is_known, unknown_version};
use crate::storage::ReadRange;

/// The first bytes of every object.
pub const MAGIC: [u8; 8] = *b"binlogzA";
/// The last bytes of every object.
const MAGIC_END: [u8; 8] = *b"Azgolni3";
/// The last bytes before version 3.
const MAGIC_END_2: [u8; 8] = *b"Azgolnib";
/// Bytes before the first block.
pub const HEAD_SIZE: u64 = 12;
/// Bytes after the index.
const TAIL_SIZE: u64 = 32;
/// Bytes after the index before version 3.
const TAIL_SIZE_2: u64 = 24;
/// The largest index.
const INDEX_SIZE_MAX: u32 = 256 << 20;

/// The bytes after the blocks, which end at `offset`.
pub(crate) fn end(offset: u64, index: &[u8]) -> Vec<u8> {
    let mut numbers = offset.to_le_bytes().to_vec();
    for number in [index.len() as u32, crc32fast::hash(index), VERSION] {
        numbers.extend_from_slice(&number.to_le_bytes());
    }
    let crc32 = crc32fast::hash(&numbers).to_le_bytes();
    [index, &numbers, &crc32, &MAGIC_END].concat()
}

/// The version at the start of an object.
pub(crate) fn read_version(bytes: &dyn ReadRange) -> Result<u32> {
    let head = bytes.read(0, HEAD_SIZE as usize)?;
    let version = head.strip_prefix(&MAGIC).and_then(|version| version.first_chunk()).copied();
    match version.map(u32::from_le_bytes) {
        Some(version) if is_known(version) => Ok(version),
        Some(other) => Err(unknown_version(other)),
        None => Err(Error::damaged("object", "other bytes at its begin", "its magic")),
    }
}

/// The index, and the version of the object.
pub(crate) fn read_end(bytes: &dyn ReadRange) -> Result<(Index, u32)> {
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
                return Err(Error::damaged("end of the object", "another checksum", "that of its bytes"));
            }
            (field(16, 4) as u32, TAIL_SIZE)
        }
        Some(&MAGIC_END_2) => (read_version(bytes)?, TAIL_SIZE_2),
        _ => return Err(Error::damaged("object", "other bytes at its end", "its magic")),
    };
    if !is_known(version) {
        return Err(unknown_version(version));
    }
    let at = (TAIL_SIZE - tail_size) as usize;
    let offset = field(at, 8);
    let index_size = field(at + 8, 4);
    let crc32 = field(at + 12, 4);
    if index_size > u64::from(INDEX_SIZE_MAX) || offset.checked_add(index_size + tail_size) != Some(size) {
        return Err(Error::damaged(
            "object",
            format!("an index of {index_size} bytes at {offset}"),
            "one that ends at the end of the object",
        ));
    }
    let index = bytes.read(offset, index_size as usize)?;
    if u64::from(crc32fast::hash(&index)) != crc32 {
        return Err(Error::damaged("index", "another checksum", "that of its bytes"));
    }
    Ok((Index::decode(&index, version)?, version))
}
