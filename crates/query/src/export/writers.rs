//! Parquet files, one for each data set and partition, written in a folder that no reader looks into. Memory is bounded:
//! row groups end when they or all of them together are large, and few files are open at once.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Date32Type, Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::fresh::{column, value};
use super::manifest::{Partition, Written};
use crate::error::{Error, Result};
use crate::print::{PARQUET_LEVEL, ROW_GROUP_BYTES_MAX, ROW_GROUP_MAX};

/// Files that are open at once.
const OPEN_MAX: usize = 512;
/// Bytes that all row groups hold together.
const MEMORY_MAX: usize = 256 << 20;
/// How often a bloom filter says that a key may be there which isn't.
const FALSE_POSITIVES: f64 = 0.01;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// The partition of rows without a time, as Hive names it.
const NO_TIME: &str = "__HIVE_DEFAULT_PARTITION__";

/// Writes data sets.
pub(super) struct Writers {
    folder: PathBuf,
    /// The number of the run, with which names begin.
    run: u64,
    partition: Partition,
    sets: Vec<Set>,
    open: HashMap<(usize, String), Open>,
    /// Counts writes: the file that was not written to for longest is closed first.
    clock: u64,
    files: Vec<Written>,
    /// Files begun.
    begun: u64,
}

/// A data set.
struct Set {
    /// Where it is in the target.
    path: String,
    schema: SchemaRef,
    properties: WriterProperties,
    /// Files begun of it.
    begun: u64,
}

/// A file that is open.
struct Open {
    writer: ArrowWriter<File>,
    file: Written,
    used: u64,
    memory: usize,
}

impl Writers {
    pub(super) fn new(folder: &Path, run: u64, partition: Partition) -> Self {
        Writers {
            folder: folder.to_owned(),
            run,
            partition,
            sets: Vec::new(),
            open: HashMap::new(),
            clock: 0,
            files: Vec::new(),
            begun: 0,
        }
    }

    /// Adds a data set; `keys` are the columns of a table's primary key.
    pub(super) fn add(&mut self, path: String, schema: &SchemaRef, keys: &[String]) -> usize {
        self.sets.push(Set {
            path,
            schema: Arc::clone(schema),
            properties: properties(schema, keys),
            begun: 0,
        });
        self.sets.len() - 1
    }

    /// Writes rows of a data set, each to its partition.
    pub(super) fn write(&mut self, set: usize, batch: &RecordBatch) -> Result<()> {
        if self.partition == Partition::None {
            return self.write_to(set, String::new(), batch);
        }
        let committed: &TimestampMicrosecondArray = column(batch, "committed_at")?;
        let logged: &TimestampMicrosecondArray = column(batch, "logged_at")?;
        let day = |row| value(committed, row).or(value(logged, row)).map(|moment| moment.div_euclid(DAY));
        let mut first = 0;
        while first < batch.num_rows() {
            let this = day(first);
            let end = (first + 1..batch.num_rows()).find(|&row| day(row) != this).unwrap_or(batch.num_rows());
            self.write_to(set, self.folder_of(this), &batch.slice(first, end - first))?;
            first = end;
        }
        Ok(())
    }

    /// The partition of a day since 1970, as Hive names it.
    fn folder_of(&self, day: Option<i64>) -> String {
        let date = day.and_then(|day| Date32Type::to_naive_date_opt(i32::try_from(day).ok()?));
        let date = date.map(|date| date.to_string());
        let date = date.as_deref().unwrap_or(NO_TIME);
        match self.partition {
            Partition::Month if date != NO_TIME => {
                format!("month={}/", date.rsplit_once('-').map_or(date, |(month, _)| month))
            }
            partition => format!("{partition}={date}/"),
        }
    }

    fn write_to(&mut self, set: usize, folder: String, batch: &RecordBatch) -> Result<()> {
        self.clock += 1;
        let key = (set, folder);
        if !self.open.contains_key(&key) {
            self.open(&key)?;
        }
        let Some(open) = self.open.get_mut(&key) else { return Ok(()) };
        open.used = self.clock;
        let failed = failed(&self.folder, &open.file);
        open.writer.write(batch).map_err(&failed)?;
        open.file.rows += batch.num_rows() as u64;
        if open.writer.in_progress_size() > ROW_GROUP_BYTES_MAX {
            open.writer.flush().map_err(&failed)?;
        }
        open.memory = open.writer.in_progress_size();
        self.bound_memory()
    }

