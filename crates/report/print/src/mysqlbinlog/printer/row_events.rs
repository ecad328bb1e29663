//! Table maps and row events: their `BINLOG` statements and `###` lines, which wait for the end of the
//! statement.

use std::io;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{RowsEvent, RowsFlags, RowsQueryEvent, TableMapEvent};
use binlogz_flow::events::{Event, TableEvent};

use super::select::unreadable;
use super::{PrintStep, Run};
use crate::mysqlbinlog::options::Base64Output;
use crate::mysqlbinlog::rows::table_columns::push_columns;
use crate::mysqlbinlog::shown::ShownEvent;
use crate::number::push_unsigned;

/// The first server whose table maps mark generated invisible primary keys.
const TELLS_OF_GENERATED_KEYS: u32 = 80_030;

impl Run<'_> {
    /// Prints table maps, row events and the statements after them.
    pub(super) fn row_related(
        &mut self,
        shown: &ShownEvent<'_>,
        event: Option<&Event<'_>>,
    ) -> io::Result<PrintStep> {
        let Some(event) = event else { return Ok(PrintStep::Go) };
        let length = event.log.lengths.of(shown.header.event_type);
        let is_rows = shown.header.event_type.is_rows();
        let mut rows = None;
        if !self.emit && self.pass_quietly(shown.header.event_type, shown.body, length)? {
            return Ok(PrintStep::Go);
        }
        if shown.header.event_type == EventType::TABLE_MAP {
            if self.selects_tables() {
                let map = match TableMapEvent::decode(shown.body, length) {
                    Ok(map) => map,
                    Err(error) => return Ok(PrintStep::Damaged(unreadable(shown, &error))),
                };
                if self.is_ignored(&map) {
                    if self.emit {
                        // Its rows are skipped, but the table map is in force.
                        self.pen.rows.table_map(event);
                    }
                    self.state.skipped_in_transaction = true;
                    self.state.ignored_tables.push(map.table_id);
                    return Ok(PrintStep::Go);
                }
                self.state.ignored_tables.retain(|id| *id != map.table_id);
            }
            return self.table_map(shown, event, length);
        }
        if is_rows {
            match RowsEvent::decode(shown.header.event_type, shown.body, length) {
                Ok(event) => rows = Some(event),
                Err(error) => return Ok(PrintStep::Damaged(unreadable(shown, &error))),
            }
        }
        if let Some(rows) = &rows {
            let ends = rows.flags.contains(RowsFlags::STMT_END);
            let ignored = self.state.ignored_tables.contains(&rows.table_id);
            if ends {
                self.state.ignored_tables.clear();
            }
            if ignored {
                self.state.skipped_in_transaction = true;
                return if ends { self.end_rows() } else { Ok(PrintStep::Go) };
            }
            if !self.state.printed_format_description
                && !self.options.short_form
                && self.options.base64_output != Base64Output::DecodeRows
            {
                let name = rows_name(shown.header.event_type);
                return Ok(PrintStep::Error(match self.options.base64_output {
                    Base64Output::Never => format!(
                        "--base64-output=never specified, but binlog contains a {name} event which must be \
                         printed in base64."
                    ),
                    _ => format!(
                        "malformed binlog: it does not contain any Format_description_log_event. I now found \
                         a {name} event, which is not safe to process without a \
                         Format_description_log_event."
                    ),
                }));
            }
            return self.rows(shown, rows);
        }
        self.rows_query(shown)
    }

    /// Skips an event of which only a few bytes matter to later events. `false` if it has to be read in full.
    pub(super) fn pass_quietly(
        &mut self,
        event_type: EventType,
        body: &[u8],
        length: u8,
    ) -> io::Result<bool> {
        let options = self.options;
        let is_safe =
            self.state.printed_format_description || options.base64_output == Base64Output::DecodeRows;
        if self.selects_tables() || options.short_form || !is_safe {
            return Ok(false);
        }
        let is_rows = event_type.is_rows();
        let (table_id, flags) = if is_rows {
            let Ok(front) = RowsEvent::decode_front(event_type, body, length) else { return Ok(false) };
            front
        } else if event_type == EventType::TABLE_MAP
            && let Ok(table_id) = TableMapEvent::decode_table_id(body, length)
        {
            (table_id, RowsFlags::default())
        } else {
            return Ok(false);
        };
        self.state.rows_open = true;
        self.wait(body, is_rows.then_some(table_id));
        if !is_rows {
            self.state.known_tables.push(table_id);
        } else if flags.contains(RowsFlags::STMT_END) {
            self.end_rows()?;
        }
        Ok(true)
    }

    /// Whether the rows of some tables are not shown.
    fn selects_tables(&self) -> bool {
        let selection = &self.options.selection;
        selection.database.is_some() || !selection.tables.is_empty()
    }

    pub(super) fn is_ignored(&mut self, map: &TableMapEvent<'_>) -> bool {
        let tables = &self.options.selection.tables;
        if self.is_other_database(map.database) {
            return true;
        }
        let is_it = |(database, table): &(Vec<u8>, Vec<u8>)| database == map.database && table == map.table;
        let place = tables.iter().position(is_it);
        if let Some(place) = place {
            self.state.met.tables.insert(place);
        }
        !tables.is_empty() && place.is_none()
    }

    pub(super) fn table_map(
        &mut self,
        shown: &ShownEvent<'_>,
        event: &Event<'_>,
        post_header_length: u8,
    ) -> io::Result<PrintStep> {
        let place = match self.pen.table_maps.find(shown.body, post_header_length) {
            Ok(place) => place,
            Err(error) => return Ok(PrintStep::Damaged(unreadable(shown, &error))),
        };
        self.state.rows_open = true;
        self.state.known_tables.push(self.pen.table_maps.at(place).table_id);
        if self.options.short_form {
            return Ok(PrintStep::Go);
        }
        if self.emit {
            let schema = match self.pen.rows.tables.event(event) {
                Ok(Some(TableEvent::Map(schema))) => Some(schema),
                // Its rows are shown in base64 all the same.
                Ok(_) => None,
                Err(error) => return Ok(PrintStep::Damaged(error.to_string())),
            };
            self.header(shown);
            let head = &mut self.text.head;
            let map = self.pen.table_maps.at(place);
            head.extend_from_slice(&map.line);
            let has = map.has_generated_key;
            if (TELLS_OF_GENERATED_KEYS..999_999).contains(&self.state.immediate_server_version) {
                head.extend_from_slice(b"# has_generated_invisible_primary_key=");
                head.extend_from_slice(if has { b"1\n" } else { b"0\n" });
            }
            if let Some(schema) = schema.filter(|_| self.options.print_table_metadata) {
                push_columns(head, &schema, has);
            }
            self.text.flush_head();
        }
        self.wait(shown.body, None);
        Ok(PrintStep::Go)
    }

    pub(super) fn rows_query(&mut self, shown: &ShownEvent<'_>) -> io::Result<PrintStep> {
        if self.options.short_form || self.options.verbose < 2 {
            self.state.rows_open = true;
            self.flush_head();
            return Ok(PrintStep::Go);
        }
        self.state.rows_open = true;
        if self.emit {
            let event = match RowsQueryEvent::decode(shown.body) {
                Ok(event) => event,
                Err(error) => return Ok(PrintStep::Damaged(unreadable(shown, &error))),
            };
            self.header(shown);
            let head = &mut self.text.head;
            head.extend_from_slice(b"\tRows_query\n");
            for line in event.statement.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                head.extend_from_slice(b"# ");
                for &byte in line {
                    if byte == b'\\' {
                        head.push(byte);
                    }
                    head.push(byte);
                }
                head.push(b'\n');
            }
            self.text.flush_head();
        }
        self.wait(shown.body, None);
        Ok(PrintStep::Go)
    }

    pub(super) fn rows(&mut self, shown: &ShownEvent<'_>, rows: &RowsEvent<'_>) -> io::Result<PrintStep> {
        self.state.rows_open = true;
        if !self.options.short_form {
            if self.emit {
                self.header(shown);
                let head = &mut self.text.head;
                head.push(b'\t');
                head.extend_from_slice(rows_name(shown.header.event_type).as_bytes());
                head.extend_from_slice(b": table id ");
                push_unsigned(head, rows.table_id.0);
                push_flags(head, rows.flags);
                head.push(b'\n');
                self.text.flush_head();
            }
            self.wait(shown.body, Some(rows.table_id));
        }
        if rows.flags.contains(RowsFlags::STMT_END) {
            return self.end_rows();
        }
        self.flush_head();
        Ok(PrintStep::Go)
    }
}

