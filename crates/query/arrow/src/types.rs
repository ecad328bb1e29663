//! The Arrow type of each MySQL type, and how its values are built.
//!
//! ```text
//! TINYINT … BIGINT       Int8, Int16, Int32, Int32, Int64; unsigned: UInt8, UInt16, UInt32, UInt32, UInt64
//! DECIMAL(p, s)          Decimal128(p, s); above 38 digits Decimal256
//! FLOAT, DOUBLE          Float32, Float64            BIT, YEAR     UInt64, UInt16
//! DATE                   Date32                      DATETIME      Timestamp(µs)
//! TIMESTAMP              Timestamp(µs, +00:00)       TIME          Utf8, as MySQL writes it: it may be above a day
//! CHAR, VARCHAR, TEXT    Utf8                        BINARY, VARBINARY, BLOB, GEOMETRY    Binary
//! ENUM, SET, JSON        Utf8                        VECTOR        List(Float32)
//! ```
//!
//! A zero date and any date that is in no calendar is NULL. Where a column changed its type in the logs, [`merged`] has all of
//! its values.

mod many;

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, Date32Builder, Decimal128Builder, Decimal256Builder, Float32Builder, Float64Builder,
    Int8Builder, Int16Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, TimeUnit};
use binlogz_binlog::Result;
use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::{Cell, ColumnKind, ColumnSchema, Date, DateTime, Timestamp, Value};

const DATETIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const DECIMAL128_DIGITS: u8 = 38;
const DECIMAL256_DIGITS: u8 = 76;
/// Decimal digits that a DOUBLE holds, whatever they are.
const DOUBLE_DIGITS: u8 = f64::DIGITS as u8;

/// The zone of moments.
const UTC: &str = "+00:00";

/// The type of a moment: microseconds since 1970, in UTC.
pub fn moment() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
}

/// The type of a column.
pub fn of(column: &ColumnSchema) -> DataType {
    use ColumnKind as Kind;
    let int = |unsigned, signed, other| if unsigned { other } else { signed };
    match column.kind {
        Kind::TinyInt { unsigned } => int(unsigned, DataType::Int8, DataType::UInt8),
        Kind::SmallInt { unsigned } => int(unsigned, DataType::Int16, DataType::UInt16),
        Kind::MediumInt { unsigned } | Kind::Int { unsigned } => {
            int(unsigned, DataType::Int32, DataType::UInt32)
        }
        Kind::BigInt { unsigned } => int(unsigned, DataType::Int64, DataType::UInt64),
        Kind::Decimal(format) => decimal(format.precision(), format.scale()),
        Kind::Float => DataType::Float32,
        Kind::Double => DataType::Float64,
        Kind::Bit { .. } => DataType::UInt64,
        Kind::Year => DataType::UInt16,
        Kind::Date => DataType::Date32,
        Kind::DateTime { .. } | Kind::OldDateTime => DATETIME,
        Kind::Timestamp { .. } | Kind::OldTimestamp => moment(),
        Kind::Char { .. } | Kind::Varchar { .. } | Kind::Blob { .. } => match column.charset() {
            Some(Charset::Binary) => DataType::Binary,
            _ => DataType::Utf8,
        },
        Kind::Geometry { .. } => DataType::Binary,
        Kind::Vector { .. } => DataType::List(Arc::new(Field::new_list_field(DataType::Float32, true))),
        Kind::Null
        | Kind::Time { .. }
        | Kind::OldTime
        | Kind::Enum { .. }
        | Kind::Set { .. }
        | Kind::Json { .. }
        | Kind::TypedArray => DataType::Utf8,
    }
}

fn decimal(precision: u8, scale: u8) -> DataType {
    match precision {
        0..=DECIMAL128_DIGITS => DataType::Decimal128(precision.max(1), scale as i8),
        _ => DataType::Decimal256(precision.min(DECIMAL256_DIGITS), scale as i8),
    }
}

