//! Estimates of what it takes to replay logs, and to apply them folded; which of the two `--fold=auto` takes.
//!
//! They rest on rates that were measured elsewhere (lab book, "fold beside recover"), not on the server: so the same logs always lead to the
//! same choice, also after a run that was killed.

use std::time::Duration;

use binlogz_figures::{counted, grouped};
use binlogz_row_changes::FoldSummary;

/// A server is attached and detached.
const ATTACH: Duration = Duration::from_millis(300);
/// A transaction is applied, with four workers, and synced: 1.5 to 4 ms for those of one row.
const TRANSACTION: Duration = Duration::from_millis(2);
/// A row is applied, within a large transaction.
const ROW: Duration = Duration::from_micros(20);
/// A change is read and folded.
const FOLDED_CHANGE: Duration = Duration::from_micros(3);
/// The estimates are right within a factor of about two, so fold has to be faster by as much.
const FASTER_MIN: u32 = 2;

/// The words for the rates above.
const FOUNDATION: &str = "These are estimates from rates that were measured elsewhere, with sync_binlog=1, innodb_flush_log_at_trx_commit=1 and 4 \
     workers: 2 ms a transaction, 20 µs a row, 3 µs to fold a change, 0.3 s to attach and detach. Nothing was measured on this server.";

/// What both ways would take.
pub(super) struct FoldEstimate<'s> {
    summary: &'s FoldSummary,
}

impl<'s> FoldEstimate<'s> {
    pub(super) fn of(summary: &'s FoldSummary) -> Self {
        FoldEstimate { summary }
    }

    fn replay(&self) -> Duration {
        ATTACH + applied(self.summary.transactions, self.summary.changes)
    }

    fn fold(&self) -> Duration {
        ATTACH
            + times(FOLDED_CHANGE, self.summary.changes)
            + applied(self.summary.written, self.net_changes())
    }

    fn net_changes(&self) -> u64 {
        self.summary.inserted + self.summary.updated + self.summary.deleted
    }

    /// Whether fold is clearly faster.
    pub(super) fn favours_fold(&self) -> bool {
        self.fold().saturating_mul(FASTER_MIN) <= self.replay()
    }

    /// Why the one or the other is taken.
    pub(super) fn reason(&self) -> String {
        let times = format!("fold takes {}, replay {}", about(self.fold()), about(self.replay()));
        if self.favours_fold() {
            return format!("{times} (estimates)");
        }
        let kept: u64 = self.summary.borders.iter().map(|border| border.count).sum();
        let largest = self.summary.borders.iter().max_by_key(|border| border.count);
        match largest.filter(|_| kept.saturating_mul(2) > self.summary.transactions) {
            Some(border) => format!(
                "{} of {} can't be folded, most of them {}; {times} (estimates)",
                grouped(kept),
                counted(self.summary.transactions, "transactions"),
                border.reason()
            ),
            None => format!("{times} (estimates), which is not clearly faster"),
        }
    }

    /// Both ways, a line each.
    pub(super) fn ways(&self) -> [String; 2] {
        let FoldSummary { transactions, changes, written, .. } = *self.summary;
        let beside = match self.summary.borders.is_empty() {
            true => "",
            false => ", beside those of transactions that can't be folded",
        };
        let way = |transactions, rows: String, time| {
            format!("{} with {rows}{beside}: {}", counted(transactions, "transactions"), about(time))
        };
        [
            format!("replay: {}", way(transactions, counted(changes, "row changes"), self.replay())),
            format!("fold: {}", way(written, counted(self.net_changes(), "net changes"), self.fold())),
        ]
    }

    /// What the times rest on.
    pub(super) fn foundation(&self) -> &'static str {
        FOUNDATION
    }
}

fn applied(transactions: u64, rows: u64) -> Duration {
    times(TRANSACTION, transactions).saturating_add(times(ROW, rows))
}

fn times(each: Duration, count: u64) -> Duration {
    Duration::from_secs_f64(each.as_secs_f64() * count as f64)
}

fn about(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 120.0 => format!("about {seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("about {:.0} min", seconds / 60.0),
        seconds => format!("about {:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(transactions: u64, changes: u64, written: u64, inserted: u64) -> FoldSummary {
        FoldSummary { transactions, changes, written, inserted, ..FoldSummary::default() }
    }

    #[test]
    fn a_queue_is_folded_and_a_bulk_load_or_a_short_log_is_replayed() {
        for (summary, favours_fold) in [
            (summary(8000, 8000, 1, 100), true),
            (summary(20, 20_000, 20, 20_000), false),
            (summary(86_200_000, 86_200_000, 5621, 28_100_000), true),
            (summary(20, 20, 1, 1), false),
            (summary(4000, 4000, 4000, 0), false),
            (summary(0, 0, 0, 0), false),
        ] {
            assert_eq!(FoldEstimate::of(&summary).favours_fold(), favours_fold, "{summary:?}");
        }
    }

    #[test]
    fn both_ways_have_counts_and_times() {
        let summary = summary(8000, 8000, 1, 100);
        let estimate = FoldEstimate::of(&summary);
        assert_eq!(
            estimate.ways(),
            [
                "replay: 8,000 transactions with 8,000 row changes: about 16.5 s",
                "fold: 1 transaction with 100 net changes: about 0.3 s",
            ]
        );
        assert_eq!(estimate.reason(), "fold takes about 0.3 s, replay about 16.5 s (estimates)");
    }

    #[test]
    fn the_words_have_the_rates() {
        for rate in [
            format!("{} ms a transaction", TRANSACTION.as_millis()),
            format!("{} µs a row", ROW.as_micros()),
            format!("{} µs to fold a change", FOLDED_CHANGE.as_micros()),
            format!("{} s to attach", ATTACH.as_secs_f64()),
        ] {
            assert!(FOUNDATION.contains(&rate), "{rate}");
        }
    }

    #[test]
    fn times_are_told_in_units_that_fit() {
        for (seconds, text) in [(0.34, "about 0.3 s"), (1200.0, "about 20 min"), (9000.0, "about 2.5 h")] {
            assert_eq!(about(Duration::from_secs_f64(seconds)), text);
        }
    }
}
