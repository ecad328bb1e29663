//! A column's value as SQL that gives exactly this value again, in the session that a script sets up: utf8mb4, UTC, strict,
//! but with zero and invalid dates.
//!
//! ```text
//! integers, YEAR         number              FLOAT, DOUBLE   1.5e0: a float as the double that it is, to compare it too
//! DECIMAL                number with a point DATE … TIMESTAMP  '2026-11-22 01:02:03'
//! ENUM, SET              'member' to store, number to compare (of a SET with its 64th member: column | 0)
//! BIT                    b'101' to store, number to compare
//! CHAR, VARCHAR, TEXT    'text' where these bytes mean the same in the column's character set and in utf8mb4, else X'…':
//!                        bytes that are stored as they are
//! BINARY, BLOB, GEOMETRY, VECTOR   X'…'
//! JSON                   CAST('…' AS JSON), or calls of JSON functions for what a text can't say: see json.rs
//! ```

use std::fmt::Write as _;

use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::{Cell, CellContent, ColumnKind, Timestamp, Value};
use jiff::tz::Offset;

use super::text::{push, push_between_quotes, push_hex, push_quoted, push_shown, push_str};
use super::{Unwritable, json};
use crate::table::TableColumn;

/// Appends the value to store it.
pub(crate) fn push_stored(
    out: &mut Vec<u8>,
    column: &TableColumn,
    cell: &Cell<'_>,
) -> Result<(), Unwritable> {
    match value(column, cell)? {
        Value::Enum(number) => {
            match cell.column.member(number).and_then(|name| same_text(column_charset(cell), name)) {
                Some(name) => push_quoted(out, name),
                None => push(out, number),
            }
        }
        Value::Set(bits) => push_set(out, cell, bits),
        Value::Bit(bits) => push(out, format_args!("b'{bits:b}'")),
        Value::Bytes(bytes) => push_bytes(out, column_charset(cell), &column.padded(cell, bytes))?,
        other => push_other(out, other)?,
    }
    Ok(())
}

/// Appends a condition that holds for this value. `exactly`: byte by byte, where a key's own comparison is not at hand.
pub(crate) fn push_equal(
    out: &mut Vec<u8>,
    column: &TableColumn,
    cell: &Cell<'_>,
    exactly: bool,
) -> Result<(), Unwritable> {
    let value = value(column, cell)?;
    if exactly && let Some(zero) = zero_text(&value) {
        // By its text alone: after `x = -0e0 AND` the server takes the constant for `x` in every condition that follows.
        push_str(out, "CAST(");
        column.push_name(out);
        push(out, format_args!(" AS BINARY) = '{zero}'"));
        return Ok(());
    }
    let is_bytes = matches!(value, Value::Bytes(_) | Value::Geometry(_) | Value::Vector(_));
    if is_bytes && (exactly || !matches!(value, Value::Bytes(_))) {
        push_str(out, "CAST(");
        column.push_name(out);
        push_str(out, " AS BINARY)");
    } else {
        column.push_name(out);
    }
    if value == Value::Null {
        push_str(out, " IS NULL");
        return Ok(());
    }
    if matches!(value, Value::Set(bits) if bits > i64::MAX as u64) {
        // A SET is a signed number for the server (`Field_set`), so its 64th member makes it negative; what an operator for
        // bits gives has no sign.
        push_str(out, " | 0");
    }
    push_str(out, " = ");
    let start = out.len();
    match value {
        Value::Enum(number) => push(out, number),
        Value::Set(bits) | Value::Bit(bits) => push(out, bits),
        Value::Bytes(bytes) => push_bytes(out, column_charset(cell), &column.padded(cell, bytes))?,
        other => push_other(out, other)?,
    }
    if exactly && has_equals(&value)? {
        let written = out.get(start..).unwrap_or_default().to_vec();
        push_same_text(out, column, &written);
    }
    Ok(())
}

/// Whether [`push_equal`] writes the same condition whether or not it is to hold byte by byte.
pub(crate) fn is_equal_exactly(column: &TableColumn, cell: &Cell<'_>) -> bool {
    match value(column, cell) {
        Ok(Value::Bytes(_)) => false,
        Ok(value) => zero_text(&value).is_none() && !has_equals(&value).unwrap_or(true),
        // Neither can be written.
        Err(_) => true,
    }
}

