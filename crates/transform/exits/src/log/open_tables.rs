//! The tables of the statement that is being read: their maps, and the rows that were masked last.
//!
//! Maps wait until there are rows of a table that leaves. The last rows wait too: if the rows after them are left out, these end the
//! statement instead.

use std::sync::Arc;

use binlogz_binlog::event::{PostHeaderLengths, RowsFlags, TableId};
use binlogz_binlog::row::TableSchema;
use binlogz_binlog::{EventHeader, EventType};

use crate::table::plan::TablePlan;

/// Bytes that the maps of one statement may take.
const MAPS_SIZE_MAX: usize = 64 << 20;
/// Bytes of a map besides its body.
const MAP_SIZE: usize = 128;

/// What becomes of the rows of a table.
#[derive(Debug, Clone)]
pub(super) enum RowsFate {
    Keep,
    /// With the table, if it can be read: to count rows.
    LeaveOut(Option<Arc<TableSchema>>),
    /// They are left out for this reason, though the policy lets them leave.
    Unmasked(Arc<str>, Option<Arc<TableSchema>>),
    Mask(Arc<TablePlan>),
}

/// An event that waits.
pub(super) struct DelayedEvent {
    pub(super) header: EventHeader,
    pub(super) body: Vec<u8>,
}

struct OpenTable {
    id: TableId,
    fate: RowsFate,
    /// The map, until it is written.
    map: Option<DelayedEvent>,
}

/// The tables of a statement.
#[derive(Default)]
pub(super) struct OpenTables {
    tables: Vec<OpenTable>,
    size: usize,
    rows: Option<DelayedEvent>,
    pub(super) has_ended: bool,
}

impl OpenTables {
    /// The statement is over.
    pub(super) fn clear(&mut self) {
        self.tables.clear();
        self.size = 0;
        self.has_ended = false;
    }

    /// Takes a table; `map` is its map if it leaves. `false`: there are more than a statement has.
    pub(super) fn add(&mut self, id: TableId, fate: RowsFate, map: Option<DelayedEvent>) -> bool {
        self.size += MAP_SIZE + map.as_ref().map_or(0, |map| map.body.len());
        self.tables.retain(|table| table.id != id);
        self.tables.push(OpenTable { id, fate, map });
        self.size <= MAPS_SIZE_MAX
    }

    pub(super) fn fate(&self, id: TableId) -> Option<RowsFate> {
        self.tables.iter().find(|table| table.id == id).map(|table| table.fate.clone())
    }

    /// The maps that were not written yet.
    pub(super) fn take_maps(&mut self) -> Vec<DelayedEvent> {
        self.tables.iter_mut().filter_map(|table| table.map.take()).collect()
    }

    /// Rows that leave; returns those before them.
    pub(super) fn put_rows(&mut self, rows: DelayedEvent) -> Option<DelayedEvent> {
        self.rows.replace(rows)
    }

    /// The rows that wait.
    pub(super) fn take_rows(&mut self) -> Option<DelayedEvent> {
        self.rows.take()
    }

    /// The rows that wait end their statement.
    pub(super) fn end_with_rows(&mut self, lengths: &PostHeaderLengths) {
        let Some(rows) = &mut self.rows else { return };
        let offset = flags_offset(rows.header.event_type, lengths);
        if let Some(low) = rows.body.get_mut(offset) {
            *low |= RowsFlags::STMT_END.0 as u8;
        }
    }
}

/// Where the flags of a row event are: after the table's number, of four bytes in the oldest logs.
fn flags_offset(event_type: EventType, lengths: &PostHeaderLengths) -> usize {
    if lengths.of(event_type) == 6 { 4 } else { 6 }
}
