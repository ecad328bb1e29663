//! What an erasure did, or would do: as text, or as a line of JSON with its SHA-256.
//!
//! The condition isn't in it: it may be what was erased.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use binlogz_archive::erase::{ErasePlan, EraseSummary, digest_of};
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::ListedObject;
use binlogz_figures::counted;
use binlogz_row_changes::{ErasureAim, StatementFindings};
use serde::Serialize;

use super::super::print;
use super::super::upkeep::in_words;
use super::passes::EraseSurvey;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, warn};
use crate::format::ReportFormat;
use crate::terminal::SizesArg;
use crate::time;

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct EraseReport {
    archive: String,
    tables: Vec<ErasedTableJson>,
    #[serde(flatten)]
    how: ErasureWay,
    /// Whether it was done.
    executed: bool,
    /// When, in seconds since 1970.
    at: Option<u64>,
    row_changes: u64,
    transactions: u64,
    /// Texts of statements that were taken out with their rows.
    texts: u64,
    /// Events whose other rows have the same values in perhaps other bytes.
    rewritten_alike: u64,
    logs: Vec<ErasedLogJson>,
    /// Logs that were read whole, of all.
    logs_read: usize,
    logs_in_archive: usize,
    /// Other logs of the same objects, packed anew as they were.
    logs_repacked: usize,
    objects_before: Vec<ErasedObjectJson>,
    objects_after: Vec<ErasedObjectJson>,
    /// When the objects before may be deleted by a run of prune, merge or erase, in seconds since 1970.
    deletable_from: Option<u64>,
    left: Vec<String>,
    #[serde(skip)]
    before: Vec<ListedObject>,
    #[serde(skip)]
    after: Vec<ListedObject>,
}

/// What becomes of rows, as the options say it.
#[derive(Debug, Serialize)]
pub(super) struct ErasureWay {
    pub(super) null: Vec<String>,
    pub(super) blank: Vec<String>,
    pub(super) rows: bool,
}

#[derive(Debug, Serialize)]
struct ErasedTableJson {
    table: String,
    /// The tables to whose chosen rows those of this one refer.
    refers_to: Vec<String>,
    /// Row changes that were chosen, and those of them that are erased.
    chosen: u64,
    row_changes: u64,
}

#[derive(Debug, Serialize)]
struct ErasedLogJson {
    log: String,
    row_changes: u64,
    transactions: u64,
    bytes_before: u64,
    sha256_before: String,
    bytes_after: Option<u64>,
    sha256_after: Option<String>,
}

#[derive(Debug, Serialize)]
struct ErasedObjectJson {
    object: String,
    bytes: u64,
}

fn listed(objects: &[ListedObject]) -> Vec<ErasedObjectJson> {
    let one = |object: &ListedObject| ErasedObjectJson { object: object.name.clone(), bytes: object.size };
    objects.iter().map(one).collect()
}

/// What is left of the values, or may be.
#[derive(Debug, Default)]
pub(super) struct LeftUndone {
    lines: Vec<String>,
    /// What to look at, too, though nothing of it is of this table.
    notes: Vec<String>,
}

impl LeftUndone {
    pub(super) fn of(survey: &EraseSurvey, aim: &ErasureAim) -> Self {
        let mut lines = statement_lines(&survey.findings);
        if survey.counts.undecided > 0 {
            let rows = counted(survey.counts.undecided, "row changes");
            lines.push(format!(
                "{rows} can't be decided: their images lack columns of a condition or a foreign key (binlog_row_image=FULL writes all), or only a collation \
                 tells whether they refer to a chosen row"
            ));
        }
        for (number, (name, counts)) in aim.names().iter().zip(&survey.counts.tables).enumerate() {
            if counts.chosen > 0 && !aim.erases_of(number) {
                let rows = counted(counts.chosen, "row changes");
                let parents = aim.parents_of(number).into_iter().collect::<Vec<_>>().join(", ");
                lines.push(format!(
                    "{rows} of {name} refer to chosen rows of {parents} and stay: no column of {name} is named (--null {name}.COLUMN)"
                ));
            }
        }
        for file in &survey.in_use {
            lines.push(format!(
                "{}: has such rows, and its server still writes it: run erase again once it is archived whole",
                file.name
            ));
        }
        LeftUndone { notes: Vec::new(), lines }
    }

    /// Takes the tables whose rows are not touched, though they refer to chosen ones, and whether there may be more of them than the logs tell.
    pub(super) fn children(&mut self, others: Vec<String>, may_be_more: bool) {
        let notes = others
            .into_iter()
            .map(|other| format!("{other}: its rows are not touched, --children erases them too"));
        self.notes.extend(notes);
        if may_be_more {
            let line = "which tables refer to these is known only as far as the logs have their CREATE TABLE and ALTER TABLE: --schema tells all";
            self.lines.push(line.to_owned());
        }
    }

    /// Says it.
    pub(super) fn say(&self, archive: &Path) -> Exit {
        self.notes.iter().for_each(|note| warn(note));
        self.lines.iter().for_each(|line| complain(&format!("{}: {line}", archive.display())));
        if self.lines.is_empty() { Exit::Done } else { Exit::Negative }
    }
}

fn statement_lines(findings: &StatementFindings) -> Vec<String> {
    let mut lines: Vec<String> =
        findings.first.iter().map(|finding| format!("{finding}: may hold the values, and stays")).collect();
    let others = findings.count() - findings.first.len() as u64;
    if others > 0 {
        lines.push(format!("{} more may hold the values, and stay", counted(others, "statements")));
    }
    lines
}

