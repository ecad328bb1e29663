//! Checks that logs follow each other. A log begins with the GTIDs of all transactions before it. They must be the GTIDs
//! that the log before it began with, together with those that it holds. Besides, a log ends with the name of the next one, or, where its server
//! was stopped, has the number before it: transactions without GTIDs leave no gap in a set.

use binlogz_binlog::gtid::{Gtid, GtidSet};

/// Two logs, the second of which doesn't follow the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Break {
    /// The transactions that are missing between them; empty: the second can't come after the first at all.
    missing: GtidSet,
    /// Whether only names tell it: transactions with GTIDs are not missing.
    is_by_name: bool,
    /// Which logs, and why.
    pub(crate) line: String,
}

impl Break {
    /// Whether none of these transactions is missing between the logs.
    pub(crate) fn lacks_none_of(&self, gtids: &GtidSet) -> bool {
        self.is_by_name || !self.missing.is_empty() && gtids.is_disjoint(&self.missing)
    }
}

/// A log as it describes itself.
#[derive(Debug, Default)]
struct Log {
    name: String,
    /// Whether its previous GTIDs were read.
    has_begun: bool,
    /// All transactions up to its end that are certain: those before it, and those that ended in it.
    ended: GtidSet,
    /// All transactions in `ended`, and those that only began in this log: a relay log may end within a transaction,
    /// which the next one repeats.
    begun: GtidSet,
    /// The next log, if nothing came after its name.
    next_name: Option<String>,
}

/// Compares each log with the one before it.
#[derive(Debug, Default)]
pub(super) struct LogOrder {
    before: Option<Log>,
    log: Option<Log>,
    /// Transactions of the coming log that won't be seen.
    passed_over: GtidSet,
}

impl LogOrder {
    /// Transactions of the coming log, which may not be seen.
    pub(super) fn pass_over(&mut self, gtids: &GtidSet) {
        self.passed_over.union(gtids);
    }

    /// A log begins.
    pub(super) fn begin_log(&mut self, name: &str) {
        self.before = self.log.take();
        let begun = std::mem::take(&mut self.passed_over);
        self.log = Some(Log { name: name.to_owned(), begun, ..Log::default() });
    }

    /// The log's previous GTIDs were read.
    pub(super) fn previous(&mut self, gtids: &GtidSet) -> Option<Break> {
        let log = self.log.as_mut().filter(|log| !log.has_begun)?;
        log.has_begun = true;
        log.ended.union(gtids);
        log.begun.union(gtids);
        let before = self.before.take()?;
        let (name, last) = (&log.name, &before.name);
        let mut missing = gtids.clone();
        missing.subtract(&before.begun);
        let mut is_by_name = false;
        let line = if !before.ended.is_subset(gtids) {
            missing = GtidSet::new();
            let mut lost = before.ended;
            lost.subtract(gtids);
            format!(
                "{name} doesn't follow {last}: it comes before {}, or from another server; expected the logs of one server \
                 in their order",
                lost.brief()
            )
        } else if !missing.is_empty() {
            format!(
                "{name} doesn't follow {last}: the logs lack {}, which came between them",
                missing.brief()
            )
        } else if let Some(next) =
            before.next_name.or_else(|| name_after(last)).filter(|next| differ(next, name))
        {
            is_by_name = true;
            format!("{name} doesn't follow {last}: after that came {next}")
        } else {
            return None;
        };
        Some(Break { missing, is_by_name, line })
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self, gtid: Option<&Gtid>) {
        if let Some(log) = &mut self.log {
            log.next_name = None;
            gtid.into_iter().for_each(|gtid| log.begun.add(*gtid));
        }
    }

    /// Notes that a transaction has ended, with its GTID if it has one.
    pub(super) fn end(&mut self, gtid: Option<&Gtid>) {
        if let (Some(log), Some(gtid)) = (&mut self.log, gtid) {
            log.begun.add(*gtid);
            log.ended.add(*gtid);
        }
    }

    /// The log names the next one.
    pub(super) fn rotate(&mut self, name: &[u8]) {
        if let Some(log) = &mut self.log {
            log.next_name = Some(String::from_utf8_lossy(name).into_owned());
        }
    }
}

