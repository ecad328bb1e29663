//! Tables as their maps and the statements of the logs tell them, event by event, in order.

use std::sync::Arc;

use binlogz_binlog::event::{QueryEvent, RotateEvent};
use binlogz_binlog::row::TableSchema;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventHeader, EventType};
use binlogz_schema::{CompletedTables, RecordedStatement, TablesOfLogs, TablesSoFar};

/// Whether an event says something of tables besides their maps: a statement, the begin or the end of a log.
pub(crate) fn may_tell(header: &EventHeader, body: &[u8]) -> bool {
    match header.event_type {
        EventType::QUERY => !body.ends_with(b"\0BEGIN") && !body.ends_with(b"\0COMMIT"),
        event_type => matches!(event_type, EventType::FORMAT_DESCRIPTION | EventType::ROTATE),
    }
}

/// The tables of logs that are read in order.
#[derive(Debug, Default)]
pub(crate) struct TablesByPlace {
    /// Nothing but statements tells of tables.
    known: TablesOfLogs,
    so_far: TablesSoFar,
    completed: CompletedTables,
}

impl TablesByPlace {
    /// Statements may be missing between those that are read.
    pub(crate) fn with_gaps() -> Self {
        TablesByPlace { known: TablesOfLogs::forward(None).with_gaps(), ..TablesByPlace::default() }
    }

    pub(crate) fn begin_log(&mut self, name: &str) {
        self.so_far.begin_log(name.as_bytes());
    }

    /// Takes an event for what it says of tables. One that can't be read is an error elsewhere.
    pub(crate) fn learn(&mut self, offset: u64, header: &EventHeader, body: &[u8]) {
        match header.event_type {
            EventType::QUERY if may_tell(header, body) => self.record(offset, body),
            EventType::FORMAT_DESCRIPTION => self.so_far.take_server(header.server_id, offset),
            EventType::ROTATE if header.timestamp != 0 => {
                if let Ok(rotate) = RotateEvent::decode(body) {
                    self.so_far.rotate_to(rotate.name);
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, offset: u64, body: &[u8]) {
        let Ok(query) = QueryEvent::decode(body) else { return };
        if StatementKind::of(query.statement) == StatementKind::Other && !query.is_alter_without_effect() {
            let database = String::from_utf8_lossy(query.database);
            let text = String::from_utf8_lossy(query.statement);
            let place = self.so_far.place(offset);
            self.so_far.record(&RecordedStatement::of_query(place, &query, (&database, &text)));
        }
    }

    /// The table of a map at an offset of the log.
    pub(crate) fn complete(&mut self, map: Arc<TableSchema>, offset: u64) -> Arc<TableSchema> {
        if self.so_far.statements() == 0 {
            return map;
        }
        self.completed.complete(&self.known, &map, self.so_far.place(offset), &self.so_far)
    }

    /// The columns that tell the rows of a completed table apart: those of the primary key, as the map tells it; otherwise those of the
    /// primary key or the first unique one, as the statements so far tell it, if none of them can be NULL.
    pub(crate) fn key(&self, map: &Arc<TableSchema>, offset: u64) -> Vec<usize> {
        let columns = map.columns();
        let logged = columns.iter().enumerate().filter(|(_, column)| column.primary_key.is_some());
        let logged: Vec<_> = logged.map(|(index, _)| index).collect();
        if !logged.is_empty() || self.so_far.statements() == 0 {
            return logged;
        }
        let told = self.known.complete(map, self.so_far.place(offset), &self.so_far).key;
        let is_certain = told.iter().all(|&index| columns.get(index).is_some_and(|column| !column.nullable));
        if is_certain { told } else { Vec::new() }
    }

    /// How many statements so far changed tables: as long as it is the same, so are all tables.
    pub(crate) fn statements(&self) -> usize {
        self.so_far.statements()
    }
}
