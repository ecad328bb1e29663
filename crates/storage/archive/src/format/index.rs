//! The blocks of an object: where each is, its transactions, and when they were made.
//!
//! ```text
//! logs    varint  count; each:
//!   name       bytes   length, then the log's name
//!   head       bytes   length, then the log's magic, format description and previous GTIDs
//! count   varint  blocks; each:
//!   log        varint  which of the logs
//!   offset     varint  in the log          size        varint  in the log
//!   at         varint  in the object       packed_size varint  in the object
//!   crc32      4       of the packed bytes
//!   continues  1       1: it begins inside a transaction
//!   method     1       0 bytes | 1 columns
//!   references varint  count of the earlier blocks that it refers to; each:
//!     back     varint  its number minus that of the block referred to
//!   first, last varint the smallest and largest timestamp of its events; 0: it has none
//!   gtids      bytes   length, then the GTIDs that begin in it, as text
//! contents     what the blocks hold (contents.rs), since version 6:
//!   at         varint  in the object
//!   size       varint
//!   crc32      4
//! directory    its transactions (directory.rs), since version 11: at, size and crc32, as above
//! ```
//!
//! In version 1 an object held one log: `head` took the place of `logs`, and blocks had neither `log` nor
//! `references`.

use std::ops::Range;

use binlogz_binlog::EventHeader;
use binlogz_binlog::gtid::GtidSet;

use crate::block::Method;
use crate::block::slots::REFERENCES_MAX;
use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};
use crate::format::version::{VERSION_CONTENTS, VERSION_DIRECTORY};
use crate::log::events::{events, gtid_of};
use crate::log::{BLOCK_SIZE_MAX, CutPiece};
use crate::storage::LogName;

/// The most blocks of an object: more than a log of 1 TiB has.
const BLOCKS_MAX: u64 = 1 << 20;

/// The most logs of an object.
const LOGS_MAX: u64 = 1 << 16;

/// A log that has blocks in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// File name of the log; empty in version 1.
    pub name: String,
    /// The log's magic, format description and previous GTIDs.
    pub head: Vec<u8>,
}

/// Everything known about a block without unpacking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEntry {
    /// The log it belongs to, by its number in the object.
    pub log: u32,
    /// Where the block begins in the log, in bytes.
    pub offset: u64,
    /// Size of the block in the log, in bytes.
    pub size: u64,
    /// Where the block begins in the object, in bytes.
    pub at: u64,
    /// Size of the block in the object, in bytes.
    pub packed_size: u64,
    /// CRC-32 of its bytes in the object.
    pub crc32: u32,
    /// Whether it begins inside a transaction.
    pub continues: bool,
    /// How the block was packed.
    pub method: Method,
    /// The numbers of the blocks that it refers to.
    pub references: Vec<u32>,
    /// The smallest and the largest timestamp of its events.
    pub times: Option<(u32, u32)>,
    /// The transactions that begin in it.
    pub gtids: GtidSet,
}

/// The index of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The logs that have blocks in it.
    pub logs: Vec<LogEntry>,
    /// The blocks of the object.
    pub blocks: Vec<BlockEntry>,
    /// Where the contents of these blocks are; `None`: the object has none.
    pub contents: Option<ContentsEntry>,
    /// Where the directory of their transactions is; `None`: the object has none.
    pub directory: Option<ContentsEntry>,
}

/// Where an object tells something of its blocks: what they hold, or their transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentsEntry {
    /// Where it begins in the object, in bytes.
    pub at: u64,
    /// Its size in the object, in bytes.
    pub size: u64,
    /// CRC-32 of its bytes.
    pub crc32: u32,
}

impl ContentsEntry {
    /// Where these bytes are in an object, if they begin at `at`.
    pub(crate) fn of(bytes: &[u8], at: u64) -> Self {
        ContentsEntry { at, size: bytes.len() as u64, crc32: crc32fast::hash(bytes) }
    }

    fn encode(entry: Option<Self>, out: &mut Vec<u8>) {
        let ContentsEntry { at, size, crc32 } = entry.unwrap_or(ContentsEntry { at: 0, size: 0, crc32: 0 });
        varint::put(out, at);
        varint::put(out, size);
        out.extend_from_slice(&crc32.to_le_bytes());
    }

