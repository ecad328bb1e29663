//! A batch's column as values that rows are made of.

use std::sync::Arc;

use binlogz_query_server::{Blame, StatementRefusal};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Date32Array, Float32Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, Float32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    UInt64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::{EncoderOptions, writer::make_encoder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::kinds::{IntegerWidth, MysqlKind};

/// The values of a column.
pub(super) enum MysqlCells {
    Null,
    Signed(Int64Array, IntegerWidth),
    Unsigned(UInt64Array, IntegerWidth),
    Float(Float32Array),
    Double(Float64Array),
    Date(Date32Array),
    /// Moments, with so many digits of a second as text.
    Moment(TimestampMicrosecondArray, u8),
    Text(StringArray),
    Bytes(BinaryArray),
    /// Texts that were made of the values.
    Made(Vec<Option<String>>),
}

fn failed(error: ArrowError) -> StatementRefusal {
    StatementRefusal::new(Blame::Program, format!("an answer's column: {error}"))
}

fn cast(column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, StatementRefusal> {
    // A value that doesn't fit is an error, not NULL.
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, kind, &strict).map_err(failed)
}

impl MysqlCells {
    pub(super) fn of(column: &ArrayRef, kind: MysqlKind) -> Result<Self, StatementRefusal> {
        let column = match column.data_type() {
            DataType::Dictionary(_, values) => cast(column, values)?,
            DataType::RunEndEncoded(_, values) => cast(column, values.data_type())?,
            _ => Arc::clone(column),
        };
        Ok(match kind {
            MysqlKind::Null => MysqlCells::Null,
            MysqlKind::Integer { width, unsigned: false } => MysqlCells::Signed(
                cast(&column, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
                width,
            ),
            MysqlKind::Integer { width, unsigned: true } => MysqlCells::Unsigned(
                cast(&column, &DataType::UInt64)?.as_primitive::<UInt64Type>().clone(),
                width,
            ),
            MysqlKind::Float => {
                MysqlCells::Float(cast(&column, &DataType::Float32)?.as_primitive::<Float32Type>().clone())
            }
            MysqlKind::Double => {
                MysqlCells::Double(cast(&column, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
            }
            MysqlKind::Date => {
                MysqlCells::Date(cast(&column, &DataType::Date32)?.as_primitive::<Date32Type>().clone())
            }
            MysqlKind::Moment { digits, .. } => {
                let DataType::Timestamp(_, zone) = column.data_type() else {
                    let found = format!("an answer's column: {}, expected a moment", column.data_type());
                    return Err(StatementRefusal::new(Blame::Program, found));
                };
                let micros = cast(&column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
                MysqlCells::Moment(micros.as_primitive::<TimestampMicrosecondType>().clone(), digits)
            }
            MysqlKind::Text if is_text(column.data_type()) => {
                MysqlCells::Text(cast(&column, &DataType::Utf8)?.as_string::<i32>().clone())
            }
            MysqlKind::Blob => {
                MysqlCells::Bytes(cast(&column, &DataType::Binary)?.as_binary::<i32>().clone())
            }
            MysqlKind::Decimal { .. } | MysqlKind::Text => MysqlCells::Made(shown(&column)?),
            MysqlKind::Json => MysqlCells::Made(documents(&column)?),
        })
    }

    /// Whether a row's value is NULL.
    pub(super) fn is_null(&self, row: usize) -> bool {
        match self {
            MysqlCells::Null => true,
            MysqlCells::Signed(values, _) => values.is_null(row),
            MysqlCells::Unsigned(values, _) => values.is_null(row),
            // MySQL has no number for it.
            MysqlCells::Float(values) => values.is_null(row) || !values.value(row).is_finite(),
            MysqlCells::Double(values) => values.is_null(row) || !values.value(row).is_finite(),
            MysqlCells::Date(values) => values.is_null(row),
            MysqlCells::Moment(values, _) => values.is_null(row),
            MysqlCells::Text(values) => values.is_null(row),
            MysqlCells::Bytes(values) => values.is_null(row),
            MysqlCells::Made(values) => values.get(row).is_none_or(Option::is_none),
        }
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn shown(column: &ArrayRef) -> Result<Vec<Option<String>>, StatementRefusal> {
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(column, &options).map_err(failed)?;
    (0..column.len())
        .map(|row| match column.is_null(row) {
            true => Ok(None),
            false => formatter.value(row).try_to_string().map(Some).map_err(failed),
        })
        .collect()
}

/// Nested values as JSON, with the names of all columns.
fn documents(column: &ArrayRef) -> Result<Vec<Option<String>>, StatementRefusal> {
    let field = Arc::new(Field::new("", column.data_type().clone(), true));
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(&field, column, &options).map_err(failed)?;
    let mut documents = Vec::with_capacity(column.len());
    for row in 0..column.len() {
        if column.is_null(row) {
            documents.push(None);
            continue;
        }
        let mut document = Vec::new();
        encoder.encode(row, &mut document);
        documents.push(Some(String::from_utf8_lossy(&document).into_owned()));
    }
    Ok(documents)
}
