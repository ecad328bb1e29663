//! Closed logs of one server that are served without a source: an archive's, or plain files.
//!
//! Takes an archive or files, and a place at which to end. `housekeeping` gets the logs in order, and brings one back
//! whenever a reader needs it. The relay has only the last log on its disk, cut at its end.
//!
//! * this file finds the logs and writes their bytes;
//! * `head` reads the facts of a plain file;
//! * `end` cuts the last log: after its last whole transaction, or where the caller wants to stop.

mod end;
mod head;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::chosen_tables::is_selected_name;
use binlogz_archive::format::{ErasedLogs, FileEntry, Manifest};
use binlogz_archive::storage::{self, ArchiveStorage};
use binlogz_archive::{Error as ArchiveError, log, restore};
use binlogz_binlog::gtid::GtidSet;
use binlogz_encryption::Keyring;
use binlogz_flow::{Input, LogFacts, Sequel};
use binlogz_store::{FileNumber, LogNames};

use crate::error::{Error, Result};
pub use end::{EndedLogs, LastTransaction, StopAt};

/// Threads that unpack blocks of an archive.
const WORKERS: usize = 2;

/// Closed logs, by their numbers; none is missing between two of them.
pub struct ClosedLogs {
    place: String,
    base: String,
    logs: BTreeMap<FileNumber, ClosedLog>,
    origin: Origin,
    /// Why logs before these are left out.
    left_out: Option<String>,
    /// A warning: only their numbers tell that one log continues the other.
    by_numbers: Option<String>,
}

enum Origin {
    Archive(Box<dyn ArchiveStorage>),
    Files(Option<Arc<Keyring>>),
}

/// A closed log.
pub struct ClosedLog {
    /// Its name.
    pub name: String,
    /// Bytes, at most.
    pub size: u64,
    bytes: Bytes,
}

impl ClosedLog {
    fn entry(&self) -> Option<&FileEntry> {
        match &self.bytes {
            Bytes::Archived(entry) => Some(entry),
            Bytes::File(..) => None,
        }
    }

    /// What was erased from it; `None`: nothing.
    pub fn erased(&self) -> Option<ErasedLogs> {
        ErasedLogs::among(self.entry())
    }

    /// Up to here its positions are those of its server's log; `None`: all are.
    pub fn positions_until(&self) -> Option<u64> {
        self.entry().and_then(FileEntry::positions_until)
    }

    /// Tells its bytes from those that it had before values were erased from it.
    pub fn version(&self) -> &str {
        self.entry().map_or("", |entry| &entry.sha256)
    }
}

enum Bytes {
    Archived(Box<FileEntry>),
    File(PathBuf, Box<LogFacts>),
}

impl std::fmt::Debug for ClosedLogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.logs.values().map(|log| &log.name).collect();
        f.debug_struct("ClosedLogs").field("place", &self.place).field("logs", &names).finish_non_exhaustive()
    }
}

impl ClosedLogs {
    /// The logs of an archive.
    ///
    /// # Errors
    ///
    /// There is no archive, or it can't be read; it has no log, or logs of several servers.
    pub fn of_archive(place: &Path) -> Result<ClosedLogs> {
        let shown = place.display().to_string();
        let (storage, manifest) = archive_at(place).map_err(|error| Error::Archive(shown.clone(), error))?;
        let manifest = manifest
            .ok_or_else(|| Error::Refused(format!("{shown}: is no archive: it has no manifest.json")))?;
        if let Some(selection) = manifest.selection {
            let selection = selection.to_string();
            return Err(Error::Archive(shown, ArchiveError::Selection { selection }));
        }
        let files = manifest.files.into_iter().map(|file| (file.name.to_string(), file)).collect();
        ClosedLogs::of(shown, Origin::Archive(storage), files, |file| {
            Ok((file.size, Bytes::Archived(Box::new(file))))
        })
    }

    /// Files, in any order; encrypted ones with a key of the keyring.
    ///
    /// # Errors
    ///
    /// A file that can't be read or is no binary log, or is named as a selection is; there is none; they are logs of several servers.
    pub fn of_files(paths: &[PathBuf], keyring: Option<Arc<Keyring>>) -> Result<ClosedLogs> {
        let shown = match paths {
            [path] => path.display().to_string(),
            [path, ..] => format!("{} and {} more files", path.display(), paths.len() - 1),
            [] => "no file".into(),
        };
        let keys = keyring.clone();
        let mut files: Vec<(String, PathBuf)> =
            paths.iter().map(|path| (file_name(path), path.clone())).collect();
        log::sort_by_name(&mut files, |(name, _)| name);
        if let Some((name, path)) = files.iter().find(|(name, _)| is_selected_name(name)) {
            let path = path.display();
            return Err(Error::Refused(format!(
                "{path}: is named {name} as a selection of tables, expected a whole log: others were left out, which would go unnoticed here"
            )));
        }
        let last = files.last().map(|(_, path)| path.clone());
        ClosedLogs::of(shown, Origin::Files(keyring), files, |path| {
            let metadata = std::fs::metadata(&path);
            let size = metadata.map_err(Error::io(format!("read {}", path.display())))?.len();
            let facts = head::facts(&path, keys.as_deref(), last.as_ref() == Some(&path))?;
            Ok((size, Bytes::File(path, Box::new(facts))))
        })
    }

