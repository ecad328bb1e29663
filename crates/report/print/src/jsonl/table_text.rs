//! The rows of a table as JSON: its columns' names, and short cuts for the values found in nearly every row. All other
//! values are in `value.rs`.

use std::sync::Arc;

use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::{CellContent, ColumnKind, ColumnSchema, Date, RowImage, TableSchema};

use super::large::{LARGE_VALUE_SIZE, LargeValue, LargeValueError};
use super::text::{push_bytes_as_text, push_name, push_string, push_text};
use super::value::{push_member, push_value};
use crate::line_room::{BufferedLines, put_any};
use crate::selection::EventSelection;

/// A name up to this length, with its quotes and colon, is copied whole.
const NAME_MAX: usize = 24;
/// A date without its digits; the bytes after it are not used.
const DATE: [u8; 16] = *b"\"\0\0\0\0-\0\0-\0\0\"\0\0\0\0";

/// The text that the lines of a table have in common.
#[derive(Debug, Default)]
pub(super) struct TableText {
    schema: Option<Arc<TableSchema>>,
    /// `,"database":"…","table":"…"`.
    pub(super) table: Vec<u8>,
    /// The fields of its map; empty until they are asked for.
    map: Vec<u8>,
    columns: Vec<ColumnText>,
    pub(super) is_asked_for: bool,
    /// The table's place in `--table`, counted from 0.
    pub(super) place: Option<usize>,
}

#[derive(Debug)]
struct ColumnText {
    shortcut: Shortcut,
    /// `,"name":`, then padding; no name if it is long. The comma is a brace in the first column of an image.
    short_name: [u8; NAME_MAX],
    short_length: usize,
    /// `"name":`.
    name: Vec<u8>,
    /// The members of an ENUM, with their quotes.
    members: Vec<Vec<u8>>,
}

/// The kinds of values that have a short cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortcut {
    Signed,
    Unsigned,
    Date,
    /// Text of a character set in which ASCII is ASCII.
    Text,
    Enum,
    None,
}

impl Shortcut {
    fn of(column: &ColumnSchema) -> Self {
        match column.kind {
            ColumnKind::TinyInt { unsigned }
            | ColumnKind::SmallInt { unsigned }
            | ColumnKind::MediumInt { unsigned }
            | ColumnKind::Int { unsigned }
            | ColumnKind::BigInt { unsigned } => {
                if unsigned {
                    Shortcut::Unsigned
                } else {
                    Shortcut::Signed
                }
            }
            ColumnKind::Date => Shortcut::Date,
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
                match (column.collation, column.charset()) {
                    (None, _)
                    | (_, Some(Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Latin1 | Charset::Ascii)) => {
                        Shortcut::Text
                    }
                    _ => Shortcut::None,
                }
            }
            ColumnKind::Enum { .. } => Shortcut::Enum,
            _ => Shortcut::None,
        }
    }
}

impl ColumnText {
    fn new(index: usize, column: &ColumnSchema) -> Self {
        let mut name = Vec::new();
        match &column.name {
            Some(known) => push_string(&mut name, &String::from_utf8_lossy(known)),
            None => push_string(&mut name, &format!("@{}", index + 1)),
        }
        name.push(b':');
        let mut short_name = [0; NAME_MAX];
        let short_length = match short_name.get_mut(1..=name.len()) {
            Some(place) => {
                place.copy_from_slice(&name);
                1 + name.len()
            }
            None => 0,
        };
        let members = column.members.iter().flatten().map(|member| {
            let mut text = Vec::new();
            push_member(&mut text, column, member);
            text
        });
        let members = match column.kind {
            ColumnKind::Enum { .. } => members.collect(),
            _ => Vec::new(),
        };
        ColumnText { shortcut: Shortcut::of(column), short_name, short_length, name, members }
    }
}

impl TableText {
    /// Takes the table of the next lines.
    pub(super) fn take(&mut self, schema: &Arc<TableSchema>, selection: &EventSelection) {
        if !self.schema.as_ref().is_some_and(|last| Arc::ptr_eq(last, schema)) {
            self.show(schema, selection);
        }
    }

    fn show(&mut self, schema: &Arc<TableSchema>, selection: &EventSelection) {
        self.place = selection.place_of(&schema.database, &schema.table);
        self.is_asked_for = selection.has_table(&schema.database, &schema.table);
        self.table.clear();
        push_bytes_as_text(&mut self.table, "database", &schema.database);
        push_bytes_as_text(&mut self.table, "table", &schema.table);
        self.map.clear();
        self.columns.clear();
        let columns = schema.columns().iter().enumerate();
        self.columns.extend(columns.map(|(index, column)| ColumnText::new(index, column)));
        self.schema = Some(Arc::clone(schema));
    }