/// Appends a further condition: that the column's text is the text of an expression. Numbers that are equal for the server have
/// texts of their own: 2 and 2.0 in a document, 0 and -0 anywhere.
pub(crate) fn push_same_text(out: &mut Vec<u8>, column: &TableColumn, expression: &[u8]) {
    push_str(out, " AND CAST(");
    column.push_name(out);
    push_str(out, " AS BINARY) = CAST(");
    out.extend_from_slice(expression);
    push_str(out, " AS BINARY)");
}

/// The server's text of a zero, which equals the one with the other sign.
fn zero_text(value: &Value<'_>) -> Option<&'static str> {
    let number = match value {
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        _ => return None,
    };
    (number == 0.0).then_some(if number.is_sign_negative() { "-0" } else { "0" })
}

/// Whether the server compares other values as equal to this one.
fn has_equals(value: &Value<'_>) -> Result<bool, Unwritable> {
    Ok(match value {
        Value::Json(document) => json::has_numbers(document)?,
        Value::Null | Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Double(_) => false,
        Value::Decimal(_) | Value::Bit(_) | Value::Enum(_) | Value::Set(_) => false,
        Value::Year(_) | Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => false,
        Value::Bytes(_) | Value::JsonDiffs(_) | Value::Geometry(_) | Value::Vector(_) => false,
    })
}

/// Values that are stored and compared in the same way.
fn push_other(out: &mut Vec<u8>, value: Value<'_>) -> Result<(), Unwritable> {
    match value {
        Value::Null => push_str(out, "NULL"),
        Value::Int(number) => push(out, number),
        Value::Uint(number) => push(out, number),
        Value::Float(number) => push_double(out, f64::from(number)),
        Value::Double(number) => push_double(out, number),
        Value::Decimal(decimal) => push_str(out, decimal.text().as_str()),
        Value::Year(year) => push(out, format_args!("{year:04}")),
        Value::Date(date) => push_between_quotes(out, date.text().as_str()),
        Value::Time(time) => push_between_quotes(out, time.text().as_str()),
        Value::DateTime(time) => push_between_quotes(out, time.text().as_str()),
        Value::Timestamp(time) => push_timestamp(out, time),
        Value::Geometry(bytes) => push_hex(out, bytes),
        Value::Vector(vector) => push_hex(out, vector.as_bytes()),
        Value::Json(document) => json::push_document(out, &document)?,
        // They are written by their columns before this.
        Value::Bit(_) | Value::Enum(_) | Value::Set(_) | Value::Bytes(_) | Value::JsonDiffs(_) => {
            return Err("a value that can't be written without its column".to_owned());
        }
    }
    Ok(())
}

/// The value, with the signedness that only the schema tells for old logs.
fn value<'a>(column: &TableColumn, cell: &Cell<'a>) -> Result<Value<'a>, Unwritable> {
    let value = cell.value().map_err(|error| error.to_string())?;
    Ok(match (value, cell.column.unsigned.or(column.unsigned)) {
        (Value::Int(number), Some(true)) if number < 0 => {
            let unused = 64 - cell.column.kind.integer_bits();
            Value::Uint((number as u64) << unused >> unused)
        }
        (Value::Int(number), None) if number < 0 => {
            return Err(
                "whether the column is unsigned, which the log doesn't tell: --schema does".to_owned()
            );
        }
        (value, _) => value,
    })
}

/// Whether a strict session would refuse the value, which a lenient one stored: the empty value of an ENUM.
pub(crate) fn needs_leniency(cell: &Cell<'_>) -> bool {
    matches!(cell.column.kind, ColumnKind::Enum { .. })
        && matches!(cell.content, CellContent::Value(bytes) if bytes.iter().all(|byte| *byte == 0))
}

pub(crate) fn column_charset(cell: &Cell<'_>) -> Option<Charset> {
    cell.column.charset()
}

fn push_bytes(out: &mut Vec<u8>, charset: Option<Charset>, bytes: &[u8]) -> Result<(), Unwritable> {
    match same_text(charset, bytes) {
        Some(text) => push_quoted(out, text),
        None => {
            let is_utf8 = charset.is_some_and(|charset| ["utf8mb3", "utf8mb4"].contains(&charset.name()));
            if is_utf8 && std::str::from_utf8(bytes).is_err() {
                return Err(
                    "bytes that are not valid in the column's character set, which no statement stores"
                        .into(),
                );
            }
            push_hex(out, bytes);
        }
    }
    Ok(())
}

