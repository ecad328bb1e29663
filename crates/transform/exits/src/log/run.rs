//! What the logs of one run have in common: the policy, the tables, and what was met so far.

use std::sync::Arc;

use binlogz_schema::{TablesOfLogs, TablesSoFar};
use parking_lot::Mutex;

use crate::counts::ExitCounts;
use crate::policy::{ExitPolicy, MetRules};

/// What the logs of one reading have in common.
pub(super) struct ExitRun {
    pub(super) policy: Arc<ExitPolicy>,
    pub(super) tables: Arc<TablesOfLogs>,
    /// Table maps get the names and keys that are known otherwise.
    pub(super) completes: bool,
    pub(super) progress: Mutex<ExitProgress>,
}

impl ExitRun {
    pub(super) fn new(policy: Arc<ExitPolicy>, tables: Arc<TablesOfLogs>, completes: bool) -> Self {
        ExitRun { policy, tables, completes, progress: Mutex::default() }
    }

    /// Another reading, of which nothing was met.
    pub(super) fn again(&self) -> Self {
        ExitRun::new(Arc::clone(&self.policy), Arc::clone(&self.tables), self.completes)
    }

    /// Begins the log of this number, counted from 0; `false`: the logs before it weren't all masked to their end.
    pub(super) fn begins(&self, number: usize) -> bool {
        let mut progress = self.progress.lock();
        let is_next = progress.begun == number && progress.ended == number;
        progress.begun += usize::from(is_next);
        is_next
    }
}

/// What was met so far.
#[derive(Default)]
pub(super) struct ExitProgress {
    /// How many logs were begun, and masked to their end. Statements of a log that wasn't may have changed tables.
    begun: usize,
    pub(super) ended: usize,
    pub(super) so_far: TablesSoFar,
    pub(super) counts: ExitCounts,
    /// How many logs were read to their end, once they were masked.
    pub(super) read: usize,
    /// What the rules met.
    pub(super) met: MetRules,
}

impl ExitProgress {
    /// The number of logs that were begun and read to their end; 0: one of them wasn't, which may have more.
    pub(super) fn read_whole(&self) -> usize {
        if self.read == self.begun { self.read } else { 0 }
    }
}

impl std::fmt::Debug for ExitRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExitRun").finish_non_exhaustive()
    }
}
