//! Reads all closed files over days, so that damage is found while there is still another copy, and repairs damaged
//! files.
//!
//! ```text
//! scrub     each closed file in turn, at the rate ─ damaged: readers get an error there, health is red
//! repair    what a reader found damaged is examined ─ the bytes of each hole from the archive, or else from the source ─ into the
//!           file, which is read again as a whole; a copy of it as it was stays beside it
//!
//! relay.scrub
//! binlogz-relay scrub 1
//! since 1699000000          when reading began, in seconds since 1970
//! began 1700000000          when the present pass began
//! next 12                   the file that it reads next
//! whole 1699500000          when the last pass began that has read everything; without this line none has
//! ```
//!
//! The file is written after each file of a log, in the log's directory. If it is lost, a pass starts again.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_payload::{Spool, SpoolMemory};
use binlogz_relay_log::{ClosedLogs, Error as LogError, LineageLog, small_file};
use binlogz_store::{Damage, FileNumber, LogReader, Storage, storage};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::housekeeping::Housekeeping;
use crate::rates::Throttle;
use crate::telemetry::{complain, duties, say};
use crate::time::now;

const NAME: &str = "relay.scrub";
const TITLE: &str = "binlogz-relay scrub 1";
const SIZE_MAX: u64 = 4096;
/// How often to look for a file to read, or to repair.
const INTERVAL: Duration = Duration::from_secs(1);
/// A pass begins no sooner after the one before began: a small log need not be read all the time.
const PASS_SECONDS_MIN: u64 = 24 * 3600;
/// The delay after a repair that failed. It doubles each time, up to the second constant.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(600);
/// How many fetched bytes are held in memory; the rest goes to temporary files.
const SPOOL_SIZE: usize = 16 << 20;

/// How fast closed files are read to find damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Bytes a second at most; `None`: they are not read.
    pub rate: Option<NonZeroU64>,
}

impl ScrubOptions {
    /// 4 MiB: 345 GiB a day, and a small part of what a disk can read.
    pub(crate) const RATE: u64 = 4 << 20;
}

impl Default for ScrubOptions {
    fn default() -> Self {
        ScrubOptions { rate: NonZeroU64::new(ScrubOptions::RATE) }
    }
}

/// How far closed files were read to find damage.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ScrubStatus {
    /// Bytes a second at most; none: they are not read.
    pub rate: Option<u64>,
    /// How long ago the closed bytes were read that were not read for longest; at most so long.
    pub age_seconds: u64,
    /// Bytes read since the start.
    pub read_bytes: u64,
    /// Damaged stretches that were repaired since the start.
    pub repaired: u64,
}

/// The scrub of a source's logs.
#[derive(Debug)]
pub(crate) struct Scrub {
    throttle: Throttle,
    rate: Option<NonZeroU64>,
    read_bytes: AtomicU64,
    repaired: AtomicU64,
    /// By the logs' numbers.
    passes: Mutex<BTreeMap<u64, Pass>>,
}

impl Scrub {
    pub(crate) fn new(options: ScrubOptions) -> Scrub {
        Scrub {
            throttle: Throttle::new(options.rate, &Arc::default()),
            rate: options.rate,
            read_bytes: AtomicU64::new(0),
            repaired: AtomicU64::new(0),
            passes: Mutex::default(),
        }
    }

    pub(crate) fn status(&self) -> ScrubStatus {
        let now = now();
        let passes = self.passes.lock();
        let ages = passes.values().map(|pass| now.saturating_sub(pass.whole.unwrap_or(pass.since)));
        ScrubStatus {
            rate: self.rate.map(NonZeroU64::get),
            age_seconds: ages.max().unwrap_or(0),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            repaired: self.repaired.load(Ordering::Relaxed),
        }
    }
}

/// One pass of a log's scrub: when it began, and the next file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    since: u64,
    began: u64,
    next: FileNumber,
    whole: Option<u64>,
}

impl Pass {
    fn new(now: u64) -> Pass {
        Pass { since: now, began: now, next: FileNumber(0), whole: None }
    }

