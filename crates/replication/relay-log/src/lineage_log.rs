//! The stored log of one server, with what is known of it beside its files.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_store::{BinlogStore, FileNumber, RecoveryReport, Storage};

use crate::archived::ArchivedFiles;
use crate::checkpoints::{Checkpoints, Indexes};
use crate::cuts::Cuts;
use crate::error::{Error, Result};
use crate::form::FormNames;
use crate::numbers::KeptNumbers;
use crate::stored_format::StoredHead;

/// How many logs this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// The open log of one server.
#[derive(Debug)]
pub struct LineageLog {
    /// Its files.
    pub store: BinlogStore,
    /// The storage for its files.
    pub storage: Arc<dyn Storage>,
    /// The names of its files in every form.
    pub names: FormNames,
    /// The base name of the source's files.
    pub base: String,
    /// The server that wrote it.
    pub source: ServerUuid,
    /// Folder in the relay's directory; `None` for the directory itself.
    pub folder: Option<String>,
    /// Which of its files are in the archive, if there is one.
    pub archived: ArchivedFiles,
    /// Where its files are cut for the uncompressed form.
    pub cuts: Cuts,
    indexes: Indexes,
    gtids: Mutex<Gtids>,
    /// Held from checking what is written until it is known to be durable, and while the store is reopened.
    syncing: Mutex<()>,
    /// The log's number among the stored logs, starting at 1.
    pub number: u64,
    /// Unlike its number, no other log in this process has it, of whatever source.
    pub id: u64,
    /// Whether it continues no other log: true for the first one, and for each reset.
    pub is_root: bool,
    /// Of a log whose files were removed: whether its last event named another file.
    pub(crate) was_next_named: bool,
    retired: AtomicBool,
    abandoned: AtomicBool,
    /// Files in which a reader found damaged bytes, and its message, until they are examined.
    suspects: Mutex<BTreeMap<FileNumber, String>>,
}

/// A log whose store was opened.
#[derive(Debug)]
pub(crate) struct OpenedLineage {
    /// The storage for its files.
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) store: BinlogStore,
    pub(crate) number: u64,
    pub(crate) folder: Option<String>,
    pub(crate) base: String,
    pub(crate) source: ServerUuid,
    /// GTIDs of the log, all of them durable.
    pub(crate) gtids: GtidSet,
    /// The last file of it.
    pub(crate) end: Option<FileNumber>,
    /// Whether its last event named another file; not needed while it has files.
    pub(crate) is_next_named: bool,
    /// Whether it continues no other log.
    pub(crate) is_root: bool,
}

#[derive(Debug, Default)]
struct Gtids {
    written: GtidSet,
    durable: GtidSet,
}

impl LineageLog {
    /// Opens what is beside the store. In a new log, an uncompressed file ends after `limit` bytes.
    pub(crate) fn of(opened: OpenedLineage, limit: u64) -> Result<LineageLog> {
        let OpenedLineage {
            storage,
            store,
            number,
            folder,
            base,
            source,
            gtids,
            end,
            is_next_named,
            is_root,
        } = opened;
        let numbers = match KeptNumbers::read(&storage)? {
            Some(numbers) => numbers,
            None => {
                // An earlier version wrote these files: those that it served whole stay whole.
                let whole_before = end.map_or(FileNumber(0), FileNumber::next);
                let numbers = KeptNumbers { whole_before, ..KeptNumbers::new(limit) };
                numbers.write(&storage)?;
                numbers
            }
        };
        let cuts = Cuts::open(Arc::clone(&storage), numbers, &store);
        let indexes = Indexes::new(Arc::clone(&storage));
        let present: Vec<_> = store.logs()?.into_iter().map(|log| log.name).collect();
        indexes.keep_only(&present);
        Ok(LineageLog {
            store,
            storage,
            names: FormNames::new(&base, number)?,
            base,
            source,
            folder,
            archived: ArchivedFiles::default(),
            cuts,
            indexes,
            gtids: Mutex::new(Gtids { written: gtids.clone(), durable: gtids }),
            syncing: Mutex::default(),
            number,
            id: OPENED.fetch_add(1, Ordering::Relaxed),
            is_root,
            was_next_named: is_next_named,
            retired: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            suspects: Mutex::default(),
        })
    }

