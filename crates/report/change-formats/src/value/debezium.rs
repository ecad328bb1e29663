//! Values as Debezium's MySQL connector 3.6 writes them with `time.precision.mode=adaptive_time_microseconds` and
//! `binary.handling.mode=bytes`, its defaults.
//!
//! ```text
//! integers, YEAR       number                    BIT(1)              true, false
//! DECIMAL              see `Decimals`            BIT(n)              base64, lowest byte first
//! FLOAT, DOUBLE        number                    ENUM, SET           string
//! DATE                 days since 1970           CHAR, TEXT          string
//! TIME(n)              microseconds              BINARY, BLOB        base64
//! DATETIME(0 to 3)     milliseconds since 1970   JSON                string
//! DATETIME(4 to 6)     microseconds              GEOMETRY            {"wkb":…,"srid":…}, of a POINT also x and y
//! TIMESTAMP            string, in UTC            VECTOR              array of numbers
//! ```
//!
//! A date with a zero in it is null, or the first second of 1970 where the column is NOT NULL.

use std::io::Write as _;

use binlogz_binlog::row::{Cell, ColumnKind, Date, Decimal, Value};
use binlogz_binlog::{Error, Result};
use binlogz_print::{push_signed, push_unsigned};

use super::{
    FieldValues, JACKSON, WHAT, datetime_microseconds, enum_member, lossy, push_vector, text,
    time_microseconds, unknown, without_spaces,
};
use crate::java::{push_base64, push_document, push_float, push_string};
use crate::settings::{BigintUnsigned, ChangeSettings, Decimals};
use crate::table::{ChangeColumn, is_point};

/// The bytes of an SRID before well-known binary.
const SRID_SIZE: usize = 4;
/// A point in well-known binary: byte order, type, x, y.
const POINT_SIZE: usize = 1 + 4 + 8 + 8;

/// Values by these settings.
pub(crate) struct DebeziumValues<'s>(pub(crate) &'s ChangeSettings<'s>);

impl FieldValues for DebeziumValues<'_> {
    fn push(&self, out: &mut Vec<u8>, cell: &Cell<'_>, column: &ChangeColumn) -> Result<()> {
        push(out, cell, column, self.0)
    }

    fn push_changed_document(&self, out: &mut Vec<u8>, text: &[u8]) {
        push_string(out, &lossy(&without_spaces(text)), JACKSON);
    }
}

fn push(
    out: &mut Vec<u8>,
    cell: &Cell<'_>,
    column: &ChangeColumn,
    settings: &ChangeSettings<'_>,
) -> Result<()> {
    let value = cell.value()?;
    match &value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Int(number) => push_signed(out, *number),
        Value::Uint(number) => match (column.schema.kind, settings.bigint_unsigned) {
            (ColumnKind::BigInt { .. }, BigintUnsigned::Long) => push_signed(out, *number as i64),
            (ColumnKind::BigInt { .. }, BigintUnsigned::Precise) => {
                push_big(out, &mut number.to_string().bytes(), false);
            }
            _ => push_unsigned(out, *number),
        },
        // The connector counts from 1900, whatever the server means by 0.
        Value::Year(year) => push_unsigned(out, u64::from(if *year == 0 { 1900 } else { *year })),
        Value::Float(number) => push_float(out, *number),
        Value::Double(number) => push_float(out, *number),
        Value::Decimal(decimal) => push_decimal(out, *decimal, settings.decimals),
        Value::Bit(bits) => match column.schema.kind {
            ColumnKind::Bit { bits: 1 } => out.extend_from_slice(if *bits == 0 { b"false" } else { b"true" }),
            ColumnKind::Bit { bits: count } => {
                let size = usize::from(count).div_ceil(8);
                push_base64(out, bits.to_le_bytes().get(..size).unwrap_or_default());
            }
            _ => return Err(unknown(&value)),
        },
        Value::Date(date) => push_or_epoch(out, days(*date)?, column),
        Value::Time(time) => push_signed(out, time_microseconds(*time)),
        Value::DateTime(datetime) => {
            let unit = if datetime.fraction().digits() <= 3 { 1000 } else { 1 };
            push_or_epoch(out, datetime_microseconds(*datetime)?.map(|time| time.div_euclid(unit)), column);
        }
        Value::Timestamp(timestamp) => {
            // Zero is no time, and no server stores less than a second.
            match (timestamp.seconds(), column.schema.nullable) {
                (0, true) => out.extend_from_slice(b"null"),
                (0, false) => out.extend_from_slice(b"\"1970-01-01T00:00:00Z\""),
                (seconds, _) => {
                    push_utc(out, seconds);
                    let fraction = timestamp.fraction();
                    if fraction.digits() > 0 {
                        let digits = usize::from(fraction.digits());
                        let shown =
                            fraction.microseconds() / 10_u32.pow(6 - u32::from(fraction.digits()).min(6));
                        let _ = write!(out, ".{shown:0digits$}");
                    }
                    out.extend_from_slice(b"Z\"");
                }
            }
        }
        // It keeps the members as the statement's text wrote them, with commas escaped.
        Value::Enum(number) => push_string(out, &enum_member(column, *number)?.replace(',', "\\,"), JACKSON),
        Value::Set(bits) => {
            let members: Vec<_> =
                column.schema.set_members(*bits).map(|member| text(column, member)).collect();
            push_string(out, &members.join(","), JACKSON);
        }
        Value::Bytes(bytes) if column.is_binary => push_base64(out, &column.schema.padded(bytes)),
        Value::Bytes(bytes) => push_string(out, &text(column, bytes), JACKSON),
        Value::Json(document) => {
            let mut text = Vec::new();
            push_document(&mut text, document)?;
            push_string(out, &lossy(&text), JACKSON);
        }
        Value::Geometry(bytes) => push_geometry(out, bytes, is_point(&column.schema))?,
        Value::Vector(vector) => push_vector(out, vector),
        Value::JsonDiffs(_) => return Err(unknown(&value)),
    }
    Ok(())
}

