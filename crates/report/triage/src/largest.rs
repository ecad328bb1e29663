//! The largest changes of each kind, and how often there were such: all that is kept of the transactions of a log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use binlogz_stats::{RowCounts, TableName};

use crate::statement::{DdlEffect, StatementTableName};
use crate::transaction::TriagedTransaction;

/// A row change is looked at from this many rows on.
pub(crate) const ROWS_MIN: u64 = 5;
/// Inserts are only unusual as part of a large transaction.
pub(crate) const LARGE_ROWS_MIN: u64 = 100;
/// Changes of one kind that are kept: the largest.
const CHANGES_MAX: usize = 3;
/// Kinds of changes that are kept; those with the smallest changes are left out.
const KEYS_MAX: usize = 4096;
/// Kinds of changes whose frequency is known. The changes of further ones count as if they were the only ones.
const COUNTED_MAX: usize = 20_000;

/// An operation on a table: changes with the same key are alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum OperationOnTable {
    /// A statement.
    Statement(DdlEffect, Option<StatementTableName>),
    Delete(Arc<TableName>),
    Update(Arc<TableName>),
    Insert(Arc<TableName>),
    /// Many transactions that deleted a few rows each.
    DeleteLoop(Arc<TableName>),
    /// Many that updated a few rows each.
    UpdateLoop(Arc<TableName>),
}

impl OperationOnTable {
    /// The kind of change that a transaction is, and how many rows that are; `None`: nothing of note.
    pub(crate) fn of(transaction: &TriagedTransaction) -> Option<(OperationOnTable, u64)> {
        if let Some(statement) = &transaction.unusual {
            return Some((
                OperationOnTable::Statement(statement.effect, statement.tables.first().cloned()),
                1,
            ));
        }
        let rows = transaction.rows();
        // Rows below the log follow from deleted ones.
        let deleted = rows.deletes.saturating_add(transaction.rows_below);
        let changed = deleted.saturating_add(rows.updates);
        if changed >= ROWS_MIN {
            let key = match deleted >= rows.updates {
                true => OperationOnTable::Delete(main_table(transaction, |rows| rows.deletes)?),
                false => OperationOnTable::Update(main_table(transaction, |rows| rows.updates)?),
            };
            return Some((key, changed));
        }
        let all = rows.total();
        if all < LARGE_ROWS_MIN {
            return None;
        }
        Some((OperationOnTable::Insert(main_table(transaction, |rows| rows.inserts)?), all))
    }
}

/// The table with the most rows of an operation, the earlier one of equals. Rows that foreign keys changed follow from others.
fn main_table(transaction: &TriagedTransaction, rows: fn(&RowCounts) -> u64) -> Option<Arc<TableName>> {
    let tables = transaction.tables.iter().rev();
    let table = tables.max_by_key(|table| rows(&table.rows).saturating_sub(rows(&table.by_foreign_key)));
    table.map(|table| Arc::clone(&table.name))
}

/// A transaction of a kind.
#[derive(Debug, Clone)]
pub(crate) struct LargeChange {
    pub(crate) rows: u64,
    pub(crate) transaction: TriagedTransaction,
}

impl LargeChange {
    /// The larger one first, then the later one: statements have no rows.
    fn order(&self) -> (u64, u64, usize, u64) {
        (self.rows, self.transaction.time, self.transaction.log, self.transaction.offset)
    }
}

/// The largest changes of each kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct LargestChanges {
    kinds: BTreeMap<OperationOnTable, Vec<LargeChange>>,
}

impl LargestChanges {
    /// Whether a change of so many rows would be kept. For callers that then make a copy.
    pub(crate) fn has_room(&self, key: &OperationOnTable, rows: u64) -> bool {
        match self.kinds.get(key) {
            Some(kept) => kept.len() < CHANGES_MAX || kept.last().is_none_or(|last| last.rows <= rows),
            None => true,
        }
    }

    /// Adds a change.
    pub(crate) fn add(&mut self, key: OperationOnTable, change: LargeChange) {
        if self.kinds.len() >= KEYS_MAX && !self.kinds.contains_key(&key) {
            let largest = |(key, kept): (&OperationOnTable, &Vec<LargeChange>)| {
                (kept.first().map_or(0, |first| first.rows), key.clone())
            };
            let Some((rows, smallest)) = self.kinds.iter().map(largest).min() else { return };
            if rows >= change.rows && !matches!(key, OperationOnTable::Statement(..)) {
                return;
            }
            self.kinds.remove(&smallest);
        }
        let kept = self.kinds.entry(key).or_default();
        let place = kept.partition_point(|other| other.order() > change.order());
        kept.insert(place, change);
        kept.truncate(CHANGES_MAX);
    }

