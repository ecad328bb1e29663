//! Counts the rows of events, by table, without decoding their values.

use std::sync::Arc;

use binlogz_binlog::event::{RowsEvent, RowsFlags, RowsKind};
use binlogz_binlog::row::{RowDecoder, TableSchema};
use binlogz_binlog::{Error as BinlogError, EventType};
use binlogz_flow::Error;
use binlogz_flow::events::{Event, EventBatch, TableEvent, WorkerTables};

use crate::by_table::TableName;

/// A worker's counter of rows, used for all its batches.
#[derive(Debug)]
pub struct RowCounter {
    tables: WorkerTables,
    decoder: RowDecoder,
    /// The table of the previous event, and its name.
    named: Option<(Arc<TableSchema>, Arc<TableName>)>,
    decodes_values: bool,
}

/// The rows of an event.
#[derive(Debug, Clone, Copy)]
pub struct EventRows {
    /// What was done with them.
    pub kind: RowsKind,
    /// The flags of the event.
    pub flags: RowsFlags,
    /// How many.
    pub count: u64,
}

/// The table of an event, and its rows, if it has some that can be read.
pub type TableEventRows = (Arc<TableName>, Option<EventRows>);

impl RowCounter {
    /// One of this many workers. With `decodes_values` every value of every row is decoded, to find invalid bytes.
    pub fn new(workers: usize, decodes_values: bool) -> Self {
        let tables = WorkerTables::one_of(workers);
        let decoder = RowDecoder::new();
        RowCounter { tables, decoder, named: None, decodes_values }
    }

    /// Begins a batch, and fails it if its tables can't be read.
    pub fn begin(&mut self, batch: &mut EventBatch<'_>) {
        if let Err(error) = self.tables.begin(batch) {
            batch.fail(error);
        }
    }

    /// The table of a table map or rows event, and its rows; `None`: it is another event, or of a table that isn't wanted. Rows that can't
    /// be read are noted in the batch.
    ///
    /// # Errors
    ///
    /// A table map or rows event that can't be read.
    #[inline]
    pub fn event(
        &mut self,
        event: &Event<'_>,
        is_wanted: impl FnOnce(&TableName) -> bool,
    ) -> Result<Option<TableEventRows>, Error> {
        let (schema, rows) = match self.tables.event(event)? {
            None => return Ok(None),
            Some(TableEvent::Map(schema)) => (schema, None),
            Some(TableEvent::Rows(schema, rows)) => (schema, Some(rows)),
        };
        let name = self.name(&schema);
        if !is_wanted(&name) {
            return Ok(None);
        }
        let counted = match rows.map(|rows| (self.count(&schema, &rows), rows)) {
            None => None,
            Some((Ok(count), rows)) => Some(EventRows { kind: rows.kind(), flags: rows.flags, count }),
            Some((Err(error), _)) => {
                event.unread(&schema, &error);
                None
            }
        };
        Ok(Some((name, counted)))
    }

    /// The number of rows in an event. Those of the 5.1 betas only their own server can read.
    fn count(&mut self, schema: &TableSchema, event: &RowsEvent<'_>) -> Result<u64, BinlogError> {
        let pre_ga = EventType::PRE_GA_WRITE_ROWS..=EventType::PRE_GA_DELETE_ROWS;
        if pre_ga.contains(&event.event_type) {
            return Ok(0);
        }
        if !self.decodes_values {
            return self.decoder.count(schema, event);
        }
        let mut rows = self.decoder.rows(schema, event)?;
        let mut count = 0;
        while let Some(row) = rows.next_row()? {
            count += 1;
            for cell in row.before.iter().chain(&row.after).flat_map(|image| image.cells()) {
                std::hint::black_box(cell.value()?);
            }
        }
        Ok(count)
    }

    /// A table's name; events of a table come in runs.
    fn name(&mut self, schema: &Arc<TableSchema>) -> Arc<TableName> {
        match &self.named {
            Some((known, name)) if Arc::ptr_eq(known, schema) => Arc::clone(name),
            _ => {
                let database = schema.database.clone();
                let table = schema.table.clone();
                let name = Arc::new(TableName { database, table });
                self.named = Some((Arc::clone(schema), Arc::clone(&name)));
                name
            }
        }
    }
}
