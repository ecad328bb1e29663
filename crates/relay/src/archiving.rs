//! Closed files go into an archive, and are purged only when they are there: packed, stored, read back and compared
//! (`binlogz-archive`). Of a log that another one follows all files are closed, the last one too. An archive that can't be
//! reached keeps files from being purged, and nothing else. A replica that needs what was purged has it brought back from
//! there, file by file, as it reads them (`brought_back`).

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use binlogz_archive::create::{Created, Creator};
use binlogz_archive::manifest::{FileEntry, Manifest};
use binlogz_archive::storage::Storage;
use binlogz_archive::{restore, storage};
use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::Input;
use binlogz_store::FileNumber;

use crate::brought_back::{BringBack, Lease, Place};
use crate::duties;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::lineages::Kept;
use crate::parts::FormFile;
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
    /// How much may come back from there.
    pub bring_back: BringBack,
}

impl ArchiveOptions {
    /// Another server's files may have the same names.
    fn place_of(&self, kept: &Kept) -> PathBuf {
        kept.folder.as_ref().map_or_else(|| self.to.clone(), |folder| self.to.join(folder))
    }
}

/// Which files are archived.
#[derive(Debug, Default)]
pub(crate) struct Archived {
    last: Mutex<Option<FileNumber>>,
}

impl Archived {
    fn last(&self) -> Option<FileNumber> {
        *lock(&self.last)
    }

    fn advance(&self, number: FileNumber) {
        let mut last = lock(&self.last);
        *last = (*last).max(Some(number));
    }
}

/// Archives for ever.
pub(crate) fn watch(relay: &Relay, options: &ArchiveOptions) {
    duties::rounds(relay, duties::ARCHIVE, INTERVAL, "it is tried again", || {
        // An error in one log does not hold up the others.
        for kept in relay.lineages.all() {
            if let Err(error) = archive(relay, &kept, options) {
                relay.complain(&error, &format!("{error}; files that are not archived are not purged"));
            }
        }
        relay.brought_back.sweep(&relay.lineages)
    });
}

/// Whether all of a log is archived, so that it can go whole; without an archive nothing is kept from going.
pub(crate) fn may_go_whole(relay: &Relay, kept: &Kept) -> Result<bool> {
    let last = kept.store.logs()?.last().map(|log| log.number);
    Ok(is_final(kept) && (relay.options.archive.is_none() || kept.archived.last() >= last))
}

/// Whether nothing more comes to a log: another one goes on in its place, and all of it is durable.
fn is_final(kept: &Kept) -> bool {
    kept.is_retired() && kept.store.positions().is_some_and(|now| now.written == now.durable)
}

/// Archives the files that were closed since.
fn archive(relay: &Relay, kept: &Kept, options: &ArchiveOptions) -> Result<()> {
    let last = kept.archived.last();
    let mut closed = kept.store.logs()?;
    if !is_final(kept) {
        closed.pop();
    }
    closed.retain(|log| Some(log.number) > last);
    if closed.is_empty() {
        return Ok(());
    }
    let to = options.place_of(kept);
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
        let mode = std::fs::metadata(&path).map_err(reading())?.mode();
        let mut input = Input::open(&path).map_err(reading())?;
        if let Some(keyring) = &relay.options.keyring {
            input = input.decrypted(keyring).map_err(|error| reading()(std::io::Error::other(error)))?;
        }
        let Input::Places(bytes) = input else { continue };
        creator.add_file(&log.name, bytes, Some(mode)).map_err(failed)?;
    }
    creator.finish().map_err(failed)
}

/// The first of these files that may not be purged, since it is not archived; `None`: there is no archive.
pub(crate) fn first_needed(relay: &Relay, kept: &Kept) -> Result<Option<FileNumber>> {
    if relay.options.archive.is_none() {
        return Ok(None);
    }
    let first = || Ok::<_, Error>(kept.store.logs()?.first().map(|log| log.number));
    kept.archived.last().map_or_else(first, |last| Ok(Some(last.next())))
}

/// The archived files that come before those on disk, without a gap.
struct Shelf {
    to: PathBuf,
    storage: Box<dyn Storage>,
    files: BTreeMap<FileNumber, FileEntry>,
}

impl Shelf {
    /// `None`: there is no archive.
    fn of(relay: &Relay, kept: &Kept) -> Result<Option<Shelf>> {
        let Some(options) = &relay.options.archive else { return Ok(None) };
        let Some((first, _)) = kept.front(Form::Received)? else { return Ok(None) };
        let to = options.place_of(kept);
        let failed = |error| Error::Archive(to.display().to_string(), error);
        let storage = storage::at(&to).map_err(failed)?;
        let manifest = Manifest::read(&storage).map_err(failed)?.unwrap_or_default();
        let numbered = |file: FileEntry| Some((kept.store.names().number(&file.name)?, file));
        let mut all: BTreeMap<_, _> = manifest.files.into_iter().filter_map(numbered).collect();
        let mut files = BTreeMap::new();
        let mut next = first;
        while let Some(number) = next.0.checked_sub(1).map(FileNumber)
            && let Some(file) = all.remove(&number)
        {
            files.insert(number, file);
            next = number;
        }
        Ok(Some(Shelf { to, storage, files }))
    }
}