    /// An archive's logs of this base name; nothing if there is no archive yet.
    pub fn in_archive(place: &Path, names: &LogNames) -> Result<ClosedLogs> {
        let shown = place.display().to_string();
        let (storage, manifest) = archive_at(place).map_err(|error| Error::Archive(shown.clone(), error))?;
        let mut logs = BTreeMap::new();
        // The files of a selection are not those that were purged, nor are masked ones.
        let whole = manifest.filter(|manifest| manifest.selection.is_none() && manifest.exits.is_none());
        for file in whole.unwrap_or_default().files {
            if let Some(number) = names.number(&file.name) {
                let name = file.name.to_string();
                let size = file.size;
                logs.insert(number, ClosedLog { name, size, bytes: Bytes::Archived(Box::new(file)) });
            }
        }
        Ok(ClosedLogs {
            place: shown,
            base: String::new(),
            logs,
            origin: Origin::Archive(storage),
            left_out: None,
            by_numbers: None,
        })
    }

    fn of<F>(
        place: String,
        origin: Origin,
        files: Vec<(String, F)>,
        bytes: impl Fn(F) -> Result<(u64, Bytes)>,
    ) -> Result<ClosedLogs> {
        let unfit = |name: &str, what: String| Err(Error::Refused(format!("{place}: {name} {what}")));
        let Some(first) = files.first().map(|(name, _)| name.clone()) else {
            return Err(Error::Refused(format!("{place}: there is no log in it, expected at least one")));
        };
        let base = first.rsplit_once('.').map(|(base, _)| base.to_owned()).unwrap_or_default();
        let names = LogNames::new(&base)?;
        let mut logs = BTreeMap::new();
        let mut left_out = None;
        let mut last = None::<(FileNumber, String)>;
        for (name, file) in files {
            let Some(number) = names.number(&name) else {
                return unfit(
                    &name,
                    format!("is no log of the server of {first}: expected names such as {base}.000001"),
                );
            };
            let (size, bytes) = bytes(file)?;
            match last {
                Some((before, _)) if before == number => {
                    let before = logs.get(&before).map(|log: &ClosedLog| &log.bytes);
                    if let (Some(Bytes::File(_, before)), Bytes::File(_, facts)) = (before, &bytes) {
                        facts.follow(before).map_err(|error| Error::Refused(error.to_string()))?;
                    }
                    return unfit(&name, "is there twice".into());
                }
                Some((before, before_name)) if before.next() != number => {
                    // Nobody chose the logs of an archive. Files were named: another one was meant.
                    if matches!(origin, Origin::Files(_)) {
                        return Err(Error::Refused(format!(
                            "{place}: {} is missing between {before_name} and {name}",
                            names.log(before.next())
                        )));
                    }
                    left_out = Some(format!(
                        "{} is missing between {before_name} and {name}: only {name} and later logs are served",
                        names.log(before.next())
                    ));
                    logs.clear();
                }
                _ => {}
            }
            logs.insert(number, ClosedLog { name: name.clone(), size, bytes });
            last = Some((number, name));
        }
        let mut logs = ClosedLogs { place, base, logs, origin, left_out, by_numbers: None };
        logs.check_order()?;
        Ok(logs)
    }

    /// Each log must have come after the one before it.
    fn check_order(&mut self) -> Result<()> {
        let mut by_numbers = None;
        for ((_, before), (_, log)) in self.logs.iter().zip(self.logs.iter().skip(1)) {
            if let (Bytes::File(_, before), Bytes::File(_, log)) = (&before.bytes, &log.bytes) {
                match log.follow(before).map_err(|error| Error::Refused(error.to_string()))? {
                    Sequel::ByGtids => {}
                    Sequel::Lacking(missing) => {
                        return Err(Error::Refused(format!(
                            "{} does not continue {}: {} are missing between them; if the server had them otherwise, as from a \
                             backup: begin with {}",
                            log.name,
                            before.name,
                            missing.brief(),
                            log.name
                        )));
                    }
                    Sequel::ByNumbers | Sequel::Unknown => {
                        by_numbers.get_or_insert_with(|| {
                            format!(
                                "that {} continues {}, and so on, is known from numbers, times and server ids alone: they \
                                 have no GTIDs that show it",
                                log.name, before.name
                            )
                        });
                    }
                }
                continue;
            }
            let had = self.previous(before)?;
            let has = self.previous(log)?;
            if !had.is_subset(&has) {
                let mut lost = had;
                lost.subtract(&has);
                return Err(Error::Refused(format!(
                    "{}: {} does not continue {}: before it came {}, of which it knows nothing; they are logs of \
                     different servers, or one was reset",
                    self.place,
                    log.name,
                    before.name,
                    lost.brief()
                )));
            }
            if let Bytes::Archived(entry) = &before.bytes {
                let mut joined = had;
                joined.union(&entry.gtid_set().map_err(self.failed())?);
                let mut missing = has;
                missing.subtract(&joined);
                if !missing.is_empty() {
                    return Err(Error::Refused(format!(
                        "{}: {} does not continue {}: {} are missing between them",
                        self.place,
                        log.name,
                        before.name,
                        missing.brief()
                    )));
                }
            }
        }
        self.by_numbers = by_numbers;
        Ok(())
    }

