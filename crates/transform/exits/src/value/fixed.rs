//! The bytes of a value that is given as text, in a column of any type.

use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::json::JsonDocument;
use binlogz_binlog::row::temporal::big_endian;
use binlogz_binlog::row::{ColumnKind, ColumnSchema};

use super::calendar::CalendarDate;
use super::temporal::{Duration, Moment, put, put_time};
use super::text::{in_charset, is_binary, letters_max, size_max};

/// The bytes of a value in a column.
///
/// # Errors
///
/// What the column expects instead.
pub(super) fn bytes(column: &ColumnSchema, text: &str) -> Result<Vec<u8>, String> {
    let wrong = |expected: &str| format!("the value is {text:?}, expected {expected}");
    match column.kind {
        ColumnKind::TinyInt { .. }
        | ColumnKind::SmallInt { .. }
        | ColumnKind::MediumInt { .. }
        | ColumnKind::Int { .. }
        | ColumnKind::BigInt { .. } => integer(column, text),
        ColumnKind::Decimal(format) => {
            let (is_negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
            let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
            let digits = format
                .digits(whole, fraction)
                .ok_or_else(|| wrong(&format!("DECIMAL({},{})", format.precision(), format.scale())))?;
            let is_zero = digits.iter().all(|&digit| digit == 0);
            Ok(format.encode(is_negative && !is_zero, &digits))
        }
        ColumnKind::Float => number::<f32>(text).map(|number| number.to_le_bytes().to_vec()),
        ColumnKind::Double => number::<f64>(text).map(|number| number.to_le_bytes().to_vec()),
        ColumnKind::Bit { bits } => {
            let value: u64 = number(text)?;
            match bits >= 64 || value >> bits == 0 {
                true => Ok(big_endian(value, bits.div_ceil(8).into())),
                false => Err(wrong(&format!("at most {bits} bits"))),
            }
        }
        ColumnKind::Year => match number::<u16>(text)? {
            0 => Ok(vec![0]),
            year @ 1901..=2155 => Ok(vec![(year - 1900) as u8]),
            _ => Err(wrong("0 or a year from 1901 to 2155")),
        },
        ColumnKind::Date
        | ColumnKind::DateTime { .. }
        | ColumnKind::OldDateTime
        | ColumnKind::Timestamp { .. }
        | ColumnKind::OldTimestamp => {
            let moment = moment(text).ok_or_else(|| wrong("YYYY-MM-DD or YYYY-MM-DD hh:mm:ss"))?;
            Ok(put(moment, column.kind))
        }
        ColumnKind::Time { .. } | ColumnKind::OldTime => {
            let time = time(text).ok_or_else(|| wrong("hh:mm:ss, at most 838:59:59"))?;
            Ok(put_time(time, column.kind))
        }
        ColumnKind::Enum { size } => {
            let number = member(column, text).ok_or_else(|| wrong("a member, or the number of one"))?;
            Ok(number.to_le_bytes().into_iter().take(size.into()).collect())
        }
        ColumnKind::Set { size } => {
            let mut bits = 0;
            for name in text.split(',').filter(|name| !name.is_empty()) {
                let number = member(column, name).ok_or_else(|| wrong("members, or the numbers of some"))?;
                bits |= 1_u64.checked_shl(number.saturating_sub(1) as u32).unwrap_or(0);
            }
            Ok(bits.to_le_bytes().into_iter().take(size.into()).collect())
        }
        ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
            string(column, text)
        }
        ColumnKind::Json { .. } => {
            let mut bytes = Vec::new();
            JsonDocument::put_text(text.as_bytes(), &mut bytes).map_err(|error| wrong(&error.to_string()))?;
            Ok(bytes)
        }
        ColumnKind::Null
        | ColumnKind::Geometry { .. }
        | ColumnKind::Vector { .. }
        | ColumnKind::TypedArray => {
            Err(format!("it is {}, expected another mask than fixed", column.column_type))
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("the value is {text:?}, expected a number"))
}

fn integer(column: &ColumnSchema, text: &str) -> Result<Vec<u8>, String> {
    let value: i128 = number(text)?;
    let bits = column.kind.integer_bits();
    let (least, most) = match column.unsigned {
        Some(true) => (0, (1_i128 << bits) - 1),
        Some(false) => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        // Both read it alike.
        None => (0, (1_i128 << (bits - 1)) - 1),
    };
    if !(least..=most).contains(&value) {
        return Err(format!("the value is {text:?}, expected a number from {least} to {most}"));
    }
    Ok(value.to_le_bytes().into_iter().take(bits as usize / 8).collect())
}

fn string(column: &ColumnSchema, text: &str) -> Result<Vec<u8>, String> {
    let charset = column.charset();
    let bytes = match charset {
        Some(Charset::Utf8mb4 | Charset::Binary) => text.as_bytes().to_vec(),
        _ if text.is_ascii() => in_charset(charset, text.as_bytes()),
        _ => return Err(format!("the value is {text:?}, expected ASCII, which every character set has")),
    };
    let is_short = match is_binary(column) {
        true => bytes.len() <= size_max(column),
        false => text.chars().count() <= letters_max(column) && bytes.len() <= size_max(column),
    };
    let is_short =
        is_short || matches!(column.kind, ColumnKind::Blob { .. }) && bytes.len() <= size_max(column);
    match is_short {
        true => Ok(bytes),
        false => Err(format!("the value has {} characters, more than the column", text.chars().count())),
    }
}

/// The number of a member, by its name or as the number itself.
fn member(column: &ColumnSchema, text: &str) -> Option<u64> {
    let members = column.members.as_deref();
    let by_name = members
        .and_then(|members| members.iter().position(|member| member.as_ref() == text.as_bytes()))
        .map(|place| place as u64 + 1);
    let most = members.map_or(u64::from(u16::MAX), |members| members.len() as u64);
    by_name.or_else(|| text.parse().ok().filter(|number| *number <= most))
}

/// Two digits or more, within a bound.
fn part(text: &str, most: u32) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().filter(|number| *number <= most)
}

