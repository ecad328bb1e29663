//! Decides which files are kept: the newest ones, by age and size, and all that a connected replica still reads.
//!
//! ```text
//! max_age     a file is removed when its last event is older: when the next file, which begins then, is. By the source's clock, and
//!             by what was seen to pass (`ages`): no jump of a clock removes files
//! max_bytes   the oldest files are removed until the rest is no larger
//! ```
//!
//! Both also apply to the logs of old lineages, which are older than the newest one. A log that another server's log
//! continues is finally removed completely, leaving a record (`ended`). Of a log that was reset, the last file stays:
//! it tells what a replica of that log may have. The file being received is never removed. A file that a connected
//! replica reads, and all later ones, stay too, unless purging is forced. A replica that reconnects later and lacks
//! purged files gets error 1236, or they are brought back from the archive (`archiving`). Files brought back
//! (`brought_back`) count towards the size, and have removal rules of their own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_relay_log::{FoundFile, LineageLog, StoredHead};
use binlogz_store::{BinlogStore, FileNumber};

use crate::error::{Error, Result};
use crate::housekeeping::Housekeeping;
use crate::housekeeping::ages::{Ages, Clocks};
use crate::housekeeping::archiving;
use crate::telemetry::{complain, duties, say};

/// How often the rules are applied.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

/// Which files to keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Files with only older events are removed.
    pub max_age: Option<Duration>,
    /// The oldest files are removed until the rest is no larger than this.
    pub max_bytes: Option<u64>,
    /// Whether to remove files that a connected replica still reads.
    pub force: bool,
}

impl Retention {
    /// The first file to keep. `size`: of everything newer; on return, including this log.
    fn first_kept(&self, kept: &LineageLog, ages: &mut Ages, size: &mut u64) -> Result<Option<FileNumber>> {
        let logs = kept.store.logs()?;
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
            let ends = ends(kept, ages)?;
            let is_old = |end: &&(FileNumber, u64)| ages.is_older(kept.number, **end, max_age);
            let old = ends.iter().take_while(is_old).count();
            // Only what the size does not remove anyway has to be shared out.
            let by_size = ends.iter().take_while(|(file, _)| Some(*file) < first).count();
            let share = match old > by_size {
                true => ages.share(old, ends.len()),
                false => old,
            };
            first = first.max(logs.get(share).map(|log| log.number));
        }
        Ok(first)
    }

    /// Whether even the last file of an old log should be removed. `size`: of that file and everything newer.
    fn wants_none(&self, newer: &LineageLog, ages: &mut Ages, size: u64) -> Result<bool> {
        if self.max_bytes.is_some_and(|max_bytes| size > max_bytes) {
            return Ok(true);
        }
        // The newer log begins with the file that has everything the older one lacks. So the older log's contents are
        // no younger than that file, which ends where the second one begins.
        let Some(max_age) = self.max_age else { return Ok(false) };
        let first = ends(newer, ages)?.first().copied();
        Ok(first.is_some_and(|first| ages.is_older(newer.number, first, max_age)))
    }
}

/// The closed files of a log, and when each ended: when the next one began, in seconds since 1970.
fn ends(kept: &LineageLog, ages: &mut Ages) -> Result<Vec<(FileNumber, u64)>> {
    let logs = kept.store.logs()?;
    let mut ends = Vec::new();
    for (log, next) in logs.iter().zip(logs.iter().skip(1)) {
        let begins = || Ok(u64::from(StoredHead::read(&kept.store, next.number)?.header.timestamp));
        ends.push((log.number, ages.end_of(kept.number, log.number, begins)?));
    }
    Ok(ends)
}

/// The first file that has events of this time or later, in seconds since 1970; at least the last one has.
fn first_after(store: &BinlogStore, time: u64) -> Result<Option<FileNumber>> {
    let logs = store.logs()?;
    for (log, next) in logs.iter().zip(logs.iter().skip(1)) {
        if u64::from(StoredHead::read(store, next.number)?.header.timestamp) >= time {
            return Ok(Some(log.number));
        }
    }
    Ok(logs.last().map(|log| log.number))
}

/// Applies the rules now; returns the names of removed files. Logs what it can't purge, continues with the other
/// logs, and tries again next time.
pub(crate) fn apply(house: &Housekeeping) -> Vec<String> {
    apply_at(house, &Clocks::read(&house.telemetry))
}

/// Applies the rules as [`apply`] does, with `clocks` for the current time.
pub(crate) fn apply_at(house: &Housekeeping, clocks: &Clocks) -> Vec<String> {
    let retention = house.retention;
    let mut purged = Vec::new();
    if retention.max_age.is_none() && retention.max_bytes.is_none() {
        return purged;
    }
    let mut ages = house.ages.lock();
    if retention.max_age.is_some()
        && let Err(error) = advance(house, &mut ages, clocks)
    {
        complain!(house.telemetry, &error, &format!("{error}; nothing is purged by age"));
    }
    // Files brought back from the archive take room too.
    let mut size = house.brought_back.bytes();
    let mut newer: Option<Arc<LineageLog>> = None;
    for kept in house.lineages.all().into_iter().rev() {
        let done = apply_to(house, &kept, newer.as_deref(), &mut ages, &mut size);
        newer = Some(kept);
        match done {
            Ok(names) => purged.extend(names),
            Err(error) => {
                let again = INTERVAL.as_secs();
                complain!(
                    house.telemetry,
                    &error,
                    &format!("{error}; nothing is purged; it is tried again in {again} s")
                );
            }
        }
    }
    purged
}

