//! Packs the logs of many small segments into few large ones, as runs that archive a log an hour leave them.
//!
//! ```text
//! restore   a log into a temporary file, compared with its SHA-256
//! pack      it anew, after the logs before it: their rows need not be stored again
//! manifest  once a segment is stored and read back; the former objects are retired, since a reader may need them
//! ```
//!
//! A run that is killed at any point leaves an archive that is whole, with each log in its former objects or in its new
//! ones.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use binlogz_scratch_file::Scratch;

use crate::codec::Level;
use crate::error::{Error, Result};
use crate::format::{FileEntry, Manifest, objects};
use crate::operations::create::Creator;
use crate::operations::former_blocks::FormerBlocks;
use crate::operations::prune::{Keep, PruneSummary, prune};
use crate::operations::restore;
use crate::segment::{PACKED_MAX, PLAIN_MAX};
use crate::storage::{ArchiveStorage, ListedObject, LogName, ObjectName};

/// The result of a merge.
#[derive(Debug, Default)]
pub struct MergeSummary {
    /// How many logs were packed again.
    pub logs: usize,
    /// The objects that they were in.
    pub before: Vec<ListedObject>,
    /// The objects that they are in.
    pub after: Vec<ListedObject>,
    /// Logs that can't be restored, and why: they stay where they are.
    pub failed: Vec<(String, Error)>,
    /// Leftovers of earlier runs that were deleted.
    pub swept: PruneSummary,
}

/// How to merge.
#[derive(Debug, Clone, Copy)]
pub struct MergeOptions {
    /// How small, and how fast.
    pub level: Level,
    /// Threads.
    pub workers: usize,
    /// How long the former objects stay for readers.
    pub grace: Duration,
    /// When the run began.
    pub now: SystemTime,
}

/// The logs that it pays to merge: each run of logs is packed together.
pub fn plan(manifest: &Manifest) -> Vec<Vec<FileEntry>> {
    let mut runs = Vec::new();
    let mut run: Vec<Group<'_>> = Vec::new();
    for group in groups(&manifest.files) {
        if group.is_small() {
            run.push(group);
        } else {
            runs.extend(paying(&std::mem::take(&mut run)));
        }
    }
    runs.extend(paying(&run));
    runs
}

/// Merges. `told` gets each log before it is packed again.
///
/// # Errors
///
/// An archive that can't be read or written.
pub fn merge(
    storage: &dyn ArchiveStorage,
    options: MergeOptions,
    told: &mut dyn FnMut(&FileEntry),
) -> Result<MergeSummary> {
    let MergeOptions { level, workers, grace, now } = options;
    let mut merged =
        MergeSummary { swept: prune(storage, Keep::All, grace, now)?, ..MergeSummary::default() };
    let runs = plan(&Manifest::read(storage)?.unwrap_or_default());
    let stored = storage.stored()?;
    let names: BTreeSet<LogName> = runs.iter().flatten().map(|file| file.name.clone()).collect();
    for run in &runs {
        let mut ignored = |_: &_| {};
        let mut creator = Creator::new(storage, workers, &mut ignored)?;
        creator.level(level);
        let packed = run.iter().try_for_each(|file| {
            told(file);
            match restored(storage, file, workers) {
                Ok(log) => creator.repack(file, log, &FormerBlocks::default()),
                Err(error) => {
                    merged.failed.push((file.name.to_string(), error));
                    Ok(())
                }
            }
        });
        // The logs packed before an error are kept.
        creator.finish().and(packed)?;
    }
    let failed: BTreeSet<&str> = merged.failed.iter().map(|(name, _)| name.as_str()).collect();
    let is_merged = |file: &&FileEntry| names.contains(&file.name) && !failed.contains(file.name.as_str());
    let before: Vec<_> = runs.iter().flatten().filter(is_merged).cloned().collect();
    let manifest = Manifest::read(storage)?.unwrap_or_default();
    let after: Vec<_> = manifest.files.iter().filter(is_merged).cloned().collect();
    merged.logs = before.len();
    merged.before = of(&before, &stored);
    merged.after = of(&after, &storage.stored()?);
    if grace.is_zero() && merged.logs > 0 {
        merged.swept.undeleted.extend(prune(storage, Keep::All, grace, now)?.undeleted);
    }
    Ok(merged)
}

/// The objects that hold these logs.
fn of(files: &[FileEntry], stored: &[ListedObject]) -> Vec<ListedObject> {
    let names: BTreeSet<&str> = objects(files).collect();
    stored.iter().filter(|object| names.contains(object.name.as_str())).cloned().collect()
}

