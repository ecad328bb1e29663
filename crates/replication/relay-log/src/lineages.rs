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

use parking_lot::Mutex;
use std::sync::Arc;

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_encryption::Keyring;
use binlogz_store::{
    BinlogStore, Lineage as StoreLineage, MemoryStorage, RecoveryReport, Storage, StoreOptions,
};

use crate::brought_back_names::remove_brought_back;
use crate::disk::Disk;
use crate::ended::EndedLineage;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::lineage_log::{LineageLog, OpenedLineage};
use crate::numbers::KeptNumbers;
use crate::parts::FormFile;
use crate::stored_format::StoredHead;

/// All stored logs, oldest first.
#[derive(Debug)]
pub struct Lineages {
    disk: Arc<dyn Disk>,
    keyring: Option<Arc<Keyring>>,
    /// The storage of the first one, held even while it has no log.
    first: Arc<dyn Storage>,
    /// In a new log, an uncompressed file ends after this many bytes.
    limit: u64,
    kept: Mutex<Vec<Arc<LineageLog>>>,
}

impl Lineages {
    /// Opens the existing logs. `tell` gets a line about each, and whether it alarms.
    ///
    /// # Errors
    ///
    /// The disk failed, or what is on it is no log of a relay.
    pub fn open(
        disk: Arc<dyn Disk>,
        keyring: Option<Arc<Keyring>>,
        limit: u64,
        tell: impl Fn(&str, bool),
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
                tell(
                    &format!("log {} of the source {}: ended, and purged whole", ended.base, ended.source),
                    false,
                );
                let kept = lineages.open_ended(storage, number, ended)?;
                lineages.kept.lock().push(kept);
                continue;
            }
            let Some((base, lineage)) = BinlogStore::find(storage.as_ref())? else { continue };
            let holds_none = || Error::Lineage(format!("log {base} is no source's"));
            let source = lineage.source.ok_or_else(holds_none)?;
            let (kept, report) = lineages.open_one(storage, number, &base, source)?;
            let line = format!("log {base} of the source {source}: {report}");
            tell(&line, report.is_alarming());
            lineages.kept.lock().push(kept);
        }
        lineages.retire();
        Ok(lineages)
    }

    /// The storage for the relay's own files.
    pub fn own(&self) -> &Arc<dyn Storage> {
        &self.first
    }

    /// Begins another log after all others.
    pub fn begin(&self, base: &str, source: ServerUuid) -> Result<(Arc<LineageLog>, RecoveryReport)> {
        let number = self.kept.lock().len() as u64 + 1;
        let storage = self.storage(number)?;
        if KeptNumbers::read(&storage)?.is_none() {
            KeptNumbers::new(self.limit).write(&storage)?;
        }
        let (kept, report) = self.open_one(storage, number, base, source)?;
        self.kept.lock().push(Arc::clone(&kept));
        Ok((kept, report))
    }

    /// Free space in bytes; `None` if unknown.
    pub fn free_space(&self) -> std::io::Result<Option<u64>> {
        self.disk.free_space()
    }

    /// The log that is received.
    pub fn last(&self) -> Option<Arc<LineageLog>> {
        self.kept.lock().last().cloned()
    }

    /// The damage in the logs that are served.
    pub fn damage(&self) -> Vec<String> {
        let served = self.all().into_iter().filter(|kept| !kept.is_abandoned());
        served.flat_map(|kept| kept.damage()).collect()
    }

    /// The log that it continues.
    pub fn one_before(&self) -> Option<Arc<LineageLog>> {
        let kept = self.kept.lock();
        let (last, older) = kept.split_last()?;
        older.last().filter(|_| !last.is_root).cloned()
    }

    /// All logs, oldest first.
    pub fn all(&self) -> Vec<Arc<LineageLog>> {
        self.kept.lock().clone()
    }

    /// The log that is served: the last one with any data.
    pub fn served(&self) -> Option<Arc<LineageLog>> {
        let kept = self.kept.lock();
        kept.iter().rev().find(|kept| kept.has_files()).or(kept.last()).cloned()
    }

    /// The logs that it continues, newest first.
    pub fn goes_on_from(&self, one: &LineageLog) -> Vec<Arc<LineageLog>> {
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
    pub fn in_common(&self, one: &LineageLog, number: u64) -> Result<Option<GtidSet>> {
        let all = self.kept.lock().clone();
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
        self.kept.lock().iter().rev().skip_while(|other| other.number >= one.number).cloned().collect()
    }

    /// Why a file name of this log is ambiguous: an older log has it too, or had it.
    pub fn ambiguity(&self, one: &LineageLog, name: &str) -> Option<String> {
        let (form, file) = one.names.parse(name)?;
        let is_in = |older: &Arc<LineageLog>| {
            let last = older.store.positions().map(|now| now.written.file);
            // Replicas know the name of the next file by the rotate event before it. If that can't be read, they may.
            let is_named = |next| file == next && older.ends_with_rotate().unwrap_or(true);
            older.base == one.base && last.is_some_and(|last| file <= last || is_named(last.next()))
        };
        let ambiguous = form == Form::Received && self.older_than(one).iter().any(is_in);
        if !ambiguous {
            return None;
        }
        let is_here = one.store.logs().is_ok_and(|logs| logs.iter().any(|log| log.number == file));
        let other = one.name_of(Form::Uncompressed, FormFile::first_of(file)).ok().filter(|_| is_here);
        Some(match other {
            Some(other) => format!(
                "{name} is a file of this source's log and of one that was kept before it: begin by GTID, or with a file \
                 of another form, such as {other}"
            ),
            // After RESET the numbers begin anew.
            None => format!("{name} is a file of a log that was kept before this one{}", where_to_begin(one)),
        })
    }

    /// Why a name can't be served any more: it belongs to an older log.
    pub fn bygone(&self, one: &LineageLog, name: &str) -> Option<String> {
        if one.names.parse(name).is_some() {
            return None;
        }
        let older = self.older_than(one).into_iter().find(|older| older.names.parse(name).is_some())?;
        Some(format!(
            "{name} is a file of the log of {} that was kept before this one{}",
            older.source,
            where_to_begin(one)
        ))
    }

    /// The last log has something to serve: the others end here.
    pub fn retire(&self) {
        let kept = self.kept.lock();
        if let Some((last, older)) = kept.split_last().filter(|(last, _)| last.has_files()) {
            last.set_retired(false);
            older.iter().for_each(|older| older.set_retired(true));
            let gone = older.iter().enumerate().filter(|(place, _)| {
                let behind = kept.iter().skip(place + 1);
                behind.into_iter().any(|later| later.is_root)
            });
            gone.for_each(|(_, gone)| gone.abandon());
        }
        // Dumps that wait there have to notice.
        kept.iter().for_each(|kept| kept.store.wake());
    }

    /// Wakes all dumps that wait for something.
    pub fn wake(&self) {
        self.kept.lock().iter().for_each(|kept| kept.store.wake());
    }

    /// Removes all files of a log that another one continues, keeping a record of it. Returns their names.
    pub fn end(&self, old: &Arc<LineageLog>) -> Result<Vec<String>> {
        let Some(now) = old.store.positions() else { return Ok(Vec::new()) };
        old.fix_numbers_after(now.durable.file)?;
        let base = old.base.clone();
        let source = old.source;
        let gtids = old.durable_gtids();
        // If it can't be read, replicas may know another name.
        let is_next_named = old.ends_with_rotate().unwrap_or(true);
        let ended = EndedLineage { base, source, end: now.durable, gtids, is_next_named };
        ended.write(&old.storage)?;
        let new = self.open_ended(Arc::clone(&old.storage), old.number, ended.clone())?;
        for kept in self.kept.lock().iter_mut().filter(|kept| kept.number == old.number) {
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
        remove_brought_back(storage.as_ref())?;
        let options = StoreOptions {
            base_name: ended.base.clone(),
            lineage: StoreLineage { source: Some(ended.source), number },
            keyring: self.keyring.clone(),
            ..StoreOptions::default()
        };
        let (store, _) = BinlogStore::open(Arc::new(MemoryStorage::new()), options)?;
        store.ended_at(ended.end);
        let opened = OpenedLineage {
            storage,
            store,
            number,
            folder: folder(number),
            base: ended.base,
            source: ended.source,
            gtids: ended.gtids,
            end: Some(ended.end.file),
            is_next_named: ended.is_next_named,
            is_root: self.is_root(number, ended.source),
        };
        Ok(Arc::new(LineageLog::of(opened, self.limit)?))
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
        remove_brought_back(storage.as_ref())?;
        let (store, report) = BinlogStore::open(Arc::clone(&storage), options)?;
        let opened = OpenedLineage {
            storage,
            store,
            number,
            folder: folder(number),
            base: base.to_owned(),
            source,
            gtids: report.gtids.clone(),
            end: report.end.map(|end| end.file),
            is_next_named: false,
            is_root: self.is_root(number, source),
        };
        Ok((Arc::new(LineageLog::of(opened, self.limit)?), report))
    }

    /// Whether a log of this number continues no other one. A switch is always to another server: the same one means that
    /// its log was reset.
    fn is_root(&self, number: u64, source: ServerUuid) -> bool {
        let kept = self.kept.lock();
        let before = kept.iter().rev().find(|other| other.number < number);
        before.is_none_or(|before| before.source == source)
    }
}

/// The files of a log, and how a client can begin in it.
fn where_to_begin(one: &LineageLog) -> String {
    let logs = one.store.logs().unwrap_or_default();
    let (Some(first), Some(last)) = (logs.first(), logs.last()) else {
        return ", which has no file yet: begin by GTID".to_owned();
    };
    let files = match first.number == last.number {
        true => first.name.clone(),
        false => format!("{} to {}", first.name, last.name),
    };
    match one.name_of(Form::Uncompressed, FormFile::first_of(first.number)) {
        Ok(name) => format!(", which has {files}: begin by GTID, or with {name}"),
        Err(_) => format!(", which has {files}: begin by GTID"),
    }
}

/// The folder of the log of this number, in the relay's directory.
fn folder(number: u64) -> Option<String> {
    (number > 1).then(|| format!("lineage-{number}"))
}
