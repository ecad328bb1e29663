//! Whether logs continue what a server has: decided by sets of GTIDs alone.

use binlogz_binlog::gtid::GtidSet;

/// How logs stand to the transactions of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// The server has these transactions, which come after the end of the logs.
    IsPast(GtidSet),
    /// The server lacks these transactions, which came before the first log.
    HasGap(GtidSet),
    /// The logs continue what the server has. It lacks these of their transactions.
    Lacks(GtidSet),
}

impl Continuation {
    /// Compares the transactions that a server has `executed` with those `before` the first log, those `up_to` the end (and all
    /// before the first log), and those `after` the end.
    pub(crate) fn of(executed: &GtidSet, before: &GtidSet, up_to: &GtidSet, after: &GtidSet) -> Continuation {
        let mut ahead = after.clone();
        ahead.intersect(executed);
        if !ahead.is_empty() {
            return Continuation::IsPast(ahead);
        }
        let mut gap = before.clone();
        gap.subtract(executed);
        if !gap.is_empty() {
            return Continuation::HasGap(gap);
        }
        let mut lacks = up_to.clone();
        lacks.subtract(executed);
        Continuation::Lacks(lacks)
    }
}
