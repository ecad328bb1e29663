//! MySQL's type of each Arrow type, and the definition of a column that has it.
//!
//! ```text
//! Boolean, Int8          TINYINT         Utf8, Interval, Duration, Time   VARCHAR in utf8mb4
//! Int16, Int32, Int64    SMALLINT …      Binary                           BLOB
//! unsigned               UNSIGNED        Struct, List, Map                JSON
//! Decimal                DECIMAL         Date                             DATE
//! Float32, Float64       FLOAT, DOUBLE   Timestamp, with a zone           DATETIME, TIMESTAMP; (6) unless whole
//! ```

use binlogz_wire::result_set::ResultColumn;
use datafusion::arrow::datatypes::{DataType, TimeUnit};

const UNSIGNED: u16 = 0x20;
const BINARY: u16 = 0x80;
const BLOB: u16 = 0x10;
/// utf8mb4_general_ci: every client knows it.
const UTF8MB4: u16 = 45;
/// The collation of what is no text.
const NO_TEXT: u16 = 63;
const LENGTH_MAX: u32 = u32::MAX;
/// A DOUBLE has as many digits after the point as its value needs.
const ANY_DIGITS: u8 = 31;

/// The bytes of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntegerWidth {
    One,
    Two,
    Four,
    Eight,
}

/// The type of an answer's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MysqlKind {
    Null,
    Integer {
        width: IntegerWidth,
        unsigned: bool,
    },
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Date,
    /// A moment, with so many digits of a second.
    Moment {
        digits: u8,
        is_timestamp: bool,
    },
    Text,
    Blob,
    Json,
}

impl MysqlKind {
    pub(super) fn of(kind: &DataType) -> Self {
        let integer = |width, unsigned| MysqlKind::Integer { width, unsigned };
        match kind {
            DataType::Null => MysqlKind::Null,
            DataType::Boolean | DataType::Int8 => integer(IntegerWidth::One, false),
            DataType::Int16 => integer(IntegerWidth::Two, false),
            DataType::Int32 => integer(IntegerWidth::Four, false),
            DataType::Int64 => integer(IntegerWidth::Eight, false),
            DataType::UInt8 => integer(IntegerWidth::One, true),
            DataType::UInt16 => integer(IntegerWidth::Two, true),
            DataType::UInt32 => integer(IntegerWidth::Four, true),
            DataType::UInt64 => integer(IntegerWidth::Eight, true),
            DataType::Float16 | DataType::Float32 => MysqlKind::Float,
            DataType::Float64 => MysqlKind::Double,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                MysqlKind::Decimal { precision: *precision, scale: u8::try_from(*scale).unwrap_or(0) }
            }
            DataType::Date32 | DataType::Date64 => MysqlKind::Date,
            DataType::Timestamp(unit, zone) => MysqlKind::Moment {
                digits: match unit {
                    TimeUnit::Second => 0,
                    TimeUnit::Millisecond => 3,
                    TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
                },
                is_timestamp: zone.is_some(),
            },
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => MysqlKind::Blob,
            DataType::Struct(_)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..)
            | DataType::Map(..)
            | DataType::Union(..) => MysqlKind::Json,
            DataType::Dictionary(_, values) => Self::of(values),
            DataType::RunEndEncoded(_, values) => Self::of(values.data_type()),
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Duration(_)
            | DataType::Interval(_) => MysqlKind::Text,
        }
    }

    /// The definition of a column of this type: its code is the protocol's.
    pub(super) fn definition(self, name: &str) -> ResultColumn<'_> {
        let (column_type, length, flags, decimals) = match self {
            MysqlKind::Null => (6, 0, BINARY, 0),
            MysqlKind::Integer { width, unsigned } => {
                let (code, length) = match width {
                    IntegerWidth::One => (1, 4),
                    IntegerWidth::Two => (2, 6),
                    IntegerWidth::Four => (3, 11),
                    IntegerWidth::Eight => (8, 20),
                };
                (code, length, if unsigned { UNSIGNED | BINARY } else { BINARY }, 0)
            }
            MysqlKind::Float => (4, 12, BINARY, ANY_DIGITS),
            MysqlKind::Double => (5, 22, BINARY, ANY_DIGITS),
            // With its point and its sign.
            MysqlKind::Decimal { precision, scale } => (246, u32::from(precision) + 2, BINARY, scale),
            MysqlKind::Date => (10, 10, BINARY, 0),
            MysqlKind::Moment { digits, is_timestamp } => {
                let length = if digits == 0 { 19 } else { 20 + u32::from(digits) };
                (if is_timestamp { 7 } else { 12 }, length, BINARY, digits)
            }
            MysqlKind::Text => (253, LENGTH_MAX, 0, 0),
            MysqlKind::Blob => (252, LENGTH_MAX, BINARY | BLOB, 0),
            MysqlKind::Json => (245, LENGTH_MAX, BINARY | BLOB, 0),
        };
        // A document is UTF-8, and yet servers send it as no text.
        let collation = if self == MysqlKind::Text { UTF8MB4 } else { NO_TEXT };
        ResultColumn {
            name: name.as_bytes(),
            collation,
            length,
            column_type,
            flags,
            decimals,
            ..ResultColumn::default()
        }
    }
}
