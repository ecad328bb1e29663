//! Takes the oldest logs out of an archive, as many as need not be kept, and deletes the objects that then hold no log.
//!
//! ```text
//! delete    what earlier runs took out long enough ago, and what killed runs left behind
//! manifest  without the oldest logs; their objects are retired: a reader may still have the manifest before
//! delete    at once where there is no grace
//! ```
//!
//! A run that is killed at any point leaves an archive that is whole, and objects that the next run deletes.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use binlogz_binlog::gtid::Gtid;

use crate::error::{Error, Result};
use crate::format::{FileEntry, Manifest, objects};
use crate::operations::create::seconds;
use crate::operations::remove::{ORPHAN_AGE, UndeletedObjects, collect, orphans_of, refuse_older};
use crate::storage::{ArchiveStorage, ListedObject, ObjectName};

/// Which logs are kept: the newest, and always the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Logs with events of this second since 1970 or later, and the log before them: a transaction that was committed
    /// then may have begun earlier, and its events have the time of its begin.
    Since(u32),
    /// The log with this transaction, and all after it.
    After(Gtid),
    /// The newest logs whose objects have at most this many bytes together.
    Bytes(u64),
    /// All: only objects are deleted that no log is in.
    All,
}

/// The result of pruning, or of a dry run.
#[derive(Debug, Default)]
pub struct PruneSummary {
    /// The logs that are taken out.
    pub logs: Vec<FileEntry>,
    /// The oldest that is kept.
    pub first_kept: Option<FileEntry>,
    /// The objects that held nothing else.
    pub objects: Vec<ListedObject>,
    /// Objects that earlier runs took out, and that are deleted now.
    pub retired: Vec<ListedObject>,
    /// Objects that killed runs left behind, and that are deleted now.
    pub orphans: Vec<ListedObject>,
    /// Objects that can't be deleted, and why.
    pub undeleted: UndeletedObjects,
}

/// How often to read the manifest again while other runs keep replacing it.
const ATTEMPTS_MAX: u32 = 10;

/// Takes out the logs that need not be kept. Their objects are deleted by a later run, once readers have had the time
/// `grace`; at once if that is zero.
///
/// # Errors
///
/// An archive that can't be read or written; a transaction that is not there; [`Error::Changed`] if other runs keep
/// changing it.
pub fn prune(
    storage: &dyn ArchiveStorage,
    keep: Keep,
    grace: Duration,
    now: SystemTime,
) -> Result<PruneSummary> {
    let stored = storage.stored()?;
    let mut pruned = plan_of(&stored, &read(storage)?, keep, grace, now)?;
    let sizes = sizes(&stored);
    let old: Vec<_> =
        pruned.retired.iter().chain(&pruned.orphans).map(|object| object.name.clone()).collect();
    pruned.undeleted = collect(storage, &old)?;
    let gone: BTreeSet<String> =
        old.into_iter().filter(|name| !pruned.undeleted.iter().any(|(locked, _)| locked == name)).collect();
    let mut attempts = 1;
    let names = loop {
        let mut manifest = read(storage)?;
        let Pruning { logs, objects, .. } = choose(&manifest, keep, &sizes)?;
        let before = manifest.retired.len();
        manifest.retired.retain(|retired| !gone.contains(retired.object.as_str()));
        if logs == 0 && manifest.retired.len() == before {
            break BTreeSet::new();
        }
        let logs: Vec<_> = manifest.files.drain(..logs).collect();
        if !grace.is_zero() {
            manifest.retire(objects.iter().cloned(), seconds(now));
        }
        match manifest.write(storage) {
            Ok(()) => {
                pruned.logs = logs;
                break objects;
            }
            Err(Error::Changed) if attempts < ATTEMPTS_MAX => attempts += 1,
            Err(error) => return Err(error),
        }
    };
    pruned.objects.retain(|object| names.contains(object.name.as_str()));
    if grace.is_zero() {
        pruned.undeleted.extend(collect(storage, &Vec::from_iter(names.into_iter().map(String::from)))?);
    }
    Ok(pruned)
}

