//! Constant defaults as a row image has them: what an INSERT with `binlog_row_image` MINIMAL or NOBLOB leaves out.
//!
//! A server leaves out of an INSERT's image the columns that the statement doesn't name, unless their values come from an
//! expression, the clock, the next number or a trigger: it logs these. (Tried on 8.0.33 and 9.7.4: `DEFAULT (1 + 1)`,
//! CURRENT_TIMESTAMP, AUTO_INCREMENT, generated columns, columns that a BEFORE INSERT trigger sets, whether it does so for this row or not,
//! are in the image; `DEFAULT` in a list of values is a value that was named.) So the value of a column that is left out is
//!
//! ```text
//! definition has       value
//! DEFAULT constant     the constant, converted once when the table was made
//! DEFAULT NULL         NULL
//! no default           NULL where the column can be NULL; otherwise 0, an empty text, the first member of an ENUM: the
//!                      session wasn't strict, or the statement INSERT IGNORE
//! ```
//!
//! A constant counts only in the spelling in which SHOW CREATE TABLE writes it, or one that can't mean anything else. Not known
//! are defaults
//!
//! - of TIMESTAMP, a moment in the zone of the session that made the table, or of the one that shows it,
//! - of FLOAT and `DOUBLE(m,d)`, other than 0: servers show six digits of a FLOAT,
//! - that would be rounded or cut, texts that are not the same bytes in the column's character set as in UTF-8.

use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::temporal::big_endian;
use binlogz_binlog::row::{CellContent, ColumnKind, ColumnSchema, TableSchema};
use binlogz_schema::{ColumnDefault, ColumnFacts, DefinedTable};

use crate::sql::literal::same_text;
use crate::text_values::{
    date, datetime, decimal, integer, is_digits, is_zero, number_of, time, timestamp, year,
};

/// The value of a column that an image lacks: of an INSERT the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefaultCell {
    Null,
    Value(Vec<u8>),
}

impl DefaultCell {
    pub(crate) fn content(&self) -> CellContent<'_> {
        match self {
            DefaultCell::Null => CellContent::Null,
            DefaultCell::Value(bytes) => CellContent::Value(bytes),
        }
    }
}

/// The defaults of a table's columns; `None`: not known.
pub(crate) fn default_cells(schema: &TableSchema, told: Option<&DefinedTable>) -> Vec<Option<DefaultCell>> {
    let told = told.filter(|told| told.unfit(schema).is_none());
    let columns = told.map_or(&[][..], |told| &told.columns);
    let cell = |(column, told): (&ColumnSchema, &binlogz_schema::DefinedColumn)| {
        default_cell(column, told.facts.as_ref()?)
    };
    let mut cells: Vec<_> = schema.columns().iter().zip(columns).map(cell).collect();
    cells.resize(schema.columns().len(), None);
    cells
}

fn default_cell(column: &ColumnSchema, facts: &ColumnFacts) -> Option<DefaultCell> {
    if facts.is_generated {
        return None;
    }
    let bytes = match &facts.default {
        ColumnDefault::Unknown => return None,
        ColumnDefault::Absent | ColumnDefault::Null if column.nullable => return Some(DefaultCell::Null),
        ColumnDefault::Null => return None,
        ColumnDefault::Absent => implicit(column)?,
        ColumnDefault::Text(text) => of_text(column, facts, text, false)?,
        ColumnDefault::Number(text) => of_text(column, facts, text, true)?,
        ColumnDefault::Bits(digits) => {
            of_bits(column, u64::from_str_radix(digits, 2).ok().filter(|_| is_digits(digits))?)?
        }
        ColumnDefault::Hex(digits) => of_hex(column, facts, digits)?,
    };
    Some(DefaultCell::Value(bytes))
}

