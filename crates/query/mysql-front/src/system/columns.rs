//! MySQL's type of each column of a table, by the type that the query engine has for it.

use datafusion::arrow::datatypes::{DataType, TimeUnit};

/// A column's type as MySQL tells it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ColumnTypeText {
    /// The type's name: `decimal`.
    pub(super) name: &'static str,
    /// The whole type: `decimal(10,2)`.
    pub(super) full: String,
    pub(super) precision: Option<u8>,
    pub(super) scale: Option<i8>,
    /// Digits of a second.
    pub(super) second_digits: Option<u8>,
    pub(super) is_text: bool,
}

impl ColumnTypeText {
    pub(super) fn of(kind: &DataType) -> Self {
        let plain = |name: &'static str| ColumnTypeText { name, full: name.to_owned(), ..Self::default() };
        let integer = |name: &'static str, unsigned: bool, digits: u8| ColumnTypeText {
            full: if unsigned { format!("{name} unsigned") } else { name.to_owned() },
            precision: Some(digits),
            scale: Some(0),
            ..plain(name)
        };
        match kind {
            DataType::Boolean => {
                ColumnTypeText { full: "tinyint(1)".to_owned(), ..integer("tinyint", false, 3) }
            }
            DataType::Int8 => integer("tinyint", false, 3),
            DataType::Int16 => integer("smallint", false, 5),
            DataType::Int32 => integer("int", false, 10),
            DataType::Int64 => integer("bigint", false, 19),
            DataType::UInt8 => integer("tinyint", true, 3),
            DataType::UInt16 => integer("smallint", true, 5),
            DataType::UInt32 => integer("int", true, 10),
            DataType::UInt64 => integer("bigint", true, 20),
            DataType::Float16 | DataType::Float32 => plain("float"),
            DataType::Float64 => plain("double"),
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => ColumnTypeText {
                full: format!("decimal({precision},{scale})"),
                precision: Some(*precision),
                scale: Some(*scale),
                ..plain("decimal")
            },
            DataType::Date32 | DataType::Date64 => plain("date"),
            DataType::Timestamp(unit, zone) => {
                let name = if zone.is_some() { "timestamp" } else { "datetime" };
                let digits = second_digits(*unit);
                let full = if digits == 0 { name.to_owned() } else { format!("{name}({digits})") };
                ColumnTypeText { full, second_digits: Some(digits), ..plain(name) }
            }
            DataType::Time32(unit) | DataType::Time64(unit) => {
                let digits = second_digits(*unit);
                ColumnTypeText {
                    full: format!("time({digits})"),
                    second_digits: Some(digits),
                    ..plain("time")
                }
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => plain("longblob"),
            DataType::Struct(_)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..)
            | DataType::Map(..)
            | DataType::Union(..) => plain("json"),
            DataType::Dictionary(_, values) => Self::of(values),
            DataType::RunEndEncoded(_, values) => Self::of(values.data_type()),
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Null
            | DataType::Duration(_)
            | DataType::Interval(_) => ColumnTypeText { is_text: true, ..plain("longtext") },
        }
    }
}

/// Digits of a second that times of a unit have; MySQL has six at most.
pub(super) fn second_digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_mysqls_names() {
        for (kind, full) in [
            (DataType::UInt64, "bigint unsigned"),
            (DataType::Decimal128(10, 2), "decimal(10,2)"),
            (DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())), "timestamp(6)"),
            (DataType::Timestamp(TimeUnit::Second, None), "datetime"),
            (DataType::Utf8, "longtext"),
            (DataType::Boolean, "tinyint(1)"),
        ] {
            assert_eq!(ColumnTypeText::of(&kind).full, full);
        }
    }
}
