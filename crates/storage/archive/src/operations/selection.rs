//! Chooses the transactions to restore, by GTID or by time.

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_flow::BoundaryMoment;

/// Selects transactions that match every given condition.
#[derive(Debug, Clone, Default)]
pub struct TransactionSelection {
    /// Only these.
    pub gtids: Option<GtidSet>,
    /// Begun at this time or later; with a fraction of a second committed then, where the log tells.
    pub start: Option<BoundaryMoment>,
    /// Begun, or committed, before this time.
    pub stop: Option<BoundaryMoment>,
    /// Before this one in the log.
    pub stop_before: Option<Gtid>,
}

/// The decision about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventChoice {
    Take {
        begins: bool,
    },
    Leave,
    /// Nothing from here on is wanted.
    End,
}

impl TransactionSelection {
    /// Whether it selects everything.
    pub fn is_all(&self) -> bool {
        self.gtids.is_none() && self.start.is_none() && self.stop.is_none() && self.stop_before.is_none()
    }

    /// Whether times matter.
    pub(crate) fn has_times(&self) -> bool {
        self.start.is_some() || self.stop.is_some()
    }

    /// Whether a part of a log with these transactions and times may hold a selected one, or the end.
    pub(crate) fn may_be_in(&self, gtids: &GtidSet, times: Option<(u32, u32)>) -> bool {
        if self.stop_before.as_ref().is_some_and(|stop| gtids.contains(stop)) {
            return true;
        }
        let (first, last) = times.unwrap_or((0, u32::MAX));
        self.gtids.as_ref().is_none_or(|wanted| !wanted.is_disjoint(gtids))
            && self.start.is_none_or(|start| start.may_be_reached(last))
            && self.stop.is_none_or(|stop| !stop.is_reached(first, None))
    }

    /// Decides about a transaction that begins with these: its GTID, the second, and when it was committed.
    pub(crate) fn choose(&self, gtid: Option<&Gtid>, second: u32, committed: Option<u64>) -> EventChoice {
        if gtid.is_some() && gtid == self.stop_before.as_ref() {
            return EventChoice::End;
        }
        let wanted = self.gtids.as_ref().is_none_or(|wanted| gtid.is_some_and(|gtid| wanted.contains(gtid)))
            && self.start.is_none_or(|start| start.is_reached(second, committed))
            && self.stop.is_none_or(|stop| !stop.is_reached(second, committed));
        if wanted { EventChoice::Take { begins: true } } else { EventChoice::Leave }
    }
}
