//! One column's value. Numbers and times are decoded; strings, documents and the like borrow the row's bytes
//! and are only decoded on request.

use crate::cursor::Cursor;
use crate::error::Result;
use crate::row::decimal::Decimal;
use crate::row::json::{JsonDiffs, JsonDocument};
use crate::row::kind::ColumnKind;
use crate::row::temporal::{Date, DateTime, Time, Timestamp};
use crate::row::vector::Vector;

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A signed integer; also an unsigned one if the table map doesn't say (before 8.0.1).
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal<'a>),
    /// BIT.
    Bit(u64),
    /// YEAR; 0 is the year 0000.
    Year(u16),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME.
    DateTime(DateTime),
    /// TIMESTAMP.
    Timestamp(Timestamp),
    /// ENUM: the member's number from 1, or 0 for the empty value of an invalid one.
    Enum(u16),
    /// SET: a bit for each member, the first the lowest.
    Set(u64),
    /// CHAR, VARCHAR, TEXT, BINARY, VARBINARY, BLOB: the bytes in the column's character set. Of a BINARY(n) the log
    /// leaves out the zeros at its end: [`super::ColumnSchema::padded`] puts them back.
    Bytes(&'a [u8]),
    /// JSON.
    Json(JsonDocument<'a>),
    /// JSON of an after-image as the differences from the before-image.
    JsonDiffs(JsonDiffs<'a>),
    /// GEOMETRY: the SRID in four bytes, then well-known binary.
    Geometry(&'a [u8]),
    /// VECTOR.
    Vector(Vector<'a>),
}

impl<'a> Value<'a> {
    /// Reads the bytes of a value, without the length before it.
    ///
    /// # Errors
    ///
    /// A DECIMAL with a group of too many digits, a fraction of a second above one second, a
    /// DATETIME below the year 0, a VECTOR of a fraction of a number.
    #[inline]
    pub(super) fn decode(kind: ColumnKind, bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "row value");
        let value = match kind {
            ColumnKind::Null => Value::Null,
            ColumnKind::TinyInt { unsigned } => int(u64::from(cursor.u8("tinyint")?), 8, unsigned),
            ColumnKind::SmallInt { unsigned } => int(u64::from(cursor.u16("smallint")?), 16, unsigned),
            ColumnKind::MediumInt { unsigned } => int(u64::from(cursor.u24("mediumint")?), 24, unsigned),
            ColumnKind::Int { unsigned } => int(u64::from(cursor.u32("int")?), 32, unsigned),
            ColumnKind::BigInt { unsigned } => int(cursor.u64("bigint")?, 64, unsigned),
            ColumnKind::Decimal(format) => return Ok(Value::Decimal(Decimal::new(bytes, format)?)),
            ColumnKind::Float => Value::Float(f32::from_bits(cursor.u32("float")?)),
            ColumnKind::Double => Value::Double(f64::from_bits(cursor.u64("double")?)),
            ColumnKind::Bit { .. } => return Ok(Value::Bit(uint_be(bytes))),
            ColumnKind::Year => Value::Year(match cursor.u8("year")? {
                0 => 0,
                years => 1900 + u16::from(years),
            }),
            ColumnKind::Date => Value::Date(Date::decode(&mut cursor)?),
            ColumnKind::Time { fraction_digits } => Value::Time(Time::decode(&mut cursor, fraction_digits)?),
            ColumnKind::DateTime { fraction_digits } => {
                Value::DateTime(DateTime::decode(&mut cursor, fraction_digits)?)
            }
            ColumnKind::Timestamp { fraction_digits } => {
                Value::Timestamp(Timestamp::decode(&mut cursor, fraction_digits)?)
            }
            ColumnKind::OldTime => Value::Time(Time::decode_old(&mut cursor)?),
            ColumnKind::OldDateTime => Value::DateTime(DateTime::decode_old(&mut cursor)?),
            ColumnKind::OldTimestamp => Value::Timestamp(Timestamp::decode_old(&mut cursor)?),
            ColumnKind::Enum { size } => Value::Enum(cursor.uint(usize::from(size), "enum")? as u16),
            ColumnKind::Set { size } => Value::Set(cursor.uint(usize::from(size), "set")?),
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
                return Ok(Value::Bytes(bytes));
            }
            ColumnKind::Json { .. } | ColumnKind::TypedArray => {
                return Ok(Value::Json(JsonDocument::new(bytes)));
            }
            ColumnKind::Geometry { .. } => return Ok(Value::Geometry(bytes)),
            ColumnKind::Vector { .. } => return Ok(Value::Vector(Vector::new(bytes)?)),
        };
        cursor.finish()?;
        Ok(value)
    }
}

/// An integer of `bits` bits.
#[inline]
fn int<'a>(raw: u64, bits: u32, unsigned: bool) -> Value<'a> {
    if unsigned {
        Value::Uint(raw)
    } else {
        let unused = 64 - bits;
        Value::Int(((raw << unused) as i64) >> unused)
    }
}

/// At most eight bytes, big-endian.
fn uint_be(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::decimal::DecimalFormat;

    fn decode(kind: ColumnKind, bytes: &[u8]) -> Value<'_> {
        Value::decode(kind, bytes).unwrap()
    }

    #[test]
    fn integers_at_their_limits() {
        use ColumnKind::{BigInt, Int, MediumInt, SmallInt, TinyInt};
        for (signed, unsigned, size) in [
            (TinyInt { unsigned: false }, TinyInt { unsigned: true }, 1),
            (SmallInt { unsigned: false }, SmallInt { unsigned: true }, 2),
            (MediumInt { unsigned: false }, MediumInt { unsigned: true }, 3),
            (Int { unsigned: false }, Int { unsigned: true }, 4),
            (BigInt { unsigned: false }, BigInt { unsigned: true }, 8),
        ] {
            let ones = vec![0xff; size];
            assert_eq!(decode(signed, &ones), Value::Int(-1));
            assert_eq!(decode(unsigned, &ones), Value::Uint(u64::MAX >> (64 - 8 * size)));
            let mut lowest = vec![0; size];
            lowest[size - 1] = 0x80;
            assert_eq!(decode(signed, &lowest), Value::Int(i64::MIN >> (64 - 8 * size)));
            assert_eq!(decode(unsigned, &lowest), Value::Uint(1 << (8 * size - 1)));
        }
    }

    #[test]
    fn values_of_every_other_kind() {
        assert_eq!(decode(ColumnKind::Null, b""), Value::Null);
        assert_eq!(decode(ColumnKind::Float, &1.5f32.to_le_bytes()), Value::Float(1.5));
        assert_eq!(decode(ColumnKind::Double, &(-0.25f64).to_le_bytes()), Value::Double(-0.25));
        assert_eq!(decode(ColumnKind::Bit { bits: 12 }, &[0x0a, 0xaa]), Value::Bit(0xaaa));
        assert_eq!(decode(ColumnKind::Year, &[0]), Value::Year(0));
        assert_eq!(decode(ColumnKind::Year, &[255]), Value::Year(2155));
        assert_eq!(decode(ColumnKind::Enum { size: 2 }, &[1, 2]), Value::Enum(0x201));
        assert_eq!(decode(ColumnKind::Set { size: 3 }, &[1, 0, 2]), Value::Set(0x2_0001));
        assert_eq!(decode(ColumnKind::Blob { length_size: 1 }, b"\0x"), Value::Bytes(b"\0x"));
        assert_eq!(decode(ColumnKind::Geometry { length_size: 4 }, b"\0"), Value::Geometry(b"\0"));
        let Value::Decimal(decimal) =
            decode(ColumnKind::Decimal(DecimalFormat::new(4, 2).unwrap()), &[0x8c, 0x22])
        else {
            panic!("no decimal")
        };
        assert_eq!(decimal.to_string(), "12.34");
    }

    #[test]
    fn bytes_that_a_type_cannot_have_are_refused() {
        assert!(Value::decode(ColumnKind::Vector { length_size: 4 }, b"12345").is_err());
        assert!(Value::decode(ColumnKind::DateTime { fraction_digits: 0 }, &[0; 5]).is_err());
        assert!(Value::decode(ColumnKind::Int { unsigned: false }, &[0; 3]).is_err());
        assert!(Value::decode(ColumnKind::Int { unsigned: false }, &[0; 5]).is_err());
    }
}