    /// Adds those of a later part.
    pub(crate) fn join(&mut self, later: LargestChanges) {
        for (key, changes) in later.kinds {
            changes.into_iter().for_each(|change| self.add(key.clone(), change));
        }
    }

    /// Says that all are of the log with this number.
    pub(crate) fn set_log(&mut self, log: usize) {
        for change in self.kinds.values_mut().flatten() {
            change.transaction.log = log;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OperationOnTable, &LargeChange)> {
        self.kinds.iter().flat_map(|(key, changes)| changes.iter().map(move |change| (key, change)))
    }
}

/// How often there were changes of each kind, by the power of two of their rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangeFrequency {
    kinds: HashMap<OperationOnTable, Vec<u64>>,
}

impl ChangeFrequency {
    pub(crate) fn count(&mut self, key: &OperationOnTable, rows: u64) {
        let has_room = self.kinds.len() < COUNTED_MAX;
        if let Some(classes) = self.kinds.get_mut(key) {
            add_to(classes, class_of(rows), 1);
        } else if has_room {
            let mut classes = Vec::new();
            add_to(&mut classes, class_of(rows), 1);
            self.kinds.insert(key.clone(), classes);
        }
    }

    /// How often there was such a change with about as many rows or more: from the next lower power of two on.
    pub(crate) fn as_large(&self, key: &OperationOnTable, rows: u64) -> u64 {
        let from = class_of(rows).saturating_sub(1);
        let classes = self.kinds.get(key).map(Vec::as_slice).unwrap_or_default();
        classes.iter().skip(from).sum::<u64>().max(1)
    }

    pub(crate) fn join(&mut self, later: ChangeFrequency) {
        for (key, later) in later.kinds {
            if self.kinds.len() >= COUNTED_MAX && !self.kinds.contains_key(&key) {
                continue;
            }
            let classes = self.kinds.entry(key).or_default();
            later.iter().enumerate().for_each(|(class, number)| add_to(classes, class, *number));
        }
    }
}

fn class_of(rows: u64) -> usize {
    rows.max(1).ilog2() as usize
}

fn add_to(classes: &mut Vec<u64>, class: usize, number: u64) {
    if classes.len() <= class {
        classes.resize(class + 1, 0);
    }
    if let Some(known) = classes.get_mut(class) {
        *known += number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> OperationOnTable {
        let table = format!("t{number}").into_bytes().into();
        OperationOnTable::Delete(Arc::new(TableName { database: b"d"[..].into(), table }))
    }

    fn change(rows: u64, time: u64) -> LargeChange {
        LargeChange { rows, transaction: TriagedTransaction { time, ..TriagedTransaction::default() } }
    }

    #[test]
    fn the_three_largest_of_a_kind_are_kept_the_later_of_equals() {
        let mut largest = LargestChanges::default();
        for (time, rows) in [10, 30, 20, 10, 40, 20].into_iter().enumerate() {
            assert!(time < 5 || largest.has_room(&key(1), rows));
            largest.add(key(1), change(rows, time as u64));
        }
        assert!(!largest.has_room(&key(1), 19) && largest.has_room(&key(2), 1));
        let kept: Vec<_> = largest.iter().map(|(_, change)| (change.rows, change.transaction.time)).collect();
        assert_eq!(kept, [(40, 4), (30, 1), (20, 5)]);
    }

    #[test]
    fn kinds_without_room_leave_the_smallest_out() {
        let mut largest = LargestChanges::default();
        for number in 0..KEYS_MAX + 100 {
            largest.add(key(number), change(number as u64 + 10, 0));
        }
        assert_eq!(largest.kinds.len(), KEYS_MAX);
        assert_eq!(largest.iter().map(|(_, change)| change.rows).min(), Some(110));
    }

    #[test]
    fn changes_of_half_the_rows_are_as_large() {
        let mut frequency = ChangeFrequency::default();
        let mut later = ChangeFrequency::default();
        for rows in [4, 100, 120, 200] {
            frequency.count(&key(1), rows);
            later.count(&key(1), rows);
        }
        frequency.join(later);
        assert_eq!(frequency.as_large(&key(1), 200), 6);
        assert_eq!(frequency.as_large(&key(1), 1000), 1);
        assert_eq!(frequency.as_large(&key(2), 5), 1);
    }
}
