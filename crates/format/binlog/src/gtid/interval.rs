//! An interval of transaction numbers, and sorted lists of them.
//!
//! A list is sorted and its intervals neither overlap nor touch; every function here keeps that.

use std::fmt;

use crate::error::{Error, Result};
use crate::gtid::{GNO_END, GNO_MIN};

/// Numbers from `start` up to and without `end`; never empty. Printed inclusive, as the server
/// does: `5` or `5-7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GtidInterval {
    start: u64,
    end: u64,
}

impl GtidInterval {
    /// The numbers from `start` up to and without `end`; 1 <= start < end <= 2^63 - 1.
    pub fn new(start: u64, end: u64) -> Result<Self> {
        if GNO_MIN <= start && start < end && end <= GNO_END {
            return Ok(GtidInterval { start, end });
        }
        Err(Error::invalid(
            "GTID interval",
            "interval",
            format!("{start} up to and without {end}"),
            "1 <= start < end <= 2^63 - 1",
        ))
    }

    /// The first number.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The first number after the interval.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The last number.
    pub fn last(&self) -> u64 {
        self.end - 1
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.end - self.start
    }
}

impl fmt::Display for GtidInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count() == 1 {
            write!(f, "{}", self.start)
        } else {
            write!(f, "{}-{}", self.start, self.last())
        }
    }
}

impl fmt::Debug for GtidInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Adds an interval to a list. Next to the end of the list, where a log's GTIDs arrive, this costs
/// one comparison.
pub(super) fn add(list: &mut Vec<GtidInterval>, new: GtidInterval) {
    match list.last_mut() {
        Some(last) if last.start <= new.start && new.start <= last.end => {
            last.end = last.end.max(new.end);
            return;
        }
        Some(last) if new.start <= last.end => {}
        _ => {
            list.push(new);
            return;
        }
    }
    let from = list.partition_point(|old| old.end < new.start);
    let to = list.partition_point(|old| old.start <= new.end);
    let touched = list.get(from..to).unwrap_or_default();
    let merged = GtidInterval {
        start: touched.first().map_or(new.start, |first| first.start.min(new.start)),
        end: touched.last().map_or(new.end, |last| last.end.max(new.end)),
    };
    list.splice(from..to, [merged]);
}

/// Appends an interval to a list that [`normalise`] sorts later: intervals that arrive in order are joined at
/// once.
pub(super) fn push(unsorted: &mut Vec<GtidInterval>, new: GtidInterval) {
    match unsorted.last_mut() {
        Some(last) if last.start <= new.start && new.start <= last.end => last.end = last.end.max(new.end),
        _ => unsorted.push(new),
    }
}

/// Turns intervals in any order, overlapping or not, into a list. This takes n log n; inserting each in its
/// place would move all later ones each time.
pub(super) fn normalise(unsorted: &mut Vec<GtidInterval>) {
    // Sorted already, and nothing touches: this is what servers send.
    if unsorted.is_sorted_by(|one, next| one.end < next.start) {
        return;
    }
    unsorted.sort_unstable();
    unsorted.dedup_by(|next, kept| {
        let joins = next.start <= kept.end;
        if joins {
            kept.end = kept.end.max(next.end);
        }
        joins
    });
}

/// Adds all intervals of a list to another.
pub(super) fn union(list: &mut Vec<GtidInterval>, other: &[GtidInterval]) {
    if other.len() <= ADDED_ONE_BY_ONE {
        return other.iter().for_each(|interval| add(list, *interval));
    }
    list.extend_from_slice(other);
    normalise(list);
}

/// A list longer than this is merged with another in one pass over both. The intervals of a shorter one (such
/// as one or a few transactions) are inserted one by one.
const ADDED_ONE_BY_ONE: usize = 4;

/// Whether a number is in the list.
pub(super) fn contains(list: &[GtidInterval], gno: u64) -> bool {
    let index = list.partition_point(|interval| interval.end <= gno);
    list.get(index).is_some_and(|interval| interval.start <= gno)
}

/// The numbers that are in both lists.
pub(super) fn intersect(left: &[GtidInterval], right: &[GtidInterval]) -> Vec<GtidInterval> {
    let mut common = Vec::new();
    let mut left = left.iter().peekable();
    let mut right = right.iter().peekable();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let start = a.start.max(b.start);
        let end = a.end.min(b.end);
        if start < end {
            common.push(GtidInterval { start, end });
        }
        if a.end <= b.end {
            left.next();
        } else {
            right.next();
        }
    }
    common
}

/// The numbers of the first list that are not in the second.
pub(super) fn subtract(list: &[GtidInterval], removed: &[GtidInterval]) -> Vec<GtidInterval> {
    let mut left = Vec::new();
    let mut removed = removed.iter().peekable();
    for &GtidInterval { mut start, end } in list {
        while let Some(hole) = removed.peek().filter(|hole| hole.start < end) {
            if start < hole.start {
                left.push(GtidInterval { start, end: hole.start });
            }
            start = start.max(hole.end);
            if hole.end > end {
                // The hole reaches into the next interval of the list.
                break;
            }
            removed.next();
        }
        if start < end {
            left.push(GtidInterval { start, end });
        }
    }
    left
}

/// Whether every number of the first list is in the second.
pub(super) fn is_subset(list: &[GtidInterval], of: &[GtidInterval]) -> bool {
    list.iter().all(|inner| {
        let index = of.partition_point(|outer| outer.end < inner.end);
        of.get(index).is_some_and(|outer| outer.start <= inner.start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked() {
        assert_eq!(GtidInterval::new(1, 2).unwrap().to_string(), "1");
        assert_eq!(GtidInterval::new(1, GNO_END).unwrap().to_string(), "1-9223372036854775806");
        for (start, end) in [(0, 1), (1, 1), (2, 1), (1, GNO_END + 1), (u64::MAX, 0)] {
            assert!(GtidInterval::new(start, end).is_err(), "{start} {end}");
        }
    }
}
