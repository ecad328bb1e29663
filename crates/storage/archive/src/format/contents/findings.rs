//! Goes through the events of a block for its [`BlockContents`]: tables, rows, keys, commits. Then chooses what is told of them: ranges and
//! filters of keys take a small part of the block's packed size.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, LeftOutStatement, LeftOutTable, PostHeaderLengths, QueryEvent, RowsEvent, RowsFlags,
    RowsKind, TableId, TableMapEvent,
};
use binlogz_binlog::row::{Row, RowDecoder, TableSchema, TableSchemas};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{ChangeContent, EventClass, EventHeader, EventType, MAGIC};

use super::{BlockContents, KeyColumn, ListedTable, TableContents, TableDefinition};
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
/// The most keys of a block whose hashes are held.
const KEYS_MAX: usize = 1 << 20;

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
                // A reader has to be told that rows of a table are missing, or statements about one.
                EventClass::Ignorable
                    if LeftOutTable::decode(body).is_some() || LeftOutStatement::decode(body).is_some() =>
                {
                    return None;
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
