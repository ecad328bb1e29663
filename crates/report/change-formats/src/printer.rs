//! Writes the row changes of batches, on any core. [`ChangeState`] has everything that depends on their order.

use std::sync::Arc;

use binlogz_binlog::event::{QueryEvent, RowsEvent, XidEvent};
use binlogz_binlog::row::RowDecoder;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventType, Result as BinlogResult};
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, Event, EventBatch, TableEvent, WorkerTables as LogTables};
use binlogz_print::jsonl::statement_text;
use binlogz_print::line_printer::{FinishedTransactions, LineFailure, LinePrinter, LineState};
use binlogz_print::{EventSelection, LineRoom, LogBounds};

use crate::canal::{self, CanalMessage};
use crate::debezium::{DebeziumOrigin, Envelope};
use crate::maxwell::MaxwellHead;
use crate::resolver::END;
use crate::resolver::orders::push_end;
use crate::resolver::xids::{Marks, resolve};
use crate::settings::{ChangeFormat, ChangeSettings};
use crate::state::ChangeState;
use crate::statement::{CanalKind, ChangeStatement};
use crate::table::{ChangeTable, ChangeTables};

/// Bytes of lines that a worker keeps back until it knows the end of their transaction.
const KEPT_BACK_MAX: usize = 1 << 20;

/// A worker's printer, used for all its batches of a log.
#[derive(Debug)]
pub struct ChangePrinter<'o> {
    selection: &'o EventSelection,
    settings: &'o ChangeSettings<'o>,
    positions: LogBounds,
    /// The log's file name.
    file: String,
    log_tables: LogTables,
    decoder: RowDecoder,
    tables: ChangeTables,
    envelope: Envelope,
    head: MaxwellHead,
    rows: CanalMessage,
    room: LineRoom,
    apart: Vec<u8>,
    open: OpenTransaction,
    finished: FinishedTransactions,
}

/// Lines of a transaction whose end isn't known yet.
#[derive(Debug, Default)]
struct OpenTransaction {
    /// Where these lines begin in the output, in bytes.
    from: usize,
    marks: u64,
    /// Some of them were passed on: then the others follow as they are, and a line says when they end.
    is_split: bool,
}

impl<'o> ChangePrinter<'o> {
    /// A printer of the selected events of a log. It is one of this many workers.
    pub fn new(
        selection: &'o EventSelection,
        settings: &'o ChangeSettings<'o>,
        name: &str,
        positions: LogBounds,
        workers: usize,
    ) -> Self {
        ChangePrinter {
            selection,
            settings,
            positions,
            file: name.rsplit('/').next().unwrap_or(name).to_owned(),
            log_tables: LogTables::one_of(workers),
            decoder: RowDecoder::new(),
            tables: ChangeTables::default(),
            envelope: Envelope::default(),
            head: MaxwellHead::default(),
            rows: CanalMessage::default(),
            room: LineRoom::default(),
            apart: Vec::new(),
            open: OpenTransaction::default(),
            finished: FinishedTransactions::default(),
        }
    }

    fn flush<E>(
        &mut self,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open.is_split |= self.open.marks > 0;
        flush(out)?;
        self.open.from = out.len();
        Ok(())
    }

    fn item<E>(
        &mut self,
        item: BatchItem<'_>,
        state: &mut ChangeState,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), LineFailure<E>> {
        let table = match &item {
            BatchItem::Event(event) => self.log_tables.event(event).map_err(LineFailure::Event)?,
            BatchItem::PayloadEnd(_) => None,
        };
        if state.is_between_transactions() {
            self.finished.gtids.extend(state.log.gtid());
        }
        if let BatchItem::Event(event) = &item
            && event.header.event_type.is_gtid()
        {
            self.end_transaction(ChangesEnding::default(), out);
            self.finished.has_anonymous |= event.header.event_type == EventType::ANONYMOUS_GTID;
        }
        let Some(event) = state.pass(item, self.positions).map_err(LineFailure::Event)? else {
            return Ok(());
        };
        state.log.learn(&event, self.settings.tables);
        let bad = |error| LineFailure::Event(event.error(error));
        let is_selected = state.log.selects(&event, self.selection, self.positions);
        if !is_selected {
            event.pass_over();
        }
        match table {
            Some(TableEvent::Rows(schema, rows)) if is_selected => {
                let table = self.tables.take(&schema, &state.log, self.selection, self.settings);
                if !table.is_asked_for {
                    return Ok(());
                }
                state.log.note_rows(table.place);
                table.check().map_err(bad)?;
                self.rows_event(&event, state, (&schema, &table), &rows, out, flush)
            }
            Some(_) => Ok(()),
            None => self.other(&event, is_selected, state, out).map_err(bad),
        }
    }

