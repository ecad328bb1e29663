//! Writes the events of batches as JSON lines, on any core. [`JsonState`] has everything that depends on their order.

use std::sync::Arc;

use binlogz_binlog::event::{
    AnyEvent as Decoded, LoadBlockEvent, PreviousGtidsEvent, QueryEvent, RotateEvent, RowsEvent,
    RowsQueryEvent, XidEvent,
};
use binlogz_binlog::row::{RowDecoder, TableSchema};
use binlogz_binlog::show_events::{event_type_name, write_info};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventType, Result as BinlogResult};
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, Event, EventBatch, TableEvent, WorkerTables};
use binlogz_schema::{CompletedTables, TablesOfLogs};

use super::frame::{payload_header, push_payload, push_query};
use super::held::{LineDecision, LinePlace};
use super::large::{self, LARGE_VALUE_SIZE, LargeValueError};
use super::state::JsonState;
use super::table_text::TableText;
use super::text::{push_base64, push_bytes_as_text, push_name, push_number, push_text};
use crate::line_printer::{LineFailure, LinePrinter, LineState};
use crate::line_room::LineRoom;
use crate::number::push_unsigned;
use crate::selection::{EventSelection, LogBounds};

/// A worker's printer, used for all its batches of a log.
#[derive(Debug)]
pub struct JsonPrinter<'o> {
    selection: &'o EventSelection,
    known: &'o TablesOfLogs,
    completed: CompletedTables,
    positions: LogBounds,
    /// `{"log":"…"`: the start of each line.
    line_begin: Vec<u8>,
    tables: WorkerTables,
    decoder: RowDecoder,
    names: TableText,
    room: LineRoom,
    /// How all lines of an event begin.
    begin: Vec<u8>,
    /// Memory for values.
    apart: [Vec<u8>; 2],
}

impl<'o> JsonPrinter<'o> {
    /// A printer of the selected events of a log, which is shown under this name. It is one of this many workers.
    pub fn new(
        selection: &'o EventSelection,
        known: &'o TablesOfLogs,
        name: &str,
        positions: LogBounds,
        workers: usize,
    ) -> Self {
        let mut line_begin = b"{".to_vec();
        push_text(&mut line_begin, "log", name);
        JsonPrinter {
            selection,
            known,
            completed: CompletedTables::default(),
            positions,
            line_begin,
            tables: WorkerTables::one_of(workers),
            decoder: RowDecoder::new(),
            names: TableText::default(),
            room: LineRoom::default(),
            begin: Vec::new(),
            apart: Default::default(),
        }
    }

    /// Whether it depends on other events if an event is shown.
    fn may_wait(&self, event: &Event<'_>, state: &JsonState) -> bool {
        let is_of_the_log = event.header.event_type.is_of_file();
        self.selection.chooses_tables() && state.frame.is_open() && !is_of_the_log
    }

    /// Holds an event's line if it has to wait.
    fn hold(&self, event: &Event<'_>, state: &mut JsonState) -> BinlogResult<LineDecision> {
        let shown = state.held.pass(event, state.position, self.selection)?;
        if shown == LineDecision::WithRows {
            let mut lines = std::mem::take(&mut state.held.lines);
            let held = self.line(event, state, &mut lines);
            state.held.lines = lines;
            held?;
        }
        Ok(shown)
    }

    /// Appends the lines that were held.
    fn push_held(&mut self, state: &mut JsonState, out: &mut Vec<u8>) {
        out.extend_from_slice(&state.held.lines);
        for place in std::mem::take(&mut state.held.statement) {
            self.begin_line(&place, state, out);
            match place.table.and_then(|table| self.tables.of(table)) {
                Some(schema) => {
                    let schema = self.complete(schema, state);
                    self.names.take(&schema, self.selection);
                    self.names.push_table_map(out);
                }
                None => push_bytes_as_text(out, "statement", state.frame.statement().unwrap_or_default()),
            }
            end_line(out);
        }
        state.held.release();
    }

    /// The table of a map, with what is known of it here.
    fn complete(&mut self, map: Arc<TableSchema>, state: &JsonState) -> Arc<TableSchema> {
        let is_told = self.known.has_schema() || state.tables().statements() > 0;
        // What isn't known is noted of tables that are shown.
        if !is_told || !self.selection.has_table(&map.database, &map.table) {
            return map;
        }
        self.completed.complete(self.known, &map, state.place(), state.tables())
    }

