//! Which files are kept: the newest ones, by age and size, and whatever a connected replica still reads.
//!
//! ```text
//! max_age     a file goes when its last event is older: when the next file, which begins then, is
//! max_bytes   the oldest files go until the rest is no larger
//! ```
//!
//! Both hold for the logs of old lineages too, which are older than the newest one. One that another server's log goes on from
//! goes whole at last, and what it was is written down (`ended`); of one that was reset the last file stays: it tells what a
//! replica of that log may have. The file that is received is never removed. One that a connected replica reads, and all behind it, stay too,
//! unless purging is forced; a replica that comes back later and lacks what is gone gets error 1236, or has it
//! brought back from the archive (`archiving`). Files that came back (`brought_back`) count, and go by rules of their own.

use std::sync::Arc;
use std::time::Duration;

use binlogz_store::{BinlogStore, FileNumber};

use crate::archiving;
use crate::duties;
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

    /// Whether not even the last file of an old log stays. `size`: of that file and all that is newer.
    fn wants_none(&self, newer: &Kept, size: u64) -> Result<bool> {
        if self.max_bytes.is_some_and(|max_bytes| size > max_bytes) {
            return Ok(true);
        }
        // The newer log begins with the file that has everything which the older one lacks: what the older one holds is no
        // younger than that file, which ends where the second one begins.
        let (Some(max_age), logs) = (self.max_age, newer.store.logs()?) else { return Ok(false) };
        let Some(second) = logs.get(1) else { return Ok(false) };
        let began = u64::from(Head::read(&newer.store, second.number)?.header.timestamp);
        Ok(began < now().saturating_sub(max_age.as_secs()))
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

/// Applies the rules, now; gives the names of what was removed. It tells what it can't purge, and goes on with the other
/// logs; the next time it tries again.
pub(crate) fn apply(relay: &Relay) -> Vec<String> {
    let retention = relay.options.retention;
    let mut purged = Vec::new();
    if retention.max_age.is_none() && retention.max_bytes.is_none() {
        return purged;
    }
    // What came back from the archive takes room too.
    let mut size = relay.brought_back.bytes();
    let mut newer: Option<Arc<Kept>> = None;
    for kept in relay.lineages.all().into_iter().rev() {
        let done = apply_to(relay, &kept, newer.as_deref(), &mut size);
        newer = Some(kept);
        match done {
            Ok(names) => purged.extend(names),
            Err(error) => {
                let again = INTERVAL.as_secs();
                relay
                    .complain(&error, &format!("{error}; nothing is purged; it is tried again in {again} s"));
            }
        }
    }
    purged
}

/// The same for one log. `newer`: the log that follows it; `size`: of everything newer, then with this one.
fn apply_to(relay: &Relay, kept: &Arc<Kept>, newer: Option<&Kept>, size: &mut u64) -> Result<Vec<String>> {
    let retention = relay.options.retention;
    let last_size = kept.store.logs()?.last().map_or(0, |last| last.size);
    let with_last = *size + last_size;
    let Some(first) = retention.first_kept(&kept.store, size)? else { return Ok(Vec::new()) };
    if let Some(newer) = newer
        && retention.wants_none(newer, with_last)?
        && let Some(names) = purge_whole(relay, kept, retention.force)?
    {
        return Ok(names);
    }
    purge(relay, kept, first, retention.force)
}

/// Removes an old log that another server's goes on from, if all of it may go; the names of its files.
fn purge_whole(relay: &Relay, kept: &Arc<Kept>, force: bool) -> Result<Option<Vec<String>>> {
    let logs = kept.store.logs()?;
    let Some(first) = logs.first() else { return Ok(None) };
    let is_read = relay.dumps.oldest_file(kept.number, first.number).is_some() && !force;
    if kept.is_abandoned() || is_read || !archiving::may_go_whole(relay, kept)? {
        return Ok(None);
    }
    let purged = relay.lineages.end(kept)?;
    if let (Some(from), Some(to)) = (purged.first(), purged.last()) {
        let lineage = kept.folder.as_deref().map_or(String::new(), |folder| format!(" of {folder}"));
        relay.say(&format!("purged {from} to {to}{lineage}: all of the log of {}", kept.source));
    }
    Ok(Some(purged))
}

/// Applies the rules for ever. What can't be removed now may be later.
pub(crate) fn watch(relay: &Relay) {
    apply_every(relay, INTERVAL);
}

pub(crate) fn apply_every(relay: &Relay, interval: Duration) {
    duties::rounds(relay, duties::RETAIN, interval, "nothing more is purged meanwhile", || {
        apply(relay);
        Ok(())
    });
}

/// Removes the files in front of this one that nobody reads, or all of them by force.
pub(crate) fn purge(relay: &Relay, kept: &Kept, first: FileNumber, force: bool) -> Result<Vec<String>> {
    let Some(there) = kept.store.logs()?.first().map(|log| log.number) else { return Ok(Vec::new()) };
    let read = relay.dumps.oldest_file(kept.number, there).filter(|_| !force);
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
