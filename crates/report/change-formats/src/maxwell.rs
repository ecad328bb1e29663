//! Maxwell's lines with its default settings: `data`, for updates the `old` values of columns that changed, and the
//! transaction's number, which `resolver.rs` fills in.

use std::io::Write as _;

use binlogz_binlog::Result;
use binlogz_binlog::row::{CellContent, Row, RowImage};
use binlogz_print::BufferedLines;

use crate::java::{Escapes, push_string};
use crate::resolver::MARK;
use crate::settings::ChangeSettings;
use crate::table::ChangeTable;
use crate::value::{self, maxwell as values};

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
        if settings.with_key {
            lines = self.put_key(lines, (row, data), table, apart)?;
        }
        lines.put_text(&self.line);
        lines = put_columns(lines, (row, data), table, apart, |_| true)?;
        if let (Some(before), Some(_)) = (&row.before, &row.after)
            && (0..table.columns.len()).any(|index| value::is_changed(row, index))
        {
            lines.step();
            lines.put(b",\"old\":", 7);
            lines = put_columns(lines, (row, before), table, apart, |index| value::is_changed(row, index))?;
        }
        lines.step();
        lines.put(b"}\n", 2);
        Ok(lines)
    }

    /// The key that Maxwell gives Kafka (`kafka_key_format=hash`).
    fn put_key<'l>(
        &self,
        mut lines: BufferedLines<'l>,
        (row, data): (&Row<'_, '_>, &RowImage<'_, '_>),
        table: &ChangeTable,
        apart: &mut Vec<u8>,
    ) -> Result<BufferedLines<'l>> {
        lines.put_text(&self.key);
        for &index in &table.key {
            let Some(column) = table.columns.get(index) else { continue };
            lines.step();
            lines.put(b",", 1);
            let mut name = Vec::new();
            push_string(&mut name, &format!("pk.{}", column.name.to_lowercase()), Escapes::Jackson);
            lines.put_text(&name);
            lines.step();
            lines.put(b":", 1);
            lines = put_value(lines, (row, data), table, index, apart)?;
        }
        lines.step();
        lines.put(b"}\t", 2);
        Ok(lines)
    }
}

fn put_columns<'l>(
    mut lines: BufferedLines<'l>,
    (row, image): (&Row<'_, '_>, &RowImage<'_, '_>),
    table: &ChangeTable,
    apart: &mut Vec<u8>,
    is_wanted: impl Fn(usize) -> bool,
) -> Result<BufferedLines<'l>> {
    let mut between = b'{';
    for (index, column) in table.columns.iter().enumerate().filter(|(index, _)| is_wanted(*index)) {
        lines.step();
        lines.put(&[std::mem::replace(&mut between, b',')], 1);
        lines.put_text(&column.field);
        lines = put_value(lines, (row, image), table, index, apart)?;
    }
    lines.step();
    if between == b'{' {
        lines.put(b"{", 1);
    }
    lines.put(b"}", 1);
    Ok(lines)
}

fn put_value<'l>(
    mut lines: BufferedLines<'l>,
    (row, image): (&Row<'_, '_>, &RowImage<'_, '_>),
    table: &ChangeTable,
    index: usize,
    apart: &mut Vec<u8>,
) -> Result<BufferedLines<'l>> {
    let Some(column) = table.columns.get(index) else { return Ok(lines) };
    lines.step();
    let cell = match value::cell(image, column, index) {
        Ok(cell) => cell,
        Err(error) => {
            lines.end();
            return Err(error);
        }
    };
    if let CellContent::JsonDiffs(_) = cell.content {
        let text = value::changed_document(row, index);
        values::push_changed_document(lines.out(), &text?);
        return Ok(lines);
    }
    value::put(lines, &cell, column, apart, |out| values::push(out, &cell, column))
}
