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

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, Bitmap, OptionalMetadata, PostHeaderLengths, QueryEvent, RowsEvent, RowsFlags, RowsKind,
    TableId, TableMapEvent, TableMapFlags,
};
use binlogz_binlog::row::{Row, RowDecoder, TableSchema, TableSchemas};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{ChangeContent, EventClass, EventHeader, EventType, MAGIC};

use crate::codec::varint::{self, Taker};
use crate::codec::zstd;
use crate::error::{Error, Result};
use crate::format::keys::{Filter, Key, hash_of_table};
use crate::format::version::VERSION_DEFINITIONS;
use crate::log::CutPiece;
use crate::log::events::{self, frame, has_checksum};

/// Ranges and filters take at most this part of a packed block: with the rest, less than 1 %.
const PART: u64 = 128;
/// The least room for the contents of a block, in bytes, however small the block is.
const SIZE_MIN: u64 = 64;
/// Bytes of a table without its keys, packed.
const TABLE_SIZE: u64 = 4;
/// Bytes of a range, packed.
const RANGE_SIZE: u64 = 8;
/// The most bytes of events at a block's end that are kept here.
const TAIL_MAX: usize = 1 << 10;
/// The most bytes of contents.
const SIZE_MAX: u64 = 256 << 20;
/// The most keys of a block whose hashes are held.
const KEYS_MAX: usize = 1 << 20;

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
        probes.iter().any(|probe| {
            if table.are_texts {
                return probe.text.as_ref().is_none_or(|text| in_filter(&mut std::iter::once(text.clone())));
            }
            let Some((mut first, mut last)) = probe.numbers else { return true };
            if let Some((low, high)) = table.range {
                (first, last) = (first.max(low.into()), last.min(high.into()));
            }
            let few = last.checked_sub(first).is_some_and(|span| span < POINTS_MAX);
            first <= last && (!few || in_filter(&mut (first..=last).map(Key::Number)))
        })
    }
}

/// Everything found in a block, before it is known how much room there is to tell it.
#[derive(Debug, Default)]
pub(crate) struct BlockFindings {
    contents: BlockContents,
    tables: BTreeMap<ListedTable, Rows>,
    keys: usize,
    /// As in objects before [`VERSION_DEFINITIONS`]: tables in the order of their names, without definitions.
    is_old: bool,
}

/// A table's rows in the block.
#[derive(Debug, Default)]
struct Rows {
    /// How many tables had rows before it.
    place: usize,
    /// Inserted, updated, deleted.
    counts: [u64; 3],
    hashes: HashSet<u64>,
    range: Option<(i128, i128)>,
    has_text: bool,
    /// A row without a key, or one of another type.
    is_unknown: bool,
}

impl BlockFindings {
    /// Contents of a part of a log in an object of this version; `lengths` are those of its format description.
    pub(crate) fn of(piece: &CutPiece, lengths: Option<&PostHeaderLengths>, version: u32) -> BlockFindings {
        let mut found = BlockFindings { is_old: version < VERSION_DEFINITIONS, ..BlockFindings::default() };
        let whole = lengths.is_some_and(|lengths| found.events(piece, lengths).is_some());
        found.contents.is_opaque |= !whole;
        found
    }

