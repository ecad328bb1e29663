//! The report of compress and expand: a table for people, a document for machines.
//!
//! Goes to standard output, or to standard error where the result itself goes to standard output.
//! docs/reference/commands.md describes the JSON document; its fields only ever grow.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use binlogz_binlog::printable;
use binlogz_figures::grouped;
use binlogz_flow::{CutEvent, LostRange, Summary};
use binlogz_payload::Tally;
use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::terminal::{self, SizesArg};

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table
    Text,
    /// One JSON document; its fields are stable
    Json,
}

/// Which way the logs were rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verb {
    Compress,
    Expand,
}

/// Collects results and prints them.
pub(crate) struct Report {
    out: Box<dyn Write>,
    format: Format,
    sizes: SizesArg,
    verb: Verb,
    name_width: usize,
    files: Vec<FileReport>,
    failed: Vec<FailedFile>,
    total: Total,
}

#[derive(Debug, Serialize)]
struct FileReport {
    file: String,
    output: String,
    bytes_read: u64,
    bytes_written: u64,
    #[serde(flatten)]
    transactions: Transactions,
    cut: Option<CutReport>,
    lost: Vec<LostReport>,
}

/// The event that the end of a log in use cuts off, for machines.
#[derive(Debug, Serialize)]
pub(crate) struct CutReport {
    offset: u64,
    bytes: u64,
}

impl From<CutEvent> for CutReport {
    fn from(cut: CutEvent) -> Self {
        CutReport { offset: cut.offset, bytes: cut.size }
    }
}

/// What was left out of a damaged log, for machines.
#[derive(Debug, Serialize)]
struct LostReport {
    start: u64,
    end: u64,
    damage: u64,
    gtid: Option<String>,
    error: String,
}