    /// A file of another version, or a damaged one, counts as none.
    fn read(storage: &dyn Storage) -> Result<Option<Pass>> {
        let text = small_file(storage, NAME, SIZE_MAX)?;
        Ok(text.and_then(|text| Pass::decode(&text)))
    }

    fn write(&self, storage: &dyn Storage) -> Result<()> {
        storage::replace(storage, NAME, self.encode().as_bytes()).map_err(Error::io(format!("write {NAME}")))
    }

    fn encode(&self) -> String {
        let Pass { since, began, next, whole } = self;
        let whole = whole.map_or(String::new(), |whole| format!("whole {whole}\n"));
        format!("{TITLE}\nsince {since}\nbegan {began}\nnext {}\n{whole}", next.0)
    }

    fn decode(text: &str) -> Option<Pass> {
        if text.lines().next() != Some(TITLE) || !text.ends_with('\n') {
            return None;
        }
        let members: BTreeMap<&str, u64> = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect();
        Some(Pass {
            since: *members.get("since")?,
            began: *members.get("began")?,
            next: FileNumber(*members.get("next")?),
            whole: members.get("whole").copied(),
        })
    }
}

/// Reads closed files for ever.
pub(crate) fn watch(house: &Housekeeping) {
    duties::rounds(&house.telemetry, duties::SCRUB, INTERVAL, "it is tried again", || round(house, now()));
}

/// Reads the files that are due at this time, in seconds since 1970.
pub(crate) fn round(house: &Housekeeping, now: u64) -> Result<()> {
    for kept in house.lineages.all().iter().filter(|kept| !kept.is_abandoned()) {
        let storage = kept.storage.as_ref();
        let mut pass = Pass::read(storage)?.unwrap_or(Pass::new(now));
        house.scrub.passes.lock().insert(kept.number, pass);
        let save = |pass: Pass| {
            house.scrub.passes.lock().insert(kept.number, pass);
            pass.write(storage)
        };
        // A clock that was put back must not keep a pass from beginning.
        let is_due = now < pass.began || now - pass.began >= PASS_SECONDS_MIN;
        if pass.whole == Some(pass.began) && is_due {
            (pass.began, pass.next) = (now, FileNumber(0));
        }
        while let Some(file) = next_closed(kept, pass.next)? {
            read(house, kept, file)?;
            pass.next = file.next();
            save(pass)?;
        }
        if pass.whole != Some(pass.began) {
            pass.whole = Some(pass.began);
            save(pass)?;
        }
    }
    Ok(())
}

/// The first closed file of this number or a later one.
fn next_closed(kept: &LineageLog, from: FileNumber) -> Result<Option<FileNumber>> {
    let Some(durable) = kept.store.positions().map(|now| now.durable.file) else { return Ok(None) };
    let is_closed = |file: &FileNumber| *file >= from && *file < durable;
    Ok(kept.store.logs()?.into_iter().map(|log| log.number).find(is_closed))
}

