//! Which parts of a selection the events so far matched. We report a request that nothing matched: otherwise
//! the output would look like that of a log without the requested transactions.

use std::fmt::Display;

use binlogz_binlog::event::PreviousGtidsEvent;

use crate::selection::Selection;

/// Carried from event to event, as part of a printer's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Met {
    /// A transaction of `--include-gtids` began.
    pub(crate) gtid: bool,
    /// An event was in the requested time range.
    pub(crate) time: bool,
    /// The end of the last event, with payloads not opened.
    pub(crate) end: u64,
    /// The transaction of `--stop-before-gtid` is before the logs: nothing after it is shown.
    pub(crate) is_too_late: bool,
}

/// A request, and why it was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The option and why it was not met.
    pub line: String,
    /// The option exists only in binlogz: mysqlbinlog has no behaviour to follow.
    pub is_our_own: bool,
}

impl Unmet {
    /// No transaction of `--include-gtids`.
    pub fn include_gtids(set: &dyn Display) -> Self {
        let set = set.to_string().replace('\n', "");
        Unmet {
            line: format!("--include-gtids={set}: none of these transactions is there"),
            is_our_own: false,
        }
    }

    /// The transaction of `--stop-before-gtid` did not come.
    pub fn stop_before_gtid(gtid: &dyn Display) -> Self {
        Unmet { line: format!("--stop-before-gtid={gtid}: this transaction is not there"), is_our_own: true }
    }

    /// The first log ends before `--start-position`.
    pub fn start_position(start: u64, end: u64) -> Self {
        Unmet { line: format!("--start-position={start}: the log ends at {end}"), is_our_own: false }
    }

    /// The log ends before `--stop-position`.
    pub fn stop_position(stop: u64, end: u64) -> Self {
        Unmet { line: format!("--stop-position={stop}: the log ends at {end}"), is_our_own: false }
    }
}

impl Met {
    /// Reads a log's previous GTIDs: whether they include the transaction to stop before, which then can't
    /// come any more.
    pub(crate) fn previous_gtids(&mut self, body: &[u8], selection: &Selection) -> bool {
        let Some(stop) = &selection.stop_before_gtid else { return false };
        let previous = PreviousGtidsEvent::decode(body);
        self.is_too_late |= previous.is_ok_and(|previous| previous.gtid_set.contains(stop));
        self.is_too_late
    }

    /// The requests that were not met, at the end of the last log. `ended`: the output ended before the log
    /// did, as requested.
    pub fn unmet(&self, selection: &Selection, stop: Option<u64>, ended: bool) -> Vec<Unmet> {
        let mut unmet = Vec::new();
        if let Some(set) = selection.include_gtids.as_ref().filter(|_| !self.gtid) {
            unmet.push(Unmet::include_gtids(set));
        }
        if (selection.start_time.is_some() || selection.stop_time.is_some()) && !self.time {
            let line = "--start-datetime, --stop-datetime: no event is of these times".to_owned();
            unmet.push(Unmet { line, is_our_own: false });
        }
        if let Some(gtid) = selection.stop_before_gtid.as_ref().filter(|_| self.is_too_late) {
            let line = format!("--stop-before-gtid={gtid}: this transaction stands before the log");
            unmet.push(Unmet { line, is_our_own: true });
        }
        if ended {
            return unmet;
        }
        unmet.extend(selection.stop_before_gtid.as_ref().map(|gtid| Unmet::stop_before_gtid(gtid)));
        if let Some(stop) = stop.filter(|&stop| stop != u64::MAX && stop > self.end) {
            unmet.push(Unmet::stop_position(stop, self.end));
        }
        unmet
    }
}
