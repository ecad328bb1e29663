//! The events of the statement that passes: its text, the maps of its tables, its rows.
//!
//! If a row of it was chosen, its text goes, since it may have the values. If none of its events of rows is left, the maps go too; if the last
//! one is gone, the one before it ends the statement.

use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{PostHeaderLengths, RowsFlags, TableId};

use super::events::{ErasureEventAt, ErasureEvents};
use super::plan::TableErasure;
use crate::pass::Error;

/// A table of the statement.
struct StatementTable {
    id: TableId,
    /// What becomes of its rows; `None`: it is another table.
    plan: Option<Arc<TableErasure>>,
}

/// A text beside the rows of the statement.
pub(super) struct TextBesideRows {
    pub(super) event: ErasureEventAt,
    pub(super) text: Vec<u8>,
    pub(super) offset: u64,
}

/// The last event of rows that is left.
struct LastRows {
    event: ErasureEventAt,
    event_type: EventType,
    flags: RowsFlags,
}

/// The statement that passes.
#[derive(Default)]
pub(super) struct OpenStatement {
    tables: Vec<StatementTable>,
    maps: Vec<ErasureEventAt>,
    pub(super) texts: Vec<TextBesideRows>,
    last: Option<LastRows>,
    /// Whether rows of it were chosen, and events of rows are gone.
    pub(super) has_chosen: bool,
    has_gone: bool,
    has_rows: bool,
}

impl OpenStatement {
    /// Takes a table, and what becomes of its rows; `None`: it is another table.
    pub(super) fn table(&mut self, id: TableId, map: ErasureEventAt, plan: Option<Arc<TableErasure>>) {
        self.tables.retain(|table| table.id != id);
        self.tables.push(StatementTable { id, plan });
        self.maps.push(map);
    }

    /// Whether rows of it have passed: the next map is another statement's.
    pub(super) fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// What becomes of the rows of this table. `None`: no map of the statement gave it.
    pub(super) fn plan(&self, id: TableId) -> Option<Option<Arc<TableErasure>>> {
        self.tables.iter().find(|table| table.id == id).map(|table| table.plan.clone())
    }

    /// Takes an event of rows that is left.
    pub(super) fn rows(&mut self, event: ErasureEventAt, event_type: EventType, flags: RowsFlags) {
        self.has_rows = true;
        self.last = Some(LastRows { event, event_type, flags });
    }

    /// An event of rows is gone.
    pub(super) fn rows_gone(&mut self) {
        self.has_rows = true;
        self.has_gone = true;
    }

    /// The rows of the statement end.
    pub(super) fn end(&self, events: &mut ErasureEvents, lengths: &PostHeaderLengths) -> Result<(), Error> {
        if self.has_gone {
            match &self.last {
                None => self.maps.iter().for_each(|map| events.drop_event(*map)),
                Some(last) if !last.flags.contains(RowsFlags::STMT_END) => {
                    events.end_statement(last.event, flags_offset(last.event_type, lengths), last.flags)?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Where the flags of an event of rows are: after the table's number, of four bytes in the oldest logs.
fn flags_offset(event_type: EventType, lengths: &PostHeaderLengths) -> usize {
    if lengths.of(event_type) == 6 { 4 } else { 6 }
}
