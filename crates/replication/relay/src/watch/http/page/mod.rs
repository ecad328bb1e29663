//! The status as an HTML page, in the shell that all reports have.
//!
//! `state` sums the relay up in a word and a colour, and says what to do; `charts` draws the last hour. This file has the
//! figures and the tables of one source, `all` those of all sources.

pub(super) mod all;
mod charts;
mod state;
#[cfg(test)]
mod tests;

use binlogz_figures::{FigureUnit, Page, Section, TableCell, Tile, Tone};

use super::entrance::ReplicaEntrance;
use super::history::Sample;
use crate::housekeeping::checking::ArchiveCheckStatus;
use crate::watch::status::{ArchiveStatus, ReplicaStatus, SourceReport};

/// Errors shown; the JSON document has more.
const ERRORS_SHOWN: usize = 10;

/// How often the page is loaded again, in seconds; said on it.
pub(super) const REFRESH_SECONDS: u64 = 10;

/// The page of a source; of the only one without its name. `entrance`: where its replicas connect.
pub(super) fn html(
    name: &str,
    status: &SourceReport,
    samples: &[Sample],
    entrance: Option<&ReplicaEntrance>,
) -> String {
    let state = state::of(status, entrance);
    let mut samples = samples.to_vec();
    // So that a relay that has just begun has something to show. Since the last sample there is as much traffic as before it.
    let traffic = samples.last().and_then(|last| last.traffic);
    samples.push(Sample { traffic, ..Sample::of(status, None) });
    let title = format!("binlogz relay{}{name}", if name.is_empty() { "" } else { ": " });
    let page = Page {
        title: &title,
        subtitle: &subtitle(status.version, status.uptime_seconds),
        as_of: Some(crate::time::now()),
        state: Some((state.tone, state.word)),
        lead: &state.lead,
        reasons: &state.reasons,
        steps: &state.steps,
        tiles: &tiles(status, state.tone),
        charts: &charts::charts(status, &samples),
        tables: &[replicas(status), log(status), archive(status.archive.as_ref()), errors(status)],
        figures: &[charts::traffic(&samples)],
    };
    text(&page)
}

