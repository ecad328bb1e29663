//! Values as canal 1.1.7 writes them: each a string. Binary strings and geometries are their bytes as Latin-1; ENUM and SET
//! are numbers.

use std::io::Write as _;

use binlogz_binlog::Result;
use binlogz_binlog::row::{Cell, Decimal, Timestamp, Value};
use binlogz_figures::Zone;
use binlogz_print::{push_signed, push_unsigned};

use super::{lossy, text, unknown};
use crate::java::{Escapes, push_float, push_string};
use crate::table::ChangeColumn;

/// Digits of a group in which DECIMAL is stored.
const GROUP_DIGITS: usize = 9;
const FASTJSON: Escapes = Escapes::Fastjson;

/// Appends a cell's value.
pub(crate) fn push(out: &mut Vec<u8>, cell: &Cell<'_>, column: &ChangeColumn) -> Result<()> {
    let value = cell.value()?;
    let quote = |out: &mut Vec<u8>, push: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'"');
        push(out);
        out.push(b'"');
    };
    match &value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Int(number) => quote(out, &|out| push_signed(out, *number)),
        Value::Uint(number) | Value::Bit(number) | Value::Set(number) => {
            quote(out, &|out| push_unsigned(out, *number));
        }
        Value::Enum(number) => quote(out, &|out| push_unsigned(out, u64::from(*number))),
        Value::Year(year) => quote(out, &|out| {
            let _ = write!(out, "{year:04}");
        }),
        Value::Float(number) => quote(out, &|out| push_float(out, *number)),
        Value::Double(number) => quote(out, &|out| push_float(out, *number)),
        Value::Decimal(decimal) => quote(out, &|out| push_decimal(out, *decimal)),
        Value::Date(date) => quote(out, &|out| out.extend_from_slice(date.text().as_bytes())),
        Value::Time(time) => quote(out, &|out| out.extend_from_slice(time.text().as_bytes())),
        Value::DateTime(datetime) => quote(out, &|out| out.extend_from_slice(datetime.text().as_bytes())),
        Value::Timestamp(timestamp) => push_local(out, *timestamp),
        Value::Bytes(bytes) if column.is_binary => push_latin1(out, &column.schema.padded(bytes)),
        Value::Bytes(bytes) => push_string(out, &text(column, bytes), FASTJSON),
        Value::Geometry(bytes) => push_latin1(out, bytes),
        Value::Vector(vector) => push_latin1(out, vector.as_bytes()),
        Value::Json(document) => {
            let mut text = Vec::new();
            document.write_text(&mut text)?;
            push_string(out, &lossy(&text), FASTJSON);
        }
        Value::JsonDiffs(_) => return Err(unknown(&value)),
    }
    Ok(())
}

/// Appends a document that was changed in part, from the server's text of it.
pub(crate) fn push_changed_document(out: &mut Vec<u8>, text: &[u8]) {
    push_string(out, &lossy(text), FASTJSON);
}

fn push_latin1(out: &mut Vec<u8>, bytes: &[u8]) {
    push_string(out, &bytes.iter().map(|&byte| char::from(byte)).collect::<String>(), FASTJSON);
}

/// Digits at the end that make no whole group of nine are left out if all of them are zeros.
fn push_decimal(out: &mut Vec<u8>, decimal: Decimal<'_>) {
    let text = decimal.text();
    let text = text.as_bytes();
    let scale = usize::from(decimal.format().scale());
    let odd = scale % GROUP_DIGITS;
    let front = text.len().saturating_sub(odd);
    let is_left_out =
        odd > 0 && text.get(front..).is_some_and(|rest| rest.iter().all(|&digit| digit == b'0'));
    let shown = if is_left_out { text.get(..front).unwrap_or_default() } else { text };
    out.extend_from_slice(shown);
    if shown.last() == Some(&b'.') {
        out.push(b'0');
    }
}

/// Appends a TIMESTAMP as the server writes it, in the time zone of the process.
pub(super) fn push_local(out: &mut Vec<u8>, timestamp: Timestamp) {
    let fraction = timestamp.fraction();
    out.push(b'"');
    if timestamp.seconds() == 0 {
        out.extend_from_slice(b"0000-00-00 00:00:00");
    } else {
        let seconds = jiff::Timestamp::from_second(timestamp.seconds().into()).unwrap_or_default();
        let (time, _) = Zone::of_process().local(seconds);
        let _ = write!(
            out,
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        );
    }
    if fraction.digits() > 0 {
        let digits = usize::from(fraction.digits());
        let shown = fraction.microseconds() / 10_u32.pow(6 - u32::from(fraction.digits()).min(6));
        let _ = write!(out, ".{shown:0digits$}");
    }
    out.push(b'"');
}
