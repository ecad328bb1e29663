//! The store: files, positions, reopening. `writer.rs` writes, [`crate::recovery`] recovers.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use binlogz_binlog::gtid::GtidSet;
use binlogz_encryption::Keyring;

use crate::error::{Error, Result};
use crate::files::copies;
use crate::files::index::{self, NewIndex};
use crate::files::log_file::LogFile;
use crate::recovery::damage::{Damage, Damages};
use crate::state::latch::Latch;

use crate::files::meta::{self, Lineage};
use crate::files::names::{FileNumber, LogNames};
use crate::files::{Position, StorePlace};
use crate::open::reader::LogReader;
use crate::open::writer::{self, Active, StoreWriter};
use crate::recovery::recover::{RecoveredState, RecoveryReport, recover};
use crate::recovery::scan;
use crate::state::StoreShared;
use crate::state::ends::{LogEnds, SharedPositions};
use crate::storage::{FileWriter, Storage};

/// Which log to open, and how.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The base of the file names.
    pub base_name: String,
    /// The keys for encrypted files.
    pub keyring: Option<Arc<Keyring>>,
    /// The lineage that the log must have.
    pub lineage: Lineage,
    /// How often the file that records how far the log is durable is synced itself. After a crash of the
    /// system, up to this much of that record may be lost. [`Duration::ZERO`] syncs it with each sync of the
    /// log.
    pub watermark_interval: Duration,
}

/// The default interval of the record's sync: one a second is negligible beside those of the log.
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

/// A file of the log, as in `SHOW BINARY LOGS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLog {
    /// The file's number.
    pub number: FileNumber,
    /// The file's name.
    pub name: String,
    /// Bytes on disk, including an encryption header.
    pub size: u64,
    /// Whether it is encrypted.
    pub encrypted: bool,
}

/// A log in a directory, open. Threads share it by reference.
#[derive(Debug)]
pub struct BinlogStore {
    pub(crate) shared: Arc<StoreShared>,
    pub(crate) active: Mutex<Active>,
    lineage: Lineage,
}

