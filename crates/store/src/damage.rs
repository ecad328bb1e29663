//! Damage of bytes that were durable: where it is, what stands whole around it, and what it took.
//!
//! ```text
//! ... whole │ hole: from the last whole transaction before the damage │ whole ...
//!           from                                  to: the next GTID event that is whole, and in its place
//! ```
//!
//! A hole begins and ends between transactions. Which transactions stood in it is known where the sequence numbers around
//! it count as many as there are GTIDs missing; nothing is guessed.

use std::fmt;

use binlogz_binlog::gtid::{GtidInterval, GtidSet};

use crate::error::Result;
use crate::file::LogFile;
use crate::log_name::FileNumber;
use crate::scan::{self, Scan};

/// A file of the log of which bytes that were durable are damaged. The log is not written to until it is repaired
/// ([`crate::BinlogStore::repair`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: FileNumber,
    /// Its name.
    pub name: String,
    /// What can't be read of it, in order; at least one.
    pub holes: Vec<Hole>,
}

/// A stretch of a file that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// Where the last whole transaction before it ends.
    pub from: u64,
    /// Where the next whole one begins, or the log ends.
    pub to: u64,
    /// Where the damage is, what was found and what was expected.
    pub reason: String,
    /// The GTIDs of all transactions before it, those of the files before included, as far as they are known.
    pub before: GtidSet,
    /// The GTIDs of the transactions in it; `None`: nobody knows.
    pub lost: Option<GtidSet>,
}

impl Damage {
    /// The hole that an offset is in.
    pub fn hole_at(&self, offset: u64) -> Option<&Hole> {
        self.holes.iter().find(|hole| hole.from <= offset && offset < hole.to)
    }

    /// Where the first hole at or after an offset begins.
    pub(crate) fn next_hole(&self, offset: u64) -> Option<u64> {
        self.holes.iter().map(|hole| hole.from).find(|from| *from >= offset)
    }

    /// What a reader is told that comes to this hole.
    pub(crate) fn tell(&self, hole: &Hole) -> String {
        let Hole { from, to, reason, lost, .. } = hole;
        let lost = match lost {
            Some(lost) if !lost.is_empty() => format!(", which held {}", lost.to_string().replace('\n', "")),
            _ => String::new(),
        };
        format!("{} is damaged from {from} to {to}{lost}: {reason}", self.name)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, hole) in self.holes.iter().enumerate() {
            let comma = if number == 0 { "" } else { "; " };
            write!(f, "{comma}{}", self.tell(hole))?;
        }
        Ok(())
    }
}

/// What stands behind the first place of a file that can't be read.
pub(crate) struct Around {
    pub(crate) holes: Vec<Hole>,
    /// Where the last whole transaction ends, or the last hole.
    pub(crate) end: u64,
    /// Those that are whole, the ones before the first hole included.
    pub(crate) gtids: GtidSet,
    pub(crate) transactions: u64,
}

/// Looks for whole transactions after the place where a scan ended. What is torn at `floor` or later is no damage.
pub(crate) fn look_around(log: &LogFile, scan: &Scan, floor: u64, size: u64) -> Result<Around> {
    let mut around = Around {
        holes: Vec::new(),
        end: scan.whole,
        gtids: scan.gtids.clone(),
        transactions: scan.transactions,
    };
    let reason_of = |scan: &Scan| scan.torn.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut hole =
        Hole { from: scan.whole, to: floor, reason: reason_of(scan), before: scan.gtids.clone(), lost: None };
    // GTIDs that can be read in the hole, and the number of the transaction before it.
    let mut readable = GtidSet::new();
    readable_in(scan, &mut readable);
    let mut number = scan.numbers.1;
    let mut from = scan.valid + 1;
    while let Some(at) = scan::next_gtid_event(log, scan.framing, from, size)? {
        let next = scan::scan_from(log, scan.framing, at, size)?;
        readable_in(&next, &mut readable);
        if next.whole == at {
            from = at + 1;
            continue;
        }
        hole.to = at;
        hole.lost = lost_in(&hole.before, &readable, number, &next);
        around.gtids.union(&next.gtids);
        around.transactions += next.transactions;
        around.end = next.whole;
        let before = around.gtids.clone();
        around.holes.push(hole);
        if next.torn.is_none() || next.valid >= floor {
            return Ok(around);
        }
        hole = Hole { from: next.whole, to: floor, reason: reason_of(&next), before, lost: None };
        readable = GtidSet::new();
        readable_in(&next, &mut readable);
        number = next.numbers.1;
        from = next.valid + 1;
    }
    if hole.from < floor {
        around.end = floor;
        around.holes.push(hole);
    }
    Ok(around)
}

/// A GTID event that is whole, of a transaction that is not.
fn readable_in(scan: &Scan, readable: &mut GtidSet) {
    if let Some(gtid) = scan.open {
        readable.add(gtid);
    }
}

/// The transactions between two that are whole, if they are known for certain.
fn lost_in(before: &GtidSet, readable: &GtidSet, number: i64, next: &Scan) -> Option<GtidSet> {
    if next.numbers.0 <= number {
        return None;
    }
    let count = next.numbers.0.checked_sub(number)?.checked_sub(1)?;
    let is_all = |set: &GtidSet| i128::try_from(set.count()).is_ok_and(|held| held == i128::from(count));
    if is_all(readable) {
        return Some(readable.clone());
    }
    let first = next.first?;
    let mut missing = readable.clone();
    if first.gno() > 1 {
        missing.add_interval(first.tsid(), GtidInterval::new(1, first.gno()).ok()?);
    }
    missing.subtract(before);
    is_all(&missing).then_some(missing)
}
