//! Finds the table of each row event: keeps the table maps in force as the events of a batch go by.

use std::sync::Arc;

use binlogz_binlog::event::{PostHeaderLengths, RowsEvent, RowsFlags, TableId, TableMapEvent};
use binlogz_binlog::row::{TableSchema, TableSchemas};
use binlogz_binlog::{Error as BinlogError, EventType};

use super::batch::EventBatch;
use super::event::Event;
use super::kept::KeptEvents;
use super::log::InputLog;
use crate::error::Error;
use crate::unread::{self, UnreadableTable};

/// Tables of one statement that can't be read; no statement comes near it.
const UNREADABLE_MAX: usize = 1000;

/// A worker's table maps. One for all batches, so a repeated table is not compiled again.
#[derive(Debug, Default)]
pub struct WorkerTables {
    schemas: TableSchemas,
    /// Tables of the open statement whose maps can't be compiled: their rows can't be read.
    unreadable: Vec<(TableId, UnreadableTable)>,
    /// The last row event ended its statement.
    ended: bool,
}

/// The role of an event for a table.
#[derive(Debug, Clone)]
pub enum TableEvent<'a> {
    /// The table map that describes the table.
    Map(Arc<TableSchema>),
    /// Rows of it, unread, with the table as its table map described it.
    Rows(Arc<TableSchema>, RowsEvent<'a>),
}

impl WorkerTables {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// No tables yet, for one of this many workers: together they remember as much as one would alone.
    pub fn one_of(workers: usize) -> Self {
        WorkerTables { schemas: TableSchemas::one_of(workers), ..WorkerTables::default() }
    }

    /// Takes the table maps that are in force where a batch begins.
    ///
    /// # Errors
    ///
    /// A table map that can't be read.
    pub fn begin(&mut self, batch: &EventBatch<'_>) -> Result<(), Error> {
        self.take(batch.log(), &batch.carried().table_maps, batch.offset())
    }

    /// Takes the table maps that are in force where kept events begin.
    ///
    /// # Errors
    ///
    /// A table map that can't be read.
    pub fn begin_kept(&mut self, events: &KeptEvents) -> Result<(), Error> {
        self.take(&events.log, &events.table_maps, events.offset)
    }

    fn take(&mut self, log: &InputLog, table_maps: &[Arc<[u8]>], offset: u64) -> Result<(), Error> {
        self.end_statement();
        self.ended = false;
        for body in table_maps {
            let noted = self.note(body, &log.lengths);
            noted.map_err(|error| error.at(offset, Some(EventType::TABLE_MAP)))?;
        }
        Ok(())
    }

    fn end_statement(&mut self) {
        self.schemas.end_statement();
        self.unreadable.clear();
    }

    /// Takes a table map. `None`: the table's rows can't be read.
    fn note(
        &mut self,
        body: &[u8],
        lengths: &PostHeaderLengths,
    ) -> Result<Option<Arc<TableSchema>>, BinlogError> {
        let length = lengths.of(EventType::TABLE_MAP);
        let error = match self.schemas.note(body, lengths) {
            Ok(schema) => {
                if !self.unreadable.is_empty() {
                    let table_id = TableMapEvent::decode_table_id(body, length)?;
                    self.unreadable.retain(|(unreadable, _)| *unreadable != table_id);
                }
                return Ok(Some(schema));
            }
            Err(error) => error,
        };
        // A map whose names can't be read is damage; so is a statement with more maps than any has.
        let Ok(map) = TableMapEvent::decode(body, length) else { return Err(error) };
        if TableSchema::new(&map, lengths.family()).is_ok() || self.unreadable.len() >= UNREADABLE_MAX {
            return Err(error);
        }
        let database = map.database.into();
        let table = map.table.into();
        let unreadable = UnreadableTable { database, table, why: unread::why(&error).into() };
        self.unreadable.retain(|(table_id, _)| *table_id != map.table_id);
        self.unreadable.push((map.table_id, unreadable));
        Ok(None)
    }

    /// The table of this number, if its table map is in force.
    pub fn of(&self, table_id: TableId) -> Option<Arc<TableSchema>> {
        self.schemas.get(table_id).ok().map(Arc::clone)
    }

    /// Takes the next event of the batch and returns its table information if it is a table map or row event.
    ///
    /// A table whose map can't be compiled (an unknown column type, metadata that doesn't fit it) gives `None`. Only its
    /// own rows can't be read; they are noted for the run's [`UnreadChanges`](super::UnreadChanges).
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
            self.end_statement();
        }
        if event_type == EventType::TABLE_MAP {
            let schema = self.note(event.body, &event.log.lengths)?;
            return Ok(schema.map(TableEvent::Map));
        }
        if !event_type.is_rows() {
            return Ok(None);
        }
        let rows = RowsEvent::decode(event_type, event.body, event.log.lengths.of(event_type))?;
        self.ended = rows.flags.contains(RowsFlags::STMT_END);
        if let Some((_, table)) = self.unreadable.iter().find(|(table_id, _)| *table_id == rows.table_id) {
            event.unread_of(Some((&table.database, &table.table)), table.why.to_string());
            return Ok(None);
        }
        let schema = Arc::clone(self.schemas.get(rows.table_id)?);
        Ok(Some(TableEvent::Rows(schema, rows)))
    }
}
