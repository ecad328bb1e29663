//! The store: files, positions, reopening. Writing is [`crate::writer`]'s, opening [`crate::recover`]'s.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use binlogz_binlog::gtid::GtidSet;
use binlogz_encryption::Keyring;

use crate::aside;
use crate::damage::Damage;
use crate::error::{Error, Result};
use crate::file::LogFile;
use crate::index::{self, NewIndex};
use crate::latch::Latch;
use crate::lending::Lent;
use crate::log_name::{FileNumber, LogNames};
use crate::meta::{self, Lineage};
use crate::positions::{Position, Positions, SharedPositions};
use crate::reader::LogReader;
use crate::recover::{Recovered, RecoveryReport, recover};
use crate::scan;
use crate::storage::{FileWriter, Storage};
use crate::watermark::Watermark;
use crate::writer::{self, Active, StoreWriter};

/// Which log, and how it is opened.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// What file names begin with.
    pub base_name: String,
    /// Opens encrypted files.
    pub keyring: Option<Arc<Keyring>>,
    /// Whose log this is.
    pub lineage: Lineage,
    /// How often the file that says how far the log is durable is synced itself, while the log is: so much of it may be
    /// unknown after a crash of the system. With each sync of the log: [`Duration::ZERO`].
    pub watermark_interval: Duration,
}

/// One more sync a second costs nothing beside those of the log.
const WATERMARK_INTERVAL: Duration = Duration::from_secs(1);

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            base_name: "binlog".to_owned(),
            keyring: None,
            lineage: Lineage::default(),
            watermark_interval: WATERMARK_INTERVAL,
        }
    }
}

/// A file of the log, as `SHOW BINARY LOGS` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLog {
    /// Its number.
    pub number: FileNumber,
    /// Its name.
    pub name: String,
    /// Bytes on disk, those of an encryption header included.
    pub size: u64,
    /// Whether it is encrypted.
    pub encrypted: bool,
}

/// Where a store is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) names: LogNames,
    pub(crate) keyring: Option<Arc<Keyring>>,
}

/// What writers, readers and whoever syncs have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) place: Place,
    pub(crate) positions: SharedPositions,
    pub(crate) files: Mutex<Vec<FileNumber>>,
    /// Files that are not in the log and can be read all the same, and where: see [`crate::lending`].
    pub(crate) lent: Mutex<BTreeMap<FileNumber, Lent>>,
    /// What a sync would sync, and up to where.
    pub(crate) unsynced: Mutex<Option<(Arc<LogFile>, Position)>>,
    pub(crate) watermark: Watermark,
    /// What is damaged; nothing is written meanwhile.
    pub(crate) damage: Mutex<Option<Arc<Damage>>>,
    /// Held while a file is synced: of two syncs at once the system tells only one that it failed.
    pub(crate) syncing: Mutex<()>,
    pub(crate) latch: Latch,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// What is damaged.
    pub(crate) fn damage(&self) -> Option<Arc<Damage>> {
        lock(&self.damage).clone()
    }

    /// The log is durable up to here, and nobody knows it yet.
    pub(crate) fn note_durable(&self, position: Position, now: bool) -> Result<()> {
        self.watermark.note(self.place.storage.as_ref(), position, now)
    }
}

/// A log in a directory, open. Shared by reference between threads.
#[derive(Debug)]
pub struct BinlogStore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) active: Mutex<Active>,
    lineage: Lineage,
}

