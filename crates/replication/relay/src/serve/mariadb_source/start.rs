//! Where a dump by MariaDB's GTIDs begins, and which transactions it leaves out.
//!
//! ```text
//! the last file that begins, in each of its domains, no later than the client's GTID    from its beginning on
//! in a domain, up to the client's GTID and with it                                      left out: the client has them
//! in a domain of which the client has nothing                                           all is sent
//! ```
//!
//! The GTID list at a file's beginning tells what comes before the file. Whether the client's GTID is in the log shows when the log was gone
//! through: until then nothing of its domain is sent.

use std::io::Read;
use std::time::{Duration, Instant};

use binlogz_binlog::EventType;
use binlogz_binlog::event::{MariadbGtid, MariadbGtidList};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_relay_log::{LineageLog, StoredHead};
use binlogz_store::FileNumber;

use crate::error::{Error, Result};

/// More than the events before a file's first transaction have, with some 60,000 servers and domains.
const FRONT_SIZE_MAX: u64 = 1 << 20;

/// The domains in which the client's GTID was not seen yet.
#[derive(Debug, Default)]
pub(crate) struct PendingDomains {
    domains: Vec<PendingDomain>,
    /// When the end of the log was reached without them.
    since: Option<Instant>,
}

#[derive(Debug)]
struct PendingDomain {
    /// The last transaction that the client has.
    has: MariadbGtid,
    /// Whether the log has transactions of the domain.
    is_known: bool,
    /// Whether the log was gone through and had none.
    is_empty: bool,
}

/// The place where a dump begins.
#[derive(Debug)]
pub(crate) struct MariadbStart {
    pub(crate) file: FileNumber,
    pub(crate) pending: PendingDomains,
}

/// Finds the file to begin with.
///
/// # Errors
///
/// The log begins too late for the client; a file can't be read.
pub(crate) fn find(kept: &LineageLog, state: &[MariadbGtid]) -> Result<MariadbStart> {
    for log in kept.store.logs()?.iter().rev() {
        let Some(before) = before(kept, log.number)? else { continue };
        if is_in_time(&before, state) {
            return Ok(MariadbStart { file: log.number, pending: PendingDomains::new(&before, state) });
        }
    }
    Err(Error::Refused(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and required binlog files \
         have been purged."
            .into(),
    ))
}

/// Whether all that a client lacks comes after a file's beginning.
fn is_in_time(before: &MariadbGtidList, state: &[MariadbGtid]) -> bool {
    before.gtids.iter().all(|gtid| {
        let has = state.iter().find(|has| has.domain == gtid.domain);
        has.is_some_and(|has| before.last(has.domain) == Some(*has) || !before.reaches(*has))
    })
}

/// The GTIDs before a file; `None`: they are not durable yet.
fn before(kept: &LineageLog, file: FileNumber) -> Result<Option<MariadbGtidList>> {
    let head = StoredHead::read(&kept.store, file)?;
    let mut front = Vec::new();
    kept.store
        .reader(file, head.end())?
        .take(FRONT_SIZE_MAX)
        .read_to_end(&mut front)
        .map_err(Error::io("read a log"))?;
    let mut rest = front.as_slice();
    while let Some(frame) = head.framing().next_frame(rest)? {
        let frame = frame.verify()?;
        let event_type = frame.header().event_type;
        match event_type {
            EventType::MARIADB_GTID_LIST => return Ok(Some(MariadbGtidList::decode(frame.body())?)),
            // It comes before the list in a log that its server encrypts.
            EventType::MARIADB_START_ENCRYPTION => {}
            _ => {
                return Err(Error::Refused(format!(
                    "{} begins with a {event_type:?}, expected a list of MariaDB's GTIDs",
                    kept.store.names().log(file)
                )));
            }
        }
        rest = rest.get(frame.header().event_size as usize..).unwrap_or_default();
    }
    Ok(None)
}

/// The GTID of the transaction that begins there.
pub(crate) fn gtid_at(
    kept: &LineageLog,
    head: &StoredHead,
    (file, offset): (FileNumber, u64),
) -> Result<MariadbGtid> {
    let mut event = Vec::new();
    let size = HEADER_SIZE as u64 + FRONT_SIZE_MAX.min(256);
    kept.store.reader(file, offset)?.take(size).read_to_end(&mut event).map_err(Error::io("read a log"))?;
    let cut = binlogz_binlog::Error::Truncated { needed: size, left: event.len() as u64 };
    let frame = head.framing().next_frame(&event)?.ok_or(cut)?.verify()?;
    Ok(MariadbGtid::decode(frame.header(), frame.body())?)
}

impl PendingDomains {
    fn new(before: &MariadbGtidList, state: &[MariadbGtid]) -> Self {
        let pending = state.iter().filter(|has| before.last(has.domain) != Some(**has));
        let domain = |has: &MariadbGtid| PendingDomain {
            has: *has,
            is_known: before.last(has.domain).is_some(),
            is_empty: false,
        };
        PendingDomains { domains: pending.map(domain).collect(), since: None }
    }

    /// Whether every GTID of the client was seen.
    pub(crate) fn is_over(&self) -> bool {
        self.domains.is_empty()
    }

