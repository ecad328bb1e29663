//! The JSON output of list, check and restore: one document each, described in docs/reference/commands.md;
//! fields are only ever added.

use std::io::{self, Write};
use std::path::Path;

use binlogz_archive::chosen_tables::TableChoice;
use binlogz_archive::coverage::{self, Coverage};
use binlogz_archive::format::{ErasureNote, FileEntry, Manifest};
use binlogz_archive::last_check::{CheckRecord, LastChecks};
use binlogz_binlog::gtid::Gtid;
use serde::Serialize;

use crate::failure::{CommandFailure, Result};

/// The JSON of `list` for an archive.
#[derive(Debug, Serialize)]
pub(super) struct ListJson<'a> {
    #[serde(flatten)]
    covered: CoverageJson,
    logs: Vec<Log<'a>>,
}

/// The JSON of `list` for the archives at a place.
#[derive(Debug, Default, Serialize)]
pub(super) struct Overview {
    pub(super) archives: Vec<CoverageJson>,
    pub(super) failed: Vec<FailedArchive>,
}

#[derive(Debug, Serialize)]
pub(super) struct FailedArchive {
    pub(super) archive: String,
    pub(super) error: String,
}

/// An archive's coverage.
#[derive(Debug, Serialize)]
pub(super) struct CoverageJson {
    archive: String,
    /// The tables that it has, if it is a selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<TableChoice>,
    /// Names the policy by which its logs were masked, and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    exits: Option<String>,
    log_count: usize,
    bytes: u64,
    packed_bytes: u64,
    first: Option<Moment>,
    /// The last restorable moment.
    last: Option<Moment>,
    gaps: Vec<String>,
    /// Where the logs begin after which there is no gap.
    unbroken_since: Option<Moment>,
    /// The last check that looked deepest, if there was one: without it nobody knows whether the archive is whole.
    last_check: Option<CheckRecord>,
    /// The last check of all, which may be another one.
    newest_check: Option<CheckRecord>,
    /// Whether a check found something that none has seen mended since.
    damaged: bool,
}

/// Where an archive begins or ends.
#[derive(Debug, Serialize)]
struct Moment {
    log: String,
    /// Seconds since 1970.
    time: Option<u32>,
    /// One of each server.
    gtids: Vec<String>,
}

impl CoverageJson {
    pub(super) fn new(archive: &Path, coverage: &Coverage, checks: &LastChecks) -> CoverageJson {
        let moment = |moment: &coverage::ArchiveEdge| Moment {
            log: moment.log.clone(),
            time: moment.time,
            gtids: moment.gtids.iter().map(Gtid::to_string).collect(),
        };
        CoverageJson {
            archive: archive.display().to_string(),
            selection: coverage.selection.clone(),
            exits: coverage.exits.clone(),
            log_count: coverage.logs,
            bytes: coverage.size,
            packed_bytes: coverage.packed_size,
            first: coverage.first.as_ref().map(moment),
            last: coverage.last.as_ref().map(moment),
            gaps: coverage.gaps.iter().map(coverage::Gap::to_string).collect(),
            unbroken_since: coverage.unbroken_since.as_ref().map(moment),
            last_check: checks.deepest().cloned(),
            newest_check: checks.newest().cloned(),
            damaged: checks.damage().is_some(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Log<'a> {
    log: &'a str,
    bytes: u64,
    packed_bytes: u64,
    sha256: &'a str,
    /// SHA-256 of the log as it was, where it comes back in other bytes.
    source_sha256: &'a str,
    /// Seconds since 1970.
    first_time: Option<u32>,
    last_time: Option<u32>,
    previous_gtids: String,
    gtids: String,
    payload_level: Option<u8>,
    payload_codec: Option<&'a str>,
    payloads_kept: u64,
    /// It is the part that was whole of a log that its server still wrote.
    active: bool,
    /// As chmod counts, in octal.
    mode: Option<String>,
    /// The runs that erased values from it, the oldest first: when (in seconds since 1970), of which table, of how many row changes.
    erasures: &'a [ErasureNote],
}

impl<'a> ListJson<'a> {
    pub(super) fn new(
        archive: &Path,
        manifest: &'a Manifest,
        coverage: &Coverage,
        checks: &LastChecks,
    ) -> ListJson<'a> {
        let logs = manifest.files.iter().map(Log::new).collect();
        ListJson { covered: CoverageJson::new(archive, coverage, checks), logs }
    }
}

impl<'a> Log<'a> {
    fn new(file: &'a FileEntry) -> Log<'a> {
        Log {
            log: &file.name,
            bytes: file.size,
            packed_bytes: file.packed_size,
            sha256: &file.sha256,
            source_sha256: file.source_sha256(),
            first_time: file.times.map(|times| times.0),
            last_time: file.times.map(|times| times.1),
            previous_gtids: file.previous_gtids.replace('\n', ""),
            gtids: file.gtids.replace('\n', ""),
            payload_level: file.payload_level,
            payload_codec: file.payload_codec.as_deref(),
            payloads_kept: file.payloads_kept,
            active: file.active_size.is_some(),
            mode: file.mode.map(|mode| format!("{mode:04o}")),
            erasures: &file.erasures,
        }
    }
}

/// The JSON of `check`.
#[derive(Debug, Default, Serialize)]
pub(super) struct CheckJson {
    pub(super) whole: bool,
    pub(super) archives: Vec<CheckedArchive>,
    /// Between archives.
    pub(super) gaps: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct CheckedArchive {
    pub(super) archive: String,
    /// The tables whose rows it has, if it is a selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) selection: Option<TableChoice>,
    /// Names the policy by which its logs were masked, and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exits: Option<String>,
    pub(super) logs: usize,
    pub(super) problems: Vec<String>,
}

/// The JSON of `restore`.
#[derive(Debug, Default, Serialize)]
pub(super) struct RestoreJson {
    /// The tables whose rows the archive has, if it is a selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) selection: Option<TableChoice>,
    /// Names the policy by which its logs were masked, and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exits: Option<String>,
    pub(super) logs: Vec<RestoredLog>,
    pub(super) failed: Vec<FailedLogJson>,
    /// A request that the archive can't meet; then nothing is restored.
    pub(super) unmet: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct RestoredLog {
    pub(super) log: String,
    pub(super) output: String,
    pub(super) bytes: u64,
    /// Only for chosen transactions.
    pub(super) transactions: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct FailedLogJson {
    pub(super) log: String,
    pub(super) error: String,
}

/// Writes a document to standard output.
pub(in crate::cmd) fn print(document: &impl Serialize) -> Result<()> {
    let text =
        serde_json::to_string_pretty(document).map_err(|error| CommandFailure::Line(error.to_string()))?;
    writeln!(io::stdout().lock(), "{text}")
        .map_err(|error| CommandFailure::writing(&"standard output", &error))
}
