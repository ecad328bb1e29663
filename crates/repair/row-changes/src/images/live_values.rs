//! A column's value as its server has it now, in the bytes that a row image has.
//!
//! ```text
//! integers, YEAR, DECIMAL, DOUBLE, dates and times    as the server writes them
//! ENUM, SET, BIT                                      as numbers
//! TIMESTAMP                                           seconds since 1970
//! texts, bytes                                        hexadecimal, in the column's character set
//! ```
//!
//! Not asked for are generated columns, FLOAT, of which servers show six digits, JSON, whose types a text doesn't tell, and types that
//! are rare.

use binlogz_binlog::row::{ColumnClass, ColumnKind, ColumnSchema};
use binlogz_schema::ColumnFacts;

use crate::sql::defaults::{DefaultCell, is_binary, of_bits, of_text};
use crate::text_values::{number_of, timestamp};

/// The expression that asks for a column, whose quoted name is given. `None`: it isn't asked for.
pub(super) fn live_expression(column: &ColumnSchema, facts: &ColumnFacts, name: &str) -> Option<String> {
    use ColumnClass as Class;
    if facts.is_generated {
        return None;
    }
    match column.kind.class() {
        Class::Integer | Class::Year | Class::Decimal | Class::Date => Some(name.to_owned()),
        Class::Time(Some(_)) | Class::DateTime(Some(_)) => Some(name.to_owned()),
        Class::Float => (column.kind == ColumnKind::Double).then(|| name.to_owned()),
        Class::Timestamp(Some(_)) => Some(format!("UNIX_TIMESTAMP({name})")),
        Class::Member | Class::Bit => Some(format!("{name} + 0")),
        Class::String => Some(format!("HEX({name})")),
        Class::Time(None) | Class::DateTime(None) | Class::Timestamp(None) => None,
        Class::Json | Class::Geometry | Class::Vector | Class::Hidden => None,
    }
}

/// The value that the server's answer to [`live_expression`] tells; `None`: not for certain.
pub(super) fn live_cell(
    column: &ColumnSchema,
    facts: &ColumnFacts,
    answer: Option<&[u8]>,
) -> Option<DefaultCell> {
    use ColumnKind as Kind;
    let Some(answer) = answer else { return Some(DefaultCell::Null) };
    let text = std::str::from_utf8(answer).ok()?;
    let bytes = match column.kind {
        Kind::Enum { size } | Kind::Set { size } => number_of(text.parse().ok()?, size.into())?,
        Kind::Bit { .. } => of_bits(column, text.parse().ok()?)?,
        Kind::Timestamp { fraction_digits } => timestamp(text, fraction_digits)?,
        Kind::Char { .. } if is_binary(column, facts) => {
            let mut bytes = unhex(text)?;
            // The log has none of the zeros at its end.
            bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
            bytes
        }
        Kind::Char { .. } | Kind::Varchar { .. } | Kind::Blob { .. } => unhex(text)?,
        Kind::TinyInt { .. }
        | Kind::SmallInt { .. }
        | Kind::MediumInt { .. }
        | Kind::Int { .. }
        | Kind::BigInt { .. }
        | Kind::Decimal(_)
        | Kind::Double
        | Kind::Year
        | Kind::Date
        | Kind::Time { .. }
        | Kind::DateTime { .. } => of_text(column, facts, text, false)?,
        // They aren't asked for.
        Kind::Null | Kind::Float | Kind::OldTime | Kind::OldDateTime | Kind::OldTimestamp => return None,
        Kind::Json { .. } | Kind::Geometry { .. } | Kind::Vector { .. } | Kind::TypedArray => return None,
    };
    Some(DefaultCell::Value(bytes))
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_bytes_are_those_of_an_image() {
        assert_eq!(timestamp("1795309323.25", 2), Some(vec![0x6b, 0x02, 0x3f, 0x0b, 25]));
        assert_eq!(timestamp("1795309323.250", 3), Some(vec![0x6b, 0x02, 0x3f, 0x0b, 0x09, 0xc4]));
        assert_eq!(timestamp("0", 0), Some(vec![0; 4]));
        assert_eq!((timestamp("-1", 0), timestamp("4294967296", 0), timestamp("1.x", 1)), (None, None, None));
        assert_eq!(unhex("00fF"), Some(vec![0, 255]));
        assert_eq!((unhex("0"), unhex("0g")), (None, None));
    }
}