    fn bound_memory(&mut self) -> Result<()> {
        if self.open.values().map(|open| open.memory).sum::<usize>() > MEMORY_MAX
            && let Some(largest) = self.open.values_mut().max_by_key(|open| open.memory)
        {
            largest.writer.flush().map_err(self::failed(&self.folder, &largest.file))?;
            largest.memory = largest.writer.in_progress_size();
        }
        Ok(())
    }

    fn open(&mut self, key: &(usize, String)) -> Result<()> {
        if self.open.len() >= OPEN_MAX
            && let Some(oldest) =
                self.open.iter().min_by_key(|(_, open)| open.used).map(|(key, _)| key.clone())
            && let Some(open) = self.open.remove(&oldest)
        {
            self.close(open)?;
        }
        let Some(set) = self.sets.get_mut(key.0) else { return Ok(()) };
        let file = Written {
            path: format!("{}/{}{:08}-{}.parquet", set.path, key.1, self.run, set.begun),
            staged: format!("{:06}.parquet", self.begun),
            rows: 0,
            bytes: 0,
        };
        let place = self.folder.join(&file.staged);
        set.begun += 1;
        self.begun += 1;
        let failed = |error: &dyn std::fmt::Display| Error::Target(format!("{}: {error}", place.display()));
        let output = File::create_new(&place).map_err(|error| failed(&error))?;
        let schema = Arc::clone(&set.schema);
        let writer = ArrowWriter::try_new(output, schema, Some(set.properties.clone()));
        let writer = writer.map_err(|error| failed(&error))?;
        self.open.insert(key.clone(), Open { writer, file, used: self.clock, memory: 0 });
        Ok(())
    }

    fn close(&mut self, open: Open) -> Result<()> {
        let Open { writer, mut file, .. } = open;
        let output = writer.into_inner().map_err(failed(&self.folder, &file))?;
        let mut end = || -> std::io::Result<()> {
            output.sync_all()?;
            file.bytes = output.metadata()?.len();
            Ok(())
        };
        end().map_err(|error| {
            Error::Target(format!("{}: {error}", self.folder.join(&file.staged).display()))
        })?;
        self.files.push(file);
        Ok(())
    }

    /// Ends all files, and tells where they go.
    pub(super) fn finish(mut self) -> Result<Vec<Written>> {
        for (_, open) in std::mem::take(&mut self.open) {
            self.close(open)?;
        }
        self.files.sort();
        Ok(self.files)
    }
}

fn failed(folder: &Path, file: &Written) -> impl Fn(parquet::errors::ParquetError) -> Error + use<> {
    let place = folder.join(&file.staged);
    move |error| Error::Target(format!("{}: {error}", place.display()))
}

fn properties(schema: &SchemaRef, keys: &[String]) -> WriterProperties {
    let level = ZstdLevel::try_new(PARQUET_LEVEL).unwrap_or_default();
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_MAX));
    for field in schema.fields() {
        let path = vec![field.name().clone()];
        match field.data_type() {
            DataType::Struct(fields) => {
                for field in fields {
                    let path = [path[..].to_vec(), vec![field.name().clone()]].concat();
                    let path = ColumnPath::new(path);
                    if keys.contains(field.name()) {
                        builder = builder
                            .set_column_bloom_filter_enabled(path.clone(), true)
                            .set_column_bloom_filter_fpp(path.clone(), FALSE_POSITIVES);
                    }
                    // Where there are too many values for a dictionary.
                    builder = by_difference(builder, field, path);
                }
            }
            DataType::Utf8 if field.name() == "gtid" => {
                let path = ColumnPath::new(path);
                builder = builder
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BYTE_ARRAY);
            }
            // They follow one another: a dictionary would be larger than the differences.
            DataType::UInt64 | DataType::Timestamp(..) => {
                let path = ColumnPath::new(path);
                builder = builder.set_column_dictionary_enabled(path.clone(), false);
                builder = by_difference(builder, field, path);
            }
            _ => {}
        }
    }
    builder.build()
}

/// Whole numbers and times as differences from one to the next.
fn by_difference(
    builder: WriterPropertiesBuilder,
    field: &Field,
    path: ColumnPath,
) -> WriterPropertiesBuilder {
    let kind = field.data_type();
    match kind.is_integer() || matches!(kind, DataType::Date32 | DataType::Timestamp(..)) {
        true => builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        false => builder,
    }
}