/// A type that has the values of both: the wider number, date and time without a zone, otherwise text.
pub fn merged(one: &DataType, other: &DataType) -> DataType {
    if one == other {
        return one.clone();
    }
    let is_float = |kind: &DataType| matches!(kind, DataType::Float32 | DataType::Float64);
    match (digits(one), digits(other)) {
        (Some((whole, scale)), Some((other_whole, other_scale))) => {
            let is_whole = one.is_integer() && other.is_integer();
            match (is_whole, whole.max(other_whole)) {
                (true, ..=10) => DataType::Int64,
                (true, ..=19) if one.is_signed_integer() && other.is_signed_integer() => DataType::Int64,
                (true, _) if one.is_unsigned_integer() && other.is_unsigned_integer() => DataType::UInt64,
                (_, whole) => {
                    let scale = scale.max(other_scale);
                    match whole.checked_add(scale) {
                        Some(precision) if precision <= DECIMAL256_DIGITS => decimal(precision, scale),
                        _ => DataType::Utf8,
                    }
                }
            }
        }
        (Some(exact), None) if is_float(other) => with_double(exact),
        (None, Some(exact)) if is_float(one) => with_double(exact),
        _ if is_float(one) && is_float(other) => DataType::Float64,
        // A TIMESTAMP's in UTC.
        _ if is_day(one) && is_day(other) => DATETIME,
        _ => DataType::Utf8,
    }
}

/// A type for exact numbers of so many digits and for DOUBLE: the text of both, if a DOUBLE would lose digits.
fn with_double((whole, scale): (u8, u8)) -> DataType {
    match whole.saturating_add(scale) {
        ..=DOUBLE_DIGITS => DataType::Float64,
        _ => DataType::Utf8,
    }
}

/// Whether it is a type of days, with or without a time.
fn is_day(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, _))
}

/// Digits before and after the point that an exact number has.
fn digits(kind: &DataType) -> Option<(u8, u8)> {
    Some(match kind {
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            (precision.checked_sub(scale)?, scale)
        }
        _ => return None,
    })
}

/// A column of values that is being built.
#[derive(Debug)]
pub struct ValueColumn(Builder);

/// The Arrow builder of a column's values, by the column's type.
#[derive(Debug)]
enum Builder {
    I8(Int8Builder),
    I16(Int16Builder),
    I32(Int32Builder),
    I64(Int64Builder),
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    D128(Decimal128Builder, i8),
    D256(Decimal256Builder, i8),
    Date(Date32Builder),
    DateTime(TimestampMicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Bytes(BinaryBuilder),
    Vector(ListBuilder<Float32Builder>),
    Text(StringBuilder),
}

impl ValueColumn {
    /// An empty column of a type that [`of`] or [`merged`] gives. It has no room yet: of thousands of tables, most have few rows.
    pub fn new(kind: &DataType) -> Self {
        ValueColumn(match kind {
            DataType::Int8 => Builder::I8(Int8Builder::with_capacity(0)),
            DataType::Int16 => Builder::I16(Int16Builder::with_capacity(0)),
            DataType::Int32 => Builder::I32(Int32Builder::with_capacity(0)),
            DataType::Int64 => Builder::I64(Int64Builder::with_capacity(0)),
            DataType::UInt8 => Builder::U8(UInt8Builder::with_capacity(0)),
            DataType::UInt16 => Builder::U16(UInt16Builder::with_capacity(0)),
            DataType::UInt32 => Builder::U32(UInt32Builder::with_capacity(0)),
            DataType::UInt64 => Builder::U64(UInt64Builder::with_capacity(0)),
            DataType::Float32 => Builder::F32(Float32Builder::with_capacity(0)),
            DataType::Float64 => Builder::F64(Float64Builder::with_capacity(0)),
            DataType::Decimal128(_, scale) => {
                Builder::D128(Decimal128Builder::with_capacity(0).with_data_type(kind.clone()), *scale)
            }
            DataType::Decimal256(_, scale) => {
                Builder::D256(Decimal256Builder::with_capacity(0).with_data_type(kind.clone()), *scale)
            }
            DataType::Date32 => Builder::Date(Date32Builder::with_capacity(0)),
            DataType::Timestamp(_, None) => Builder::DateTime(TimestampMicrosecondBuilder::with_capacity(0)),
            DataType::Timestamp(..) => {
                Builder::Timestamp(TimestampMicrosecondBuilder::with_capacity(0).with_data_type(kind.clone()))
            }
            DataType::Binary => Builder::Bytes(BinaryBuilder::with_capacity(0, 0)),
            DataType::List(_) => {
                Builder::Vector(ListBuilder::with_capacity(Float32Builder::with_capacity(0), 0))
            }
            _ => Builder::Text(StringBuilder::with_capacity(0, 0)),
        })
    }

