//! Prints batches: as a table for people, a line for each column, CSV, TSV, a JSON object a line, Arrow's stream, or a Parquet file.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::error::{Error, Result};
use crate::run::engine::BatchOutput;

/// Rows of a table that are held to find how wide its columns are.
const HELD_MAX: usize = 1000;

/// Between two columns.
const COLUMN_GAP: usize = 2;

/// Columns that a value has at least, in addition to its name.
const VALUE_MIN: usize = 24;

/// The columns of EXPLAIN's answer.
const PLAN: [&str; 2] = ["plan_type", "plan"];

/// Rows of a Parquet row group, and bytes after which it ends earlier.
pub(crate) const ROW_GROUP_MAX: usize = 256 << 10;
pub(crate) const ROW_GROUP_BYTES_MAX: usize = 64 << 20;
/// The level of zstd in Parquet files: the library's default.
pub const PARQUET_LEVEL: i32 = 3;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsFormat {
    /// A table for people.
    Table,
    /// A line for each column, each row a paragraph.
    Tall,
    /// Comma-separated values with a heading; NULL is empty.
    Csv,
    /// As `mysql --batch` writes them.
    Tsv,
    /// One JSON object a line.
    Json,
    /// Arrow's IPC stream.
    Arrow,
    /// A Parquet file, of one statement.
    Parquet,
}

/// Prints the rows of statements, one after the other.
pub struct RowPrinter<W: Write + Send> {
    format: RowsFormat,
    out: Option<W>,
    state: PrintState<W>,
    /// The columns of the terminal that tables go to.
    width: Option<usize>,
    /// A Parquet file was begun: there is no second one after it.
    has_file: bool,
}

enum PrintState<W: Write + Send> {
    None,
    Table(Table),
    /// The answer of EXPLAIN: plans of many lines.
    Plan,
    Lines,
    Json(LineDelimitedWriter<W>),
    Arrow(Box<StreamWriter<W>>),
    Parquet(Box<ArrowWriter<W>>),
}

/// A table whose widths are not known before its first rows.
struct Table {
    names: Vec<String>,
    /// Whether numbers: they stand on the right.
    right: Vec<bool>,
    held: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
    rows: usize,
    /// The columns of the terminal.
    width: Option<usize>,
    /// Whether a row is wider than that: each column has a line of its own then.
    is_tall: bool,
}

impl<W: Write + Send> std::fmt::Debug for RowPrinter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer").field("format", &self.format).finish_non_exhaustive()
    }
}

impl<W: Write + Send> RowPrinter<W> {
    /// A printer to `out`, which should be buffered.
    pub fn new(format: RowsFormat, out: W) -> Self {
        RowPrinter { format, out: Some(out), state: PrintState::None, width: None, has_file: false }
    }

    /// Fits lines to a terminal of this many columns; `None`: lines may have any length.
    pub fn fit(self, width: Option<usize>) -> Self {
        RowPrinter { width, ..self }
    }

    /// Passes on all bytes.
    ///
    /// # Errors
    ///
    /// An output that fails.
    pub fn finish(mut self) -> Result<()> {
        match &mut self.out {
            Some(out) => Ok(out.flush()?),
            None => Ok(()),
        }
    }

    fn out(&mut self) -> Result<&mut W> {
        self.out.as_mut().ok_or_else(|| Error::Sql("a statement before did not end".to_owned()))
    }
}

