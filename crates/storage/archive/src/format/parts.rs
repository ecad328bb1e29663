//! The older entries of a large manifest. They are in immutable objects beside the segments, so that a run which adds a
//! log doesn't write the entries of a hundred thousand others again.
//!
//! ```text
//! manifest.json                              the newest logs themselves, and for each part its object, logs, size, sha256
//! objects/manifest-part-HASH.binlogz         entries as a JSON array, packed by zstd; HASH begins the SHA-256 of the packed bytes
//! objects/manifest-part-HASH-copy.binlogz    the same bytes once more, read where the first are damaged
//! ```
//!
//! There are at most [`PARTS_MAX`] parts, since a reader takes each by a request of its own: see
//! [`super::Manifest::read`]. New logs go to the last part. The last part is joined with the first once it was written so
//! often that this costs as much as writing the first. With N logs that is after about sqrt(450 N) new ones, so a log is
//! written anew about sqrt(N / 110) times in its life.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file_entry::FileEntry;
use crate::codec::zstd::{self, Effort};
use crate::error::{Error, Result};
use crate::storage::{ArchiveStorage, ObjectName};

/// The most logs that stand in the manifest itself: a few hundred bytes each, written by every run.
pub(super) const TAIL_MAX: usize = 256;
/// The newest logs, which stay there: the last one may be of a log in use, and is replaced soon.
const TAIL_MIN: usize = 32;
/// The logs that leave the manifest at once.
const BATCH: usize = TAIL_MAX - TAIL_MIN;
/// The most parts.
const PARTS_MAX: usize = 2;
/// The most bytes of entries in a part.
const SIZE_MAX: u64 = 1 << 30;
/// Hexadecimal digits of a SHA-256 in a part's name.
const NAME_DIGITS: usize = 32;
const PREFIX: &str = "manifest-part-";
const SUFFIX: &str = ".binlogz";

/// A part, as the manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManifestPart {
    /// The name of its object.
    object: ObjectName,
    /// How many logs it has.
    logs: usize,
    /// Bytes of their entries as JSON.
    size: u64,
    /// The SHA-256 of the object, in hexadecimal.
    sha256: String,
    /// First name and hash of the part's logs, from when it was read; `None`: one of its two objects is damaged, so it is
    /// to be stored again.
    #[serde(skip)]
    known: Option<PartIndex>,
}

/// How to find a part's logs among all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PartIndex {
    first: String,
    hash: u64,
}

/// Consecutive logs that are to be in one part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogRun {
    pub(super) logs: Range<usize>,
    /// The number of the part that has exactly these already.
    pub(super) stored: Option<usize>,
}

impl ManifestPart {
    /// Stores these entries, twice.
    pub(super) fn store(storage: &dyn ArchiveStorage, files: &[FileEntry]) -> Result<ManifestPart> {
        let plain = serde_json::to_vec(files)?;
        let size = plain.len() as u64;
        let packed = zstd::pack(&plain, Effort::Quick)?;
        let sha256 = sha256(&packed);
        let object =
            ObjectName::new(format!("{PREFIX}{}{SUFFIX}", sha256.get(..NAME_DIGITS).unwrap_or_default()))?;
        let part = ManifestPart { object, logs: files.len(), size, sha256, known: known(files) };
        for name in part.objects() {
            storage.put(&name, &mut |out| out.write_all(&packed).map_err(Error::writing))?;
            part.packed(storage, &name)?;
        }
        Ok(part)
    }

    /// Names of the part's two objects, which have the same bytes.
    pub(super) fn objects(&self) -> [ObjectName; 2] {
        [self.object.clone(), self.object.copy()]
    }

    /// Reads the part's entries, from whichever of its two objects is whole.
    pub(super) fn read(&mut self, storage: &dyn ArchiveStorage) -> Result<Vec<FileEntry>> {
        let [first, copy] = self.objects();
        self.known = None;
        let (packed, is_whole) = match self.packed(storage, &first) {
            Ok(packed) => (packed, true),
            Err(error) => (self.packed(storage, &copy).map_err(|_| error)?, false),
        };
        if self.size > SIZE_MAX {
            return Err(self.unexpected("size", self.size, format_args!("at most {SIZE_MAX}")));
        }
        let files: Vec<FileEntry> = serde_json::from_slice(&zstd::unpack(&packed, self.size as usize)?)?;
        if files.len() != self.logs {
            return Err(self.unexpected("logs", files.len(), self.logs));
        }
        self.known = known(&files).filter(|_| is_whole);
        Ok(files)
    }

    /// The damage of the part's objects, one line each; empty if both are whole.
    pub(super) fn problems(&self, storage: &dyn ArchiveStorage) -> Vec<String> {
        let damaged = self.objects().into_iter().filter_map(|name| self.packed(storage, &name).err());
        damaged.map(|error| format!("part of the manifest: {error}; it is there a second time")).collect()
    }

    /// The bytes of one of its objects.
    fn packed(&self, storage: &dyn ArchiveStorage, name: &str) -> Result<Vec<u8>> {
        let object = storage.get(name)?;
        let size = object.size()?;
        if size > SIZE_MAX {
            return Err(self.unexpected("bytes", size, format_args!("at most {SIZE_MAX}")));
        }
        let packed = object.read(0, size as usize)?;
        match sha256(&packed) {
            found if found == self.sha256 => Ok(packed),
            found => Err(Error::unexpected(format!("{name}: SHA-256"), found, &self.sha256)),
        }
    }

