//! A dump by MariaDB's GTIDs: which transactions its client has.

use binlogz_binlog::EventType;
use binlogz_relay_log::EventGroup;

use super::Sender;
use crate::error::Result;
use crate::serve::mariadb_source::start::{self, PendingDomains};

impl Sender<'_> {
    /// Whether the client has a transaction of MariaDB, in a dump that begins after GTIDs.
    pub(super) fn is_had_in_its_domain(&mut self, group: &EventGroup) -> Result<bool> {
        let is_one = group.first.event_type == EventType::MARIADB_GTID;
        let place = (self.log.file(), group.begin);
        match self.dump.domains.as_mut().filter(|domains| is_one && !domains.is_over()) {
            None => Ok(false),
            Some(domains) => domains.leaves_out(start::gtid_at(self.kept, self.log.head(), place)?),
        }
    }

    /// Whether the dump waits for the client's GTID.
    pub(super) fn waits_for_a_gtid(&self) -> bool {
        self.dump.domains.as_ref().is_some_and(PendingDomains::is_waiting)
    }
}
