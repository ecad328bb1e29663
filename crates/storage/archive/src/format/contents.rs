//! The contents of a segment's blocks: tables, numbers of rows, keys, times of commit. A reader that looks for something
//! skips blocks that can't have it. The contents stand once in an object, before the index. If they are lost, every block
//! may hold anything, and nothing else is lost.
//!
//! ```text
//! size    varint  of what follows, unpacked: one zstd frame of
//!   definitions, since version 9:
//!           varint  count; each:
//!     columns  bytes   length, then the end of a table map's body, from its count of columns on
//!   tables  varint  count; each:
//!     database, table  bytes   length, then the name
//!     key      1       0: none is known; 1: the key column is there
//!     column   varint  its number in the table, from 0
//!     name     bytes   length, then its name; empty if it is not logged
//!     definition
//!              varint  since version 9: which of the definitions it has, from 1; 0: it is not told
//!   blocks, as many as the index has; each:
//!     flags    1       1: may hold anything | 2: has statements | 4: ends XA transactions | 8: has events in no transaction
//!                      | 16: it is told where it stood among payloads | 32: each transaction that begins in it has a GTID
//!     origin   varint  if so: where it begins in the log with its payloads
//!     first    varint  the earliest commit, in seconds since 1970; 0: none is known
//!     last     varint  the latest, minus the earliest
//!     tail     bytes   length, then its last events, if they are in no transaction
//!     tables   varint  count; each:
//!       number varint  of the table, minus that of the one before
//!       rows   varint  inserted, then updated, then deleted
//!       keys   1       1: their range follows | 2: they are in the filter | 4: they are texts, not numbers; 0: any
//!       low    varint  signed: the smallest key
//!       span   varint  the largest, minus the smallest
//!     filter           of all keys that are in it (keys.rs)
//! ```
//!
//! The key column is the first of the primary key, where the log tells it (binlog_row_metadata = FULL), else the
//! first column.

mod findings;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use binlogz_binlog::event::{Bitmap, OptionalMetadata, TableId, TableMapEvent, TableMapFlags};
use binlogz_binlog::row::{Cell, TableSchema};

use crate::codec::varint::{self, Taker};
use crate::codec::zstd;
use crate::error::{Error, Result};
use crate::format::keys::{Filter, Key, hash_of_table};
use crate::format::version::VERSION_DEFINITIONS;

pub(crate) use findings::BlockFindings;

/// The most bytes of contents.
const SIZE_MAX: u64 = 256 << 20;

/// Contents of a segment's blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The tables; one whose definition changed is there several times.
    pub tables: Vec<ListedTable>,
    /// By block.
    pub blocks: Vec<BlockContents>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListedTable {
    /// Name of the table's database.
    pub database: Vec<u8>,
    /// Name of the table.
    pub table: Vec<u8>,
    /// The column whose values are in ranges and filters.
    pub key: Option<KeyColumn>,
    /// Columns of the table; `None`: archives of earlier versions don't tell them.
    pub definition: Option<TableDefinition>,
}

/// The columns of a table: what its table map has after the names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableDefinition(Arc<[u8]>);

/// The post-header length of the table maps that are made of definitions.
const TABLE_MAP_LENGTH: u8 = 8;

impl TableDefinition {
    /// The definition in the body of a table map; `None`: the map can't be read.
    fn of(body: &[u8], post_header_length: u8) -> Option<Self> {
        let map = TableMapEvent::decode(body, post_header_length).ok()?;
        let nameless = TableMapEvent { database: b"", table: b"", ..map }.encode(TABLE_MAP_LENGTH).ok()?;
        nameless.get(Self::front(b"", b"").len()..).map(|columns| TableDefinition(columns.into()))
    }

    /// The bytes of a table map before its columns.
    fn front(database: &[u8], table: &[u8]) -> Vec<u8> {
        let no_columns = TableMapEvent {
            table_id: TableId(0),
            flags: TableMapFlags::default(),
            database,
            table,
            column_types: b"",
            column_metadata: b"",
            null_bitmap: Bitmap(b""),
            optional_metadata: OptionalMetadata(b""),
        };
        // Its two counts are 0.
        let mut body = no_columns.encode(TABLE_MAP_LENGTH).unwrap_or_default();
        body.truncate(body.len().saturating_sub(2));
        body
    }
}