fn text(page: &Page<'_>) -> String {
    let mut out = Vec::new();
    // Writing to memory can't fail.
    let _ = page.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn subtitle(version: &str, uptime_seconds: u64) -> String {
    let uptime = duration(uptime_seconds);
    format!("version {version}, running for {uptime}; this page loads again every {REFRESH_SECONDS} seconds")
}

fn tiles(status: &SourceReport, tone: Tone) -> Vec<Tile> {
    let bytes = status.bytes;
    let saved = match status.ratio() {
        Some(ratio) => format!("{:.0} %", (1.0 - ratio) * 100.0),
        None => "–".to_owned(),
    };
    let lag = status.source.lag_seconds.map_or("–".to_owned(), duration);
    let slowest = status.replicas.iter().filter_map(|replica| replica.lag_seconds).max();
    let behind = status.replicas.iter().map(|replica| state::of_replica(status, replica).0).max();
    let on_disk = status.log.as_ref().map_or(0, |log| log.bytes);
    let errors = status.errors.values().sum::<u64>();
    vec![
        Tile { tone, ..Tile::new(lag, "behind the source") },
        Tile {
            tone: behind.unwrap_or(Tone::Neutral),
            ..Tile::new(status.replicas.len().to_string(), "replicas")
        },
        Tile::new(slowest.map_or("–".to_owned(), duration), "lag of the slowest replica"),
        Tile::new(size(on_disk), "log on disk"),
        archive_tile(status.archive.as_ref()),
        Tile::new(saved, "saved by storing it"),
        Tile::new(size(bytes.received), "received since the start"),
        Tile::new(size(bytes.served), "served since the start"),
        Tile {
            tone: if errors > 0 { Tone::Warning } else { Tone::Neutral },
            ..Tile::new(TableCell::from(errors).for_people(), "errors since the start")
        },
    ]
}

fn replicas(status: &SourceReport) -> Section {
    let columns = &[
        "server_id",
        "account",
        "address",
        "form",
        "lineage",
        "file",
        "position",
        "acknowledged",
        "lag",
        "bytes_behind",
        "bytes_sent",
        "connected",
    ];
    let row = |replica: &ReplicaStatus| -> Vec<TableCell> {
        vec![
            u64::from(replica.server_id).into(),
            replica.user.as_str().into(),
            replica.address.as_str().into(),
            replica.form.into(),
            replica.lineage.into(),
            replica.place.file.as_str().into(),
            replica.place.position.into(),
            replica.acknowledged.as_ref().map(|at| format!("{} at {}", at.file, at.position)).into(),
            replica.lag_seconds.map(duration).into(),
            replica.lag_bytes.into(),
            replica.bytes.into(),
            duration(replica.connected_seconds).into(),
        ]
    };
    Section { name: "replicas", title: "Replicas", columns, rows: status.replicas.iter().map(row).collect() }
}

fn log(status: &SourceReport) -> Section {
    let mut rows = Vec::new();
    let mut row = |what: &str, value: String| rows.push(vec![what.into(), value.into()]);
    if let Some(log) = &status.log {
        row("source", log.source_uuid.clone());
        row("files", format!("{}, the first is {}", log.files, log.first_file));
        row("received up to", format!("{} at {}", log.written.file, log.written.position));
        row("durable up to", format!("{} at {}", log.durable.file, log.durable.position));
        row("GTIDs", log.gtid_executed.replace(",\n", ", "));
    }
    let clients = status.clients;
    row(
        "clients",
        format!(
            "{} logged in, {} logging in, {} turned away",
            clients.logged_in, clients.logging_in, clients.turned_away
        ),
    );
    Section { name: "log", title: "The log", columns: &["what", "value"], rows }
}

/// Closed files that are here alone.
fn archive_tile(archive: Option<&ArchiveStatus>) -> Tile {
    let Some(archive) = archive else { return Tile::new("none", "archive") };
    let is_damaged = archive.check.as_ref().is_some_and(|check| check.damaged_logs > 0);
    let tone = match (is_damaged || archive.failing_seconds.is_some(), archive.waiting_files) {
        (true, _) => Tone::Bad,
        (false, 0) if archive.last_file.is_some() => Tone::Good,
        (false, _) => Tone::Neutral,
    };
    let what = match archive.waiting_files {
        1 => "closed file waits for the archive",
        _ => "closed files wait for the archive",
    };
    Tile { tone, ..Tile::new(archive.waiting_files.to_string(), what) }
}

/// Where closed files go, and how far they are there.
fn archive(archive: Option<&ArchiveStatus>) -> Section {
    let mut rows = Vec::new();
    let mut row = |what: &str, value: String| rows.push(vec![what.into(), value.into()]);
    match archive {
        None => row("place", "none: closed files are on this machine alone".to_owned()),
        Some(archive) => {
            row("place", archive.to.clone());
            if let Some(selection) = &archive.selection {
                row("a selection of tables", selection.clone());
            }
            let last = archive.last_file.clone();
            row("archived up to", last.unwrap_or_else(|| "not known yet, or nothing".to_owned()));
            row(
                "waiting",
                match archive.waiting_files {
                    0 => "no closed file".to_owned(),
                    files => format!(
                        "{}; none was archived for {}",
                        binlogz_figures::counted(files as u64, "closed files"),
                        duration(archive.still_seconds)
                    ),
                },
            );
            if let Some(seconds) = archive.failing_seconds {
                row("failing for", duration(seconds));
            }
            let check = archive.check.as_ref().map_or_else(|| "never".to_owned(), check_in_words);
            row("checked", check);
        }
    }
    Section { name: "archive", title: "The archive", columns: &["what", "value"], rows }
}

fn check_in_words(check: &ArchiveCheckStatus) -> String {
    let mut said = match check.age_seconds {
        Some(age) => format!("the last check of everything began {} ago", duration(age)),
        None => "nothing is there to check yet".to_owned(),
    };
    said += &format!(
        ", one is due every {}; {} since the start",
        duration(check.interval_seconds),
        binlogz_figures::counted(check.checked_logs, "logs")
    );
    if check.damaged_logs > 0 {
        said += &format!("; {} damaged or missing", check.damaged_logs);
    }
    if let Some(seconds) = check.failing_seconds {
        said += &format!("; looking has failed for {}", duration(seconds));
    }
    said
}

fn errors(status: &SourceReport) -> Section {
    let ago = |time: u64| format!("{} ago", duration(crate::time::now().saturating_sub(time)));
    let row = |error: &crate::telemetry::meters::RememberedError| -> Vec<TableCell> {
        vec![ago(error.time).into(), error.kind.into(), error.text.as_str().into()]
    };
    let rows = status.last_errors.iter().take(ERRORS_SHOWN).map(row).collect();
    Section { name: "errors", title: "The last errors", columns: &["when", "kind", "what"], rows }
}

/// A size for people.
fn size(bytes: u64) -> String {
    FigureUnit::Bytes.text(bytes as f64)
}

/// A duration for people.
fn duration(seconds: u64) -> String {
    FigureUnit::Seconds.text(seconds as f64)
}
