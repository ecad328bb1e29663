//! Chooses the encoding of each column of a file: the smallest, tried on the first rows of the file. Only encodings that
//! DuckDB, Spark and Arrow read are tried.
//!
//! ```text
//! whole numbers, days, moments, decimals up to 18 digits    dictionary │ differences │ plain
//! floating numbers                                          dictionary │ bytes apart │ plain
//! texts, bytes                                              dictionary │ what follows the common beginning │ lengths apart │ plain
//! ```
//!
//! A column with too many values for a dictionary goes on in the best of the other encodings.

use std::convert::Infallible;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::output::at_once;
use crate::print::PARQUET_LEVEL;

/// Rows that are tried.
pub(super) const ROWS_TRIED: usize = 16 << 10;
/// A file of fewer rows is too small for a difference.
pub(super) const ROWS_MIN: usize = 64;
/// In a file of fewer rows than [`ROWS_MIN`], a column of fewer bytes is not compressed, and texts of fewer are written as they are.
const COMPRESSED_MIN: usize = 4 << 10;
const DIFFERENCES_MIN: usize = 512;
/// A dictionary has to be smaller by this share: with more rows it may become too large.
const DICTIONARY_PERCENT: usize = 98;

/// How a column is encoded.
#[derive(Debug, Clone)]
pub(super) struct EncodingChoice {
    pub(super) path: ColumnPath,
    pub(super) has_dictionary: bool,
    /// The encoding of values that don't go into a dictionary.
    pub(super) encoding: Encoding,
}

/// Tries the encodings of all columns on rows of a file, `jobs` columns at once. It compresses at zstd's default level,
/// whatever the file's level is: the level hardly changes which encoding is smallest, and the highest level takes a
/// hundred times as long.
pub(super) fn choose(batches: &[RecordBatch], jobs: usize) -> Vec<EncodingChoice> {
    let level = ZstdLevel::try_new(PARQUET_LEVEL).unwrap_or_default();
    let base = &WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let jobs = if rows < ROWS_MIN { 1 } else { jobs };
    let tried = |(path, column): (Vec<String>, Vec<ArrayRef>)| -> Result<_, Infallible> {
        Ok(best(path, &column, base))
    };
    at_once(jobs, columns(batches), tried)
        .unwrap_or_else(|never| match never {})
        .into_iter()
        .flatten()
        .collect()
}

/// How a column of a file of fewer rows than [`ROWS_MIN`] is encoded.
pub(super) struct SmallColumn {
    pub(super) choice: EncodingChoice,
    pub(super) is_compressed: bool,
}

/// The columns of a file of fewer rows than [`ROWS_MIN`]. Thousands of tables may have such files, so nothing is tried, and it counts what an
/// encoder takes before the first value: parquet makes room of a megabyte for differences, of some 60 KB for a dictionary, and two contexts for
/// zstd.
pub(super) fn of_few_rows(batches: &[RecordBatch]) -> impl Iterator<Item = SmallColumn> {
    columns(batches).into_iter().map(|(path, parts)| {
        let sizes = parts.iter().filter_map(|part| part.to_data().get_slice_memory_size().ok());
        let bytes: usize = sizes.sum();
        let kind = parts.first().map(|part| part.data_type());
        let (has_dictionary, encoding) = match kind {
            Some(DataType::List(_)) => (true, Encoding::PLAIN),
            Some(DataType::Utf8 | DataType::Binary) if repeats(&parts) => (true, Encoding::PLAIN),
            Some(DataType::Utf8 | DataType::Binary) if bytes >= DIFFERENCES_MIN => {
                (false, Encoding::DELTA_BYTE_ARRAY)
            }
            _ => (false, Encoding::PLAIN),
        };
        let choice = EncodingChoice { path: ColumnPath::new(path), has_dictionary, encoding };
        SmallColumn { choice, is_compressed: bytes >= COMPRESSED_MIN }
    })
}

/// Whether half of the texts or more are repeated.
fn repeats(parts: &[ArrayRef]) -> bool {
    let texts = parts.iter().flat_map(|part| {
        let texts = part.as_string_opt::<i32>().map(|texts| texts.iter().flatten().map(str::as_bytes));
        let bytes = part.as_binary_opt::<i32>().map(|bytes| bytes.iter().flatten());
        texts.into_iter().flatten().chain(bytes.into_iter().flatten())
    });
    let mut texts: Vec<&[u8]> = texts.collect();
    let count = texts.len();
    texts.sort_unstable();
    texts.dedup();
    texts.len() * 2 <= count
}