/// The value of a column that can't be NULL and has no default.
fn implicit(column: &ColumnSchema) -> Option<Vec<u8>> {
    use ColumnKind as Kind;
    match column.kind {
        Kind::TinyInt { .. } | Kind::Year => Some(vec![0]),
        Kind::SmallInt { .. } => Some(vec![0; 2]),
        Kind::MediumInt { .. } => Some(vec![0; 3]),
        Kind::Int { .. } | Kind::Float => Some(vec![0; 4]),
        Kind::BigInt { .. } | Kind::Double => Some(vec![0; 8]),
        Kind::Decimal(format) => decimal("0", format),
        Kind::Bit { .. } => of_bits(column, 0),
        Kind::Date => date("0000-00-00"),
        Kind::Time { fraction_digits } => time("00:00:00", fraction_digits),
        Kind::DateTime { fraction_digits } => datetime("0000-00-00", fraction_digits),
        Kind::Timestamp { fraction_digits } => timestamp("0", fraction_digits),
        Kind::Enum { size } => number_of(1, size.into()),
        Kind::Set { size } => number_of(0, size.into()),
        Kind::Char { .. } | Kind::Varchar { .. } | Kind::Blob { .. } => Some(Vec::new()),
        Kind::Null
        | Kind::OldTime
        | Kind::OldDateTime
        | Kind::OldTimestamp
        | Kind::Json { .. }
        | Kind::Geometry { .. }
        | Kind::Vector { .. }
        | Kind::TypedArray => None,
    }
}

pub(crate) fn of_text(
    column: &ColumnSchema,
    facts: &ColumnFacts,
    text: &str,
    is_number: bool,
) -> Option<Vec<u8>> {
    use ColumnKind as Kind;
    let is_unsigned = column.unsigned.unwrap_or(facts.is_unsigned);
    match column.kind {
        Kind::TinyInt { .. } => integer(text, 8, is_unsigned),
        Kind::SmallInt { .. } => integer(text, 16, is_unsigned),
        Kind::MediumInt { .. } => integer(text, 24, is_unsigned),
        Kind::Int { .. } => integer(text, 32, is_unsigned),
        Kind::BigInt { .. } => integer(text, 64, is_unsigned),
        Kind::Decimal(format) => decimal(text, format),
        Kind::Float => is_zero(text).then(|| vec![0; 4]),
        Kind::Double if is_zero(text) => Some(vec![0; 8]),
        Kind::Double if facts.parameters.is_empty() && !facts.is_unsigned => double(text),
        Kind::Double => None,
        Kind::Bit { .. } if is_number && is_digits(text) => of_bits(column, text.parse().ok()?),
        Kind::Bit { .. } => None,
        Kind::Year => year(text),
        // What a number means as a moment isn't obvious.
        Kind::Date | Kind::Time { .. } | Kind::DateTime { .. } | Kind::Timestamp { .. } if is_number => None,
        Kind::Date => date(text),
        Kind::Time { fraction_digits } => time(text, fraction_digits),
        Kind::DateTime { fraction_digits } => datetime(text, fraction_digits),
        Kind::Timestamp { fraction_digits } => {
            let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'-' | b' ' | b':' | b'.'));
            timestamp("0", fraction_digits).filter(|_| is_zero && text.starts_with("0000-00-00"))
        }
        Kind::Enum { .. } | Kind::Set { .. } if is_number => None,
        Kind::Enum { size } => {
            let place = facts.members.iter().position(|member| member == text)?;
            number_of(place as u64 + 1, size.into())
        }
        Kind::Set { size } => {
            let mut bits = 0;
            for member in text.split(',').filter(|_| !text.is_empty()) {
                let place = facts.members.iter().position(|own| own == member)?;
                bits |= 1_u64.checked_shl(u32::try_from(place).ok()?)?;
            }
            number_of(bits, size.into())
        }
        Kind::Char { .. } | Kind::Varchar { .. } | Kind::Blob { .. } => string(column, facts, text),
        Kind::Null
        | Kind::OldTime
        | Kind::OldDateTime
        | Kind::OldTimestamp
        | Kind::Json { .. }
        | Kind::Geometry { .. }
        | Kind::Vector { .. }
        | Kind::TypedArray => None,
    }
}

fn double(text: &str) -> Option<Vec<u8>> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'));
    let number: f64 = text.parse().ok().filter(|_| is_plain)?;
    // The sign of a zero.
    (number.is_finite() && number != 0.0).then(|| number.to_le_bytes().to_vec())
}