impl ListedTable {
    /// The table as its table map described it; `None`: the contents don't have its columns, or only the log tells what they say of
    /// them (MariaDB's tables with geometry columns).
    ///
    /// # Errors
    ///
    /// A definition that no table map has.
    pub fn schema(&self) -> Result<Option<TableSchema>> {
        let Some(TableDefinition(columns)) = &self.definition else { return Ok(None) };
        let body = [&TableDefinition::front(&self.database, &self.table), &**columns].concat();
        Ok(TableSchema::of_any_family(&TableMapEvent::decode(&body, TABLE_MAP_LENGTH)?)?)
    }
}

/// The column of a table's keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyColumn {
    /// The column's number, from 0.
    pub index: usize,
    /// The column's name, if it is logged.
    pub name: Option<Vec<u8>>,
}

/// Contents of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockContents {
    /// It has bytes that were not understood, so it may hold anything.
    pub is_opaque: bool,
    /// It has statements other than transaction control.
    pub has_statements: bool,
    /// It has XA COMMIT or XA ROLLBACK.
    pub ends_xa: bool,
    /// It has events in no transaction, other than those at a log's begin and `tail`.
    pub has_loose: bool,
    /// Each transaction that begins in it has a GTID. Archives of earlier versions don't tell.
    pub has_all_gtids: bool,
    /// When its transactions were committed, in seconds since 1970: the first and the last.
    pub commits: Option<(u64, u64)>,
    /// The block's last events, if they are in no transaction: the events that end a log.
    pub tail: Vec<u8>,
    /// The tables that have rows in the block.
    pub tables: Vec<TableContents>,
    /// Where the block begins in the log with its payloads, in bytes, if the log had some.
    pub origin: Option<u64>,
    filter: Option<Filter>,
}

/// Rows of a table in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableContents {
    /// The table's number in [`Contents::tables`].
    pub table: u32,
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// The smallest and the largest key, if all are numbers.
    range: Option<(i64, i64)>,
    /// Whether the keys are in the block's filter.
    in_filter: bool,
    /// Whether they are texts; otherwise, if they are in the filter, numbers.
    are_texts: bool,
}

/// Keys that are looked for: what they are in a column of numbers, and in one of texts. `None`: any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyProbe {
    /// Whole numbers from the first to the second; none, if the first is above the second.
    pub numbers: Option<(i128, i128)>,
    /// A text as [`Key::of_bytes`] makes it.
    pub text: Option<Key>,
}

/// A range of numbers is looked up number by number in a filter up to this many.
const POINTS_MAX: i128 = 64;

impl KeyProbe {
    /// Whether few values meet it: a text, or some numbers.
    pub fn is_narrow(&self) -> bool {
        let few = |(first, last): (i128, i128)| last.checked_sub(first).is_some_and(|span| span < POINTS_MAX);
        self.numbers.map_or(self.text.is_some(), few)
    }

    /// Whether a cell may meet it. One of a type that has no keys may.
    pub fn may_be(&self, cell: &Cell<'_>) -> bool {
        let Some(keys) = Key::of_cell(cell) else { return true };
        [keys.first, keys.second].iter().flatten().any(|key| match key {
            Key::Number(number) => self.numbers.is_none_or(|(first, last)| (first..=last).contains(number)),
            Key::Text(_) => self.text.as_ref().is_none_or(|text| text == key),
        })
    }
}

impl BlockContents {
    /// Nothing is known of it.
    pub(crate) fn unknown() -> Self {
        BlockContents {
            is_opaque: true,
            has_statements: true,
            ends_xa: true,
            has_loose: true,
            ..BlockContents::default()
        }
    }

