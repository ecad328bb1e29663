//! The times of transactions in words. Many are of one second, of which all but the fraction is made once.

use binlogz_figures::moment;

/// The fraction of a whole second, as [`moment`] writes it.
const WHOLE: &str = ".000000";
const SECOND: u64 = 1_000_000;

/// Writes times as [`moment`] does.
#[derive(Debug, Default)]
pub(super) struct CommitTimes {
    /// The second of the last one, and what stands before and after its fraction.
    last: Option<(u64, String, String)>,
}

impl CommitTimes {
    /// A time in microseconds since 1970.
    pub(super) fn text(&mut self, microseconds: u64) -> String {
        let second = microseconds / SECOND;
        if self.last.as_ref().is_none_or(|(last, ..)| *last != second) {
            let whole = moment(second * SECOND);
            let Some((front, back)) = whole.split_once(WHOLE) else { return moment(microseconds) };
            self.last = Some((second, front.to_owned(), back.to_owned()));
        }
        match &self.last {
            Some((_, front, back)) => format!("{front}.{:06}{back}", microseconds % SECOND),
            None => moment(microseconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_it_would_be_alone() {
        const TIME: u64 = 1_795_235_858_123_456;
        let mut times = CommitTimes::default();
        for time in [TIME, TIME + 1, TIME + 876_543, TIME + 876_544, TIME - 3_600_000_000, TIME, 0, 999_999] {
            assert_eq!(times.text(time), moment(time));
        }
    }
}