fn read(house: &Housekeeping, kept: &LineageLog, file: FileNumber) -> Result<()> {
    let scrub = &house.scrub;
    let mut pace = |count: usize| {
        if let Some(tickets) = scrub.throttle.take(count) {
            scrub.throttle.wait(&tickets, |time| house.telemetry.ending.sleep(time));
        }
        scrub.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        match house.telemetry.ending.has_begun() {
            true => Err(io::Error::other("the source is no longer wanted")),
            false => Ok(()),
        }
    };
    let known = kept.store.damage_of(file);
    match kept.store.examine(file, &mut pace) {
        Ok((_, Some(damage))) if known.as_ref() != Some(&damage) => {
            let error = Error::Log(LogError::DamagedLog(damage.to_string()));
            complain!(house.telemetry, &error, &format!("{error}; it was found by reading closed files"));
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(_) if next_closed(kept, file)? != Some(file) => Ok(()),
        Err(error) if house.telemetry.ending.has_begun() => Err(error.into()),
        // A disk that can't give the bytes: the other files are read none the less.
        Err(error) => {
            let name = kept.store.names().log(file);
            let error = LogError::Stored { file: name, source: Box::new(error.into()) };
            kept.suspect(&error);
            let error = Error::Log(error);
            complain!(house.telemetry, &error, &format!("{error}; it was found by reading closed files"));
            Ok(())
        }
    }
}

/// The damaged files whose repair has failed, by log and number: when to try again, and the delay after that.
type Retries = BTreeMap<(u64, FileNumber), (Instant, Duration)>;

/// Repairs for ever. `fetch` asks the source for the bytes of the first hole.
pub(crate) fn watch_damage(house: &Housekeeping, fetch: &dyn Fn(&LineageLog, &Damage) -> Result<Spool>) {
    let mut retries = Retries::new();
    duties::rounds(&house.telemetry, duties::REPAIR, INTERVAL, "it is tried again", || {
        repair(house, fetch, &mut retries)
    });
}

/// Examines the bytes that readers found damaged, and makes the repairs that are due.
pub(crate) fn repair(
    house: &Housekeeping,
    fetch: &dyn Fn(&LineageLog, &Damage) -> Result<Spool>,
    retries: &mut Retries,
) -> Result<()> {
    let mut failed = None;
    for kept in house.lineages.all().iter().filter(|kept| !kept.is_abandoned()) {
        for file in kept.suspects() {
            if let Err(error) = examine(house, kept, file) {
                failed.get_or_insert(error);
            }
        }
        let Some(durable) = kept.store.positions().map(|now| now.durable.file) else { continue };
        // The receiver repairs the last file, which nothing is written to until then.
        for damage in kept.store.damages().iter().filter(|damage| damage.file < durable) {
            let key = (kept.number, damage.file);
            let delay = match retries.get(&key) {
                Some((at, _)) if Instant::now() < *at => continue,
                Some((_, delay)) => *delay,
                None => RETRY_FIRST,
            };
            match repair_file(house, kept, damage, fetch) {
                Ok(()) => drop(retries.remove(&key)),
                Err(error) => {
                    retries.insert(key, (Instant::now() + delay, (delay * 2).min(RETRY_MAX)));
                    complain!(house.telemetry, &error, &format!("{error}; it is tried again in {delay:?}"));
                }
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn examine(house: &Housekeeping, kept: &LineageLog, file: FileNumber) -> Result<()> {
    let name = kept.store.names().log(file);
    match kept.store.examine(file, &mut |_| Ok(())) {
        Ok((_, None)) => {
            let read_again = "was read again as a whole, and is not damaged: what a client was refused came from the disk once";
            say!(house.telemetry, &format!("{name} {read_again}"));
        }
        Ok((_, Some(damage))) => {
            let error = Error::Log(LogError::DamagedLog(damage.to_string()));
            complain!(house.telemetry, &error, &error.to_string());
        }
        // A file that was purged.
        Err(_) if !kept.store.logs()?.iter().any(|log| log.number == file) => {}
        Err(error) => {
            return Err(Error::Log(LogError::Stored { file: name, source: Box::new(error.into()) }));
        }
    }
    kept.clear_suspect(file);
    Ok(())
}

/// Repairs all of a file.
fn repair_file(
    house: &Housekeeping,
    kept: &LineageLog,
    damage: &Damage,
    fetch: &dyn Fn(&LineageLog, &Damage) -> Result<Spool>,
) -> Result<()> {
    let mut damage = damage.clone();
    while let Some(hole) = damage.holes.first() {
        let fill = |bytes: Spool| {
            let size = bytes.size();
            kept.store.repair_closed(damage.file, &mut bytes.reader(0..size)).map_err(Error::from)
        };
        let from_archive = from_archive(house, kept, &damage).and_then(fill);
        let (whence, (kept_as, left)) = match from_archive {
            Ok(repaired) => ("the archive", repaired),
            Err(of_archive) => match fetch(kept, &damage).and_then(fill) {
                Ok(repaired) => ("the source", repaired),
                Err(of_source) => {
                    return Err(Error::Log(LogError::DamagedLog(format!(
                        "{damage}; it was not repaired: {of_archive}; {of_source}"
                    ))));
                }
            },
        };
        kept.repaired(damage.file, &GtidSet::new());
        house.scrub.repaired.fetch_add(1, Ordering::Relaxed);
        say!(
            house.telemetry,
            &format!(
                "{} was repaired from {} to {} with what {whence} has of it; as it was before it is kept as {kept_as}",
                damage.name, hole.from, hole.to
            )
        );
        match left {
            Some(left) => damage = (*left).clone(),
            None => break,
        }
    }
    Ok(())
}

/// The bytes of the first hole, from the archive.
fn from_archive(house: &Housekeeping, kept: &LineageLog, damage: &Damage) -> Result<Spool> {
    let none = |why: &str| Error::Refused(format!("{why} {}", damage.name));
    let options = house.archive.as_ref().ok_or_else(|| none("there is no archive that has"))?;
    let logs = ClosedLogs::in_archive(&options.place_of(kept), kept.store.names())?;
    let log = logs.get(damage.file).ok_or_else(|| none("the archive does not have"))?;
    if log.erased().is_some() {
        return Err(none("in the archive, values were erased from"));
    }
    let ours = kept.store.reader(damage.file, 0)?;
    let size = ours.end()?;
    if log.size != size {
        return Err(none(&format!("in the archive, {} bytes and not {size} has", log.size)));
    }
    let memory = SpoolMemory::new(SPOOL_SIZE);
    let bytes = Spool::new(&memory, Vec::new());
    let mut taking = HoleTaker { ours, damage, at: 0, bytes, buffer: Vec::new() };
    logs.write(log, &mut taking)?;
    Ok(taking.bytes)
}

/// Takes the bytes of the first hole out of a whole file, which must be the same outside all holes.
struct HoleTaker<'a> {
    ours: LogReader,
    damage: &'a Damage,
    /// The offset of the next byte.
    at: u64,
    bytes: Spool,
    buffer: Vec<u8>,
}

impl Write for HoleTaker<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let holes = &self.damage.holes;
        let hole = holes.iter().find(|hole| hole.from <= self.at && self.at < hole.to);
        let ends = match hole {
            Some(hole) => Some(hole.to),
            None => holes.iter().map(|hole| hole.from).find(|from| *from > self.at),
        };
        let room = ends.map_or(bytes.len(), |end| usize::try_from(end - self.at).unwrap_or(bytes.len()));
        let bytes = bytes.get(..room).unwrap_or(bytes);
        match hole {
            Some(hole) if holes.first() == Some(hole) => self.bytes.append(bytes)?,
            Some(_) => {}
            None => {
                self.buffer.resize(bytes.len(), 0);
                self.ours.seek_to(self.at);
                self.ours.read_exact(&mut self.buffer)?;
                if self.buffer != bytes {
                    let other = format!("the archive's {} is another file", self.damage.name);
                    return Err(io::Error::other(other));
                }
            }
        }
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn the_progress_of_a_pass_comes_back_and_nothing_else_is_taken_for_it() {
        let storage = MemoryStorage::new();
        assert_eq!(Pass::read(&storage).unwrap(), None);
        for pass in [Pass::new(7), Pass { next: FileNumber(u64::MAX), whole: Some(3), ..Pass::new(u64::MAX) }]
        {
            pass.write(&storage).unwrap();
            assert_eq!(Pass::read(&storage).unwrap(), Some(pass));
        }
        storage::replace(&storage, NAME, b"binlogz-relay scrub 1\nsince 1\nnext 2\n").unwrap();
        assert_eq!(Pass::read(&storage).unwrap(), None, "without when it began");
        storage::replace(&storage, NAME, b"binlogz-relay scrub 2\n").unwrap();
        assert_eq!(Pass::read(&storage).unwrap(), None, "of another version");
    }
}