/// Plans [`prune`] without deleting anything.
///
/// # Errors
///
/// An archive that can't be read; a transaction that is not there.
pub fn plan(
    storage: &dyn ArchiveStorage,
    keep: Keep,
    grace: Duration,
    now: SystemTime,
) -> Result<PruneSummary> {
    // The manifest is read second: an object that is named meanwhile is no orphan.
    let stored = storage.stored()?;
    plan_of(&stored, &read(storage)?, keep, grace, now)
}

fn plan_of(
    stored: &[ListedObject],
    manifest: &Manifest,
    keep: Keep,
    grace: Duration,
    now: SystemTime,
) -> Result<PruneSummary> {
    let Pruning { logs, objects } = choose(manifest, keep, &sizes(stored))?;
    let is_over = |since: u64| seconds(now).saturating_sub(since) >= grace.as_secs();
    let over: BTreeSet<&str> = manifest
        .retired
        .iter()
        .filter(|retired| is_over(retired.since))
        .map(|retired| retired.object.as_str())
        .collect();
    let of =
        |names: &dyn Fn(&str) -> bool| stored.iter().filter(|object| names(&object.name)).cloned().collect();
    Ok(PruneSummary {
        logs: manifest.files.get(..logs).unwrap_or_default().to_vec(),
        first_kept: manifest.files.get(logs).cloned(),
        objects: of(&|name| objects.contains(name)),
        retired: of(&|name| over.contains(name)),
        orphans: orphans_of(stored, manifest, now.checked_sub(ORPHAN_AGE).unwrap_or(SystemTime::UNIX_EPOCH)),
        undeleted: Vec::new(),
    })
}

fn read(storage: &dyn ArchiveStorage) -> Result<Manifest> {
    let manifest = Manifest::of_archive(storage)?;
    refuse_older(&manifest)?;
    Ok(manifest)
}

/// Bytes by object.
type Sizes<'a> = HashMap<&'a str, u64>;

fn sizes(stored: &[ListedObject]) -> Sizes<'_> {
    stored.iter().map(|object| (object.name.as_str(), object.size)).collect()
}

/// The deletions: this many of the first logs, and the objects that hold none of the others.
struct Pruning {
    logs: usize,
    objects: BTreeSet<ObjectName>,
}

fn choose(manifest: &Manifest, keep: Keep, sizes: &Sizes<'_>) -> Result<Pruning> {
    let files = &manifest.files;
    let last = files.len().saturating_sub(1);
    let mut first = match keep {
        Keep::Since(time) => {
            let is_in_window = |file: &FileEntry| file.times.is_none_or(|(_, last)| last >= time);
            files.iter().position(is_in_window).unwrap_or(last).saturating_sub(1)
        }
        Keep::After(gtid) => first_with(files, &gtid)?,
        Keep::All => 0,
        Keep::Bytes(bytes) => first_within(files, bytes, sizes),
    };
    let kept: BTreeSet<&str> = objects(files.get(first..).unwrap_or_default()).collect();
    // A log before them costs nothing if all its objects stay.
    let is_free = |file: &FileEntry| file.objects.iter().all(|object| kept.contains(object.as_str()));
    while first > 0 && files.get(first - 1).is_some_and(is_free) {
        first -= 1;
    }
    let gone = files.get(..first).unwrap_or_default().iter().flat_map(|file| &file.objects);
    let gone = gone.filter(|object| !kept.contains(object.as_str()));
    Ok(Pruning { logs: first, objects: gone.cloned().collect() })
}

/// The log with this transaction; the first, if it is older than all.
fn first_with(files: &[FileEntry], gtid: &Gtid) -> Result<usize> {
    for (at, file) in files.iter().enumerate() {
        if file.gtid_set()?.contains(gtid) {
            return Ok(at);
        }
    }
    match files.first() {
        Some(first) if first.previous_gtid_set()?.contains(gtid) => Ok(0),
        _ => Err(Error::Unmet { gtid: gtid.to_string() }),
    }
}