    fn failed(&self) -> impl Fn(binlogz_archive::Error) -> Error {
        |error| Error::Archive(self.place.clone(), error)
    }

    /// The archive or folder that the logs come from, for people.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Why logs before these are left out, if any are.
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// A warning about the order of the logs, if it is not certain.
    pub fn uncertain(&self) -> Option<&str> {
        self.by_numbers.as_deref()
    }

    /// Those of an archive from which values were erased.
    pub fn erased(&self) -> Option<ErasedLogs> {
        ErasedLogs::among(self.logs.values().filter_map(ClosedLog::entry))
    }

    /// The first log that has transactions without GTIDs, as far as its begin or its transactions were looked at.
    pub fn with_anonymous(&self) -> Option<&str> {
        let has = |log: &&ClosedLog| matches!(&log.bytes, Bytes::File(_, facts) if facts.has_anonymous);
        self.logs.values().find(has).map(|log| log.name.as_str())
    }

    /// Bytes of all of them.
    pub fn size(&self) -> u64 {
        self.logs.values().map(|log| log.size).sum()
    }

    /// The names of the first and the last one.
    pub fn range(&self) -> (&str, &str) {
        let first = self.logs.values().next().map_or("", |log| &log.name);
        (first, self.logs.values().next_back().map_or("", |log| &log.name))
    }

    /// The name of each log, in their order, with the transactions before it.
    ///
    /// # Errors
    ///
    /// An archive's manifest that can't be understood.
    pub fn beginnings(&self) -> Result<Vec<(&str, GtidSet)>> {
        self.logs.values().map(|log| Ok((log.name.as_str(), self.previous(log)?))).collect()
    }

    /// The base name.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The log of this number.
    pub fn get(&self, number: FileNumber) -> Option<&ClosedLog> {
        self.logs.get(&number)
    }

    /// The logs just before this one, newest first, as far as none is missing.
    pub fn just_before(&self, number: FileNumber) -> Vec<FileNumber> {
        let mut next = number;
        let mut found = Vec::new();
        while let Some(before) = next.0.checked_sub(1).map(FileNumber)
            && self.logs.contains_key(&before)
        {
            found.push(before);
            next = before;
        }
        found
    }

    /// The transactions before a log.
    pub fn previous(&self, log: &ClosedLog) -> Result<GtidSet> {
        match &log.bytes {
            Bytes::Archived(entry) => entry.previous_gtid_set().map_err(self.failed()),
            Bytes::File(_, facts) => Ok(facts.previous.clone().unwrap_or_default()),
        }
    }

    /// The transactions before all of them.
    pub(crate) fn before_all(&self) -> Result<GtidSet> {
        self.logs.values().next().map_or(Ok(GtidSet::new()), |first| self.previous(first))
    }

    /// Writes a log as it is, decrypted.
    pub fn write(&self, log: &ClosedLog, out: &mut dyn Write) -> Result<()> {
        match (&self.origin, &log.bytes) {
            (Origin::Archive(storage), Bytes::Archived(entry)) => {
                restore::whole(storage, entry, out, WORKERS)
                    .map_err(|error| Error::Archive(format!("{}/{}", self.place, log.name), error))
            }
            (Origin::Files(keyring), Bytes::File(path, _)) => {
                let mut from = head::open(path, keyring.as_deref()).map_err(|error| match error {
                    Error::Io { doing, source } if source.kind() == io::ErrorKind::NotFound => {
                        Error::Refused(format!("{doing}: {source}"))
                    }
                    error => error,
                })?;
                let copied = io::copy(&mut from, out).map(drop);
                copied.map_err(Error::io(format!("copy {}", path.display())))
            }
            // One kind of place has one kind of logs.
            _ => Err(Error::Refused(format!("{}: {} is nowhere", self.place, log.name))),
        }
    }
}

/// An archive, and its manifest if it is one.
fn archive_at(place: &Path) -> binlogz_archive::Result<(Box<dyn ArchiveStorage>, Option<Manifest>)> {
    let storage = storage::at(place)?;
    let manifest = Manifest::read(&storage)?;
    Ok((storage, manifest))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The bytes of a plain file, decrypted.
fn decrypted(path: &Path, keyring: Option<&Keyring>) -> Result<Arc<dyn binlogz_flow::ReadAt>> {
    let failed = || Error::io(format!("read {}", path.display()));
    let mut input = Input::open(path).map_err(failed())?;
    if let Some(keyring) = keyring {
        input = input.decrypted(keyring).map_err(|error| failed()(io::Error::other(error)))?;
    }
    match input {
        Input::Places(places) => Ok(places),
        _ => Err(Error::Refused(format!("{}: is no file; it has to be read twice", path.display()))),
    }
}