pub(crate) fn of_bits(column: &ColumnSchema, value: u64) -> Option<Vec<u8>> {
    let ColumnKind::Bit { bits } = column.kind else { return None };
    if bits < 64 && value >> bits != 0 {
        return None;
    }
    let size = usize::from(bits).div_ceil(8);
    Some(big_endian(value, size))
}

fn of_hex(column: &ColumnSchema, facts: &ColumnFacts, digits: &str) -> Option<Vec<u8>> {
    if let ColumnKind::Bit { .. } = column.kind {
        return of_bits(column, u64::from_str_radix(digits, 16).ok()?);
    }
    if !is_binary(column, facts) {
        return None;
    }
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    fitting(column, bytes.filter(|_| rest.is_empty())?, 0)
}

pub(crate) fn is_binary(column: &ColumnSchema, facts: &ColumnFacts) -> bool {
    match column.charset() {
        Some(charset) => charset == Charset::Binary,
        None => column.collation.is_none() && facts.is_binary(),
    }
}

fn string(column: &ColumnSchema, facts: &ColumnFacts, text: &str) -> Option<Vec<u8>> {
    if facts.is_logged_as_bytes() {
        return None;
    }
    if is_binary(column, facts) {
        return fitting(column, text.as_bytes().to_vec(), 0).filter(|_| text.is_ascii());
    }
    let is_same = text.is_empty() || same_text(column.charset(), text.as_bytes()).is_some();
    fitting(column, text.as_bytes().to_vec(), b' ').filter(|_| is_same)
}

