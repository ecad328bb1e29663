//! Writes Parquet files, one for each data set and partition, in a folder that no reader looks into. Memory is bounded.
//! Rows wait until there are enough of them to open a file, so thousands of tables with few rows take little. If all rows
//! together take too much, the largest part is written first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, TimestampMicrosecondArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Date32Type, SchemaRef};
use parking_lot::Mutex;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::encodings::{self, EncodingChoice, SmallColumn};
use super::fresh::{column, value};
use super::manifest::{Partition, WrittenFile};
use super::names::NameError;
use super::output::{ExportFile, SHARED_MIN, at_once};
use crate::error::{Error, Result};
use crate::print::ROW_GROUP_MAX;

/// Files that are open at once.
const OPEN_MAX: usize = 512;
/// Bytes that all rows take which are not written yet.
const MEMORY_MAX: usize = 96 << 20;
/// Rows wait while they take less than this: of a file that is not begun, and of one that is.
const WAITING_MAX: usize = 4 << 20;
const WAITING_OPEN_MAX: usize = 1 << 20;
/// How often a bloom filter says that a key may be there which isn't.
const FALSE_POSITIVES: f64 = 0.01;
/// A file of fewer rows has no index of its pages: it has one or two for a column.
const INDEXED_MIN: usize = 20_000;
/// A page is compressed by itself, and readers skip whole pages.
const PAGE_SIZE_MAX: usize = 2 << 20;
const PAGE_ROWS_MAX: usize = 64 << 10;
/// The columns whose fields are a table's.
const IMAGES: [&str; 2] = ["before", "after"];
/// The columns by which a data set is divided. Iceberg takes a file's partition from their statistics; without, it would be that of rows
/// without a time.
const MOMENTS: [&str; 2] = ["committed_at", "logged_at"];
/// Waiting batches of more rows are not joined.
const ROWS_JOINED: usize = 4096;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// The partition of rows without a time, as Hive names it.
const NO_TIME: &str = "__HIVE_DEFAULT_PARTITION__";

/// Writes data sets.
pub(super) struct Writers {
    folder: PathBuf,
    /// How names begin: with the number of the run.
    prefix: String,
    partition: Partition,
    level: ZstdLevel,
    /// Threads that encode at once.
    jobs: usize,
    sets: Vec<Set>,
    open: HashMap<(usize, String), Open>,
    /// Bytes of all rows that are not written yet.
    memory: usize,
    /// Files that are open.
    files_open: usize,
    /// Counts writes: the file that was not written to for longest is closed first.
    clock: u64,
    files: Vec<WrittenFile>,
    /// Files begun.
    begun: u64,
}

/// A data set.
struct Set {
    /// Path of the file in the target.
    path: String,
    schema: SchemaRef,
    /// The columns of the table's primary key.
    keys: Vec<String>,
    /// Files begun of it.
    begun: u64,
    tried: Mutex<TriedEncodings>,
}

/// The encodings of a data set's columns.
#[derive(Default)]
struct TriedEncodings {
    /// The rows that they were tried on.
    rows: usize,
    choices: Arc<[EncodingChoice]>,
}

/// Rows of a partition.
#[derive(Default)]
struct Open {
    waiting: WaitingRows,
    file: Option<ExportFile>,
    used: u64,
    /// Bytes of its rows that are not written yet.
    memory: usize,
}

/// Rows that are not encoded yet.
#[derive(Default)]
struct WaitingRows {
    /// Each has at least twice the rows of the next: many small ones would take more than what is in them.
    batches: Vec<RecordBatch>,
    bytes: usize,
}

/// A file that is to be ended: one that is open, or one that is still to be begun, at this place.
enum UnendedFile {
    Begun(Box<ExportFile>),
    New((PathBuf, WrittenFile)),
}