    fn decode(from: &mut Taker<'_>) -> Result<Option<Self>> {
        let at = from.number()?;
        let size = from.number()?;
        let crc32 = from.take(4)?.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Ok(Some(ContentsEntry { at, size, crc32 }).filter(|entry| entry.size > 0))
    }
}

impl Index {
    /// The index as it is stored in an object.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, self.logs.len() as u64);
        for log in &self.logs {
            varint::put_bytes(&mut out, log.name.as_bytes());
            varint::put_bytes(&mut out, &log.head);
        }
        varint::put(&mut out, self.blocks.len() as u64);
        for (number, block) in self.blocks.iter().enumerate() {
            block.encode(&mut out, number as u32);
        }
        ContentsEntry::encode(self.contents, &mut out);
        ContentsEntry::encode(self.directory, &mut out);
        out
    }

    /// The reverse of [`Index::encode`], for any version.
    ///
    /// # Errors
    ///
    /// Bytes that no packer writes; blocks that don't follow one another.
    pub fn decode(bytes: &[u8], version: u32) -> Result<Index> {
        let mut from = Taker::new(bytes);
        let several = version > 1;
        let mut logs = Vec::new();
        for _ in 0..if several { from.at_most(LOGS_MAX, "count of logs")? } else { 1 } {
            let name = if several { from.bytes()? } else { &[] };
            let name = str::from_utf8(name)
                .map_err(|_| Error::damaged("name of a log", "bytes that are not UTF-8", "UTF-8"))?;
            if several {
                LogName::new(name)?;
            }
            logs.push(LogEntry { name: name.into(), head: from.bytes()?.to_vec() });
        }
        let count = from.at_most(BLOCKS_MAX.min(bytes.len() as u64), "count of blocks")?;
        let mut blocks: Vec<BlockEntry> = Vec::new();
        // Where each log's next block must begin. A log begins at 0 in its first segment; version 1 had only
        // one.
        let mut next: Vec<Option<u64>> = vec![if several { None } else { Some(0) }; logs.len()];
        for number in 0..count {
            let block = BlockEntry::decode(&mut from, several, number as u32)?;
            let next = next.get_mut(block.log as usize);
            let next = next.ok_or_else(|| {
                Error::damaged("index", format!("a block of log {}", block.log), "a log that the index has")
            })?;
            if next.is_some_and(|next| next != block.offset) {
                return Err(Error::damaged(
                    "index",
                    format!("a block at {} of its log", block.offset),
                    "the end of the block before it",
                ));
            }
            *next = Some(block.offset.saturating_add(block.size));
            blocks.push(block);
        }
        let contents = if version >= VERSION_CONTENTS { ContentsEntry::decode(&mut from)? } else { None };
        let directory = if version >= VERSION_DIRECTORY { ContentsEntry::decode(&mut from)? } else { None };
        if from.left() == 0 {
            Ok(Index { logs, blocks, contents, directory })
        } else {
            Err(Error::damaged("index", format!("{} bytes too many", from.left()), "none"))
        }
    }

    /// The number of a log; version 1 holds one, whatever its name.
    pub fn log(&self, name: &str) -> Option<u32> {
        let place = self.logs.iter().position(|log| log.name == name || log.name.is_empty())?;
        u32::try_from(place).ok()
    }

    /// The numbers of a log's blocks.
    pub(crate) fn blocks_of(&self, log: u32) -> Vec<u32> {
        (0u32..).zip(&self.blocks).filter(|(_, block)| block.log == log).map(|(number, _)| number).collect()
    }
}

/// All transactions of some blocks.
pub(crate) fn gtids<'a>(blocks: impl IntoIterator<Item = &'a BlockEntry>) -> GtidSet {
    let mut all = GtidSet::default();
    blocks.into_iter().for_each(|block| all.union(&block.gtids));
    all
}

/// The smallest and the largest timestamp of some blocks.
pub(crate) fn times<'a>(blocks: impl IntoIterator<Item = &'a BlockEntry>) -> Option<(u32, u32)> {
    blocks.into_iter().fold(None, |times, block| join_times(times, block.times))
}

/// The smaller first and the larger last timestamp of two ranges.
pub(crate) fn join_times(one: Option<(u32, u32)>, other: Option<(u32, u32)>) -> Option<(u32, u32)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

