//! Group commit: transactions go through the flush, sync and commit stages in groups, each led by the
//! session that came first.
//!
//! ```text
//! flush    the leader takes all that wait: GTIDs, positions, checksums; one write
//! sync     the leader takes all groups that were flushed meanwhile: one sync (after binlog_group_commit_sync_delay)
//! commit   all of them are told
//! ```
//!
//! While one group is synced the next is flushed, and while that waits for its sync more sessions join it:
//! the more committers, the fewer syncs for each commit. A session that finds a stage's queue empty leads it.
//! It joins the queue of the next stage before it leaves the previous one, so groups can't overtake each
//! other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use binlogz_store::BinlogStore;
use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::log_state::{FileSettings, LogState, now_micros};
use crate::stored_variables::{FlushPolicy, Globals};
use crate::ticket::{CommitGroup, Ticket};

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) store: BinlogStore,
    pub(crate) globals: Arc<Globals>,
    log: Mutex<LogState>,
    flush_queue: Mutex<Vec<Arc<Ticket>>>,
    sync_queue: Mutex<Vec<Arc<Ticket>>>,
    /// Someone joined the sync queue.
    joined: Condvar,
    /// Held by the sync stage's leader: groups since the last sync.
    syncing: Mutex<u32>,
    /// The last transaction in commit order for which it and all before it have been notified.
    committed: AtomicI64,
    closed: AtomicBool,
    groups: AtomicU64,
    syncs: AtomicU64,
}

impl Pipeline {
    pub(crate) fn new(store: BinlogStore, globals: Arc<Globals>, log: LogState) -> Self {
        Pipeline {
            store,
            globals,
            log: Mutex::new(log),
            flush_queue: Mutex::default(),
            sync_queue: Mutex::default(),
            joined: Condvar::new(),
            syncing: Mutex::default(),
            committed: AtomicI64::new(0),
            closed: AtomicBool::new(false),
            groups: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
        }
    }

    /// The last transaction committed: transactions that begin to commit now depend on none after it.
    pub(crate) fn last_committed(&self) -> i64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Write calls for groups, and syncs, since the start.
    pub(crate) fn group_figures(&self) -> (u64, u64) {
        (self.groups.load(Ordering::Relaxed), self.syncs.load(Ordering::Relaxed))
    }

    /// Takes a submitted transaction through all stages.
    pub(crate) fn commit(&self, ticket: &Arc<Ticket>) {
        if !join(&self.flush_queue, std::iter::once(Arc::clone(ticket))) {
            return ticket.wait();
        }
        if self.flush_stage() {
            self.sync_stage();
        }
        // Another leader may be the one to report its outcome.
        ticket.wait();
    }

    /// Whether this thread leads the sync stage too.
    fn flush_stage(&self) -> bool {
        let mut log = self.log.lock();
        let mut group = CommitGroup { tickets: std::mem::take(&mut *self.flush_queue.lock()) };
        let policy = self.globals.flush_policy();
        if let Err(error) = self.flush(&mut log, &group, policy) {
            drop(log);
            group.finish(Some(&error));
            return false;
        }
        self.groups.fetch_add(1, Ordering::Relaxed);
        if policy == FlushPolicy::SyncAtCommit && self.globals.sync_binlog() > 0 {
            // Before the next leader flushes.
            let leads = join(&self.sync_queue, group.tickets.drain(..));
            drop(log);
            if self.globals.sync_delay() > Duration::ZERO {
                self.joined.notify_all();
            }
            return leads;
        }
        drop(log);
        self.finish(group, None);
        false
    }

    fn flush(&self, log: &mut LogState, group: &CommitGroup, policy: FlushPolicy) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        let mut writer = self.store.writer()?;
        let now = now_micros();
        for ticket in &group.tickets {
            let mut slot = ticket.slot();
            if let Err(error) = log.put(&mut slot, now) {
                slot.outcome = Some(Err(error));
            }
            if log.is_full() {
                log.write(&mut writer)?;
            }
        }
        if policy != FlushPolicy::OnceASecond {
            log.write(&mut writer)?;
        }
        if log.end().offset >= self.globals.max_binlog_size() {
            let settings = log.settings();
            log.rotate(&self.store, &mut writer, settings)?;
        }
        Ok(())
    }

    fn sync_stage(&self) {
        let mut groups_unsynced = self.syncing.lock();
        let group = self.take_for_sync(*groups_unsynced);
        *groups_unsynced += 1;
        let synced = if *groups_unsynced >= self.globals.sync_binlog() {
            *groups_unsynced = 0;
            self.syncs.fetch_add(1, Ordering::Relaxed);
            self.store.sync().map(drop).map_err(Error::from)
        } else {
            Ok(())
        };
        drop(groups_unsynced);
        self.finish(group, synced.err());
    }

    /// Takes the group that commits next. If it will be synced, waits for more to join, as long as configured.
    fn take_for_sync(&self, groups_unsynced: u32) -> CommitGroup {
        let delay = self.globals.sync_delay();
        let enough = self.globals.sync_no_delay_count();
        let mut queue = self.sync_queue.lock();
        if !delay.is_zero() && groups_unsynced + 1 >= self.globals.sync_binlog() {
            self.joined.wait_while_for(&mut queue, |queue| enough == 0 || queue.len() < enough, delay);
        }
        CommitGroup { tickets: std::mem::take(&mut *queue) }
    }

    /// The commit stage.
    fn finish(&self, group: CommitGroup, error: Option<Error>) {
        self.committed.fetch_max(group.last_sequence(), Ordering::AcqRel);
        group.finish(error.as_ref());
    }

    /// Writes and syncs committed transactions: once a second, under the policies that promise no more.
    pub(crate) fn write_and_sync(&self) -> Result<()> {
        {
            let mut log = self.log.lock();
            log.write(&mut self.store.writer()?)?;
        }
        let _syncing = self.syncing.lock();
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(self.store.sync().map(drop)?)
    }

    /// Begins a new file, with these settings or the old ones.
    pub(crate) fn rotate(&self, settings: Option<FileSettings>) -> Result<()> {
        let mut log = self.log.lock();
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        let settings = settings.unwrap_or_else(|| log.settings());
        log.rotate(&self.store, &mut self.store.writer()?, settings)
    }

    /// Ends the log. Later commits fail.
    pub(crate) fn close(&self) -> Result<()> {
        let mut log = self.log.lock();
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        log.stop(&mut self.store.writer()?)
    }

    /// Reads or changes the flush stage's state.
    pub(crate) fn with_log<T>(&self, work: impl FnOnce(&mut LogState) -> T) -> T {
        work(&mut self.log.lock())
    }
}

fn closed() -> Error {
    Error::misuse("commit", "the engine was closed", "an open engine")
}

/// Whether the queue was empty: then the caller leads it.
fn join(queue: &Mutex<Vec<Arc<Ticket>>>, tickets: impl Iterator<Item = Arc<Ticket>>) -> bool {
    let mut queue = queue.lock();
    let leads = queue.is_empty();
    queue.extend(tickets);
    leads
}