impl WaitingRows {
    fn add(&mut self, mut batch: RecordBatch) -> Result<()> {
        while let Some(last) =
            self.batches.pop_if(|last| last.num_rows() < 2 * batch.num_rows().min(ROWS_JOINED))
        {
            self.bytes -= last.get_array_memory_size();
            batch = concat_batches(&last.schema(), [&last, &batch])
                .map_err(|error| Error::Target(format!("join rows: {error}")))?;
        }
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
        Ok(())
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        std::mem::take(self).batches
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

impl Writers {
    pub(super) fn new(
        folder: &Path,
        prefix: String,
        partition: Partition,
        level: ZstdLevel,
        jobs: usize,
    ) -> Self {
        Writers {
            folder: folder.to_owned(),
            prefix,
            partition,
            level,
            jobs,
            sets: Vec::new(),
            open: HashMap::new(),
            memory: 0,
            files_open: 0,
            clock: 0,
            files: Vec::new(),
            begun: 0,
        }
    }

    /// Adds a data set; `keys` are the columns of a table's primary key.
    pub(super) fn add(&mut self, path: String, schema: &SchemaRef, keys: &[String]) -> usize {
        let schema = Arc::clone(schema);
        let keys = keys.to_vec();
        let tried = Mutex::default();
        self.sets.push(Set { path, schema, keys, begun: 0, tried });
        self.sets.len() - 1
    }

    /// Writes rows of a data set, each to its partition.
    pub(super) fn write(&mut self, set: usize, batch: &RecordBatch) -> Result<()> {
        if self.partition == Partition::None {
            return self.write_to(set, String::new(), batch.clone());
        }
        let committed: &TimestampMicrosecondArray = column(batch, "committed_at")?;
        let logged: &TimestampMicrosecondArray = column(batch, "logged_at")?;
        let day = |row| value(committed, row).or(value(logged, row)).map(|moment| moment.div_euclid(DAY));
        let mut first = 0;
        while first < batch.num_rows() {
            let this = day(first);
            let end = (first + 1..batch.num_rows()).find(|&row| day(row) != this).unwrap_or(batch.num_rows());
            let rows = match end - first == batch.num_rows() {
                true => batch.clone(),
                false => batch.slice(first, end - first),
            };
            self.write_to(set, self.folder_of(this), rows)?;
            first = end;
        }
        Ok(())
    }

    /// The partition of a day since 1970, as Hive names it.
    fn folder_of(&self, day: Option<i64>) -> String {
        let date = day
            .and_then(|day| Date32Type::to_naive_date_opt(i32::try_from(day).ok()?))
            .map(|date| date.to_string());
        let date = date.as_deref().unwrap_or(NO_TIME);
        match self.partition {
            Partition::Month if date != NO_TIME => {
                format!("month={}/", date.rsplit_once('-').map_or(date, |(month, _)| month))
            }
            partition => format!("{partition}={date}/"),
        }
    }

    fn write_to(&mut self, set: usize, folder: String, batch: RecordBatch) -> Result<()> {
        self.clock += 1;
        let key = (set, folder);
        let open = self.open.entry(key.clone()).or_default();
        open.used = self.clock;
        open.waiting.add(batch)?;
        let waiting_max = if open.file.is_none() { WAITING_MAX } else { WAITING_OPEN_MAX };
        if open.waiting.bytes > waiting_max {
            self.encode(&key)?;
        }
        self.count_memory(&key);
        while self.memory > MEMORY_MAX {
            let largest = self.open.iter().max_by_key(|(_, open)| open.memory);
            let Some(largest) = largest.map(|(key, _)| key.clone()) else { break };
            self.encode(&largest)?;
            if let Some(file) = self.open.get_mut(&largest).and_then(|open| open.file.as_mut()) {
                file.end_group(self.jobs)?;
            }
            self.count_memory(&largest);
        }
        Ok(())
    }

    fn count_memory(&mut self, key: &(usize, String)) {
        let Some(open) = self.open.get_mut(key) else { return };
        let encoded = open.file.as_ref().map_or(0, ExportFile::memory);
        let before = std::mem::replace(&mut open.memory, open.waiting.bytes + encoded);
        self.memory = self.memory - before + open.memory;
    }

    /// Passes the rows that wait on to their file.
    fn encode(&mut self, key: &(usize, String)) -> Result<()> {
        if self.open.get(key).is_some_and(|open| open.file.is_none()) {
            self.close_oldest()?;
            let (place, file) = self.new_file(key)?;
            let (Some(open), Some(set)) = (self.open.get_mut(key), self.sets.get(key.0)) else {
                return Ok(());
            };
            let properties = set.properties(self.level, None, &open.waiting.batches, self.jobs);
            open.file = Some(ExportFile::create(place, file, &set.schema, properties)?);
            self.files_open += 1;
        }
        match self.open.get_mut(key) {
            Some(Open { file: Some(file), waiting, .. }) => file.write(waiting.take(), self.jobs),
            _ => Ok(()),
        }
    }

    /// Makes room for one more open file.
    fn close_oldest(&mut self) -> Result<()> {
        if self.files_open < OPEN_MAX {
            return Ok(());
        }
        let open = self.open.iter_mut().filter(|(_, open)| open.file.is_some());
        let Some((key, oldest)) = open.min_by_key(|(_, open)| open.used) else { return Ok(()) };
        let key = key.clone();
        let file = oldest.file.take();
        self.files_open -= 1;
        self.files.extend(file.map(|file| file.close(self.jobs)).transpose()?);
        self.count_memory(&key);
        Ok(())
    }

    fn new_file(&mut self, key: &(usize, String)) -> Result<(PathBuf, WrittenFile)> {
        let staged = format!("{:06}.parquet", self.begun);
        self.begun += 1;
        let path = match self.sets.get_mut(key.0) {
            Some(set) => {
                set.begun += 1;
                format!("{}/{}{}-{}.parquet", set.path, key.1, self.prefix, set.begun - 1)
            }
            None => String::new(),
        };
        // A name that no manifest may have is found before anything of it is written.
        let bad = |error: NameError| Error::Target(error.to_string());
        let file = WrittenFile {
            path: path.try_into().map_err(bad)?,
            staged: staged.try_into().map_err(bad)?,
            rows: 0,
            bytes: 0,
        };
        Ok((self.folder.join(file.staged.as_str()), file))
    }

    /// Ends all files and tells where they go.
    pub(super) fn finish(mut self) -> Result<Vec<WrittenFile>> {
        let mut left: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        left.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut ends = Vec::new();
        for (key, open) in left {
            let file = match open.file {
                Some(file) => UnendedFile::Begun(Box::new(file)),
                None => UnendedFile::New(self.new_file(&key)?),
            };
            ends.push((key.0, file, open.waiting));
        }
        let sets = &self.sets;
        let level = self.level;
        let jobs = self.jobs;
        let end =
            |(set, file, waiting): (usize, UnendedFile, WaitingRows), jobs| -> Result<Option<WrittenFile>> {
                let rows = waiting.rows();
                let batches = waiting.batches;
                let mut file = match (file, sets.get(set)) {
                    (UnendedFile::Begun(file), _) => *file,
                    (UnendedFile::New((place, file)), Some(set)) if rows > 0 => ExportFile::create(
                        place,
                        file,
                        &set.schema,
                        set.properties(level, Some(rows), &batches, jobs),
                    )?,
                    _ => return Ok(None),
                };
                file.write(batches, jobs)?;
                file.close(jobs).map(Some)
            };
        // Columns of a large file at once, and small files at once.
        let is_large = |(_, file, waiting): &(usize, UnendedFile, WaitingRows)| {
            matches!(file, UnendedFile::Begun(_)) || waiting.bytes >= SHARED_MIN
        };
        let (large, small): (Vec<_>, Vec<_>) = ends.into_iter().partition(is_large);
        let mut files = std::mem::take(&mut self.files);
        for file in large {
            files.extend(end(file, jobs)?);
        }
        files.extend(at_once(jobs, small, |file| end(file, 1))?.into_iter().flatten());
        files.sort();
        Ok(files)
    }
}

fn with_encoding(builder: WriterPropertiesBuilder, choice: EncodingChoice) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(choice.path.clone(), choice.has_dictionary)
        .set_column_encoding(choice.path, choice.encoding)
}

impl Set {
    /// How a file is written; `rows`: those that it will have, if that is known. The encodings are those that are best for the
    /// first rows, of this file or of one before.
    fn properties(
        &self,
        level: ZstdLevel,
        rows: Option<usize>,
        first: &[RecordBatch],
        jobs: usize,
    ) -> WriterProperties {
        let mut builder = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            // The member of a list is `element`, as Parquet and Iceberg have it; Arrow calls it `item`.
            .set_coerce_types(true)
            .set_data_page_size_limit(PAGE_SIZE_MAX)
            .set_data_page_row_count_limit(PAGE_ROWS_MAX);
        let keys_max = rows.unwrap_or(ROW_GROUP_MAX).min(ROW_GROUP_MAX) as u64;
        if rows.is_some_and(|rows| rows < encodings::ROWS_MIN) {
            for SmallColumn { choice, is_compressed } in encodings::of_few_rows(first) {
                if !is_compressed {
                    builder = builder.set_column_compression(choice.path.clone(), Compression::UNCOMPRESSED);
                }
                builder = with_encoding(builder, choice);
            }
            // So few values are read as fast as their statistics.
            builder = builder.set_statistics_enabled(EnabledStatistics::None);
            for moment in MOMENTS {
                builder =
                    builder.set_column_statistics_enabled(ColumnPath::from(moment), EnabledStatistics::Chunk);
            }
            return builder.set_offset_index_disabled(true).build();
        }
        for choice in self.choices(first, jobs).iter().cloned() {
            builder = with_encoding(builder, choice);
        }
        // In a file of one page for a column, reading the page is as fast as asking an index or a filter.
        if rows.is_some_and(|rows| rows < INDEXED_MIN) {
            let builder = builder.set_statistics_enabled(EnabledStatistics::Chunk);
            return builder.set_offset_index_disabled(true).build();
        }
        for (image, key) in IMAGES.iter().flat_map(|image| self.keys.iter().map(move |key| (image, key))) {
            let path = ColumnPath::new(vec![(*image).to_owned(), key.clone()]);
            builder = builder
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_fpp(path.clone(), FALSE_POSITIVES)
                .set_column_bloom_filter_max_ndv(path, keys_max);
        }
        builder.build()
    }

    /// The encodings of the columns. They are not tried again unless this file has more than twice as many rows as were tried.
    fn choices(&self, first: &[RecordBatch], jobs: usize) -> Arc<[EncodingChoice]> {
        let rows = first.iter().map(RecordBatch::num_rows).sum::<usize>().min(encodings::ROWS_TRIED);
        let mut tried = self.tried.lock();
        if tried.rows * 2 < rows || tried.rows == 0 {
            *tried = TriedEncodings { rows, choices: encodings::choose(first, jobs).into() };
        }
        Arc::clone(&tried.choices)
    }
}
