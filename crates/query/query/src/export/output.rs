//! A Parquet file while it is written. The columns of its row group are encoded by several threads at once.
//!
//! ```text
//! batches → leaves: one for each column of the file → encoders, one for each column │ end of the group → the file
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_flow::ordered;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::manifest::WrittenFile;
use crate::error::{Error, Result};
use crate::print::{ROW_GROUP_BYTES_MAX, ROW_GROUP_MAX};

/// The mode of files, less the umask: they hold rows, which are not for everybody.
pub(super) const MODE: u32 = 0o640;
/// Rows that take fewer bytes are encoded by one thread: it takes less time than to start others.
pub(super) const SHARED_MIN: usize = 256 << 10;

/// A file that is open.
pub(super) struct ExportFile {
    writer: SerializedFileWriter<File>,
    groups: ArrowRowGroupWriterFactory,
    group: Option<Group>,
    schema: SchemaRef,
    file: WrittenFile,
    place: PathBuf,
}

/// A row group that is not in the file yet.
struct Group {
    encoders: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl ExportFile {
    pub(super) fn create(
        place: PathBuf,
        file: WrittenFile,
        schema: &SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self> {
        let output = File::options().write(true).create_new(true).mode(MODE).open(&place);
        let output = output.map_err(|error| Error::Target(format!("{}: {error}", place.display())))?;
        // Parquet's own types tell all of the schema, and Arrow's would be half of the footer of a small file.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(output, Arc::clone(schema), options)
            .and_then(ArrowWriter::into_serialized_writer);
        let (writer, groups) = writer.map_err(failed(&place))?;
        Ok(ExportFile { writer, groups, group: None, schema: Arc::clone(schema), file, place })
    }

    /// Bytes that its rows take which are not in the file yet.
    pub(super) fn memory(&self) -> usize {
        let encoders = self.group.iter().flat_map(|group| &group.encoders);
        encoders.map(ArrowColumnWriter::memory_size).sum()
    }

    /// Encodes rows, `jobs` columns at once.
    pub(super) fn write(&mut self, batches: Vec<RecordBatch>, jobs: usize) -> Result<()> {
        let mut left = VecDeque::from(batches);
        while !left.is_empty() {
            let room = ROW_GROUP_MAX - self.group.as_ref().map_or(0, |group| group.rows);
            self.write_to_group(&front(&mut left, room), jobs)?;
        }
        Ok(())
    }

    /// Encodes rows for which the row group has room, and ends it if it is full then.
    fn write_to_group(&mut self, batches: &[RecordBatch], jobs: usize) -> Result<()> {
        let mut group = match self.group.take() {
            Some(group) => group,
            None => {
                let number = self.writer.flushed_row_groups().len();
                let encoders = self.groups.create_column_writers(number).map_err(failed(&self.place))?;
                Group { encoders, rows: 0 }
            }
        };
        let mut columns: Vec<(ArrowColumnWriter, Vec<ArrowLeafColumn>)> =
            group.encoders.into_iter().map(|encoder| (encoder, Vec::with_capacity(batches.len()))).collect();
        for batch in batches {
            let mut columns = columns.iter_mut();
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                let leaves = compute_leaves(field, column).map_err(failed(&self.place))?;
                leaves.into_iter().zip(&mut columns).for_each(|(leaf, (_, leaves))| leaves.push(leaf));
            }
        }
        let bytes = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let encode = |(mut encoder, leaves): (ArrowColumnWriter, Vec<ArrowLeafColumn>)| {
            leaves.iter().try_for_each(|leaf| encoder.write(leaf)).map(|()| encoder)
        };
        group.encoders = at_once(jobs_for(bytes, jobs), columns, encode).map_err(failed(&self.place))?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        group.rows += rows;
        self.file.rows += rows as u64;
        let bytes: usize = group.encoders.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum();
        let is_full = group.rows >= ROW_GROUP_MAX || bytes > ROW_GROUP_BYTES_MAX;
        self.group = Some(group);
        if is_full { self.end_group(jobs) } else { Ok(()) }
    }

    /// Ends the row group: its rows are in the file after that.
    pub(super) fn end_group(&mut self, jobs: usize) -> Result<()> {
        let jobs = jobs_for(self.memory(), jobs);
        let Some(group) = self.group.take() else { return Ok(()) };
        let end = || -> parquet::errors::Result<()> {
            let chunks = at_once(jobs, group.encoders, ArrowColumnWriter::close)?;
            let mut group = self.writer.next_row_group()?;
            chunks.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut group))?;
            group.close().map(drop)
        };
        end().map_err(failed(&self.place))
    }

    /// Ends the file. It isn't synced.
    pub(super) fn close(mut self, jobs: usize) -> Result<WrittenFile> {
        self.end_group(jobs)?;
        let ExportFile { writer, mut file, place, .. } = self;
        let output = writer.into_inner().map_err(failed(&place))?;
        let there =
            output.metadata().map_err(|error| Error::Target(format!("{}: {error}", place.display())))?;
        file.bytes = there.len();
        Ok(file)
    }
}

/// Takes as many rows as there is room for.
fn front(left: &mut VecDeque<RecordBatch>, mut room: usize) -> Vec<RecordBatch> {
    let mut taken = Vec::new();
    while room > 0
        && let Some(batch) = left.pop_front()
    {
        let rows = batch.num_rows().min(room);
        if rows < batch.num_rows() {
            left.push_front(batch.slice(rows, batch.num_rows() - rows));
        }
        taken.push(batch.slice(0, rows));
        room -= rows;
    }
    taken
}

/// Threads for this many bytes.
fn jobs_for(bytes: usize, jobs: usize) -> usize {
    if bytes < SHARED_MIN { 1 } else { jobs }
}

/// Does the same with all items, `jobs` at once. The results are in the items' order.
///
/// # Errors
///
/// The first error in that order.
pub(super) fn at_once<T: Send, R: Send, E: Send>(
    jobs: usize,
    items: Vec<T>,
    work: impl Fn(T) -> std::result::Result<R, E> + Sync,
) -> std::result::Result<Vec<R>, E> {
    let mut results = Vec::with_capacity(items.len());
    let mut items = items.into_iter().map(Ok);
    let take = |result| {
        results.push(result);
        Ok(())
    };
    ordered::run(jobs, || items.next(), (), || Ok(()), |(), item| work(item), take)?;
    Ok(results)
}

fn failed(place: &Path) -> impl Fn(ParquetError) -> Error + use<> {
    let place = place.to_owned();
    move |error| Error::Target(format!("{}: {error}", place.display()))
}
