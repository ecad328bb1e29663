//! The value of a column as JSON.
//!
//! ```text
//! integers, YEAR, BIT       number            FLOAT, DOUBLE     number: the shortest that is read back the same
//! DECIMAL                   string            DATE, TIME, DATETIME   string, as SQL writes them
//! TIMESTAMP                 string: seconds since 1970, with its fraction
//! ENUM                      string, or the member's number where the log has no names
//! SET                       array of strings, or a number: a bit for each member
//! CHAR, VARCHAR, TEXT       string; if not valid in its character set: {"base64":"…"}
//! BINARY, BLOB, GEOMETRY    {"base64":"…"}
//! JSON                      string: the document's text
//! JSON, changed in part     {"json_diffs":[{"operation":"replace","path":"$.a","value":"1"}, …]}
//! VECTOR                    array of numbers
//! ```

use std::borrow::Cow;

use binlogz_binlog::Result;
use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::json::{JsonDiffOperation, JsonDiffs};
use binlogz_binlog::row::{Cell, ColumnSchema, Value};

use super::text::{
    push_base64, push_bytes_as_text, push_lossy, push_name, push_plain, push_shown, push_string, push_text,
    push_text_or_bytes,
};
use crate::number::{push_signed, push_unsigned};

/// Appends a cell's value. `scratch` is memory for values that are written twice.
///
/// # Errors
///
/// Bytes that the column's type can't have.
pub fn push_value(out: &mut Vec<u8>, cell: &Cell<'_>, scratch: &mut Vec<u8>) -> Result<()> {
    match cell.value()? {
        Value::Int(number) => push_signed(out, number),
        Value::Uint(number) | Value::Bit(number) => push_unsigned(out, number),
        Value::Year(year) => push_unsigned(out, u64::from(year)),
        Value::Float(number) => push_float(out, number.is_finite(), number),
        Value::Double(number) => push_float(out, number.is_finite(), number),
        Value::Decimal(decimal) => push_plain(out, decimal.text().as_bytes()),
        Value::Date(date) => push_plain(out, date.text().as_bytes()),
        Value::Time(time) => push_plain(out, time.text().as_bytes()),
        Value::DateTime(datetime) => push_plain(out, datetime.text().as_bytes()),
        Value::Timestamp(timestamp) => push_plain(out, timestamp.text().as_bytes()),
        Value::Enum(number) => push_enum(out, cell.column, number),
        Value::Set(bits) => push_set(out, cell.column, bits),
        Value::Bytes(bytes) => push_text_or_bytes(out, text(cell.column, bytes), &cell.column.padded(bytes)),
        Value::Geometry(bytes) => push_base64(out, bytes),
        Value::Json(document) => {
            scratch.clear();
            document.write_text(scratch)?;
            push_lossy(out, scratch);
        }
        Value::JsonDiffs(diffs) => push_json_diffs(out, &diffs, scratch)?,
        Value::Vector(vector) => {
            out.push(b'[');
            for (index, number) in vector.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_float(out, number.is_finite(), number);
            }
            out.push(b']');
        }
        Value::Null => out.extend_from_slice(b"null"),
    }
    Ok(())
}

/// JSON has no infinity.
fn push_float(out: &mut Vec<u8>, is_finite: bool, number: impl std::fmt::Debug) {
    match is_finite {
        true => push_shown(out, format_args!("{number:?}")),
        false => push_string(out, &format!("{number:?}")),
    }
}

/// The bytes of a character column as text. If the log has no character set (before 8.0), valid UTF-8 is
/// taken as text.
pub(super) fn text<'a>(column: &ColumnSchema, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
    match column.collation {
        None => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Some(_) => column.charset().filter(|charset| *charset != Charset::Binary)?.decode(bytes),
    }
}

fn push_enum(out: &mut Vec<u8>, column: &ColumnSchema, number: u16) {
    match column.member(number) {
        Some(name) => push_member(out, column, name),
        None => push_unsigned(out, u64::from(number)),
    }
}

/// Appends a member of an ENUM or SET column.
pub(super) fn push_member(out: &mut Vec<u8>, column: &ColumnSchema, name: &[u8]) {
    push_text_or_bytes(out, text(column, name), name);
}

fn push_set(out: &mut Vec<u8>, column: &ColumnSchema, bits: u64) {
    let names = column.members.as_ref().map_or(0, |members| members.len());
    // A bit without a name would be lost.
    if column.members.is_none() || bits.checked_shr(names as u32).unwrap_or(0) != 0 {
        return push_unsigned(out, bits);
    }
    out.push(b'[');
    for (index, name) in column.set_members(bits).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_member(out, column, name);
    }
    out.push(b']');
}

fn push_json_diffs(out: &mut Vec<u8>, diffs: &JsonDiffs<'_>, scratch: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    push_name(out, "json_diffs");
    out.push(b'[');
    for (index, diff) in diffs.iter().enumerate() {
        let diff = diff?;
        if index > 0 {
            out.push(b',');
        }
        out.push(b'{');
        let operation = match diff.operation {
            JsonDiffOperation::Replace => "replace",
            JsonDiffOperation::Insert => "insert",
            JsonDiffOperation::Remove => "remove",
        };
        push_text(out, "operation", operation);
        push_bytes_as_text(out, "path", diff.path);
        if let Some(value) = diff.value {
            scratch.clear();
            value.write_text(scratch)?;
            push_bytes_as_text(out, "value", scratch);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    Ok(())
}
