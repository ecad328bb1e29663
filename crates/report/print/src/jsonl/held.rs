//! With `--table` or `--database`: holds lines until their transaction turns out to have such rows.
//!
//! A transaction without such rows prints nothing. So the lines of its beginning are held, and those of a statement until
//! it has rows that are shown. The amount held does not grow with the transaction.

use binlogz_binlog::event::{QueryEvent, RowsEvent, RowsFlags, TableId, TableMapEvent};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventType, Result};
use binlogz_flow::events::{Event, InsidePayload};

use crate::selection::EventSelection;

/// The held part of a transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldLines {
    /// The lines of its begin.
    pub(super) lines: Vec<u8>,
    /// The current statement's text and table maps, as far as they are asked for.
    pub(super) statement: Vec<LinePlace>,
    /// The tables of the statement that are asked for.
    tables: Vec<TableId>,
    /// The transaction has rows that are shown.
    is_shown: bool,
}

/// An event whose line is made later.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePlace {
    pub(super) event_type: EventType,
    pub(super) timestamp: u32,
    pub(super) server_id: u32,
    pub(super) position: u64,
    pub(super) end_log_pos: u32,
    pub(super) inside: Option<InsidePayload>,
    /// The table of a table map.
    pub(super) table: Option<TableId>,
}

impl LinePlace {
    /// The place of an event at this position.
    pub(super) fn of(event: &Event<'_>, position: u64) -> Self {
        LinePlace {
            event_type: event.header.event_type,
            timestamp: event.header.timestamp,
            server_id: event.header.server_id,
            position,
            end_log_pos: event.end_log_pos(),
            inside: event.position.inside,
            table: None,
        }
    }
}

/// The decision about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineDecision {
    /// It has its line, or its rows have theirs; held lines come before.
    Now,
    /// The event's line is held until its transaction has rows that are shown.
    WithRows,
    /// Nothing now.
    Not,
}

impl HeldLines {
    /// A transaction begins, or none is there.
    pub(super) fn begin(&mut self) {
        self.lines.clear();
        self.statement.clear();
        self.tables.clear();
        self.is_shown = false;
    }

    /// The lines were printed.
    pub(super) fn release(&mut self) {
        self.lines.clear();
        self.statement.clear();
    }

    /// Takes an event of the transaction, at this position.
    ///
    /// # Errors
    ///
    /// An event that can't be read.
    pub(super) fn pass(
        &mut self,
        event: &Event<'_>,
        position: u64,
        selection: &EventSelection,
    ) -> Result<LineDecision> {
        let event_type = event.header.event_type;
        let length = event.log.lengths.of(event_type);
        Ok(match event_type {
            EventType::TABLE_MAP => {
                let map = TableMapEvent::decode(event.body, length)?;
                self.tables.retain(|id| *id != map.table_id);
                if selection.has_table(map.database, map.table) {
                    self.tables.push(map.table_id);
                    let table = Some(map.table_id);
                    self.statement.retain(|place| place.table != table);
                    self.statement.push(LinePlace { table, ..LinePlace::of(event, position) });
                }
                LineDecision::Not
            }
            EventType::ROWS_QUERY => {
                self.statement.clear();
                self.statement.push(LinePlace::of(event, position));
                LineDecision::Not
            }
            event_type if event_type.is_rows() => {
                let (table, flags) = RowsEvent::decode_front(event_type, event.body, length)?;
                let is_asked_for = self.tables.contains(&table);
                if flags.contains(RowsFlags::STMT_END) {
                    self.tables.clear();
                    if !is_asked_for {
                        self.statement.clear();
                    }
                }
                self.is_shown |= is_asked_for;
                if is_asked_for { LineDecision::Now } else { LineDecision::Not }
            }
            _ if is_frame(event)? => match event_type {
                _ if self.is_shown => LineDecision::Now,
                // No rows follow the end of a transaction, and savepoints may be many.
                EventType::XID | EventType::XA_PREPARE => LineDecision::Not,
                EventType::QUERY if !begins(event)? => LineDecision::Not,
                _ => LineDecision::WithRows,
            },
            // As in the text, statements are left out if tables are named.
            _ if !selection.tables.is_empty() => LineDecision::Not,
            _ => {
                self.is_shown = true;
                LineDecision::Now
            }
        })
    }
}

/// Whether transactions have an event such as this, whatever they change.
fn is_frame(event: &Event<'_>) -> Result<bool> {
    Ok(match event.header.event_type {
        EventType::XID | EventType::XA_PREPARE | EventType::TRANSACTION_PAYLOAD => true,
        EventType::QUERY => kind(event)? != StatementKind::Other,
        event_type => event_type.is_gtid(),
    })
}

fn kind(event: &Event<'_>) -> Result<StatementKind> {
    Ok(StatementKind::of(QueryEvent::decode(event.body)?.statement))
}

fn begins(event: &Event<'_>) -> Result<bool> {
    Ok(matches!(kind(event)?, StatementKind::Begin | StatementKind::XaStart))
}