    /// Appends a cell; one that is absent is NULL. `document`: the whole document of a JSON column that was changed in part.
    ///
    /// # Errors
    ///
    /// Bytes that are no value of the column's type.
    pub fn push(
        &mut self,
        cell: Option<&Cell<'_>>,
        document: Option<&str>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let value = cell.map_or(Ok(Value::Null), |cell| cell.value())?;
        match &mut self.0 {
            Builder::I8(builder) => builder.append_option(whole(&value)),
            Builder::I16(builder) => builder.append_option(whole(&value)),
            Builder::I32(builder) => builder.append_option(whole(&value)),
            Builder::I64(builder) => builder.append_option(whole(&value)),
            Builder::U8(builder) => builder.append_option(whole(&value)),
            Builder::U16(builder) => builder.append_option(whole(&value)),
            Builder::U32(builder) => builder.append_option(whole(&value)),
            Builder::U64(builder) => builder.append_option(whole(&value)),
            Builder::F32(builder) => builder.append_option(match value {
                Value::Float(number) => Some(number),
                _ => None,
            }),
            Builder::F64(builder) => builder.append_option(double(&value)),
            Builder::D128(builder, scale) => {
                builder.append_option(unscaled128(&value, *scale));
            }
            Builder::D256(builder, scale) => {
                builder.append_option(unscaled(&value, *scale).and_then(|digits| i256::from_string(&digits)));
            }
            Builder::Date(builder) => builder.append_option(match value {
                Value::Date(date) => days(date),
                _ => None,
            }),
            Builder::DateTime(builder) => builder.append_option(match value {
                Value::Date(date) => days(date).map(|days| i64::from(days) * 86_400_000_000),
                Value::DateTime(time) => microseconds(time),
                Value::Timestamp(time) => moment_of(time),
                _ => None,
            }),
            Builder::Timestamp(builder) => builder.append_option(match value {
                Value::Timestamp(time) => moment_of(time),
                _ => None,
            }),
            Builder::Bytes(builder) => builder.append_option(match value {
                Value::Bytes(bytes) => {
                    Some(cell.map_or(Cow::Borrowed(bytes), |cell| cell.column.padded(bytes)))
                }
                Value::Geometry(bytes) => Some(Cow::Borrowed(bytes)),
                _ => None,
            }),
            Builder::Vector(builder) => match value {
                Value::Vector(vector) => {
                    vector.iter().for_each(|number| builder.values().append_value(number));
                    builder.append(true);
                }
                _ => builder.append(false),
            },
            Builder::Text(builder) => match (cell, document) {
                (_, Some(document)) => builder.append_value(document),
                (Some(cell), None) => match text(cell.column, &value, scratch)? {
                    Some(text) => builder.append_value(text),
                    None => builder.append_null(),
                },
                (None, None) => builder.append_null(),
            },
        }
        Ok(())
    }

    /// The values so far; the column is empty after that.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.0 {
            Builder::I8(builder) => Arc::new(builder.finish()),
            Builder::I16(builder) => Arc::new(builder.finish()),
            Builder::I32(builder) => Arc::new(builder.finish()),
            Builder::I64(builder) => Arc::new(builder.finish()),
            Builder::U8(builder) => Arc::new(builder.finish()),
            Builder::U16(builder) => Arc::new(builder.finish()),
            Builder::U32(builder) => Arc::new(builder.finish()),
            Builder::U64(builder) => Arc::new(builder.finish()),
            Builder::F32(builder) => Arc::new(builder.finish()),
            Builder::F64(builder) => Arc::new(builder.finish()),
            Builder::D128(builder, _) => Arc::new(builder.finish()),
            Builder::D256(builder, _) => Arc::new(builder.finish()),
            Builder::Date(builder) => Arc::new(builder.finish()),
            Builder::DateTime(builder) | Builder::Timestamp(builder) => Arc::new(builder.finish()),
            Builder::Bytes(builder) => Arc::new(builder.finish()),
            Builder::Vector(builder) => Arc::new(builder.finish()),
            Builder::Text(builder) => Arc::new(builder.finish()),
        }
    }
}

