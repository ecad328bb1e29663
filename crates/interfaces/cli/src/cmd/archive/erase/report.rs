//! What an erasure did, or would do: as text, or as a line of JSON with its SHA-256.
//!
//! The condition isn't in it: it may be what was erased.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use binlogz_archive::erase::{ErasePlan, EraseSummary, digest_of};
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::storage::ListedObject;
use binlogz_figures::counted;
use binlogz_row_changes::{ErasureAim, StatementFindings};
use binlogz_schema::SchemaFile;
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
    table: String,
    null: Vec<String>,
    blank: Vec<String>,
    rows: bool,
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
    pub(super) fn of(survey: &EraseSurvey, schema: Option<&SchemaFile>, table: &(String, String)) -> Self {
        let mut lines = statement_lines(&survey.findings);
        if survey.counts.undecided > 0 {
            let rows = counted(survey.counts.undecided, "row changes");
            lines.push(format!(
                "{rows} can't be decided: their images lack columns of the condition (binlog_row_image=FULL writes all)"
            ));
        }
        for file in &survey.in_use {
            lines.push(format!(
                "{}: has such rows, and its server still writes it: run erase again once it is archived whole",
                file.name
            ));
        }
        let children = children_of(schema, table);
        let notes = children.into_iter().map(|child| {
            format!("{child} refers to {}.{}: its rows are not touched, erase them too", table.0, table.1)
        });
        LeftUndone { notes: notes.collect(), lines }
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

/// The tables with foreign keys to this one.
fn children_of(schema: Option<&SchemaFile>, (database, table): &(String, String)) -> BTreeSet<String> {
    let keys = schema.into_iter().flat_map(SchemaFile::foreign_keys);
    let children = keys.filter(|(own, _, key)| {
        let parent = key.database.as_deref().or(*own);
        key.parent == *table && parent.is_none_or(|parent| parent == database)
    });
    children.map(|(own, child, _)| format!("{}.{child}", own.unwrap_or(database))).collect()
}

impl EraseReport {
    pub(super) fn new(
        archive: &Path,
        aim: &ErasureAim,
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
        EraseReport {
            archive: archive.display().to_string(),
            table: aim.shown(),
            null: aim.null.clone(),
            blank: aim.blank.clone(),
            rows: aim.rows,
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

    fn print_json(&self) -> Result<()> {
        let mut line =
            serde_json::to_string(self).map_err(|error| CommandFailure::Line(error.to_string()))?;
        line.push('\n');
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
        if self.before.is_empty() {
            return print(out, &format!("{}: nothing to erase; {read}", self.table));
        }
        let what = if self.executed { "were erased" } else { "would be erased" };
        let what = match (self.rows, self.executed) {
            (true, true) => "were taken out",
            (true, false) => "would be taken out",
            (false, _) => what,
        };
        let changes = counted(self.row_changes, "row changes");
        let transactions = counted(self.transactions, "transactions");
        print(out, &format!("{}: {changes} in {transactions} {what}; {read}", self.table))?;
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
