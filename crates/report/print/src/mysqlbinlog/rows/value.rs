//! One value, and the comment that `-vv` puts after it.
//!
//! ```text
//! integers    -1 (255)              a negative one also as unsigned, whether or not the column is
//! FLOAT       1.5                   %-20g: padded with spaces to 20 characters; DOUBLE %-.20g
//! DECIMAL     -12345.67890
//! BIT, SET    b'101'
//! ENUM        2                     the member's number
//! YEAR        2155                  0000 as 1900
//! DATE        '2020:02:29'          colons
//! TIME        '-12:34:56.789'       DATETIME alike; before 5.6.4 DATETIME without quotes
//! TIMESTAMP   1577934245.12
//! strings     'it\'s'               CHAR, VARCHAR, TEXT, BLOB: bytes, escaped
//! JSON        '{"a": 1}'            a string document without its own quotes
//! VECTOR      [1.00000e+00,...]
//! GEOMETRY    '\x00…'               as MariaDB's mysqlbinlog; MySQL's gives up on the event
//! ```

use binlogz_binlog::Result;
use binlogz_binlog::row::{Cell, CellContent, ColumnKind, ColumnSchema, Date, Time, Value};

use super::json_diff::push_json_diffs;
use crate::mysqlbinlog::write::quote::push_quoted;
use crate::number::{push_general, push_scientific, push_signed, push_unsigned};

/// Significant digits of a FLOAT and of a DOUBLE.
const FLOAT_DIGITS: usize = 6;
const DOUBLE_DIGITS: usize = 20;
/// The width that a FLOAT is padded to.
const FLOAT_WIDTH: usize = 20;

/// Appends a cell's value. `scratch` is memory for values that are written twice.
///
/// # Errors
///
/// Bytes that the column's type can't have. Text that was appended before them stays.
#[inline]
pub(crate) fn push_value(out: &mut Vec<u8>, cell: &Cell<'_>, scratch: &mut Vec<u8>) -> Result<()> {
    match cell.content {
        // Before all others: these need no decoding.
        CellContent::Null => out.extend_from_slice(b"NULL"),
        CellContent::Value(bytes) => match cell.column.kind {
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
                push_quoted(out, bytes);
            }
            ColumnKind::Bit { bits } => push_bits(out, bytes, usize::from(bits)),
            ColumnKind::Set { .. } => push_set(out, bytes),
            _ => push_decoded(out, cell, scratch)?,
        },
        CellContent::JsonDiffs(_) => push_decoded(out, cell, scratch)?,
    }
    Ok(())
}

#[inline]
fn push_decoded(out: &mut Vec<u8>, cell: &Cell<'_>, scratch: &mut Vec<u8>) -> Result<()> {
    let kind = cell.column.kind;
    match cell.value()? {
        Value::Int(number) => push_integer(out, number, kind),
        Value::Uint(number) => push_integer(out, sign_extended(number, kind), kind),
        Value::Bytes(bytes) | Value::Geometry(bytes) => push_quoted(out, bytes),
        Value::Date(date) => push_date(out, date),
        Value::DateTime(datetime) => match kind {
            ColumnKind::OldDateTime => out.extend_from_slice(datetime.text().as_bytes()),
            _ => push_between_quotes(out, datetime.text().as_bytes()),
        },
        Value::Time(time) => match kind {
            ColumnKind::OldTime => push_old_time(out, time),
            _ => push_between_quotes(out, time.text().as_bytes()),
        },
        Value::Timestamp(timestamp) => match kind {
            ColumnKind::OldTimestamp => push_signed(out, i64::from(timestamp.seconds() as i32)),
            _ => out.extend_from_slice(timestamp.text().as_bytes()),
        },
        Value::Decimal(decimal) => out.extend_from_slice(decimal.text().as_bytes()),
        Value::Float(number) => push_float(out, number),
        Value::Double(number) => push_general(out, number, DOUBLE_DIGITS),
        Value::Enum(number) => push_unsigned(out, u64::from(number)),
        Value::Year(0) => out.extend_from_slice(b"1900"),
        Value::Year(year) => push_unsigned(out, u64::from(year)),
        Value::Json(document) => {
            scratch.clear();
            document.write_text_unquoted(scratch)?;
            push_quoted(out, scratch);
        }
        Value::JsonDiffs(diffs) => push_json_diffs(out, cell.index + 1, &diffs, scratch)?,
        Value::Vector(vector) => {
            out.push(b'[');
            for (index, number) in vector.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_scientific(out, f64::from(number), 5);
            }
            out.push(b']');
        }
        // BIT and SET were handled above.
        Value::Null | Value::Bit(_) | Value::Set(_) => out.extend_from_slice(b"NULL"),
    }
    Ok(())
}

/// Appends the comment that `-vv` puts after a value.
pub(crate) fn push_comment(out: &mut Vec<u8>, column: &ColumnSchema, is_null: bool) {
    out.extend_from_slice(b" /* ");
    push_type(out, column);
    let numbers = [u64::from(column.metadata), u64::from(column.nullable), u64::from(is_null)];
    for (name, number) in ["meta", "nullable", "is_null"].iter().zip(numbers) {
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        push_unsigned(out, number);
        out.push(b' ');
    }
    out.extend_from_slice(b"*/");
}

