//! The class of a column: whether its values are integers, texts, times and so on, whatever their width. Code that needs no more of a
//! [`ColumnKind`] asks this table.

use super::kind::ColumnKind;

/// The class of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnClass {
    /// TINYINT to BIGINT.
    Integer,
    /// DECIMAL.
    Decimal,
    /// FLOAT, DOUBLE.
    Float,
    /// BIT.
    Bit,
    /// YEAR.
    Year,
    /// DATE.
    Date,
    /// TIME, and the digits of its fraction; `None`: that of before 5.6.4.
    Time(Option<u8>),
    /// DATETIME, and the digits of its fraction; `None`: that of before 5.6.4.
    DateTime(Option<u8>),
    /// TIMESTAMP, and the digits of its fraction; `None`: that of before 5.6.4.
    Timestamp(Option<u8>),
    /// ENUM, SET: numbers that stand for names.
    Member,
    /// Texts and bytes: CHAR, VARCHAR, TEXT, BINARY, VARBINARY, BLOB.
    String,
    /// JSON.
    Json,
    /// GEOMETRY and its kinds.
    Geometry,
    /// VECTOR.
    Vector,
    /// Nothing but NULL, and the hidden column of a multi-valued index.
    Hidden,
}

impl ColumnKind {
    /// The class of the column's values.
    #[inline]
    pub fn class(self) -> ColumnClass {
        use ColumnClass as Class;
        match self {
            ColumnKind::TinyInt { .. }
            | ColumnKind::SmallInt { .. }
            | ColumnKind::MediumInt { .. }
            | ColumnKind::Int { .. }
            | ColumnKind::BigInt { .. } => Class::Integer,
            ColumnKind::Decimal(_) => Class::Decimal,
            ColumnKind::Float | ColumnKind::Double => Class::Float,
            ColumnKind::Bit { .. } => Class::Bit,
            ColumnKind::Year => Class::Year,
            ColumnKind::Date => Class::Date,
            ColumnKind::Time { fraction_digits } => Class::Time(Some(fraction_digits)),
            ColumnKind::OldTime => Class::Time(None),
            ColumnKind::DateTime { fraction_digits } => Class::DateTime(Some(fraction_digits)),
            ColumnKind::OldDateTime => Class::DateTime(None),
            ColumnKind::Timestamp { fraction_digits } => Class::Timestamp(Some(fraction_digits)),
            ColumnKind::OldTimestamp => Class::Timestamp(None),
            ColumnKind::Enum { .. } | ColumnKind::Set { .. } => Class::Member,
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => Class::String,
            ColumnKind::Json { .. } => Class::Json,
            ColumnKind::Geometry { .. } => Class::Geometry,
            ColumnKind::Vector { .. } => Class::Vector,
            ColumnKind::Null | ColumnKind::TypedArray => Class::Hidden,
        }
    }
}