impl<W: Write + Send> BatchOutput for RowPrinter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> Result<()> {
        if schema.fields().is_empty() {
            self.state = PrintState::None;
            return Ok(());
        }
        let names = schema.fields().iter().map(|field| field.name().as_str());
        match self.format {
            RowsFormat::Table | RowsFormat::Tall if names.clone().eq(PLAN) => self.state = PrintState::Plan,
            RowsFormat::Table => self.state = PrintState::Table(Table::new(schema, self.width)),
            RowsFormat::Tall => self.state = PrintState::Table(Table::tall(schema, self.width)),
            RowsFormat::Csv => {
                let line = line(names.map(csv));
                self.out()?.write_all(line.as_bytes())?;
                self.state = PrintState::Lines;
            }
            RowsFormat::Tsv => {
                let names: Vec<_> = names.map(tsv).collect();
                writeln!(self.out()?, "{}", names.join("\t"))?;
                self.state = PrintState::Lines;
            }
            RowsFormat::Json => {
                if let Some(out) = self.out.take() {
                    self.state = PrintState::Json(LineDelimitedWriter::new(out));
                }
            }
            RowsFormat::Arrow => {
                if let Some(out) = self.out.take() {
                    let writer = StreamWriter::try_new(out, schema).map_err(failed)?;
                    self.state = PrintState::Arrow(Box::new(writer));
                }
            }
            RowsFormat::Parquet => {
                let Some(out) = self.out.take_if(|_| !self.has_file) else {
                    return Err(Error::Sql("a Parquet file holds the rows of one statement".to_owned()));
                };
                self.has_file = true;
                let level = ZstdLevel::try_new(PARQUET_LEVEL).map_err(|error| failed(error.into()))?;
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(level))
                    // A list's member is `element`, as Parquet and Iceberg have it.
                    .set_coerce_types(true)
                    .set_max_row_group_row_count(Some(ROW_GROUP_MAX))
                    .build();
                let writer = ArrowWriter::try_new(out, Arc::clone(schema), Some(properties));
                self.state = PrintState::Parquet(Box::new(writer.map_err(|error| failed(error.into()))?));
            }
        }
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let format = self.format;
        match &mut self.state {
            PrintState::None => Ok(()),
            PrintState::Json(writer) => writer.write(batch).map_err(failed),
            PrintState::Arrow(writer) => writer.write(batch).map_err(failed),
            PrintState::Parquet(writer) => {
                writer.write(batch).map_err(|error| failed(error.into()))?;
                // A row group is held until it is whole.
                if writer.in_progress_size() > ROW_GROUP_BYTES_MAX {
                    writer.flush().map_err(|error| failed(error.into()))?;
                }
                Ok(())
            }
            PrintState::Table(table) => {
                let Some(out) = &mut self.out else { return Ok(()) };
                each_row(batch, "NULL", |row| table.row(row, out))
            }
            PrintState::Plan => {
                let Some(out) = &mut self.out else { return Ok(()) };
                each_row(batch, "", |row| {
                    let lines = row.iter().flat_map(|cell| cell.lines());
                    lines.map(shown).try_for_each(|line| Ok(writeln!(out, "{line}")?))
                })
            }
            PrintState::Lines => {
                let Some(out) = &mut self.out else { return Ok(()) };
                let null = if format == RowsFormat::Tsv { "NULL" } else { "" };
                each_row(batch, null, |row| {
                    let line = match format {
                        RowsFormat::Tsv => {
                            let cells: Vec<_> = row.iter().map(|cell| tsv(cell)).collect();
                            cells.join("\t") + "\n"
                        }
                        _ => line(row.iter().map(|cell| csv(cell))),
                    };
                    Ok(out.write_all(line.as_bytes())?)
                })
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.state, PrintState::None) {
            PrintState::None | PrintState::Plan | PrintState::Lines => Ok(()),
            PrintState::Table(mut table) => table.end(self.out()?),
            PrintState::Json(mut writer) => {
                writer.finish().map_err(failed)?;
                self.out = Some(writer.into_inner());
                Ok(())
            }
            PrintState::Arrow(mut writer) => {
                writer.finish().map_err(failed)?;
                self.out = Some(writer.into_inner().map_err(failed)?);
                Ok(())
            }
            PrintState::Parquet(writer) => {
                self.out = Some(writer.into_inner().map_err(|error| failed(error.into()))?);
                Ok(())
            }
        }
    }
}