impl BlockEntry {
    /// Where its packed bytes are in the object.
    pub(crate) fn place(&self) -> Range<u64> {
        self.at..self.at.saturating_add(self.packed_size)
    }

    /// The block's place in the log, and its transactions.
    pub(crate) fn describe(&self) -> String {
        let gtids = match self.gtids.is_empty() {
            true if self.continues => "(part of the one before)".into(),
            true => "(without GTIDs)".into(),
            false => self.gtids.to_string(),
        };
        let end = self.offset.saturating_add(self.size);
        format!("block of log bytes {} to {end}, transactions {gtids},", self.offset)
    }

    /// The entry of a lost block: we only know that it existed.
    pub(crate) fn lost() -> BlockEntry {
        let piece = CutPiece { continues: false, ..CutPiece::default() };
        BlockEntry { log: u32::MAX, ..BlockEntry::of(&piece) }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.log == u32::MAX
    }

    /// Appends the entry's bytes, which stand in the index and in the header of the block with this number.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, number: u32) {
        varint::put(out, self.log.into());
        for number in [self.offset, self.size, self.at, self.packed_size] {
            varint::put(out, number);
        }
        out.extend_from_slice(&self.crc32.to_le_bytes());
        out.push(self.continues.into());
        out.push(u8::from(self.method == Method::Columns));
        varint::put(out, self.references.len() as u64);
        for &reference in &self.references {
            varint::put(out, u64::from(number).wrapping_sub(reference.into()));
        }
        let (first, last) = self.times.unwrap_or_default();
        varint::put(out, first.into());
        varint::put(out, last.into());
        varint::put_bytes(out, self.gtids.to_string().as_bytes());
    }

    pub(crate) fn decode(from: &mut Taker<'_>, several: bool, number: u32) -> Result<BlockEntry> {
        let log = if several { from.at_most(LOGS_MAX, "number of a log")? as u32 } else { 0 };
        let offset = from.number()?;
        let size = from.at_most(BLOCK_SIZE_MAX as u64, "size of a block")? as u64;
        let at = from.number()?;
        let packed_size = from.number()?;
        let crc32 = from.take(4)?.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let continues = from.byte()? == 1;
        let method = if from.byte()? == 1 { Method::Columns } else { Method::Bytes };
        let mut references = Vec::new();
        for _ in 0..if several { from.at_most(REFERENCES_MAX as u64, "count of references")? } else { 0 } {
            let back = from.at_most(number.into(), "reference")? as u32;
            if back == 0 {
                return Err(Error::damaged(
                    "index",
                    "a block that refers to itself",
                    "references to earlier blocks",
                ));
            }
            references.push(number - back);
        }
        let first = from.at_most(u32::MAX.into(), "timestamp")? as u32;
        let last = from.at_most(u32::MAX.into(), "timestamp")? as u32;
        let gtids = str::from_utf8(from.bytes()?).ok().and_then(|text| text.parse().ok());
        Ok(BlockEntry {
            log,
            offset,
            size,
            at,
            packed_size,
            crc32,
            continues,
            method,
            references,
            times: (last > 0).then_some((first, last)),
            gtids: gtids
                .ok_or_else(|| Error::damaged("index", "a GTID set that can't be read", "a GTID set"))?,
        })
    }

    /// The entry for a piece of a log; its place in the object is not known yet.
    pub(crate) fn of(piece: &CutPiece) -> BlockEntry {
        let mut entry = BlockEntry {
            log: 0,
            offset: piece.offset,
            size: piece.log.len() as u64,
            at: 0,
            packed_size: 0,
            crc32: 0,
            continues: piece.continues,
            method: Method::Bytes,
            references: Vec::new(),
            times: None,
            gtids: GtidSet::default(),
        };
        for event in events(&piece.log, piece.offset) {
            let Ok(header) = EventHeader::decode(event) else { continue };
            if header.timestamp > 0 {
                let (first, last) = entry.times.unwrap_or((header.timestamp, header.timestamp));
                entry.times = Some((first.min(header.timestamp), last.max(header.timestamp)));
            }
            if let Some(gtid) = gtid_of(event) {
                entry.gtids.add(gtid);
            }
        }
        entry
    }
}
