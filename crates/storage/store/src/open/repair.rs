//! Fills a hole of a damaged file, in place, with bytes from another copy of the log.
//!
//! ```text
//! copy of the damaged file, synced │ bytes of the hole, synced │ the file is checked again
//! ```
//!
//! After a crash at any point the file is as damaged as before, or less: nothing counts as whole unless
//! recovery found it whole. The new bytes replace the old ones in place, so all positions stay the same.
//!
//! The last file is checked when the log is opened. A closed file is checked when somebody asks ([`BinlogStore::examine`]);
//! bytes of it that are found damaged are not read any more until they are repaired.

use std::io::{self, Read};
use std::sync::Arc;

use binlogz_binlog::{ChecksumAlgorithm, Framing};

use crate::error::{Error, Result};
use crate::files::copies;
use crate::files::log_file::LogFile;
use crate::files::names::FileNumber;
use crate::files::sums::{BlockSums, sums_of};
use crate::open::store::BinlogStore;
use crate::recovery::damage::{self, Damage, Hole};
use crate::recovery::recover::{RecoveryReport, recover_last};
use crate::recovery::scan::{self, Demands, FileScan, ReadPace};

const CHUNK_SIZE: usize = 256 << 10;
/// The head ends somewhere after the first byte.
const HEAD_UNKNOWN: u64 = 1;

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairSummary {
    /// The copy of the damaged file.
    pub kept_as: String,
    /// The file's contents now; there may be more damage elsewhere in it.
    pub report: RecoveryReport,
}

impl BinlogStore {
    /// Writes these bytes, which must be exactly as many as the hole has, into the first hole of the damaged
    /// file. If no damage remains, the log takes writes again.
    ///
    /// # Errors
    ///
    /// Nothing is damaged; the bytes are not as many, or don't close the hole; the disk fails.
    pub fn repair(&self, bytes: &mut dyn Read) -> Result<RepairSummary> {
        let mut active = self.active.lock();
        let shared = &self.shared;
        shared.latch.check()?;
        let damage = shared.damage();
        let Some((damage, hole)) = damage.as_ref().and_then(|damage| Some((damage, damage.holes.first()?)))
        else {
            return Err(Error::Misuse {
                what: "repair",
                found: "no damage".into(),
                expected: "a damaged log",
            });
        };
        let log = self.open_log(damage.file)?;
        let storage = shared.place.storage.as_ref();
        let kept_as = copies::keep_damaged(storage, &log, hole.from)
            .map_err(Error::io("keep a copy of the damaged", &log.name))?;
        fill(&log, hole, bytes)?;
        let mut report = RecoveryReport::default();
        let last = recover_last(&shared.place, &shared.watermark, damage.file, &mut report)?;
        let still = report.damage.as_ref().and_then(|damage| damage.hole_at(hole.from)).is_some();
        if still {
            let found = report.damage.as_ref().map(Damage::to_string).unwrap_or_default();
            return Err(Error::unfit(&log.name, found, "a file that the repair made whole"));
        }
        if let Some(end) = report.end {
            if report.damage.is_none() {
                shared.note_durable(end, true)?;
            }
            shared.positions.set_both(end);
            if let Some((log, _)) = last {
                active.resume(shared, log, end);
            }
        }
        shared.damages.lock().last = report.damage.clone().map(Arc::new);
        Ok(RepairSummary { kept_as, report })
    }

    /// How many of these bytes are other ones than those that stand in a hole of a damaged file now. Where several copies fit,
    /// the one with the fewest is what was there: mostly little of a hole is damaged.
    ///
    /// # Errors
    ///
    /// The file is not in the log (any more); the disk fails, or the bytes can't be read.
    pub fn differing(&self, number: FileNumber, hole: &Hole, bytes: &mut dyn Read) -> Result<u64> {
        let log = self.open_log(number)?;
        let mut chunk = vec![0; CHUNK_SIZE];
        let mut stored = vec![0; CHUNK_SIZE];
        let mut offset = hole.from;
        let mut differing = 0;
        loop {
            let count = bytes.read(&mut chunk).map_err(Error::io("read what repairs", &log.name))?;
            if count == 0 {
                return Ok(differing);
            }
            let new = chunk.get(..count).unwrap_or_default();
            let old = stored.get_mut(..count).unwrap_or_default();
            let has = log.read_at(offset, old)?;
            let equal = new.iter().zip(old.iter().take(has)).filter(|(new, old)| new == old).count();
            differing += (count - equal) as u64;
            offset += count as u64;
        }
    }

    /// Reads a file through, up to its durable end, and notes which bytes of it are damaged. `pace` is called with the number of
    /// bytes that are read next; an error of it ends the reading, and nothing is noted. Returns the bytes that were read, and the
    /// damage.
    ///
    /// # Errors
    ///
    /// The file is not in the log (any more); the disk or `pace` fails.
    pub fn examine(
        &self,
        number: FileNumber,
        pace: &mut dyn FnMut(usize) -> io::Result<()>,
    ) -> Result<(u64, Option<Arc<Damage>>)> {
        let shared = &self.shared;
        let log = self.open_log(number)?;
        let durable = shared.positions.get().map(|now| now.durable);
        let is_closed = durable.is_none_or(|durable| number < durable.file);
        let (size, demands) = match durable.filter(|_| !is_closed) {
            Some(durable) => (durable.offset, Demands::WholeTransactions),
            None => (log.size()?, Demands::Events),
        };
        let found = match is_closed {
            true => self.damage_in_closed(&log, number, pace)?,
            false => damage_in(&log, number, size, demands, pace)?,
        };
        let mut damages = shared.damages.lock();
        match (is_closed, &found) {
            // What is known of the last file is only ever taken back by its repair.
            (false, Some(damage)) => drop(damages.last.get_or_insert_with(|| Arc::clone(damage))),
            (false, None) => {}
            (true, Some(damage)) => drop(damages.closed.insert(number, Arc::clone(damage))),
            (true, None) => drop(damages.closed.remove(&number)),
        }
        Ok((size, found))
    }