impl BinlogStore {
    /// Opens a log, or begins one where there is none: recovers what a crash left. The log has no file to
    /// append to until [`StoreWriter::begin_file`], unless the last one was in use.
    ///
    /// # Errors
    ///
    /// A disk that fails; files that no crash leaves behind; another lineage.
    pub fn open(storage: Arc<dyn Storage>, options: StoreOptions) -> Result<(BinlogStore, RecoveryReport)> {
        let names = LogNames::new(&options.base_name)?;
        let place = Place { storage, names, keyring: options.keyring };
        let Recovered { files, active, watermark, report } =
            recover_durably(&place, options.watermark_interval)?;
        let present = place.storage.list().map_err(Error::io("list", "the directory"))?;
        meta::check(place.storage.as_ref(), &place.names, &present, options.lineage)?;
        let shared = Shared {
            place,
            positions: SharedPositions::default(),
            files: Mutex::new(files),
            lent: Mutex::default(),
            unsynced: Mutex::new(None),
            watermark,
            damage: Mutex::new(report.damage.clone().map(Arc::new)),
            syncing: Mutex::new(()),
            latch: Latch::default(),
        };
        let mut writing = Active::default();
        if let Some(end) = report.end {
            shared.positions.set_both(end);
            if let Some((log, _)) = active {
                writing.resume(&shared, log, end);
            }
        }
        let store =
            BinlogStore { shared: Arc::new(shared), active: Mutex::new(writing), lineage: options.lineage };
        Ok((store, report))
    }

    /// After a write or a sync that failed: recovers what is on disk, as opening does, and takes writes again. Readers
    /// and whoever waits go on meanwhile, and see nothing go away. `None`: the store refuses nothing.
    ///
    /// # Errors
    ///
    /// A disk that still fails; files that no crash leaves behind; a log that ends before what was durable. The store
    /// then goes on refusing writes and serving what is durable, and this may be called again.
    pub fn reopen(&self) -> Result<Option<RecoveryReport>> {
        let shared = &self.shared;
        let mut active = lock(&self.active);
        let _syncing = lock(&shared.syncing);
        let mut files = lock(&shared.files);
        if !shared.latch.is_closed() {
            return Ok(None);
        }
        forget_unlisted(&shared.place, &mut files)?;
        let recovered = recover_durably(&shared.place, shared.watermark.interval())?;
        let durable = shared.positions.get().map(|now| now.durable);
        if let Some(durable) = durable.filter(|durable| recovered.report.end < Some(*durable)) {
            let file = shared.place.names.log(durable.file);
            let found = match recovered.report.end {
                Some(end) => {
                    format!("the log ends in {} at {}", shared.place.names.log(end.file), end.offset)
                }
                None => "the log has no file".to_owned(),
            };
            let found = format!("{found}, and was durable up to {file} at {}", durable.offset);
            return Err(Error::unfit(&file, found, "all that was durable"));
        }
        *files = recovered.files;
        shared.watermark.becomes(recovered.watermark);
        *lock(&shared.damage) = recovered.report.damage.clone().map(Arc::new);
        *active = Active::default();
        *lock(&shared.unsynced) = None;
        if let Some(end) = recovered.report.end {
            shared.positions.set_both(end);
            if let Some((log, _)) = recovered.active {
                active.resume(shared, log, end);
            }
        }
        shared.latch.open();
        Ok(Some(recovered.report))
    }

    /// Why the store refuses writes, if it does: the error of the disk that it began with.
    pub fn refuses_since(&self) -> Option<String> {
        self.shared.latch.is_closed().then(|| self.shared.latch.reason())
    }

    /// The log that a directory holds, if it holds one: what its files' names begin with, and whose it is.
    ///
    /// # Errors
    ///
    /// A disk that fails; two logs; a description of a log that can't be read.
    pub fn find(storage: &dyn Storage) -> Result<Option<(String, Lineage)>> {
        meta::find(storage)
    }