/// A whole number of a type that has room for it.
fn whole<T: TryFrom<i128>>(value: &Value<'_>) -> Option<T> {
    T::try_from(integer(value)?).ok()
}

fn integer(value: &Value<'_>) -> Option<i128> {
    match *value {
        Value::Int(number) => Some(number.into()),
        Value::Uint(number) | Value::Bit(number) => Some(number.into()),
        Value::Year(year) => Some(year.into()),
        _ => None,
    }
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Float(number) => Some(f64::from(*number)),
        Value::Decimal(number) => number.text().as_str().parse().ok(),
        value => integer(value).map(|number| number as f64),
    }
}

/// A number of this many digits after the point, without the point; `None`: it has more of them, or takes more than 128 bits.
fn unscaled128(value: &Value<'_>, scale: i8) -> Option<i128> {
    let scale = u32::try_from(scale).ok()?;
    let Value::Decimal(number) = value else {
        return integer(value)?.checked_mul(10i128.checked_pow(scale)?);
    };
    let missing = scale.checked_sub(u32::from(number.format().scale()))?;
    number.unscaled()?.checked_mul(10i128.checked_pow(missing)?)
}

/// The digits of a number with this many after the point, without the point.
fn unscaled(value: &Value<'_>, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let (mut digits, after) = match value {
        Value::Decimal(number) => {
            let text = number.text();
            let (whole, fraction) = text.as_str().split_once('.').unwrap_or((text.as_str(), ""));
            (format!("{whole}{fraction}"), fraction.len())
        }
        value => (integer(value)?.to_string(), 0),
    };
    let missing = scale.checked_sub(after)?;
    digits.extend(std::iter::repeat_n('0', missing));
    Some(digits)
}

/// Days since 1970; `None`: there is no such day.
fn days(date: Date) -> Option<i32> {
    let year = i32::from(date.year());
    let month = i32::from(date.month());
    let day = i32::from(date.day());
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if day == 0 || day > last {
        return None;
    }
    // Years that begin in March end with the leap day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

fn microseconds(time: DateTime) -> Option<i64> {
    let hours = time.hours();
    let minutes = time.minutes();
    let seconds = time.seconds();
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let clock = i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds);
    let seconds = i64::from(days(time.date())?) * 86_400 + clock;
    Some(seconds * 1_000_000 + i64::from(time.fraction().microseconds()))
}

/// Microseconds since 1970; `None`: the zero timestamp.
fn moment_of(time: Timestamp) -> Option<i64> {
    let moment = i64::from(time.seconds()) * 1_000_000 + i64::from(time.fraction().microseconds());
    (moment != 0).then_some(moment)
}

