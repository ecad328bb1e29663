//! A commit that waits in the pipeline: the transaction goes in, its outcome comes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use binlogz_binlog::gtid::Gtid;
use binlogz_store::Position;
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::prepared::{PreparedTransaction, TransactionForm};

/// A transaction that is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// GTID of the transaction; `None`: anonymous, or empty.
    pub gtid: Option<Gtid>,
    /// The transaction's form in the log.
    pub outcome: TransactionForm,
    /// Where it ends; `None` if it is empty.
    pub end: Option<Position>,
}

/// A session's place in the commit queue, reused for each of its commits.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    slot: Mutex<Slot>,
    done: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) prepared: PreparedTransaction,
    /// The commit's place in the order of all commits, across files.
    pub(crate) sequence: i64,
    pub(crate) outcome: Option<Result<CommittedTransaction>>,
    waiting: Option<Thread>,
}

impl Ticket {
    pub(crate) fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock()
    }

    /// Submits a transaction; the buffers of the last one come back in exchange.
    pub(crate) fn hand_in(&self, prepared: &mut PreparedTransaction) {
        let mut slot = self.slot();
        std::mem::swap(&mut slot.prepared, prepared);
        slot.outcome = None;
        slot.waiting = Some(thread::current());
        self.done.store(false, Ordering::Relaxed);
    }

    /// Waits until the group's leader is done with it.
    pub(crate) fn wait(&self) {
        while !self.done.load(Ordering::Acquire) {
            thread::park();
        }
    }

    pub(crate) fn outcome(&self) -> Result<CommittedTransaction> {
        self.slot().outcome.take().unwrap_or_else(|| Err(leader_gone()))
    }

    fn finish(&self, error: Option<&Error>) {
        let waiting = {
            let mut slot = self.slot();
            // A transaction that failed by itself keeps its own error.
            if let (Some(error), Some(Ok(_)) | None) = (error, &slot.outcome) {
                slot.outcome = Some(Err(error.clone()));
            }
            slot.waiting.take()
        };
        self.done.store(true, Ordering::Release);
        if let Some(thread) = waiting {
            thread.unpark();
        }
    }
}

fn leader_gone() -> Error {
    Error::misuse("commit", "the group's leader panicked", "a leader that ends its group")
}

/// Commits that go through a stage together. When dropped, they are done, or failed if their leader panicked.
#[derive(Debug, Default)]
pub(crate) struct CommitGroup {
    pub(crate) tickets: Vec<Arc<Ticket>>,
}

impl CommitGroup {
    pub(crate) fn finish(mut self, error: Option<&Error>) {
        for ticket in self.tickets.drain(..) {
            ticket.finish(error);
        }
    }

    /// The highest place in the order of commits.
    pub(crate) fn last_sequence(&self) -> i64 {
        self.tickets.iter().map(|ticket| ticket.slot().sequence).max().unwrap_or(0)
    }
}

impl Drop for CommitGroup {
    fn drop(&mut self) {
        for ticket in self.tickets.drain(..) {
            ticket.finish(Some(&leader_gone()));
        }
    }
}