impl From<&LostRange> for LostReport {
    fn from(lost: &LostRange) -> Self {
        LostReport {
            start: lost.range.start,
            end: lost.range.end,
            damage: lost.damage,
            gtid: lost.gtid.map(|gtid| gtid.to_string()),
            error: lost.why.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
struct FailedFile {
    file: String,
    error: String,
}

#[derive(Debug, Default)]
struct Total {
    files: usize,
    bytes_read: u64,
    bytes_written: u64,
    tally: Tally,
}

/// The counts of a [`Tally`] under the names that machines read.
#[derive(Debug, Serialize)]
struct Transactions {
    transactions: u64,
    changed: u64,
    /// performance_schema's names and sums: bytes inside payloads, without checksums.
    uncompressed_bytes: u64,
    compressed_bytes: u64,
    left: BTreeMap<&'static str, u64>,
}

impl From<&Tally> for Transactions {
    fn from(tally: &Tally) -> Self {
        Transactions {
            transactions: tally.transactions(),
            changed: tally.changed,
            uncompressed_bytes: tally.uncompressed_bytes,
            compressed_bytes: tally.compressed_bytes,
            left: tally.left().map(|(reason, count)| (reason.name(), count)).collect(),
        }
    }
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    command: Verb,
    files: &'a [FileReport],
    failed: &'a [FailedFile],
    total: TotalReport,
}

#[derive(Serialize)]
struct TotalReport {
    files: usize,
    bytes_read: u64,
    bytes_written: u64,
    #[serde(flatten)]
    transactions: Transactions,
}

/// The width of a size, and of a percentage.
const SIZE_WIDTH: usize = 10;
const EXACT_SIZE_WIDTH: usize = 15;
const PERCENTAGE_WIDTH: usize = 9;
/// What follows the name on a line at the least.
const REST_WIDTH: usize = 2 * (1 + SIZE_WIDTH) + 1 + PERCENTAGE_WIDTH + 2 + "1,000 of 1,000 compressed".len();
/// No name is cut shorter than this.
const NAME_WIDTH_MIN: usize = 16;

/// The name of the line of sums.
const TOTAL: &str = "total";

impl Report {
    /// A report on logs of these names.
    pub(crate) fn new(
        out: Box<dyn Write>,
        format: Format,
        sizes: SizesArg,
        verb: Verb,
        names: &[String],
    ) -> Self {
        let longest = names.iter().map(|name| printable(name).chars().count()).max().unwrap_or(0);
        let room = terminal::width().map(|width| width.saturating_sub(REST_WIDTH).max(NAME_WIDTH_MIN));
        let name_width = longest.min(room.unwrap_or(usize::MAX)).max(TOTAL.len());
        Report {
            out,
            format,
            sizes,
            verb,
            name_width,
            files: Vec::new(),
            failed: Vec::new(),
            total: Total::default(),
        }
    }

    /// A log is done.
    pub(crate) fn done(
        &mut self,
        name: &str,
        output: &dyn fmt::Display,
        summary: &Summary,
        lost: &[LostRange],
    ) -> Result<()> {
        if self.total.files == 0 && self.format == Format::Text {
            self.heading()?;
        }
        self.total.files += 1;
        self.total.bytes_read += summary.bytes_read;
        self.total.bytes_written += summary.bytes_written;
        self.total.tally.add(&summary.tally);
        match self.format {
            Format::Text => self.row(name, summary.bytes_read, summary.bytes_written, &summary.tally),
            Format::Json => {
                self.files.push(FileReport {
                    file: name.to_string(),
                    output: output.to_string(),
                    bytes_read: summary.bytes_read,
                    bytes_written: summary.bytes_written,
                    transactions: (&summary.tally).into(),
                    cut: summary.cut.map(CutReport::from),
                    lost: lost.iter().map(LostReport::from).collect(),
                });
                Ok(())
            }
        }
    }

    /// A log could not be done.
    pub(crate) fn failed(&mut self, name: &str, error: &str) {
        if self.format == Format::Json {
            self.failed.push(FailedFile { file: name.to_string(), error: error.to_string() });
        }
    }

    /// Prints the sums after all logs.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.format == Format::Json {
            return self.document();
        }
        let total = std::mem::take(&mut self.total);
        if total.files > 1 {
            self.row(TOTAL, total.bytes_read, total.bytes_written, &total.tally)?;
        }
        let mut left = total.tally.left().peekable();
        if left.peek().is_some() {
            self.line(format_args!("\nleft as they are:"))?;
        }
        for (reason, count) in left {
            self.line(format_args!("{:>15}  {reason}", grouped(count)))?;
        }
        Ok(())
    }

    fn heading(&mut self) -> Result<()> {
        let (width, size) = (self.name_width, self.size_width());
        let difference = match self.verb {
            Verb::Compress => "saved",
            Verb::Expand => "grown by",
        };
        self.line(format_args!(
            "{:width$} {:>size$} {:>size$} {difference:>PERCENTAGE_WIDTH$}  transactions",
            "file", "before", "after"
        ))
    }

    fn size_width(&self) -> usize {
        if self.sizes.are_exact() { EXACT_SIZE_WIDTH } else { SIZE_WIDTH }
    }

    fn row(&mut self, name: &str, before: u64, after: u64, tally: &Tally) -> Result<()> {
        let (difference, changed) = match self.verb {
            Verb::Compress => (less(after, before), "compressed"),
            Verb::Expand => (more(after, before), "expanded"),
        };
        let (width, size) = (self.name_width, self.size_width());
        let name = end_of(&printable(name), width);
        let (before, after) = (self.sizes.show(before), self.sizes.show(after));
        let (count, of) = (grouped(tally.changed), grouped(tally.transactions()));
        self.line(format_args!(
            "{name:width$} {before:>size$} {after:>size$} {difference:>PERCENTAGE_WIDTH$}  {count} of {of} {changed}"
        ))
    }

    fn document(&mut self) -> Result<()> {
        let total = &self.total;
        let document = Document {
            command: self.verb,
            files: &self.files,
            failed: &self.failed,
            total: TotalReport {
                files: total.files,
                bytes_read: total.bytes_read,
                bytes_written: total.bytes_written,
                transactions: (&total.tally).into(),
            },
        };
        let text = serde_json::to_string_pretty(&document);
        let text = text.map_err(|error| Failure::of(&"report", error))?;
        self.line(format_args!("{text}"))
    }

    /// A reader that has seen enough of the report does not end the work.
    fn line(&mut self, line: fmt::Arguments<'_>) -> Result<()> {
        match writeln!(self.out, "{line}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::of(&"write the report", error))
            }
            _ => Ok(()),
        }
    }
}

/// The end of a name that is too long: a path's last parts say most.
fn end_of(name: &str, width: usize) -> String {
    let length = name.chars().count();
    match length > width {
        true => std::iter::once('…').chain(name.chars().skip(length + 1 - width)).collect(),
        false => name.to_owned(),
    }
}

/// By how much it is smaller than before, in per cent of before; negative if it is larger.
pub(crate) fn less(after: u64, before: u64) -> String {
    match before {
        0 => "-".to_owned(),
        before => format!("{:.1} %", 100.0 - 100.0 * after as f64 / before as f64),
    }
}

/// By how much it is larger than before.
fn more(after: u64, before: u64) -> String {
    match before {
        0 => "-".to_owned(),
        before => format!("{:.1} %", 100.0 * after as f64 / before as f64 - 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saving_may_be_negative_and_nothing_saves_nothing() {
        assert_eq!(less(1, 4), "75.0 %");
        assert_eq!(less(5, 4), "-25.0 %");
        assert_eq!(less(0, 0), "-");
        assert_eq!(more(4, 1), "300.0 %");
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(end_of("binlog.000001", 13), "binlog.000001");
        assert_eq!(end_of("/var/lib/mysql/binlog.000001", 15), "…/binlog.000001");
    }
}
