//! A worker's treatment of a batch: the events as they are, and beside those of rows the changes, each with its key.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::event::{
    PostHeaderLengths, QueryEvent, RowsEvent, RowsFlags, RowsKind, TableId, TableMapEvent, TableMapFlags,
};
use binlogz_binlog::row::{Row, RowDecoder, TableSchema};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventClass, EventType};
use binlogz_flow::events::{BatchItem, Event, EventBatch, TableEvent, WorkerTables};
use binlogz_payload::{Spool, SpoolMemory};
use binlogz_schema::HistoryPlace;

use super::border::FoldBorder;
use super::numbers::NumbersOfRows;
use super::sides::SideBytes;
use super::tables::{FoldTables, KeysThen, TableToFold};
use crate::choose::Operation;
use crate::digest::Digests;
use crate::pass::{CarryingKeys, Error, EventOfParent, KeysOfEvent, changes_below, shortened};
use crate::record::{FoldRecord, FoldTableFields, PassedEvent, kept_map};

/// Tables that a worker remembers: more than a transaction usually has.
const REMEMBERED_MAX: usize = 256;

/// A worker, for all its batches of a log.
pub(super) struct FoldWorker<'o> {
    tables: Option<&'o FoldTables>,
    keys: KeysThen<'o>,
    digests: &'o Digests,
    log: u64,
    memory: &'o SpoolMemory,
    takes_numbers: bool,
    maps_in_force: WorkerTables,
    decoder: RowDecoder,
    /// The table maps in force, as they are kept.
    maps: HashMap<TableId, Vec<u8>>,
    met: Vec<MetTable>,
    /// How many tables the batch's records have.
    told: u32,
    sides: SideBytes,
}

/// A table that the worker has met.
struct MetTable {
    schema: Arc<TableSchema>,
    era: usize,
    table: TableToFold,
    fields: Vec<u8>,
    /// Its place among the tables of the batch's records.
    number: Option<u32>,
}

/// A reason not to fold a transaction, and what it has.
type BorderWords = (FoldBorder, String);

