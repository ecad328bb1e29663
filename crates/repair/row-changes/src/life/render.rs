//! Writes a row's change as text, JSON or CSV. The listener adds the fields of the transaction.

use std::io;
use std::sync::Arc;

use binlogz_binlog::printable;
use binlogz_binlog::row::{Cell, CellContent, Row, RowImage};
use binlogz_print::jsonl::{LargeValue, push_string, push_value};

use super::LifeFormat;
use crate::choose::Operation;
use crate::images::text_of_document;
use crate::pass::{
    FollowedTables, PassOnText, RebuiltColumns, Renderer, RowRendering, TableRow, lacks_columns,
};
use crate::record::RowFlags;
use crate::sql::literal::{LargeLiteral, push_front};
use crate::sql::text::{HEX_BEGIN, push, push_hex, push_hex_digits, push_shown, push_shown_characters};
use crate::table::{MemberNames, TableColumn, WrittenTable};

/// The most characters of a value in text.
const VALUE_LENGTH_MAX: usize = 200;
/// Bytes of a value that have this many characters.
const VALUE_SIZE_MAX: usize = 4 * VALUE_LENGTH_MAX + 4;
/// The widest name after which values are aligned.
const NAME_WIDTH_MAX: usize = 30;

/// Renders changes.
#[derive(Debug, Clone)]
pub(super) struct ChangeRenderer {
    pub(super) format: LifeFormat,
    /// Tables of which all rows are followed.
    pub(super) followed: Option<Arc<FollowedTables>>,
    /// Whether a condition that a row's own images can't decide is decided later.
    pub(super) defers_conditions: bool,
}

impl Renderer for ChangeRenderer {
    fn render(&self, row: TableRow<'_>, out: &mut Vec<u8>) -> RowRendering {
        // Nothing fails that keeps the text.
        let _ = self.write(row, None, out, &mut |_| Ok(()));
        RowRendering::Text(0)
    }

    fn render_in_parts(
        &self,
        row: TableRow<'_>,
        out: &mut Vec<u8>,
        pass_on: &mut PassOnText<'_>,
    ) -> io::Result<RowRendering> {
        // CSV shows what is logged.
        if self.format != LifeFormat::Csv && lacks_columns(row.table, row.row) {
            // Another text may take the place of this one.
            self.write(row, None, out, &mut |_| Ok(()))?;
            return Ok(RowRendering::Lacking(0));
        }
        self.write(row, None, out, pass_on)?;
        Ok(RowRendering::Text(0))
    }

    fn render_rebuilt(
        &self,
        row: TableRow<'_>,
        columns: &RebuiltColumns<'_>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        let _ = self.write(row, Some(columns), out, &mut |_| Ok(()));
        RowRendering::Text(if lacks_columns(row.table, row.row) { RowFlags::MISSING } else { 0 })
    }

    fn defers_conditions(&self) -> bool {
        self.defers_conditions
    }

    fn followed(&self) -> Option<&FollowedTables> {
        self.followed.as_deref()
    }
}

impl ChangeRenderer {
    fn write(
        &self,
        row: TableRow<'_>,
        columns: Option<&RebuiltColumns<'_>>,
        out: &mut Vec<u8>,
        pass_on: &mut PassOnText<'_>,
    ) -> io::Result<()> {
        match self.format {
            LifeFormat::Text => text(row, columns, out),
            LifeFormat::Json => json(row, columns, out, pass_on)?,
            LifeFormat::Csv => csv(row, out, pass_on)?,
        }
        Ok(())
    }
}

/// A column of a change.
struct Change<'t> {
    column: &'t TableColumn,
    before: Option<ShownValue>,
    after: Option<ShownValue>,
    is_changed: bool,
}

/// A value as text.
struct ShownValue {
    /// The value as SQL writes it.
    text: Vec<u8>,
    /// Whether the image in the log lacks the value.
    is_rebuilt: bool,
}

impl ShownValue {
    fn short(&self) -> String {
        format!("{}{}", short(&self.text), if self.is_rebuilt { " (rebuilt)" } else { "" })
    }
}

/// The columns that have a value in the log, as SQL writes them; of long values at least this many bytes.
fn changes<'t>(
    table: &'t WrittenTable,
    (row, rebuilt): (&Row<'_, '_>, Option<&RebuiltColumns<'_>>),
    size_max: usize,
) -> Vec<Change<'t>> {
    let shown = |image: Option<RowImage<'_, '_>>, column: &TableColumn, logged: Option<&[bool]>| {
        let cell = image?.cell(column.index)?;
        let text = value(column, row, &cell, size_max);
        Some(ShownValue { text, is_rebuilt: is_rebuilt(&cell, logged) })
    };
    let columns = table.columns.iter().map(|column| Change {
        column,
        before: shown(row.before, column, rebuilt.map(|rebuilt| rebuilt.logged_before)),
        after: shown(row.after, column, rebuilt.map(|rebuilt| rebuilt.logged_after)),
        is_changed: is_changed(column, row, rebuilt.is_some()),
    });
    columns.filter(|change| change.before.is_some() || change.after.is_some()).collect()
}

