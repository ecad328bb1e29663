//! Takes values out of the logs of an archive: what is left of a log takes its place, and every object that held the values is given up.
//!
//! ```text
//! candidates  logs with blocks that may hold such rows, by the index; and objects with parts that nobody looks for any more
//! look        only at these blocks, and at those with statements or their texts
//! rewrite     each log that has such rows, whole, into a temporary file; the caller says what is left of it
//! pack        it anew, and with it the other logs of the objects that are given up, byte for byte as they were
//! manifest    once a segment is stored and read back; the former objects are retired, as `merge` does it
//! ```
//!
//! An object can't be changed, and a later block of it may refer to rows of an earlier one. So nothing of an object stays that held a value:
//! index, key filters and directory are made of what is left. So are blocks, but for those of which only positions moved: they stay as they are
//! packed if they give what is left, with the rows to which they refer as these are now. A run that is killed at any point leaves an archive that
//! is whole. The next run finds what it hadn't come to, and the objects that still have a part of a log from before.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use binlogz_scratch_file::Scratch;

use crate::codec::Level;
use crate::error::{Error, Result};
use crate::format::{FileEntry, Manifest};
use crate::operations::create::{Creator, seconds};
use crate::operations::digest::Hasher;
use crate::operations::former_blocks::FormerBlocks;
use crate::operations::merge::restored;
use crate::operations::part::{BlockRun, ObjectContents, runs, stray_runs};
use crate::operations::plain_logs::read_ahead;
pub use crate::operations::plain_logs::{PlainLog, PlainLogs};
use crate::operations::prune::{Keep, PruneSummary, prune};
use crate::operations::restore::{self, LastObject};
pub use crate::operations::written_logs::{LogRemains, WrittenRemains};
use crate::operations::written_logs::{WrittenLog, WrittenLogs};
use crate::storage::{ArchiveStorage, ListedObject, ObjectName};

/// The places in an archive that may hold what is to be erased.
#[derive(Debug, Default)]
pub struct EraseCandidates {
    /// The logs, in their order.
    pub logs: Vec<FileEntry>,
    /// Objects with parts, which may hold it, of logs that are no longer looked for there: they were removed, or packed anew.
    pub strays: BTreeSet<ObjectName>,
    /// By the names of logs: where those runs begin that may hold it, have statements or their texts, or events in no transaction. Of others,
    /// nobody knows.
    starts: BTreeMap<String, BTreeSet<u64>>,
}

impl EraseCandidates {
    /// Every log may hold it, anywhere.
    pub fn all_logs(&mut self, manifest: &Manifest) {
        self.logs.clone_from(&manifest.files);
        self.starts.clear();
    }

    /// Gives the logs to `taker`, one after the other, without the parts that can't hold it and have no statements.
    pub fn read_ahead<T>(
        &self,
        storage: &dyn ArchiveStorage,
        workers: usize,
        taker: impl FnOnce(&mut PlainLogs) -> T,
    ) -> T {
        let starts = |file: &FileEntry| self.starts.get(file.name.as_str()).cloned();
        read_ahead(storage, &self.logs, &starts, workers, taker)
    }
}

/// Looks for logs and objects with blocks that are wanted. A block of which the index tells nothing is.
///
/// # Errors
///
/// Objects that are missing or damaged.
pub fn candidates(
    storage: &dyn ArchiveStorage,
    manifest: &Manifest,
    is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
) -> Result<EraseCandidates> {
    let last = LastObject::default();
    let mut found = EraseCandidates::default();
    let mut seen = BTreeSet::new();
    for file in &manifest.files {
        let mut objects = Vec::new();
        for name in &file.objects {
            let told = Arc::new(ObjectContents::open(storage, &last, name)?);
            if seen.insert(name) && has_wanted_stray(&told, (manifest, name), is_wanted) {
                found.strays.insert(name.clone());
            }
            objects.push(told);
        }
        let Some(of_log) = runs(file, &objects)? else {
            found.logs.push(file.clone());
            continue;
        };
        let wanted: Vec<bool> = of_log.iter().map(&mut *is_wanted).collect();
        if wanted.contains(&true) {
            found.logs.push(file.clone());
            // The places of runs among payloads are not those of the log as it is packed.
            if file.payload_level.is_none() {
                let starts = starts(&of_log, &wanted, &objects)?;
                found.starts.insert(file.name.to_string(), starts);
            }
        }
    }
    Ok(found)
}

