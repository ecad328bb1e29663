//! A worker's treatment of a batch: it decodes the rows of chosen tables and lets a [`Renderer`] write them.

mod references;
mod rows;

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, PostHeaderLengths, RotateEvent, RowsEvent, RowsFlags, RowsQueryEvent, TableId,
    TableMapEvent,
};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::row::{RowDecoder, TableSchema, count_rows};
use binlogz_binlog::{EventClass, EventFrame, EventType};
use binlogz_flow::Error as FlowError;
use binlogz_flow::events::{BatchItem, Event, EventBatch, TableEvent, WorkerTables};
use binlogz_payload::{Spool, SpoolMemory};
use binlogz_schema::{HistoryPlace, SchemaFile};

use super::carried::CarryingKeys;
use super::carried_rows::EventOfParent;
use super::renderer::{FollowedTables, Renderer};
use super::tables_then::written_table;
use super::together::StatementTables;
use super::{Error, HistoryUse, Search};
use crate::choose::{Operation, Range, RowSelection};
use crate::record::{BatchRecord, EventAt, RecordTable, kept_map};
use crate::table::WrittenTable;
use rows::{RowChoice, choice_of};

/// The most bytes of an original statement that are kept.
const STATEMENT_SIZE_MAX: usize = 4 << 10;

/// A worker, for all its batches of a log.
pub(super) struct PassWorker<'o, R> {
    selection: &'o RowSelection,
    schema: Option<&'o SchemaFile>,
    history: Option<HistoryUse<'o>>,
    /// Which of the logs it is.
    log_number: u64,
    carrying: Option<&'o CarryingKeys<'o>>,
    renderer: &'o R,
    /// The offsets that were chosen.
    range: Range,
    memory: &'o SpoolMemory,
    tables: WorkerTables,
    decoder: RowDecoder,
    table: Option<WrittenTable>,
    /// Whether the records have the table.
    has_told_table: bool,
    /// Whether they have it as the table of images.
    has_told_images: bool,
    /// Whether the open transaction may be chosen, as far as its GTID tells.
    is_chosen: bool,
    /// The tables of the statement that passes.
    statement: StatementTables,
    /// The table maps in force, where they are needed.
    maps: HashMap<TableId, Vec<u8>>,
    /// The table map that passed last, of which the name is known.
    last_map: Vec<u8>,
    text: Vec<u8>,
}

impl<'o, R: Renderer> PassWorker<'o, R> {
    pub(super) fn new(
        search: &Search<'o, R>,
        (log_number, range): (u64, Range),
        memory: &'o SpoolMemory,
    ) -> Self {
        PassWorker {
            selection: search.selection,
            schema: search.schema,
            history: search.history,
            log_number,
            carrying: search.carrying,
            renderer: search.renderer,
            range,
            memory,
            tables: WorkerTables::one_of(search.workers),
            decoder: RowDecoder::new(),
            table: None,
            has_told_table: false,
            has_told_images: false,
            is_chosen: true,
            statement: StatementTables::default(),
            maps: HashMap::new(),
            last_map: Vec::new(),
            text: Vec::new(),
        }
    }

    /// The records of a batch, up to the first event that can't be read, which fails the batch.
    pub(super) fn batch(&mut self, batch: &mut EventBatch<'_>) -> Result<Spool, Error> {
        let mut records = Spool::new(self.memory, Vec::new());
        self.table = None;
        let done = self.events(batch, &mut records);
        let range = self.range;
        let selection = self.selection;
        let carrying = self.carrying;
        let follows_references = self.renderer.follows_references();
        batch.retain_unread(|unread| {
            // Somewhere in this second.
            let begin = i64::from(unread.timestamp) * 1_000_000;
            let end = begin + 1_000_000;
            let has_table = |(database, table): (&str, &str)| {
                let database = database.as_bytes();
                let table = table.as_bytes();
                selection.has_table(database, table)
                    || carrying.is_some_and(|keys| keys.has_parent(database, table))
                    || follows_references && carrying.is_some_and(|keys| keys.may_reach_from(database, table))
            };
            let is_followed = match (self.renderer.followed(), unread.table) {
                (Some(followed), Some((database, table))) => is_among(followed, database, table),
                (Some(_), None) => true,
                (None, _) => false,
            };
            if is_followed {
                return true;
            }
            (range.start..range.stop).contains(&unread.position.offset)
                && selection.start_time.is_none_or(|start| end > start)
                && selection.stop_time.is_none_or(|stop| begin < stop)
                && unread.table.is_none_or(has_table)
        });
        match done {
            Ok(()) => Ok(records),
            Err(Error::Log(error)) => {
                batch.fail(error);
                Ok(records)
            }
            Err(other) => Err(other),
        }
    }