    fn unexpected(&self, what: &str, found: impl ToString, expected: impl ToString) -> Error {
        Error::unexpected(format!("{}: {what}", self.object), found, expected)
    }
}

/// Whether an object is a part, or the copy of one.
pub(super) fn is_part(object: &str) -> bool {
    object.starts_with(PREFIX)
}

/// The logs that go into parts, and the number of the first one that is in the manifest itself.
pub(super) fn arrange(files: &[FileEntry], parts: &[ManifestPart]) -> (Vec<LogRun>, usize) {
    if files.len() <= TAIL_MAX {
        return (Vec::new(), 0);
    }
    let mut runs = Vec::new();
    let mut at = 0;
    for (number, part) in parts.iter().enumerate() {
        let Some(logs) = found(files, at, part) else { continue };
        runs.push(LogRun { logs: at..logs.start, stored: None });
        at = logs.end;
        runs.push(LogRun { logs, stored: Some(number) });
    }
    let tail = if files.len() - at > TAIL_MAX { files.len() - TAIL_MIN } else { at };
    runs.push(LogRun { logs: at..tail, stored: None });
    (leveled(runs.into_iter().filter(|run| !run.logs.is_empty())), tail)
}

/// Where a part's logs are, from this place on, if all are there as they were.
fn found(files: &[FileEntry], from: usize, part: &ManifestPart) -> Option<Range<usize>> {
    let known = part.known.as_ref()?;
    let start = from + files.get(from..)?.iter().position(|file| file.name == known.first)?;
    let logs = start..start + part.logs;
    (hash(files.get(logs.clone())?) == known.hash).then_some(logs)
}

/// Joins runs until none costs more than the one before it, and there are at most [`PARTS_MAX`].
fn leveled(runs: impl Iterator<Item = LogRun>) -> Vec<LogRun> {
    let mut leveled: Vec<LogRun> = Vec::new();
    for run in runs {
        add(&mut leveled, run);
    }
    while leveled.len() > PARTS_MAX {
        let Some((last, before)) = leveled.pop().zip(leveled.pop()) else { break };
        add(&mut leveled, join(before, last));
    }
    leveled
}

/// Adds a run, joined with those before it that cost no more.
fn add(leveled: &mut Vec<LogRun>, mut run: LogRun) {
    while let Some(before) = leveled.pop_if(|before| growing_cost(&run) >= before.logs.len()) {
        run = join(before, run);
    }
    leveled.push(run);
}

fn join(before: LogRun, run: LogRun) -> LogRun {
    LogRun { logs: before.logs.start..run.logs.end, stored: None }
}

/// How many logs are written until a part has grown to this one, batch by batch.
fn growing_cost(run: &LogRun) -> usize {
    run.logs.len().saturating_mul(run.logs.len()) / (2 * BATCH)
}

fn known(files: &[FileEntry]) -> Option<PartIndex> {
    Some(PartIndex { first: files.first()?.name.to_string(), hash: hash(files) })
}

fn hash(files: &[FileEntry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    hasher.finish()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(lengths: &[(usize, Option<usize>)]) -> Vec<(usize, Option<usize>)> {
        let mut at = 0;
        let runs = lengths.iter().map(|(length, stored)| {
            at += length;
            LogRun { logs: at - length..at, stored: *stored }
        });
        leveled(runs).into_iter().map(|run| (run.logs.len(), run.stored)).collect()
    }

    #[test]
    fn two_parts_hold_any_number_of_logs_and_few_are_written_anew() {
        assert_eq!(runs(&[(100_000, Some(0)), (300, None)]), [(100_000, Some(0)), (300, None)]);
        assert_eq!(
            runs(&[(100_000, Some(0)), (6_000, Some(1)), (224, None)]),
            [(100_000, Some(0)), (6_224, None)]
        );
        // The second was written so often that writing both costs no more.
        assert_eq!(runs(&[(100_000, Some(0)), (6_600, Some(1)), (224, None)]), [(106_824, None)]);
        assert_eq!(runs(&[(200, Some(0)), (300, None)]), [(500, None)]);
        // The beginning was pruned.
        assert_eq!(runs(&[(30_000, None), (1_000, Some(1))]), [(30_000, None), (1_000, Some(1))]);
        // Earlier programs left a third.
        assert_eq!(
            runs(&[(90_000, Some(0)), (5_000, Some(1)), (300, Some(2))]),
            [(90_000, Some(0)), (5_300, None)]
        );
        assert!(written(100_000) < 40 && written(500_000) < 90);
    }

    /// How often a log is written if this many come one after the other.
    fn written(logs: usize) -> usize {
        let mut parts = Vec::new();
        let mut written = 0;
        for _ in 0..logs / BATCH {
            let before: Vec<_> =
                parts.iter().enumerate().map(|(number, (length, _))| (*length, Some(number))).collect();
            parts = runs(&[before, vec![(BATCH, None)]].concat());
            assert!(parts.len() <= PARTS_MAX, "{parts:?}");
            written +=
                parts.iter().filter(|(_, stored)| stored.is_none()).map(|(length, _)| length).sum::<usize>();
        }
        written / logs
    }
}