/// The columns of a file by their paths, those of structs each by itself.
fn columns(batches: &[RecordBatch]) -> Vec<(Vec<String>, Vec<ArrayRef>)> {
    let Some(first) = batches.first() else { return Vec::new() };
    let mut columns = Vec::new();
    for (index, field) in first.schema().fields().iter().enumerate() {
        let whole: Vec<_> = batches.iter().map(|batch| Arc::clone(batch.column(index))).collect();
        let DataType::Struct(parts) = field.data_type() else {
            columns.push((leaf(&[field.name()], field.data_type()), whole));
            continue;
        };
        for (inner, part) in parts.iter().enumerate() {
            let of =
                |column: &ArrayRef| column.as_struct_opt().map(|images| Arc::clone(images.column(inner)));
            let path = leaf(&[field.name(), part.name()], part.data_type());
            columns.push((path, whole.iter().filter_map(of).collect()));
        }
    }
    columns
}

/// The path of a column's values in the file.
fn leaf(path: &[&str], kind: &DataType) -> Vec<String> {
    let members: &[&str] = if matches!(kind, DataType::List(_)) { &["list", "element"] } else { &[] };
    path.iter().chain(members).map(|name| (*name).to_owned()).collect()
}

/// The smallest of the encodings of a column.
fn best(path: Vec<String>, columns: &[ArrayRef], base: &WriterProperties) -> Option<EncodingChoice> {
    let encodings = encodings(columns.first()?.data_type());
    let (first, _) = encodings.split_first()?;
    if columns.iter().map(|column| column.len()).sum::<usize>() < ROWS_MIN {
        return Some(EncodingChoice { path: ColumnPath::new(path), has_dictionary: true, encoding: *first });
    }
    let mut rows = ROWS_TRIED;
    let tried: Vec<ArrayRef> = columns
        .iter()
        .map(|column| {
            let taken = column.slice(0, column.len().min(rows));
            rows -= taken.len();
            taken
        })
        .collect();
    let tried: Vec<&dyn Array> = tried.iter().map(|column| column.as_ref() as &dyn Array).collect();
    let tried = concat(&tried).ok()?;
    let path = ColumnPath::new(path);
    let sizes =
        encodings.iter().filter_map(|&encoding| Some((size(&tried, Some(encoding), base)?, encoding)));
    let (size_apart, encoding) = sizes.min_by_key(|(size, _)| *size)?;
    let with_dictionary = size(&tried, None, base)?;
    Some(EncodingChoice {
        path,
        has_dictionary: with_dictionary * 100 < size_apart * DICTIONARY_PERCENT,
        encoding,
    })
}

/// The encodings that are tried, beside a dictionary.
fn encodings(kind: &DataType) -> &'static [Encoding] {
    match kind {
        DataType::Utf8 | DataType::Binary => {
            &[Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY, Encoding::PLAIN]
        }
        DataType::Float32 | DataType::Float64 => &[Encoding::BYTE_STREAM_SPLIT, Encoding::PLAIN],
        DataType::Date32 | DataType::Timestamp(..) => &[Encoding::DELTA_BINARY_PACKED, Encoding::PLAIN],
        DataType::Decimal128(precision, _) if *precision <= 18 => {
            &[Encoding::DELTA_BINARY_PACKED, Encoding::PLAIN]
        }
        kind if kind.is_integer() => &[Encoding::DELTA_BINARY_PACKED, Encoding::PLAIN],
        _ => &[],
    }
}

/// Bytes of a column in an encoding; `None`: in a dictionary.
fn size(column: &ArrayRef, encoding: Option<Encoding>, base: &WriterProperties) -> Option<usize> {
    let name = ColumnPath::from("c");
    let properties = WriterProperties::builder()
        .set_compression(base.compression(&name))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(encoding.is_none());
    let properties = match encoding {
        Some(encoding) => properties.set_encoding(encoding),
        None => properties,
    };
    let schema = Arc::new(Schema::new(vec![Field::new("c", column.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(column)]).ok()?;
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, schema, Some(properties.build())).ok()?;
    writer.write(&batch).ok()?;
    let metadata = writer.close().ok()?;
    usize::try_from(metadata.row_groups().first()?.compressed_size()).ok()
}