/// Notes how much time has passed, and which files were closed.
fn advance(house: &Housekeeping, ages: &mut Option<Ages>, clocks: &Clocks) -> Result<()> {
    let storage = house.lineages.own();
    let ages = match ages {
        Some(ages) => ages,
        none => none.insert(Ages::read(storage.as_ref())?),
    };
    let jumped = ages.advance(clocks);
    for kept in house.lineages.all() {
        match ends(&kept, ages) {
            Ok(ends) => ages.note(kept.number, &ends, jumped.is_some()),
            Err(error) => {
                complain!(house.telemetry, &error, &format!("{error}; nothing of it is purged by age"))
            }
        }
    }
    if let Some(told) = jumped {
        let error = Error::Clock(told);
        complain!(house.telemetry, &error, &error.to_string());
    }
    ages.save(storage)
}

/// The jump of a clock that is shown.
pub(crate) fn trouble(house: &Housekeeping) -> Option<String> {
    house.ages.lock().as_ref().and_then(|ages| ages.trouble(Instant::now()))
}

/// Applies the rules to one log; returns the names of removed files. `newer`: the log that follows it. `size`: bytes of
/// everything newer; on return, including this log.
fn apply_to(
    house: &Housekeeping,
    kept: &Arc<LineageLog>,
    newer: Option<&LineageLog>,
    ages: &mut Option<Ages>,
    size: &mut u64,
) -> Result<Vec<String>> {
    let retention = house.retention;
    // Without them nothing is old.
    let mut none = Ages::default();
    let ages = ages.as_mut().unwrap_or(&mut none);
    let last_size = kept.store.logs()?.last().map_or(0, |last| last.size);
    let with_last = *size + last_size;
    let Some(first) = retention.first_kept(kept, ages, size)? else { return Ok(Vec::new()) };
    if let Some(newer) = newer
        && retention.wants_none(newer, ages, with_last)?
        && let Some(names) = purge_whole(house, kept, retention.force)?
    {
        return Ok(names);
    }
    purge(house, kept, archiving::up_to_doubtful(kept, first)?, retention.force)
}

/// Removes an old log that another server's log continues, if all of it may be removed. Returns the names of its
/// files.
fn purge_whole(house: &Housekeeping, kept: &Arc<LineageLog>, force: bool) -> Result<Option<Vec<String>>> {
    let logs = kept.store.logs()?;
    let Some(first) = logs.first() else { return Ok(None) };
    let is_read = house.dumps.oldest_file(kept.number, first.number).is_some() && !force;
    if kept.is_abandoned() || is_read || !archiving::may_go_whole(house, kept)? {
        return Ok(None);
    }
    let purged = house.lineages.end(kept)?;
    if let (Some(from), Some(to)) = (purged.first(), purged.last()) {
        let lineage = kept.folder.as_deref().map_or(String::new(), |folder| format!(" of {folder}"));
        say!(house.telemetry, &format!("purged {from} to {to}{lineage}: all of the log of {}", kept.source));
    }
    Ok(Some(purged))
}

/// Applies the rules for ever. A file that can't be removed now may be removed later.
pub(crate) fn watch(house: &Housekeeping) {
    apply_every(house, INTERVAL);
}

pub(crate) fn apply_every(house: &Housekeeping, interval: Duration) {
    duties::rounds(&house.telemetry, duties::RETAIN, interval, "nothing more is purged meanwhile", || {
        apply(house);
        Ok(())
    });
}

/// Removes the files before this one that nobody reads, or with force all of them.
pub(crate) fn purge(
    house: &Housekeeping,
    kept: &LineageLog,
    first: FileNumber,
    force: bool,
) -> Result<Vec<String>> {
    let Some(there) = kept.store.logs()?.first().map(|log| log.number) else { return Ok(Vec::new()) };
    let read = house.dumps.oldest_file(kept.number, there).filter(|_| !force);
    let first = read.map_or(first, |read| first.min(read));
    let first = archiving::first_needed(house, kept)?.map_or(first, |needed| first.min(needed));
    let is_there = kept.store.logs()?.iter().any(|log| log.number == first);
    if !is_there {
        return Ok(Vec::new());
    }
    let purged = kept.purge_before(first)?;
    if let (Some(from), Some(to)) = (purged.first(), purged.last()) {
        let lineage = kept.folder.as_deref().map_or(String::new(), |folder| format!(" of {folder}"));
        say!(house.telemetry, &format!("purged {from} to {to}{lineage}"));
    }
    Ok(purged)
}

/// PURGE BINARY LOGS TO, with a name in any form: removes stored files before the one that contains it.
pub(crate) fn purge_to(house: &Housekeeping, kept: &LineageLog, name: &str, force: bool) -> Result<()> {
    let found = kept.names.parse(name).map(|(form, number)| kept.find(form, number)).transpose()?;
    match found {
        Some(FoundFile::File(found)) => purge_asked(house, kept, found.file, force),
        _ => Err(Error::Refused("Target log not found in binlog index".into())),
    }
}

/// PURGE BINARY LOGS BEFORE a time, in seconds since 1970.
pub(crate) fn purge_before(house: &Housekeeping, kept: &LineageLog, time: u64, force: bool) -> Result<()> {
    match first_after(&kept.store, time)? {
        Some(first) => purge_asked(house, kept, first, force),
        None => Ok(()),
    }
}

/// Removes the files before this one because a client asks for it.
fn purge_asked(house: &Housekeeping, kept: &LineageLog, first: FileNumber, force: bool) -> Result<()> {
    let first = if force { first } else { archiving::up_to_doubtful(kept, first)? };
    purge(house, kept, first, force).map(drop)
}