/// The type's name and its numbers, followed by a space.
fn push_type(out: &mut Vec<u8>, column: &ColumnSchema) {
    let (name, numbers): (&str, &[u64]) = match column.kind {
        ColumnKind::Null => ("NULL", &[]),
        ColumnKind::TinyInt { .. } => ("TINYINT", &[]),
        ColumnKind::SmallInt { .. } => ("SHORTINT", &[]),
        ColumnKind::MediumInt { .. } => ("MEDIUMINT", &[]),
        ColumnKind::Int { .. } => ("INT", &[]),
        ColumnKind::BigInt { .. } => ("LONGINT", &[]),
        ColumnKind::Decimal(format) => {
            ("DECIMAL", &[u64::from(format.precision()), u64::from(format.scale())])
        }
        ColumnKind::Float => ("FLOAT", &[]),
        ColumnKind::Double => ("DOUBLE", &[]),
        ColumnKind::Bit { bits } => ("BIT", &[u64::from(bits)]),
        ColumnKind::Year => ("YEAR", &[]),
        ColumnKind::Date => ("DATE", &[]),
        ColumnKind::Time { fraction_digits } => ("TIME", &[u64::from(fraction_digits)]),
        ColumnKind::DateTime { fraction_digits } => ("DATETIME", &[u64::from(fraction_digits)]),
        ColumnKind::Timestamp { fraction_digits } => ("TIMESTAMP", &[u64::from(fraction_digits)]),
        ColumnKind::OldTime => ("TIME", &[]),
        ColumnKind::OldDateTime => ("DATETIME", &[]),
        ColumnKind::OldTimestamp => ("TIMESTAMP", &[]),
        ColumnKind::Enum { size: 1 } => ("ENUM(1 byte)", &[]),
        ColumnKind::Enum { .. } => ("ENUM(2 bytes)", &[]),
        ColumnKind::Set { size } => {
            out.extend_from_slice(b"SET(");
            push_unsigned(out, u64::from(size));
            (" bytes)", &[])
        }
        ColumnKind::Char { length_max } => ("STRING", &[u64::from(length_max)]),
        ColumnKind::Varchar { length_max } => ("VARSTRING", &[u64::from(length_max)]),
        ColumnKind::Blob { length_size: 1 } => ("TINYBLOB/TINYTEXT", &[]),
        ColumnKind::Blob { length_size: 2 } => ("BLOB/TEXT", &[]),
        ColumnKind::Blob { length_size: 3 } => ("MEDIUMBLOB/MEDIUMTEXT", &[]),
        ColumnKind::Blob { .. } => ("LONGBLOB/LONGTEXT", &[]),
        ColumnKind::Json { .. } => ("JSON", &[]),
        ColumnKind::Geometry { .. } => ("GEOMETRY", &[]),
        ColumnKind::Vector { .. } => ("VECTOR", column.dimensionality.as_slice()),
        ColumnKind::TypedArray => ("TYPED_ARRAY", &[]),
    };
    out.extend_from_slice(name.as_bytes());
    for (index, number) in numbers.iter().enumerate() {
        out.push(if index == 0 { b'(' } else { b',' });
        push_unsigned(out, *number);
    }
    if !numbers.is_empty() {
        out.push(b')');
    }
    out.push(b' ');
}

#[inline]
fn push_integer(out: &mut Vec<u8>, number: i64, kind: ColumnKind) {
    push_signed(out, number);
    if number < 0 {
        let unused = 64 - kind.integer_bits();
        out.extend_from_slice(b" (");
        push_unsigned(out, (number as u64) << unused >> unused);
        out.push(b')');
    }
}

/// Reinterprets the bits of a column's unsigned number as signed.
#[inline]
fn sign_extended(number: u64, kind: ColumnKind) -> i64 {
    let unused = 64 - kind.integer_bits();
    ((number << unused) as i64) >> unused
}

#[inline]
fn push_date(out: &mut Vec<u8>, date: Date) {
    match date.digits() {
        Some([a, b, c, d, e, f, g, h]) => {
            out.extend_from_slice(&[b'\'', a, b, c, d, b':', e, f, b':', g, h, b'\'']);
        }
        None => {
            let text = date.text().to_string().replace('-', ":");
            push_between_quotes(out, text.as_bytes());
        }
    }
}

/// The three bytes as an unsigned number, whatever their sign.
fn push_old_time(out: &mut Vec<u8>, time: Time) {
    let packed =
        i64::from(time.hours()) * 10_000 + i64::from(time.minutes()) * 100 + i64::from(time.seconds());
    let unsigned = (if time.is_negative() { -packed } else { packed }) & 0xff_ffff;
    let text = format!("'{:02}:{:02}:{:02}'", unsigned / 10_000, unsigned / 100 % 100, unsigned % 100);
    out.extend_from_slice(text.as_bytes());
}

fn push_float(out: &mut Vec<u8>, number: f32) {
    let start = out.len();
    push_general(out, f64::from(number), FLOAT_DIGITS);
    let end = out.len().max(start + FLOAT_WIDTH);
    out.resize(end, b' ');
}

/// The bits of BIT, highest first, without those that pad the first byte.
fn push_bits(out: &mut Vec<u8>, bytes: &[u8], bits: usize) {
    let all = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| b'0' + (byte >> bit & 1)));
    let padding = (bytes.len() * 8).saturating_sub(bits);
    out.extend_from_slice(b"b'");
    out.extend(all.skip(padding));
    out.push(b'\'');
}

/// The bytes of SET are shown in the order in which they are stored: the lowest first.
fn push_set(out: &mut Vec<u8>, bytes: &[u8]) {
    push_bits(out, bytes, bytes.len() * 8);
}

fn push_between_quotes(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\'');
    out.extend_from_slice(text);
    out.push(b'\'');
}
