//! Damage to bytes that were durable: where it is, which transactions around it are whole, and which were lost.
//!
//! ```text
//! ... whole │ hole: from the last whole transaction before the damage │ whole ...
//!           from                                  to: the next GTID event that is whole and at its own offset
//! ```
//!
//! A hole begins and ends between transactions. We know which transactions were in it if the sequence numbers
//! around it account for exactly the missing GTIDs; nothing is guessed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use binlogz_binlog::Framing;
use binlogz_binlog::gtid::{GtidInterval, GtidSet};

use crate::error::Result;
use crate::files::log_file::LogFile;
use crate::files::names::FileNumber;
use crate::files::sums::ChangedBlock;
use crate::recovery::scan::{self, Demands, FileScan};

/// A log file with damage in bytes that were durable. They can't be read until they are repaired
/// ([`crate::BinlogStore::repair`]); while the last file is damaged, the log is not written to either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file's number.
    pub file: FileNumber,
    /// The file's name.
    pub name: String,
    /// The stretches that can't be read, in order; at least one.
    pub holes: Vec<Hole>,
}

/// A stretch of a file that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// Where the last whole transaction before it ends.
    pub from: u64,
    /// Where the next whole transaction begins, or the log ends.
    pub to: u64,
    /// Where the damage is, with the bytes found and the bytes expected.
    pub reason: String,
    /// The GTIDs of all earlier transactions, including those of earlier files, as far as they are known.
    pub before: GtidSet,
    /// The GTIDs of the transactions in it; `None` if unknown.
    pub lost: Option<GtidSet>,
}

impl Damage {
    /// The hole that contains an offset.
    pub fn hole_at(&self, offset: u64) -> Option<&Hole> {
        self.holes.iter().find(|hole| hole.from <= offset && offset < hole.to)
    }

    /// The start of the first hole at or after an offset.
    pub(crate) fn next_hole(&self, offset: u64) -> Option<u64> {
        self.holes.iter().map(|hole| hole.from).find(|from| *from >= offset)
    }

    /// The message for a reader that reaches this hole.
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

/// The known damage of a log.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    /// Damage of the last file: nothing is written while there is any.
    pub(crate) last: Option<Arc<Damage>>,
    /// Damage of closed files, as far as they were examined.
    pub(crate) closed: BTreeMap<FileNumber, Arc<Damage>>,
}

impl Damages {
    pub(crate) fn of(&self, file: FileNumber) -> Option<&Arc<Damage>> {
        self.last.as_ref().filter(|damage| damage.file == file).or_else(|| self.closed.get(&file))
    }

    /// All of it, the oldest file first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Damage>> {
        self.closed.values().chain(&self.last)
    }
}

/// The bytes after the first unreadable place of a file.
pub(crate) struct DamageSurroundings {
    pub(crate) holes: Vec<Hole>,
    /// The end of the last whole transaction, or of the last hole.
    pub(crate) end: u64,
    /// The GTIDs of the whole transactions, including those before the first hole.
    pub(crate) gtids: GtidSet,
    pub(crate) transactions: u64,
}

/// Looks for whole transactions after the place where a scan ended. A torn tail at or after `floor` is not
/// damage.
pub(crate) fn look_around(
    log: &LogFile,
    scan: &FileScan,
    floor: u64,
    size: u64,
    demands: Demands,
) -> Result<DamageSurroundings> {
    let mut around = DamageSurroundings {
        holes: Vec::new(),
        end: scan.whole,
        gtids: scan.gtids.clone(),
        transactions: scan.transactions,
    };
    let reason_of = |scan: &FileScan| scan.torn.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut hole =
        Hole { from: scan.whole, to: floor, reason: reason_of(scan), before: scan.gtids.clone(), lost: None };
    // GTIDs that can be read in the hole, and the sequence number of the transaction before it.
    let mut readable = GtidSet::new();
    readable_in(scan, &mut readable);
    let mut number = scan.numbers.1;
    let mut from = scan.valid + 1;
    while let Some(at) = scan::next_gtid_event(log, scan.framing, from, size)? {
        let next = scan::scan_from(log, scan.framing, at, size, demands, &mut |_| Ok(()))?;
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

/// The holes around changed blocks of a file whose events have no checksums: from the last transaction that ends before a block to the
/// next one that begins after it. `start` is where its first event after the format description begins.
pub(crate) fn around_blocks(
    log: &LogFile,
    framing: Framing,
    start: u64,
    size: u64,
    blocks: Vec<ChangedBlock>,
) -> Result<Vec<Hole>> {
    let mut holes: Vec<Hole> = Vec::new();
    let mut whole = start;
    let mut before = GtidSet::new();
    for ChangedBlock { bytes, reason } in blocks {
        let to = scan::next_gtid_event(log, framing, bytes.end, size)?.unwrap_or(size);
        match holes.last_mut().filter(|last| bytes.start < last.to) {
            Some(last) => last.to = last.to.max(to),
            None if bytes.start < start => {
                holes.push(Hole { from: 0, to, reason, before: GtidSet::new(), lost: None })
            }
            None => {
                let scan =
                    scan::scan_from(log, framing, whole, bytes.start, Demands::Events, &mut |_| Ok(()))?;
                before.union(&scan.gtids);
                holes.push(Hole { from: scan.whole, to, reason, before: before.clone(), lost: None });
            }
        }
        whole = holes.last().map_or(whole, |last| last.to);
    }
    Ok(holes)
}

/// Collects the GTID if its event is whole but its transaction is not.
fn readable_in(scan: &FileScan, readable: &mut GtidSet) {
    if let Some(gtid) = scan.open {
        readable.add(gtid);
    }
}

/// The transactions between two whole ones, if they are known for certain.
fn lost_in(before: &GtidSet, readable: &GtidSet, number: i64, next: &FileScan) -> Option<GtidSet> {
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
