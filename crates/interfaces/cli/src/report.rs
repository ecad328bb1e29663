//! The report of compress and expand: a table for people, a document for machines.
//!
//! Goes to standard output, or to standard error where the result itself goes to standard output.
//! docs/reference/commands.md describes the JSON document; its fields only ever grow.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use binlogz_figures::FigureFormat::Table;
use binlogz_figures::{Section, TableCell, TableLayout};
use binlogz_flow::{CutEvent, LostRange, RewriteSummary};
use binlogz_payload::Tally;
use serde::Serialize;

use crate::failure::{CommandFailure, Result};
use crate::format::ReportFormat;

/// Which way the logs were rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verb {
    Compress,
    Expand,
}

/// Collects results and prints them.
pub(crate) struct ResultReport {
    out: Box<dyn Write>,
    format: ReportFormat,
    layout: TableLayout,
    verb: Verb,
    rows: Vec<Vec<TableCell>>,
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

/// The parts left out of a damaged log, for machines.
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

/// The columns of the tables.
const COMPRESSED: &[&str] =
    &["file", "bytes_before", "bytes_after", "saved_percent", "transactions", "compressed"];
const EXPANDED: &[&str] =
    &["file", "bytes_before", "bytes_after", "grown_percent", "transactions", "expanded"];
/// The name of the line of sums.
const TOTAL: &str = "total";

impl ResultReport {
    /// A report that is printed at the end.
    pub(crate) fn new(out: Box<dyn Write>, format: ReportFormat, layout: TableLayout, verb: Verb) -> Self {
        ResultReport {
            out,
            format,
            layout,
            verb,
            rows: Vec::new(),
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
        summary: &RewriteSummary,
        lost: &[LostRange],
    ) {
        self.total.files += 1;
        self.total.bytes_read += summary.bytes_read;
        self.total.bytes_written += summary.bytes_written;
        self.total.tally.add(&summary.tally);
        match self.format {
            ReportFormat::Text => {
                let row = self.row(name, summary.bytes_read, summary.bytes_written, &summary.tally);
                self.rows.push(row);
            }
            ReportFormat::Json => {
                self.files.push(FileReport {
                    file: name.to_string(),
                    output: output.to_string(),
                    bytes_read: summary.bytes_read,
                    bytes_written: summary.bytes_written,
                    transactions: (&summary.tally).into(),
                    cut: summary.cut.map(CutReport::from),
                    lost: lost.iter().map(LostReport::from).collect(),
                });
            }
        }
    }

    /// A log could not be done.
    pub(crate) fn failed(&mut self, name: &str, error: &str) {
        if self.format == ReportFormat::Json {
            self.failed.push(FailedFile { file: name.to_string(), error: error.to_string() });
        }
    }

    /// Prints the sums after all logs.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.format == ReportFormat::Json {
            return self.document();
        }
        let total = std::mem::take(&mut self.total);
        if total.files > 1 {
            let row = self.row(TOTAL, total.bytes_read, total.bytes_written, &total.tally);
            self.rows.push(row);
        }
        let left: Vec<Vec<TableCell>> =
            total.tally.left().map(|(reason, count)| vec![count.into(), reason.to_string().into()]).collect();
        let (title, columns) = match self.verb {
            Verb::Compress => ("Compressed", COMPRESSED),
            Verb::Expand => ("Expanded", EXPANDED),
        };
        let files = Section { name: "files", title, columns, rows: std::mem::take(&mut self.rows) };
        let left = Section {
            name: "left",
            title: "Transactions left as they are",
            columns: &["transactions", "reason"],
            rows: left,
        };
        let sections: Vec<_> = [files, left].into_iter().filter(|section| !section.rows.is_empty()).collect();
        let mut text = Vec::new();
        let written = Table(self.layout).write(&sections, &mut text).and_then(|()| self.out.write_all(&text));
        self.told(written)
    }

    fn row(&self, name: &str, before: u64, after: u64, tally: &Tally) -> Vec<TableCell> {
        let difference = match self.verb {
            Verb::Compress => less_percent(after, before),
            Verb::Expand => less_percent(after, before).map(|percent| -percent),
        };
        vec![
            name.into(),
            before.into(),
            after.into(),
            difference.map(|percent| TableCell::decimal(percent, 1)).into(),
            tally.transactions().into(),
            tally.changed.into(),
        ]
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
        let text =
            serde_json::to_string_pretty(&document).map_err(|error| CommandFailure::of(&"report", error))?;
        self.line(format_args!("{text}"))
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> Result<()> {
        let written = writeln!(self.out, "{line}");
        self.told(written)
    }

    /// A reader that has seen enough of the report does not end the work.
    fn told(&self, written: io::Result<()>) -> Result<()> {
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(CommandFailure::of(&"write the report", error))
            }
            _ => Ok(()),
        }
    }
}

/// How much smaller it is now, in percent of its former size; negative if it is larger.
fn less_percent(after: u64, before: u64) -> Option<f64> {
    (before > 0).then(|| 100.0 - 100.0 * after as f64 / before as f64)
}

/// By how much it is smaller than before, as `12.3 %`; `-` if it is not known.
pub(crate) fn less(after: u64, before: u64) -> String {
    less_percent(after, before).map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1} %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saving_may_be_negative_and_nothing_saves_nothing() {
        assert_eq!(less(1, 4), "75.0 %");
        assert_eq!(less(5, 4), "-25.0 %");
        assert_eq!(less(0, 0), "-");
    }
}
