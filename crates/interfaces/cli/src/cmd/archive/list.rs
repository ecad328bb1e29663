//! `binlogz archive list`: the logs of an archive and the transactions and times they cover, or a row for each archive
//! below a place.

use std::io::{self, Write};
use std::path::PathBuf;

use binlogz_archive::coverage::{ArchiveEdge, Coverage, coverage};
use binlogz_archive::existing;
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::last_check::{CheckRecord, LastChecks};
use binlogz_binlog::printable;
use binlogz_figures::FigureFormat::Table;
use binlogz_figures::{Section, TableCell, counted, wrapped};
use clap::Args;

use super::coverage::{ListedArchive, checks_of, coverage_of};
use super::{failure, json, marks_of, prometheus, storage_at};
use crate::Exit;
use crate::erased;
use crate::failure::{CommandFailure, Result, complain};
use crate::format::WatchedFormat;
use crate::pager;
use crate::terminal::TableArgs;
use crate::time;

/// List the logs of an archive, or all archives below a place
///
/// Of an archive: its logs, how far it reaches, and where transactions are missing. Its end is the last moment to which a
/// server can be brought. A place that is no archive, and any with --archives: a row for each archive there and below.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct List {
    /// Output format
    #[arg(long, value_enum, default_value_t = WatchedFormat::Text)]
    format: WatchedFormat,
    /// A row for each archive, also where the place is an archive itself
    #[arg(long)]
    archives: bool,
    #[command(flatten)]
    table: TableArgs,
    /// The archive, or a place that has some below it: a folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

const EXAMPLES: &str = "Examples:
  binlogz archive list /backup/db1
  binlogz archive list --format json s3://bucket/db1
  binlogz archive list /backup                  # a row for each archive below it";

/// The columns of logs and of archives that are always shown, in the order of the table: GTID sets are as long as lines are.
const LOG_COLUMNS: &[&str] = &["log", "bytes", "packed_bytes", "from", "to"];
const ARCHIVE_COLUMNS: &[&str] =
    &["archive", "logs", "bytes", "from", "last_restorable", "gaps", "checked", "check"];

impl List {
    pub(super) fn run(self) -> Result<Exit> {
        let storage = storage_at(&self.archive)?;
        let manifest = Manifest::read(&storage).map_err(failure(&self.archive))?;
        match manifest {
            Some(manifest) if !self.archives && self.format != WatchedFormat::Prometheus => {
                self.one(&manifest, &checks_of(&storage, &self.archive))
            }
            _ => self.all(),
        }
    }

    fn one(&self, manifest: &Manifest, checks: &LastChecks) -> Result<Exit> {
        let covered = coverage(manifest).map_err(failure(&self.archive))?;
        if self.format == WatchedFormat::Json {
            json::print(&json::ListJson::new(&self.archive, manifest, &covered, checks))?;
            return Ok(Exit::Done);
        }
        let logs = Section {
            name: "logs",
            title: "Logs",
            columns: &["log", "bytes", "packed_bytes", "from", "to", "gtids"],
            rows: manifest.files.iter().map(row).collect(),
        };
        pager::show(|out| {
            Table(self.table.layout()).write(&[self.shown(logs, LOG_COLUMNS)], out)?;
            writeln!(out)?;
            let mut told: Vec<String> =
                marks_of(manifest).into_iter().chain(self.lines(&covered, checks)).collect();
            told.extend(erased::note_on(&manifest.files));
            let mut lines =
                told.iter().map(|line| wrapped(&printable(line), "", "  ", self.table.layout().width));
            lines.try_for_each(|line| writeln!(out, "{line}"))
        })?;
        Ok(Exit::Done)
    }