/// The cells of each row as text.
fn each_row(batch: &RecordBatch, null: &str, mut take: impl FnMut(Vec<String>) -> Result<()>) -> Result<()> {
    let options = FormatOptions::new().with_null(null).with_display_error(true);
    let columns = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options))
        .collect::<Result<Vec<_>, ArrowError>>()
        .map_err(failed)?;
    for row in 0..batch.num_rows() {
        take(columns.iter().map(|column| column.value(row).to_string()).collect())?;
    }
    Ok(())
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// A cell in quotes where it needs them (RFC 4180).
fn csv(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// A cell as `mysql --batch` prints it.
fn tsv(cell: &str) -> String {
    cell.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\0', "\\0")
}

impl Table {
    fn new(schema: &SchemaRef, width: Option<usize>) -> Self {
        let is_number = |kind: &DataType| kind.is_numeric();
        Table {
            names: schema.fields().iter().map(|field| shown(field.name())).collect(),
            right: schema.fields().iter().map(|field| is_number(field.data_type())).collect(),
            held: Vec::new(),
            widths: None,
            rows: 0,
            width,
            is_tall: false,
        }
    }

    /// A table of which each row is a paragraph, whatever its width.
    fn tall(schema: &SchemaRef, width: Option<usize>) -> Self {
        Table { widths: Some(Vec::new()), is_tall: true, ..Table::new(schema, width) }
    }

    fn row(&mut self, row: Vec<String>, out: &mut impl Write) -> Result<()> {
        self.rows += 1;
        let row: Vec<_> = row.iter().map(|cell| shown(cell)).collect();
        match &self.widths {
            Some(_) if self.is_tall => self.write_tall(self.rows, &row, out),
            Some(widths) => self.write(&row, widths, out),
            None => {
                self.held.push(row);
                if self.held.len() == HELD_MAX { self.write_held(out) } else { Ok(()) }
            }
        }
    }

    /// Writes the heading and the rows that wait for it.
    fn write_held(&mut self, out: &mut impl Write) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let width = |text: &String| text.chars().count();
        let mut widths: Vec<_> = self.names.iter().map(width).collect();
        for row in &held {
            for (width_max, cell) in widths.iter_mut().zip(row) {
                *width_max = (*width_max).max(width(cell));
            }
        }
        let line: usize = widths.iter().map(|width| width + COLUMN_GAP).sum();
        self.is_tall = self.width.is_some_and(|width| line > width + COLUMN_GAP);
        if self.is_tall {
            self.widths = Some(widths);
            let mut rows = held.iter().enumerate();
            return rows.try_for_each(|(index, row)| self.write_tall(index + 1, row, out));
        }
        let rules: Vec<_> = widths.iter().map(|&width| "-".repeat(width)).collect();
        self.write(&self.names, &widths, out)?;
        self.write(&rules, &widths, out)?;
        held.iter().try_for_each(|row| self.write(row, &widths, out))?;
        self.widths = Some(widths);
        Ok(())
    }

    fn write(&self, row: &[String], widths: &[usize], out: &mut impl Write) -> Result<()> {
        let mut line = String::new();
        for ((cell, &width), right) in row.iter().zip(widths).zip(&self.right) {
            // A format's width has 16 bits; a cell may be longer.
            let missing = width.saturating_sub(cell.chars().count());
            let space = std::iter::repeat_n(' ', missing);
            match right {
                true => line.extend(space.chain(cell.chars())),
                false => line.extend(cell.chars().chain(space)),
            }
            line.push_str("  ");
        }
        Ok(writeln!(out, "{}", line.trim_end())?)
    }

    /// Writes a line for each column, and long values on several.
    fn write_tall(&self, number: usize, row: &[String], out: &mut impl Write) -> Result<()> {
        let width = self.width.unwrap_or(usize::MAX);
        writeln!(out, "row {number}")?;
        let name_width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let indent =
            if name_width + VALUE_MIN > width { 2 * COLUMN_GAP } else { name_width + 2 * COLUMN_GAP };
        let room = width.saturating_sub(indent).max(1);
        for (name, cell) in self.names.iter().zip(row) {
            let mut head = format!("  {name}");
            // A name that leaves no room for a value has a line of its own, or several.
            while head.chars().count() > width {
                let (line, rest) = split(&head, width);
                writeln!(out, "{line}")?;
                head = format!("  {rest}");
            }
            if head.chars().count() + COLUMN_GAP > indent {
                writeln!(out, "{head}")?;
                head.clear();
            }
            let (mut piece, mut rest) = split(cell, room);
            let space = " ".repeat(indent.saturating_sub(head.chars().count()));
            writeln!(out, "{}", format!("{head}{space}{piece}").trim_end())?;
            let space = " ".repeat(indent);
            while !rest.is_empty() {
                (piece, rest) = split(rest, room);
                writeln!(out, "{space}{piece}")?;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut impl Write) -> Result<()> {
        if self.widths.is_none() {
            self.write_held(out)?;
        }
        Ok(writeln!(out, "({} {})", self.rows, if self.rows == 1 { "row" } else { "rows" })?)
    }
}

/// The first `count` characters of a text, and the others.
fn split(text: &str, count: usize) -> (&str, &str) {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Text that can't move the cursor of a terminal.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{b7}' } else { c }).collect()
}

fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        error => Error::Sql(error.to_string()),
    }
}
