//! The stored logs: one for each server we followed, since each server has files of its own, and one for each time
//! that a server's log was reset.
//!
//! ```text
//! DIR               the log of the first server
//! DIR/lineage-2     that of the server which was followed after it, or its own after RESET, and so on
//! ```
//!
//! The last one is received. When we switch to another server of the source by GTID, its log begins with the file
//! that has everything missing from the previous log. Clients that use GTIDs are disconnected at the end of the old
//! log, reconnect and continue in the new one. A client that lacks more than the new log has is served the old one
//! first. A file name that is also in an older log is refused: no byte of one log goes out under the coordinates of
//! another.
//!
//! The log of a server that we already follow can also be reset, by RESET or by restoring a copy. The new log has
//! everything the server has, and does not continue the previous one. The previous one is no longer served, and a
//! client that has more than the new one is refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_encryption::Keyring;
use binlogz_store::{
    BinlogStore, FileNumber, Lineage as StoreLineage, MemoryStorage, RecoveryReport, Storage, StoreOptions,
};

use crate::error::{Error, Result};
use crate::form::{Form, FormNames};
use crate::lock::lock;
use crate::log::archived::ArchivedFiles;
use crate::log::brought_back;
use crate::log::checkpoints::{Checkpoints, Indexes};
use crate::log::cuts::Cuts;
use crate::log::disk::Disk;
use crate::log::ended::EndedLineage;
use crate::log::numbers::KeptNumbers;
use crate::log::parts::FormFile;
use crate::log::stored_format::StoredHead;
use crate::telemetry::{Telemetry, report, say};

/// How many logs this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// The open log of one server.
#[derive(Debug)]
pub(crate) struct LineageLog {
    pub(crate) store: BinlogStore,
    /// The storage for its files.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) names: FormNames,
    pub(crate) base: String,
    pub(crate) source: ServerUuid,
    /// Folder in the relay's directory; `None` for the directory itself.
    pub(crate) folder: Option<String>,
    /// Which of its files are in the archive, if there is one.
    pub(crate) archived: ArchivedFiles,
    /// Where its files are cut for the uncompressed form.
    pub(crate) cuts: Cuts,
    indexes: Indexes,
    gtids: Mutex<Gtids>,
    /// Held from checking what is written until it is known to be durable, and while the store is reopened.
    syncing: Mutex<()>,
    /// The log's number among the stored logs, starting at 1.
    pub(crate) number: u64,
    /// Unlike its number, no other log in this process has it, of whatever source.
    pub(crate) id: u64,
    /// Whether it continues no other log: true for the first one, and for each reset.
    pub(crate) is_root: bool,
    retired: AtomicBool,
    abandoned: AtomicBool,
    /// Files in which a reader found damaged bytes, and its message, until they are examined.
    suspects: Mutex<BTreeMap<FileNumber, String>>,
}

#[derive(Debug, Default)]
struct Gtids {
    written: GtidSet,
    durable: GtidSet,
}

impl LineageLog {
    /// The index of positions of a file.
    pub(crate) fn places(&self, file: FileNumber, head: &StoredHead) -> Arc<Checkpoints> {
        self.indexes.of(file, &self.store.names().log(file), &head.event)
    }

    /// Forgets the position index of a file that is gone.
    pub(crate) fn forget_places(&self, file: FileNumber, log: &str) {
        self.indexes.remove(file, log);
    }

    pub(crate) fn written_gtids(&self) -> GtidSet {
        lock(&self.gtids).written.clone()
    }

    /// GTIDs of its durable part.
    pub(crate) fn durable_gtids(&self) -> GtidSet {
        lock(&self.gtids).durable.clone()
    }

    pub(crate) fn written(&self, gtids: &GtidSet) {
        lock(&self.gtids).written.union(gtids);
    }

    /// A damaged file was at least partly repaired; these GTIDs are durable. Checkpoints around the damage are found
    /// again.
    pub(crate) fn repaired(&self, file: FileNumber, gtids: &GtidSet) {
        self.indexes.discard(file, &self.store.names().log(file));
        let mut known = lock(&self.gtids);
        known.written.union(gtids);
        known.durable.union(gtids);
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let _alone = lock(&self.syncing);
        let gtids = self.written_gtids();
        self.store.sync()?;
        lock(&self.gtids).durable.union(&gtids);
        Ok(())
    }

    /// Recovers after a failed write or sync; `None` if there was no need to. Nothing may be on its way to the store.
    pub(crate) fn reopen(&self) -> Result<Option<RecoveryReport>> {
        let _alone = lock(&self.syncing);
        let Some(report) = self.store.reopen()? else { return Ok(None) };
        if let Some(end) = report.end {
            self.indexes.forget_behind(end);
        }
        *lock(&self.gtids) = Gtids { written: report.gtids.clone(), durable: report.gtids.clone() };
        Ok(Some(report))
    }

