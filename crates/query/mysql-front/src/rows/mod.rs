//! Arrow's rows as MySQL's: the definition of each column, and rows as text or in the form of prepared statements.
//!
//! ```text
//! kinds    Arrow type → MySQL type
//! cells    a batch's column as values of that type
//! dates    days and microseconds since 1970 ↔ years, months, days, times
//! encoded  cells → bytes of rows
//! ```

mod cells;
mod dates;
mod encoded;
mod kinds;

use binlogz_query_server::StatementRefusal;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use cells::MysqlCells;
use kinds::MysqlKind;

pub(crate) use encoded::RowForm;

/// The columns of an answer.
#[derive(Debug)]
pub(crate) struct MysqlColumns {
    names: Vec<String>,
    kinds: Vec<MysqlKind>,
}

impl MysqlColumns {
    pub(crate) fn new(schema: &SchemaRef, names: Vec<String>) -> Self {
        let kinds = schema.fields().iter().map(|field| MysqlKind::of(field.data_type())).collect();
        MysqlColumns { names, kinds }
    }

    /// The name of each and its definition.
    pub(crate) fn each(&self) -> impl ExactSizeIterator<Item = Vec<u8>> {
        self.names.iter().zip(&self.kinds).map(|(name, kind)| {
            let mut message = Vec::new();
            kind.definition(name).encode(&mut message);
            message
        })
    }

    /// Passes each row of a batch to `put`.
    pub(crate) fn rows(&self, batch: &RecordBatch, form: RowForm) -> Result<BatchRows, StatementRefusal> {
        let cells = batch.columns().iter().zip(&self.kinds);
        let cells =
            cells.map(|(column, kind)| MysqlCells::of(column, *kind)).collect::<Result<Vec<_>, _>>()?;
        Ok(BatchRows { cells, count: batch.num_rows(), form })
    }
}

/// The rows of a batch.
pub(crate) struct BatchRows {
    cells: Vec<MysqlCells>,
    count: usize,
    form: RowForm,
}

impl BatchRows {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Appends a row.
    ///
    /// # Errors
    ///
    /// A time that MySQL doesn't have.
    pub(crate) fn put(&self, row: usize, out: &mut Vec<u8>) -> Result<(), StatementRefusal> {
        encoded::put_row(&self.cells, row, self.form, out)
    }
}

/// The definition of a parameter of a prepared statement.
pub(crate) fn parameter_definition() -> Vec<u8> {
    let mut message = Vec::new();
    MysqlKind::Text.definition("?").encode(&mut message);
    message
}

/// Microseconds since 1970 of a date and a time; `None`: there is no such date or time.
pub(crate) fn moment_of(
    (year, month, day): (u16, u8, u8),
    [hour, minute, second, micros]: [u32; 4],
) -> Option<i64> {
    let date = dates::DateParts { year, month, day };
    let days = date.days();
    let is_time = hour < 24 && minute < 60 && second < 60 && micros < 1_000_000;
    if dates::DateParts::of_days(days) != Some(date) || !is_time {
        return None;
    }
    let seconds = ((days * 24 + i64::from(hour)) * 60 + i64::from(minute)) * 60 + i64::from(second);
    Some(seconds * 1_000_000 + i64::from(micros))
}