    fn events(&mut self, batch: &mut EventBatch<'_>, records: &mut Spool) -> Result<(), Error> {
        self.tables.begin(batch)?;
        self.maps.clear();
        self.statement = StatementTables::default();
        let lengths = batch.log().lengths;
        for body in &batch.carried().table_maps {
            self.take_map(body, &lengths)?;
        }
        let carried = batch.carried().gtid.as_deref();
        let checksum_size = batch.log().context.framing.checksum().size();
        let frame = carried.and_then(|event| EventFrame::from_bytes(&event.bytes, checksum_size).ok());
        let gtid = frame.and_then(|frame| AnyGtidEvent::decode_frame(&frame).ok().flatten()?.gtid());
        self.is_chosen = frame.is_none() || self.may_have(gtid.as_ref());
        while let Some(item) = batch.next_item() {
            match item {
                BatchItem::Event(event) => self.event(&event, records)?,
                BatchItem::PayloadEnd(_) => BatchRecord::End.put(records)?,
            }
        }
        Ok(())
    }

    /// Takes a table map, if those are needed: for the tables of its statement, and to be kept.
    fn take_map(&mut self, body: &[u8], lengths: &PostHeaderLengths) -> binlogz_binlog::Result<()> {
        // Without names of tables all are chosen.
        let counts_others = self.renderer.counts_others() && !self.selection.tables.is_empty();
        let is_kept = self.renderer.needs_table_maps() || self.renderer.followed().is_some();
        if !counts_others && !is_kept {
            return Ok(());
        }
        let map = TableMapEvent::decode(body, lengths.of(EventType::TABLE_MAP))?;
        if counts_others {
            self.statement.map(&map, self.selection);
        }
        if is_kept {
            self.maps.insert(map.table_id, kept_map(&map, lengths.family())?);
        }
        Ok(())
    }

    /// Remembers the table of a map that passes, if tables were named.
    fn note_table(&mut self, body: &[u8], lengths: &PostHeaderLengths) -> binlogz_binlog::Result<()> {
        if self.selection.tables.is_empty() || self.last_map == body {
            return Ok(());
        }
        let map = TableMapEvent::decode(body, lengths.of(EventType::TABLE_MAP))?;
        self.selection.passed.add(map.database, map.table);
        body.clone_into(&mut self.last_map);
        Ok(())
    }

    fn may_have(&self, gtid: Option<&Gtid>) -> bool {
        self.selection.gtids.as_ref().is_none_or(|set| gtid.is_some_and(|gtid| set.contains(gtid)))
    }

    fn event(&mut self, event: &Event<'_>, records: &mut Spool) -> Result<(), Error> {
        let table = self.tables.event(event)?;
        if event.begins_transaction() {
            let gtid = AnyGtidEvent::decode(event.body, event.header.event_type);
            let gtid = gtid.map_err(|error| event.error(error))?.and_then(|gtid| gtid.gtid());
            self.is_chosen = self.may_have(gtid.as_ref());
            BatchRecord::Begin(event_at(event)).put(records)?;
            // Its statement may have changed the table.
            self.table.take_if(|_| self.history.is_some());
        }
        self.content(event, records)?;
        if !self.is_chosen && self.renderer.followed().is_none() {
            event.pass_over();
        }
        if let Some(TableEvent::Rows(schema, rows)) = table {
            self.rows_event(event, (&schema, &rows), records)?;
        }
        if event.ends_transaction() {
            BatchRecord::End.put(records)?;
        }
        Ok(())
    }

    /// Takes what an event says beside borders of transactions and rows.
    fn content(&mut self, event: &Event<'_>, records: &mut Spool) -> Result<(), Error> {
        let event_type = event.header.event_type;
        match event_type.class() {
            EventClass::TableMap => {
                self.take_map(event.body, &event.log.lengths).map_err(|error| event.error(error))?;
                self.note_table(event.body, &event.log.lengths).map_err(|error| event.error(error))?;
            }
            EventClass::Statement => BatchRecord::Query(event_at(event)).put(records)?,
            EventClass::LoadStatement => BatchRecord::LoadQuery(event_at(event)).put(records)?,
            EventClass::Commit if event_type == EventType::XA_PREPARE => {
                BatchRecord::XaPrepare(event_at(event)).put(records)?;
            }
            EventClass::File => put_event_of_file(event, records)?,
            EventClass::RowsStatement => self.rows_statement(event, records)?,
            // What is compressed comes expanded.
            EventClass::CompressedStatement
            | EventClass::CompressedRows
            | EventClass::Payload
            // They are looked at elsewhere.
            | EventClass::Rows
            | EventClass::Commit
            | EventClass::Gtid
            | EventClass::MariadbGtid
            // A statement is told of without the values and the file that it needs.
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            // They change nothing, or the batch says that they can't be read.
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Dead
            | EventClass::Unknown => {}
        }
        Ok(())
    }

    /// Passes on the statement of the rows that come.
    fn rows_statement(&self, event: &Event<'_>, records: &mut Spool) -> Result<(), Error> {
        if event.header.event_type == EventType::ROWS_QUERY {
            let statement = RowsQueryEvent::decode(event.body).map_err(|error| event.error(error))?.statement;
            BatchRecord::RowsQuery(beginning_of(statement)).put(records)?;
        }
        if event.header.event_type == EventType::MARIADB_ANNOTATE_ROWS && self.renderer.followed().is_some() {
            BatchRecord::Annotation(beginning_of(event.body)).put(records)?;
        }
        Ok(())
    }