    /// Writes an image. On failure the lines so far are still appended.
    /// `pass_on` gets the pieces of large values.
    #[inline]
    pub(super) fn put_image<'l, E>(
        &self,
        mut lines: BufferedLines<'l>,
        image: &RowImage<'_, '_>,
        apart: &mut [Vec<u8>; 2],
        pass_on: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<BufferedLines<'l>, LargeValueError<E>> {
        let mut between = b'{';
        for cell in image.cells() {
            let Some(column) = self.columns.get(cell.index) else { continue };
            lines.step();
            let mut short_name = column.short_name;
            let [first, ..] = &mut short_name;
            *first = std::mem::replace(&mut between, b',');
            if column.short_length > 0 {
                lines.put(&short_name, column.short_length);
            } else {
                lines.put(&short_name, 1);
                lines.put_text(&column.name);
                lines.step();
            }
            match cell.content {
                CellContent::Null => lines.put(b"null", 4),
                CellContent::Value(bytes) if put_value(&mut lines, column, bytes) => {}
                // Pass the index: a cell whose address is taken would be written to memory for every value.
                CellContent::Value(bytes) if bytes.len() > LARGE_VALUE_SIZE => {
                    lines = put_large(lines, image, cell.index, apart, pass_on)?;
                }
                _ => {
                    lines = put_any(lines, image, cell.index, apart, push_value)
                        .map_err(LargeValueError::Value)?;
                }
            }
        }
        lines.step();
        if between == b'{' {
            lines.put(b"{", 1);
        }
        lines.put(b"}", 1);
        Ok(lines)
    }

    /// Appends the fields of a table map.
    pub(super) fn push_table_map(&mut self, out: &mut Vec<u8>) {
        if self.map.is_empty() {
            let mut map = std::mem::take(&mut self.map);
            self.write_table_map(&mut map);
            self.map = map;
        }
        out.extend_from_slice(&self.map);
    }

    fn write_table_map(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.table);
        push_name(out, "columns");
        out.push(b'[');
        let columns = self.schema.iter().flat_map(|schema| schema.columns()).zip(&self.columns);
        for (index, (column, ColumnText { name, .. })) in columns.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"name\":");
            out.extend_from_slice(name.strip_suffix(b":").unwrap_or(name));
            push_text(out, "type", &column.column_type.to_string());
            push_name(out, "nullable");
            out.extend_from_slice(if column.nullable { b"true" } else { b"false" });
            out.push(b'}');
        }
        out.push(b']');
    }
}

/// Writes a large value in pieces, if its type has any.
#[cold]
fn put_large<'l, E>(
    mut lines: BufferedLines<'l>,
    image: &RowImage<'_, '_>,
    index: usize,
    [_, scratch]: &mut [Vec<u8>; 2],
    pass_on: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
) -> Result<BufferedLines<'l>, LargeValueError<E>> {
    let Some(cell) = image.cell(index) else { return Ok(lines) };
    match LargeValue::of(&cell).map_err(LargeValueError::Value)? {
        Some(value) => value.push(lines.out(), pass_on).map_err(LargeValueError::Output)?,
        None => push_value(lines.out(), &cell, scratch).map_err(LargeValueError::Value)?,
    }
    lines.step();
    Ok(lines)
}

/// Writes a value, if there is a short cut for it.
#[inline(always)]
fn put_value(lines: &mut BufferedLines<'_>, column: &ColumnText, bytes: &[u8]) -> bool {
    match column.shortcut {
        Shortcut::Signed => return lines.put_signed_value(bytes),
        Shortcut::Text => return lines.put_json_string(bytes),
        Shortcut::Unsigned => return lines.put_unsigned_value(bytes),
        Shortcut::Date => {
            match bytes.first_chunk().and_then(|bytes| Date::from_bytes(*bytes).digit_pairs()) {
                Some(pairs) => lines.put_date(pairs, DATE),
                None => return false,
            }
        }
        Shortcut::Enum => {
            let number = match *bytes {
                [a] => a.into(),
                [a, b] => u16::from_le_bytes([a, b]),
                _ => 0,
            };
            let member = usize::from(number).checked_sub(1).and_then(|place| column.members.get(place));
            match member {
                Some(member) => lines.put_text(member),
                None => return false,
            }
        }
        Shortcut::None => return false,
    }
    true
}
