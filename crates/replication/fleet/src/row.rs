//! A row for each source of a relay and for each archive, and one for each target that could not be asked.

use std::cmp::Reverse;

use binlogz_archive::coverage::{ArchiveEdge, Coverage};
use binlogz_archive::format::masked_in_words;
use binlogz_archive::last_check::{CheckRecord, LastChecks};
use binlogz_figures::Tone;
use serde::{Serialize, Serializer};

use crate::findings;
use crate::relay_document::{RelayDocument, SourceDocument};
use crate::targets::ArchiveLimits;

/// A source or an archive as it is known; the names in JSON are stable.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FleetRow {
    /// As the file of targets names it.
    pub(crate) target: String,
    pub(crate) kind: FleetRowKind,
    /// The source's name at its relay, or the archive's place.
    pub(crate) source: Option<String>,
    /// Whether it was asked and has answered.
    pub(crate) reached: bool,
    /// The state of the source, archive or server, in words.
    pub(crate) state: String,
    /// How bad that is.
    #[serde(serialize_with = "named")]
    pub(crate) tone: Tone,
    /// The server that is followed.
    pub(crate) server: Option<String>,
    pub(crate) lag_seconds: Option<u64>,
    /// Received since the relay's start, or in the archive.
    pub(crate) bytes: Option<u64>,
    /// How many of them were not stored.
    pub(crate) saved_bytes: Option<i64>,
    /// The file and position up to which everything survives a crash.
    pub(crate) last_durable: Option<String>,
    /// The last file that was archived.
    pub(crate) last_archived: Option<String>,
    /// Closed files that are not archived yet.
    pub(crate) archive_waiting_files: Option<u64>,
    pub(crate) last_restorable: Option<Restorable>,
    /// The archive's last check that looked deepest; none: nobody knows whether it is whole.
    pub(crate) last_check: Option<CheckRecord>,
    /// When that check was made, in seconds since 1970.
    #[serde(skip)]
    pub(crate) checked: Option<u64>,
    /// Problems that a check found and none has seen mended since.
    pub(crate) check_problems: Option<u64>,
    /// Places in the archive where transactions are missing.
    pub(crate) gaps: Option<Vec<String>>,
    pub(crate) replicas: Option<u64>,
    /// Replicas that can't read compressed transactions.
    pub(crate) replicas_uncompressed: Option<u64>,
    /// The findings, the worst first.
    pub(crate) findings: Vec<String>,
    pub(crate) lag_history_seconds: Vec<Option<u64>>,
    /// Where a relay archives this source.
    #[serde(skip)]
    pub(crate) archives_to: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FleetRowKind {
    #[default]
    Relay,
    Archive,
    Server,
}

/// The last moment to which a server can be brought from an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Restorable {
    /// In seconds since 1970.
    pub(crate) time: Option<u32>,
    pub(crate) log: String,
    pub(crate) gtids: String,
}

fn named<S: Serializer>(tone: &Tone, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(tone.name())
}

impl FleetRowKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            FleetRowKind::Relay => "relay",
            FleetRowKind::Archive => "archive",
            FleetRowKind::Server => "server",
        }
    }
}

impl FleetRow {
    /// A target that could not be asked.
    pub(crate) fn unreachable(
        target: &str,
        kind: FleetRowKind,
        source: Option<String>,
        why: String,
    ) -> FleetRow {
        FleetRow {
            target: target.to_owned(),
            kind,
            source,
            state: "Unreachable".to_owned(),
            tone: Tone::Bad,
            findings: vec![why],
            ..FleetRow::default()
        }
    }

    /// The file of targets itself, which can't be read any more.
    pub(crate) fn of_file(file: &str, why: String) -> FleetRow {
        FleetRow {
            state: "Not read".to_owned(),
            findings: vec![why],
            ..FleetRow::unreachable(file, FleetRowKind::Relay, None, String::new())
        }
    }