    /// Whether a row of the table may have one of these keys.
    pub fn may_have(&self, name: &ListedTable, table: &TableContents, probes: &[KeyProbe]) -> bool {
        let seed = hash_of_table(&name.database, &name.table);
        let in_filter = |keys: &mut dyn Iterator<Item = Key>| match &self.filter {
            Some(filter) if table.in_filter => {
                let hashes: Vec<_> = keys.map(|key| key.hash(seed)).collect();
                filter.may_have(&hashes)
            }
            _ => true,
        };
        // The filter is gone through once, however many keys are looked for.
        let mut keys = Vec::new();
        for probe in probes {
            if table.are_texts {
                let Some(text) = &probe.text else { return true };
                keys.push(text.clone());
                continue;
            }
            let Some((mut first, mut last)) = probe.numbers else { return true };
            if let Some((low, high)) = table.range {
                (first, last) = (first.max(low.into()), last.min(high.into()));
            }
            if first > last {
                continue;
            }
            if last.checked_sub(first).is_none_or(|span| span >= POINTS_MAX) {
                return true;
            }
            keys.extend((first..=last).map(Key::Number));
        }
        !keys.is_empty() && in_filter(&mut keys.into_iter())
    }
}

impl Contents {
    /// Encodes the contents as an object has them: compressed, after their size.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let plain = self.encode_plain();
        let mut out = Vec::new();
        varint::put(&mut out, plain.len() as u64);
        out.extend(zstd::pack(&plain, zstd::Effort::Full)?);
        Ok(out)
    }

    /// The contents as bytes, before these are compressed.
    pub fn encode_plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        let mut numbers: HashMap<&TableDefinition, u64> = HashMap::new();
        let mut distinct: Vec<&TableDefinition> = Vec::new();
        for definition in self.tables.iter().filter_map(|table| table.definition.as_ref()) {
            numbers.entry(definition).or_insert_with(|| {
                distinct.push(definition);
                distinct.len() as u64
            });
        }
        varint::put(&mut plain, distinct.len() as u64);
        distinct.iter().for_each(|definition| varint::put_bytes(&mut plain, &definition.0));
        varint::put(&mut plain, self.tables.len() as u64);
        for ListedTable { database, table, key, definition } in &self.tables {
            varint::put_bytes(&mut plain, database);
            varint::put_bytes(&mut plain, table);
            plain.push(key.is_some().into());
            if let Some(key) = key {
                varint::put(&mut plain, key.index as u64);
                varint::put_bytes(&mut plain, key.name.as_deref().unwrap_or_default());
            }
            let number = definition.as_ref().and_then(|definition| numbers.get(definition));
            varint::put(&mut plain, number.copied().unwrap_or_default());
        }
        self.blocks.iter().for_each(|block| block.encode(&mut plain));
        plain
    }

    /// Decodes the contents of an object of this version, whose index has this many blocks.
    pub(crate) fn decode(bytes: &[u8], version: u32, blocks: usize) -> Result<Contents> {
        let mut front = Taker::new(bytes);
        let size = front.at_most(SIZE_MAX, "size of the contents")?;
        let plain = zstd::unpack(bytes.get(bytes.len() - front.left()..).unwrap_or_default(), size)?;
        Contents::decode_plain(&plain, version, blocks)
    }

    /// Decodes contents that are not compressed, for an object of this version and an index of this many blocks.
    ///
    /// # Errors
    ///
    /// Bytes that are no contents of this many blocks.
    pub fn decode_plain(plain: &[u8], version: u32, blocks: usize) -> Result<Contents> {
        let mut from = Taker::new(plain);
        let has_definitions = version >= VERSION_DEFINITIONS;
        let mut definitions: Vec<TableDefinition> = Vec::new();
        if has_definitions {
            for _ in 0..from.at_most(plain.len() as u64, "count of definitions")? {
                definitions.push(TableDefinition(from.bytes()?.into()));
            }
        }
        let mut tables = Vec::new();
        for _ in 0..from.at_most(plain.len() as u64, "count of tables")? {
            let database = from.bytes()?.to_vec();
            let table = from.bytes()?.to_vec();
            let key = match from.byte()? {
                0 => None,
                _ => {
                    let index = from.at_most(u64::from(u16::MAX), "number of a column")?;
                    Some(KeyColumn {
                        index,
                        name: Some(from.bytes()?.to_vec()).filter(|name| !name.is_empty()),
                    })
                }
            };
            let definition = match has_definitions {
                true => from.at_most(definitions.len() as u64, "number of a definition")?.checked_sub(1),
                false => None,
            };
            let definition = definition.and_then(|number| definitions.get(number)).cloned();
            tables.push(ListedTable { database, table, key, definition });
        }
        let blocks = (0..blocks).map(|_| BlockContents::decode(&mut from, tables.len()));
        let blocks = blocks.collect::<Result<_>>()?;
        match from.left() {
            0 => Ok(Contents { tables, blocks }),
            left => Err(Error::damaged("contents", format!("{left} bytes after the last block"), "none")),
        }
    }
}

