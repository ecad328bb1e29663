//! Prints rows of events: as a table, as `mysql --batch` does, as JSON.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;

use binlogz_figures::{RunningTable, TableCell, TableLayout};
use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{CommandFailure, Result};
use crate::pager::Pager;
use crate::terminal;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EventRowFormat {
    #[value(alias = "text")]
    Table,
    Tsv,
    Json,
}

/// The columns of SHOW BINLOG EVENTS.
pub(super) struct EventRow<'a> {
    pub(super) log_name: &'a str,
    pub(super) pos: u64,
    pub(super) event_type: &'static str,
    pub(super) server_id: u32,
    pub(super) end_log_pos: u32,
    /// Bytes, not text: statements in whatever character set they came in.
    pub(super) info: &'a [u8],
}

/// Names of the columns.
const COLUMNS: [&str; 6] = ["Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"];

/// The places of the columns that are left out where lines are short; the log's name only if all rows have the same.
const LOG_NAME: usize = 0;
const SERVER_ID: usize = 3;

/// How long the lines of the table may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventLines {
    /// As long as they have to be.
    Whole,
    /// Folded at the width of the terminal.
    Folded,
    /// Cut at this many characters.
    Cut { width: usize, has_one_log: bool },
}

impl EventLines {
    fn of(wide: bool, logs: usize) -> Self {
        match terminal::width() {
            _ if wide => EventLines::Whole,
            Some(_) => EventLines::Folded,
            None => EventLines::Cut { width: terminal::PIPE_WIDTH, has_one_log: logs == 1 },
        }
    }

    /// The cells that are shown of the columns before the last.
    fn shown<T>(self, mut cells: Vec<T>) -> Vec<T> {
        let EventLines::Cut { has_one_log, .. } = self else { return cells };
        let mut place = 0;
        cells.retain(|_| {
            let is_shown = place != SERVER_ID && (place != LOG_NAME || !has_one_log);
            place += 1;
            is_shown
        });
        cells
    }
}

/// The longest name of a type.
const TYPE_WIDTH: usize = 21;

/// Bytes written at a time.
const BUFFER_SIZE: usize = 256 << 10;

/// Prints rows to standard output.
pub(super) struct EventRowPrinter {
    out: BufWriter<File>,
    format: EventRowFormat,
    lines: EventLines,
    table: RunningTable,
    /// Whether the heading is not printed yet: it comes with the first row, so that an error stands alone.
    heading_due: bool,
    // Dropped after the output is closed: it waits for its user.
    _pager: Option<Pager>,
}

impl EventRowPrinter {
    /// Prints rows of logs with these names; `size_max` is the size of the largest log. `wide`: whole lines, wherever they go.
    pub(super) fn new(
        format: EventRowFormat,
        wide: bool,
        names: &[String],
        size_max: Option<u64>,
    ) -> Result<Self> {
        let lines = EventLines::of(wide, names.len());
        // Rows are printed before all of them are known.
        let longest = names.iter().max_by_key(|name| name.chars().count()).map_or("", String::as_str);
        let width = terminal::width().filter(|_| lines == EventLines::Folded);
        let layout = TableLayout { width, exact_sizes: true };
        // Only a terminal lacks room for the widest position that there may be.
        let position_max = size_max.filter(|_| layout.width.is_some()).unwrap_or(u32::MAX.into());
        let position = TableCell::from(position_max.max(1));
        let widest = vec![
            longest.into(),
            position.clone(),
            "x".repeat(TYPE_WIDTH).into(),
            u64::from(u32::MAX).into(),
            position,
        ];
        let columns = lines.shown(COLUMNS.get(..5).unwrap_or_default().to_vec());
        let table = RunningTable::new(&columns, COLUMNS[5], &lines.shown(widest), layout);
        let (pager, out) = match (format == EventRowFormat::Table).then(Pager::start).flatten() {
            Some((pager, out)) => (Some(pager), out),
            // Not std's stdout: that writes line by line.
            None => {
                let out = io::stdout().as_fd().try_clone_to_owned();
                (None, out.map_err(|error| failure(&error))?.into())
            }
        };
        let out = BufWriter::with_capacity(BUFFER_SIZE, out);
        Ok(EventRowPrinter { out, format, lines, table, heading_due: true, _pager: pager })
    }

    /// Prints the heading, if it is not printed yet.
    pub(super) fn heading(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.heading_due) {
            return Ok(());
        }
        let printed = match self.format {
            EventRowFormat::Table => self.table.heading(&mut self.out),
            EventRowFormat::Tsv => writeln!(self.out, "{}", COLUMNS.join("\t")),
            EventRowFormat::Json => Ok(()),
        };
        printed.map_err(|error| failure(&error))
    }

    /// Prints a row.
    pub(super) fn print(&mut self, row: &EventRow<'_>) -> Result<()> {
        self.heading()?;
        let printed = match self.format {
            EventRowFormat::Table => self.table_row(row),
            EventRowFormat::Tsv => self.tsv_row(row),
            EventRowFormat::Json => self.json_row(row),
        };
        printed.map_err(|error| failure(&error))
    }

    /// Passes on the printed bytes.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| failure(&error))
    }

    fn table_row(&mut self, row: &EventRow<'_>) -> io::Result<()> {
        let EventRow { log_name, pos, event_type, server_id, end_log_pos, info } = *row;
        let [server_id, end_log_pos] = [server_id, end_log_pos].map(u64::from);
        let cells =
            vec![log_name.into(), pos.into(), event_type.into(), server_id.into(), end_log_pos.into()];
        let cells = self.lines.shown(cells);
        let info = String::from_utf8_lossy(info);
        match self.lines {
            EventLines::Cut { width, .. } => self.table.cut_row(&cells, &info, width, &mut self.out),
            EventLines::Whole | EventLines::Folded => self.table.row(&cells, &info, &mut self.out),
        }
    }

    fn tsv_row(&mut self, row: &EventRow<'_>) -> io::Result<()> {
        let EventRow { log_name, pos, event_type, server_id, end_log_pos, info } = *row;
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

    fn json_row(&mut self, row: &EventRow<'_>) -> io::Result<()> {
        #[derive(Serialize)]
        struct JsonRow<'a> {
            log_name: &'a str,
            pos: u64,
            event_type: &'static str,
            server_id: u32,
            end_log_pos: u32,
            info: &'a str,
        }
        let EventRow { log_name, pos, event_type, server_id, end_log_pos, info } = *row;
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

fn failure(error: &io::Error) -> CommandFailure {
    CommandFailure::writing(&"standard output", error)
}
