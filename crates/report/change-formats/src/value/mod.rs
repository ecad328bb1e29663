//! The value of a column in each format.

pub(super) mod canal;
pub(super) mod debezium;
pub(super) mod maxwell;

use std::borrow::Cow;

use binlogz_binlog::row::{Cell, CellContent, DateTime, Row, RowImage, Time, Value, Vector};
use binlogz_binlog::{Error, Result};
use binlogz_print::BufferedLines;

use crate::java::{Escapes, push_float};
use crate::table::{ChangeColumn, ChangeTable, Shortcut};

const WHAT: &str = "row";

/// How a format spells the values of an object's fields.
pub(super) trait FieldValues {
    /// Appends a cell's value.
    fn push(&self, out: &mut Vec<u8>, cell: &Cell<'_>, column: &ChangeColumn) -> Result<()>;

    /// Appends a document to which differences were applied; `text` is how the server writes it.
    fn push_changed_document(&self, out: &mut Vec<u8>, text: &[u8]);
}

/// Writes the value of a cell, whose column is completed, with a short cut where there is one.
#[inline]
pub(super) fn put<'l>(
    mut lines: BufferedLines<'l>,
    cell: &Cell<'_>,
    column: &ChangeColumn,
    apart: &mut Vec<u8>,
    push: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<BufferedLines<'l>> {
    let is_put = match cell.content {
        CellContent::Null => {
            lines.put(b"null", 4);
            true
        }
        CellContent::Value(bytes) => put_shortcut(&mut lines, column.shortcut, bytes),
        CellContent::JsonDiffs(_) => false,
    };
    if is_put {
        return Ok(lines);
    }
    lines.put_pushed(&cell.content, apart, push)?;
    Ok(lines)
}

#[inline(always)]
fn put_shortcut(lines: &mut BufferedLines<'_>, shortcut: Shortcut, bytes: &[u8]) -> bool {
    match shortcut {
        Shortcut::Signed => lines.put_signed_value(bytes),
        Shortcut::Unsigned => lines.put_unsigned_value(bytes),
        Shortcut::Text => lines.put_json_string(bytes),
        Shortcut::None => false,
    }
}

/// A cell of an image, its column completed.
///
/// # Errors
///
/// An image that lacks the column: a message without it would say that it is NULL.
pub(super) fn cell<'t>(image: &RowImage<'_, 't>, column: &'t ChangeColumn, index: usize) -> Result<Cell<'t>> {
    match image.cell(index) {
        Some(cell) => Ok(Cell { index, column: &column.schema, content: cell.content }),
        None => Err(Error::invalid(
            WHAT,
            "logged image",
            format!("without column {}", column.name),
            "all columns, as binlog_row_image=FULL logs them",
        )),
    }
}

/// Whether a column differs between the images of an update.
pub(super) fn is_changed(row: &Row<'_, '_>, index: usize) -> bool {
    fn content<'a>(image: Option<RowImage<'_, 'a>>, index: usize) -> Option<CellContent<'a>> {
        image.and_then(|image| image.cell(index)).map(|cell| cell.content)
    }
    match (content(row.before, index), content(row.after, index)) {
        (_, Some(CellContent::JsonDiffs(_))) => true,
        (before, after) => before != after,
    }
}

/// Whether a row has another key after its change.
pub(super) fn key_is_changed(row: &Row<'_, '_>, table: &ChangeTable) -> bool {
    row.before.is_some() && row.after.is_some() && table.key.iter().any(|&index| is_changed(row, index))
}

/// The bytes of a character column as text; damaged characters are replaced, as those programs do.
fn text<'a>(column: &ChangeColumn, bytes: &'a [u8]) -> Cow<'a, str> {
    let decoded = column.schema.charset().and_then(|charset| charset.decode(bytes));
    decoded.unwrap_or_else(|| String::from_utf8_lossy(bytes))
}

/// The text of a member of an ENUM; empty for the value of an invalid one.
fn enum_member(column: &ChangeColumn, number: u16) -> Result<Cow<'_, str>> {
    match column.schema.member(number) {
        Some(member) => Ok(text(column, member)),
        None if number == 0 => Ok(Cow::Borrowed("")),
        None => Err(Error::invalid(WHAT, "number of an ENUM's member", number, "one that its column has")),
    }
}

/// Microseconds of a TIME.
fn time_microseconds(time: Time) -> i64 {
    let seconds = i64::from(time.hours()) * 3600 + i64::from(time.minutes()) * 60 + i64::from(time.seconds());
    let microseconds = seconds * 1_000_000 + i64::from(time.fraction().microseconds());
    if time.is_negative() { -microseconds } else { microseconds }
}

/// Microseconds since 1970 of a DATETIME; `None`: a part of its date is zero.
fn datetime_microseconds(datetime: DateTime) -> Result<Option<i64>> {
    let Some(days) = debezium::days(datetime.date())? else { return Ok(None) };
    let clock = i64::from(datetime.hours()) * 3600
        + i64::from(datetime.minutes()) * 60
        + i64::from(datetime.seconds());
    Ok(Some((days * 86_400 + clock) * 1_000_000 + i64::from(datetime.fraction().microseconds())))
}

/// The JSON document after differences were applied, as the server writes it.
pub(super) fn changed_document(row: &Row<'_, '_>, index: usize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    if let Some(tree) = row.json_after(index)? {
        tree.write_text(&mut text)?;
    }
    Ok(text)
}

/// Appends the numbers of a vector as an array.
fn push_vector(out: &mut Vec<u8>, vector: &Vector<'_>) {
    out.push(b'[');
    for (index, number) in vector.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_float(out, number);
    }
    out.push(b']');
}

/// A document's text without the spaces between its parts.
fn without_spaces(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for &byte in text {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b' ' {
            continue;
        } else {
            in_string = byte == b'"';
        }
        plain.push(byte);
    }
    plain
}

/// The text of bytes that should be UTF-8.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The escapes of the library that writes Debezium's and Maxwell's lines.
const JACKSON: Escapes = Escapes::Jackson;

/// A value that no server writes into a row.
fn unknown(value: &Value<'_>) -> Error {
    Error::invalid(WHAT, "value", format!("{value:?}"), "one of a known type")
}
