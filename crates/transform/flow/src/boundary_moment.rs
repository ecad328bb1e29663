//! A moment from which on, or up to which, a log is asked for: in whole seconds, as mysqlbinlog's options have them, or finer.
//!
//! Every event has the second in which its statement began. A transaction of MySQL since 8.0.2 also has the microsecond in which it was
//! committed: in its GTID event, which all of its events follow.

/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// A moment, in microseconds since 1970. One of whole seconds is compared with the events' seconds, as mysqlbinlog does; one with a fraction,
/// with the time of commit where the log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoundaryMoment {
    microseconds: i64,
}

impl BoundaryMoment {
    /// The moment so many microseconds after 1970 began; the greatest number is later than any log.
    pub fn of_microseconds(microseconds: i64) -> Self {
        BoundaryMoment { microseconds }
    }

    /// Since 1970.
    pub fn microseconds(self) -> i64 {
        self.microseconds
    }

    /// Whether an event is of this moment or later: its second, and the time of commit of its transaction in microseconds since 1970, where
    /// it is known.
    pub fn is_reached(self, second: u32, committed: Option<u64>) -> bool {
        let begun = i64::from(second) * MICROSECONDS;
        let committed = committed.filter(|time| *time > 0 && self.has_fraction());
        let time = committed.map_or(begun, |time| i64::try_from(time).unwrap_or(i64::MAX));
        time >= self.microseconds
    }

    /// Whether any of some events may be of this moment or later, of which the last began in this second. It may have been committed
    /// any time after that.
    pub fn may_be_reached(self, last_second: u32) -> bool {
        self.has_fraction() || self.is_reached(last_second, None)
    }

    fn has_fraction(self) -> bool {
        self.microseconds != i64::MAX && self.microseconds.rem_euclid(MICROSECONDS) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fraction_is_compared_with_the_time_of_commit() {
        let whole = BoundaryMoment::of_microseconds(7_000_000);
        assert!(whole.is_reached(7, Some(6_999_999)) && !whole.is_reached(6, Some(7_000_001)));
        let finer = BoundaryMoment::of_microseconds(7_500_000);
        assert!(finer.is_reached(7, Some(7_500_000)) && !finer.is_reached(7, Some(7_499_999)));
        // What has whole seconds only counts as at their beginning.
        assert!(finer.is_reached(8, None) && !finer.is_reached(7, None) && !finer.is_reached(7, Some(0)));
        assert!(!whole.may_be_reached(6) && whole.may_be_reached(7) && finer.may_be_reached(6));
        let never = BoundaryMoment::of_microseconds(i64::MAX);
        assert!(!never.is_reached(u32::MAX, Some(u64::MAX >> 1)) && !never.may_be_reached(u32::MAX));
    }
}