/// Bytes that stand for the same text in the character set as in utf8mb4, and can be written between quotes.
pub(crate) fn same_text(charset: Option<Charset>, bytes: &[u8]) -> Option<&[u8]> {
    let plain =
        bytes.iter().all(|byte| *byte >= b' ' && *byte != 0x7f || matches!(byte, b'\n' | b'\t' | b'\r'));
    let same = match charset?.name() {
        "utf8mb4" | "utf8mb3" => std::str::from_utf8(bytes).is_ok(),
        "ascii" | "latin1" | "latin2" | "latin5" | "cp1250" | "cp1251" | "koi8r" | "gb18030" | "gbk"
        | "euckr" => bytes.is_ascii(),
        _ => false,
    };
    (plain && same).then_some(bytes)
}

/// Appends a value for people: of a long one only its front, of at least this many bytes.
pub(crate) fn push_front(
    out: &mut Vec<u8>,
    column: &TableColumn,
    cell: &Cell<'_>,
    size_max: usize,
) -> Result<(), Unwritable> {
    let front = |bytes| <[u8]>::get(bytes, ..size_max).unwrap_or(bytes);
    match value(column, cell)? {
        Value::Bytes(bytes) => match same_text(column_charset(cell), bytes) {
            Some(text) => {
                // A character isn't cut: bytes that go on with one begin with 10.
                let rest = text.get(size_max..).unwrap_or_default();
                let more = rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
                push_shown(out, text.get(..size_max + more).unwrap_or(text));
            }
            None if bytes.len() <= size_max => push_bytes(out, column_charset(cell), bytes)?,
            None => push_hex(out, front(bytes)),
        },
        Value::Geometry(bytes) => push_hex(out, front(bytes)),
        Value::Vector(vector) => push_hex(out, front(vector.as_bytes())),
        _ => push_stored(out, column, cell)?,
    }
    Ok(())
}

fn push_set(out: &mut Vec<u8>, cell: &Cell<'_>, bits: u64) {
    let known = cell.column.members.as_ref().map_or(0, |members| members.len()) as u32;
    let charset = column_charset(cell);
    let members: Option<Vec<&[u8]>> =
        cell.column.set_members(bits).map(|name| same_text(charset, name)).collect();
    match members {
        Some(members) if bits.checked_shr(known).unwrap_or(0) == 0 => push_quoted(out, &members.join(&b',')),
        _ => push(out, bits),
    }
}

/// Writes a DOUBLE with an exponent. Only so it is a double for the server, which reads the shortest text back as the same number.
fn push_double(out: &mut Vec<u8>, number: f64) {
    push(out, format_args!("{number:e}"));
}

fn push_timestamp(out: &mut Vec<u8>, time: Timestamp) {
    let fraction = time.fraction();
    let digits = usize::from(fraction.digits());
    let mut text = match time.seconds() {
        0 => "0000-00-00 00:00:00".to_owned(),
        seconds => {
            let moment = jiff::Timestamp::from_second(seconds.into()).unwrap_or_default();
            Offset::UTC.to_datetime(moment).strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
    };
    if digits > 0 {
        let micros = format!("{:06}", fraction.microseconds());
        // Nothing fails that writes to memory.
        let _ = write!(text, ".{}", micros.get(..digits.min(6)).unwrap_or_default());
    }
    push(out, format_args!("'{text}'"));
}

/// Bytes of values from which they are written in pieces.
const LARGE_SIZE: usize = 1 << 20;

/// A literal for people that is too large to be built in memory.
#[derive(Debug)]
pub(crate) enum LargeLiteral<'a> {
    /// A text, written by [`push_shown`].
    Text(&'a [u8]),
    /// Bytes, written by [`push_hex`].
    Hex(&'a [u8]),
}

impl<'a> LargeLiteral<'a> {
    /// The value of a cell, if it is one, as [`push_front`] writes it whole.
    pub(crate) fn of(cell: &Cell<'a>) -> Option<Self> {
        match cell.content {
            CellContent::Value(bytes) if bytes.len() > LARGE_SIZE => {}
            _ => return None,
        }
        match cell.value().ok()? {
            Value::Bytes(bytes) => Some(match same_text(column_charset(cell), bytes) {
                Some(text) => LargeLiteral::Text(text),
                None => LargeLiteral::Hex(bytes),
            }),
            Value::Geometry(bytes) => Some(LargeLiteral::Hex(bytes)),
            _ => None,
        }
    }
}
