//! `binlogz archive check`: whether every block can be read, and whether transactions are missing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use binlogz_archive::format::Manifest;
use binlogz_archive::presence::CheckDepth;
use binlogz_archive::storage::{self, ArchiveStorage, ListedObject, ManifestBytes, ObjectName, ReadRange};
use binlogz_archive::{Error, Result as ArchiveResult, check, last_check};
use binlogz_figures::grouped;
use clap::{Args, ValueEnum};
use parking_lot::Mutex;

use super::{failure, json, marks_of, open, print};
use crate::Exit;
use crate::cmd::workers;
use crate::erased;
use crate::failure::{CommandFailure, Result, warn};
use crate::format::ReportFormat;
use crate::progress::WorkProgress;

/// Check every block of an archive, and that its transactions have no gaps
///
/// When, how and with what result it was checked is written down in the archive: `list`, `fleet` and their metrics tell it.
///
/// The archive of a relay has another one below it for each further log that the relay kept (lineage-2 and so on), after a
/// failover for instance: these are checked too, and that no transactions are missing between them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckCommand {
    /// How much to look at
    #[arg(long, value_enum, default_value_t)]
    depth: DepthArg,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// The archive: its folder, or s3://BUCKET/PREFIX; several in the order in which their logs follow one another
    #[arg(required = true, value_name = "ARCHIVE")]
    archives: Vec<PathBuf>,
}

/// How much of an archive a check looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum DepthArg {
    /// Each object is there with its whole size, and its index has the logs' blocks: a request for each object
    Presence,
    /// All bytes of each object are read and compared with the SHA-256 in its name
    Hash,
    /// Every block is unpacked, and each log compared with its SHA-256
    #[default]
    Content,
}

impl From<DepthArg> for CheckDepth {
    fn from(depth: DepthArg) -> CheckDepth {
        match depth {
            DepthArg::Presence => CheckDepth::Presence,
            DepthArg::Hash => CheckDepth::Hash,
            DepthArg::Content => CheckDepth::Content,
        }
    }
}

const EXAMPLES: &str = "Examples:
  binlogz archive check /backup/db1
  binlogz archive check --depth presence s3://bucket/db1      # every hour; and the content each month
  binlogz archive check s3://bucket/db1 s3://bucket/db1/lineage-2

Exit codes: 0 whole and without gaps, 1 not, 2 bad usage or I/O trouble.";

impl CheckCommand {
    pub(super) fn run(self) -> Result<Exit> {
        let mut parts = Vec::new();
        for archive in &self.archives {
            parts.extend(with_lineages(archive, self.archives.len() > 1)?);
        }
        let is_text = self.format == ReportFormat::Text;
        let out = &mut io::stdout();
        let mut told = json::CheckJson::default();
        for part in &parts {
            let objects = part.objects();
            let size = part.size_of(&objects);
            let progress = Arc::new(WorkProgress::new(&part.place.display(), Some(size)));
            let storage = WatchedStorage {
                storage: &part.storage,
                objects: &objects,
                progress: Arc::clone(&progress),
                read: Arc::default(),
            };
            let began = SystemTime::now();
            let depth = CheckDepth::from(self.depth);
            let problems = check::damage(&storage, &part.manifest, depth, workers(None));
            drop((storage, progress));
            let mut problems = problems.map_err(failure(&part.place))?;
            let noted = last_check::note(&part.storage, &part.manifest, depth, problems.len() as u64, began);
            if let Err(error) = noted {
                warn(&format!("{}: {error}; that it was checked is not written down", part.place.display()));
            }
            problems.extend(check::chain(&part.manifest).map_err(failure(&part.place))?);
            if is_text {
                problems.iter().try_for_each(|problem| print(out, &format!("{}{problem}", part.prefix)))?;
            }
            if let Some(note) = erased::note_on(&part.manifest.files) {
                warn(&format!("{}: {note}", part.place.display()));
            }
            let archive = part.place.display().to_string();
            let logs = part.manifest.files.len();
            let selection = part.manifest.selection.clone();
            let marks = if is_text { marks_of(&part.manifest) } else { Vec::new() };
            marks.iter().try_for_each(|mark| print(out, &format!("{}{mark}", part.prefix)))?;
            let exits = part.manifest.exits.clone();
            told.archives.push(json::CheckedArchive { archive, selection, exits, logs, problems });
        }
        let named: Vec<_> = parts.iter().map(|part| (part.prefix.as_str(), &part.manifest)).collect();
        told.gaps = check::between(&named).map_err(|error| CommandFailure::Line(error.to_string()))?;
        told.whole = told.gaps.is_empty() && told.archives.iter().all(|archive| archive.problems.is_empty());
        if !is_text {
            json::print(&told)?;
        } else {
            told.gaps.iter().try_for_each(|problem| print(out, problem))?;
        }
        if !told.whole {
            return Ok(Exit::Negative);
        }
        let logs: usize = parts.iter().map(|part| part.manifest.files.len()).sum();
        let archives = if parts.len() > 1 { format!(" in {} archives", parts.len()) } else { String::new() };
        if is_text {
            let said = match logs {
                1 => format!("1 log{archives} is whole"),
                _ => format!("{} logs{archives} are whole and follow one another", grouped(logs as u64)),
            };
            let said = match self.depth {
                DepthArg::Content => said,
                DepthArg::Hash => format!("{said}, by the SHA-256 of their objects"),
                DepthArg::Presence => format!("{said}, as far as their objects are there"),
            };
            print(out, &said)?;
        }
        Ok(Exit::Done)
    }
}

/// A storage that shows how much is read from it. Bytes that are read several times, as for several logs, count once.
struct WatchedStorage<'s> {
    storage: &'s dyn ArchiveStorage,
    /// The objects whose bytes count: the manifest's copy does not.
    objects: &'s HashSet<&'s str>,
    progress: Arc<WorkProgress>,
    read: Arc<Mutex<ReadRanges>>,
}