/// `hh:mm:ss` as seconds.
fn clock(text: &str, hours_max: u32) -> Option<u32> {
    let mut parts = text.split(':');
    let [hours, minutes, seconds] =
        [part(parts.next()?, hours_max)?, part(parts.next()?, 59)?, part(parts.next()?, 59)?];
    parts.next().is_none().then_some(hours * 3600 + minutes * 60 + seconds)
}

fn moment(text: &str) -> Option<Moment> {
    let (date, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), "00:00:00"));
    let mut parts = date.split('-');
    let [year, month, day] = [part(parts.next()?, 9999)?, part(parts.next()?, 12)?, part(parts.next()?, 31)?];
    let seconds = clock(time, 23)?;
    if parts.next().is_some() {
        return None;
    }
    if (year, month, day, seconds) == (0, 0, 0, 0) {
        return Some(Moment { date: None, seconds: 0, microseconds: 0 });
    }
    let date = CalendarDate::new(year as u16, month as u8, day as u8)?;
    Some(Moment { date: Some(date), seconds, microseconds: 0 })
}

fn time(text: &str) -> Option<Duration> {
    let (is_negative, unsigned) =
        text.trim().strip_prefix('-').map_or((false, text.trim()), |rest| (true, rest));
    let seconds = clock(unsigned, 838)?;
    Some(Duration { is_negative: is_negative && seconds > 0, seconds: seconds.into(), microseconds: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::column;

    #[test]
    fn values_are_written_as_columns_hold_them() {
        for (column_type, metadata, optional, text, expected) in [
            (1, &[][..], &[1, 1, 0][..], "-1", &[0xff][..]),
            (3, &[], &[1, 1, 0x80], "4294967295", &[0xff; 4]),
            (246, &[4, 2], &[], "12.34", &[0x8c, 0x22]),
            (5, &[8], &[], "-0.25", &(-0.25_f64).to_le_bytes()),
            (16, &[4, 1], &[], "2730", &[0x0a, 0xaa]),
            (13, &[], &[], "2155", &[255]),
            (10, &[], &[], "2020-02-29", &[0x5d, 0xc8, 0x0f]),
            (18, &[0], &[], "0000-00-00", &[0x80, 0, 0, 0, 0]),
            (17, &[0], &[], "1970-01-01 00:00:02", &[0, 0, 0, 2]),
            (19, &[0], &[], "-00:00:01", &[0x7f, 0xff, 0xff]),
            (254, &[247, 1], &[6, 5, 2, 1, b'a', 1, b'b'], "b", &[2]),
            (254, &[248, 1], &[5, 5, 2, 1, b'a', 1, b'b'], "b,a", &[3]),
            (15, &[40, 0], &[2, 1, 45], "née", "née".as_bytes()),
            (245, &[4], &[], "true", &[4, 1]),
        ] {
            let column = column(column_type, metadata, optional);
            assert_eq!(bytes(&column, text).as_deref(), Ok(expected), "{text}");
        }
        for (column_type, metadata, optional, text) in [
            (1, &[][..], &[1, 1, 0x80][..], "-1"),
            (246, &[4, 2], &[], "123.4"),
            (246, &[4, 2], &[], "1x.4"),
            (10, &[], &[], "2021-02-29"),
            (19, &[0], &[], "839:00:00"),
            (254, &[247, 1], &[6, 5, 2, 1, b'a', 1, b'b'], "c"),
            (15, &[8, 0], &[2, 1, 45], "abc"),
            (15, &[80, 0], &[2, 1, 8], "née"),
            (245, &[4], &[], "tru"),
            (255, &[4], &[], "POINT(1 1)"),
        ] {
            assert!(bytes(&column(column_type, metadata, optional), text).is_err(), "{text}");
        }
    }
}
