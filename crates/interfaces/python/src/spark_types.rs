//! The types of columns as Spark names them. It has no unsigned numbers, and decimals of up to 38 digits: a column gets the next
//! type that has all of its values.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use binlogz_arrow::{merged, moment};

/// The digits of an unsigned BIGINT.
const BIGINT_DIGITS: u8 = 20;

/// The type that has all values of a column's, and that Spark has, too.
fn widened(kind: &DataType) -> DataType {
    match kind {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(BIGINT_DIGITS, 0),
        DataType::Decimal256(..) => DataType::Utf8,
        other => other.clone(),
    }
}

/// Spark's name of a column's type.
pub(crate) fn spark_name(kind: &DataType) -> String {
    let name = match widened(kind) {
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "int",
        DataType::Int64 => "bigint",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Date32 => "date",
        DataType::Timestamp(_, None) => "timestamp_ntz",
        DataType::Timestamp(_, Some(_)) => "timestamp",
        DataType::Binary => "binary",
        DataType::List(_) => "array<float>",
        DataType::Decimal128(precision, scale) => return format!("decimal({precision},{scale})"),
        _ => "string",
    };
    name.to_owned()
}

/// The type of one of Spark's names; `None`: no column has it.
fn of_spark_name(name: &str) -> Option<DataType> {
    Some(match name {
        "tinyint" => DataType::Int8,
        "smallint" => DataType::Int16,
        "int" => DataType::Int32,
        "bigint" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "date" => DataType::Date32,
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp" => moment(),
        "binary" => DataType::Binary,
        "string" => DataType::Utf8,
        "array<float>" => DataType::List(Arc::new(Field::new_list_field(DataType::Float32, true))),
        other => {
            let (precision, scale) = other.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
            DataType::Decimal128(precision.parse().ok()?, scale.parse().ok()?)
        }
    })
}

/// The fields of a row's image, by their names and Spark's of their types.
///
/// # Errors
///
/// A type that no column has.
pub(crate) fn fields_of(columns: &[(String, String)]) -> Result<Fields, String> {
    let field = |(name, kind): &(String, String)| {
        let known = of_spark_name(kind).ok_or_else(|| {
            format!("column {name} has type {kind}, expected one that a column of MySQL is read as")
        })?;
        Ok(Field::new(name, known, true))
    };
    columns.iter().map(field).collect()
}

/// Whether a field has all values of a column of another type.
pub(crate) fn takes(field: &DataType, column: &DataType) -> bool {
    let column = widened(column);
    let whole = |kind: &DataType| kind.is_signed_integer().then(|| kind.primitive_width()).flatten();
    let is_wider = whole(field).zip(whole(&column)).is_some_and(|(field, column)| field >= column);
    is_wider || merged(field, &column) == *field
}