impl<'o> FoldWorker<'o> {
    pub(super) fn new(
        tables: Option<&'o FoldTables>,
        digests: &'o Digests,
        (log, workers): (u64, usize),
        (memory, takes_numbers): (&'o SpoolMemory, bool),
    ) -> Self {
        FoldWorker {
            tables,
            keys: tables.and_then(FoldTables::keys_then),
            digests,
            log,
            memory,
            takes_numbers,
            maps_in_force: WorkerTables::one_of(workers),
            decoder: RowDecoder::new(),
            maps: HashMap::new(),
            met: Vec::new(),
            told: 0,
            sides: SideBytes::default(),
        }
    }

    /// The records of a batch, up to the first event that can't be read, which fails the batch.
    pub(super) fn batch(&mut self, batch: &mut EventBatch<'_>) -> Result<Spool, Error> {
        let mut records = Spool::new(self.memory, Vec::new());
        self.told = 0;
        self.met.iter_mut().for_each(|met| met.number = None);
        if batch.log().description.is_mariadb() {
            let line = "the log is MariaDB's, expected one of MySQL: only those are folded";
            return Err(Error::Refused(line.to_owned()));
        }
        match self.events(batch, &mut records) {
            Ok(()) => Ok(records),
            Err(Error::Log(error)) => {
                batch.fail(error);
                Ok(records)
            }
            Err(other) => Err(other),
        }
    }

    fn events(&mut self, batch: &mut EventBatch<'_>, records: &mut Spool) -> Result<(), Error> {
        self.maps_in_force.begin(batch)?;
        self.maps.clear();
        let lengths = &batch.log().lengths;
        for body in &batch.carried().table_maps {
            self.take_map(body, lengths)?;
        }
        let mut has_unread = false;
        while let Some(item) = batch.next_item() {
            match item {
                BatchItem::Event(event) => self.event(&event, records)?,
                BatchItem::PayloadEnd(_) => FoldRecord::End.put(records)?,
            }
            if !has_unread && batch.has_unread() {
                has_unread = true;
                FoldRecord::Unread.put(records)?;
            }
        }
        Ok(())
    }

    fn take_map(&mut self, body: &[u8], lengths: &PostHeaderLengths) -> binlogz_binlog::Result<()> {
        let mut map = TableMapEvent::decode(body, lengths.of(EventType::TABLE_MAP))?;
        // Said of an INSERT of a child and not of its DELETE, and only for an applier that checks foreign keys: no other table.
        map.flags.0 &= !TableMapFlags::REFERRED_FK_DB.0;
        self.maps.insert(map.table_id, kept_map(&map, lengths.family())?);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, records: &mut Spool) -> Result<(), Error> {
        let event_type = event.header.event_type;
        let table = self.maps_in_force.event(event)?;
        let passed = PassedEvent {
            timestamp: event.header.timestamp,
            event_type,
            flags: event.header.flags,
            body: event.body,
        };
        if event_type == EventType::PREVIOUS_GTIDS {
            FoldRecord::Previous(event.body).put(records)?;
        }
        if event.begins_transaction() {
            FoldRecord::Begin(event.position.offset, passed).put(records)?;
        }
        if goes_through(event_type.class()) {
            check_lengths(event)?;
            FoldRecord::Event(passed).put(records)?;
        }
        if event_type == EventType::TABLE_MAP {
            self.take_map(event.body, &event.log.lengths).map_err(|error| event.error(error))?;
        }
        if let Some(border) = border_of(event)? {
            put_border(&border, records)?;
        }
        if let Some(TableEvent::Rows(schema, rows)) = table {
            self.rows(event, (&schema, &rows), records)?;
            if rows.flags.contains(RowsFlags::STMT_END) {
                FoldRecord::StatementEnd.put(records)?;
            }
        }
        if event.ends_transaction() {
            FoldRecord::End.put(records)?;
        }
        Ok(())
    }

    fn rows(
        &mut self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        records: &mut Spool,
    ) -> Result<(), Error> {
        if let Some(border) = border_of_rows(schema, rows) {
            return put_border(&border, records);
        }
        let place = HistoryPlace { log: self.log, offset: event.position.offset };
        let index = self.meet(schema, place, rows.table_id);
        let Some(met) = self.met.get_mut(index) else { return Ok(()) };
        let below = BelowLog::of(self.keys.as_ref(), (event, place), (&met.table, rows));
        let number = met.number(&mut self.told, records)?;
        let counts =
            self.takes_numbers && self.tables.is_some_and(|tables| !tables.changes_later(schema, place));
        let mut numbers = if counts { NumbersOfRows::of(schema) } else { NumbersOfRows::default() };
        let mut decoded = match self.decoder.rows(schema, rows) {
            Ok(decoded) => decoded,
            Err(error) => {
                event.unread(schema, &error);
                return Ok(());
            }
        };
        while let Some(row) = decoded.next_row().map_err(|error| Error::Log(event.error(error)))? {
            if let Some(border) = below.border(&met.table, &row) {
                return put_border(&border, records);
            }
            self.sides
                .take(&row, &met.table, self.digests)
                .map_err(|error| Error::Log(event.error(error)))?;
            numbers.take(row.after);
            FoldRecord::Change(number, self.sides.sides()).put(records)?;
        }
        for (column, largest) in numbers.largest() {
            FoldRecord::Number(number, column, largest.signed, largest.unsigned).put(records)?;
        }
        Ok(())
    }

    /// The place of a table among those met.
    fn meet(&mut self, schema: &Arc<TableSchema>, place: HistoryPlace, id: TableId) -> usize {
        let era = self.tables.map_or(0, |tables| tables.era(place));
        let is_it = |met: &MetTable| Arc::ptr_eq(&met.schema, schema) && met.era == era;
        if let Some(index) = self.met.iter().position(is_it) {
            return index;
        }
        if self.met.len() >= REMEMBERED_MAX {
            self.met.clear();
        }
        let table = match self.tables {
            Some(tables) => tables.at(schema, place),
            None => TableToFold::of_map(schema),
        };
        let fields = FoldTableFields {
            has_key: table.key.is_some(),
            database: &schema.database,
            table: &schema.table,
            map: self.maps.get(&id).map_or(&[], Vec::as_slice),
        };
        let fields = fields.to_bytes();
        self.met.push(MetTable { schema: Arc::clone(schema), era, table, fields, number: None });
        self.met.len() - 1
    }
}

impl MetTable {
    /// Its number in the batch's records, which get it if they don't have it.
    fn number(&mut self, told: &mut u32, records: &mut Spool) -> Result<u32, Error> {
        if let Some(number) = self.number {
            return Ok(number);
        }
        FoldRecord::Table(&self.fields).put(records)?;
        let number = *told;
        *told += 1;
        self.number = Some(number);
        Ok(number)
    }
}

/// What foreign keys may have done below the log with the rows of an event.
enum BelowLog {
    Nothing,
    /// The keys aren't known.
    Unknown,
    Keys(KeysOfEvent),
}

impl BelowLog {
    fn of(
        keys: Option<&CarryingKeys<'_>>,
        (event, place): (&Event<'_>, HistoryPlace),
        (table, rows): (&TableToFold, &RowsEvent<'_>),
    ) -> Self {
        if !changes_below(rows) {
            return BelowLog::Nothing;
        }
        let Some(keys) = keys.filter(|_| table.is_told) else { return BelowLog::Unknown };
        BelowLog::Keys(keys.of_event(&EventOfParent {
            source: &event.log.description,
            place,
            operation: Operation::of(rows.kind()),
            table: &table.written,
            // To which index a key referred that isn't known any more isn't known either: each UPDATE may have been carried on by it.
            told: None,
        }))
    }

    /// Why a row's transaction can't be folded: a foreign key changed other rows with it, or may have.
    fn border(&self, table: &TableToFold, row: &Row<'_, '_>) -> Option<BorderWords> {
        let border = match self {
            BelowLog::Nothing => return None,
            BelowLog::Unknown => FoldBorder::UnknownKeys,
            BelowLog::Keys(keys) => keys.of_row(row, true).next().map(|_| FoldBorder::Cascade)?,
        };
        Some((border, table.written.shown()))
    }
}

fn put_border((border, words): &BorderWords, records: &mut Spool) -> Result<(), Error> {
    Ok(FoldRecord::Border(border.code(), words.as_bytes()).put(records)?)
}

/// Whether an event belongs to a transaction that goes through as it is.
fn goes_through(class: EventClass) -> bool {
    match class {
        EventClass::Statement
        | EventClass::LoadStatement
        | EventClass::StatementValue
        | EventClass::LoadBlock
        | EventClass::LoadEnd
        | EventClass::RowsStatement
        | EventClass::TableMap
        | EventClass::Rows
        | EventClass::Commit => true,
        // The transaction gets another one.
        EventClass::Gtid | EventClass::MariadbGtid
        // Its events follow.
        | EventClass::Payload
        // Of MariaDB, whose logs are refused.
        | EventClass::CompressedStatement
        | EventClass::CompressedRows
        // They change nothing, or are told as unread.
        | EventClass::File
        | EventClass::FileNote
        | EventClass::Heartbeat
        | EventClass::Incident
        | EventClass::GroupContext
        | EventClass::GroupView
        | EventClass::Ignorable
        | EventClass::Dead
        | EventClass::Unknown => false,
    }
}

/// Checks that the log that is written announces the lengths that the event has.
fn check_lengths(event: &Event<'_>) -> Result<(), Error> {
    let event_type = event.header.event_type;
    let own = event.log.lengths.of(event_type);
    let written = PostHeaderLengths::default().of(event_type);
    if own == written {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "{event_type} at {}: its post-header has {own} bytes, expected {written}, as servers since 5.6 write it",
        event.position.offset
    )))
}

/// Why the transaction of an event that has no rows can't be folded.
fn border_of(event: &Event<'_>) -> Result<Option<BorderWords>, Error> {
    let event_type = event.header.event_type;
    if event_type.class().is_load_or_value() {
        return Ok(Some((FoldBorder::Statement, event_type.to_string())));
    }
    if event_type == EventType::XA_PREPARE {
        return Ok(Some((FoldBorder::Xa, "XA PREPARE".to_owned())));
    }
    if event_type.class() != EventClass::Statement {
        return Ok(None);
    }
    let query = QueryEvent::decode(event.body).map_err(|error| event.error(error))?;
    Ok(border_of_statement(&query))
}

fn border_of_statement(query: &QueryEvent<'_>) -> Option<BorderWords> {
    let words = || shortened(&String::from_utf8_lossy(query.statement));
    match StatementKind::of(query.statement) {
        StatementKind::Begin | StatementKind::Commit | StatementKind::Savepoint => None,
        StatementKind::Rollback | StatementKind::RollbackTo => Some((FoldBorder::RolledBack, words())),
        StatementKind::XaStart
        | StatementKind::XaEnd
        | StatementKind::XaPrepare
        | StatementKind::XaCommit
        | StatementKind::XaRollback => Some((FoldBorder::Xa, words())),
        StatementKind::Other => Some((FoldBorder::Statement, words())),
    }
}

/// Why the transaction of rows can't be folded: they lack columns.
fn border_of_rows(schema: &TableSchema, rows: &RowsEvent<'_>) -> Option<BorderWords> {
    let width = schema.columns().len();
    let is_whole = [Some(rows.columns), rows.columns_after]
        .into_iter()
        .flatten()
        .all(|columns| columns.count(width) == width);
    let border = match rows.kind() {
        RowsKind::PartialUpdate => FoldBorder::Differences,
        RowsKind::Write | RowsKind::Update | RowsKind::Delete if is_whole => return None,
        RowsKind::Write | RowsKind::Update | RowsKind::Delete => FoldBorder::Lacking,
    };
    let [database, table] = [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name));
    Some((border, format!("{database}.{table}")))
}
