//! Finds the table of each row event: keeps the table maps in force as the events of a batch go by.

use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{RowsEvent, RowsFlags, TableId};
use binlogz_binlog::row::{TableSchema, TableSchemas};

use super::batch::EventBatch;
use super::event::Event;
use super::kept::KeptEvents;
use super::source::Log;
use crate::error::Error;

/// A worker's table maps. One for all batches, so a repeated table is not compiled again.
#[derive(Debug, Default)]
pub struct Tables {
    schemas: TableSchemas,
    /// The last row event ended its statement.
    ended: bool,
}

/// The role of an event for a table.
#[derive(Debug, Clone)]
pub enum TableEvent<'a> {
    /// Its table map.
    Map(Arc<TableSchema>),
    /// Rows of it, unread, with the table as its table map described it.
    Rows(Arc<TableSchema>, RowsEvent<'a>),
}

impl Tables {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// No tables yet, for one of so many workers: together they remember as much as one would alone.
    pub fn one_of(workers: usize) -> Self {
        Tables { schemas: TableSchemas::one_of(workers), ended: false }
    }

    /// Takes the table maps that are in force where a batch begins.
    ///
    /// # Errors
    ///
    /// A table map that can't be read.
    pub fn begin(&mut self, batch: &EventBatch<'_>) -> Result<(), Error> {
        self.take(batch.log(), &batch.carried().table_maps, batch.offset())
    }

    /// The same for the start of events that were kept.
    ///
    /// # Errors
    ///
    /// A table map that can't be read.
    pub fn begin_kept(&mut self, events: &KeptEvents) -> Result<(), Error> {
        self.take(&events.log, &events.table_maps, events.offset)
    }

    fn take(&mut self, log: &Log, table_maps: &[Arc<[u8]>], offset: u64) -> Result<(), Error> {
        self.schemas.end_statement();
        self.ended = false;
        let length = log.lengths.of(EventType::TABLE_MAP);
        for body in table_maps {
            let noted = self.schemas.note(body, length);
            noted.map_err(|error| error.at(offset, Some(EventType::TABLE_MAP)))?;
        }
        Ok(())
    }

    /// The table of this number, if its table map is in force.
    pub fn of(&self, table_id: TableId) -> Option<Arc<TableSchema>> {
        self.schemas.get(table_id).ok().map(Arc::clone)
    }

    /// Takes the next event of the batch and returns its table information if it is a table map or row event.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read, with the event's position; a row event without its table map.
    #[inline]
    pub fn event<'a>(&mut self, event: &Event<'a>) -> Result<Option<TableEvent<'a>>, Error> {
        self.read(event).map_err(|error| event.error(error))
    }

    fn read<'a>(&mut self, event: &Event<'a>) -> Result<Option<TableEvent<'a>>, binlogz_binlog::Error> {
        let event_type = event.header.event_type;
        let begins_anew = event_type.is_gtid() || event_type == EventType::TRANSACTION_PAYLOAD;
        if std::mem::take(&mut self.ended) || begins_anew {
            self.schemas.end_statement();
        }
        if event_type == EventType::TABLE_MAP {
            let schema = self.schemas.note(event.body, event.log.lengths.of(event_type))?;
            return Ok(Some(TableEvent::Map(schema)));
        }
        if !event_type.is_rows() {
            return Ok(None);
        }
        let rows = RowsEvent::decode(event_type, event.body, event.log.lengths.of(event_type))?;
        let schema = Arc::clone(self.schemas.get(rows.table_id)?);
        self.ended = rows.flags.contains(RowsFlags::STMT_END);
        Ok(Some(TableEvent::Rows(schema, rows)))
    }
}
