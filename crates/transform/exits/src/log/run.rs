//! What the logs of one run have in common: the policy, the tables, and what was met so far.

use std::collections::BTreeSet;

use binlogz_schema::{TablesOfLogs, TablesSoFar};
use parking_lot::Mutex;

use crate::counts::ExitCounts;
use crate::policy::ExitPolicy;

/// What the logs of one run have in common.
pub(super) struct ExitRun {
    pub(super) policy: ExitPolicy,
    pub(super) tables: TablesOfLogs,
    /// Table maps get the names and keys that are known otherwise.
    pub(super) completes: bool,
    pub(super) progress: Mutex<ExitProgress>,
}

/// What was met so far.
#[derive(Default)]
pub(super) struct ExitProgress {
    pub(super) so_far: TablesSoFar,
    pub(super) counts: ExitCounts,
    /// Rules that name a table exactly of which there are rows.
    pub(super) met_tables: BTreeSet<usize>,
}

impl std::fmt::Debug for ExitRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExitRun").finish_non_exhaustive()
    }
}
