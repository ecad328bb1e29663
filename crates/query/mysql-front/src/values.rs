//! The values of a prepared statement's parameters, as COM_STMT_EXECUTE has them.
//!
//! ```text
//! from the server to a worker, for n parameters:
//! (n + 7) / 8  which are NULL, a bit for each
//! (n + 7) / 8  which came by COM_STMT_SEND_LONG_DATA
//! 2 × n        types: code, then 80 if unsigned
//! …            those that came so, each after its size of 4 bytes; then the values of the others, as the client wrote them
//!
//! value: TINY 1 · SHORT, YEAR 2 · LONG, INT24 4 · LONGLONG 8 · FLOAT 4 · DOUBLE 8, little-endian
//!        DATE, DATETIME, TIMESTAMP: length 1 (0, 4, 7, 11) · year 2 · month · day [· hour · minute · second [· microseconds 4]]
//!        TIME: length 1 (0, 8, 12) · is negative · days 4 · hour · minute · second [· microseconds 4]
//!        others: LEI length and text
//! ```

use std::collections::BTreeMap;

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_query::ParameterValues;
use binlogz_query_server::StatementRefusal;
use bytes::Bytes;
use datafusion::common::ScalarValue;

use crate::errors::{WRONG_ARGUMENTS, refused};
use crate::rows::moment_of;

const WHAT: &str = "parameters";
const UNSIGNED: u8 = 0x80;

/// Values that a client has given, as a worker is told them.
pub(crate) struct GivenValues<'v> {
    /// Bits.
    pub(crate) nulls: &'v [u8],
    pub(crate) types: &'v [u8],
    pub(crate) long: &'v BTreeMap<u16, Vec<u8>>,
    /// The values of the others.
    pub(crate) rest: &'v [u8],
}

impl GivenValues<'_> {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        out.put(self.nulls);
        let mut bits = vec![0_u8; self.nulls.len()];
        for number in self.long.keys().map(|number| usize::from(*number)) {
            if let Some(byte) = bits.get_mut(number / 8) {
                *byte |= 1 << (number % 8);
            }
        }
        out.put(&bits);
        out.put(self.types);
        for value in self.long.values() {
            out.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
            out.put(value);
        }
        out.put(self.rest);
        out.into()
    }
}

fn has(bits: &[u8], number: usize) -> bool {
    bits.get(number / 8).is_some_and(|byte| byte & (1 << (number % 8)) != 0)
}

/// The values of `count` parameters, which are named by their numbers from 1 on.
pub(crate) fn decode(bytes: &[u8], count: usize) -> Result<ParameterValues, StatementRefusal> {
    read(bytes, count)
        .map_err(|error| refused(WRONG_ARGUMENTS, format!("Incorrect arguments to EXECUTE: {error}")))
}

fn read(bytes: &[u8], count: usize) -> binlogz_binlog::Result<ParameterValues> {
    let mut cursor = Cursor::new(bytes, WHAT);
    let nulls = cursor.bytes(count.div_ceil(8), "NULLs")?;
    let long = cursor.bytes(count.div_ceil(8), "long values")?;
    let types = cursor.bytes(2 * count, "types")?;
    let mut values = ParameterValues::default();
    let mut given = Vec::new();
    for number in (0..count).filter(|number| has(long, *number)) {
        let size = cursor.u32("size of a long value")? as usize;
        given.push((number, of_bytes(cursor.bytes(size, "a long value")?)));
    }
    for (number, kind) in types.chunks_exact(2).enumerate() {
        let [code, flags] = *kind else { continue };
        if has(long, number) {
            continue;
        }
        let value = match has(nulls, number) || code == 6 {
            true => ScalarValue::Null,
            false => value(&mut cursor, code, flags & UNSIGNED != 0)?,
        };
        given.push((number, value));
    }
    cursor.finish()?;
    for (number, value) in given {
        values.set(&(number + 1).to_string(), value);
    }
    Ok(values)
}

/// A text, or bytes that are none.
fn of_bytes(bytes: &[u8]) -> ScalarValue {
    match std::str::from_utf8(bytes) {
        Ok(text) => ScalarValue::Utf8(Some(text.to_owned())),
        Err(_) => ScalarValue::Binary(Some(bytes.to_vec())),
    }
}

