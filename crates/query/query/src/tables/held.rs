//! Holds the rows of a transaction until its end tells what becomes of them. Rows that take too much memory wait in a
//! temporary file, since a transaction may be as large as a log.

use std::io::Cursor;
use std::ops::Range;

use binlogz_archive::Scratch;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;

use crate::error::{Error, Result};

/// Bytes of rows that wait in memory.
const MEMORY_MAX: usize = 32 << 20;

/// Rows with the numbers of their tables, in the order in which they came.
#[derive(Debug)]
pub(crate) struct HeldRows {
    batches: Vec<(usize, RecordBatch)>,
    /// Bytes that they take, and may take.
    bytes: usize,
    bytes_max: usize,
    /// The rows that came before these.
    spilled: Option<SpilledBatches>,
}

/// Batches in a temporary file, each as an Arrow stream of its own.
#[derive(Debug)]
struct SpilledBatches {
    file: Scratch,
    end: u64,
    batches: Vec<(usize, Range<u64>)>,
}

impl Default for HeldRows {
    fn default() -> Self {
        HeldRows { batches: Vec::new(), bytes: 0, bytes_max: MEMORY_MAX, spilled: None }
    }
}

impl HeldRows {
    pub(crate) fn add(&mut self, table: usize, batch: RecordBatch) -> Result<()> {
        self.bytes += batch.get_array_memory_size();
        self.batches.push((table, batch));
        if self.bytes > self.bytes_max {
            self.spill()?;
        }
        Ok(())
    }

    /// Passes on all, and holds none then.
    pub(crate) fn release(&mut self, take: &mut dyn FnMut(usize, RecordBatch) -> Result<()>) -> Result<()> {
        self.bytes = 0;
        if let Some(spilled) = self.spilled.take() {
            for (table, place) in &spilled.batches {
                spilled.read(place)?.into_iter().try_for_each(|batch| take(*table, batch))?;
            }
        }
        std::mem::take(&mut self.batches).into_iter().try_for_each(|(table, batch)| take(table, batch))
    }

    fn spill(&mut self) -> Result<()> {
        self.bytes = 0;
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            None => self.spilled.insert(SpilledBatches {
                file: Scratch::new().map_err(ArrowError::from).map_err(failed)?,
                end: 0,
                batches: Vec::new(),
            }),
        };
        std::mem::take(&mut self.batches)
            .into_iter()
            .try_for_each(|(table, batch)| spilled.add(table, &batch))
    }
}

impl SpilledBatches {
    fn add(&mut self, table: usize, batch: &RecordBatch) -> Result<()> {
        let write = || -> std::result::Result<u64, ArrowError> {
            let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
            writer.write(batch)?;
            let bytes = writer.into_inner()?;
            self.file.write_all_at(&bytes, self.end)?;
            Ok(bytes.len() as u64)
        };
        let end = self.end + write().map_err(failed)?;
        self.batches.push((table, self.end..end));
        self.end = end;
        Ok(())
    }

    fn read(&self, place: &Range<u64>) -> Result<Vec<RecordBatch>> {
        let read = || -> std::result::Result<Vec<RecordBatch>, ArrowError> {
            // It was in memory before.
            let mut bytes = vec![0; (place.end - place.start) as usize];
            self.file.read_exact_at(&mut bytes, place.start)?;
            StreamReader::try_new(Cursor::new(bytes), None)?.collect()
        };
        read().map_err(failed)
    }
}

fn failed(error: ArrowError) -> Error {
    Error::Temporary(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn batch(text: &str) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("text", DataType::Utf8, true)]);
        let column = StringArray::from(vec![Some(text), None]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)]).unwrap()
    }

    #[test]
    fn rows_come_back_in_order_from_the_file_and_from_memory() {
        let texts: Vec<_> = (0..100).map(|number| format!("row {number}")).collect();
        let one = batch(&texts[0]).get_array_memory_size();
        let mut held = HeldRows { bytes_max: 7 * one, ..HeldRows::default() };
        for turn in 0..2 {
            for (number, text) in texts.iter().enumerate() {
                held.add(number % 3, batch(text)).unwrap();
                assert!(held.batches.len() <= 8, "{} batches in memory", held.batches.len());
            }
            assert!(held.spilled.is_some() && !held.batches.is_empty(), "turn {turn}");
            let mut found = Vec::new();
            let mut take = |table, batch: RecordBatch| {
                found.push((table, batch.column(0).as_string::<i32>().value(0).to_owned()));
                Ok(())
            };
            held.release(&mut take).unwrap();
            let expected: Vec<_> =
                texts.iter().enumerate().map(|(number, text)| (number % 3, text.clone())).collect();
            assert_eq!(found, expected);
            let mut none = |_, _| panic!("nothing is held");
            held.release(&mut none).unwrap();
        }
    }
}