/// Where the runs begin that are wanted, or have anything but rows.
fn starts(runs: &[BlockRun<'_>], wanted: &[bool], objects: &[Arc<ObjectContents>]) -> Result<BTreeSet<u64>> {
    let mut starts = BTreeSet::new();
    for (run, is_wanted) in runs.iter().zip(wanted) {
        let is_read = *is_wanted || run.may_have_statements() || run.may_have_loose();
        if is_read || run.may_have_texts(objects)? {
            starts.insert(run.start());
        }
    }
    Ok(starts)
}

fn has_wanted_stray(
    told: &ObjectContents,
    (manifest, object): (&Manifest, &ObjectName),
    is_wanted: &mut dyn FnMut(&BlockRun<'_>) -> bool,
) -> bool {
    let is_live = |log: &str| {
        let mut files = manifest.files.iter();
        files.any(|file| file.name == log && file.objects.contains(object))
    };
    stray_runs(told, &is_live).any(|run| is_wanted(&run))
}

/// How to erase.
#[derive(Debug, Clone)]
pub struct EraseOptions {
    /// The table, for the note on each log.
    pub table: String,
    /// How small, and how fast.
    pub level: Level,
    /// Threads.
    pub workers: usize,
    /// How long the former objects stay for readers.
    pub grace: Duration,
    /// When the run began.
    pub now: SystemTime,
}

/// The work of an erasure.
#[derive(Debug, Default)]
pub struct ErasePlan {
    /// The logs that hold it, in their order.
    pub logs: Vec<FileEntry>,
    /// The objects that are given up.
    pub objects: BTreeSet<ObjectName>,
    /// The other logs of these objects: they are packed anew as they are.
    pub neighbours: Vec<FileEntry>,
}

impl ErasePlan {
    /// What has to be done if these logs of a manifest hold it, and these objects in parts that nobody looks for.
    pub fn of(manifest: &Manifest, logs: Vec<FileEntry>, strays: BTreeSet<ObjectName>) -> Self {
        let mut objects = strays;
        objects.extend(logs.iter().flat_map(|file| file.objects.iter().cloned()));
        let is_neighbour = |file: &&FileEntry| {
            file.objects.iter().any(|object| objects.contains(object))
                && !logs.iter().any(|log| log.name == file.name)
        };
        let neighbours = manifest.files.iter().filter(is_neighbour).cloned().collect();
        ErasePlan { logs, objects, neighbours }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects that are given up, as they are stored.
    ///
    /// # Errors
    ///
    /// Storage that can't be listed.
    pub fn stored(&self, storage: &dyn ArchiveStorage) -> Result<Vec<ListedObject>> {
        let mut stored = storage.stored()?;
        stored.retain(|object| self.objects.contains(object.name.as_str()));
        Ok(stored)
    }
}

/// The result of an erasure.
#[derive(Debug, Default)]
pub struct EraseSummary {
    /// The logs as they are now.
    pub logs: Vec<FileEntry>,
    /// How many others were packed anew.
    pub repacked: usize,
    /// The objects that were given up.
    pub before: Vec<ListedObject>,
    /// The objects that were stored.
    pub after: Vec<ListedObject>,
    /// Logs that can't be restored or rewritten, and why: they stay where they are.
    pub failed: Vec<(String, Error)>,
    /// Objects to be given up in which logs still are: of logs that failed, or that another run put there meanwhile.
    pub still_named: Vec<ObjectName>,
    /// Leftovers of earlier runs that were deleted, and objects that can't be.
    pub swept: PruneSummary,
}

/// Erases. `told` gets each log before it is packed anew.
///
/// # Errors
///
/// An archive that can't be read or written; [`Error::Changed`] if its logs aren't those of the plan any more.
pub fn erase(
    storage: &dyn ArchiveStorage,
    plan: &ErasePlan,
    options: &EraseOptions,
    remains: &mut dyn LogRemains,
    told: &mut dyn FnMut(&FileEntry),
) -> Result<EraseSummary> {
    let EraseOptions { grace, now, .. } = *options;
    let mut summary = EraseSummary { before: plan.stored(storage)?, ..EraseSummary::default() };
    let stored: BTreeSet<String> = storage.stored()?.into_iter().map(|object| object.name).collect();
    let manifest = Manifest::of_archive(storage)?;
    // Another run may have removed logs, or packed them anew.
    if plan.logs.iter().chain(&plan.neighbours).any(|planned| !manifest.files.contains(planned)) {
        return Err(Error::Changed);
    }
    let mut ignored = |_: &_| {};
    let mut creator = Creator::new(storage, options.workers, &mut ignored)?;
    creator.level(options.level);
    let packed = pack_anew(storage, (&mut creator, &manifest), (plan, options), remains, told, &mut summary);
    // The logs packed before an error are kept.
    creator.finish().and(packed)?;
    let manifest = Manifest::of_archive(storage)?;
    let named = manifest.named();
    summary.still_named = plan.objects.intersection(&named).cloned().collect();
    let is_erased = |file: &&FileEntry| has_name(&plan.logs, file) && file.is_erased();
    summary.logs = manifest.files.iter().filter(is_erased).cloned().collect();
    summary.after = storage.stored()?;
    summary.after.retain(|object| named.contains(object.name.as_str()) && !stored.contains(&object.name));
    summary.swept = prune(storage, Keep::All, grace, now)?;
    Ok(summary)
}

/// Whether one of these logs has the name of this one.
fn has_name(logs: &[FileEntry], file: &FileEntry) -> bool {
    logs.iter().any(|log| log.name == file.name)
}

/// Packs all logs of a plan.
fn pack_anew(
    storage: &dyn ArchiveStorage,
    (creator, manifest): (&mut Creator<'_>, &Manifest),
    (plan, options): (&ErasePlan, &EraseOptions),
    remains: &mut dyn LogRemains,
    told: &mut dyn FnMut(&FileEntry),
    summary: &mut EraseSummary,
) -> Result<()> {
    let erased: Vec<_> = manifest.files.iter().filter(|file| has_name(&plan.logs, file)).cloned().collect();
    let moved: Vec<_> = manifest.files.iter().filter(|file| has_name(&plan.neighbours, file)).collect();
    // The other threads write and pack.
    read_ahead(storage, &erased, &|_| None, options.workers.div_ceil(2), |plain_logs| {
        let at = (seconds(options.now), options.table.as_str());
        let written = WrittenLogs { storage, files: &manifest.files, erased: &erased, moved: &moved, at };
        written.in_turn((plain_logs, remains), &mut |file, written| {
            told(file);
            let done = match written {
                Some(Ok(WrittenLog { log, note, former, digest })) => {
                    creator.put_erased(file, (log, digest), note, &former).map(Ok)?
                }
                Some(Err(error)) => Err(error),
                None => repacked(storage, (creator, file), options, summary)?,
            };
            if let Err(error) = done {
                summary.failed.push((file.name.to_string(), error));
            }
            Ok(())
        })
    })
}

/// Packs a log as it is. An inner error is that of this log alone.
fn repacked(
    storage: &dyn ArchiveStorage,
    (creator, file): (&mut Creator<'_>, &FileEntry),
    options: &EraseOptions,
    summary: &mut EraseSummary,
) -> Result<Result<()>> {
    match restored(storage, file, options.workers) {
        Ok(log) => {
            creator.repack(file, log, &FormerBlocks::of(storage, file)?.unchanged().keeping_references())?;
            summary.repacked += 1;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(error)),
    }
}

/// A log as it is packed: with the transactions of its payloads in their place, except for payloads that are kept as they are. Its
/// SHA-256 was compared.
///
/// # Errors
///
/// As [`restore::whole`].
pub fn plain(storage: &dyn ArchiveStorage, file: &FileEntry, workers: usize) -> Result<Arc<Scratch>> {
    restore::plain(storage, file, workers)
}

/// The SHA-256 of a report, in hexadecimal.
pub fn digest_of(report: &[u8]) -> String {
    let mut hasher = Hasher::default();
    // It takes every byte.
    let _ = hasher.write_all(report);
    hasher.finish().0
}