fn value(cursor: &mut Cursor<'_>, code: u8, unsigned: bool) -> binlogz_binlog::Result<ScalarValue> {
    Ok(match code {
        1 => {
            let [byte] = cursor.array("TINY")?;
            match unsigned {
                true => ScalarValue::UInt8(Some(byte)),
                false => ScalarValue::Int8(Some(i8::from_le_bytes([byte]))),
            }
        }
        2 | 13 => {
            let bytes = cursor.array("SHORT")?;
            match unsigned {
                true => ScalarValue::UInt16(Some(u16::from_le_bytes(bytes))),
                false => ScalarValue::Int16(Some(i16::from_le_bytes(bytes))),
            }
        }
        3 | 9 => {
            let bytes = cursor.array("LONG")?;
            match unsigned {
                true => ScalarValue::UInt32(Some(u32::from_le_bytes(bytes))),
                false => ScalarValue::Int32(Some(i32::from_le_bytes(bytes))),
            }
        }
        8 => {
            let bytes = cursor.array("LONGLONG")?;
            match unsigned {
                true => ScalarValue::UInt64(Some(u64::from_le_bytes(bytes))),
                false => ScalarValue::Int64(Some(i64::from_le_bytes(bytes))),
            }
        }
        4 => ScalarValue::Float32(Some(f32::from_le_bytes(cursor.array("FLOAT")?))),
        5 => ScalarValue::Float64(Some(f64::from_le_bytes(cursor.array("DOUBLE")?))),
        7 | 10 | 12 => date_time(cursor)?,
        11 => time(cursor)?,
        // DECIMAL, VARCHAR, BIT, VECTOR, JSON, NEWDECIMAL, ENUM, SET, the BLOBs, VAR_STRING, STRING, GEOMETRY.
        0 | 15 | 16 | 242 | 245..=255 => {
            let size = cursor.lei("length")?;
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            of_bytes(cursor.bytes(size, "text")?)
        }
        unknown => {
            let expected = "a type of the protocol";
            return Err(binlogz_binlog::Error::invalid(WHAT, "type", unknown, expected));
        }
    })
}

fn date_time(cursor: &mut Cursor<'_>) -> binlogz_binlog::Result<ScalarValue> {
    let length = cursor.u8("length of a time")?;
    let (mut date, mut time) = ((0, 0, 0), [0; 4]);
    if length >= 4 {
        date = (cursor.u16("year")?, cursor.u8("month")?, cursor.u8("day")?);
    }
    if length >= 7 {
        for part in time.iter_mut().take(3) {
            *part = u32::from(cursor.u8("time")?);
        }
    }
    if length >= 11 {
        time[3] = cursor.u32("microseconds")?;
    }
    if ![0, 4, 7, 11].contains(&length) {
        return Err(binlogz_binlog::Error::invalid(WHAT, "length of a time", length, "0, 4, 7 or 11"));
    }
    let micros = moment_of(date, time);
    let micros = micros.ok_or_else(|| {
        binlogz_binlog::Error::invalid(WHAT, "date", format!("{date:?}"), "one of a calendar")
    })?;
    Ok(ScalarValue::TimestampMicrosecond(Some(micros), None))
}

/// A TIME, which logs have as text.
fn time(cursor: &mut Cursor<'_>) -> binlogz_binlog::Result<ScalarValue> {
    let length = cursor.u8("length of a TIME")?;
    let mut text = "00:00:00".to_owned();
    if length >= 8 {
        let sign = if cursor.u8("sign")? == 0 { "" } else { "-" };
        let days = cursor.u32("days")?;
        let [hour, minute, second] = cursor.array("time")?;
        let hours = u64::from(days) * 24 + u64::from(hour);
        text = format!("{sign}{hours:02}:{minute:02}:{second:02}");
    }
    if length >= 12 {
        text.push_str(&format!(".{:06}", cursor.u32("microseconds")?));
    }
    match [0, 8, 12].contains(&length) {
        true => Ok(ScalarValue::Utf8(Some(text))),
        false => Err(binlogz_binlog::Error::invalid(WHAT, "length of a TIME", length, "0, 8 or 12")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_the_protocol_does_not_have_is_an_error() {
        let long = BTreeMap::new();
        let error = |code| {
            let given = GivenValues { nulls: &[0], types: &[code, 0], long: &long, rest: b"\x03abc" };
            decode(&given.encode(), 1).err().map(|refusal| refusal.line)
        };
        assert_eq!(error(253), None);
        for code in [14, 17, 18, 19, 20, 200, 243, 244] {
            assert!(error(code).is_some_and(|line| line.contains("type is")), "{code}: {:?}", error(code));
        }
    }

    #[test]
    fn values_come_back_and_every_cut_is_an_error() {
        let long = BTreeMap::from([(1, b"long".to_vec())]);
        let mut rest = 7_i64.to_le_bytes().to_vec();
        rest.extend(b"\x03abc");
        rest.extend([7, 0xe8, 7, 2, 29, 1, 2, 3]);
        let types = [8, 0, 254, 0, 254, 0, 12, 0, 6, 0];
        let given = GivenValues { nulls: &[0b1_0000], types: &types, long: &long, rest: &rest };
        let bytes = given.encode();
        let values = decode(&bytes, 5).unwrap();
        assert_eq!(values.names().collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
        let shown = format!("{values:?}");
        for part in ["Int64(7)", "\"long\"", "\"abc\"", "1709168523000000", "NULL"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        for size in 0..bytes.len() {
            assert_eq!(decode(&bytes[..size], 5).unwrap_err().number, WRONG_ARGUMENTS, "{size}");
        }
    }
}