    /// A reader ended with this error: if damaged bytes are the cause, the file is to be examined.
    pub(crate) fn suspect(&self, error: &Error) {
        let Some(number) = error.stored_file().and_then(|file| self.store.names().number(file)) else {
            return;
        };
        if self.store.damage_of(number).is_none() {
            lock(&self.suspects).entry(number).or_insert_with(|| error.to_string());
        }
    }

    /// The files to examine.
    pub(crate) fn suspects(&self) -> Vec<FileNumber> {
        lock(&self.suspects).keys().copied().collect()
    }

    /// The file was examined: its damage is known, or there is none.
    pub(crate) fn clear_suspect(&self, file: FileNumber) {
        lock(&self.suspects).remove(&file);
    }

    /// The damage of the log as far as it is known, one line for each place.
    fn damage(&self) -> Vec<String> {
        let known = self.store.damages();
        let suspects = lock(&self.suspects);
        let unknown = suspects.iter().filter(|(file, _)| known.iter().all(|damage| damage.file != **file));
        let unknown = unknown.map(|(_, found)| found.clone());
        known.iter().map(|damage| damage.to_string()).chain(unknown).collect()
    }

    /// Whether another log continues where this one ends.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Whether the source's log was reset since: nothing more of this one is sent.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    fn has_files(&self) -> bool {
        self.store.positions().is_some()
    }
}

/// All stored logs, oldest first.
#[derive(Debug)]
pub(crate) struct Lineages {
    disk: Arc<dyn Disk>,
    keyring: Option<Arc<Keyring>>,
    /// The storage of the first one, held even while it has no log.
    first: Arc<dyn Storage>,
    /// In a new log, an uncompressed file ends after this many bytes.
    limit: u64,
    kept: Mutex<Vec<Arc<LineageLog>>>,
}