    fn rows_event(
        &mut self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        records: &mut Spool,
    ) -> Result<(), Error> {
        if self.is_chosen {
            self.carried(event, (schema, rows), records)?;
        }
        self.parents_changed(event, (schema, rows), records)?;
        let is_followed = self.renderer.followed().is_some();
        let is_below = is_followed && changes_below(rows);
        if is_below {
            BatchRecord::KeysBelow.put(records)?;
        }
        self.rows(event, (schema, rows), records)?;
        // They may have changed rows that this event changed before.
        if is_below {
            BatchRecord::KeysBelow.put(records)?;
        }
        if is_followed && rows.flags.contains(RowsFlags::STMT_END) {
            BatchRecord::Annotation(b"").put(records)?;
        }
        if self.statement.rows(rows) && self.is_chosen {
            self.together(event, (schema, rows), records)?;
        }
        Ok(())
    }

    /// Tells of the rows of a parent that foreign keys carried on below the log: its event lacks both flags then.
    fn carried(
        &mut self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        records: &mut Spool,
    ) -> Result<(), Error> {
        let parents = |keys: &&CarryingKeys<'_>| keys.has_parent(&schema.database, &schema.table);
        let Some(keys) = self.carrying.filter(parents) else { return Ok(()) };
        if !changes_below(rows) {
            return Ok(());
        }
        let operation = Operation::of(rows.kind());
        let written_at = HistoryPlace { log: self.log_number, offset: event.position.offset };
        let table = written_table(schema, (self.schema, self.history), written_at);
        let told = self.schema.and_then(|file| file.table(&schema.database, &schema.table));
        let is_chosen = self.selection.has_operation(operation)
            && self.selection.has_table(&schema.database, &schema.table);
        let mut decoded = match self.decoder.rows(schema, rows) {
            Ok(decoded) => decoded,
            Err(error) => {
                event.unread(schema, &error);
                return Ok(());
            }
        };
        let offset = event.position.offset;
        let inside = event.position.inside.map(|inside| inside.index);
        let source = &event.log.description;
        let carried = EventOfParent { source, place: written_at, operation, table: &table, told };
        let keys = keys.of_event(&carried);
        while let Some(row) = decoded.next_row().map_err(|error| Error::Log(event.error(error)))? {
            let choice = choice_of(self.selection, self.renderer, &table, &row);
            let is_row_chosen = is_chosen && matches!(choice?, RowChoice::Chosen);
            for key in keys.of_row(&row, is_row_chosen) {
                BatchRecord::Carried(key, offset, inside).put(records)?;
            }
        }
        Ok(())
    }

    /// Counts rows of a table that isn't chosen, of a statement with tables that are.
    fn together(
        &self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        records: &mut Spool,
    ) -> Result<(), Error> {
        let table = record_table(schema);
        if !self.selection.has_table(table.database, table.table) {
            let offset = event.position.offset;
            let inside = event.position.inside.map(|inside| inside.index);
            let count = count_rows(schema, rows).ok();
            BatchRecord::Together(count, offset, inside, table).put(records)?;
        }
        if rows.flags.contains(RowsFlags::STMT_END) {
            BatchRecord::StatementEnd.put(records)?;
        }
        Ok(())
    }
}

fn record_table(schema: &TableSchema) -> RecordTable<'_> {
    RecordTable { database: &schema.database, table: &schema.table }
}

fn event_at<'e>(event: &'e Event<'_>) -> EventAt<'e> {
    EventAt {
        offset: event.position.offset,
        timestamp: event.header.timestamp,
        event_type: event.header.event_type,
        body: event.body,
    }
}

/// As much of a statement as is kept.
fn beginning_of(statement: &[u8]) -> &[u8] {
    statement.get(..STATEMENT_SIZE_MAX).unwrap_or(statement)
}

/// Passes on what an event says of the order of the logs.
fn put_event_of_file(event: &Event<'_>, records: &mut Spool) -> Result<(), Error> {
    if event.header.event_type == EventType::PREVIOUS_GTIDS {
        BatchRecord::PreviousGtids(event.body).put(records)?;
    }
    if event.header.event_type == EventType::ROTATE {
        let name = RotateEvent::decode(event.body).map_err(|error| event.error(error))?.name;
        BatchRecord::Rotate(name).put(records)?;
    }
    Ok(())
}

/// Whether foreign keys may have changed rows together with those of an event that are not in the log: InnoDB did so before 9.6.
pub(crate) fn changes_below(rows: &RowsEvent<'_>) -> bool {
    Operation::of(rows.kind()) != Operation::Insert
        && !rows.flags.contains(RowsFlags::NO_FOREIGN_KEY_CHECKS)
        && !rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY)
}

fn is_among(followed: &FollowedTables, database: &str, table: &str) -> bool {
    followed.iter().any(|(own, name)| own == database && name == table)
}

impl From<binlogz_binlog::Error> for Error {
    fn from(error: binlogz_binlog::Error) -> Self {
        Error::Log(FlowError::from(error))
    }
}