    pub(crate) fn of_archive(
        target: &str,
        place: &str,
        covered: &Coverage,
        checks: &LastChecks,
        limits: ArchiveLimits,
        now: u64,
    ) -> FleetRow {
        let ArchiveLimits { max_age, max_check_age } = limits;
        let age =
            covered.last.as_ref().and_then(|last| last.time).map(|time| now.saturating_sub(time.into()));
        let is_old = max_age.is_some_and(|max| age.is_none_or(|age| age > max.as_secs()));
        let mut findings = Vec::new();
        if let Some(selection) = &covered.selection {
            findings.push(format!("a selection of tables ({selection}): no log may be purged for it"));
        }
        if let Some(exits) = &covered.exits {
            findings.push(format!("{}: no log may be purged for it", masked_in_words(exits)));
        }
        if is_old {
            let age = age.map_or("not known".to_owned(), |age| format!("{age} s ago"));
            findings.push(format!("the last restorable moment is older than max_age: {age}"));
        }
        let deepest = checks.deepest();
        if let Some(damage) = checks.damage() {
            findings.push(format!("a check by {} found {} problems", damage.depth.name(), damage.problems));
        }
        findings.extend(covered.gaps.iter().map(ToString::to_string));
        let check_age = checks.newest().map(|check| now.saturating_sub(check.time));
        let is_check_old = max_check_age.is_some_and(|max| check_age.is_some_and(|age| age > max.as_secs()));
        match check_age {
            None if covered.logs > 0 => findings.push("never checked: binlogz archive check".to_owned()),
            Some(age) if is_check_old => {
                findings.push(format!("the last check is older than max_check_age: {age} s ago"));
            }
            _ => {}
        }
        // Whole is only what a check has found whole.
        let (tone, state) = match (covered.logs, covered.gaps.as_slice(), deepest) {
            _ if checks.damage().is_some() => (Tone::Bad, "Damaged"),
            _ if is_old => (Tone::Bad, "Old"),
            (0, ..) => (Tone::Warning, "Empty"),
            _ if covered.selection.is_some() => (Tone::Warning, "Selection"),
            _ if covered.exits.is_some() => (Tone::Warning, "Masked"),
            (_, [], None) => (Tone::Warning, "Not checked"),
            (_, [], Some(_)) if is_check_old => (Tone::Warning, "Check is old"),
            (_, [], Some(_)) => (Tone::Good, "Whole"),
            _ => (Tone::Warning, "Gaps"),
        };
        FleetRow {
            target: target.to_owned(),
            kind: FleetRowKind::Archive,
            source: Some(place.to_owned()),
            reached: true,
            state: state.to_owned(),
            tone,
            bytes: Some(covered.size),
            saved_bytes: Some(difference(covered.size, covered.packed_size)),
            last_archived: covered.last.as_ref().map(|last| last.log.clone()),
            last_restorable: covered.last.as_ref().filter(|_| covered.has_servers_logs()).map(restorable),
            last_check: deepest.cloned(),
            checked: deepest.map(|check| check.time),
            check_problems: deepest.map(|_| checks.damage().map_or(0, |check| check.problems)),
            gaps: Some(covered.gaps.iter().map(ToString::to_string).collect()),
            findings,
            ..FleetRow::default()
        }
    }

