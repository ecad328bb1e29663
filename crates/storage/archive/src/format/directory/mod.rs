//! The directory of a segment: the transactions of each block, by column, so that questions about transactions open no block.
//! It stands once in an object, after the contents, since version 11. If it is lost, readers go over the blocks, and nothing
//! else is lost.
//!
//! ```text
//! blocks, as many as the index has; each:
//!   size     varint  of what follows; 0: its transactions aren't told
//!   flags    1       1: the first transaction began in an earlier block
//!   groups   1       which groups follow, as bits
//!   count    varint  transactions
//!   tables   varint  count; each: varint, a table of the contents with its name
//!   groups, the lowest bit first; each: bytes, length, then its columns. Of steps, marked *, the first is a varint,
//!            signed, before the column of the others
//!   column   1: 0 number by number, varints, signed | 1 numbers.rs; then its numbers
//!
//! bit  group
//! 1    shapes    count varint; columns: events, overhead, ending, count of tables of each shape;
//!                table, inserted, updated, deleted of each of those; then of each transaction: its shape
//! 2    gtids     count varint of sources; each: 1: 0 no GTID event | 1 anonymous | 2 server: 16 its uuid, bytes its tag;
//!                columns: source, number minus the one before *
//! 4    servers   column: server id
//! 8    logged    column: timestamp of the first event minus the one before *
//! 16   sizes     columns: bytes; position minus the end of the transaction before *
//! 32   threads   column: thread plus 1; 0: none
//! 64   times     columns: when it was committed here minus the one before *; when it was committed first minus that
//!
//! ending  0 open | 1 would be compressed | 2 and more: why not, as `REASONS` has them
//! ```
//!
//! A block's directory takes at most one part in [`PART`] of the packed block, or [`ROOM_MIN`]. Groups take their room in the order of
//! their bits, and one for which there is none left is left out. Times of small transactions often are: a reader takes them from the
//! block's streams of GTID events.
//!
//! - `groups`: which columns stand together
//! - `coded`: a block's directory as it is stored; `decoder`: the reverse, of bytes that may lie

mod coded;
mod decoder;
mod groups;

use binlogz_binlog::header::HEADER_SIZE;

use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};
use crate::format::BlockEntry;
use crate::format::contents::ListedTable;
use crate::log::directory::BlockDirectory;

pub(crate) use coded::CodedDirectory;
use decoder::DirectoryDecoder;
use groups::DirectoryGroup;
pub use groups::DirectoryGroups;

/// A directory takes at most this part of its packed block: with lengths and the index, less than 2 %.
const PART: u64 = 52;
/// The least room for the directory of a block, in bytes, however small the block is.
const ROOM_MIN: u64 = 512;

/// The most bytes of a block's directory, for a block of this packed size.
pub(crate) fn room(packed_size: u64) -> u64 {
    (packed_size / PART).max(ROOM_MIN)
}

/// Codes of a column: number by number, or as numbers.rs has it.
const EACH: u8 = 0;
const PACKED: u8 = 1;
const OPEN: i64 = 0;
const COMPRESSIBLE: i64 = 1;
const REASONS_BEGIN: i64 = 2;

/// Encodes the directory of an object: those of its blocks.
pub(crate) fn encode(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    blocks.iter().for_each(|block| varint::put_bytes(&mut out, block));
    out
}

/// The directory of an object, as it is stored: a block's is decoded when it is asked for.
#[derive(Debug)]
pub struct StoredDirectory {
    bytes: Vec<u8>,
    /// Where that of each block is.
    blocks: Vec<(usize, usize)>,
}

impl StoredDirectory {
    /// The directory of an object whose index has this many blocks.
    pub(crate) fn new(bytes: Vec<u8>, count: usize) -> Result<Self> {
        let mut from = Taker::new(&bytes);
        let mut blocks = Vec::new();
        for _ in 0..count {
            let size = from.bytes().map(<[u8]>::len);
            let size = size.map_err(|_| damaged("a block beyond its end", "the blocks that it has"))?;
            blocks.push((bytes.len() - from.left() - size, size));
        }
        match from.left() {
            0 => Ok(StoredDirectory { bytes, blocks }),
            left => Err(damaged(format!("{left} bytes after the last block"), "none")),
        }
    }

