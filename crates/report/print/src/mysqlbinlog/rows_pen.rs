//! Prints table maps and row events at the end of their statement: base64 and `###` lines.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::event::{RowsEvent, TableId};
use binlogz_binlog::row::RowDecoder;
use binlogz_flow::events::{Event, TableEvent, WorkerTables};

use super::growing_text::GrowingText;
use super::options::PrintOptions;
use super::rename::new_name;
use super::rows::row_event::{RowsPrinter, Verbosity};
use super::shown::ShownBuffer;
use super::write::base64_lines::push_base64_lines;
use crate::line_room::LineRoom;
use crate::number::push_unsigned;

/// Prints rows, in memory that is used again.
#[derive(Debug)]
pub(super) struct RowsPen {
    pub(super) tables: WorkerTables,
    decoder: RowDecoder,
    printers: HashMap<TableId, RowsPrinter>,
    /// Bytes that they take, and may take.
    printers_bytes: usize,
    printers_bytes_max: usize,
    room: LineRoom,
    shown: ShownBuffer,
}

/// Bytes that the printers of all workers may take: hundreds of tables, or a few thousand narrow ones.
const PRINTERS_BYTES: usize = 8 << 20;

/// Why not all was printed.
#[derive(Debug)]
pub(super) enum UnprintedRows {
    /// A file could not be written.
    File(io::Error),
    /// Bytes that can't be read. The rows before them were printed.
    Damaged(String),
}

impl From<io::Error> for UnprintedRows {
    fn from(error: io::Error) -> Self {
        UnprintedRows::File(error)
    }
}

impl RowsPen {
    /// A pen for one of this many workers.
    pub(super) fn new(workers: usize) -> Self {
        RowsPen {
            tables: WorkerTables::one_of(workers),
            decoder: RowDecoder::new(),
            printers: HashMap::new(),
            printers_bytes: 0,
            printers_bytes_max: PRINTERS_BYTES / workers.max(1),
            room: LineRoom::default(),
            shown: ShownBuffer::default(),
        }
    }

    /// Takes a table map for the rows after it. If it can't be read, its rows have no table.
    pub(super) fn table_map(&mut self, event: &Event<'_>) {
        let _ = self.tables.event(event);
    }

    /// Appends an event's lines of base64.
    pub(super) fn base64(
        &mut self,
        options: &PrintOptions,
        event: &Event<'_>,
        out: &mut GrowingText,
    ) -> Result<(), UnprintedRows> {
        let shown = self.shown.show(event, &options.rewrite_db, true);
        let (shown, _) = shown.map_err(|error| UnprintedRows::Damaged(event.error(error).to_string()))?;
        push_base64_lines(&mut out.text, shown.bytes);
        Ok(out.settle()?)
    }

    /// Appends the `###` lines of a row event. `known`: its table map was shown.
    pub(super) fn row_lines(
        &mut self,
        options: &PrintOptions,
        event: &Event<'_>,
        known: bool,
        out: &mut GrowingText,
    ) -> Result<(), UnprintedRows> {
        let (schema, rows) = match self.tables.event(event) {
            Ok(Some(TableEvent::Rows(schema, rows))) if known => (schema, rows),
            _ => {
                let event_type = event.header.event_type;
                let front = RowsEvent::decode_front(event_type, event.body, event.log.lengths.of(event_type));
                out.text.extend_from_slice(b"### Row event for unknown table #");
                push_unsigned(&mut out.text, front.map_or(0, |(table_id, _)| table_id.0));
                return Ok(());
            }
        };
        if self.printers_bytes > self.printers_bytes_max {
            self.printers.clear();
            self.printers_bytes = 0;
        }
        let printer = match self.printers.entry(rows.table_id) {
            Entry::Occupied(known) if Arc::ptr_eq(known.get().schema(), &schema) => known.into_mut(),
            entry => {
                let verbosity = if options.verbose > 1 { Verbosity::Types } else { Verbosity::Values };
                let database = new_name(&schema.database, &options.rewrite_db).map(|(_, name)| name.to_vec());
                let printer = RowsPrinter::renamed(Arc::clone(&schema), verbosity, database.as_deref());
                // One that it replaces is counted until all are cleared.
                self.printers_bytes += printer.memory();
                entry.insert_entry(printer).into_mut()
            }
        };
        // Those that don't fit cost only themselves; a value that can't be decoded ends the text, as it did.
        let read = match self.decoder.rows(&schema, &rows) {
            Ok(read) => read,
            Err(error) => {
                event.unread(&schema, &error);
                out.text.extend_from_slice(format!("### Rows that can't be decoded: {error}\n").as_bytes());
                return Ok(());
            }
        };
        let mut spilled = Ok(());
        let mut text = std::mem::take(&mut out.text);
        let printed = printer.print_by_row(&mut self.room, &mut text, read, &rows, |text| {
            if spilled.is_ok() {
                std::mem::swap(&mut out.text, text);
                spilled = out.settle();
                std::mem::swap(&mut out.text, text);
            }
            Ok::<(), BinlogError>(())
        });
        out.text = text;
        spilled?;
        printed.map_err(|error| UnprintedRows::Damaged(event.error(error).to_string()))
    }
}
