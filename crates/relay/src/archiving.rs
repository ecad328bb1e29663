//! Closed files go into an archive, and are purged only when they are there: packed, stored, read back and compared
//! (`binlogz-archive`). An archive that can't be reached keeps files from being purged, and nothing else. A replica that
//! needs what was purged has it brought back from there, into the log, where it is served like all else and purged again
//! when nobody reads it.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use binlogz_archive::create::{Created, Creator};
use binlogz_archive::manifest::Manifest;
use binlogz_archive::{restore, storage};
use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::Input;
use binlogz_store::FileNumber;

use crate::duties;
use crate::error::{Error, Result};
use crate::lineages::Kept;
use crate::relay::{Relay, lock};

/// How often is looked for files that were closed.
const INTERVAL: Duration = Duration::from_secs(5);
/// Threads that pack: receiving and serving go on meanwhile.
const WORKERS: usize = 1;

/// Where closed files go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// A folder, or `s3://BUCKET/PREFIX`.
    pub to: PathBuf,
}

/// Files that were brought back stay at least so long: whom they are for may have to come again.
const BROUGHT_BACK_STAYS: Duration = Duration::from_secs(300);

/// Which files are archived, and which came back.
#[derive(Debug, Default)]
pub(crate) struct Archived {
    last: Mutex<Option<FileNumber>>,
    /// The oldest, and when.
    brought_back: Mutex<Option<(FileNumber, Instant)>>,
    /// Held while files are brought back.
    bringing_back: Mutex<()>,
}

impl Archived {
    fn last(&self) -> Option<FileNumber> {
        *lock(&self.last)
    }

    fn advance(&self, number: FileNumber) {
        let mut last = lock(&self.last);
        *last = (*last).max(Some(number));
    }

    /// The oldest of the files that came back lately.
    fn brought_back(&self) -> Option<FileNumber> {
        let brought_back = *lock(&self.brought_back);
        brought_back.filter(|(_, when)| when.elapsed() < BROUGHT_BACK_STAYS).map(|(number, _)| number)
    }
}

/// Archives for ever.
pub(crate) fn watch(relay: &Relay, options: &ArchiveOptions) {
    let consequence = "files that are not archived are not purged";
    duties::rounds(relay, duties::ARCHIVE, INTERVAL, consequence, || match relay.kept() {
        Some(kept) => archive(relay, &kept, options),
        None => Ok(()),
    });
}

/// Archives the files that were closed since.
fn archive(relay: &Relay, kept: &Kept, options: &ArchiveOptions) -> Result<()> {
    let last = kept.archived.last();
    let mut closed = kept.store.logs()?;
    closed.pop();
    closed.retain(|log| Some(log.number) > last);
    if closed.is_empty() {
        return Ok(());
    }
    // Another server's files may have the same names.
    let to = kept.folder.as_ref().map_or_else(|| options.to.clone(), |folder| options.to.join(folder));
    let failed = |error| Error::Archive(to.display().to_string(), error);
    let storage = storage::at(&to).map_err(failed)?;
    let mut told = |created: &Created| {
        let (Created::Added(file) | Created::Known(file)) = created;
        if let Some(log) = closed.iter().find(|log| log.name == file.name) {
            kept.archived.advance(log.number);
        }
        if matches!(created, Created::Added(_)) {
            relay.say(&format!("archived {}: {} -> {} bytes", file.name, file.size, file.packed_size));
        }
    };
    let mut creator = Creator::new(&storage, WORKERS, &mut told).map_err(failed)?;
    for log in &closed {
        let directory = &relay.options.directory;
        let directory =
            kept.folder.as_ref().map_or_else(|| directory.clone(), |folder| directory.join(folder));
        let path = directory.join(&log.name);
        let reading = || Error::io(format!("read {}", path.display()));
        let mut input = Input::open(&path).map_err(reading())?;
        if let Some(keyring) = &relay.options.keyring {
            input = input.decrypted(keyring).map_err(|error| reading()(std::io::Error::other(error)))?;
        }
        let Input::Places(bytes) = input else { continue };
        creator.add(&log.name, bytes).map_err(failed)?;
    }
    creator.finish().map_err(failed)
}

/// The first of these files that may not be purged, since it is not archived; `None`: there is no archive.
pub(crate) fn first_needed(relay: &Relay, kept: &Kept) -> Result<Option<FileNumber>> {
    if relay.options.archive.is_none() {
        return Ok(None);
    }
    let first = || Ok::<_, Error>(kept.store.logs()?.first().map(|log| log.number));
    let needed = kept.archived.last().map_or_else(first, |last| Ok(Some(last.next())))?;
    Ok(kept.archived.brought_back().map_or(needed, |back| needed.map(|needed| needed.min(back))))
}

/// What a replica needs of what was purged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Needed<'a> {
    /// Everything that is not in this set.
    Behind(&'a GtidSet),
    /// This file, and all behind it.
    File(FileNumber),
}

/// Brings back the purged files that a replica needs; whether it can be served then. It waits meanwhile, or comes again.
pub(crate) fn bring_back(relay: &Relay, kept: &Kept, needed: Needed<'_>) -> Result<bool> {
    let Some(options) = &relay.options.archive else { return Ok(false) };
    let _alone = lock(&kept.archived.bringing_back);
    let to = kept.folder.as_ref().map_or_else(|| options.to.clone(), |folder| options.to.join(folder));
    let failed = |error| Error::Archive(to.display().to_string(), error);
    let Some(first) = kept.store.logs()?.first().map(|log| log.number) else { return Ok(false) };
    let is_there = match needed {
        Needed::Behind(has) => kept.store.previous_gtids(first)?.is_subset(has),
        Needed::File(number) => first <= number,
    };
    if is_there {
        // Somebody else was faster.
        return Ok(true);
    }
    let storage = storage::at(&to).map_err(failed)?;
    let manifest = Manifest::read(&storage).map_err(failed)?.unwrap_or_default();
    // From the file in front of the first one back to the one that has all that is wanted.
    let mut files = Vec::new();
    let mut next = first;
    loop {
        let before = manifest
            .files
            .iter()
            .find(|file| kept.store.names().number(&file.name).is_some_and(|number| number.next() == next));
        let Some(file) = before else { return Ok(false) };
        let Some(number) = kept.store.names().number(&file.name) else { return Ok(false) };
        files.push((number, file));
        let is_enough = match needed {
            Needed::Behind(has) => file.previous_gtid_set().map_err(failed)?.is_subset(has),
            Needed::File(wanted) => number <= wanted,
        };
        if is_enough {
            break;
        }
        next = number;
    }
    for (number, file) in files {
        kept.store.put_back(number, &mut |out| {
            restore::whole(&storage, file, out, WORKERS).map_err(std::io::Error::other)
        })?;
        *lock(&kept.archived.brought_back) = Some((number, Instant::now()));
        relay.say(&format!("brought {} back from {}", file.name, to.display()));
    }
    Ok(true)
}
