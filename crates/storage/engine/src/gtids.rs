//! Gives each transaction its GTID, and knows which GTIDs are in the log.

use std::collections::HashMap;

use binlogz_binlog::gtid::{Gtid, GtidSet, ServerUuid, Tag, Tsid};

use crate::error::{Error, Result};

/// The server's `gtid_next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GtidNext {
    /// The next number of this server, with a tag or without; anonymous where GTIDs are off.
    Automatic(Option<Tag>),
    /// The transaction's GTID is given, by a replica or a tool.
    Given(Gtid),
    /// None: where GTIDs are off.
    Anonymous,
}

#[derive(Debug)]
pub(crate) struct Gtids {
    /// GTIDs are on.
    on: bool,
    uuid: ServerUuid,
    executed: GtidSet,
    /// Where to look for the next free number.
    next: HashMap<Tsid, u64>,
}

impl Gtids {
    pub(crate) fn new(on: bool, uuid: ServerUuid, executed: GtidSet) -> Self {
        Gtids { on, uuid, executed, next: HashMap::new() }
    }

    pub(crate) fn executed(&self) -> &GtidSet {
        &self.executed
    }

    /// Checks a session's `gtid_next` (the server's errors 1781 and 1782).
    pub(crate) fn check_next(on: bool, next: GtidNext) -> Result<()> {
        match next {
            GtidNext::Anonymous if on => {
                Err(Error::misuse("gtid_next", "ANONYMOUS", "a GTID where GTIDs are on"))
            }
            GtidNext::Given(gtid) if !on => {
                Err(Error::misuse("gtid_next", gtid, "ANONYMOUS where GTIDs are off"))
            }
            GtidNext::Automatic(Some(tag)) if !on => {
                Err(Error::misuse("gtid_next", tag.as_str(), "no tag where GTIDs are off"))
            }
            _ => Ok(()),
        }
    }

    /// Gives a transaction its GTID, which is then in the log.
    pub(crate) fn take(&mut self, next: GtidNext) -> Result<Option<Gtid>> {
        let gtid = match next {
            GtidNext::Automatic(tag) if self.on => self.next_free(Tsid { uuid: self.uuid, tag })?,
            GtidNext::Given(gtid) if self.on => gtid,
            _ => return Ok(None),
        };
        if self.executed.contains(&gtid) {
            return Err(Error::GtidTaken { gtid });
        }
        self.executed.add(gtid);
        Ok(Some(gtid))
    }

    fn next_free(&mut self, tsid: Tsid) -> Result<Gtid> {
        let next = self.next.entry(tsid).or_insert(1);
        let mut number = *next;
        for interval in self.executed.intervals(&tsid).unwrap_or_default() {
            if (interval.start()..interval.end()).contains(&number) {
                number = interval.end();
            }
        }
        *next = number + 1;
        Ok(Gtid::new(tsid, number)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_numbers_fill_gaps_and_go_on() {
        let uuid = ServerUuid(*b"a server's uuid!");
        let gtid = |gno| Gtid::new(uuid.into(), gno).unwrap();
        let mut executed = GtidSet::new();
        [1, 2, 4, 5, 8].into_iter().for_each(|gno| executed.add(gtid(gno)));
        let mut gtids = Gtids::new(true, uuid, executed);
        let given: Vec<u64> =
            (0..4).map(|_| gtids.take(GtidNext::Automatic(None)).unwrap().unwrap().gno()).collect();
        assert_eq!(given, [3, 6, 7, 9]);
        let tag = Some("tag".parse().unwrap());
        assert_eq!(gtids.take(GtidNext::Automatic(tag)).unwrap().unwrap().gno(), 1);
        let error = gtids.take(GtidNext::Given(gtid(9))).unwrap_err().to_string();
        assert_eq!(error, format!("GTID {uuid}:9 has been committed already"));
        assert_eq!(gtids.take(GtidNext::Given(gtid(10))).unwrap(), Some(gtid(10)));
        assert_eq!(gtids.take(GtidNext::Automatic(None)).unwrap(), Some(gtid(11)));
        let mut off = Gtids::new(false, uuid, GtidSet::new());
        assert_eq!(off.take(GtidNext::Automatic(None)).unwrap(), None);
    }
}