    /// Takes the events; `None`: some can't be understood.
    fn events(&mut self, piece: &CutPiece, lengths: &PostHeaderLengths) -> Option<()> {
        let mut schemas = TableSchemas::new();
        let mut definitions = Definitions::default();
        for map in &piece.maps {
            definitions.note(&mut schemas, map, lengths)?;
        }
        let mut decoder = RowDecoder::new();
        let magic = if piece.offset == 0 && piece.log.starts_with(&MAGIC) { MAGIC.len() } else { 0 };
        let mut size = magic;
        let mut checksums = None;
        let mut is_head = piece.offset == 0;
        let mut tail = 0..0;
        let mut after_gtid = false;
        let mut without_gtid = false;
        for event in events::events(&piece.log, piece.offset) {
            let header = EventHeader::decode(event).ok()?;
            let event_type = header.event_type;
            let at = size;
            size += event.len();
            if event_type == EventType::FORMAT_DESCRIPTION && is_head {
                continue;
            }
            // One that has another checksum than its bytes, or none among others.
            if *checksums.get_or_insert(has_checksum(event)) != has_checksum(event) {
                return None;
            }
            if event_type == EventType::PREVIOUS_GTIDS && is_head {
                continue;
            }
            is_head = false;
            let body = frame(event)?.body();
            // Servers before 5.7.6 and MariaDB write no GTID event where there is no GTID.
            without_gtid |=
                event_type == EventType::ANONYMOUS_GTID || (!after_gtid && begins(event_type, body));
            after_gtid = event_type.is_gtid();
            match event_type.class() {
                EventClass::File if matches!(event_type, EventType::ROTATE | EventType::STOP) => {
                    self.contents.has_loose |= tail.end != at && !tail.is_empty();
                    tail = if tail.end == at { tail.start..size } else { at..size };
                }
                EventClass::TableMap => definitions.note(&mut schemas, body, lengths)?,
                EventClass::Statement => self.query(body, header.timestamp)?,
                EventClass::Commit => {}
                EventClass::RowsStatement if event_type == EventType::ROWS_QUERY => {}
                EventClass::Gtid => {
                    schemas.end_statement();
                    self.gtid(&frame(event)?, header.timestamp)?;
                }
                EventClass::Rows => {
                    let rows = RowsEvent::decode(event_type, body, lengths.of(event_type)).ok()?;
                    let schema = Arc::clone(schemas.get(rows.table_id).ok()?);
                    self.rows(&mut decoder, &schema, definitions.of(rows.table_id, &schema), &rows)?;
                    if rows.flags.contains(RowsFlags::STMT_END) {
                        schemas.end_statement();
                    }
                }
                EventClass::StatementValue | EventClass::LoadBlock | EventClass::LoadStatement => {
                    self.contents.has_statements = true;
                }
                // A reader has to meet these.
                EventClass::Payload | EventClass::CompressedStatement | EventClass::CompressedRows => {
                    return None;
                }
                EventClass::Incident | EventClass::Dead | EventClass::Unknown
                    if matches!(event_type.changes(), ChangeContent::Unread | ChangeContent::Lost) =>
                {
                    return None;
                }
                EventClass::File
                | EventClass::FileNote
                | EventClass::Heartbeat
                | EventClass::MariadbGtid
                | EventClass::LoadEnd
                | EventClass::RowsStatement
                | EventClass::Incident
                | EventClass::GroupContext
                | EventClass::GroupView
                | EventClass::Ignorable
                | EventClass::Dead
                | EventClass::Unknown => self.contents.has_loose = true,
            }
        }
        if tail.end == size && tail.len() <= TAIL_MAX {
            self.contents.tail = piece.log.get(tail).unwrap_or_default().to_vec();
        } else {
            self.contents.has_loose |= !tail.is_empty();
        }
        self.contents.has_all_gtids = !without_gtid;
        (size == piece.log.len()).then_some(())
    }

    fn committed(&mut self, second: u64) {
        if second > 0 {
            let (first, last) = self.contents.commits.unwrap_or((second, second));
            self.contents.commits = Some((first.min(second), last.max(second)));
        }
    }

    fn gtid(&mut self, event: &binlogz_binlog::EventFrame<'_>, timestamp: u32) -> Option<()> {
        let times = AnyGtidEvent::decode_frame(event).ok()?.and_then(|gtid| gtid.commit_timestamps());
        let time = times.map(|times| times.original.unwrap_or(times.immediate)).filter(|time| *time > 0);
        self.committed(time.map_or(timestamp.into(), |time| time / 1_000_000));
        Some(())
    }

    fn query(&mut self, body: &[u8], timestamp: u32) -> Option<()> {
        // In logs without GTID events, a transaction's time is that of its first statement.
        self.committed(timestamp.into());
        match StatementKind::of(QueryEvent::decode(body).ok()?.statement) {
            StatementKind::Other => self.contents.has_statements = true,
            StatementKind::XaCommit | StatementKind::XaRollback => self.contents.ends_xa = true,
            _ => {}
        }
        Some(())
    }

    fn rows(
        &mut self,
        decoder: &mut RowDecoder,
        schema: &TableSchema,
        definition: Option<TableDefinition>,
        event: &RowsEvent<'_>,
    ) -> Option<()> {
        let name = ListedTable {
            database: schema.database.to_vec(),
            table: schema.table.to_vec(),
            key: key_column(schema),
            definition: definition.filter(|_| !self.is_old),
        };
        let seed = hash_of_table(&name.database, &name.table);
        let key = name.key.as_ref().map(|key| key.index);
        let place = self.tables.len();
        let rows = self.tables.entry(name).or_insert_with(|| Rows { place, ..Rows::default() });
        let count = match event.kind() {
            RowsKind::Write => 0,
            RowsKind::Update | RowsKind::PartialUpdate => 1,
            RowsKind::Delete => 2,
        };
        let mut decoded = decoder.rows(schema, event).ok()?;
        while let Some(row) = decoded.next_row().ok()? {
            *rows.counts.get_mut(count)? += 1;
            if rows.is_unknown {
                continue;
            }
            let before = rows.hashes.len();
            rows.is_unknown = key.and_then(|key| rows.keys(&row, key, seed)).is_none();
            self.keys += rows.hashes.len() - before;
            if rows.is_unknown || self.keys > KEYS_MAX {
                rows.is_unknown = true;
                self.keys -= std::mem::take(&mut rows.hashes).len();
            }
        }
        Some(())
    }