/// A log as it was, in a temporary file.
pub(super) fn restored(
    storage: &dyn ArchiveStorage,
    file: &FileEntry,
    workers: usize,
) -> Result<Arc<Scratch>> {
    let log = Scratch::new().map_err(Error::io("make a temporary file"))?;
    let mut out = BufWriter::with_capacity(1 << 18, log);
    restore::whole(storage, file, &mut out, workers)?;
    out.flush().map_err(Error::io("write a temporary file"))?;
    Ok(Arc::new(out.into_inner().map_err(|error| Error::io("write a temporary file")(error.into_error()))?))
}

/// Logs that follow one another and share objects.
struct Group<'a> {
    files: &'a [FileEntry],
    objects: usize,
    packed_size: u64,
}

impl Group<'_> {
    /// Whether two such fit into a segment.
    fn is_small(&self) -> bool {
        let plain: u64 = self.files.iter().map(|file| file.size).sum();
        // The part of a log in use is replaced soon.
        self.packed_size <= PACKED_MAX / 2
            && plain <= PLAIN_MAX / 2
            && self.files.iter().all(|file| file.active_size.is_none())
    }
}

fn groups(files: &[FileEntry]) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    let mut rest = files;
    while !rest.is_empty() {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let shares = |file: &FileEntry, names: &BTreeSet<&str>| {
            names.is_empty() || file.objects.iter().any(|object| names.contains(object.as_str()))
        };
        let mut count = 0;
        while let Some(file) = rest.get(count).filter(|file| shares(file, &names)) {
            names.extend(file.objects.iter().map(ObjectName::as_str));
            count += 1;
        }
        let (files, after) = rest.split_at(count.max(1));
        rest = after;
        let packed_size = files.iter().map(|file| file.packed_size).sum();
        groups.push(Group { files, objects: names.len(), packed_size });
    }
    groups
}

/// The logs of a run of small groups, without the first groups that are larger than all groups after them: packing those
/// again for each small one would take longer and longer.
fn paying(groups: &[Group<'_>]) -> Option<Vec<FileEntry>> {
    let mut left: u64 = groups.iter().map(|group| group.packed_size).sum();
    let mut run = groups;
    while let [first, rest @ ..] = run {
        left -= first.packed_size;
        if first.packed_size <= left {
            break;
        }
        run = rest;
    }
    let several = run.iter().map(|group| group.objects).sum::<usize>() > 1;
    several.then(|| run.iter().flat_map(|group| group.files).cloned().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Which of these logs are merged, given the megabytes of each and the object that it is in.
    fn merged(logs: &[(u64, &str)]) -> Vec<Vec<String>> {
        let mut manifest = Manifest::default();
        for (number, (size, object)) in (1..).zip(logs) {
            let file = json!({
                "name": format!("binlog.{number}"), "objects": [format!("{object}.binlogz")], "size": size << 20, "sha256": "",
                "packed_size": size << 20, "payload_level": null, "payloads_kept": 0, "gtids": "", "previous_gtids": "",
                "times": null,
            });
            manifest.files.push(serde_json::from_value(file).unwrap());
        }
        let names = |run: Vec<FileEntry>| run.into_iter().map(|file| file.name.into()).collect();
        plan(&manifest).into_iter().map(names).collect()
    }

    #[test]
    fn small_segments_are_merged_where_it_pays() {
        assert_eq!(merged(&[(1, "a"), (1, "b"), (1, "c")]), [["binlog.1", "binlog.2", "binlog.3"]]);
        // In one segment already.
        assert!(merged(&[(1, "a"), (1, "a")]).is_empty());
        assert!(merged(&[(1, "a")]).is_empty());
        // Large ones stay, and part the others.
        let runs = merged(&[(1, "a"), (1, "b"), (60, "c"), (1, "d"), (1, "e")]);
        assert_eq!(runs, [["binlog.1", "binlog.2"], ["binlog.4", "binlog.5"]]);
        // Merged logs are merged again only with at least as many bytes of others.
        assert!(merged(&[(4, "a"), (1, "b")]).is_empty());
        assert_eq!(merged(&[(4, "a"), (1, "b"), (1, "c")]), [["binlog.2", "binlog.3"]]);
        assert_eq!(merged(&[(4, "a"), (2, "b"), (1, "c"), (1, "d")]).concat().len(), 4);
    }
}
