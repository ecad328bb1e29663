//! Rows as bytes.
//!
//! ```text
//! as text:            for each column LEI length and text, or fb for NULL
//! prepared statement  00 · NULLs, a bit for each column from the third bit on · the values that are not NULL:
//!                     integers, FLOAT and DOUBLE  1, 2, 4 or 8 bytes, little-endian
//!                     DATE                        04 · year 2 · month · day
//!                     DATETIME, TIMESTAMP         07 or 0b · year 2 · month · day · hour · minute · second [· microseconds 4]
//!                     others                      LEI length and text
//! ```

use std::io::Write;

use binlogz_binlog::put::PutFields;
use binlogz_query_server::StatementRefusal;

use super::cells::MysqlCells;
use super::dates::{DateParts, TimeParts, moment};
use super::kinds::IntegerWidth;
use crate::errors::refused;

/// ER_DATETIME_FUNCTION_OVERFLOW.
const NO_DATE: u16 = 1441;
const NULL: u8 = 0xfb;
/// Before the first column's bit of a prepared statement's row.
const NULL_BITS_BEFORE: usize = 2;
/// A DOUBLE at least so large is written with an exponent.
const WHOLE_MAX: f64 = 1e15;
const FRACTION_MIN: f64 = 1e-5;

/// The form of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowForm {
    Text,
    Binary,
}

/// Appends a row.
pub(super) fn put_row(
    cells: &[MysqlCells],
    row: usize,
    form: RowForm,
    out: &mut Vec<u8>,
) -> Result<(), StatementRefusal> {
    match form {
        RowForm::Text => {
            let mut text = Vec::new();
            for column in cells {
                if column.is_null(row) {
                    out.put_u8(NULL);
                    continue;
                }
                text.clear();
                put_text(column, row, &mut text)?;
                put_sized(&text, out);
            }
        }
        RowForm::Binary => {
            out.put_u8(0);
            let mut bits = vec![0_u8; (cells.len() + NULL_BITS_BEFORE).div_ceil(8)];
            for (place, column) in cells.iter().enumerate() {
                let bit = place + NULL_BITS_BEFORE;
                if column.is_null(row)
                    && let Some(byte) = bits.get_mut(bit / 8)
                {
                    *byte |= 1 << (bit % 8);
                }
            }
            out.put(&bits);
            for column in cells.iter().filter(|column| !column.is_null(row)) {
                put_binary(column, row, out)?;
            }
        }
    }
    Ok(())
}

fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.put_lei(bytes.len() as u64);
    out.put(bytes);
}

fn put_text(column: &MysqlCells, row: usize, out: &mut Vec<u8>) -> Result<(), StatementRefusal> {
    // Writing to a vector doesn't fail.
    let _ = match column {
        MysqlCells::Null => Ok(()),
        MysqlCells::Signed(values, _) => write!(out, "{}", values.value(row)),
        MysqlCells::Unsigned(values, _) => write!(out, "{}", values.value(row)),
        MysqlCells::Float(values) => match with_exponent(f64::from(values.value(row))) {
            true => write!(out, "{:e}", values.value(row)),
            false => write!(out, "{}", values.value(row)),
        },
        MysqlCells::Double(values) => match with_exponent(values.value(row)) {
            true => write!(out, "{:e}", values.value(row)),
            false => write!(out, "{}", values.value(row)),
        },
        MysqlCells::Date(values) => {
            let DateParts { year, month, day } = date(i64::from(values.value(row)))?;
            write!(out, "{year:04}-{month:02}-{day:02}")
        }
        MysqlCells::Moment(values, digits) => {
            let (date, time) = checked(moment(values.value(row)))?;
            let DateParts { year, month, day } = date;
            let TimeParts { hour, minute, second, micros } = time;
            let _ = write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
            if *digits > 0 {
                let _ = write!(out, ".{micros:06}");
                out.truncate(out.len() - usize::from(6_u8.saturating_sub(*digits)));
            }
            Ok(())
        }
        MysqlCells::Text(values) => out.write_all(values.value(row).as_bytes()),
        MysqlCells::Bytes(values) => out.write_all(values.value(row)),
        MysqlCells::Made(values) => {
            out.write_all(values.get(row).and_then(Option::as_deref).unwrap_or_default().as_bytes())
        }
    };
    Ok(())
}

fn put_binary(column: &MysqlCells, row: usize, out: &mut Vec<u8>) -> Result<(), StatementRefusal> {
    match column {
        MysqlCells::Signed(values, width) => put_low_bytes(values.value(row).to_le_bytes(), *width, out),
        MysqlCells::Unsigned(values, width) => put_low_bytes(values.value(row).to_le_bytes(), *width, out),
        MysqlCells::Float(values) => out.put(&values.value(row).to_le_bytes()),
        MysqlCells::Double(values) => out.put(&values.value(row).to_le_bytes()),
        MysqlCells::Date(values) => {
            out.put_u8(4);
            put_date(date(i64::from(values.value(row)))?, out);
        }
        MysqlCells::Moment(values, _) => {
            let (date, TimeParts { hour, minute, second, micros }) = checked(moment(values.value(row)))?;
            out.put_u8(if micros == 0 { 7 } else { 11 });
            put_date(date, out);
            out.put(&[hour, minute, second]);
            if micros != 0 {
                out.put_u32(micros);
            }
        }
        MysqlCells::Null | MysqlCells::Text(_) | MysqlCells::Bytes(_) | MysqlCells::Made(_) => {
            let mut text = Vec::new();
            put_text(column, row, &mut text)?;
            put_sized(&text, out);
        }
    }
    Ok(())
}

/// The low bytes of a number that fits them.
fn put_low_bytes(number: [u8; 8], width: IntegerWidth, out: &mut Vec<u8>) {
    let [one, two, three, four, ..] = number;
    match width {
        IntegerWidth::One => out.put_u8(one),
        IntegerWidth::Two => out.put(&[one, two]),
        IntegerWidth::Four => out.put(&[one, two, three, four]),
        IntegerWidth::Eight => out.put(&number),
    }
}

fn put_date(DateParts { year, month, day }: DateParts, out: &mut Vec<u8>) {
    out.put_u16(year);
    out.put(&[month, day]);
}

fn date(days: i64) -> Result<DateParts, StatementRefusal> {
    checked(DateParts::of_days(days))
}

fn checked<T>(date: Option<T>) -> Result<T, StatementRefusal> {
    date.ok_or_else(|| refused(NO_DATE, "Datetime function: datetime field overflow"))
}

fn with_exponent(value: f64) -> bool {
    value != 0.0 && !(FRACTION_MIN..WHOLE_MAX).contains(&value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_numbers_have_an_exponent() {
        for (value, is) in
            [(0.0, false), (1e14, false), (1e15, true), (-1e20, true), (1e-5, false), (9e-6, true)]
        {
            assert_eq!(with_exponent(value), is, "{value}");
        }
    }
}