    /// The contents to store about a block of this packed size. `number` gives the number of a table.
    pub(crate) fn told(self, packed_size: u64, number: &mut dyn FnMut(ListedTable) -> u32) -> BlockContents {
        let BlockFindings { mut contents, tables, is_old, .. } = self;
        if contents.is_opaque {
            return BlockContents { tail: contents.tail, ..BlockContents::unknown() };
        }
        let mut left = (packed_size / PART).max(SIZE_MIN);
        left = left.saturating_sub(tables.len() as u64 * TABLE_SIZE);
        let mut filtered: Vec<(usize, Vec<u64>)> = Vec::new();
        // In the order in which they come: so are the definitions of a table.
        let mut tables: Vec<_> = tables.into_iter().collect();
        if !is_old {
            tables.sort_unstable_by_key(|(_, rows)| rows.place);
        }
        for (name, rows) in tables {
            let [inserted, updated, deleted] = rows.counts;
            let number = number(name);
            let narrow =
                |(low, high): (i128, i128)| Some((i64::try_from(low).ok()?, i64::try_from(high).ok()?));
            let is_unknown = rows.is_unknown || rows.has_text && rows.range.is_some();
            let range = rows.range.filter(|_| !is_unknown).and_then(narrow).filter(|_| left >= RANGE_SIZE);
            left -= if range.is_some() { RANGE_SIZE } else { 0 };
            let keys = rows.hashes.len() as i128;
            // Nearly every number in the range is there: a filter would tell little more.
            let is_dense =
                range.is_some_and(|(low, high)| i128::from(high) - i128::from(low) < keys + keys / 4);
            if !is_unknown && !is_dense {
                filtered.push((contents.tables.len(), rows.hashes.into_iter().collect()));
            }
            contents.tables.push(TableContents {
                table: number,
                inserted,
                updated,
                deleted,
                range,
                in_filter: false,
                are_texts: rows.has_text && !is_unknown,
            });
        }
        // If there is no room for all, the tables of few keys come first.
        filtered.sort_by_key(|(place, hashes)| (hashes.len(), *place));
        let mut all: Vec<u64> = Vec::new();
        for (place, hashes) in filtered {
            if !Filter::fits((all.len() + hashes.len()) as u64, left) {
                break;
            }
            all.extend(hashes);
            if let Some(table) = contents.tables.get_mut(place) {
                table.in_filter = true;
            }
        }
        contents.filter = Filter::new(&all, left);
        contents.tables.sort_by_key(|table| table.table);
        contents
    }
}

impl Rows {
    /// Takes a row's keys; `None`: it has none that are known.
    fn keys(&mut self, row: &Row<'_, '_>, key: usize, seed: u64) -> Option<()> {
        let mut is_there = false;
        for image in [row.before, row.after].into_iter().flatten() {
            let Some(cell) = image.cell(key) else { continue };
            is_there = true;
            let keys = Key::of_cell(&cell)?;
            for key in [keys.first, keys.second].into_iter().flatten() {
                self.hashes.insert(key.hash(seed));
                match key {
                    Key::Number(number) => {
                        let (low, high) = self.range.unwrap_or((number, number));
                        self.range = Some((low.min(number), high.max(number)));
                    }
                    Key::Text(_) => self.has_text = true,
                }
            }
        }
        is_there.then_some(())
    }
}

/// The definitions of the tables in force.
#[derive(Debug, Default)]
struct Definitions(HashMap<TableId, (Arc<TableSchema>, Option<TableDefinition>)>);

impl Definitions {
    /// Takes a table map, which most of the time was there before.
    fn note(&mut self, schemas: &mut TableSchemas, body: &[u8], lengths: &PostHeaderLengths) -> Option<()> {
        let post_header_length = lengths.of(EventType::TABLE_MAP);
        let schema = schemas.note(body, lengths).ok()?;
        let id = TableMapEvent::decode_table_id(body, post_header_length).ok()?;
        if self.0.get(&id).is_none_or(|(known, _)| !Arc::ptr_eq(known, &schema)) {
            self.0.insert(id, (schema, TableDefinition::of(body, post_header_length)));
        }
        Some(())
    }

    fn of(&self, id: TableId, schema: &Arc<TableSchema>) -> Option<TableDefinition> {
        let (known, definition) = self.0.get(&id)?;
        definition.clone().filter(|_| Arc::ptr_eq(known, schema))
    }
}

/// Whether it is a BEGIN, which comes right after a transaction's GTID event.
fn begins(event_type: EventType, body: &[u8]) -> bool {
    event_type == EventType::QUERY
        && QueryEvent::decode(body)
            .is_ok_and(|query| StatementKind::of(query.statement) == StatementKind::Begin)
}

/// The first column of the primary key; else the first column.
fn key_column(schema: &TableSchema) -> Option<KeyColumn> {
    let columns = schema.columns();
    let first = |(_, column): &(usize, &binlogz_binlog::row::ColumnSchema)| {
        column.primary_key.is_some_and(|part| part.place == 0)
    };
    let (index, column) =
        columns.iter().enumerate().find(first).or_else(|| columns.iter().enumerate().next())?;
    Some(KeyColumn { index, name: column.name.as_deref().map(<[u8]>::to_vec) })
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
