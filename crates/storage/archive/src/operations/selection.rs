//! Chooses the transactions to restore, by GTID or by time.

use binlogz_binlog::gtid::{Gtid, GtidSet};

/// Selects transactions that match every given condition.
#[derive(Debug, Clone, Default)]
pub struct TransactionSelection {
    /// Only these.
    pub gtids: Option<GtidSet>,
    /// Begun at or after this time, in seconds since 1970.
    pub start: Option<u32>,
    /// Begun before this time.
    pub stop: Option<u32>,
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

    /// Whether a part of a log with these transactions and times may hold a selected one, or the end.
    pub(crate) fn may_be_in(&self, gtids: &GtidSet, times: Option<(u32, u32)>) -> bool {
        if self.stop_before.as_ref().is_some_and(|stop| gtids.contains(stop)) {
            return true;
        }
        let (first, last) = times.unwrap_or((0, u32::MAX));
        self.gtids.as_ref().is_none_or(|wanted| !wanted.is_disjoint(gtids))
            && self.start.is_none_or(|start| last >= start)
            && self.stop.is_none_or(|stop| first < stop)
    }

    /// Decides about a transaction that begins with these.
    pub(crate) fn choose(&self, gtid: Option<&Gtid>, timestamp: u32) -> EventChoice {
        if gtid.is_some() && gtid == self.stop_before.as_ref() {
            return EventChoice::End;
        }
        let wanted = self.gtids.as_ref().is_none_or(|wanted| gtid.is_some_and(|gtid| wanted.contains(gtid)))
            && self.start.is_none_or(|start| timestamp >= start)
            && self.stop.is_none_or(|stop| timestamp < stop);
        if wanted { EventChoice::Take { begins: true } } else { EventChoice::Leave }
    }
}
