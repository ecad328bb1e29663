//! Writes a row's change as text, JSON or CSV. The listener adds the fields of the transaction.

use binlogz_binlog::printable;
use binlogz_binlog::row::{Cell, CellContent, Row, RowImage};
use binlogz_report::jsonl::{push_string, push_value};

use super::LifeFormat;
use crate::choose::Operation;
use crate::pass::{Renderer, RowRendering};
use crate::sql::literal::{push, push_front, push_hex, push_shown};
use crate::table::{TableColumn, WrittenTable};

/// The most characters of a value in text.
const VALUE_LENGTH_MAX: usize = 200;
/// Bytes of a value that have this many characters.
const VALUE_SIZE_MAX: usize = 4 * VALUE_LENGTH_MAX + 4;
/// The widest name after which values are aligned.
const NAME_WIDTH_MAX: usize = 30;

/// Renders changes.
pub(super) struct ChangeRenderer {
    pub(super) format: LifeFormat,
}

impl Renderer for ChangeRenderer {
    fn render(
        &self,
        table: &WrittenTable,
        operation: Operation,
        row: &Row<'_, '_>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        match self.format {
            LifeFormat::Text => text(table, operation, row, out),
            LifeFormat::Json => json(table, operation, row, out),
            LifeFormat::Csv => csv(table, operation, row, out),
        }
        RowRendering::Text(0)
    }
}

/// A column of a change.
struct Change<'t> {
    column: &'t TableColumn,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    is_changed: bool,
}

/// The columns that have a value in the log, as SQL writes them; of long values at least this many bytes.
fn changes<'t>(table: &'t WrittenTable, row: &Row<'_, '_>, size_max: usize) -> Vec<Change<'t>> {
    let shown = |image: Option<RowImage<'_, '_>>, column: &TableColumn| {
        let cell = image?.cell(column.index)?;
        Some(value(column, row, &cell, size_max))
    };
    let columns = table.columns.iter().map(|column| Change {
        column,
        before: shown(row.before, column),
        after: shown(row.after, column),
        is_changed: is_changed(column, row),
    });
    columns.filter(|change| change.before.is_some() || change.after.is_some()).collect()
}

/// Whether an update gave a column another value; it left alone those that its image lacks.
fn is_changed(column: &TableColumn, row: &Row<'_, '_>) -> bool {
    let [before, after] =
        [row.before, row.after].map(|image| image.and_then(|image| image.cell(column.index)));
    match (before.map(|cell| cell.content), after.map(|cell| cell.content)) {
        (_, None) => false,
        (Some(_), Some(CellContent::JsonDiffs(diffs))) => !diffs.is_empty(),
        (before, after) => before != after,
    }
}

fn value(column: &TableColumn, row: &Row<'_, '_>, cell: &Cell<'_>, size_max: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if matches!(cell.content, CellContent::JsonDiffs(_)) {
        let mut document = Vec::new();
        if let Ok(Some(tree)) = row.json_after(cell.index)
            && tree.write_text(&mut document).is_ok()
        {
            push_shown(&mut out, &document);
            return out;
        }
    }
    if push_front(&mut out, column, cell, size_max).is_err() {
        out.clear();
        match (cell.value(), cell.content) {
            // Whether it has a sign is not logged.
            (Ok(binlogz_binlog::row::Value::Int(number)), _) => push(&mut out, number),
            (_, CellContent::Value(bytes) | CellContent::JsonDiffs(bytes)) => {
                push_hex(&mut out, bytes.get(..size_max).unwrap_or(bytes));
            }
            (_, CellContent::Null) => push(&mut out, "NULL"),
        }
    }
    out
}

fn text(table: &WrittenTable, operation: Operation, row: &Row<'_, '_>, out: &mut Vec<u8>) {
    push(out, format_args!("{} {}\n", operation.name(), printable(&table.shown())));
    let changes = changes(table, row, VALUE_SIZE_MAX);
    let width = |change: &Change<'_>| change.column.shown().chars().count();
    let width = changes.iter().map(width).max().unwrap_or(0).min(NAME_WIDTH_MAX);
    for change in &changes {
        let name = change.column.shown();
        let short = |value: &Option<Vec<u8>>| match value {
            Some(value) => short(value),
            None => "(not logged)".to_owned(),
        };
        let (mark, value) = match operation {
            Operation::Insert => ('+', short(&change.after)),
            Operation::Delete => ('-', short(&change.before)),
            Operation::Update if change.is_changed => {
                ('*', format!("{} → {}", short(&change.before), short(&change.after)))
            }
            Operation::Update => (' ', short(&change.before)),
        };
        push(out, format_args!("  {mark} {:width$}  {value}\n", printable(&name)));
    }
}

fn short(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let short: String = text.chars().take(VALUE_LENGTH_MAX).collect();
    let dots = if short.len() < text.len() { " …" } else { "" };
    format!("{}{dots}", printable(&short))
}

fn json(table: &WrittenTable, operation: Operation, row: &Row<'_, '_>, out: &mut Vec<u8>) {
    for (name, text) in [("database", &table.schema.database), ("table", &table.schema.table)] {
        push(out, format_args!("\"{name}\":"));
        push_string(out, &String::from_utf8_lossy(text));
        out.push(b',');
    }
    push(out, format_args!("\"operation\":\"{}\"", operation.name().to_lowercase()));
    let mut scratch = Vec::new();
    for (name, image) in [("before", row.before), ("after", row.after)] {
        let Some(image) = image else { continue };
        push(out, format_args!(",\"{name}\":{{"));
        for cell in image.cells() {
            let Some(column) = table.columns.get(cell.index) else { continue };
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
            push_string(out, &column.shown());
            out.push(b':');
            let start = out.len();
            if push_value(out, &cell, &mut scratch).is_err() {
                out.truncate(start);
                push(out, "null");
            }
        }
        out.push(b'}');
    }
    push(out, ",\"changed\":[");
    let changed =
        table.columns.iter().filter(|column| operation == Operation::Update && is_changed(column, row));
    for (number, column) in changed.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        push_string(out, &column.shown());
    }
    out.push(b']');
}

/// A line for each column.
fn csv(table: &WrittenTable, operation: Operation, row: &Row<'_, '_>, out: &mut Vec<u8>) {
    for change in changes(table, row, usize::MAX) {
        push_csv(out, &table.schema.database);
        out.push(b',');
        push_csv(out, &table.schema.table);
        push(out, format_args!(",{},", operation.name().to_lowercase()));
        // A line break would end the line.
        push_csv(out, change.column.shown().replace(['\n', '\r'], " ").as_bytes());
        for value in [&change.before, &change.after] {
            out.push(b',');
            push_csv(out, value.as_deref().unwrap_or_default());
        }
        let is_changed = operation == Operation::Update && change.is_changed;
        push(out, format_args!(",{}\n", u8::from(is_changed)));
    }
}

/// Appends a field as RFC 4180 has it.
pub(super) fn push_csv(out: &mut Vec<u8>, field: &[u8]) {
    if !field.iter().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r')) {
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    for &byte in field {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