/// The last archived file that begins with transactions of this set alone, from which on nothing is missing.
pub(crate) fn last_with(relay: &Relay, kept: &Kept, gtid_set: &GtidSet) -> Result<Option<FileNumber>> {
    let Some(shelf) = Shelf::of(relay, kept)? else { return Ok(None) };
    for (number, file) in shelf.files.iter().rev() {
        let previous = file.previous_gtid_set();
        if previous
            .map_err(|error| Error::Archive(shelf.to.display().to_string(), error))?
            .is_subset(gtid_set)
        {
            return Ok(Some(*number));
        }
    }
    Ok(None)
}

/// The purged file that has this number in a form, if it is archived.
pub(crate) fn find(relay: &Relay, kept: &Kept, form: Form, wanted: FileNumber) -> Result<Option<FormFile>> {
    let Some(shelf) = Shelf::of(relay, kept)? else { return Ok(None) };
    if form != Form::Uncompressed {
        return Ok(shelf.files.contains_key(&wanted).then(|| FormFile::first_of(wanted)));
    }
    let Some((_, mut number)) = kept.front(form)? else { return Ok(None) };
    for file in shelf.files.keys().rev() {
        number.0 = number.0.saturating_sub(parts(relay, kept, form, *file)?);
        if let Some(part) = wanted.0.checked_sub(number.0) {
            return Ok(Some(FormFile { file: *file, part: part as u32 }));
        }
    }
    Ok(None)
}

/// Finds out into how many files of a form the purged ones from this one on were cut: their names depend on it. Those of
/// which it is not known are brought back one by one.
pub(crate) fn count_parts(relay: &Relay, kept: &Kept, form: Form, from: FileNumber) -> Result<()> {
    let Some((first, _)) = kept.front(Form::Received)? else { return Ok(()) };
    if form == Form::Uncompressed {
        for file in from.0..first.0 {
            parts(relay, kept, form, FileNumber(file))?;
        }
    }
    Ok(())
}

fn parts(relay: &Relay, kept: &Kept, form: Form, file: FileNumber) -> Result<u64> {
    let count = || Ok::<_, Error>(kept.parts_of(form, file)?.count() as u64);
    match count() {
        Ok(count) => Ok(count),
        Err(Error::Store(_)) => {
            let _lease = lease(relay, kept, file)?;
            count()
        }
        Err(error) => Err(error),
    }
}

/// Has a file there as long as somebody holds what this gives; `None`: it is in the log.
///
/// # Errors
///
/// A file that is neither in the log nor in the archive, or not the one that was archived; no room for it.
pub(crate) fn lease(relay: &Relay, kept: &Kept, number: FileNumber) -> Result<Option<Lease>> {
    if kept.store.logs()?.iter().any(|log| log.number == number) {
        return Ok(None);
    }
    let shelf = Shelf::of(relay, kept)?.ok_or_else(purged)?;
    let file = shelf.files.get(&number).ok_or_else(purged)?;
    let place = Place { lineages: &relay.lineages, kept, number };
    let (mut failed, mut came) = (None, false);
    let leased = relay.brought_back.lease(&place, file.size, &mut |out| {
        came = true;
        match restore::whole(&shelf.storage, file, out, WORKERS) {
            Ok(()) => Ok(()),
            Err(error) => {
                let line = error.to_string();
                failed = Some(error);
                Err(io::Error::other(line))
            }
        }
    });
    let to = shelf.to.display();
    // What is wrong with the archive is told in its own words.
    let lease = leased.map_err(|error| match failed {
        Some(failed) => Error::Archive(format!("{to}/{}", file.name), failed),
        None => error,
    })?;
    if came {
        relay.say(&format!("brought {} back from {to}", file.name));
    }
    Ok(Some(lease))
}

/// Neither the log nor the archive has what a client lacks.
pub(crate) fn purged() -> Error {
    Error::Refused(
        "Cannot replicate because the source purged required binary logs: the relay's log begins later"
            .into(),
    )
}

impl Kept {
    /// The first stored file that is not purged, and the number of its first file in a form. For a log that was purged whole:
    /// the numbers that would follow its end.
    fn front(&self, form: Form) -> Result<Option<(FileNumber, FileNumber)>> {
        if let Some((first, number)) = self.files(form)?.first() {
            return Ok(Some((first.file, *number)));
        }
        let after = self.store.positions().map(|now| now.durable.file.next());
        let known = self.cuts.first().filter(|(file, _)| form == Form::Uncompressed && Some(*file) == after);
        Ok(known.or(after.map(|after| (after, after))))
    }

    /// Remembers the number that would follow the last file, which is about to go.
    pub(crate) fn fix_numbers_after(&self, last: FileNumber) -> Result<()> {
        let number = self.number_of(Form::Uncompressed, FormFile::first_of(last))?;
        let parts = self.parts_of(Form::Uncompressed, last)?.count() as u64;
        self.cuts.set_first((last.next(), FileNumber(number.0 + parts)))
    }

    /// The number of a purged file in the uncompressed form; `None`: it is not purged.
    pub(crate) fn number_of_purged(&self, wanted: FormFile) -> Result<Option<FileNumber>> {
        let Some((first, mut number)) = self.front(Form::Uncompressed)? else { return Ok(None) };
        if wanted.file >= first {
            return Ok(None);
        }
        for file in wanted.file.0..first.0 {
            let parts = self.parts_of(Form::Uncompressed, FileNumber(file))?.count() as u64;
            number.0 = number.0.saturating_sub(parts);
        }
        number.0 += u64::from(wanted.part);
        Ok(Some(number))
    }
}