/// Flags as a byte, the first in the lowest bit.
fn flags_of(flags: &[bool]) -> u8 {
    flags.iter().rev().fold(0, |flags, &flag| flags << 1 | u8::from(flag))
}

/// Numbers the tables of a segment in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct TableNumbers(BTreeMap<ListedTable, u32>);

impl TableNumbers {
    pub(crate) fn of(&mut self, name: ListedTable) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name).or_insert(next)
    }

    /// The numbers of a block's tables by their names: the first, of a table that has several.
    pub(crate) fn names_of(&self, block: &BlockContents) -> HashMap<(&[u8], &[u8]), u32> {
        let of_block: HashSet<u32> = block.tables.iter().map(|table| table.table).collect();
        let mut names = HashMap::new();
        for (table, number) in self.0.iter().filter(|(_, number)| of_block.contains(number)) {
            let known = names.entry((table.database.as_slice(), table.table.as_slice())).or_insert(*number);
            *known = (*known).min(*number);
        }
        names
    }

    /// The tables by their numbers.
    pub(crate) fn into_tables(self) -> Vec<ListedTable> {
        let mut tables: Vec<_> = self.0.into_iter().collect();
        tables.sort_by_key(|(_, number)| *number);
        tables.into_iter().map(|(name, _)| name).collect()
    }
}

impl BlockContents {
    fn encode(&self, out: &mut Vec<u8>) {
        let has_origin = self.origin.is_some();
        out.push(flags_of(&[
            self.is_opaque,
            self.has_statements,
            self.ends_xa,
            self.has_loose,
            has_origin,
            self.has_all_gtids,
        ]));
        if let Some(origin) = self.origin {
            varint::put(out, origin);
        }
        let (first, last) = self.commits.unwrap_or_default();
        varint::put(out, first);
        varint::put(out, last - first);
        varint::put_bytes(out, &self.tail);
        varint::put(out, self.tables.len() as u64);
        let mut before = 0;
        for table in &self.tables {
            varint::put(out, (table.table - before).into());
            before = table.table;
            for rows in [table.inserted, table.updated, table.deleted] {
                varint::put(out, rows);
            }
            let flags = [table.range.is_some(), table.in_filter, table.are_texts];
            out.push(flags_of(&flags));
            if let Some((low, high)) = table.range {
                varint::put_signed(out, low);
                varint::put(out, high.wrapping_sub(low) as u64);
            }
        }
        Filter::encode(self.filter.as_ref(), out);
    }

    fn decode(from: &mut Taker<'_>, tables: usize) -> Result<BlockContents> {
        let flags = from.byte()?;
        let has = |bit: u8| flags >> bit & 1 == 1;
        let origin = if has(4) { Some(from.number()?) } else { None };
        let first = from.number()?;
        let span = from.number()?;
        let tail = from.bytes()?.to_vec();
        let count = from.at_most(tables as u64, "count of tables")?;
        let mut number = 0u64;
        let mut there = Vec::new();
        for _ in 0..count {
            number = number.saturating_add(from.number()?);
            if number >= tables as u64 {
                return Err(Error::damaged("contents", format!("table {number}"), "a table that is there"));
            }
            let inserted = from.number()?;
            let updated = from.number()?;
            let deleted = from.number()?;
            let keys = from.byte()?;
            let range = match keys & 1 {
                1 => {
                    let low = from.signed()?;
                    Some((low, low.wrapping_add(from.number()? as i64)))
                }
                _ => None,
            };
            let table = number as u32;
            let in_filter = keys & 2 > 0;
            let are_texts = keys & 4 > 0;
            there.push(TableContents { table, inserted, updated, deleted, range, in_filter, are_texts });
        }
        Ok(BlockContents {
            is_opaque: has(0),
            has_statements: has(1),
            ends_xa: has(2),
            has_loose: has(3),
            has_all_gtids: has(5),
            commits: (first > 0).then_some((first, first.saturating_add(span))),
            tail,
            tables: there,
            origin,
            filter: Filter::decode(from)?,
        })
    }
}