    fn event<E>(
        &mut self,
        event: &Event<'_>,
        state: &mut JsonState,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), LineFailure<E>> {
        let bad = |error| LineFailure::Event(event.error(error));
        let table = self.tables.event(event).map_err(LineFailure::Event)?;
        state.pass(event, self.positions).map_err(bad)?;
        state.learn(event, self.known);
        if !state.selects(event, self.selection, self.positions) {
            event.pass_over();
            return Ok(());
        }
        self.note_database(event, table.as_ref(), state).map_err(bad)?;
        if self.may_wait(event, state) {
            if self.hold(event, state).map_err(bad)? != LineDecision::Now {
                return Ok(());
            }
            self.push_held(state, out);
        }
        match table {
            Some(TableEvent::Rows(schema, rows)) => self.rows(event, state, schema, &rows, out, flush),
            Some(TableEvent::Map(schema)) => {
                let schema = self.complete(schema, state);
                self.names.take(&schema, self.selection);
                if self.names.is_asked_for {
                    self.begin_line(&LinePlace::of(event, state.position), state, out);
                    self.names.push_table_map(out);
                    end_line(out);
                }
                Ok(())
            }
            None => self.line(event, state, out).map_err(bad),
        }
    }

    /// Notes that an event concerns `--database`.
    fn note_database(
        &self,
        event: &Event<'_>,
        table: Option<&TableEvent<'_>>,
        state: &mut JsonState,
    ) -> BinlogResult<()> {
        let Some(wanted) = self.selection.database.as_deref() else { return Ok(()) };
        state.met_mut().database |= match table {
            Some(TableEvent::Rows(schema, _)) => *wanted == *schema.database,
            None if event.header.event_type == EventType::QUERY => {
                let query = QueryEvent::decode(event.body)?;
                wanted == query.database && StatementKind::of(query.statement) == StatementKind::Other
            }
            _ => false,
        };
        Ok(())
    }

    /// Appends the line of an event without rows.
    fn line(&self, event: &Event<'_>, state: &mut JsonState, out: &mut Vec<u8>) -> BinlogResult<()> {
        let start = out.len();
        self.begin_line(&LinePlace::of(event, state.position), state, out);
        match self.fields(event, out) {
            Ok(()) => end_line(out),
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Appends the fields that all lines have.
    fn begin_line(&self, place: &LinePlace, state: &mut JsonState, out: &mut Vec<u8>) {
        self.begin_line_of(place, type_name(place.event_type), state, out);
    }

    fn begin_line_of(&self, place: &LinePlace, kind: &str, state: &mut JsonState, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.line_begin);
        // Written for each line: in as few steps as there are numbers.
        let number = |out: &mut Vec<u8>, name: &[u8], number| {
            out.extend_from_slice(name);
            push_unsigned(out, number);
        };
        number(out, b",\"position\":", place.position);
        number(out, b",\"end_log_pos\":", u64::from(place.end_log_pos));
        if let Some(inside) = place.inside {
            push_name(out, "in_payload");
            out.push(b'{');
            push_number(out, "index", inside.index);
            push_number(out, "offset", inside.offset);
            out.push(b'}');
        }
        out.extend_from_slice(b",\"type\":\"");
        out.extend(kind.bytes().map(|byte| if byte == b' ' { b'_' } else { byte.to_ascii_lowercase() }));
        number(out, b"\",\"timestamp\":", u64::from(place.timestamp));
        number(out, b",\"server_id\":", u64::from(place.server_id));
        state.frame.push(out);
    }

    /// Appends the fields of an event without rows.
    fn fields(&self, event: &Event<'_>, out: &mut Vec<u8>) -> BinlogResult<()> {
        match event.header.event_type {
            EventType::QUERY => push_query(out, &QueryEvent::decode(event.body)?),
            EventType::XID => push_number(out, "xid", XidEvent::decode(event.body)?.xid),
            EventType::ROTATE => {
                let rotate = RotateEvent::decode(event.body)?;
                push_bytes_as_text(out, "next_log", rotate.name);
                push_number(out, "next_position", rotate.position);
            }
            EventType::PREVIOUS_GTIDS => {
                let set = PreviousGtidsEvent::decode(event.body)?.gtid_set;
                push_text(out, "gtid_set", &set.to_string().replace('\n', ""));
            }
            EventType::ROWS_QUERY => {
                push_bytes_as_text(out, "statement", RowsQueryEvent::decode(event.body)?.statement);
            }
            EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => {
                let block = LoadBlockEvent::decode(event.body)?;
                push_number(out, "file_id", u64::from(block.file_id));
                push_name(out, "data");
                push_base64(out, block.block);
            }
            EventType::TRANSACTION_PAYLOAD => {
                if let Some(header) = payload_header(event)? {
                    push_payload(out, &header);
                }
            }
            EventType::FORMAT_DESCRIPTION => {
                let description = &event.log.description;
                push_text(out, "server_version", &description.server_version());
                push_number(out, "created", u64::from(description.created));
            }
            event_type if event_type.is_gtid() => {}
            // As in SHOW BINLOG EVENTS.
            _ => {
                let Some(frame) = &event.frame else { return Ok(()) };
                let mut info = Vec::new();
                let decoded = Decoded::decode(frame, &event.log.lengths)?;
                write_info(&decoded, event.header.flags, &mut info);
                push_bytes_as_text(out, "info", &info);
            }
        }
        Ok(())
    }

    fn rows<E>(
        &mut self,
        event: &Event<'_>,
        state: &mut JsonState,
        schema: Arc<TableSchema>,
        rows: &RowsEvent<'_>,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), LineFailure<E>> {
        let bad = |error| LineFailure::Event(event.error(error));
        let schema = self.complete(schema, state);
        self.names.take(&schema, self.selection);
        if !self.names.is_asked_for {
            return Ok(());
        }
        if let Some(place) = self.names.place {
            state.met_mut().tables.insert(place);
        }
        let kind = rows.kind().operation();
        // All of its lines begin the same way.
        let mut begin = std::mem::take(&mut self.begin);
        begin.clear();
        self.begin_line_of(&LinePlace::of(event, state.position), kind, state, &mut begin);
        begin.extend_from_slice(&self.names.table);
        begin.extend_from_slice(b",\"row\":");
        let mut read = match self.decoder.rows(&schema, rows) {
            Ok(read) => read,
            Err(error) => {
                event.unread(&schema, &error);
                self.begin = begin;
                return Ok(());
            }
        };
        let unwritten = |error| match error {
            LargeValueError::Value(error) => bad(error),
            LargeValueError::Output(error) => LineFailure::Flush(error),
        };
        let mut lines = self.room.lines(out);
        let mut index = 0;
        loop {
            let row = match read.next_row() {
                Ok(Some(row)) => row,
                ended => {
                    lines.end();
                    self.begin = begin;
                    return ended.map(drop).map_err(bad);
                }
            };
            if rows.rows.len() > LARGE_VALUE_SIZE
                && let Err(error) = large::check(&row)
            {
                lines.end();
                self.begin = begin;
                return Err(bad(error));
            }
            lines.put_text(&begin);
            lines.step();
            lines.put_unsigned(index);
            if let Some(before) = row.before {
                lines.put(b",\"before\":", 10);
                lines = self.names.put_image(lines, &before, &mut self.apart, flush).map_err(unwritten)?;
            }
            if let Some(after) = row.after {
                lines.put(b",\"after\":", 9);
                lines = self.names.put_image(lines, &after, &mut self.apart, flush).map_err(unwritten)?;
            }
            lines.put(b"}\n", 2);
            if lines.is_long() {
                flush(lines.out()).map_err(LineFailure::Flush)?;
            }
            index += 1;
        }
    }
}

impl LinePrinter for JsonPrinter<'_> {
    type State = JsonState;

