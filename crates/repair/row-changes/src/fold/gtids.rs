//! The GTIDs that folded transactions get: some of those of the transactions that they stand for.
//!
//! Never the first of a segment, nor the last. So a server that has got a part of a segment lacks a transaction that came before others which it has:
//! its set can't be taken for that of a moment. And a server that has everything up to a moment within the segment lacks the last one, which
//! no log has any more: it is never sent a folded transaction in place of those that it lacks.

use std::io;

use binlogz_binlog::gtid::{Gtid, GtidInterval, GtidSet, Tsid};

use crate::record::broken;

/// A segment of so many transactions, or fewer, has none to give: its transactions go through as they are.
pub(super) const WITHOUT_PLACES: u128 = 2;

/// The transactions of a segment.
#[derive(Debug, Default)]
pub(super) struct SegmentGtids {
    first: Option<Gtid>,
    last: Option<Gtid>,
    all: GtidSet,
}

impl SegmentGtids {
    /// The next one.
    pub(super) fn add(&mut self, gtid: Gtid) {
        self.first.get_or_insert(gtid);
        self.last = Some(gtid);
        self.all.add(gtid);
    }

    pub(super) fn count(&self) -> u128 {
        self.all.count()
    }

    /// Those that folded transactions may get.
    pub(super) fn places(self) -> GtidPlaces {
        let mut ends = GtidSet::default();
        [self.first, self.last].into_iter().flatten().for_each(|gtid| ends.add(gtid));
        let mut between = self.all;
        between.subtract(&ends);
        let intervals =
            between.iter().flat_map(|(tsid, list)| list.iter().map(|interval| (*tsid, *interval)));
        let mut last_first: Vec<_> = intervals.collect();
        last_first.reverse();
        GtidPlaces { left: between.count(), intervals: last_first, taken: 0 }
    }
}

/// GTIDs to be given, in the order of the set.
#[derive(Debug)]
pub(super) struct GtidPlaces {
    left: u128,
    /// The next one last.
    intervals: Vec<(Tsid, GtidInterval)>,
    /// How many of the next one were given.
    taken: u64,
}

impl GtidPlaces {
    pub(super) fn count(&self) -> u128 {
        self.left
    }

    /// # Errors
    ///
    /// There is none left.
    pub(super) fn take(&mut self) -> io::Result<Gtid> {
        let (tsid, interval) = *self.intervals.last().ok_or_else(broken)?;
        let gtid = Gtid::new(tsid, interval.start() + self.taken).map_err(io::Error::other)?;
        self.taken += 1;
        self.left -= 1;
        if self.taken == interval.count() {
            self.intervals.pop();
            self.taken = 0;
        }
        Ok(gtid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const OTHER: &str = "1e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn places(gtids: &[String]) -> Vec<String> {
        let mut segment = SegmentGtids::default();
        gtids.iter().for_each(|gtid| segment.add(gtid.parse().unwrap()));
        let mut places = segment.places();
        let mut given = Vec::new();
        while places.count() > 0 {
            given.push(places.take().unwrap().to_string());
        }
        assert!(places.take().is_err());
        given
    }

    fn numbered(uuid: &str, numbers: &[u64]) -> Vec<String> {
        numbers.iter().map(|number| format!("{uuid}:{number}")).collect()
    }

    #[test]
    fn all_are_given_but_the_first_and_the_last_of_the_segment() {
        assert_eq!(places(&numbered(ONE, &[5, 6, 9, 10])), numbered(ONE, &[6, 9]));
        assert_eq!(places(&numbered(ONE, &[5, 6])), [""; 0]);
        assert_eq!(places(&[]), [""; 0]);
        // The order of commits, not that of the set.
        let mixed =
            [numbered(ONE, &[7]), numbered(OTHER, &[1, 2]), numbered(ONE, &[8]), numbered(OTHER, &[3])];
        assert_eq!(places(&mixed.concat()), [numbered(OTHER, &[1, 2]), numbered(ONE, &[8])].concat());
    }
}
