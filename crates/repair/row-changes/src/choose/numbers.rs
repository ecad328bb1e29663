//! Numbers in a condition beside years, dates and texts: what a server makes of them, where that is certain.

use binlogz_binlog::row::{ColumnClass, ColumnKind};
use sqlparser::ast::Expr;

use super::literals::is_number;
use super::proof::Doubt;
use super::scalar::{Scalar, is_date};

/// Whether a date or a time is true by itself: as a number. Fractions of a second alone are doubtful.
pub(super) fn is_not_zero(clock: &str) -> Result<bool, Doubt> {
    let whole = clock.split('.').next().unwrap_or_default();
    match has_number(whole) == has_number(clock) {
        true => Ok(has_number(clock)),
        false => Err(Doubt::Clock),
    }
}

/// Whether a text has a digit other than 0.
fn has_number(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Whether the server may take something else than a column or a number for a year in short.
pub(super) fn may_be_year(expr: &Expr, value: &Scalar<'_>) -> bool {
    match value {
        Scalar::Number(text) => !is_number(expr) && text != "0",
        Scalar::Double(_) => !is_number(expr),
        Scalar::Text { text, .. } => text.bytes().any(|byte| byte.is_ascii_digit()),
        _ => true,
    }
}

/// The year that a YEAR stores for a number; as it is, if it stores none. `None`: that is not certain.
pub(super) fn year_of(value: Scalar<'_>) -> Option<Scalar<'_>> {
    let number = match &value {
        Scalar::Number(text) => text.parse::<f64>().ok()?,
        Scalar::Double(number) if number.fract() == 0.0 => *number,
        Scalar::Null => return Some(value),
        _ => return None,
    };
    if number < 0.0 && number.fract() != 0.0 {
        return None;
    }
    let year = match number.round() as i64 {
        year @ 0 => year,
        year @ 1..70 => year + 2000,
        year @ 70..100 => year + 1900,
        _ if number.fract() == 0.0 => return Some(value),
        _ => return None,
    };
    Some(Scalar::Number(year.to_string().into()))
}

/// Whether a type's values are numbers.
pub(super) fn is_numeric(kind: ColumnKind) -> bool {
    use ColumnClass as Class;
    matches!(kind.class(), Class::Integer | Class::Decimal | Class::Float | Class::Year | Class::Bit)
}

/// The largest number that is compared with a time as a number, whether or not the server takes it for one.
const TIME_NUMBER_MAX: f64 = 59.0;
/// The largest that is no date: 101 is 2000-01-01.
const NO_DATE_MAX: f64 = 100.0;

/// Whether a number may be a date or a time in short, as 260102 and 100 are, or be rounded, as 0.1 is beside a TIME.
pub(super) fn may_be_clock(number: &Scalar<'_>, clock: &Scalar<'_>) -> bool {
    if !matches!(number, Scalar::Number(_) | Scalar::Double(_)) {
        return false;
    }
    let number = number.double();
    match clock {
        Scalar::Clock(text) => {
            let has_date = is_date(text) && !text.starts_with("0000");
            !number.is_some_and(|number| is_time_number(number) || has_date && is_no_date(number))
        }
        Scalar::Moment(0, _) => !number.is_some_and(is_time_number),
        Scalar::Moment(..) => !number.is_some_and(is_no_date),
        Scalar::Null
        | Scalar::Number(_)
        | Scalar::Double(_)
        | Scalar::Text { .. }
        | Scalar::Bytes(_)
        | Scalar::Member(..) => false,
    }
}

fn is_time_number(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= TIME_NUMBER_MAX
}

fn is_no_date(number: f64) -> bool {
    number.abs() <= NO_DATE_MAX
}

/// Digits of a FLOAT that the server writes.
const FLOAT_DIGITS: usize = 6;

/// The text that the server makes of a double or a FLOAT; `None`: that is not certain.
pub(super) fn shown_double(number: f64, is_float: bool) -> Option<String> {
    let text = if is_float { format!("{:e}", number as f32) } else { format!("{number:e}") };
    let digits = text.split('e').next()?.bytes().filter(u8::is_ascii_digit).count();
    match number.abs() {
        _ if is_float && digits > FLOAT_DIGITS => None,
        1e10..1e14 if is_float => None,
        0.0 | 1e-4..1e15 if is_float => Some((number as f32).to_string()),
        0.0 | 1e-4..1e15 => Some(number.to_string()),
        1e15.. => Some(text),
        _ => None,
    }
}
