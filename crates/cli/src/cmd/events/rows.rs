//! Prints rows of events: as a table, as `mysql --batch` does, as JSON.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use binlogz_binlog::printable;
use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{Failure, Result};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RowFormat {
    Table,
    Tsv,
    Json,
}

/// The columns of SHOW BINLOG EVENTS.
pub(super) struct Row<'a> {
    pub(super) log_name: &'a str,
    pub(super) pos: u64,
    pub(super) event_type: &'static str,
    pub(super) server_id: u32,
    pub(super) end_log_pos: u32,
    /// Bytes, not text: statements in whatever character set they came in.
    pub(super) info: &'a [u8],
}

/// Their names.
const COLUMNS: [&str; 6] = ["Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"];

/// Widths of the columns between the first and the last: 10 digits, the longest name of a type. Rows are
/// printed before all of them are known.
const WIDTHS: [usize; 4] = [10, 21, 10, 11];

/// Bytes written at a time.
const BUFFER_SIZE: usize = 256 << 10;

/// Prints rows to standard output.
pub(super) struct Rows {
    out: BufWriter<File>,
    format: RowFormat,
    name_width: usize,
}

impl Rows {
    /// Rows of logs of these names.
    pub(super) fn new(format: RowFormat, names: &[String]) -> Result<Self> {
        let names = names.iter().map(String::as_str).chain([COLUMNS[0]]);
        let name_width = names.map(|name| name.chars().count()).max().unwrap_or_default();
        // Not std's stdout: that writes line by line.
        let out = io::stdout().as_fd().try_clone_to_owned().map_err(|error| failure(&error))?;
        let mut rows = Rows { out: BufWriter::with_capacity(BUFFER_SIZE, out.into()), format, name_width };
        rows.heading().map_err(|error| failure(&error))?;
        Ok(rows)
    }

    fn heading(&mut self) -> io::Result<()> {
        match self.format {
            RowFormat::Table => {
                let [log_name, pos, event_type, server_id, end_log_pos, info] = COLUMNS;
                self.table_line([&log_name, &pos, &event_type, &server_id, &end_log_pos], info.as_bytes())
            }
            RowFormat::Tsv => writeln!(self.out, "{}", COLUMNS.join("\t")),
            RowFormat::Json => Ok(()),
        }
    }

    /// Prints a row.
    pub(super) fn print(&mut self, row: &Row<'_>) -> Result<()> {
        let printed = match self.format {
            RowFormat::Table => self.table_row(row),
            RowFormat::Tsv => self.tsv_row(row),
            RowFormat::Json => self.json_row(row),
        };
        printed.map_err(|error| failure(&error))
    }

    /// Passes on the printed bytes.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| failure(&error))
    }

    fn table_row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let Row { log_name, pos, event_type, server_id, end_log_pos, info } = *row;
        let (log_name, info) = (printable(log_name), String::from_utf8_lossy(info));
        let info = printable(&info);
        self.table_line([&log_name, &pos, &event_type, &server_id, &end_log_pos], info.as_bytes())
    }

    fn table_line(&mut self, columns: [&dyn Display; 5], info: &[u8]) -> io::Result<()> {
        let [log_name, pos, event_type, server_id, end_log_pos] = columns;
        let [pos_width, type_width, id_width, end_width] = WIDTHS;
        let name_width = self.name_width;
        write!(
            self.out,
            "{log_name:name_width$}  {pos:>pos_width$}  {event_type:type_width$}  {server_id:>id_width$}  \
             {end_log_pos:>end_width$}  "
        )?;
        self.out.write_all(info)?;
        self.out.write_all(b"\n")
    }

    fn tsv_row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let Row { log_name, pos, event_type, server_id, end_log_pos, info } = *row;
        write!(self.out, "{log_name}\t{pos}\t{event_type}\t{server_id}\t{end_log_pos}\t")?;
        for part in info.split_inclusive(|byte| batch_escape(*byte).is_some()) {
            match part.split_last() {
                Some((last, before)) if batch_escape(*last).is_some() => {
                    self.out.write_all(before)?;
                    self.out.write_all(batch_escape(*last).unwrap_or_default())?;
                }
                _ => self.out.write_all(part)?,
            }
        }
        self.out.write_all(b"\n")
    }

    fn json_row(&mut self, row: &Row<'_>) -> io::Result<()> {
        #[derive(Serialize)]
        struct JsonRow<'a> {
            log_name: &'a str,
            pos: u64,
            event_type: &'static str,
            server_id: u32,
            end_log_pos: u32,
            info: &'a str,
        }
        let Row { log_name, pos, event_type, server_id, end_log_pos, info } = *row;
        let info = String::from_utf8_lossy(info);
        let row = JsonRow { log_name, pos, event_type, server_id, end_log_pos, info: &info };
        serde_json::to_writer(&mut self.out, &row)?;
        self.out.write_all(b"\n")
    }
}

/// The escape that `mysql --batch` prints for a byte.
fn batch_escape(byte: u8) -> Option<&'static [u8]> {
    match byte {
        0 => Some(b"\\0"),
        b'\n' => Some(b"\\n"),
        b'\t' => Some(b"\\t"),
        b'\\' => Some(b"\\\\"),
        _ => None,
    }
}

fn failure(error: &io::Error) -> Failure {
    Failure::writing(&"standard output", error)
}
