//! Which changes are unusual, and how much: the rules, and the order in which changes are shown.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::change::{RankedChange, UnusualReason};
use crate::largest::{LARGE_ROWS_MIN, LargeChange, OperationOnTable, ROWS_MIN};
use crate::session_loop::is_steady;
use crate::statement::DdlEffect;
use crate::transaction::TriagedTransaction;
use crate::triage::Triage;

/// A mass change has this many times the rows of the median transaction.
const MASS_MEDIANS: u64 = 5;
/// A transaction much larger than the usual has this many times the rows of the 99th percentile.
const LARGE_PERCENTILES: u64 = 20;
/// A first DELETE is unusual if so many transactions changed its table before.
const EARLIER_MIN: u64 = 20;
/// The most that the earlier transactions weigh.
const EARLIER_WEIGHT_MAX: u64 = 500;
/// Changes that weigh less are not shown.
const WEIGHT_MIN: f64 = 5.0;

/// What is usual in the logs, in rows.
struct UsualRows {
    median: u64,
    percentile_99: u64,
}

impl Triage {
    /// Rows of the 99th percentile of the transactions with rows, to within 5 %.
    pub fn usual_rows(&self) -> u64 {
        // A quantile is the middle of its bucket.
        self.figures.rows.quantile(0.99).floor() as u64
    }

    /// The unusual changes of the window, the worst first. After this no log is read.
    pub fn ranked(&mut self) -> Vec<RankedChange> {
        self.figures.end_loops();
        let usual = UsualRows {
            median: self.figures.rows.quantile(0.5).floor() as u64,
            percentile_99: self.usual_rows(),
        };
        let mut ranked: Vec<RankedChange> =
            self.changes().filter_map(|(key, change)| self.rank(key, change, &usual)).collect();
        self.add_first_deletes(&mut ranked);
        ranked.retain(|change| change.severity >= WEIGHT_MIN);
        ranked.sort_by(worse_first);
        ranked
    }

    fn rank(&self, key: &OperationOnTable, change: &LargeChange, usual: &UsualRows) -> Option<RankedChange> {
        let LargeChange { rows, transaction } = change;
        let is_mass = *rows >= ROWS_MIN.max(usual.median.saturating_mul(MASS_MEDIANS));
        let all = transaction.rows().total().saturating_add(transaction.rows_below);
        let is_large = all >= LARGE_ROWS_MIN.max(usual.percentile_99.saturating_mul(LARGE_PERCENTILES));
        let mut reasons = Vec::new();
        match key {
            OperationOnTable::Statement(effect, _) => reasons.push(UnusualReason::Statement(*effect)),
            OperationOnTable::Delete(_) if is_mass => reasons.push(UnusualReason::MassDelete),
            OperationOnTable::Update(_) if is_mass => reasons.push(UnusualReason::MassUpdate),
            OperationOnTable::DeleteLoop(_) | OperationOnTable::UpdateLoop(_) => {
                let is_job = self.figures.times.is_some_and(|times| is_steady(transaction, times));
                return (!is_job).then(|| self.ranked_by(key, change, vec![UnusualReason::SessionLoop]));
            }
            OperationOnTable::Delete(_) | OperationOnTable::Update(_) | OperationOnTable::Insert(_) => {}
        }
        reasons.extend(is_large.then_some(UnusualReason::LargeTransaction));
        (!reasons.is_empty()).then(|| self.ranked_by(key, change, reasons))
    }

    /// The change with its weight, and how often there was such a one.
    fn ranked_by(
        &self,
        key: &OperationOnTable,
        change: &LargeChange,
        reasons: Vec<UnusualReason>,
    ) -> RankedChange {
        let LargeChange { rows, transaction } = change;
        let weight = match key {
            OperationOnTable::Statement(effect, _) => {
                weight_of(*effect).saturating_add(transaction.rows().total())
            }
            // What is gone is worse than what is other.
            OperationOnTable::Delete(_) | OperationOnTable::DeleteLoop(_) => rows.saturating_mul(2),
            OperationOnTable::Update(_) | OperationOnTable::UpdateLoop(_) => *rows,
            OperationOnTable::Insert(_) => rows / 10,
        };
        let as_large = self.figures.frequency.as_large(key, *rows);
        let severity = weight as f64 / (as_large as f64).powi(2);
        RankedChange { transaction: transaction.clone(), reasons, as_large, severity }
    }

    /// Adds the first DELETE of each table, to the change that it is part of if that is shown.
    fn add_first_deletes(&self, ranked: &mut Vec<RankedChange>) {
        let places = ranked.iter().enumerate();
        let mut places: HashMap<_, _> =
            places.map(|(number, change)| (place_of(&change.transaction), number)).collect();
        let shown = self.span();
        let mut firsts: Vec<_> = self.figures.deletes.iter().collect();
        firsts.sort_by_key(|(name, _)| *name);
        for (_, deletes) in firsts {
            let Some(first) = &deletes.first else { continue };
            if deletes.earlier < EARLIER_MIN || !self.shows(shown, first.time) {
                continue;
            }
            let reason = UnusualReason::FirstDelete(deletes.earlier);
            let weight = deletes.earlier.min(EARLIER_WEIGHT_MAX) as f64;
            let number = *places.entry(place_of(first)).or_insert_with(|| {
                let transaction = TriagedTransaction::clone(first);
                ranked.push(RankedChange { transaction, reasons: Vec::new(), as_large: 1, severity: 0.0 });
                ranked.len() - 1
            });
            if let Some(change) = ranked.get_mut(number) {
                change.reasons.push(reason);
                change.severity = change.severity.max(weight);
            }
        }
    }
}

/// The rows that a statement weighs as.
fn weight_of(effect: DdlEffect) -> u64 {
    match effect {
        DdlEffect::DropDatabase => 10_000_000,
        DdlEffect::DropTable | DdlEffect::Truncate | DdlEffect::LosesPart | DdlEffect::ChangesAllRows => {
            1_000_000
        }
        DdlEffect::Redefines => 100,
    }
}

/// The more severe one first, then the later one.
fn worse_first(one: &RankedChange, other: &RankedChange) -> Ordering {
    let later = (other.transaction.time, place_of(&other.transaction));
    let place = (one.transaction.time, place_of(&one.transaction));
    other.severity.total_cmp(&one.severity).then_with(|| later.cmp(&place))
}

/// The log of a transaction, and where it begins there.
fn place_of(transaction: &TriagedTransaction) -> (usize, u64) {
    (transaction.log, transaction.offset)
}