/// Whether a value is there that the image in the log lacks, or has only in part.
fn is_rebuilt(cell: &Cell<'_>, logged: Option<&[bool]>) -> bool {
    let is_whole = !matches!(cell.content, CellContent::JsonDiffs(_));
    is_whole && logged.is_some_and(|logged| logged.get(cell.index) == Some(&false))
}

/// The columns that an image still lacks.
fn unknown_columns<'t>(
    table: &'t WrittenTable,
    row: &'t Row<'_, '_>,
) -> impl Iterator<Item = &'t TableColumn> {
    let is_known = |image: &RowImage<'_, '_>, column: &TableColumn| {
        let cell = image.cell(column.index);
        cell.is_some_and(|cell| !matches!(cell.content, CellContent::JsonDiffs(_)))
    };
    let images: Vec<_> = [row.before, row.after].into_iter().flatten().collect();
    table.columns.iter().filter(move |column| !images.iter().all(|image| is_known(image, column)))
}

/// Whether an update gave a column another value; it left alone those that its image lacks. Bytes of a document that was rebuilt may be in
/// another order.
fn is_changed(column: &TableColumn, row: &Row<'_, '_>, is_rebuilt: bool) -> bool {
    let [before, after] =
        [row.before, row.after].map(|image| image.and_then(|image| image.cell(column.index)));
    match (before.map(|cell| cell.content), after.map(|cell| cell.content)) {
        (_, None) => false,
        (Some(_), Some(CellContent::JsonDiffs(diffs))) => !diffs.is_empty(),
        (Some(CellContent::Value(one)), Some(CellContent::Value(two)))
            if is_rebuilt && one != two && is_json(column, row) =>
        {
            let texts = (text_of_document(one), text_of_document(two));
            texts.0.is_none() || texts.0 != texts.1
        }
        (before, after) => before != after,
    }
}

fn is_json(column: &TableColumn, row: &Row<'_, '_>) -> bool {
    row.before.and_then(|image| image.cell(column.index)).is_some_and(|cell| cell.column.is_json())
}

fn value(column: &TableColumn, row: &Row<'_, '_>, cell: &Cell<'_>, size_max: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(names) = column.member_names(cell) {
        push_shown(&mut out, names.text().as_bytes());
        return out;
    }
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

fn text(
    TableRow { table, operation, row }: TableRow<'_>,
    rebuilt: Option<&RebuiltColumns<'_>>,
    out: &mut Vec<u8>,
) {
    push(out, format_args!("{} {}\n", operation.name(), printable(&table.shown())));
    let changes = changes(table, (row, rebuilt), VALUE_SIZE_MAX);
    let width = |change: &Change<'_>| change.column.shown().chars().count();
    let width = changes.iter().map(width).max().unwrap_or(0).min(NAME_WIDTH_MAX);
    for change in &changes {
        let name = change.column.shown();
        let short = |value: &Option<ShownValue>| match value {
            Some(value) => value.short(),
            None if rebuilt.is_some() => "(not known)".to_owned(),
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
    let Some(rebuilt) = rebuilt else { return };
    let unknown: Vec<String> = unknown_columns(table, row).map(TableColumn::shown).collect();
    if !unknown.is_empty() {
        push(
            out,
            format_args!("  not known: {}: {}\n", printable(&unknown.join(", ")), printable(rebuilt.why)),
        );
    }
}

fn short(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let short: String = text.chars().take(VALUE_LENGTH_MAX).collect();
    let dots = if short.len() < text.len() { " …" } else { "" };
    format!("{}{dots}", printable(&short))
}

fn json(
    TableRow { table, operation, row }: TableRow<'_>,
    rebuilt: Option<&RebuiltColumns<'_>>,
    out: &mut Vec<u8>,
    pass_on: &mut PassOnText<'_>,
) -> io::Result<()> {
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
        let mut is_first = true;
        for cell in image.cells() {
            let Some(column) = table.columns.get(cell.index) else { continue };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            push_string(out, &column.shown());
            out.push(b':');
            if let Ok(Some(large)) = LargeValue::of(&cell) {
                large.push(out, &mut *pass_on)?;
                continue;
            }
            if let Some(names) = column.member_names(&cell) {
                push_members(out, &names);
                continue;
            }
            let start = out.len();
            if push_value(out, &cell, &mut scratch).is_err() {
                out.truncate(start);
                push(out, "null");
            }
        }
        out.push(b'}');
    }
    push(out, ",\"changed\":");
    let is_update = operation == Operation::Update;
    let is_listed = |column: &&TableColumn| is_update && is_changed(column, row, rebuilt.is_some());
    push_names(out, table.columns.iter().filter(is_listed));
    if let Some(rebuilt) = rebuilt {
        push_origins(out, table, row, rebuilt);
    }
    Ok(())
}

/// Appends the value of an ENUM or SET, as for logs that have the names.
fn push_members(out: &mut Vec<u8>, names: &MemberNames<'_>) {
    let names = match names {
        MemberNames::One(name) => return push_string(out, name),
        MemberNames::Several(names) => names,
    };
    out.push(b'[');
    for (number, name) in names.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        push_string(out, name);
    }
    out.push(b']');
}

