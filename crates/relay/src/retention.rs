//! Which files are kept: the newest ones, by age and size, and whatever a connected replica still reads.
//!
//! ```text
//! max_age     a file goes when its last event is older: when the next file, which begins then, is
//! max_bytes   the oldest files go until the rest is no larger
//! ```
//!
//! Both hold for the logs of old lineages too, which are older than the newest one, whole; the last file of each stays: it tells
//! what a replica of that log may have. The file that is received is never removed. One that a connected replica reads, and all behind it, stay too,
//! unless purging is forced; a replica that comes back later and lacks what is gone gets error 1236, or has it
//! brought back from the archive (`archiving`).

use std::time::Duration;

use binlogz_store::{BinlogStore, FileNumber};

use crate::archiving;
use crate::error::{Error, Result};
use crate::head::Head;
use crate::lineages::Kept;
use crate::meters::now;
use crate::parts::Found;
use crate::relay::Relay;

/// How often the rules are looked at.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

/// What is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Files whose events are all older go.
    pub max_age: Option<Duration>,
    /// The oldest files go until the others are no larger than this.
    pub max_bytes: Option<u64>,
    /// Also files that a connected replica still reads.
    pub force: bool,
}

impl Retention {
    /// The first file that stays. `size`: of all that is newer; then with this log.
    fn first_kept(&self, store: &BinlogStore, size: &mut u64) -> Result<Option<FileNumber>> {
        let logs = store.logs()?;
        let Some((last, closed)) = logs.split_last() else { return Ok(None) };
        let mut first = logs.first().map(|log| log.number);
        *size += last.size;
        if let Some(max_bytes) = self.max_bytes {
            let mut kept = last.number;
            for log in closed.iter().rev() {
                *size += log.size;
                if *size > max_bytes {
                    break;
                }
                kept = log.number;
            }
            first = first.max(Some(kept));
        }
        if let Some(max_age) = self.max_age {
            let before = now().saturating_sub(max_age.as_secs());
            first = first.max(first_after(store, before)?);
        }
        Ok(first)
    }
}

/// The first file that has events of this time or later, in seconds since 1970; at least the last one has.
fn first_after(store: &BinlogStore, time: u64) -> Result<Option<FileNumber>> {
    let logs = store.logs()?;
    for (log, next) in logs.iter().zip(logs.iter().skip(1)) {
        if u64::from(Head::read(store, next.number)?.header.timestamp) >= time {
            return Ok(Some(log.number));
        }
    }
    Ok(logs.last().map(|log| log.number))
}

/// Applies the rules, now; the names of what was removed.
pub(crate) fn apply(relay: &Relay) -> Result<Vec<String>> {
    let retention = relay.options.retention;
    if retention.max_age.is_none() && retention.max_bytes.is_none() {
        return Ok(Vec::new());
    }
    let mut purged = Vec::new();
    let mut size = 0;
    for kept in relay.lineages.all().iter().rev() {
        if let Some(first) = retention.first_kept(&kept.store, &mut size)? {
            purged.extend(purge(relay, kept, first, retention.force)?);
        }
    }
    Ok(purged)
}

/// Applies the rules for ever.
pub(crate) fn watch(relay: &Relay) {
    loop {
        if let Err(error) = apply(relay) {
            // A disk that fails, or descriptors that are used up: the next time it may work.
            relay.complain(&error, &format!("purge: {error}"));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Removes the files in front of this one that nobody reads, or all of them by force.
pub(crate) fn purge(relay: &Relay, kept: &Kept, first: FileNumber, force: bool) -> Result<Vec<String>> {
    let read = relay.dumps.oldest_file(kept.number).filter(|_| !force);
    let first = read.map_or(first, |read| first.min(read));
    let first = archiving::first_needed(relay, kept)?.map_or(first, |needed| first.min(needed));
    let is_there = kept.store.logs()?.iter().any(|log| log.number == first);
    if !is_there {
        return Ok(Vec::new());
    }
    let purged = kept.purge_before(first)?;
    if let (Some(from), Some(to)) = (purged.first(), purged.last()) {
        let lineage = kept.folder.as_deref().map_or(String::new(), |folder| format!(" of {folder}"));
        relay.say(&format!("purged {from} to {to}{lineage}"));
    }
    Ok(purged)
}

/// PURGE BINARY LOGS TO, by a name in any form: stored files in front of the one that has it go.
pub(crate) fn purge_to(relay: &Relay, kept: &Kept, name: &str, force: bool) -> Result<()> {
    let found = kept.names.parse(name).map(|(form, number)| kept.find(form, number)).transpose()?;
    match found {
        Some(Found::File(found)) => purge(relay, kept, found.file, force).map(drop),
        _ => Err(Error::Refused("Target log not found in binlog index".into())),
    }
}

/// PURGE BINARY LOGS BEFORE a time, in seconds since 1970.
pub(crate) fn purge_before(relay: &Relay, kept: &Kept, time: u64, force: bool) -> Result<()> {
    match first_after(&kept.store, time)? {
        Some(first) => purge(relay, kept, first, force).map(drop),
        None => Ok(()),
    }
}