/// The base name and the number of a log.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once('.')?;
    Some((base, number.parse().ok()?))
}

/// The name of the log after one with this name.
fn name_after(name: &str) -> Option<String> {
    let (base, number) = numbered(name)?;
    Some(format!("{base}.{:06}", number.checked_add(1)?))
}

/// Whether two names are of different logs of one server. A log that was renamed may be any.
fn differ(one: &str, other: &str) -> bool {
    match (numbered(one), numbered(other)) {
        (Some((base, one)), Some((other_base, other))) => base == other_base && one != other,
        (None, _) | (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> GtidSet {
        if text.is_empty() { GtidSet::new() } else { format!("{SERVER}:{text}").parse().unwrap() }
    }

    /// The error about the second of two logs. Each log is given by its name, the GTIDs before it, those it holds, and
    /// those that begin in it without ending.
    fn said(logs: [(&str, &str, &str, &str); 2]) -> Option<Break> {
        let mut order = LogOrder::default();
        let mut said = None;
        for (name, previous, holds, cut) in logs {
            order.begin_log(name);
            said = order.previous(&set(previous));
            for (numbers, ends) in [(holds, true), (cut, false)] {
                for (tsid, intervals) in set(numbers).iter() {
                    for number in intervals.iter().flat_map(|interval| interval.start()..interval.end()) {
                        let gtid = Gtid::new(*tsid, number).unwrap();
                        order.begin(Some(&gtid));
                        if ends {
                            order.end(Some(&gtid));
                        }
                    }
                }
            }
            // A server that is stopped names none.
            if name != "stopped.000001" {
                order.rotate(b"log.000002");
            }
        }
        said
    }

    #[test]
    fn a_log_whose_server_was_stopped_is_followed_by_its_number() {
        let stopped = ("stopped.000001", "", "", "");
        assert_eq!(said([stopped, ("stopped.000002", "", "", "")]), None);
        assert_eq!(said([stopped, ("renamed", "", "", "")]), None);
        let skipped = said([stopped, ("stopped.000003", "", "", "")]).unwrap();
        assert_eq!(
            skipped.line,
            "stopped.000003 doesn't follow stopped.000001: after that came stopped.000002"
        );
    }

    #[test]
    fn logs_follow_each_other_if_nothing_is_missing() {
        let first = ("log.000001", "1-4", "5-9", "");
        assert_eq!(said([first, ("log.000002", "1-9", "10", "")]), None);
        // It may have been renamed.
        assert_eq!(said([first, ("kept", "1-9", "10", "")]), None);
        let cut = ("log.000001", "1-4", "5-8", "9");
        assert_eq!(said([cut, ("log.000002", "1-8", "9", "")]), None, "a relay log repeats it");
        assert_eq!(said([cut, ("log.000002", "1-9", "10", "")]), None, "or goes on with it");
        let gap = said([first, ("log.000003", "1-11", "12", "")]).unwrap();
        assert_eq!(gap.missing, set("10-11"));
        assert_eq!(
            gap.line,
            format!(
                "log.000003 doesn't follow log.000001: the logs lack {SERVER}:10-11, which came between them"
            )
        );
        for other in ["1-4", "1-8", ""] {
            let order = said([first, ("log.000000", other, "", "")]).unwrap();
            assert!(order.missing.is_empty());
            assert!(
                order.line.starts_with("log.000000 doesn't follow log.000001: it comes before "),
                "{}",
                order.line
            );
        }
    }

    #[test]
    fn without_gtids_the_name_of_the_next_log_counts() {
        let first = ("log.000001", "", "", "");
        assert_eq!(said([first, ("log.000002", "", "", "")]), None);
        assert_eq!(said([first, ("other.000007", "", "", "")]), None);
        let skipped = said([first, ("log.000003", "", "", "")]).unwrap();
        assert_eq!(skipped.line, "log.000003 doesn't follow log.000001: after that came log.000002");
        // One in between may have had none either, while the others have them.
        let between = said([("log.000001", "1-4", "5-9", ""), ("log.000003", "1-9", "10", "")]).unwrap();
        assert_eq!((between.line, between.is_by_name), (skipped.line, true));
    }
}