/// A string that its column holds. The log has none of the padding at the end of a CHAR or BINARY.
fn fitting(column: &ColumnSchema, mut bytes: Vec<u8>, padding: u8) -> Option<Vec<u8>> {
    let length_max = match column.kind {
        ColumnKind::Char { length_max } => {
            while bytes.last() == Some(&padding) {
                bytes.pop();
            }
            usize::from(length_max)
        }
        ColumnKind::Varchar { length_max } => usize::from(length_max),
        ColumnKind::Blob { .. } => usize::from(u16::MAX),
        _ => return None,
    };
    (bytes.len() <= length_max).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::event::{
        Bitmap, OptionalMetadata, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };
    use binlogz_schema::SchemaFile;

    use super::*;

    /// A column of this type in a table map, and its definition.
    fn cell(column_type: u8, metadata: &[u8], nullable: bool, definition: &str) -> Option<DefaultCell> {
        let nulls = [u8::from(nullable)];
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"s",
            table: b"t",
            column_types: &[column_type],
            column_metadata: metadata,
            null_bitmap: Bitmap(&nulls),
            optional_metadata: OptionalMetadata(b""),
        };
        let schema = TableSchema::new(&map, ServerFamily::Mysql).unwrap();
        let file = SchemaFile::parse(&format!("CREATE TABLE t (a {definition})")).unwrap();
        default_cells(&schema, file.table(b"s", b"t")).remove(0)
    }

    #[test]
    fn constants_are_the_bytes_that_a_row_has() {
        let value = |bytes: &[u8]| Some(DefaultCell::Value(bytes.to_vec()));
        for (column_type, metadata, definition, expected) in [
            (3, &[][..], "INT DEFAULT NULL", Some(DefaultCell::Null)),
            (3, &[], "INT", Some(DefaultCell::Null)),
            (3, &[], "int DEFAULT '-5'", value(&[0xfb, 0xff, 0xff, 0xff])),
            (3, &[], "INT UNSIGNED DEFAULT 4294967295", value(&[0xff; 4])),
            (3, &[], "INT DEFAULT 4294967295", None),
            (3, &[], "INT DEFAULT 1.5", None),
            (3, &[], "INT DEFAULT (5)", None),
            (9, &[], "MEDIUMINT DEFAULT -1", value(&[0xff; 3])),
            (8, &[], "bigint unsigned DEFAULT '18446744073709551615'", value(&[0xff; 8])),
            (246, &[4, 2], "DECIMAL(4,2) DEFAULT 12.34", value(&[0x8c, 0x22])),
            (246, &[4, 2], "DECIMAL(4,2) DEFAULT -12.34", value(&[0x73, 0xdd])),
            (246, &[4, 2], "DECIMAL(4,2) DEFAULT 0", value(&[0x80, 0])),
            (246, &[4, 2], "DECIMAL(4,2) DEFAULT 1.005", None),
            (
                246,
                &[20, 10],
                "DECIMAL(20,10) DEFAULT '1234567890.0000000001'",
                value(&[0x81, 0x0d, 0xfb, 0x38, 0xd2, 0, 0, 0, 0, 1]),
            ),
            (4, &[4], "FLOAT DEFAULT '0.00'", value(&[0; 4])),
            (4, &[4], "FLOAT DEFAULT '1.5'", None),
            (5, &[8], "DOUBLE DEFAULT '1.5'", value(&1.5_f64.to_le_bytes())),
            (5, &[8], "DOUBLE(7,2) DEFAULT '1.5'", None),
            (5, &[8], "DOUBLE DEFAULT -0", None),
            (16, &[4, 0], "BIT(4) DEFAULT b'101'", value(&[5])),
            (16, &[4, 0], "BIT(4) DEFAULT 5", value(&[5])),
            (16, &[4, 0], "BIT(4) DEFAULT 16", None),
            (13, &[], "YEAR DEFAULT '2026'", value(&[126])),
            (13, &[], "YEAR DEFAULT 26", None),
            (10, &[], "DATE DEFAULT '2026-11-28'", value(&[0x7c, 0xd5, 0x0f])),
            (10, &[], "DATE DEFAULT '2026-1-2'", None),
            (19, &[3], "TIME(3) DEFAULT '-10:00:00.500'", value(&[0x7f, 0x5f, 0xff, 0xec, 0x78])),
            (18, &[0], "DATETIME DEFAULT '2026-01-02 03:04:05'", value(&[0x99, 0xb8, 0xc4, 0x31, 0x05])),
            (18, &[2], "DATETIME(2) DEFAULT '2026-01-02'", value(&[0x99, 0xb8, 0xc4, 0, 0, 0])),
            (18, &[1], "DATETIME(1) DEFAULT '2026-01-02 00:00:00.25'", None),
            (17, &[0], "TIMESTAMP NULL DEFAULT '2026-01-02 03:04:05'", None),
            (17, &[0], "TIMESTAMP NULL DEFAULT '0000-00-00 00:00:00'", value(&[0; 4])),
            (254, &[247, 1], "ENUM('a','b') DEFAULT 'b'", value(&[2])),
            (254, &[247, 1], "ENUM('a','b') DEFAULT 'B'", None),
            (254, &[248, 1], "SET('a','b','c') DEFAULT 'a,c'", value(&[5])),
            (254, &[248, 1], "SET('a','b') DEFAULT ''", value(&[0])),
            // Its character set isn't known.
            (15, &[20, 0], "VARCHAR(5) DEFAULT 'a'", None),
            (15, &[20, 0], "VARCHAR(5) DEFAULT ''", value(b"")),
            (15, &[4, 0], "VARBINARY(4) DEFAULT 0x00FF00", value(&[0, 0xff, 0])),
            (254, &[254, 4], "BINARY(4) DEFAULT 'ab\\0\\0'", value(b"ab")),
            (245, &[4], "JSON", Some(DefaultCell::Null)),
        ] {
            assert_eq!(cell(column_type, metadata, true, definition), expected, "{definition}");
        }
    }

    #[test]
    fn a_column_without_a_default_that_cant_be_null_has_that_of_its_type() {
        let value = |bytes: &[u8]| Some(DefaultCell::Value(bytes.to_vec()));
        for (column_type, metadata, definition, expected) in [
            (3, &[][..], "INT NOT NULL", value(&[0; 4])),
            (246, &[4, 2], "DECIMAL(4,2) NOT NULL", value(&[0x80, 0])),
            (254, &[247, 1], "ENUM('a','b') NOT NULL", value(&[1])),
            (18, &[0], "DATETIME NOT NULL", value(&[0x80, 0, 0, 0, 0])),
            (19, &[0], "TIME NOT NULL", value(&[0x80, 0, 0])),
            (15, &[20, 0], "VARCHAR(5) NOT NULL", value(b"")),
            (245, &[4], "JSON NOT NULL", None),
        ] {
            assert_eq!(cell(column_type, metadata, false, definition), expected, "{definition}");
        }
    }
}