impl BinlogStore {
    /// Opens a log, recovering what a crash left, or begins one if there is none. Unless the last file was in
    /// use, the log has no file to append to until [`StoreWriter::begin_file`].
    ///
    /// # Errors
    ///
    /// The disk fails; files that no crash could leave; another lineage.
    pub fn open(storage: Arc<dyn Storage>, options: StoreOptions) -> Result<(BinlogStore, RecoveryReport)> {
        let names = LogNames::new(&options.base_name)?;
        let place = StorePlace { storage, names, keyring: options.keyring };
        let RecoveredState { files, active, watermark, report } =
            recover_durably(&place, options.watermark_interval)?;
        let present = place.storage.list().map_err(Error::io("list", "the directory"))?;
        meta::check(place.storage.as_ref(), &place.names, &present, options.lineage)?;
        let shared = StoreShared {
            place,
            positions: SharedPositions::default(),
            files: Mutex::new(files),
            lent: Mutex::default(),
            unsynced: Mutex::new(None),
            watermark,
            damages: Mutex::new(Damages {
                last: report.damage.clone().map(Arc::new),
                closed: BTreeMap::new(),
            }),
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

    /// After a failed write or sync: recovers the files on disk, as opening does, and takes writes again. Readers and
    /// waiting threads carry on meanwhile, and nothing they could see disappears. `None` if the store was not refusing
    /// writes.
    ///
    /// # Errors
    ///
    /// The disk still fails; files that no crash could leave; a log that ends before the durable end. The store then
    /// still refuses writes and serves the durable bytes, and this may be called again.
    pub fn reopen(&self) -> Result<Option<RecoveryReport>> {
        let shared = &self.shared;
        let mut active = self.active.lock();
        let _syncing = shared.syncing.lock();
        let mut files = shared.files.lock();
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
        shared.damages.lock().last = recovered.report.damage.clone().map(Arc::new);
        *active = Active::default();
        *shared.unsynced.lock() = None;
        if let Some(end) = recovered.report.end {
            shared.positions.set_both(end);
            if let Some((log, _)) = recovered.active {
                active.resume(shared, log, end);
            }
        }
        shared.latch.open();
        Ok(Some(recovered.report))
    }

    /// Why the store refuses writes, if it does: the first error of the disk.
    pub fn refuses_since(&self) -> Option<String> {
        self.shared.latch.is_closed().then(|| self.shared.latch.reason())
    }

    /// The log that a directory holds, if any: the base of its files' names, and its lineage.
    ///
    /// # Errors
    ///
    /// The disk fails; two logs; a description of a log that can't be read.
    pub fn find(storage: &dyn Storage) -> Result<Option<(String, Lineage)>> {
        meta::find(storage)
    }

    /// The log's only writer: waits until it is free.
    ///
    /// # Errors
    ///
    /// [`Error::Latched`]; [`Error::Refusing`] while the log is damaged.
    pub fn writer(&self) -> Result<StoreWriter<'_>> {
        let active = self.active.lock();
        self.shared.latch.check()?;
        if let Some(damage) = self.shared.damage() {
            return Err(Error::Refusing { damage: damage.to_string() });
        }
        Ok(StoreWriter { shared: &self.shared, active })
    }

    /// Makes everything written so far durable, and returns how far the log is durable. Writers carry on
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Latched`]; the disk fails, after which the store refuses writes until it is reopened.
    pub fn sync(&self) -> Result<Option<Position>> {
        let _syncing = self.shared.syncing.lock();
        self.shared.latch.check()?;
        let unsynced = self.shared.unsynced.lock().as_ref().map(|(log, to)| (Arc::clone(log), *to));
        let Some((log, to)) = unsynced else { return Ok(self.shared.positions.get().map(|now| now.durable)) };
        if self.shared.positions.get().is_some_and(|now| now.durable >= to) {
            return Ok(self.shared.positions.get().map(|now| now.durable));
        }
        self.shared.latch.guard(|| {
            log.sync()?;
            // Always between transactions, since nothing else is published.
            self.shared.note_durable(to, false)
        })?;
        Ok(self.shared.positions.set_durable(to))
    }

    /// The damage of the last file, in bytes that were durable: they can't be read, and nothing is written until
    /// they are repaired.
    pub fn damage(&self) -> Option<Arc<Damage>> {
        self.shared.damage()
    }

    /// All known damage in bytes that were durable, the oldest file first. Closed files are as they were when they were
    /// last examined ([`BinlogStore::examine`]).
    pub fn damages(&self) -> Vec<Arc<Damage>> {
        self.shared.damages.lock().all().cloned().collect()
    }

    /// The known damage of a file.
    pub fn damage_of(&self, file: FileNumber) -> Option<Arc<Damage>> {
        self.shared.damage_of(file)
    }

    /// Both ends of the log; `None` while it has no file.
    pub fn positions(&self) -> Option<LogEnds> {
        self.shared.positions.get()
    }

    /// Waits until the log is durable beyond `position`, at most for `patience`.
    pub fn wait_durable_beyond(&self, position: Option<Position>, patience: Duration) -> Option<LogEnds> {
        self.shared.positions.wait_durable_beyond(position, None, patience)
    }

    /// How often [`BinlogStore::wake`] was called.
    pub fn wakes(&self) -> u64 {
        self.shared.positions.wakes()
    }

    /// Ends all waits in [`BinlogStore::wait_durable_beyond_or_wake`]: something else has changed that their threads look at.
    pub fn wake(&self) {
        self.shared.positions.wake();
    }

    /// Waits until the log is durable beyond `position`, at most for `patience`, and not longer than until
    /// [`BinlogStore::wakes`] is no longer `wakes`. Read `wakes` before looking at what may change, so that no wake is
    /// missed.
    pub fn wait_durable_beyond_or_wake(
        &self,
        position: Option<Position>,
        wakes: u64,
        patience: Duration,
    ) -> Option<LogEnds> {
        self.shared.positions.wait_durable_beyond(position, Some(wakes), patience)
    }

    /// The log's lineage.
    pub fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// The names of the log's files.
    pub fn names(&self) -> &LogNames {
        &self.shared.place.names
    }

    /// The files, oldest first.
    pub fn logs(&self) -> Result<Vec<StoredLog>> {
        let numbers = self.shared.files.lock().clone();
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
    /// The file is not in the log (any more), or can't be read.
    pub fn reader(&self, number: FileNumber, offset: u64) -> Result<LogReader> {
        Ok(LogReader { shared: Arc::clone(&self.shared), log: self.open_log(number)?, number, offset })
    }

    /// The GTIDs of all earlier files; for the first file, those of purged files.
    pub fn previous_gtids(&self, number: FileNumber) -> Result<GtidSet> {
        scan::previous_gtids(&self.open_log(number)?)
    }

    pub(crate) fn open_log(&self, number: FileNumber) -> Result<LogFile> {
        let place = &self.shared.place;
        let name = place.names.log(number);
        if !self.shared.files.lock().contains(&number) {
            let lent = self.shared.lent.lock().get(&number).cloned();
            let lent = lent.ok_or_else(|| Error::unfit(&name, "not in the log", "a file of the index"))?;
            return LogFile::open(lent.storage.as_ref(), &lent.name, place.keyring.as_deref());
        }
        LogFile::open(place.storage.as_ref(), &name, place.keyring.as_deref())
    }

    /// Puts a purged file back before the first one, which must have the next number; `write` writes its bytes. After a
    /// crash the file is either there whole, or recovery removes its remains.
    ///
    /// # Errors
    ///
    /// The file is not the one before the first; `write` fails; the disk fails.
    pub fn put_back(
        &self,
        number: FileNumber,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let place = &self.shared.place;
        let storage = place.storage.as_ref();
        let name = place.names.log(number);
        let follows = |files: &[FileNumber]| match files.first() {
            Some(first) if number.next() == *first => Ok(()),
            _ => Err(Error::unfit(&name, "not the number before the first file", "the file before it")),
        };
        let latch = &self.shared.latch;
        latch.check()?;
        let openings = latch.openings();
        follows(&self.shared.files.lock())?;
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
            // The index does not list it, so recovery removes it if this fails.
            let _ = storage.remove(&name);
            return Err(Error::io("put back", &name)(error));
        }
        let mut files = self.shared.files.lock();
        follows(&files)?;
        if openings != latch.openings() {
            // Recovery removed it, because the index did not list it yet.
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
            self.shared.damages.lock().closed.remove(&number);
            Ok(())
        })
    }

    /// Removes all files before this one, and returns their names.
    ///
    /// # Errors
    ///
    /// The file is not in the log; the disk fails, after which the store refuses writes until it is reopened.
    pub fn purge_before(&self, number: FileNumber) -> Result<Vec<String>> {
        let place = &self.shared.place;
        let mut files = self.shared.files.lock();
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
            // The index comes first: a file that it lists must exist.
            index.replace(place.storage.as_ref(), &kept)?;
            *files = kept;
            self.shared.damages.lock().closed.retain(|file, _| *file >= number);
            let names: Vec<_> = purged.into_iter().map(|file| place.names.log(file)).collect();
            let present = place.storage.list().map_err(Error::io("list", "the directory"))?;
            for name in &names {
                place.storage.remove(name).map_err(Error::io("remove", name))?;
                for copy in copies::of(&present, &place.names, name) {
                    place.storage.remove(copy).map_err(Error::io("remove", copy))?;
                }
            }
            place.storage.sync_names().map_err(Error::io("sync", "the directory"))?;
            Ok(names)
        })
    }
}

/// Recovers, and syncs names and the flag that marks the last file as closed: an earlier failure may have left them
/// visible but not durable.
fn recover_durably(place: &StorePlace, watermark_interval: Duration) -> Result<RecoveredState> {
    // Before anything is removed: an index that a crash brings back must not list removed files.
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

/// Forgets files that the index on disk no longer lists: a purge got that far. Recovery removes them.
fn forget_unlisted(place: &StorePlace, files: &mut Vec<FileNumber>) -> Result<()> {
    let storage = place.storage.as_ref();
    let present = storage.list().map_err(Error::io("list", "the directory"))?;
    if let Some(listed) = index::read(storage, &place.names, &present)? {
        files.retain(|file| listed.contains(file));
    }
    Ok(())
}
