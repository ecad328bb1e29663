//! What compress and expand tell of their work: a table for people, a document for machines.
//!
//! Goes to standard output, or to standard error where the result itself goes to standard output.
//! docs/commands.md describes the JSON document; its fields only ever grow.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use binlogz_binlog::printable;
use binlogz_flow::{Cut, Lost, Summary};
use binlogz_payload::Tally;
use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{Failure, Result};

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

/// Collects what is told, and tells it.
pub(crate) struct Report {
    out: Box<dyn Write>,
    format: Format,
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

impl From<Cut> for CutReport {
    fn from(cut: Cut) -> Self {
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

impl From<&Lost> for LostReport {
    fn from(lost: &Lost) -> Self {
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

/// Heading and width of each column of numbers.
const NUMBER_COLUMNS: [(&str, usize); 3] = [("before", 15), ("after", 15), ("saved", 7)];

/// What the line of sums is called.
const TOTAL: &str = "total";

impl Report {
    /// A report on logs of these names.
    pub(crate) fn new(out: Box<dyn Write>, format: Format, verb: Verb, names: &[String]) -> Self {
        let name_width =
            names.iter().map(|name| printable(name).chars().count()).max().unwrap_or(0).max(TOTAL.len());
        Report {
            out,
            format,
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
        lost: &[Lost],
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

    /// All logs are done: tells the sums.
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
        let [before, after, saved] = NUMBER_COLUMNS.map(|(name, width)| format!("{name:>width$}"));
        let width = self.name_width;
        self.line(format_args!("{:width$} {before} {after} {saved}  transactions", "file"))
    }

    fn row(&mut self, name: &str, before: u64, after: u64, tally: &Tally) -> Result<()> {
        let [(_, before_width), (_, after_width), (_, saved_width)] = NUMBER_COLUMNS;
        let (small, large) = match self.verb {
            Verb::Compress => (after, before),
            Verb::Expand => (before, after),
        };
        let saved = saved_percentage(small, large);
        let changed = match self.verb {
            Verb::Compress => "compressed",
            Verb::Expand => "expanded",
        };
        let name = printable(name);
        let (width, before, after) = (self.name_width, grouped(before), grouped(after));
        let (count, of) = (grouped(tally.changed), grouped(tally.transactions()));
        self.line(format_args!(
            "{name:width$} {before:>before_width$} {after:>after_width$} {saved:>saved_width$}  {count} of {of} {changed}"
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

/// What the compressed form saves against the expanded one; negative where it is larger.
fn saved_percentage(compressed: u64, expanded: u64) -> String {
    if expanded == 0 {
        return "-".into();
    }
    format!("{:.1}%", 100.0 - 100.0 * compressed as f64 / expanded as f64)
}

/// A number with a comma between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn saving_may_be_negative_and_nothing_saves_nothing() {
        assert_eq!(saved_percentage(1, 4), "75.0%");
        assert_eq!(saved_percentage(5, 4), "-25.0%");
        assert_eq!(saved_percentage(0, 0), "-");
    }
}
