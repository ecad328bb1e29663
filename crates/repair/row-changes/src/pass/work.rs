//! A worker's treatment of a batch: it decodes the rows of chosen tables and lets a [`Renderer`] write them.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, PostHeaderLengths, RotateEvent, RowsEvent, RowsFlags, RowsQueryEvent, ServerFamily,
    TableId, TableMapEvent,
};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::row::{Row, RowDecoder, TableSchema};
use binlogz_binlog::{Boundary, EventClass, EventFrame, EventType};
use binlogz_flow::Error as FlowError;
use binlogz_flow::events::{BatchItem, Event, EventBatch, TableEvent, WorkerTables};
use binlogz_payload::{Spool, SpoolMemory};
use binlogz_schema::{HistoryPlace, SchemaFile};

use super::carried::CarryingKeys;
use super::carried_rows::EventOfParent;
use super::renderer::{FollowedTables, Renderer, RowRendering};
use super::replaced::{UNSURE, may_give_defaults};
use super::tables_then::written_table;
use super::together::StatementTables;
use super::{Error, HistoryUse, Search};
use crate::choose::{ConditionError, Operation, Range, RowSelection};
use crate::record::{
    BatchRecord, EventAt, RecordTable, RowAt, RowFlags, RowImages, RowKeys, cells_with_differences, kept_map,
};
use crate::table::{Structure, WrittenTable};

/// The most bytes of an original statement that are kept.
const STATEMENT_SIZE_MAX: usize = 4 << 10;

/// A worker, for all its batches of a log.
pub(super) struct Worker<'o, R> {
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
    /// The tables of the statement that passes.
    statement: StatementTables,
    /// The table maps in force, where they are needed.
    maps: HashMap<TableId, Vec<u8>>,
    /// The table map that passed last, of which the name is known.
    last_map: Vec<u8>,
    text: Vec<u8>,
}

/// The transaction that is open, as far as a worker knows it.
struct Open {
    is_chosen: bool,
    in_payload: bool,
}