/// Appends a list of columns.
fn push_names<'t>(out: &mut Vec<u8>, columns: impl Iterator<Item = &'t TableColumn>) {
    out.push(b'[');
    for (number, column) in columns.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        push_string(out, &column.shown());
    }
    out.push(b']');
}

/// Appends which columns were rebuilt, and which aren't known.
fn push_origins(out: &mut Vec<u8>, table: &WrittenTable, row: &Row<'_, '_>, columns: &RebuiltColumns<'_>) {
    push(out, ",\"rebuilt\":{");
    let images = [("before", row.before, columns.logged_before), ("after", row.after, columns.logged_after)]
        .into_iter()
        .filter_map(|(name, image, logged)| Some((name, image?, logged)));
    for (number, (name, image, logged)) in images.enumerate() {
        let is_listed = |column: &&TableColumn| {
            image.cell(column.index).is_some_and(|cell| is_rebuilt(&cell, Some(logged)))
        };
        push(out, format_args!("{}\"{name}\":", if number > 0 { "," } else { "" }));
        push_names(out, table.columns.iter().filter(is_listed));
    }
    out.push(b'}');
    if unknown_columns(table, row).next().is_some() {
        push(out, ",\"unknown\":");
        push_names(out, unknown_columns(table, row));
        push(out, ",\"unknown_why\":");
        push_string(out, columns.why);
    }
}

/// A line for each column.
fn csv(
    TableRow { table, operation, row }: TableRow<'_>,
    out: &mut Vec<u8>,
    pass_on: &mut PassOnText<'_>,
) -> io::Result<()> {
    for column in &table.columns {
        let images = [row.before, row.after];
        let cells = images.map(|image| image.and_then(|image| image.cell(column.index)));
        if cells.iter().all(Option::is_none) {
            continue;
        }
        push_csv(out, &table.schema.database);
        out.push(b',');
        push_csv(out, &table.schema.table);
        push(out, format_args!(",{},", operation.name().to_lowercase()));
        // A line break would end the line.
        push_csv(out, column.shown().replace(['\n', '\r'], " ").as_bytes());
        for cell in &cells {
            out.push(b',');
            match cell {
                Some(cell) => push_csv_value(out, (column, row, cell), pass_on)?,
                None => push_csv(out, b""),
            }
        }
        let is_changed = operation == Operation::Update && is_changed(column, row, false);
        push(out, format_args!(",{}\n", u8::from(is_changed)));
    }
    Ok(())
}

/// Bytes of a value whose text is passed on together.
const PIECE_SIZE: usize = 128 << 10;

/// Appends a value as SQL writes it, a large one in pieces.
fn push_csv_value(
    out: &mut Vec<u8>,
    (column, row, cell): (&TableColumn, &Row<'_, '_>, &Cell<'_>),
    pass_on: &mut PassOnText<'_>,
) -> io::Result<()> {
    let Some(large) = LargeLiteral::of(cell) else {
        push_csv(out, &value(column, row, cell, usize::MAX));
        return Ok(());
    };
    match large {
        LargeLiteral::Hex(bytes) => {
            out.extend_from_slice(HEX_BEGIN);
            for piece in bytes.chunks(PIECE_SIZE) {
                push_hex_digits(out, piece);
                pass_on(out)?;
            }
            out.push(b'\'');
        }
        LargeLiteral::Text(text) => {
            // Line breaks are escaped.
            let is_quoted = text.iter().any(|byte| matches!(byte, b'"' | b','));
            let quote: &[u8] = if is_quoted { b"\"" } else { b"" };
            out.extend_from_slice(quote);
            out.push(b'\'');
            let mut literal = Vec::new();
            for piece in text.chunks(PIECE_SIZE) {
                literal.clear();
                push_shown_characters(&mut literal, piece);
                for &byte in &literal {
                    if byte == b'"' {
                        out.push(byte);
                    }
                    out.push(byte);
                }
                pass_on(out)?;
            }
            out.push(b'\'');
            out.extend_from_slice(quote);
        }
    }
    Ok(())
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
