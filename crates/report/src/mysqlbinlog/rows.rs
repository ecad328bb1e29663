//! The `###` lines of a row event: each row as a statement with its columns.
//!
//! ```text
//! ### UPDATE `db`.`table`
//! ### WHERE
//! ###   @1=1
//! ### SET
//! ###   @1=2
//! ```

use std::sync::Arc;

use binlogz_binlog::event::{ExtraRowInfo, RowsEvent, RowsKind};
use binlogz_binlog::row::{CellContent, RowDecoder, RowImage, TableSchema};
use binlogz_binlog::{Error, Result};

use super::number::{push_front, push_unsigned};
use super::quote::push_identifier;
use super::value::{push_comment, push_value};

/// Room for what stands in front of a value: `###   @4096=` is the longest.
const BEFORE_MAX: usize = 16;

/// How much `-v` was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// `-v`: the values.
    Values,
    /// `-vv`: also the columns' types.
    Types,
}

/// Prints row events of one table.
#[derive(Debug)]
pub struct RowsPrinter {
    schema: Arc<TableSchema>,
    /// `` `db`.`table` `` and the end of the line.
    table: Vec<u8>,
    columns: Vec<ColumnText>,
    verbosity: Verbosity,
}

/// What stands around a column's values.
#[derive(Debug)]
struct ColumnText {
    /// `###   @1=`, then nothing of importance: copied whole, see [`push_front`].
    before: [u8; BEFORE_MAX],
    before_length: usize,
    /// The comment, if asked for, and the end of the line.
    after: Vec<u8>,
    after_null: Vec<u8>,
}

impl RowsPrinter {
    /// A printer for the events of a table.
    pub fn new(schema: Arc<TableSchema>, verbosity: Verbosity) -> Self {
        Self::renamed(schema, verbosity, None)
    }

    /// A printer that names the database otherwise.
    pub(super) fn renamed(schema: Arc<TableSchema>, verbosity: Verbosity, database: Option<&[u8]>) -> Self {
        let mut table = Vec::new();
        push_identifier(&mut table, database.unwrap_or(&schema.database));
        table.push(b'.');
        push_identifier(&mut table, &schema.table);
        let columns = schema.columns().iter().enumerate().map(|(index, column)| {
            let mut before = b"###   @".to_vec();
            push_unsigned(&mut before, index as u64 + 1);
            before.push(b'=');
            let before_length = before.len();
            before.resize(BEFORE_MAX, b' ');
            let after = |is_null| {
                let mut after = Vec::new();
                if verbosity >= Verbosity::Types {
                    push_comment(&mut after, column, is_null);
                }
                after.push(b'\n');
                after
            };
            let before = *before.first_chunk().unwrap_or(&[b' '; BEFORE_MAX]);
            ColumnText { before, before_length, after: after(false), after_null: after(true) }
        });
        RowsPrinter { columns: columns.collect(), table, verbosity, schema }
    }

    /// The table that it prints.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Appends the lines of an event.
    ///
    /// # Errors
    ///
    /// Rows or values that can't be read. What was appended up to there stays.
    pub fn print(&self, out: &mut Vec<u8>, decoder: &mut RowDecoder, event: &RowsEvent<'_>) -> Result<()> {
        self.print_by_row(out, decoder, event, |_| Ok(()))
    }

    /// As [`RowsPrinter::print`], but calls `after_row` behind each row, which may take what was
    /// appended: the text of an event can be many times as long as the event.
    ///
    /// # Errors
    ///
    /// Those of [`RowsPrinter::print`], and those of `after_row`.
    pub fn print_by_row<E: From<Error>>(
        &self,
        out: &mut Vec<u8>,
        decoder: &mut RowDecoder,
        event: &RowsEvent<'_>,
        mut after_row: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        for info in event.extra_row_info() {
            push_extra_row_info(out, &info?);
        }
        let (command, first, second): (&[u8], &[u8], &[u8]) = match event.kind() {
            RowsKind::Write => (b"### INSERT INTO ", b"", b"### SET\n"),
            RowsKind::Delete => (b"### DELETE FROM ", b"### WHERE\n", b""),
            RowsKind::Update | RowsKind::PartialUpdate => (b"### UPDATE ", b"### WHERE\n", b"### SET\n"),
        };
        if event.kind() == RowsKind::Write && event.rows.is_empty() {
            push_all(out, &[command, &self.table, b" VALUES ()\n"]);
            return after_row(out);
        }
        let mut scratch = Vec::new();
        let front =
            [command, &self.table, b"\n", if event.kind() == RowsKind::Write { second } else { first }]
                .concat();
        let mut rows = decoder.rows(&self.schema, event)?;
        while let Some(row) = rows.next_row()? {
            out.extend_from_slice(&front);
            if let Some(before) = row.before {
                self.image(out, &before, &mut scratch)?;
            }
            if let Some(after) = row.after {
                if row.before.is_some() {
                    out.extend_from_slice(second);
                }
                self.image(out, &after, &mut scratch)?;
            }
            after_row(out)?;
        }
        Ok(())
    }

    fn image(&self, out: &mut Vec<u8>, image: &RowImage<'_, '_>, scratch: &mut Vec<u8>) -> Result<()> {
        for cell in image.cells() {
            let Some(text) = self.columns.get(cell.index) else { continue };
            push_front(out, &text.before, text.before_length);
            push_value(out, &cell, scratch)?;
            // Without types only the line ends: one byte, which needs no copying by length.
            if self.verbosity == Verbosity::Values {
                out.push(b'\n');
                continue;
            }
            let is_null = cell.content == CellContent::Null;
            out.extend_from_slice(if is_null { &text.after_null } else { &text.after });
        }
        Ok(())
    }
}

fn push_all(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn push_extra_row_info(out: &mut Vec<u8>, info: &ExtraRowInfo<'_>) {
    let text = match *info {
        ExtraRowInfo::Ndb { format, data } => {
            let hexadecimal: String = data.iter().map(|byte| format!("{byte:02X}")).collect();
            format!(
                "### Extra row ndb info: data_format: {format}, len: {}, data: 0x{hexadecimal}\n",
                data.len()
            )
        }
        ExtraRowInfo::Partition { partition_id, source_partition_id: Some(source) } => format!(
            "### Extra row info for partitioning: source_partition: {source} target_partition: {partition_id}\n"
        ),
        ExtraRowInfo::Partition { partition_id, .. } => {
            format!("### Extra row info for partitioning: partition: {partition_id}\n")
        }
        _ => return,
    };
    out.extend_from_slice(text.as_bytes());
}