    /// Whether the client has the next transaction of the log.
    ///
    /// # Errors
    ///
    /// The log has a later transaction of the same server, but not the client's: histories differ.
    pub(crate) fn leaves_out(&mut self, next: MariadbGtid) -> Result<bool> {
        let Some(place) = self.domains.iter().position(|pending| pending.has.domain == next.domain) else {
            return Ok(false);
        };
        let Some(pending) = self.domains.get_mut(place) else { return Ok(false) };
        let has = pending.has;
        if has == next {
            self.domains.swap_remove(place);
            return Ok(true);
        }
        if pending.is_empty {
            self.domains.swap_remove(place);
            return if next.sequence > has.sequence { Ok(false) } else { Err(not_there(has)) };
        }
        if next.server_id == has.server_id && next.sequence > has.sequence {
            return Err(Error::Refused(format!(
                "The binlog on the master is missing the GTID {has} requested by the slave (even though a subsequent sequence number does \
                 exist)"
            )));
        }
        pending.is_known = true;
        Ok(true)
    }

    /// The log ends here for now. A client that was switched here from the source may be ahead, for so long.
    ///
    /// # Errors
    ///
    /// It had transactions of a domain, but not the client's, and none came for some time.
    pub(crate) fn at_end(&mut self, now: Instant, patience: Duration) -> Result<()> {
        self.domains.iter_mut().for_each(|pending| pending.is_empty |= !pending.is_known);
        let Some(missing) = self.domains.iter().find(|pending| pending.is_known) else { return Ok(()) };
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) < patience { Ok(()) } else { Err(not_there(missing.has)) }
    }

    /// Whether the end of the log is looked at again soon.
    pub(crate) fn is_waiting(&self) -> bool {
        self.since.is_some() && self.domains.iter().any(|pending| pending.is_known)
    }
}

/// MariaDB's own words.
fn not_there(gtid: MariadbGtid) -> Error {
    Error::Refused(format!(
        "Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn gtid(text: &str) -> MariadbGtid {
        text.parse().unwrap()
    }

    fn list(texts: &[&str]) -> MariadbGtidList {
        MariadbGtidList { gtids: texts.iter().map(|text| gtid(text)).collect() }
    }

    fn state(texts: &[&str]) -> Vec<MariadbGtid> {
        texts.iter().map(|text| gtid(text)).collect()
    }

    #[test]
    fn a_file_is_in_time_if_nothing_that_the_client_lacks_comes_before_it() {
        for (before, has, in_time) in [
            (&[][..], &[][..], true),
            (&[], &["0-1-5"], true),
            (&["0-1-5"], &["0-1-5"], true),
            (&["0-1-5"], &["0-1-9"], true),
            (&["0-1-6"], &["0-1-5"], false),
            (&["0-1-5"], &[], false),
            // A later one of another server: the client lacks it.
            (&["0-1-5", "0-2-6"], &["0-1-5"], false),
            (&["0-1-5", "0-2-6"], &["0-2-6"], true),
            (&["0-1-5", "7-1-1"], &["0-1-5"], false),
            (&["0-1-5", "7-1-1"], &["0-1-5", "7-1-1"], true),
        ] {
            assert_eq!(is_in_time(&list(before), &state(has)), in_time, "{before:?} {has:?}");
        }
    }

    /// What of a log is sent to a client.
    fn sent(has: &[&str], log: &[&str]) -> Result<Vec<String>> {
        let mut pending = PendingDomains::new(&list(&[]), &state(has));
        let mut sent = Vec::new();
        for text in log {
            if !pending.leaves_out(gtid(text))? {
                sent.push((*text).to_owned());
            }
        }
        let now = Instant::now();
        pending.at_end(now, PATIENCE)?;
        pending.at_end(now + PATIENCE, PATIENCE)?;
        Ok(sent)
    }

    #[test]
    fn what_the_client_has_is_left_out_domain_by_domain() {
        let log = ["0-1-1", "7-1-1", "0-2-2", "7-1-2", "0-1-3"];
        for (has, expected) in [
            (&[][..], &log[..]),
            (&["0-2-2"], &["7-1-1", "7-1-2", "0-1-3"]),
            (&["0-2-2", "7-1-2"], &["0-1-3"]),
            (&["0-1-3", "7-1-2"], &[]),
            // Nothing of that domain is here.
            (&["9-1-1", "0-1-1", "7-1-2"], &["0-2-2", "0-1-3"]),
        ] {
            assert_eq!(sent(has, &log).unwrap(), expected, "{has:?}");
        }
        for (has, why) in [
            (&["0-1-9"][..], "start from GTID 0-1-9, which is not in the master's binlog"),
            (&["0-3-2"], "start from GTID 0-3-2, which is not in"),
            (&["0-1-2"], "missing the GTID 0-1-2"),
        ] {
            let error = sent(has, &log).unwrap_err().to_string();
            assert!(error.contains(why), "{has:?}: {error}");
        }
    }

    #[test]
    fn a_domain_that_comes_later_goes_on_where_the_client_is() {
        let mut pending = PendingDomains::new(&list(&["0-1-5"]), &state(&["0-1-5", "9-1-4"]));
        pending.at_end(Instant::now(), PATIENCE).unwrap();
        assert!(!pending.is_waiting() && !pending.is_over());
        assert!(!pending.leaves_out(gtid("9-2-5")).unwrap() && pending.is_over());
        let mut pending = PendingDomains::new(&list(&["0-1-5"]), &state(&["0-1-5", "9-1-4"]));
        pending.at_end(Instant::now(), PATIENCE).unwrap();
        assert!(pending.leaves_out(gtid("9-2-4")).is_err());
    }
}