/// mysqlbinlog's names for the row events.
pub(super) fn rows_name(event_type: EventType) -> &'static str {
    match event_type {
        EventType::WRITE_ROWS => "Write_rows",
        EventType::UPDATE_ROWS => "Update_rows",
        EventType::DELETE_ROWS => "Delete_rows",
        EventType::PARTIAL_UPDATE_ROWS => "Update_rows_partial",
        EventType::WRITE_ROWS_V1 => "Write_rows_v1",
        EventType::UPDATE_ROWS_V1 => "Update_rows_v1",
        EventType::DELETE_ROWS_V1 => "Delete_rows_v1",
        _ => "Rows_of_5.1_beta",
    }
}

pub(super) fn push_flags(out: &mut Vec<u8>, flags: RowsFlags) {
    let mut separator = &b" flags: "[..];
    for (flag, name) in [
        (RowsFlags::STMT_END, &b"STMT_END_F"[..]),
        (RowsFlags::NO_FOREIGN_KEY_CHECKS, b"NO_FOREIGN_KEY_CHECKS_F"),
        (RowsFlags::RELAXED_UNIQUE_CHECKS, b"RELAXED_UNIQUE_CHECKS_F"),
        (RowsFlags::COMPLETE_ROWS, b"COMPLETE_ROWS_F"),
        (RowsFlags::USE_SQL_FOREIGN_KEY, b"USE_SQL_FOREIGN_KEY_F"),
    ] {
        if flags.contains(flag) {
            out.extend_from_slice(separator);
            out.extend_from_slice(name);
            separator = b" ";
        }
    }
}
