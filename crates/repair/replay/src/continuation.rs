//! Whether logs continue what a server has: decided by sets of GTIDs alone.

use binlogz_binlog::gtid::GtidSet;

/// How logs stand to the transactions of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// The server has these transactions, which come after the end of the logs.
    IsPast(GtidSet),
    /// The server lacks these transactions, which came before the first log.
    HasGap(GtidSet),
    /// The logs continue what the server has. It lacks these of their transactions.
    Lacks(GtidSet),
}

impl Continuation {
    /// Compares the transactions that a server has `executed` with those `before` the first log, those `up_to` the end (and all
    /// before the first log), and those `after` the end.
    pub(crate) fn of(executed: &GtidSet, before: &GtidSet, up_to: &GtidSet, after: &GtidSet) -> Continuation {
        let mut ahead = after.clone();
        ahead.intersect(executed);
        if !ahead.is_empty() {
            return Continuation::IsPast(ahead);
        }
        let mut gap = before.clone();
        gap.subtract(executed);
        if !gap.is_empty() {
            return Continuation::HasGap(gap);
        }
        let mut lacks = up_to.clone();
        lacks.subtract(executed);
        Continuation::Lacks(lacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transactions of a server's history by their numbers.
    fn gtids(numbers: impl IntoIterator<Item = u32>) -> GtidSet {
        let mut gtids = GtidSet::new();
        for number in numbers {
            gtids.union(&format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}").parse().unwrap());
        }
        gtids
    }

    /// Every set of transactions that a server can have of a history of six, beside logs of every part of it.
    #[test]
    fn a_server_goes_on_only_if_it_has_all_before_the_logs_and_nothing_after_them() {
        const HISTORY: u32 = 6;
        let mut counts = [0; 3];
        for (first, last) in (0..=HISTORY).flat_map(|first| (first..=HISTORY).map(move |last| (first, last)))
        {
            let before = gtids(1..=first);
            let up_to = gtids(1..=last);
            let after = gtids(last + 1..=HISTORY);
            for bits in 0..1_u32 << HISTORY {
                let has = |number: &u32| bits >> (number - 1) & 1 == 1;
                let executed = gtids((1..=HISTORY).filter(has));
                let ahead = gtids((last + 1..=HISTORY).filter(has));
                let gap = gtids((1..=first).filter(|number| !has(number)));
                let expected = match (ahead.is_empty(), gap.is_empty()) {
                    (false, _) => Continuation::IsPast(ahead),
                    (true, false) => Continuation::HasGap(gap),
                    (true, true) => {
                        Continuation::Lacks(gtids((first + 1..=last).filter(|number| !has(number))))
                    }
                };
                counts[match expected {
                    Continuation::IsPast(_) => 0,
                    Continuation::HasGap(_) => 1,
                    Continuation::Lacks(_) => 2,
                }] += 1;
                assert_eq!(
                    Continuation::of(&executed, &before, &up_to, &after),
                    expected,
                    "logs of {} to {last}, a server with {executed}",
                    first + 1
                );
            }
        }
        assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
    }

    #[test]
    fn transactions_of_another_server_neither_help_nor_harm() {
        let other: GtidSet = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-9".parse().unwrap();
        let mut executed = gtids(1..=2);
        executed.union(&other);
        let continuation =
            |before| Continuation::of(&executed, &gtids(1..=before), &gtids(1..=4), &gtids(5..=6));
        assert_eq!(continuation(2), Continuation::Lacks(gtids(3..=4)));
        assert_eq!(continuation(3), Continuation::HasGap(gtids(3..=3)));
    }
}