impl Lineages {
    /// Opens the existing logs; logs a line about each.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        keyring: Option<Arc<Keyring>>,
        limit: u64,
        telemetry: &Telemetry,
    ) -> Result<Lineages> {
        let first = disk.take(None)?;
        let lineages = Lineages { disk, keyring, first, limit, kept: Mutex::default() };
        for number in 1.. {
            if folder(number).is_some_and(|folder| !lineages.disk.has(&folder)) {
                break;
            }
            let storage = lineages.storage(number)?;
            if let Some(ended) = EndedLineage::read(&storage)? {
                ended.remove_files(&storage)?;
                say!(
                    telemetry,
                    &format!("log {} of the source {}: ended, and purged whole", ended.base, ended.source)
                );
                let kept = lineages.open_ended(storage, number, ended)?;
                lock(&lineages.kept).push(kept);
                continue;
            }
            let Some((base, lineage)) = BinlogStore::find(storage.as_ref())? else { continue };
            let holds_none = || Error::Lineage(format!("log {base} is no source's"));
            let source = lineage.source.ok_or_else(holds_none)?;
            let (kept, report) = lineages.open_one(storage, number, &base, source)?;
            let line = format!("log {base} of the source {source}: {report}");
            report!(telemetry, report.is_alarming(), &line);
            lock(&lineages.kept).push(kept);
        }
        lineages.retire();
        Ok(lineages)
    }

    /// The storage for the relay's own files.
    pub(crate) fn own(&self) -> &Arc<dyn Storage> {
        &self.first
    }

    /// Begins another log after all others.
    pub(crate) fn begin(&self, base: &str, source: ServerUuid) -> Result<(Arc<LineageLog>, RecoveryReport)> {
        let number = lock(&self.kept).len() as u64 + 1;
        let storage = self.storage(number)?;
        if KeptNumbers::read(&storage)?.is_none() {
            KeptNumbers::new(self.limit).write(&storage)?;
        }
        let (kept, report) = self.open_one(storage, number, base, source)?;
        lock(&self.kept).push(Arc::clone(&kept));
        Ok((kept, report))
    }

    /// Free space in bytes; `None` if unknown.
    pub(crate) fn free_space(&self) -> std::io::Result<Option<u64>> {
        self.disk.free_space()
    }

    pub(crate) fn last(&self) -> Option<Arc<LineageLog>> {
        lock(&self.kept).last().cloned()
    }

    /// The damage in the logs that are served.
    pub(crate) fn damage(&self) -> Vec<String> {
        let served = self.all().into_iter().filter(|kept| !kept.is_abandoned());
        served.flat_map(|kept| kept.damage()).collect()
    }

    /// The log that it continues.
    pub(crate) fn one_before(&self) -> Option<Arc<LineageLog>> {
        let kept = lock(&self.kept);
        let (last, older) = kept.split_last()?;
        older.last().filter(|_| !last.is_root).cloned()
    }

    /// All logs, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<LineageLog>> {
        lock(&self.kept).clone()
    }

    /// The log that is served: the last one with any data.
    pub(crate) fn served(&self) -> Option<Arc<LineageLog>> {
        let kept = lock(&self.kept);
        kept.iter().rev().find(|kept| kept.has_files()).or(kept.last()).cloned()
    }

    /// The logs that it continues, newest first.
    pub(crate) fn goes_on_from(&self, one: &LineageLog) -> Vec<Arc<LineageLog>> {
        let mut before = Vec::new();
        let mut is_root = one.is_root;
        for older in self.older_than(one) {
            if is_root {
                break;
            }
            is_root = older.is_root;
            before.push(older);
        }
        before
    }

    /// The common part of the log of this number and this one: nothing after RESET; after a restored copy, the
    /// copy's transactions. `None` if this one continues it, or it doesn't exist. Purged files of the older log count
    /// as the same if the first remaining one is.
    pub(crate) fn in_common(&self, one: &LineageLog, number: u64) -> Result<Option<GtidSet>> {
        let all = lock(&self.kept).clone();
        let Some(older) = all.iter().find(|older| older.number == number && older.is_abandoned()) else {
            return Ok(None);
        };
        let logs = one.store.logs()?;
        let oldest = older.store.logs()?.first().map(|log| log.number);
        let left = logs.iter().filter(|log| Some(log.number) >= oldest);
        let mut begin = logs.first();
        for log in left {
            let head = StoredHead::read(&one.store, log.number)?;
            let same = match StoredHead::read(&older.store, log.number) {
                Ok(older) => older.is_of_the_same_file(&head),
                Err(error) if error.is_transient() => return Err(error),
                Err(_) => false,
            };
            if !same {
                let known = begin.map_or(log.number, |begin| begin.number);
                return Ok(Some(one.store.previous_gtids(known)?));
            }
            begin = None;
        }
        match begin {
            // Nothing could be compared.
            Some(begin) => Ok(Some(one.store.previous_gtids(begin.number)?)),
            None => Ok(Some(one.durable_gtids())),
        }
    }

    /// The older logs, newest first.
    fn older_than(&self, one: &LineageLog) -> Vec<Arc<LineageLog>> {
        lock(&self.kept).iter().rev().skip_while(|other| other.number >= one.number).cloned().collect()
    }

    /// Why a file name of this log is ambiguous: an older log has it too, or had it.
    pub(crate) fn ambiguity(&self, one: &LineageLog, name: &str) -> Option<String> {
        let (form, file) = one.names.parse(name)?;
        let is_in = |older: &Arc<LineageLog>| {
            let last = older.store.positions().map(|now| now.written.file);
            older.base == one.base && last.is_some_and(|last| file <= last)
        };
        let ambiguous = form == Form::Received && self.older_than(one).iter().any(is_in);
        ambiguous.then(|| {
            format!(
                "{name} is a file of this source's log and of one that was kept before it: begin by GTID, or with a file \
                 of another form, such as {}",
                one.name_of(Form::Uncompressed, FormFile::first_of(file)).unwrap_or_default()
            )
        })
    }

    /// Why a name can't be served any more: it belongs to an older log.
    pub(crate) fn bygone(&self, one: &LineageLog, name: &str) -> Option<String> {
        if one.names.parse(name).is_some() {
            return None;
        }
        let older = self.older_than(one).into_iter().find(|older| older.names.parse(name).is_some())?;
        let first = one.store.logs().ok()?.first()?.number;
        Some(format!(
            "{name} is a file of the log of {} that was kept before this one: begin by GTID, or with {}",
            older.source,
            one.name_of(Form::Uncompressed, FormFile::first_of(first)).ok()?
        ))
    }

    /// The last log has something to serve: the others end here.
    pub(crate) fn retire(&self) {
        let kept = lock(&self.kept);
        if let Some((last, older)) = kept.split_last().filter(|(last, _)| last.has_files()) {
            last.retired.store(false, Ordering::Release);
            older.iter().for_each(|older| older.retired.store(true, Ordering::Release));
            let gone = older.iter().enumerate().filter(|(place, _)| {
                let behind = kept.iter().skip(place + 1);
                behind.into_iter().any(|later| later.is_root)
            });
            gone.for_each(|(_, gone)| gone.abandoned.store(true, Ordering::Release));
        }
        // Dumps that wait there have to notice.
        kept.iter().for_each(|kept| kept.store.wake());
    }

    /// Wakes all dumps that wait for something.
    pub(crate) fn wake(&self) {
        lock(&self.kept).iter().for_each(|kept| kept.store.wake());
    }

    /// Removes all files of a log that another one continues, keeping a record of it. Returns their names.
    pub(crate) fn end(&self, old: &Arc<LineageLog>) -> Result<Vec<String>> {
        let Some(now) = old.store.positions() else { return Ok(Vec::new()) };
        old.fix_numbers_after(now.durable.file)?;
        let (base, source, gtids) = (old.base.clone(), old.source, old.durable_gtids());
        let ended = EndedLineage { base, source, end: now.durable, gtids };
        ended.write(&old.storage)?;
        let new = self.open_ended(Arc::clone(&old.storage), old.number, ended.clone())?;
        for kept in lock(&self.kept).iter_mut().filter(|kept| kept.number == old.number) {
            *kept = Arc::clone(&new);
        }
        self.retire();
        // Dumps that wait at the end of it are no longer among those that are woken there.
        old.store.wake();
        ended.remove_files(&old.storage)
    }

    /// A log without files: those that come back from the archive are read.
    fn open_ended(
        &self,
        storage: Arc<dyn Storage>,
        number: u64,
        ended: EndedLineage,
    ) -> Result<Arc<LineageLog>> {
        brought_back::remove_left(storage.as_ref())?;
        let options = StoreOptions {
            base_name: ended.base.clone(),
            lineage: StoreLineage { source: Some(ended.source), number },
            keyring: self.keyring.clone(),
            ..StoreOptions::default()
        };
        let (store, _) = BinlogStore::open(Arc::new(MemoryStorage::new()), options)?;
        store.ended_at(ended.end);
        let gtids = Gtids { written: ended.gtids.clone(), durable: ended.gtids };
        let end = Some(ended.end.file);
        let kept = self.kept(storage, store, number, &ended.base, ended.source, gtids, end)?;
        Ok(Arc::new(kept))
    }

    fn storage(&self, number: u64) -> Result<Arc<dyn Storage>> {
        match folder(number) {
            None => Ok(Arc::clone(&self.first)),
            Some(folder) => self.disk.take(Some(&folder)),
        }
    }

    fn open_one(
        &self,
        storage: Arc<dyn Storage>,
        number: u64,
        base: &str,
        source: ServerUuid,
    ) -> Result<(Arc<LineageLog>, RecoveryReport)> {
        let options = StoreOptions {
            base_name: base.to_owned(),
            lineage: StoreLineage { source: Some(source), number },
            keyring: self.keyring.clone(),
            ..StoreOptions::default()
        };
        brought_back::remove_left(storage.as_ref())?;
        let (store, report) = BinlogStore::open(Arc::clone(&storage), options)?;
        let gtids = Gtids { written: report.gtids.clone(), durable: report.gtids.clone() };
        let end = report.end.map(|end| end.file);
        let kept = self.kept(storage, store, number, base, source, gtids, end)?;
        Ok((Arc::new(kept), report))
    }

    #[allow(clippy::too_many_arguments, reason = "what a log is, once")]
    fn kept(
        &self,
        storage: Arc<dyn Storage>,
        store: BinlogStore,
        number: u64,
        base: &str,
        source: ServerUuid,
        gtids: Gtids,
        end: Option<FileNumber>,
    ) -> Result<LineageLog> {
        let numbers = match KeptNumbers::read(&storage)? {
            Some(numbers) => numbers,
            None => {
                // An earlier version wrote these files: those that it served whole stay whole.
                let whole_before = end.map_or(FileNumber(0), FileNumber::next);
                let numbers = KeptNumbers { whole_before, ..KeptNumbers::new(self.limit) };
                numbers.write(&storage)?;
                numbers
            }
        };
        let cuts = Cuts::open(Arc::clone(&storage), numbers, &store);
        let indexes = Indexes::new(Arc::clone(&storage));
        let present: Vec<_> = store.logs()?.into_iter().map(|log| log.name).collect();
        indexes.keep_only(&present);
        // A switch is always to another server: the same one means that its log was reset.
        let before =
            lock(&self.kept).iter().rev().find(|other| other.number < number).map(|other| other.source);
        let is_root = before.is_none_or(|before| before == source);
        Ok(LineageLog {
            store,
            storage,
            names: FormNames::new(base, number)?,
            base: base.to_owned(),
            source,
            folder: folder(number),
            archived: ArchivedFiles::default(),
            cuts,
            indexes,
            gtids: Mutex::new(gtids),
            syncing: Mutex::default(),
            number,
            id: OPENED.fetch_add(1, Ordering::Relaxed),
            is_root,
            retired: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            suspects: Mutex::default(),
        })
    }
}

/// The folder of the log of this number, in the relay's directory.
fn folder(number: u64) -> Option<String> {
    (number > 1).then(|| format!("lineage-{number}"))
}
