//! Maxwell's lines with its default settings: `data`, for updates the `old` values of columns that changed, and the
//! transaction's number, which `resolver.rs` fills in.

use std::io::Write as _;

use binlogz_binlog::Result;
use binlogz_binlog::row::{Row, RowImage};
use binlogz_print::BufferedLines;

use crate::fields::FieldPen;
use crate::java::{Escapes, push_string};
use crate::resolver::MARK;
use crate::settings::ChangeSettings;
use crate::table::ChangeTable;
use crate::value;
use crate::value::maxwell::MaxwellValues;

/// The text that rows of an event have in common; a worker's is used again for all events.
#[derive(Debug, Default)]
pub(crate) struct MaxwellHead {
    /// `{"database":…,"table":…` of a key.
    key: Vec<u8>,
    /// Up to the mark.
    line: Vec<u8>,
}

impl MaxwellHead {
    pub(crate) fn prepare(&mut self, table: &ChangeTable, kind: &str, timestamp: u32) {
        self.key.clear();
        self.key.extend_from_slice(b"{\"database\":");
        push_string(&mut self.key, &table.database, Escapes::Jackson);
        self.key.extend_from_slice(b",\"table\":");
        push_string(&mut self.key, &table.name, Escapes::Jackson);
        self.line.clear();
        self.line.extend_from_slice(&self.key);
        // Writing to a vector can't fail.
        let _ = write!(self.line, ",\"type\":\"{kind}\",\"ts\":{timestamp},");
        self.line.push(MARK);
        self.line.extend_from_slice(b"\"data\":");
    }

    /// Writes the line of a row.
    pub(crate) fn put_row<'l>(
        &self,
        mut lines: BufferedLines<'l>,
        row: &Row<'_, '_>,
        table: &ChangeTable,
        settings: &ChangeSettings<'_>,
        apart: &mut Vec<u8>,
    ) -> Result<BufferedLines<'l>> {
        let Some(data) = row.after.as_ref().or(row.before.as_ref()) else { return Ok(lines) };
        let mut pen = FieldPen { row, table, values: MaxwellValues, apart };
        if settings.with_key {
            lines = self.put_key(lines, data, &mut pen)?;
        }
        lines.put_text(&self.line);
        let columns = 0..table.columns.len();
        lines = pen.put_object(lines, data, columns.clone())?;
        if let (Some(before), Some(_)) = (&row.before, &row.after)
            && columns.clone().any(|index| value::is_changed(row, index))
        {
            lines.step();
            lines.put(b",\"old\":", 7);
            let changed = columns.filter(|index| value::is_changed(row, *index));
            lines = pen.put_object(lines, before, changed)?;
        }
        lines.step();
        lines.put(b"}\n", 2);
        Ok(lines)
    }

    /// The key that Maxwell gives Kafka (`kafka_key_format=hash`).
    fn put_key<'l>(
        &self,
        mut lines: BufferedLines<'l>,
        data: &RowImage<'_, '_>,
        pen: &mut FieldPen<'_, '_, '_, MaxwellValues>,
    ) -> Result<BufferedLines<'l>> {
        lines.put_text(&self.key);
        for &index in &pen.table.key {
            let Some(column) = pen.table.columns.get(index) else { continue };
            lines.step();
            lines.put(b",", 1);
            let mut name = Vec::new();
            push_string(&mut name, &format!("pk.{}", column.name.to_lowercase()), Escapes::Jackson);
            lines.put_text(&name);
            lines.step();
            lines.put(b":", 1);
            lines = pen.put_value(lines, data, index)?;
        }
        lines.step();
        lines.put(b"}\t", 2);
        Ok(lines)
    }
}