    /// Writes these bytes, which must be exactly as many as the hole has, into the first hole of a closed file that is damaged.
    /// Returns the name of the copy of the damaged file, and the damage that remains in it.
    ///
    /// # Errors
    ///
    /// The file has no known damage; the bytes are not as many, or don't close the hole; the disk fails.
    pub fn repair_closed(
        &self,
        number: FileNumber,
        bytes: &mut dyn Read,
    ) -> Result<(String, Option<Arc<Damage>>)> {
        let shared = &self.shared;
        let damage = shared.damages.lock().closed.get(&number).cloned();
        let Some(hole) = damage.as_ref().and_then(|damage| damage.holes.first()) else {
            return Err(Error::Misuse {
                what: "repair of a closed file",
                found: "no damage".into(),
                expected: "a file that was found damaged",
            });
        };
        let log = self.open_log(number)?;
        let storage = shared.place.storage.as_ref();
        let kept_as = copies::keep_damaged(storage, &log, hole.from)
            .map_err(Error::io("keep a copy of the damaged", &log.name))?;
        fill(&log, hole, bytes)?;
        let found = self.damage_in_closed(&log, number, &mut |_| Ok(()))?;
        let still = found.as_ref().filter(|found| found.hole_at(hole.from).is_some()).cloned();
        match &found {
            Some(found) => drop(shared.damages.lock().closed.insert(number, Arc::clone(found))),
            None => drop(shared.damages.lock().closed.remove(&number)),
        }
        if !shared.files.lock().contains(&number) {
            // It was purged meanwhile, and its copies with it.
            storage.remove(&kept_as).map_err(Error::io("remove", &kept_as))?;
        }
        match still {
            Some(still) => {
                Err(Error::unfit(&log.name, still.to_string(), "a file that the repair made whole"))
            }
            None => Ok((kept_as, found)),
        }
    }
}

impl BinlogStore {
    /// Finds the damage of a closed file. If its events have no checksums, its bytes are compared with its sums first: from a
    /// changed size on, events seem to be where they are not. Sums that are missing are written of a file that is whole.
    fn damage_in_closed(
        &self,
        log: &LogFile,
        number: FileNumber,
        pace: ReadPace<'_>,
    ) -> Result<Option<Arc<Damage>>> {
        let size = log.size()?;
        let storage = self.shared.place.storage.as_ref();
        let (framing, start) = match scan::head(log)? {
            Ok((framing, _, start)) => (framing, start),
            // Only files whose events have no checksums have sums.
            Err(_) => (Framing::with_checksum(ChecksumAlgorithm::NONE), HEAD_UNKNOWN),
        };
        if framing.checksum().size() > 0 || !self.is_listed(number) {
            return damage_in(log, number, size, Demands::Events, pace);
        }
        let now = BlockSums::of(log, size, pace)?;
        let known = BlockSums::read(storage, &log.name)?;
        if let Some(known) = &known {
            let changed = known.changed_in(&log.name, &now)?;
            let holes = damage::around_blocks(log, framing, start, size, changed)?;
            if !holes.is_empty() {
                return Ok(Some(Arc::new(Damage { file: number, name: log.name.clone(), holes })));
            }
        }
        let found = damage_in(log, number, size, Demands::Events, pace)?;
        if known.is_none() && found.is_none() {
            now.write(storage, &log.name)?;
            if !self.is_listed(number) {
                // It was purged meanwhile, and what stands beside it.
                let name = sums_of(&log.name);
                storage.remove(&name).map_err(Error::io("remove", &name))?;
            }
        }
        Ok(found)
    }

    fn is_listed(&self, number: FileNumber) -> bool {
        self.shared.files.lock().contains(&number)
    }
}

/// Finds the damage of a file in its first `size` bytes.
fn damage_in(
    log: &LogFile,
    file: FileNumber,
    size: u64,
    demands: Demands,
    pace: ReadPace<'_>,
) -> Result<Option<Arc<Damage>>> {
    let scan = match scan::scan_at_pace(log, size, demands, pace)? {
        Ok(scan) if scan.valid >= size => return Ok(None),
        Ok(scan) => scan,
        Err(error) => FileScan::without_head(error),
    };
    let holes = damage::look_around(log, &scan, size, size, demands)?.holes;
    let found = Damage { file, name: log.name.clone(), holes };
    Ok((!found.holes.is_empty()).then(|| Arc::new(found)))
}

fn fill(log: &LogFile, hole: &Hole, bytes: &mut dyn Read) -> Result<()> {
    let mut chunk = vec![0; CHUNK_SIZE];
    let mut scratch = Vec::new();
    let mut offset = hole.from;
    loop {
        let count = match bytes.read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read what repairs", &log.name)(error)),
        };
        let end = offset + count as u64;
        if end > hole.to || (count == 0 && end < hole.to) {
            return Err(Error::Misuse {
                what: "repair",
                found: format!("bytes up to {end}"),
                expected: "as many bytes as the hole has",
            });
        }
        if count == 0 {
            return log.sync();
        }
        log.write_at(offset, chunk.get(..count).unwrap_or_default(), &mut scratch)?;
        offset = end;
    }
}
