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
use binlogz_binlog::row::{CellContent, ColumnKind, Date, RowDecoder, RowImage, Rows, TableSchema};
use binlogz_binlog::{Error, Result};

use super::value::{push_comment, push_value};
use crate::line_room::{BufferedLines, LineRoom, put_any};
use crate::mysqlbinlog::write::quote::{is_special, push_identifier};
use crate::number::{push_front, push_unsigned};

/// Room for the text before a value: the end of the previous line and `###   @4096=` is the longest.
const BEFORE_MAX: usize = 16;

/// A date without its digits; the bytes after it are not used.
const DATE: [u8; 16] = *b"'\0\0\0\0:\0\0:\0\0'\0\0\0\0";

/// The level of `-v`.
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
    /// The start of each row of the last kind of event.
    front: (Option<RowsKind>, Vec<u8>),
}

/// The text around a column's values.
#[derive(Debug)]
struct ColumnText {
    shortcut: Shortcut,
    /// The end of the previous line and `###   @1=`, then padding: copied whole, see [`push_front`].
    before: [u8; BEFORE_MAX],
    before_length: usize,
    /// The comment, if asked for.
    after: Vec<u8>,
    after_null: Vec<u8>,
}

/// The kinds of values that have a short cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortcut {
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Date,
    String,
    None,
}

impl Shortcut {
    fn of(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::TinyInt { .. } => Shortcut::TinyInt,
            ColumnKind::SmallInt { .. } => Shortcut::SmallInt,
            ColumnKind::Int { .. } => Shortcut::Int,
            ColumnKind::BigInt { .. } => Shortcut::BigInt,
            ColumnKind::Date => Shortcut::Date,
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
                Shortcut::String
            }
            _ => Shortcut::None,
        }
    }
}

impl RowsPrinter {
    /// A printer for the events of a table.
    pub fn new(schema: Arc<TableSchema>, verbosity: Verbosity) -> Self {
        Self::renamed(schema, verbosity, None)
    }

    /// A printer that uses another database name.
    pub(crate) fn renamed(schema: Arc<TableSchema>, verbosity: Verbosity, database: Option<&[u8]>) -> Self {
        let mut table = Vec::new();
        push_identifier(&mut table, database.unwrap_or(&schema.database));
        table.push(b'.');
        push_identifier(&mut table, &schema.table);
        let columns = schema.columns().iter().enumerate().map(|(index, column)| {
            let mut before = b"\n###   @".to_vec();
            push_unsigned(&mut before, index as u64 + 1);
            before.push(b'=');
            let before_length = before.len();
            before.resize(BEFORE_MAX, b' ');
            let after = |is_null| {
                let mut after = Vec::new();
                if verbosity >= Verbosity::Types {
                    push_comment(&mut after, column, is_null);
                }
                after
            };
            let before = *before.first_chunk().unwrap_or(&[b' '; BEFORE_MAX]);
            ColumnText {
                shortcut: Shortcut::of(column.kind),
                before,
                before_length,
                after: after(false),
                after_null: after(true),
            }
        });
        RowsPrinter { columns: columns.collect(), table, verbosity, front: (None, Vec::new()), schema }
    }

    /// The table that it prints.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Approximately the bytes that it takes, its table included.
    pub(crate) fn memory(&self) -> usize {
        let texts = self.columns.iter().map(|column| column.after.capacity() + column.after_null.capacity());
        let columns = self.columns.len() * size_of::<ColumnText>() + texts.sum::<usize>();
        size_of::<Self>() + self.table.capacity() + self.front.1.capacity() + columns + self.schema.memory()
    }

    /// Appends the lines of an event. `room` may be used again for any table.
    ///
    /// # Errors
    ///
    /// Rows or values that can't be read. Text that was appended before them stays.
    pub fn print(
        &mut self,
        room: &mut LineRoom,
        out: &mut Vec<u8>,
        decoder: &mut RowDecoder,
        event: &RowsEvent<'_>,
    ) -> Result<()> {
        self.print_by_row(room, out, decoder.rows(&Arc::clone(&self.schema), event)?, event, |_| Ok(()))
    }

