//! An archive's coverage: from which transaction to which, how large it is, and where transactions are missing. The
//! manifest alone tells it.

use std::fmt;

use binlogz_binlog::gtid::{Gtid, GtidSet};

use crate::chosen_tables::TableChoice;
use crate::error::Result;
use crate::format::{FileEntry, Manifest};
use crate::log::numbered;
use crate::log::order::{base, number};

/// An archive's coverage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The tables that it has, if it is a selection: no log of a server may be purged for it. `None`: it has whole logs.
    pub selection: Option<TableChoice>,
    /// Names the policy by which its logs were masked, likewise; `None`: they weren't.
    pub exits: Option<String>,
    /// How many logs it has.
    pub logs: usize,
    /// Bytes of its logs.
    pub size: u64,
    /// Bytes of their blocks.
    pub packed_size: u64,
    /// Where it begins; `None` if it has no logs.
    pub first: Option<ArchiveEdge>,
    /// Where it ends: the last moment to which a server can be brought.
    pub last: Option<ArchiveEdge>,
    /// Where transactions are missing, in the order of the logs.
    pub gaps: Vec<Gap>,
    /// Where the logs begin after which there is no gap.
    pub unbroken_since: Option<ArchiveEdge>,
}

impl Coverage {
    /// Whether its logs are those of their servers: not a selection of tables, and not masked. Others are no ground to purge a log, and bring no
    /// server to any moment.
    pub fn has_servers_logs(&self) -> bool {
        self.selection.is_none() && self.exits.is_none()
    }
}

/// Where an archive begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveEdge {
    /// The log.
    pub log: String,
    /// The time of its first or last event, in seconds since 1970.
    pub time: Option<u32>,
    /// The first or last transaction of each server, of the first or last log that has any.
    pub gtids: Vec<Gtid>,
}

impl ArchiveEdge {
    /// The transactions, one of each server, separated by commas.
    pub fn gtids_text(&self) -> String {
        self.gtids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

/// A place where transactions are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The log before which they are missing.
    pub log: String,
    /// The log before it in the archive.
    pub after: String,
    /// The missing transactions.
    pub missing: CoverageGap,
}

/// The gap before a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoverageGap {
    /// These transactions.
    Gtids(GtidSet),
    /// The logs of these names and between them; whether they have transactions is not known.
    Logs(String, String),
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.log;
        match &self.missing {
            CoverageGap::Gtids(gtids) => {
                write!(f, "{name}: gap: {gtids} came before it and is not in the archive")
            }
            CoverageGap::Logs(first, last) if first == last => {
                write!(f, "{name}: gap: {first} came before it and is not in the archive")
            }
            CoverageGap::Logs(first, last) => {
                write!(f, "{name}: gap: {first} to {last} came before it and are not in the archive")
            }
        }
    }
}

/// Computes an archive's coverage.
///
/// # Errors
///
/// A manifest that was changed by hand.
pub fn coverage(manifest: &Manifest) -> Result<Coverage> {
    let files = &manifest.files;
    let gaps = gaps(manifest)?;
    let after_gap = gaps.last().and_then(|gap| files.iter().position(|file| file.name == gap.log));
    Ok(Coverage {
        selection: manifest.selection.clone(),
        exits: manifest.exits.clone(),
        logs: files.len(),
        size: files.iter().map(|file| file.size).sum(),
        packed_size: files.iter().map(|file| file.packed_size).sum(),
        first: begin(files)?,
        last: end(files)?,
        unbroken_since: begin(files.get(after_gap.unwrap_or_default()..).unwrap_or_default())?,
        gaps,
    })
}

/// Where these logs begin.
fn begin(files: &[FileEntry]) -> Result<Option<ArchiveEdge>> {
    let Some(first) = files.first() else { return Ok(None) };
    let gtids = first_set(files.iter())?;
    let lowest = gtids.iter().filter_map(|(tsid, list)| Gtid::new(*tsid, list.first()?.start()).ok());
    Ok(Some(ArchiveEdge {
        log: first.name.to_string(),
        time: first.times.map(|times| times.0),
        gtids: lowest.collect(),
    }))
}

/// The last moment to which these logs reach.
fn end(files: &[FileEntry]) -> Result<Option<ArchiveEdge>> {
    let Some(last) = files.last() else { return Ok(None) };
    let gtids = first_set(files.iter().rev())?;
    let highest = gtids.iter().filter_map(|(tsid, list)| Gtid::new(*tsid, list.last()?.last()).ok());
    Ok(Some(ArchiveEdge {
        log: last.name.to_string(),
        time: last.times.map(|times| times.1),
        gtids: highest.collect(),
    }))
}

/// The transactions of the first log that has any.
fn first_set<'a>(mut files: impl Iterator<Item = &'a FileEntry>) -> Result<GtidSet> {
    files.find(|file| !file.gtids.is_empty()).map_or_else(|| Ok(GtidSet::new()), FileEntry::gtid_set)
}

/// Where transactions are missing. GTIDs tell, from the previous ones of each log; between logs without GTIDs, their
/// numbers.
///
/// # Errors
///
/// A manifest that was changed by hand.
pub fn gaps(manifest: &Manifest) -> Result<Vec<Gap>> {
    let mut gaps = Vec::new();
    let mut known = GtidSet::new();
    let mut before: Option<&FileEntry> = None;
    for file in &manifest.files {
        let previous = file.previous_gtid_set()?;
        if let Some(before) = before {
            let mut gtids = previous.clone();
            gtids.subtract(&known);
            let missing = match gtids.is_empty() {
                false => Some(CoverageGap::Gtids(gtids)),
                true => missing_logs(before, file),
            };
            let gap = |missing| Gap { log: file.name.to_string(), after: before.name.to_string(), missing };
            gaps.extend(missing.map(gap));
        }
        known.union(&previous);
        known.union(&file.gtid_set()?);
        before = Some(file);
    }
    Ok(gaps)
}

/// The logs that are missing between two that have no GTIDs: then only numbers tell.
fn missing_logs(before: &FileEntry, after: &FileEntry) -> Option<CoverageGap> {
    let have_gtids = !before.gtids.is_empty() || !after.gtids.is_empty();
    let is_apart = number(&after.name)? > number(&before.name)?.saturating_add(1);
    if have_gtids || !is_apart || base(&before.name) != base(&after.name) {
        return None;
    }
    Some(CoverageGap::Logs(numbered(&before.name, 1)?, numbered(&after.name, -1)?))
}