    /// The index of positions of a file.
    pub fn places(&self, file: FileNumber, head: &StoredHead) -> Arc<Checkpoints> {
        self.indexes.of(file, &self.store.names().log(file), &head.event)
    }

    /// Forgets the position index of a file that is gone.
    pub(crate) fn forget_places(&self, file: FileNumber, log: &str) {
        self.indexes.remove(file, log);
    }

    /// GTIDs of all that is written.
    pub fn written_gtids(&self) -> GtidSet {
        self.gtids.lock().written.clone()
    }

    /// GTIDs of its durable part.
    pub fn durable_gtids(&self) -> GtidSet {
        self.gtids.lock().durable.clone()
    }

    /// These transactions were written.
    pub fn written(&self, gtids: &GtidSet) {
        self.gtids.lock().written.union(gtids);
    }

    /// A damaged file was at least partly repaired; these GTIDs are durable. Checkpoints around the damage are found
    /// again.
    pub fn repaired(&self, file: FileNumber, gtids: &GtidSet) {
        self.indexes.discard(file, &self.store.names().log(file));
        let mut known = self.gtids.lock();
        known.written.union(gtids);
        known.durable.union(gtids);
    }

    /// Makes everything written so far durable.
    pub fn sync(&self) -> Result<()> {
        let _alone = self.syncing.lock();
        let gtids = self.written_gtids();
        self.store.sync()?;
        self.gtids.lock().durable.union(&gtids);
        Ok(())
    }

    /// Recovers after a failed write or sync; `None` if there was no need to. Nothing may be on its way to the store.
    pub fn reopen(&self) -> Result<Option<RecoveryReport>> {
        let _alone = self.syncing.lock();
        let Some(report) = self.store.reopen()? else { return Ok(None) };
        if let Some(end) = report.end {
            self.indexes.forget_behind(end);
        }
        *self.gtids.lock() = Gtids { written: report.gtids.clone(), durable: report.gtids.clone() };
        Ok(Some(report))
    }

    /// A reader ended with this error: if damaged bytes are the cause, the file is to be examined.
    pub fn suspect(&self, error: &Error) {
        let Some(number) = error.stored_file().and_then(|file| self.store.names().number(file)) else {
            return;
        };
        if self.store.damage_of(number).is_none() {
            self.suspects.lock().entry(number).or_insert_with(|| error.to_string());
        }
    }

    /// The files to examine.
    pub fn suspects(&self) -> Vec<FileNumber> {
        self.suspects.lock().keys().copied().collect()
    }

    /// The file was examined: its damage is known, or there is none.
    pub fn clear_suspect(&self, file: FileNumber) {
        self.suspects.lock().remove(&file);
    }

    /// The damage of the log as far as it is known, one line for each place.
    pub(crate) fn damage(&self) -> Vec<String> {
        let known = self.store.damages();
        let suspects = self.suspects.lock();
        let unknown = suspects
            .iter()
            .filter(|(file, _)| known.iter().all(|damage| damage.file != **file))
            .map(|(_, found)| found.clone());
        known.iter().map(|damage| damage.to_string()).chain(unknown).collect()
    }

    /// Whether another log continues where this one ends.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    pub(crate) fn set_retired(&self, is_retired: bool) {
        self.retired.store(is_retired, Ordering::Release);
    }

    /// Whether the source's log was reset since: nothing more of this one is sent.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// The source's log was reset.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub(crate) fn has_files(&self) -> bool {
        self.store.positions().is_some()
    }
}