/// A TIMESTAMP in MySQL's notation, in UTC: `2020-01-02 03:04:05.678`.
fn in_utc(time: Timestamp) -> String {
    // Seconds, and the digits that its type has.
    let text = time.to_string();
    let fraction = text.find('.').and_then(|point| text.get(point..)).unwrap_or_default();
    if moment_of(time).is_none() {
        return format!("0000-00-00 00:00:00{fraction}");
    }
    let (year, month, day) = date_of(time.seconds() / 86_400);
    let clock = time.seconds() % 86_400;
    let hours = clock / 3600;
    let minutes = clock / 60 % 60;
    let seconds = clock % 60;
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

/// Year, month and day of a day since 1970: the inverse of [`days`].
fn date_of(days: u32) -> (u32, u32, u32) {
    // Days since the first of March of year 0, the day after a leap day.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u32::from(month <= 2), month, day)
}

/// A value as text; `None`: NULL.
fn text<'a>(
    column: &ColumnSchema,
    value: &Value<'a>,
    scratch: &'a mut Vec<u8>,
) -> Result<Option<Cow<'a, str>>> {
    Ok(Some(match *value {
        Value::Int(number) => number.to_string().into(),
        Value::Uint(number) | Value::Bit(number) => number.to_string().into(),
        Value::Year(year) => year.to_string().into(),
        Value::Float(number) => number.to_string().into(),
        Value::Double(number) => number.to_string().into(),
        Value::Decimal(number) => number.to_string().into(),
        Value::Date(date) => date.to_string().into(),
        Value::Time(time) => time.to_string().into(),
        Value::DateTime(time) => time.to_string().into(),
        Value::Timestamp(time) => in_utc(time).into(),
        Value::Enum(number) => match column.member(number) {
            Some(name) => decoded(column, name).into_owned().into(),
            None if number == 0 => "".into(),
            None => number.to_string().into(),
        },
        Value::Set(bits) => {
            let names = column.members.as_ref().map_or(0, |members| members.len());
            // A bit without a name would be lost.
            if column.members.is_none() || bits.checked_shr(names as u32).unwrap_or(0) != 0 {
                return Ok(Some(bits.to_string().into()));
            }
            let names: Vec<_> =
                column.set_members(bits).map(|name| decoded(column, name).into_owned()).collect();
            names.join(",").into()
        }
        Value::Bytes(bytes) => decoded(column, bytes),
        Value::Geometry(bytes) => hex(bytes).into(),
        Value::Json(document) => {
            scratch.clear();
            document.write_text(scratch)?;
            String::from_utf8_lossy(scratch)
        }
        Value::Vector(vector) => format!("{:?}", vector.iter().collect::<Vec<_>>()).into(),
        // JSON differences are a change of a document whose other parts aren't logged.
        Value::Null | Value::JsonDiffs(_) => return Ok(None),
    }))
}

/// Bytes in a column's character set, or valid UTF-8 where the log tells none (before 8.0). Bytes that are neither become
/// 0x and hexadecimal digits.
fn decoded<'a>(column: &ColumnSchema, bytes: &'a [u8]) -> Cow<'a, str> {
    let text = match column.charset() {
        Some(charset) if charset != Charset::Binary => charset.decode(bytes),
        _ => match column.padded(bytes) {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Cow::Owned(bytes) => {
                Some(String::from_utf8(bytes).unwrap_or_else(|no| hex(no.as_bytes())).into())
            }
        },
    };
    text.unwrap_or_else(|| hex(bytes).into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_digit_is_lost_where_a_type_changes() {
        use DataType::{Date32, Float32, Float64, Int32, Int64, UInt64, Utf8};
        let decimal = DataType::Decimal128;
        for (one, other, both) in [
            (Int32, Int64, Int64),
            (Int32, Float64, Float64),
            (Int32, Float32, Float64),
            (Int64, Float64, Utf8),
            (UInt64, Float32, Utf8),
            (decimal(15, 2), Float64, Float64),
            (decimal(16, 2), Float64, Utf8),
            (Float32, Float64, Float64),
            (Int32, Utf8, Utf8),
            (Date32, DATETIME, DATETIME),
            (Date32, moment(), DATETIME),
            (DATETIME, moment(), DATETIME),
            (Date32, Int32, Utf8),
        ] {
            assert_eq!(merged(&one, &other), both, "{one} and {other}");
            assert_eq!(merged(&other, &one), both, "{other} and {one}");
        }
    }

    /// Each day of the calendar, in turn.
    #[test]
    fn a_day_of_1970_has_its_date() {
        let mut year = 1970;
        let mut month = 1;
        let mut day = 1;
        for number in 0..u32::MAX / 86_400 {
            assert_eq!(date_of(number), (year, month, day), "{number}");
            let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let last = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (day, month) = if day == last { (1, month + 1) } else { (day + 1, month) };
            (month, year) = if month == 13 { (1, year + 1) } else { (month, year) };
        }
    }
}