    /// The log's one writer: waits until it is free.
    ///
    /// # Errors
    ///
    /// [`Error::Latched`]; [`Error::Refusing`] while the log is damaged.
    pub fn writer(&self) -> Result<StoreWriter<'_>> {
        let active = lock(&self.active);
        self.shared.latch.check()?;
        if let Some(damage) = self.shared.damage() {
            return Err(Error::Refusing { damage: damage.to_string() });
        }
        Ok(StoreWriter { shared: &self.shared, active })
    }

    /// Makes durable what is written by now; how far the log is durable then. Writers go on meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Latched`]; a disk that fails, after which the store refuses writes until it is reopened.
    pub fn sync(&self) -> Result<Option<Position>> {
        let _syncing = lock(&self.shared.syncing);
        self.shared.latch.check()?;
        let unsynced = lock(&self.shared.unsynced).as_ref().map(|(log, to)| (Arc::clone(log), *to));
        let Some((log, to)) = unsynced else { return Ok(self.shared.positions.get().map(|now| now.durable)) };
        if self.shared.positions.get().is_some_and(|now| now.durable >= to) {
            return Ok(self.shared.positions.get().map(|now| now.durable));
        }
        self.shared.latch.guard(|| {
            log.sync()?;
            // Always between transactions: nothing else is published.
            self.shared.note_durable(to, false)
        })?;
        Ok(self.shared.positions.set_durable(to))
    }

    /// What is damaged of what was durable: it can't be read, and nothing is written until it is repaired.
    pub fn damage(&self) -> Option<Arc<Damage>> {
        self.shared.damage()
    }

    /// Both ends of the log; `None` while it has no file.
    pub fn positions(&self) -> Option<Positions> {
        self.shared.positions.get()
    }

    /// Waits until the log is durable beyond `position`, at most for `patience`.
    pub fn wait_durable_beyond(&self, position: Option<Position>, patience: Duration) -> Option<Positions> {
        self.shared.positions.wait_durable_beyond(position, patience)
    }

    /// Whose log this is.
    pub fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// How files are called.
    pub fn names(&self) -> &LogNames {
        &self.shared.place.names
    }

    /// The files, oldest first.
    pub fn logs(&self) -> Result<Vec<StoredLog>> {
        let numbers = lock(&self.shared.files).clone();
        let stored = |number| {
            let log = self.open_log(number)?;
            let size = log.size_on_disk()?;
            Ok(StoredLog { number, name: log.name.clone(), size, encrypted: log.is_encrypted() })
        };
        numbers.into_iter().map(stored).collect()
    }

    /// A reader at `offset` of a file.
    ///
    /// # Errors
    ///
    /// A file that is not in the log (any more), or can't be read.
    pub fn reader(&self, number: FileNumber, offset: u64) -> Result<LogReader> {
        Ok(LogReader { shared: Arc::clone(&self.shared), log: self.open_log(number)?, number, offset })
    }

    /// The GTIDs of all files before this one; of the first file: those that were purged.
    pub fn previous_gtids(&self, number: FileNumber) -> Result<GtidSet> {
        scan::previous_gtids(&self.open_log(number)?)
    }

    pub(crate) fn open_log(&self, number: FileNumber) -> Result<LogFile> {
        let place = &self.shared.place;
        let name = place.names.log(number);
        if !lock(&self.shared.files).contains(&number) {
            let lent = lock(&self.shared.lent).get(&number).cloned();
            let lent = lent.ok_or_else(|| Error::unfit(&name, "not in the log", "a file of the index"))?;
            return LogFile::open(lent.storage.as_ref(), &lent.name, place.keyring.as_deref());
        }
        LogFile::open(place.storage.as_ref(), &name, place.keyring.as_deref())
    }

    /// Puts a file that was purged back, in front of the first one, whose number follows; `write` gives its bytes.
    /// After a crash it is there whole, or recovery removes what there is.
    ///
    /// # Errors
    ///
    /// A file that is not the one before the first; what `write` says; a disk that fails.
    pub fn put_back(
        &self,
        number: FileNumber,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let place = &self.shared.place;
        let (storage, name) = (place.storage.as_ref(), place.names.log(number));
        let follows = |files: &[FileNumber]| match files.first() {
            Some(first) if number.next() == *first => Ok(()),
            _ => Err(Error::unfit(&name, "not in front of the first file", "the file before it")),
        };
        let latch = &self.shared.latch;
        latch.check()?;
        let openings = latch.openings();
        follows(&lock(&self.shared.files))?;
        let mut put = || {
            if storage.list()?.contains(&name) {
                storage.remove(&name)?;
            }
            let file = storage.open(&name, true)?;
            let mut out = io::BufWriter::with_capacity(1 << 20, FileWriter::new(Arc::clone(&file)));
            write(&mut out)?;
            out.flush()?;
            file.sync()?;
            storage.sync_names()
        };
        if let Err(error) = put() {
            // The index does not list it: recovery removes it where this fails.
            let _ = storage.remove(&name);
            return Err(Error::io("put back", &name)(error));
        }
        let mut files = lock(&self.shared.files);
        follows(&files)?;
        if openings != latch.openings() {
            // Recovery has removed it: the index did not list it yet.
            return Err(Error::unfit(
                &name,
                "the store was opened again meanwhile",
                "nothing else to happen",
            ));
        }
        let index = NewIndex::prepare(storage, &place.names)?;
        latch.guard(|| {
            let all: Vec<_> = std::iter::once(number).chain(files.iter().copied()).collect();
            index.replace(storage, &all)?;
            *files = all;
            Ok(())
        })
    }

    /// Removes all files before this one; their names.
    ///
    /// # Errors
    ///
    /// A file that is not in the log; a disk that fails, after which the store refuses writes until it is reopened.
    pub fn purge_before(&self, number: FileNumber) -> Result<Vec<String>> {
        let place = &self.shared.place;
        let mut files = lock(&self.shared.files);
        if !files.contains(&number) {
            return Err(Error::unfit(&place.names.log(number), "not in the log", "a file of the index"));
        }
        let (purged, kept): (Vec<_>, Vec<_>) = files.iter().copied().partition(|file| *file < number);
        if purged.is_empty() {
            return Ok(Vec::new());
        }
        self.shared.latch.check()?;
        let index = NewIndex::prepare(place.storage.as_ref(), &place.names)?;
        self.shared.latch.guard(|| {
            // The index first: a file that it lists must be there.
            index.replace(place.storage.as_ref(), &kept)?;
            *files = kept;
            let names: Vec<_> = purged.into_iter().map(|file| place.names.log(file)).collect();
            let present = place.storage.list().map_err(Error::io("list", "the directory"))?;
            for name in &names {
                place.storage.remove(name).map_err(Error::io("remove", name))?;
                for copy in aside::of(&present, &place.names, name) {
                    place.storage.remove(copy).map_err(Error::io("remove", copy))?;
                }
            }
            place.storage.sync_names().map_err(Error::io("sync", "the directory"))?;
            Ok(names)
        })
    }
}

/// Recovers, and makes sure of what an earlier failure may have left visible and not durable: names, and the flag
/// that says that the last file is closed.
fn recover_durably(place: &Place, watermark_interval: Duration) -> Result<Recovered> {
    // Before anything is removed: an index that a crash brings back must not list what is gone.
    place.storage.sync_names().map_err(Error::io("sync", "the directory"))?;
    let recovered = recover(place, watermark_interval)?;
    let is_whole = recovered.report.damage.is_none();
    if let (None, Some(end)) = (&recovered.active, recovered.report.end.filter(|_| is_whole)) {
        let log =
            LogFile::open(place.storage.as_ref(), &place.names.log(end.file), place.keyring.as_deref())?;
        writer::write_flags(&log, |flags| flags, &mut Vec::new())?;
    }
    Ok(recovered)
}

/// Files that the index on disk has no more: a purge got as far as that. Recovery removes them.
fn forget_unlisted(place: &Place, files: &mut Vec<FileNumber>) -> Result<()> {
    let storage = place.storage.as_ref();
    let present = storage.list().map_err(Error::io("list", "the directory"))?;
    if let Some(listed) = index::read(storage, &place.names, &present)? {
        files.retain(|file| listed.contains(file));
    }
    Ok(())
}