    /// An event without rows.
    fn other(
        &mut self,
        event: &Event<'_>,
        is_selected: bool,
        state: &mut ChangeState,
        out: &mut Vec<u8>,
    ) -> BinlogResult<()> {
        match event.header.event_type {
            EventType::XID => {
                let xid = Some(XidEvent::decode(event.body)?.xid);
                self.end_transaction(ChangesEnding { xid, time: Some(commit_time(event, state)) }, out);
            }
            EventType::XA_PREPARE => self.end_transaction(ChangesEnding::default(), out),
            EventType::QUERY => {
                let query = QueryEvent::decode(event.body)?;
                match StatementKind::of(query.statement) {
                    StatementKind::Commit | StatementKind::Rollback => {
                        let time = Some(commit_time(event, state));
                        self.end_transaction(ChangesEnding { xid: None, time }, out);
                    }
                    StatementKind::Other if is_selected && !query.is_alter_without_effect() => {
                        self.statement(event, &query, state, out);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn statement(
        &mut self,
        event: &Event<'_>,
        query: &QueryEvent<'_>,
        state: &mut ChangeState,
        out: &mut Vec<u8>,
    ) {
        let text = statement_text(query).unwrap_or_else(|| String::from_utf8_lossy(query.statement));
        let database = String::from_utf8_lossy(query.database);
        match self.settings.format {
            ChangeFormat::Canal if !self.selection.chooses_tables() => {
                canal::push_statement(out, (&text, &database), &canal_origin(event, state));
            }
            ChangeFormat::Debezium => {
                let ChangeStatement { kind: CanalKind::Truncate, database: named, table: Some(table) } =
                    ChangeStatement::of(&text)
                else {
                    return;
                };
                let database = named.as_deref().unwrap_or(&database);
                if self.selection.has_table(database.as_bytes(), table.as_bytes()) {
                    let mut envelope = std::mem::take(&mut self.envelope);
                    envelope.push_truncate(
                        out,
                        &self.origin(event, state),
                        (database, &table),
                        self.settings,
                    );
                    self.envelope = envelope;
                }
            }
            _ => {}
        }
    }

    fn origin(&self, event: &Event<'_>, state: &ChangeState) -> DebeziumOrigin<'_> {
        DebeziumOrigin {
            file: &self.file,
            position: state.log.position(),
            server_id: event.header.server_id,
            gtid: state.log.gtid().map(|gtid| gtid.to_string()),
            // Debezium takes it from BEGIN.
            thread_id: state.log.thread_id().filter(|_| !state.log.is_xa()),
            transaction: self.transaction_id(state),
            time: commit_time(event, state),
        }
    }

    /// Debezium's id of a transaction, where its metadata is asked for. It needs a BEGIN.
    fn transaction_id(&self, state: &ChangeState) -> Option<String> {
        let begin = state.log.begin_position().filter(|_| self.settings.transaction_metadata)?;
        Some(match state.log.gtid() {
            Some(gtid) => gtid.to_string(),
            None => format!("file={},pos={begin}", self.file),
        })
    }

    fn rows_event<E>(
        &mut self,
        event: &Event<'_>,
        state: &ChangeState,
        (schema, table): (&Arc<binlogz_binlog::row::TableSchema>, &ChangeTable),
        rows: &RowsEvent<'_>,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), LineFailure<E>> {
        let bad = |error| LineFailure::Event(event.error(error));
        let kind = rows.kind().operation();
        let settings = self.settings;
        match settings.format {
            ChangeFormat::Canal => {
                let origin = canal_origin(event, state);
                let mut read = match self.decoder.rows(schema, rows) {
                    Ok(read) => read,
                    Err(error) => {
                        event.unread(schema, &error);
                        return Ok(());
                    }
                };
                let pushed = self.rows.push(out, (table, &origin, &kind.to_uppercase()), |take| {
                    match read.next_row()? {
                        Some(row) => take(&row).map(|()| true),
                        None => Ok(false),
                    }
                });
                return pushed.map_err(bad);
            }
            ChangeFormat::Debezium => {
                let mut envelope = std::mem::take(&mut self.envelope);
                envelope.prepare(out, &self.origin(event, state), table, settings);
                self.envelope = envelope;
            }
            ChangeFormat::Maxwell => self.head.prepare(table, kind, event.header.timestamp),
        }
        let mut read = match self.decoder.rows(schema, rows) {
            Ok(read) => read,
            Err(error) => {
                event.unread(schema, &error);
                return Ok(());
            }
        };
        let mut lines = self.room.lines(out);
        let mut number = 0;
        loop {
            let row = match read.next_row() {
                Ok(Some(row)) => row,
                ended => {
                    lines.end();
                    return ended.map(drop).map_err(bad);
                }
            };
            let put = match settings.format {
                ChangeFormat::Maxwell => {
                    self.open.marks += 1;
                    self.head.put_row(lines, &row, table, settings, &mut self.apart)
                }
                _ => self.envelope.put_row(lines, (&row, number), table, settings, &mut self.apart),
            };
            lines = put.map_err(bad)?;
            number += 1;
            if lines.is_long()
                && (self.open.marks == 0 || self.open.is_split || lines.is_longer(KEPT_BACK_MAX))
            {
                self.open.is_split |= self.open.marks > 0;
                let out = lines.out();
                flush(out).map_err(LineFailure::Flush)?;
                self.open.from = out.len();
            }
        }
    }

    /// Ends the open transaction: its number is known now.
    fn end_transaction(&mut self, ChangesEnding { xid, time }: ChangesEnding, out: &mut Vec<u8>) {
        if self.settings.format != ChangeFormat::Maxwell {
            if self.settings.transaction_metadata
                && let Some(time) = time
            {
                push_end(out, time / 1000);
            }
            return;
        }
        let xid = xid.map(|xid| xid.to_string()).unwrap_or_default();
        let marks = std::mem::take(&mut self.open.marks);
        if std::mem::take(&mut self.open.is_split) {
            out.push(END);
            out.extend_from_slice(xid.as_bytes());
            out.push(b'\n');
        } else if marks > 0 {
            let lines = out.split_off(self.open.from.min(out.len()));
            resolve(&lines, xid.as_bytes(), &mut Marks::new(marks), out);
        }
        self.open.from = out.len();
    }
}

/// How a transaction ends.
#[derive(Debug, Default)]
struct ChangesEnding {
    xid: Option<u64>,
    /// When, in microseconds since 1970; `None` where the log cuts it off, or it is only prepared.
    time: Option<u64>,
}

/// The time of the commit in microseconds since 1970; before 8.0.1, of the statement.
fn commit_time(event: &Event<'_>, state: &ChangeState) -> u64 {
    state.log.commit_time().unwrap_or(u64::from(event.header.timestamp) * 1_000_000)
}

fn canal_origin(event: &Event<'_>, state: &ChangeState) -> canal::CanalOrigin {
    canal::CanalOrigin {
        timestamp: event.header.timestamp,
        gtid: state.log.gtid().map(|gtid| gtid.to_string()),
        id: state.log.transaction_position(),
        time: commit_time(event, state),
    }
}

impl LinePrinter for ChangePrinter<'_> {
    type State = ChangeState;

    fn asked_for(&self) -> (&EventSelection, LogBounds) {
        (self.selection, self.positions)
    }

    fn begin_batch(&mut self, batch: &EventBatch<'_>) -> Result<(), Error> {
        self.log_tables.begin(batch)
    }

    fn begin_lines(&mut self, state: &ChangeState, out: &[u8]) {
        self.open = OpenTransaction { from: out.len(), marks: 0, is_split: !state.is_between_transactions() };
    }

    fn pass_statement(&self, event: &Event<'_>, state: &mut ChangeState) {
        state.log.learn(event, self.settings.tables);
    }

    fn pass_item(&self, item: BatchItem<'_>, _: bool, state: &mut ChangeState) -> Result<(), Error> {
        if let Some(event) = state.pass(item, self.positions)? {
            state.log.learn(&event, self.settings.tables);
            state.log.selects(&event, self.selection, self.positions);
        }
        Ok(())
    }

    fn print_item<E>(
        &mut self,
        item: BatchItem<'_>,
        state: &mut ChangeState,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), LineFailure<E>> {
        self.item(item, state, out, flush)?;
        if self.open.marks == 0 || self.open.is_split || out.len() > KEPT_BACK_MAX {
            self.flush(out, flush).map_err(LineFailure::Flush)?;
        }
        Ok(())
    }

    fn end_lines(&mut self, state: &ChangeState) {
        if !state.has_ended() && state.is_between_transactions() {
            self.finished.gtids.extend(state.log.gtid());
        }
    }

    fn take_finished(&mut self) -> FinishedTransactions {
        std::mem::take(&mut self.finished)
    }
}