    fn of_source(target: &str, source: &SourceDocument, now: u64) -> FleetRow {
        let found = findings::of_source(source, now);
        // Notes are in the figures already.
        let found = found.into_iter().filter(|finding| finding.tone > Tone::Neutral);
        let expanded = findings::expanded(source) as u64;
        let is_known = source.failure.is_none();
        let bytes = source.bytes;
        let archive = source.archive.as_ref();
        let receiving = &source.source;
        FleetRow {
            target: target.to_owned(),
            kind: FleetRowKind::Relay,
            source: Some(source.name.clone()).filter(|name| !name.is_empty()),
            reached: true,
            state: source.state.clone(),
            tone: Tone::of_name(&source.tone).unwrap_or(Tone::Neutral),
            server: Some(receiving.server.clone()).filter(|server| !server.is_empty()),
            lag_seconds: receiving.lag_seconds,
            bytes: is_known.then_some(bytes.received),
            saved_bytes: is_known.then(|| difference(bytes.received, bytes.stored)),
            last_durable: source.log.as_ref().map(|log| log.durable.to_string()),
            last_archived: archive.and_then(|archive| archive.last_file.clone()),
            archive_waiting_files: archive.map(|archive| archive.waiting_files),
            replicas: is_known.then_some(source.replicas.len() as u64),
            replicas_uncompressed: is_known.then_some(expanded),
            findings: found.map(|finding| finding.said).collect(),
            lag_history_seconds: source.lag_history_seconds.clone(),
            archives_to: archive.map(|archive| archive.to.clone()),
            ..FleetRow::default()
        }
    }

    /// How deep the archive's last check looked, and whether something is damaged.
    pub(crate) fn check_in_words(&self) -> Option<String> {
        let damaged = if self.check_problems > Some(0) { ", damaged" } else { "" };
        self.last_check.as_ref().map(|check| format!("{}{damaged}", check.depth.name()))
    }

    /// The row's name: the target, and the source if that has a name too.
    pub(crate) fn label(&self) -> String {
        match (&self.source, self.kind) {
            (Some(source), FleetRowKind::Relay) => format!("{}: {source}", self.target),
            (Some(place), FleetRowKind::Server) if *place == self.target => place.clone(),
            (Some(place), FleetRowKind::Server) => format!("{}: {place}", self.target),
            (Some(place), FleetRowKind::Archive) if place.starts_with(&self.target) => place.clone(),
            (Some(place), FleetRowKind::Archive) => format!("{}: {place}", self.target),
            _ => self.target.clone(),
        }
    }
}

/// The sources of a relay, and a row for the relay's own problems.
pub(crate) fn of_relay(target: &str, relay: &RelayDocument, now: u64) -> Vec<FleetRow> {
    let mut rows: Vec<FleetRow> =
        relay.sources.iter().map(|source| FleetRow::of_source(target, source, now)).collect();
    let found = findings::of_relay(relay, now);
    if let Some(worst) = found.first().filter(|worst| worst.tone > Tone::Neutral) {
        rows.push(FleetRow {
            target: target.to_owned(),
            reached: true,
            state: "Needs attention".to_owned(),
            tone: worst.tone,
            findings: found.into_iter().map(|finding| finding.said).collect(),
            ..FleetRow::default()
        });
    }
    rows
}

/// Adds to each source's row the facts about the archive that its relay fills, if that was asked too. Then sorts the
/// rows, those that need attention first.
pub fn joined(mut rows: Vec<FleetRow>) -> Vec<FleetRow> {
    let archives: Vec<FleetRow> =
        rows.iter().filter(|row| row.kind == FleetRowKind::Archive).cloned().collect();
    for row in &mut rows {
        let Some(to) = &row.archives_to else { continue };
        if let Some(archive) = archives.iter().find(|archive| archive.source.as_ref() == Some(to)) {
            row.last_restorable.clone_from(&archive.last_restorable);
            row.gaps.clone_from(&archive.gaps);
        }
    }
    rows.sort_by(|a, b| {
        let order = |row: &FleetRow| (Reverse(row.tone), Reverse(row.lag_seconds.unwrap_or(0)));
        order(a).cmp(&order(b)).then_with(|| (&a.target, &a.source).cmp(&(&b.target, &b.source)))
    });
    rows
}

fn restorable(moment: &ArchiveEdge) -> Restorable {
    Restorable { time: moment.time, log: moment.log.clone(), gtids: moment.gtids_text() }
}

fn difference(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(before) - i128::from(after)).unwrap_or(i64::MAX)
}