impl<'o, R: Renderer> Worker<'o, R> {
    pub(super) fn new(
        search: &Search<'o, R>,
        (log_number, range): (u64, Range),
        memory: &'o SpoolMemory,
    ) -> Self {
        Worker {
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
        batch.retain_unread(|unread| {
            // Somewhere in this second.
            let begin = i64::from(unread.timestamp) * 1_000_000;
            let end = begin + 1_000_000;
            let has_table = |(database, table): (&str, &str)| {
                let database = database.as_bytes();
                let table = table.as_bytes();
                selection.has_table(database, table)
                    || carrying.is_some_and(|keys| keys.has_parent(database, table))
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
        let mut open = Open { is_chosen: frame.is_none() || self.may_have(gtid.as_ref()), in_payload: false };
        while let Some(item) = batch.next_item() {
            match item {
                BatchItem::Event(event) => self.event(&event, &mut open, records)?,
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

    fn event(&mut self, event: &Event<'_>, open: &mut Open, records: &mut Spool) -> Result<(), Error> {
        let event_type = event.header.event_type;
        let table = self.tables.event(event)?;
        open.in_payload = event.is_inside_payload();
        let boundary = if open.in_payload { Boundary::Inside } else { event.placement.boundary };
        let passed = EventAt {
            offset: event.position.offset,
            timestamp: event.header.timestamp,
            event_type,
            body: event.body,
        };
        if matches!(boundary, Boundary::Begin | Boundary::BeginAgain | Boundary::Single) {
            let gtid = AnyGtidEvent::decode(event.body, event_type).map_err(|error| event.error(error))?;
            open.is_chosen = self.may_have(gtid.and_then(|gtid| gtid.gtid()).as_ref());
            BatchRecord::Begin(passed).put(records)?;
            // Its statement may have changed the table.
            self.table.take_if(|_| self.history.is_some());
        }
        match event_type.class() {
            EventClass::TableMap => {
                self.take_map(event.body, &event.log.lengths).map_err(|error| event.error(error))?;
                self.note_table(event.body, &event.log.lengths).map_err(|error| event.error(error))?;
            }
            EventClass::Statement => BatchRecord::Query(passed).put(records)?,
            EventClass::LoadStatement => BatchRecord::LoadQuery(passed).put(records)?,
            EventClass::Commit => {
                if event_type == EventType::XA_PREPARE {
                    BatchRecord::XaPrepare(passed).put(records)?;
                }
            }
            EventClass::File => put_event_of_file(event, records)?,
            EventClass::RowsStatement => {
                if event_type == EventType::ROWS_QUERY {
                    let statement =
                        RowsQueryEvent::decode(event.body).map_err(|error| event.error(error))?.statement;
                    let statement = statement.get(..STATEMENT_SIZE_MAX).unwrap_or(statement);
                    BatchRecord::RowsQuery(statement).put(records)?;
                }
                if event_type == EventType::MARIADB_ANNOTATE_ROWS && self.renderer.followed().is_some() {
                    let statement = event.body.get(..STATEMENT_SIZE_MAX).unwrap_or(event.body);
                    BatchRecord::Annotation(statement).put(records)?;
                }
            }
            // What is compressed comes expanded.
            EventClass::CompressedStatement
            | EventClass::CompressedRows
            | EventClass::Payload
            // `table` has them.
            | EventClass::Rows
            // `boundary` has them.
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
        let is_followed = self.renderer.followed().is_some();
        if !open.is_chosen && !is_followed {
            event.pass_over();
        }
        if let (Some(TableEvent::Rows(schema, rows)), true) = (&table, open.is_chosen) {
            self.carried(event, (schema, rows), records)?;
        }
        if let Some(TableEvent::Rows(schema, rows)) = table {
            let is_below = is_followed && changes_below(&rows);
            if is_below {
                BatchRecord::KeysBelow.put(records)?;
            }
            if open.is_chosen || is_followed || self.renderer.digests().is_some() {
                self.rows(event, (&schema, &rows), open.is_chosen, records)?;
            }
            // They may have changed rows that this event changed before.
            if is_below {
                BatchRecord::KeysBelow.put(records)?;
            }
            if is_followed && rows.flags.contains(RowsFlags::STMT_END) {
                BatchRecord::Annotation(b"").put(records)?;
            }
            if self.statement.rows(&rows) && open.is_chosen {
                self.together(event, (&schema, &rows), records)?;
            }
        }
        // The events of a payload follow it.
        let ends = matches!(boundary, Boundary::End | Boundary::Single);
        if ends && event_type != EventType::TRANSACTION_PAYLOAD {
            BatchRecord::End.put(records)?;
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
        &mut self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        records: &mut Spool,
    ) -> Result<(), Error> {
        let table = record_table(schema);
        if !self.selection.has_table(table.database, table.table) {
            let offset = event.position.offset;
            let inside = event.position.inside.map(|inside| inside.index);
            let count = self.decoder.rows(schema, rows).ok().and_then(|mut decoded| {
                let mut count = 0;
                while decoded.next_row().ok()?.is_some() {
                    count += 1;
                }
                Some(count)
            });
            BatchRecord::Together(count, offset, inside, table).put(records)?;
        }
        if rows.flags.contains(RowsFlags::STMT_END) {
            BatchRecord::StatementEnd.put(records)?;
        }
        Ok(())
    }

    fn rows(
        &mut self,
        event: &Event<'_>,
        (schema, rows): (&Arc<TableSchema>, &RowsEvent<'_>),
        is_chosen: bool,
        records: &mut Spool,
    ) -> Result<(), Error> {
        let operation = Operation::of(rows.kind());
        let is_chosen = is_chosen && self.selection.has_operation(operation);
        let digests = self.renderer.digests();
        let is_followed = self.renderer.followed().is_some_and(|followed| {
            is_among(
                followed,
                &String::from_utf8_lossy(&schema.database),
                &String::from_utf8_lossy(&schema.table),
            )
        });
        if !self.selection.has_table(&schema.database, &schema.table)
            || !is_chosen && !is_followed && digests.is_none()
        {
            return Ok(());
        }
        if self.table.as_ref().is_none_or(|table| !Arc::ptr_eq(&table.schema, schema)) {
            let place = HistoryPlace { log: self.log_number, offset: event.position.offset };
            let mut table = written_table(schema, (self.schema, self.history), place);
            table.place = place;
            self.table = Some(table);
            self.has_told_table = false;
            self.has_told_images = false;
        }
        if is_followed && !self.has_told_images {
            let map = self.maps.get(&rows.table_id).map_or(&[][..], Vec::as_slice);
            BatchRecord::ImagesTable(event.position.offset, map).put(records)?;
            self.has_told_images = true;
        }
        if is_chosen && !self.has_told_table {
            let is_settled = self.table.as_ref().is_some_and(|table| table.is_settled);
            let structure = Structure::of(schema).settled(is_settled);
            BatchRecord::Table(structure, record_table(schema)).put(records)?;
            if let Some(map) = self.maps.get(&rows.table_id).filter(|_| self.renderer.needs_table_maps()) {
                BatchRecord::TableMap(map).put(records)?;
            }
            self.has_told_table = true;
        }
        let Some(table) = &self.table else { return Ok(()) };
        let common = [
            (rows.flags.contains(RowsFlags::NO_FOREIGN_KEY_CHECKS), RowFlags::NO_FOREIGN_KEYS),
            (rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY), RowFlags::SQL_FOREIGN_KEYS),
            (rows.flags.contains(RowsFlags::STMT_END), RowFlags::ENDS_STATEMENT),
            (operation == Operation::Update, RowFlags::UPDATE),
            (table.is_settled, RowFlags::SETTLED),
        ]
        .into_iter()
        .filter(|(is, _)| *is)
        .fold(0, |flags, (_, flag)| flags | flag);
        let unreadable = |error| Error::Log(event.error(error));
        // REPLACE deletes rows like that, and only a log of them needs to know what was next.
        let may_be_replaced = is_chosen
            && self.renderer.needs_table_maps()
            && operation == Operation::Delete
            && rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY)
            && !rows.flags.contains(RowsFlags::STMT_END);
        let mut last_deleted = u64::MAX;
        if may_be_replaced && let Ok(mut counted) = self.decoder.rows(schema, rows) {
            while counted.next_row().map_err(unreadable)?.is_some() {
                last_deleted = last_deleted.wrapping_add(1);
            }
        }
        let mut decoded = match self.decoder.rows(schema, rows) {
            Ok(decoded) => decoded,
            Err(error) => {
                if is_followed {
                    let why = format!("{} at {}: {error}", event.header.event_type, event.position.offset);
                    BatchRecord::LostImages(record_table(schema), why.as_bytes()).put(records)?;
                }
                // Of what wasn't chosen nothing is missed.
                if is_chosen {
                    event.unread(schema, &error);
                }
                return Ok(());
            }
        };
        let inside = event.position.inside.map(|inside| inside.index);
        let next_event = match inside {
            Some(index) => index + 1,
            None => event.position.offset + u64::from(event.header.event_size),
        };
        let is_mariadb = event.log.lengths.family() == ServerFamily::Mariadb;
        let mut number = 0;
        while let Some(row) = decoded.next_row().map_err(unreadable)? {
            let is_unsure = is_mariadb && may_give_defaults(table, operation, &row);
            let choice = match is_chosen {
                true if is_unsure && self.selection.condition.is_some() => unsure_choice(self.renderer)?,
                true => choice_of(self.selection, self.renderer, table, &row)?,
                false => RowChoice::Left,
            };
            let is_row_chosen = !matches!(choice, RowChoice::Left);
            if is_followed {
                let [before, after] = [row.before, row.after]
                    .map(|image| Some(cells_with_differences(&image?, schema.columns().len())));
                BatchRecord::Image(RowImages { operation, before, after }).put(records)?;
            }
            if let RowChoice::Undecided(why) = choice {
                BatchRecord::Undecided(why.as_bytes()).put(records)?;
            }
            if let Some(digests) = digests {
                let keys = RowKeys {
                    is_chosen: is_row_chosen,
                    digests: self.renderer.digests_of_row(digests, table, &row),
                    table: record_table(schema),
                };
                BatchRecord::Keys(keys).put(records)?;
            }
            if is_row_chosen {
                self.text.clear();
                let mut pass_on = |text: &mut Vec<u8>| {
                    BatchRecord::RowPart(text).put(records)?;
                    text.clear();
                    Ok(())
                };
                let rendering = match is_unsure {
                    true => self.renderer.render_unsure(table, &row, None, &mut self.text),
                    false => {
                        let text = &mut self.text;
                        self.renderer.render_in_parts(table, operation, &row, text, &mut pass_on)?
                    }
                };
                if let RowRendering::Lacking(_) = rendering {
                    BatchRecord::Lacking.put(records)?;
                }
                if let RowRendering::Text(flags) | RowRendering::Lacking(flags) = rendering {
                    let row = RowAt {
                        offset: event.position.offset,
                        inside,
                        row: number,
                        next_event: (number == last_deleted).then_some(next_event),
                        timestamp: event.header.timestamp,
                        flags: RowFlags(common | flags),
                        text: &self.text,
                    };
                    BatchRecord::Row(row).put(records)?;
                }
            }
            number += 1;
        }
        Ok(())
    }
}

/// Whether a row is one of those asked for, if its transaction is.
enum RowChoice {
    Chosen,
    Left,
    /// The row's images lack columns that the condition needs; the text names them.
    Undecided(String),
}

fn choice_of<R: Renderer>(
    selection: &RowSelection,
    renderer: &R,
    table: &WrittenTable,
    row: &Row<'_, '_>,
) -> Result<RowChoice, Error> {
    match selection.has_row(table, row) {
        Ok(true) => Ok(RowChoice::Chosen),
        Ok(false) => Ok(RowChoice::Left),
        Err(error @ ConditionError::NotLogged { .. }) if renderer.defers_conditions() => {
            Ok(RowChoice::Undecided(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The choice of an update by a condition, if it isn't known what columns have after it.
fn unsure_choice<R: Renderer>(renderer: &R) -> Result<RowChoice, Error> {
    match renderer.defers_conditions() {
        true => Ok(RowChoice::Undecided(UNSURE.to_owned())),
        false => Err(Error::Refused(UNSURE.to_owned())),
    }
}

fn record_table(schema: &TableSchema) -> RecordTable<'_> {
    RecordTable { database: &schema.database, table: &schema.table }
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
