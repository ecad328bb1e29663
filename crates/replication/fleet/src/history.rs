//! Values kept in memory from round to round, for small lines: the lag of each source, and the age of each archive's last
//! restorable moment.

use std::collections::{BTreeMap, VecDeque};

use crate::row::{FleetRow, FleetRowKind};

/// As many values as a relay gives.
const VALUES_MAX: usize = 90;

/// The last values of each row that there is.
#[derive(Debug, Default)]
pub(crate) struct RowHistory(BTreeMap<(String, FleetRowKind, Option<String>), VecDeque<Option<u64>>>);

impl RowHistory {
    /// Adds these rows' values, and gives the rows theirs of earlier rounds. Rows that are gone are forgotten.
    pub(crate) fn add(&mut self, rows: &mut [FleetRow], now: u64) {
        let mut before = std::mem::take(&mut self.0);
        for row in rows {
            let key = (row.target.clone(), row.kind, row.source.clone());
            let mut values = before.remove(&key).unwrap_or_default();
            values.push_back(value(row, now));
            if values.len() > VALUES_MAX {
                values.pop_front();
            }
            // A relay knows its last hour better: also that before this program was started.
            if row.lag_history_seconds.is_empty() && values.iter().flatten().count() > 0 {
                row.lag_history_seconds = values.iter().copied().collect();
            }
            self.0.insert(key, values);
        }
    }
}

fn value(row: &FleetRow, now: u64) -> Option<u64> {
    match row.kind {
        FleetRowKind::Relay => row.lag_seconds,
        FleetRowKind::Archive => Some(now.saturating_sub(row.last_restorable.as_ref()?.time?.into())),
        FleetRowKind::Server => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_what_was_before_and_what_is_gone_is_forgotten() {
        let mut history = RowHistory::default();
        let row =
            |target: &str, lag| FleetRow { target: target.into(), lag_seconds: lag, ..FleetRow::default() };
        let mut round = |lags: &[(&str, Option<u64>)], now| {
            let mut rows: Vec<_> = lags.iter().map(|(target, lag)| row(target, *lag)).collect();
            history.add(&mut rows, now);
            let counts = (history.0.len(), history.0.values().map(VecDeque::len).max());
            (rows.into_iter().map(|row| row.lag_history_seconds).collect::<Vec<_>>(), counts)
        };
        assert_eq!(round(&[("a", Some(1)), ("b", None)], 10).0, [vec![Some(1)], vec![]]);
        // One that can't be reached has a gap.
        assert_eq!(round(&[("a", None), ("b", None)], 20), (vec![vec![Some(1), None], vec![]], (2, Some(2))));
        assert_eq!(round(&[("b", Some(3))], 30), (vec![vec![None, None, Some(3)]], (1, Some(3))));
        for now in 0..200 {
            round(&[("b", Some(now))], now);
        }
        let (values, counts) = round(&[("b", Some(200))], 200);
        assert_eq!((values[0].len(), values[0][0], counts), (VALUES_MAX, Some(111), (1, Some(VALUES_MAX))));
        // A relay's own.
        let mut own = [FleetRow { lag_history_seconds: vec![Some(9)], ..row("b", Some(1)) }];
        history.add(&mut own, 300);
        assert_eq!(own[0].lag_history_seconds, [Some(9)]);
    }
}