fn push_or_epoch(out: &mut Vec<u8>, time: Option<i64>, column: &ChangeColumn) {
    match time {
        Some(time) => push_signed(out, time),
        None if column.schema.nullable => out.extend_from_slice(b"null"),
        None => out.push(b'0'),
    }
}

/// Days since 1970 in the Gregorian calendar, with Debezium's idea of years below 100 (`enable.time.adjuster`); `None`: a part
/// is zero.
///
/// # Errors
///
/// A day that its month doesn't have, as ALLOW_INVALID_DATES lets in: Debezium stops there.
pub(super) fn days(date: Date) -> Result<Option<i64>> {
    let year = match i64::from(date.year()) {
        year @ 1..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    let month = i64::from(date.month());
    let day = i64::from(date.day());
    if year == 0 || month == 0 || day == 0 {
        return Ok(None);
    }
    // Years begin in March: a leap day is the last of its year.
    let from_march = if month > 2 { year } else { year - 1 };
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days = from_march * 365 + from_march.div_euclid(4) - from_march.div_euclid(100)
        + from_march.div_euclid(400)
        + of_year
        - 719_468;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    if day > length {
        return Err(Error::invalid(WHAT, "date", date, "a day that its month has"));
    }
    Ok(Some(days))
}

/// Appends `"YYYY-MM-DDThh:mm:ss`.
fn push_utc(out: &mut Vec<u8>, seconds: u32) {
    let time = jiff::Timestamp::from_second(seconds.into()).unwrap_or_default();
    let time = jiff::tz::Offset::UTC.to_datetime(time);
    let _ = write!(
        out,
        "\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
}

fn push_decimal(out: &mut Vec<u8>, decimal: Decimal<'_>, decimals: Decimals) {
    let text = decimal.text();
    let text = text.as_bytes();
    let is_zero = text.iter().all(|byte| matches!(byte, b'0' | b'.' | b'-'));
    // Java has no negative zero among exact numbers.
    let text = if is_zero { text.strip_prefix(b"-").unwrap_or(text) } else { text };
    match decimals {
        Decimals::Precise => {
            push_big(out, &mut text.iter().copied().filter(u8::is_ascii_digit), text.starts_with(b"-"));
        }
        Decimals::String => {
            out.push(b'"');
            out.extend_from_slice(text);
            out.push(b'"');
        }
        Decimals::Double => push_float(out, lossy(text).parse::<f64>().unwrap_or_default()),
    }
}

/// Limbs of the largest number: 81 digits take 270 bits.
const LIMBS: usize = 9;

/// Appends a whole number in base64: two's complement, highest byte first, no more bytes than it needs.
fn push_big(out: &mut Vec<u8>, digits: &mut dyn Iterator<Item = u8>, is_negative: bool) {
    let mut limbs = [0_u32; LIMBS];
    for digit in digits {
        let mut carry = u64::from(digit - b'0');
        for limb in &mut limbs {
            let product = u64::from(*limb) * 10 + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
    }
    if is_negative {
        let mut carry = true;
        for limb in &mut limbs {
            (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
        }
    }
    let mut bytes = [0_u8; 4 * LIMBS];
    for (place, limb) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(limbs.iter().rev()) {
        *place = limb.to_be_bytes();
    }
    // A byte that only repeats the sign is left out.
    let sign = if is_negative { 0xff } else { 0 };
    let mut needed = &bytes[..];
    while let [first, rest @ ..] = needed
        && let [next, ..] = rest
        && *first == sign
        && (next ^ sign) & 0x80 == 0
    {
        needed = rest;
    }
    push_base64(out, needed);
}

fn push_geometry(out: &mut Vec<u8>, bytes: &[u8], is_point: bool) -> Result<()> {
    let Some((srid, wkb)) = bytes.split_first_chunk::<SRID_SIZE>() else {
        return Err(Error::invalid(
            WHAT,
            "geometry",
            format!("{} bytes", bytes.len()),
            "an SRID and a shape",
        ));
    };
    out.push(b'{');
    if is_point
        && wkb.len() >= POINT_SIZE
        && let [1, 1, 0, 0, 0, rest @ ..] = wkb
        && let (Some(x), Some(y)) = (rest.first_chunk(), rest.get(8..).and_then(<[u8]>::first_chunk))
    {
        out.extend_from_slice(b"\"x\":");
        push_float(out, f64::from_le_bytes(*x));
        out.extend_from_slice(b",\"y\":");
        push_float(out, f64::from_le_bytes(*y));
        out.push(b',');
    }
    out.extend_from_slice(b"\"wkb\":");
    push_base64(out, wkb);
    out.extend_from_slice(b",\"srid\":");
    match u32::from_le_bytes(*srid) {
        0 => out.extend_from_slice(b"null"),
        srid => push_unsigned(out, srid.into()),
    }
    out.push(b'}');
    Ok(())
}