/// The ranges read of each object: where they begin, and where they end. They neither overlap nor touch.
#[derive(Default)]
struct ReadRanges(HashMap<String, BTreeMap<u64, u64>>);

impl ReadRanges {
    /// Adds a range, and returns how many of its bytes are new.
    fn add(&mut self, object: &str, mut range: Range<u64>) -> u64 {
        let ranges = self.0.entry(object.to_owned()).or_default();
        let mut new = range.end.saturating_sub(range.start);
        // The last one that begins before the end comes first.
        while let Some((&begin, &end)) = ranges.range(..=range.end).next_back()
            && end >= range.start
        {
            ranges.remove(&begin);
            new -= end.min(range.end).saturating_sub(begin.max(range.start));
            range = range.start.min(begin)..range.end.max(end);
        }
        ranges.insert(range.start, range.end);
        new
    }
}

impl ArchiveStorage for WatchedStorage<'_> {
    fn put(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> ArchiveResult<()>,
    ) -> ArchiveResult<()> {
        self.storage.put(name, write)
    }

    fn get(&self, name: &str) -> ArchiveResult<Box<dyn ReadRange>> {
        let object = self.storage.get(name)?;
        if !self.objects.contains(name) {
            return Ok(object);
        }
        let progress = Arc::clone(&self.progress);
        let read = Arc::clone(&self.read);
        Ok(Box::new(WatchedObject { object, name: name.to_owned(), progress, read }))
    }

    fn delete(&self, name: &str) -> ArchiveResult<()> {
        self.storage.delete(name)
    }

    fn delete_all(&self, names: &[&str]) -> Vec<(String, Error)> {
        self.storage.delete_all(names)
    }

    fn stored(&self) -> ArchiveResult<Vec<ListedObject>> {
        self.storage.stored()
    }

    fn manifest(&self) -> ArchiveResult<Option<ManifestBytes>> {
        self.storage.manifest()
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> ArchiveResult<()> {
        self.storage.put_manifest(manifest, replaces)
    }

    fn copy_manifest(&self, manifest: &[u8]) -> ArchiveResult<()> {
        self.storage.copy_manifest(manifest)
    }

    fn has_copy_of(&self, manifest: &[u8]) -> bool {
        self.storage.has_copy_of(manifest)
    }

    fn alone(&self, work: &mut dyn FnMut() -> ArchiveResult<()>) -> ArchiveResult<()> {
        self.storage.alone(work)
    }

    fn is_encrypted(&self) -> ArchiveResult<bool> {
        self.storage.is_encrypted()
    }
}

struct WatchedObject {
    object: Box<dyn ReadRange>,
    name: String,
    progress: Arc<WorkProgress>,
    read: Arc<Mutex<ReadRanges>>,
}

impl ReadRange for WatchedObject {
    fn size(&self) -> ArchiveResult<u64> {
        self.object.size()
    }

    fn read(&self, offset: u64, size: usize) -> ArchiveResult<Vec<u8>> {
        let bytes = self.object.read(offset, size)?;
        let mut read = self.read.lock();
        self.progress.add(read.add(&self.name, offset..offset + bytes.len() as u64));
        Ok(bytes)
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        self.object.expect(ranges);
    }
}

/// An archive among several.
struct ArchiveUnderCheck {
    place: PathBuf,
    /// The prefix of each line about it.
    prefix: String,
    storage: Box<dyn ArchiveStorage>,
    manifest: Manifest,
}

impl ArchiveUnderCheck {
    /// The objects that hold its logs.
    fn objects(&self) -> HashSet<&str> {
        self.manifest.files.iter().flat_map(|file| &file.objects).map(ObjectName::as_str).collect()
    }

    /// Size of these objects together, in bytes. An object that isn't there has no bytes to read.
    fn size_of(&self, objects: &HashSet<&str>) -> u64 {
        let size = |name: &&str| self.storage.get(name).and_then(|object| object.size()).unwrap_or(0);
        objects.iter().map(size).sum()
    }
}

/// How many lineage numbers in a row may be missing: those of followed servers that had nothing.
const LINEAGES_MISSING_MAX: u32 = 3;

/// An archive, and those of a relay's further logs below it, the oldest first.
fn with_lineages(archive: &Path, is_one_of_several: bool) -> Result<Vec<ArchiveUnderCheck>> {
    let prefix = if is_one_of_several { format!("{}: ", archive.display()) } else { String::new() };
    let (storage, manifest) = open(archive)?;
    let mut parts =
        vec![ArchiveUnderCheck { place: archive.to_owned(), prefix: prefix.clone(), storage, manifest }];
    let mut missing = 0;
    for number in 2_u32.. {
        let name = format!("lineage-{number}");
        let place = archive.join(&name);
        let storage = storage::at(&place).map_err(failure(&place))?;
        match Manifest::read(&storage).map_err(failure(&place))? {
            Some(manifest) => {
                let prefix =
                    if is_one_of_several { format!("{}: ", place.display()) } else { format!("{name}: ") };
                parts.push(ArchiveUnderCheck { place, prefix, storage, manifest });
                missing = 0;
            }
            None if missing == LINEAGES_MISSING_MAX => break,
            None => missing += 1,
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_read_again_count_once() {
        let mut read = ReadRanges::default();
        let ranges =
            [(0..10, 10), (0..10, 0), (20..30, 10), (5..25, 10), (40..40, 0), (8..60, 30), (0..60, 0)];
        for (range, new) in ranges {
            assert_eq!(read.add("one", range.clone()), new, "{range:?}");
        }
        assert_eq!(read.add("other", 0..10), 10);
    }
}