    fn asked_for(&self) -> (&EventSelection, LogBounds) {
        (self.selection, self.positions)
    }

    fn begin_batch(&mut self, batch: &EventBatch<'_>) -> Result<(), Error> {
        self.tables.begin(batch)
    }

    fn pass_statement(&self, event: &Event<'_>, state: &mut JsonState) {
        state.learn(event, self.known);
    }

    fn pass_item(&self, item: BatchItem<'_>, is_of_last: bool, state: &mut JsonState) -> Result<(), Error> {
        let BatchItem::Event(event) = item else { return Ok(()) };
        let bad = |error| event.error(error);
        state.pass(&event, self.positions).map_err(bad)?;
        state.learn(&event, self.known);
        let is_selected = state.selects(&event, self.selection, self.positions);
        // Nothing is held of transactions that end in the batch.
        if is_selected && is_of_last && self.may_wait(&event, state) {
            let decision = self.hold(&event, state).map_err(bad)?;
            if decision == LineDecision::Now {
                state.held.release();
            }
        }
        Ok(())
    }

    fn print_item<E>(
        &mut self,
        item: BatchItem<'_>,
        state: &mut JsonState,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), LineFailure<E>> {
        let BatchItem::Event(event) = item else { return Ok(()) };
        self.event(&event, state, out, flush)?;
        flush(out).map_err(LineFailure::Flush)
    }
}

fn end_line(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}

/// The three GTID event types (plain, tagged, anonymous) have one name; all others have their SHOW BINLOG
/// EVENTS names.
fn type_name(event_type: EventType) -> &'static str {
    match event_type {
        event_type if event_type.is_gtid() => "gtid",
        EventType::FORMAT_DESCRIPTION => "format_description",
        event_type => event_type_name(event_type),
    }
}