    /// As [`RowsPrinter::print`], of an event's rows that fit it, but calls `after_row` after each row, which may take what
    /// was appended: the text of an event can be many times as long as the event.
    ///
    /// # Errors
    ///
    /// The errors of [`RowsPrinter::print`], and those of `after_row`.
    pub(crate) fn print_by_row<E: From<Error>>(
        &mut self,
        room: &mut LineRoom,
        out: &mut Vec<u8>,
        mut rows: Rows<'_, '_>,
        event: &RowsEvent<'_>,
        mut after_row: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        for info in event.extra_row_info() {
            push_extra_row_info(out, &info?);
        }
        let (command, first, second): (&[u8], &[u8], &[u8]) = match event.kind() {
            RowsKind::Write => (b"### INSERT INTO ", b"", b"\n### SET"),
            RowsKind::Delete => (b"### DELETE FROM ", b"\n### WHERE", b""),
            RowsKind::Update | RowsKind::PartialUpdate => (b"### UPDATE ", b"\n### WHERE", b"\n### SET"),
        };
        if event.kind() == RowsKind::Write && event.rows.is_empty() {
            push_all(out, &[command, &self.table, b" VALUES ()\n"]);
            return after_row(out);
        }
        let mut scratch = Vec::new();
        let (kind, front) = &mut self.front;
        if *kind != Some(event.kind()) {
            *kind = Some(event.kind());
            front.clear();
            let next = if event.kind() == RowsKind::Write { second } else { first };
            push_all(front, &[command, &self.table, next]);
        }
        let front = &self.front.1;
        if self.verbosity == Verbosity::Values {
            let mut lines = room.lines(out);
            let mut apart = [Vec::new(), scratch];
            loop {
                let row = match rows.next_row() {
                    Ok(Some(row)) => row,
                    ended => {
                        lines.end();
                        return Ok(ended.map(drop)?);
                    }
                };
                lines.put_text(front);
                if let Some(before) = row.before {
                    lines = values(&self.columns, lines, &before, &mut apart)?;
                }
                if let Some(after) = row.after {
                    if row.before.is_some() {
                        lines.put_text(second);
                    }
                    lines = values(&self.columns, lines, &after, &mut apart)?;
                }
                lines.step();
                lines.put(b"\n", 1);
                if lines.is_long() {
                    after_row(lines.out())?;
                }
            }
        }
        while let Some(row) = rows.next_row()? {
            out.extend_from_slice(front);
            if let Some(before) = row.before {
                self.image(out, &before, &mut scratch)?;
            }
            if let Some(after) = row.after {
                if row.before.is_some() {
                    out.extend_from_slice(second);
                }
                self.image(out, &after, &mut scratch)?;
            }
            out.push(b'\n');
            after_row(out)?;
        }
        Ok(())
    }

    fn image(&self, out: &mut Vec<u8>, image: &RowImage<'_, '_>, scratch: &mut Vec<u8>) -> Result<()> {
        for cell in image.cells() {
            let Some(text) = self.columns.get(cell.index) else { continue };
            push_front(out, &text.before, text.before_length);
            push_value(out, &cell, scratch)?;
            let is_null = cell.content == CellContent::Null;
            out.extend_from_slice(if is_null { &text.after_null } else { &text.after });
        }
        Ok(())
    }
}

/// Writes the lines of an image, without types and without the last line's end. On failure they are still
/// appended.
#[inline]
fn values<'l>(
    columns: &[ColumnText],
    mut lines: BufferedLines<'l>,
    image: &RowImage<'_, '_>,
    apart: &mut [Vec<u8>; 2],
) -> Result<BufferedLines<'l>> {
    for cell in image.cells() {
        let Some(text) = columns.get(cell.index) else { continue };
        lines.step();
        lines.put(&text.before, text.before_length);
        match cell.content {
            CellContent::Null => lines.put(b"NULL", 4),
            CellContent::Value(bytes) if put_value(&mut lines, text.shortcut, bytes) => {}
            // Pass the index: a cell whose address is taken would be written to memory for every value.
            _ => lines = put_any(lines, image, cell.index, apart, push_value)?,
        }
    }
    Ok(lines)
}

/// Writes a value, if there is a short cut for it.
#[inline(always)]
fn put_value(lines: &mut BufferedLines<'_>, shortcut: Shortcut, bytes: &[u8]) -> bool {
    match shortcut {
        Shortcut::Int => match bytes.first_chunk() {
            Some(bytes) => lines.put_integer(i32::from_le_bytes(*bytes).into(), 32),
            None => return false,
        },
        Shortcut::String => return lines.put_quoted(bytes, b'\'', is_special),
        Shortcut::Date => {
            match bytes.first_chunk().and_then(|bytes| Date::from_bytes(*bytes).digit_pairs()) {
                Some(pairs) => lines.put_date(pairs, DATE),
                None => return false,
            }
        }
        Shortcut::BigInt => match bytes.first_chunk() {
            Some(bytes) => lines.put_integer(i64::from_le_bytes(*bytes), 64),
            None => return false,
        },
        Shortcut::SmallInt => match bytes.first_chunk() {
            Some(bytes) => lines.put_integer(i16::from_le_bytes(*bytes).into(), 16),
            None => return false,
        },
        Shortcut::TinyInt => match bytes.first_chunk() {
            Some(bytes) => lines.put_integer(i8::from_le_bytes(*bytes).into(), 8),
            None => return false,
        },
        Shortcut::None => return false,
    }
    true
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
