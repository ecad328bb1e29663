//! The header before each block since version 3: a copy of its index entry, so that an index can be rebuilt
//! from the blocks alone.
//!
//! ```text
//! 0   4  magic "blkz"
//! 4   4  size of what follows the checksum
//! 8   4  crc32 of the size and of what follows
//! 12     number  varint  of the block
//!        entry           as in the index; `at` is where this header begins
//!        name    bytes   length, then the log's name
//!        head    bytes   length, then the log's head, before its first block of the object; otherwise nothing
//! ```

use std::borrow::Cow;

use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};
use crate::format::ends::HEAD_SIZE;
use crate::format::{BlockEntry, Index, LogEntry};
use crate::storage::ReadRange;

const MAGIC: [u8; 4] = *b"blkz";
/// Bytes that all headers have.
const FIXED_SIZE: usize = 12;
/// The largest header: it holds the GTIDs of a block, and a log's previous ones.
const SIZE_MAX: usize = 64 << 20;
/// Bytes searched at once for the next header.
const SCAN_SIZE: usize = 1 << 20;
/// The largest block number in a header.
const BLOCKS_MAX: u64 = 1 << 20;

/// The name of a lost log or block: no file can have it.
const LOST: &str = "\0";

/// A header that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The block's number in the object.
    pub number: u32,
    /// The block's index entry.
    pub entry: BlockEntry,
    /// The block's log; its head is empty except before the log's first block of the object.
    pub log: LogEntry,
}

impl BlockHeader {
    /// The header's bytes, as written at `entry.at`.
    pub fn encode(number: u32, entry: &BlockEntry, log: &LogEntry, first: bool) -> Vec<u8> {
        let mut body = Vec::new();
        varint::put(&mut body, number.into());
        entry.encode(&mut body, number);
        varint::put_bytes(&mut body, log.name.as_bytes());
        varint::put_bytes(&mut body, if first { &log.head } else { &[] });
        let size = (body.len() as u32).to_le_bytes();
        let crc32 = checksum(size, &body);
        [&MAGIC[..], &size, &crc32.to_le_bytes(), &body].concat()
    }

    /// The header at `at`, and its size. In the result, `entry.at` is where the block's own bytes begin.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read, or are not a header for that offset.
    pub fn read(bytes: &dyn ReadRange, at: u64) -> Result<(BlockHeader, u64)> {
        let fixed = bytes.read(at, FIXED_SIZE)?;
        let mut fields = fixed.as_chunks::<4>().0.iter();
        let (Some(&MAGIC), Some(&size), Some(&crc32)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(damaged("other bytes at its begin", "its magic"));
        };
        let body_size = u32::from_le_bytes(size) as usize;
        let left = bytes.size()?.saturating_sub(at + FIXED_SIZE as u64);
        if body_size > SIZE_MAX || body_size as u64 > left {
            return Err(damaged(
                format!("{body_size} bytes"),
                "no more than the object has left, and at most 64 MiB",
            ));
        }
        let body = bytes.read(at + FIXED_SIZE as u64, body_size)?;
        if checksum(size, &body) != u32::from_le_bytes(crc32) {
            return Err(damaged("another checksum", "that of its bytes"));
        }
        let mut from = Taker::new(&body);
        let number = from.at_most(BLOCKS_MAX, "number of a block")? as u32;
        let mut entry = BlockEntry::decode(&mut from, true, number)?;
        let name = str::from_utf8(from.bytes()?)
            .map_err(|_| damaged("a name that is not UTF-8", "the name of a log"))?;
        let log = LogEntry { name: name.into(), head: from.bytes()?.to_vec() };
        let size = (FIXED_SIZE + body_size) as u64;
        if entry.at != at || from.left() > 0 {
            return Err(damaged("a header of another offset or size", "the offset and size that it says"));
        }
        // Each block before it has a header: a false number would cost the memory of as many blocks.
        if u64::from(number) > at / FIXED_SIZE as u64 {
            return Err(damaged(
                format!("number {number}"),
                "no more blocks before it than there is room for",
            ));
        }
        entry.at += size;
        Ok((BlockHeader { number, entry, log }, size))
    }
}

fn checksum(size: [u8; 4], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&size);
    hasher.update(body);
    hasher.finalize()
}

fn damaged(found: impl Into<Cow<'static, str>>, expected: &'static str) -> Error {
    Error::damaged("header of a block", found, expected)
}

/// Rebuilds the index of an object from the headers of its blocks. A block that has lost its header can't be
/// read; no other block takes its number.
///
/// # Errors
///
/// Bytes that can't be read.
pub fn index_anew(bytes: &dyn ReadRange) -> Result<Index> {
    let mut index = Index::default();
    let mut at = HEAD_SIZE;
    while let Some((header, next)) = next_header(bytes, at)? {
        let BlockHeader { number, entry, log } = header;
        at = next;
        while index.logs.len() <= entry.log as usize {
            index.logs.push(LogEntry { name: LOST.into(), head: Vec::new() });
        }
        if let Some(known) = index.logs.get_mut(entry.log as usize) {
            known.name = log.name;
            if !log.head.is_empty() {
                known.head = log.head;
            }
        }
        while index.blocks.len() < number as usize {
            index.blocks.push(BlockEntry::lost());
        }
        if index.blocks.len() == number as usize {
            index.blocks.push(entry);
        }
    }
    Ok(index)
}

/// The header at `at` or, if it is damaged, the next one, and where its block ends.
fn next_header(bytes: &dyn ReadRange, mut at: u64) -> Result<Option<(BlockHeader, u64)>> {
    let size = bytes.size()?;
    while at + FIXED_SIZE as u64 <= size {
        if let Ok((header, _)) = BlockHeader::read(bytes, at) {
            let end = header.entry.at.saturating_add(header.entry.packed_size);
            return Ok(Some((header, end)));
        }
        at = next_magic(bytes, at + 1, size)?;
    }
    Ok(None)
}

/// The offset of the next magic, or the end.
fn next_magic(bytes: &dyn ReadRange, mut at: u64, size: u64) -> Result<u64> {
    while at + FIXED_SIZE as u64 <= size {
        let part = bytes.read(at, SCAN_SIZE.min((size - at) as usize))?;
        if let Some(place) = part.windows(MAGIC.len()).position(|window| window == MAGIC) {
            return Ok(at + place as u64);
        }
        // The magic may begin with the last bytes.
        at += (part.len() - (MAGIC.len() - 1)) as u64;
    }
    Ok(size)
}