    fn of_block(&self, number: u32) -> &[u8] {
        let place = self.blocks.get(number as usize);
        place.and_then(|&(at, size)| self.bytes.get(at..)?.get(..size)).unwrap_or_default()
    }

    /// The groups that are there of a block.
    pub(crate) fn groups(&self, number: u32) -> DirectoryGroups {
        DirectoryGroups(self.of_block(number).get(1).copied().unwrap_or_default())
    }

    /// The directory of a block, with those of these groups that are there; `None`: it isn't told. `tables` are those of the object's contents.
    pub(crate) fn block(
        &self,
        number: u32,
        entry: &BlockEntry,
        tables: &[ListedTable],
        wanted: DirectoryGroups,
    ) -> Result<Option<BlockDirectory>> {
        let bytes = self.of_block(number);
        if bytes.is_empty() {
            return Ok(None);
        }
        let decoder = DirectoryDecoder { entry, count_max: entry.size as usize / HEADER_SIZE };
        decoder.decode(bytes, tables, wanted).map(Some)
    }
}

fn damaged(found: impl Into<std::borrow::Cow<'static, str>>, expected: &'static str) -> Error {
    Error::damaged("directory of transactions", found, expected)
}

#[cfg(test)]
mod tests {
    use binlogz_payload::Ineligible;

    use super::coded::code_of;
    use super::decoder::ending_of;
    use super::*;
    use crate::block::Method;
    use crate::log::directory::{
        DirectoryColumns, DirectoryTable, DirectoryWalk, PartEnding, ShapeRows, TransactionShape,
    };
    use crate::log::{Cutter, events};

    fn entry(offset: u64, size: usize) -> BlockEntry {
        BlockEntry { offset, size: size as u64, method: Method::Columns, ..BlockEntry::lost() }
    }

    /// The tables of a directory as the contents list them.
    fn listed(directory: &BlockDirectory) -> Vec<ListedTable> {
        let tables = directory.tables.iter().map(|table| ListedTable {
            database: table.database.clone(),
            table: table.table.clone(),
            key: None,
            definition: None,
        });
        tables.collect()
    }

    /// The directory of a log of a server, and the tables of its contents.
    fn sample() -> (BlockDirectory, BlockEntry, Vec<ListedTable>) {
        let path = format!("{}/sample/binlog.000001", env!("CARGO_MANIFEST_DIR"));
        let log = std::fs::read(path).unwrap();
        let mut cutter = Cutter::new(&log[..]);
        let piece = cutter.next_piece().unwrap().unwrap();
        assert!(cutter.next_piece().unwrap().is_none());
        let directory = piece.directory.unwrap();
        let tables = listed(&directory);
        (directory, entry(0, log.len()), tables)
    }

    fn told(directory: &BlockDirectory, room: u64) -> Vec<u8> {
        let number = |table: &DirectoryTable| directory.tables.iter().position(|known| known == table);
        let coded = CodedDirectory::of(directory, 0).unwrap();
        coded.told(room, &|table| number(table).map(|number| number as u32))
    }

    #[test]
    fn every_reason_has_a_number() {
        for (place, reason) in Ineligible::ALL.into_iter().enumerate() {
            let code = code_of(PartEnding::Plain(reason));
            assert_eq!((code, ending_of(code).unwrap()), (2 + place as i64, PartEnding::Plain(reason)));
        }
        assert!(ending_of(14).is_err() && ending_of(-1).is_err() && ending_of(i64::MAX).is_err());
    }

    #[test]
    fn a_directory_comes_back_and_cut_ones_are_errors() {
        let (directory, entry, tables) = sample();
        assert!(directory.len() >= 10 && !directory.tables.is_empty(), "{directory:?}");
        let bytes = told(&directory, 1 << 20);
        let stored = StoredDirectory::new(encode(&[Vec::new(), bytes.clone()]), 2).unwrap();
        assert!(stored.block(0, &entry, &tables, DirectoryGroups::ALL).unwrap().is_none());
        let back = stored.block(1, &entry, &tables, DirectoryGroups::ALL).unwrap();
        assert_eq!((stored.groups(1), back), (DirectoryGroups::ALL, Some(directory.clone())));
        for group in [DirectoryGroups::GTIDS, DirectoryGroups::SIZES, DirectoryGroups::TIMES] {
            let back = stored.block(1, &entry, &tables, group).unwrap().unwrap();
            assert_eq!(back, directory.clone().only(group.with(DirectoryGroups::SHAPES)));
        }
        for length in 1..bytes.len() {
            let decoder = DirectoryDecoder { entry: &entry, count_max: 1 << 20 };
            assert!(decoder.decode(&bytes[..length], &tables, DirectoryGroups::ALL).is_err(), "{length}");
        }
        assert!(StoredDirectory::new(encode(&[bytes]), 2).is_err());
    }