    /// The table with these columns, or with all.
    fn shown(&self, section: Section, columns: &'static [&'static str]) -> Section {
        if self.table.is_wide() {
            return section;
        }
        let all = section.columns;
        let short = |row: Vec<_>| {
            let cells = row.into_iter().zip(all).filter(|(_, column)| columns.contains(column));
            cells.map(|(cell, _)| cell).collect()
        };
        Section { columns, rows: section.rows.into_iter().map(short).collect(), ..section }
    }

    /// An archive's coverage in words.
    fn lines(&self, covered: &Coverage, checks: &LastChecks) -> Vec<String> {
        let bytes = self.table.sizes().in_words(covered.size);
        let packed = self.table.sizes().in_words(covered.packed_size);
        let mut lines = vec![format!("{}, {bytes}, packed {packed}", counted(covered.logs as u64, "logs"))];
        let what = if covered.has_servers_logs() { "last restorable moment" } else { "last transaction" };
        lines.extend(covered.last.iter().map(|last| format!("{what}: {}", in_words(last))));
        lines.extend(covered.gaps.iter().map(ToString::to_string));
        lines.extend(covered.unbroken_since.iter().map(|since| format!("no gap since {}", in_words(since))));
        lines.extend(checked_in_words(checks, time::shown));
        lines
    }

    fn all(&self) -> Result<Exit> {
        let archives = existing::archives_at(&self.archive, None).map_err(failure(&self.archive))?;
        let mut covered = Vec::new();
        let mut failed = Vec::new();
        for archive in archives {
            match coverage_of(&archive) {
                Ok((coverage, checks)) => covered.push(ListedArchive { place: archive, coverage, checks }),
                Err(CommandFailure::Line(error)) => {
                    complain(&error);
                    failed.push(json::FailedArchive { archive: archive.display().to_string(), error });
                }
                Err(closed) => return Err(closed),
            }
        }
        let exit = if failed.is_empty() { Exit::Done } else { Exit::Trouble };
        match self.format {
            WatchedFormat::Json => {
                let archives = covered
                    .iter()
                    .map(|listed| json::CoverageJson::new(&listed.place, &listed.coverage, &listed.checks))
                    .collect();
                json::print(&json::Overview { archives, failed })?;
            }
            WatchedFormat::Prometheus => {
                let text = prometheus::text(&covered);
                let written = io::stdout().lock().write_all(text.as_bytes());
                written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
            }
            WatchedFormat::Text => {
                let archives = Section {
                    name: "archives",
                    title: "Archives",
                    columns: &[
                        "archive",
                        "logs",
                        "bytes",
                        "packed_bytes",
                        "from",
                        "first_gtid",
                        "last_restorable",
                        "last_gtid",
                        "gaps",
                        "no_gap_since",
                        "checked",
                        "check",
                    ],
                    rows: covered.iter().map(archive_row).collect(),
                };
                pager::show(|out| {
                    Table(self.table.layout()).write(&[self.shown(archives, ARCHIVE_COLUMNS)], out)
                })?;
            }
        }
        Ok(exit)
    }
}

/// When an archive was last checked, and how.
pub(in crate::cmd) fn checked_in_words(checks: &LastChecks, shown: fn(u32) -> String) -> Vec<String> {
    let Some(deepest) = checks.deepest() else {
        return vec!["never checked: whether its objects are still there is not known".to_owned()];
    };
    let newest = checks.newest().filter(|newest| *newest != deepest);
    let in_words = |check: &CheckRecord| {
        let last = check.last_log.as_ref().map(|last| format!(" up to {last}")).unwrap_or_default();
        let found = match check.problems {
            0 => "whole".to_owned(),
            problems => format!("damaged, {}", counted(problems, "problems")),
        };
        let time = shown(u32::try_from(check.time).unwrap_or(u32::MAX));
        format!("last check: {time}, {}: {}{last}, {found}", check.depth.name(), counted(check.logs, "logs"))
    };
    [Some(deepest), newest].into_iter().flatten().map(in_words).collect()
}

fn row(file: &FileEntry) -> Vec<TableCell> {
    let mark = match (file.active_size.is_some(), file.is_erased()) {
        (true, _) => " (part)",
        (false, true) => " (erased)",
        (false, false) => "",
    };
    let (from, to) = file.times.unzip();
    vec![
        format!("{}{mark}", file.name).into(),
        file.size.into(),
        file.packed_size.into(),
        from.map(time::shown).into(),
        to.map(time::shown).into(),
        file.gtids.replace('\n', "").into(),
    ]
}

fn archive_row(ListedArchive { place, coverage: covered, checks }: &ListedArchive) -> Vec<TableCell> {
    let time = |moment: &Option<ArchiveEdge>| {
        TableCell::from(moment.as_ref().and_then(|moment| moment.time).map(time::shown))
    };
    let gtids = |moment: &Option<ArchiveEdge>| {
        TableCell::from(moment.as_ref().map(ArchiveEdge::gtids_text).filter(|gtids| !gtids.is_empty()))
    };
    let mark = match (&covered.selection, &covered.exits) {
        (None, None) => "",
        (Some(_), _) => " (a selection of tables)",
        (None, Some(_)) => " (masked)",
    };
    vec![
        format!("{}{mark}", place.display()).into(),
        (covered.logs as u64).into(),
        covered.size.into(),
        covered.packed_size.into(),
        time(&covered.first),
        gtids(&covered.first),
        time(&covered.last),
        gtids(&covered.last),
        (covered.gaps.len() as u64).into(),
        covered.unbroken_since.as_ref().map(|since| since.log.as_str()).into(),
        checks.deepest().map(|check| time::shown(u32::try_from(check.time).unwrap_or(u32::MAX))).into(),
        check_cell(checks),
    ]
}

/// How deep the last check looked, and its result: `content`, `presence, damaged`.
fn check_cell(checks: &LastChecks) -> TableCell {
    let damaged = if checks.damage().is_some() { ", damaged" } else { "" };
    checks.deepest().map_or("never".to_owned(), |check| format!("{}{damaged}", check.depth.name())).into()
}

/// A log, its time and its transaction.
fn in_words(moment: &ArchiveEdge) -> String {
    let time = moment.time.map(time::shown).into_iter();
    let gtids = Some(moment.gtids_text()).filter(|gtids| !gtids.is_empty());
    time.chain([moment.log.clone()]).chain(gtids).collect::<Vec<_>>().join(", ")
}