/// The first of the newest logs whose objects have at most this many bytes; at least the last log.
fn first_within(files: &[FileEntry], bytes: u64, sizes: &Sizes<'_>) -> usize {
    let mut seen = BTreeSet::new();
    let mut all = 0u64;
    for (at, file) in files.iter().enumerate().rev() {
        let new = file.objects.iter().filter(|object| seen.insert(object.as_str()));
        all += new.filter_map(|object| sizes.get(object.as_str())).sum::<u64>();
        if all > bytes {
            return (at + 1).min(files.len() - 1);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Logs with these objects, one a minute from the minute 10 on, each of one transaction.
    fn manifest(objects: &[&[&str]]) -> Manifest {
        let named =
            |objects: &[&str]| objects.iter().map(|name| format!("{name}.binlogz")).collect::<Vec<_>>();
        let mut manifest = Manifest::default();
        for (number, objects) in (1..).zip(objects) {
            let uuid = "00000000-0000-0000-0000-000000000001";
            let file = json!({
                "name": format!("binlog.{number:06}"), "objects": named(objects), "size": 100, "sha256": "", "packed_size": 10,
                "payload_level": null, "payloads_kept": 0, "gtids": format!("{uuid}:{}", number + 4),
                "previous_gtids": format!("{uuid}:1-{}", number + 3),
                "times": [(number + 9) * 60, (number + 9) * 60 + 59],
            });
            manifest.files.push(serde_json::from_value(file).unwrap());
        }
        manifest
    }

    #[track_caller]
    fn goes(objects: &[&[&str]], keep: Keep, logs: usize, gone: &[&str]) {
        let manifest = manifest(objects);
        let named = manifest.objects();
        let sizes = named.iter().map(|object| (*object, 10)).collect();
        let pruning = choose(&manifest, keep, &sizes).unwrap();
        let found: Vec<_> =
            pruning.objects.iter().map(|object| object.strip_suffix(".binlogz").unwrap()).collect();
        assert_eq!((pruning.logs, found.as_slice()), (logs, gone));
    }

    #[test]
    fn what_a_recovery_within_the_window_needs_stays() {
        let each: &[&[&str]] = &[&["a"], &["b"], &["c"], &["d"]];
        // The third log has the minute 12; the one before it stays too.
        goes(each, Keep::Since(12 * 60), 1, &["a"]);
        goes(each, Keep::Since(12 * 60 + 59), 1, &["a"]);
        goes(each, Keep::Since(13 * 60), 2, &["a", "b"]);
        goes(each, Keep::Since(0), 0, &[]);
        goes(each, Keep::Since(u32::MAX), 2, &["a", "b"]);
        let gtid = |number: u64| {
            Keep::After(format!("00000000-0000-0000-0000-000000000001:{number}").parse().unwrap())
        };
        goes(each, gtid(7), 2, &["a", "b"]);
        goes(each, gtid(3), 0, &[]);
        assert!(matches!(choose(&manifest(each), gtid(9), &Sizes::new()), Err(Error::Unmet { .. })));
        goes(each, Keep::Bytes(25), 2, &["a", "b"]);
        goes(each, Keep::Bytes(40), 0, &[]);
        goes(each, Keep::Bytes(1), 3, &["a", "b", "c"]);
        goes(&[], Keep::Bytes(1), 0, &[]);
    }

    /// A log that begins in one object and ends in the next, as they come of a run that archives many logs.
    #[test]
    fn objects_go_whole() {
        let chained: &[&[&str]] = &[&["a"], &["a", "b"], &["b"], &["b", "c"], &["c"], &["c"]];
        goes(chained, Keep::Since(15 * 60), 4, &["a", "b"]);
        // The third log is in what the fourth needs.
        goes(chained, Keep::Since(14 * 60), 2, &["a"]);
        goes(chained, Keep::Bytes(10), 4, &["a", "b"]);
        goes(&[&["a"], &["a"], &["a"]], Keep::Bytes(1), 0, &[]);
    }
}