    /// The directory of transactions that all have one shape.
    fn of_one_shape(transactions: usize, events: u64, tables: usize) -> BlockDirectory {
        let rows = vec![ShapeRows { table: 0, counts: [1, 0, 0] }; tables];
        let ending = PartEnding::Compressible;
        BlockDirectory {
            tables: vec![DirectoryTable { database: b"shop".to_vec(), table: b"orders".to_vec() }],
            shapes: vec![TransactionShape { events, overhead: 0, ending, rows }],
            columns: DirectoryColumns { shape: vec![0; transactions], ..DirectoryColumns::default() },
            ..BlockDirectory::default()
        }
    }

    /// A few bytes tell the shape of very many transactions.
    #[test]
    fn transactions_have_no_more_events_or_tables_than_their_block_has_room_for() {
        let entry = entry(0, 1000 * HEADER_SIZE);
        for (events, of_tables) in [(10, 1), (1, 10)] {
            for transactions in [100, 101, 1000] {
                let directory = of_one_shape(transactions, events, of_tables);
                let tables = listed(&directory);
                let bytes = told(&directory, 1 << 20);
                assert!(bytes.len() < 200, "{}", bytes.len());
                let stored = StoredDirectory::new(encode(&[bytes]), 1).unwrap();
                match stored.block(0, &entry, &tables, DirectoryGroups::SHAPES) {
                    Ok(found) => assert_eq!((transactions, found), (100, Some(directory))),
                    Err(error) => {
                        let found = format!("{} events of transactions", transactions * 10);
                        assert!(transactions > 100 && error.to_string().contains(&found), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let (directory, entry, tables) = sample();
        let size = told(&directory, 1 << 20).len() as u64;
        let mut last = DirectoryGroups::ALL;
        for room in (0..=size).rev() {
            let bytes = told(&directory, room);
            assert!(bytes.len() as u64 <= room);
            let stored = StoredDirectory::new(encode(&[bytes]), 1).unwrap();
            let groups = stored.groups(0);
            if groups != last {
                let back = stored.block(0, &entry, &tables, DirectoryGroups::ALL).unwrap();
                assert_eq!(back, groups.has(DirectoryGroups::SHAPES).then(|| directory.clone().only(groups)));
                last = groups;
            }
        }
        assert_eq!(last, DirectoryGroups::default());
    }

    /// A log is cut anywhere: what is told of the parts is what is told of the whole.
    #[test]
    fn transactions_in_parts_have_the_events_of_the_whole() {
        let path = format!("{}/sample/binlog.000001", env!("CARGO_MANIFEST_DIR"));
        let log = std::fs::read(path).unwrap();
        let (whole, ..) = sample();
        let ends: Vec<usize> = events::events(&log, 0)
            .scan(binlogz_binlog::MAGIC.len(), |end, event| {
                *end += event.len();
                Some(*end)
            })
            .collect();
        let events_of =
            |directory: &BlockDirectory| -> u64 { directory.entries().map(|entry| entry.shape.events).sum() };
        let mut open = 0;
        for &at in &ends[2..] {
            let mut walk = DirectoryWalk::new(&events::head(&log));
            let Some(first) = walk.take(&log[..at], 0, false) else { continue };
            let continues = first.entries().last().is_some_and(|last| last.shape.ending == PartEnding::Open);
            let second = walk.take(&log[at..], at as u64, continues).unwrap();
            open += usize::from(continues);
            assert_eq!(events_of(&first) + events_of(&second), events_of(&whole), "{at}");
            assert_eq!(first.len() + second.len() - usize::from(continues), whole.len(), "{at}");
        }
        assert!(open > 10, "{open}");
    }
}
