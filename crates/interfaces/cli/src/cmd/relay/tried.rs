//! What `relay check-config` tries of a configuration, without changing anything: the servers, the archive's place, the HTTP port; and
//! what it says of retention and accounts.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use binlogz_archive::{Error as ArchiveError, existing};
use binlogz_figures::{FigureUnit, counted, human_size};
use binlogz_relay::{AccountOptions, RelayOptions, Retention, ServerCheck, SourceOptions};

use crate::failure::{CommandFailure, Result};

/// Object storage that doesn't answer in this time is an error.
const PATIENCE: Duration = Duration::from_secs(10);

/// A line for each place that was tried, and for what files and accounts may.
pub(super) fn tried(options: &RelayOptions) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for source in &options.sources {
        let of = if source.name.is_empty() { String::new() } else { format!("source {}: ", source.name) };
        lines.push(format!("{of}{}", in_words(&source.retention)));
        if let Some(archive) = &source.archive {
            lines.push(format!("{of}{}", archive_at(&archive.to)?));
            if !archive.tables.is_all() {
                let tables = &archive.tables;
                lines.push(format!("{of}archive: a selection of tables ({tables}); files that are purged here don't come back"));
            }
        }
    }
    if let Some(http) = &options.http {
        lines.push(http_at(http.address)?);
    }
    lines.extend(options.accounts.iter().filter_map(limits_of));
    Ok(lines)
}

/// Lines about each server of the sources, and whether all of them can be followed.
pub(super) fn asked(options: &RelayOptions) -> (Vec<String>, bool) {
    let checks: Vec<_> = options.sources.iter().flat_map(SourceOptions::ask_servers).collect();
    let is_well = checks.iter().all(|check| check.problems.is_empty());
    (checks.into_iter().flat_map(lines_of).collect(), is_well)
}

fn lines_of(check: ServerCheck) -> Vec<String> {
    let ServerCheck { server, product, problems, notes } = check;
    let ending = if problems.is_empty() { "; its log can be read" } else { "" };
    let product = product.map(|product| format!("{server}: {product}{ending}"));
    let problems = problems.into_iter().map(|problem| format!("{server}: {problem}"));
    let notes = notes.into_iter().map(|note| format!("{server}: {note}"));
    product.into_iter().chain(problems).chain(notes).collect()
}

fn in_words(retention: &Retention) -> String {
    let age =
        retention.max_age.map(|age| format!("older than {}", FigureUnit::Seconds.text(age.as_secs_f64())));
    let bytes = retention.max_bytes.map(|bytes| format!("the oldest above {} in all", human_size(bytes)));
    let removed: Vec<String> = age.into_iter().chain(bytes).collect();
    let needed = if retention.force { ", even while a replica reads them" } else { "" };
    match removed.is_empty() {
        true => "retention: every file stays".to_owned(),
        false => format!("retention: files are removed that are {}{needed}", removed.join(", and ")),
    }
}

/// The archives at a place; a folder must be one in which files can be made.
fn archive_at(place: &Path) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| {
        CommandFailure::of(&format_args!("archive {}", place.display()), error)
    };
    if place.is_file() {
        return Err(failed(&"is a file, expected a folder"));
    }
    let there = match existing::archives_at(place, Some(PATIENCE)) {
        Ok(archives) => counted(archives.len() as u64, "archives") + " there",
        Err(ArchiveError::NoArchive(_)) => "nothing there yet".to_owned(),
        Err(error) => return Err(failed(&error)),
    };
    if place.to_string_lossy().contains("://") {
        return Ok(format!("archive {}: can be read, {there}", place.display()));
    }
    let folder = place.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    // A file without a name, which is gone at once.
    tempfile::tempfile_in(folder)
        .map_err(|error| failed(&format_args!("make a file in {}: {error}", folder.display())))?;
    Ok(format!("archive {}: can be written, {there}", place.display()))
}

fn http_at(address: SocketAddr) -> Result<String> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(format!("http {address}: free")),
        // Its own relay may run.
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Ok(format!("http {address}: in use, as it is while this relay runs"))
        }
        Err(error) => Err(CommandFailure::of(&format_args!("http {address}"), error)),
    }
}

/// The rights and limits that an account has and others have not.
fn limits_of(account: &AccountOptions) -> Option<String> {
    let from: Vec<String> = account.from.iter().map(ToString::to_string).collect();
    let said: Vec<String> = [
        account.source.as_ref().map(|source| format!("reads {source} alone")),
        (!from.is_empty()).then(|| format!("connects from {}", from.join(", "))),
        account.require_tls.then(|| "over TLS alone".to_owned()),
        (account.connections_max > 0)
            .then(|| counted(account.connections_max as u64, "connections") + " at most"),
        account
            .exits
            .as_ref()
            .map(|exits| format!("reads the log masked by its policy {}", exits.shown_digest())),
        account.admin.then(|| "may purge files, and stop and start receiving".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!said.is_empty()).then(|| format!("account {}: {}", account.user, said.join(", ")))
}