impl EraseReport {
    pub(super) fn new(
        archive: &Path,
        (aim, how): (&ErasureAim, ErasureWay),
        survey: &EraseSurvey,
        (plan, before): (&ErasePlan, &[ListedObject]),
    ) -> Self {
        let log = |(file, counts): &(FileEntry, binlogz_row_changes::ErasureCounts)| ErasedLogJson {
            log: file.name.to_string(),
            row_changes: counts.rows,
            transactions: counts.transactions,
            bytes_before: file.size,
            sha256_before: file.sha256.clone(),
            bytes_after: None,
            sha256_after: None,
        };
        let counts = &survey.counts;
        let tables = aim.names().into_iter().zip(&counts.tables).enumerate();
        let tables = tables.map(|(number, (table, counts))| ErasedTableJson {
            table,
            refers_to: aim.parents_of(number).into_iter().collect(),
            chosen: counts.chosen,
            row_changes: counts.erased,
        });
        EraseReport {
            archive: archive.display().to_string(),
            tables: tables.collect(),
            how,
            executed: false,
            at: None,
            row_changes: counts.rows,
            transactions: counts.transactions,
            texts: counts.texts,
            rewritten_alike: counts.rewritten_alike,
            logs: survey.held.iter().map(log).collect(),
            logs_read: survey.read,
            logs_in_archive: survey.logs,
            logs_repacked: plan.neighbours.len(),
            objects_before: listed(before),
            objects_after: Vec::new(),
            deletable_from: None,
            left: Vec::new(),
            before: before.to_vec(),
            after: Vec::new(),
        }
    }

    /// It was done.
    pub(super) fn executed(
        &mut self,
        summary: &EraseSummary,
        manifest: &Manifest,
        now: SystemTime,
        grace: Duration,
    ) {
        self.executed = true;
        self.at = Some(seconds(now));
        self.deletable_from = Some(seconds(now.checked_add(grace).unwrap_or(now)));
        self.logs_repacked = summary.repacked;
        self.after = summary.after.clone();
        self.objects_after = listed(&summary.after);
        for log in &mut self.logs {
            let mut files = manifest.files.iter();
            let is_it = |file: &&FileEntry| file.name == log.log.as_str() && file.sha256 != log.sha256_before;
            if let Some(file) = files.find(is_it) {
                log.bytes_after = Some(file.size);
                log.sha256_after = Some(file.sha256.clone());
            }
        }
    }

    pub(super) fn left(&mut self, left: &LeftUndone) {
        self.left = left.lines.iter().chain(&left.notes).cloned().collect();
    }

    pub(super) fn print(&self, format: ReportFormat, sizes: SizesArg) -> Result<()> {
        match format {
            ReportFormat::Json => self.print_json(),
            ReportFormat::Text => self.print_text(sizes),
        }
    }

    /// The report as a line of JSON.
    pub(super) fn line(&self) -> Result<String> {
        let mut line =
            serde_json::to_string(self).map_err(|error| CommandFailure::Line(error.to_string()))?;
        line.push('\n');
        Ok(line)
    }

    fn print_json(&self) -> Result<()> {
        let line = self.line()?;
        let sha256 = digest_of(line.as_bytes());
        let mut out = io::stdout().lock();
        writeln!(out, "{line}{{\"sha256\":\"{sha256}\"}}")
            .map_err(|error| CommandFailure::writing(&"standard output", &error))
    }

    fn print_text(&self, sizes: SizesArg) -> Result<()> {
        let out = &mut io::stdout().lock();
        let others =
            if self.logs_read < self.logs_in_archive { ", the index excludes the others" } else { "" };
        let read =
            format!("{} of {} read{others}", counted(self.logs_read as u64, "logs"), self.logs_in_archive);
        let tables: Vec<&str> = self.tables.iter().map(|table| &*table.table).collect();
        let tables = tables.join(", ");
        if self.before.is_empty() {
            return print(out, &format!("{tables}: nothing to erase; {read}"));
        }
        let what = if self.executed { "were erased" } else { "would be erased" };
        let what = match (self.how.rows, self.executed) {
            (true, true) => "were taken out",
            (true, false) => "would be taken out",
            (false, _) => what,
        };
        let changes = counted(self.row_changes, "row changes");
        let transactions = counted(self.transactions, "transactions");
        print(out, &format!("{tables}: {changes} in {transactions} {what}; {read}"))?;
        for table in self.tables.iter().filter(|_| self.tables.len() > 1) {
            let parents = match table.refers_to.is_empty() {
                true => String::new(),
                false => format!(", which refers to {}", table.refers_to.join(", ")),
            };
            print(out, &format!("{}{parents}: {}", table.table, counted(table.row_changes, "row changes")))?;
        }
        for log in &self.logs {
            print(out, &format!("{}: {}", log.log, counted(log.row_changes, "row changes")))?;
        }
        if self.texts > 0 {
            let go = if self.executed { "taken out" } else { "to be taken out" };
            print(out, &format!("{} beside them, {go}", counted(self.texts, "texts of statements")))?;
        }
        let others = match self.logs_repacked {
            0 => String::new(),
            count => {
                format!(", with {} of theirs that stay as they are", counted(count as u64, "other logs"))
            }
        };
        let before = in_words(&self.before, sizes);
        if !self.executed {
            print(out, &format!("{before}: would be replaced{others}"))?;
            return print(out, "nothing was changed: --execute does it");
        }
        print(out, &format!("{before} -> {}{others}", in_words(&self.after, sizes)))?;
        match self.deletable_from.zip(self.at) {
            Some((from, at)) if from > at => {
                let from = time::shown(u32::try_from(from).unwrap_or(u32::MAX));
                let when = "will be deleted by the first run of erase, prune or merge after";
                print(out, &format!("{before}, which had the values: {when} {from}"))
            }
            _ => print(out, &format!("{before}, which had the values: deleted")),
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
