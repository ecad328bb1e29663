//! Figures by table, in the order in which the tables occurred, for as many as fit into bounded memory.

use std::collections::HashMap;
use std::sync::Arc;

use crate::counts::RowCounts;

/// Bytes that the tables of a log may take: enough for at least 40,000. Later tables are counted together.
const MEMORY: usize = 8 << 20;

/// Roughly, what one table takes besides its names.
const ENTRY: usize = 160;

/// A table's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The name of its database.
    pub database: Box<[u8]>,
    /// Its name in the database.
    pub table: Box<[u8]>,
}

/// Totals of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TableTotals {
    pub(crate) transactions: u64,
    pub(crate) rows: RowCounts,
    /// Bytes of its table maps and row events, without checksums.
    pub(crate) uncompressed_bytes: u64,
    /// The table's share of its transactions' stored size, in 1/65536 of a byte: shares are mostly fractions.
    pub(crate) compressed_share: u64,
}

impl TableTotals {
    fn add(&mut self, other: &TableTotals) {
        self.transactions += other.transactions;
        self.rows.add(&other.rows);
        self.uncompressed_bytes += other.uncompressed_bytes;
        self.compressed_share += other.compressed_share;
    }

    /// The table's share of its transactions' stored size, in bytes.
    pub(crate) fn compressed_bytes(&self) -> u64 {
        (self.compressed_share + (1 << 15)) >> 16
    }
}

/// Figures of tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByTable {
    places: HashMap<Arc<TableName>, usize>,
    tables: Vec<(Arc<TableName>, TableTotals)>,
    memory: usize,
    /// The tables for which there was no room.
    others: Option<TableTotals>,
}

impl ByTable {
    /// The figures of a table, mutable.
    pub(crate) fn of(&mut self, name: &Arc<TableName>) -> &mut TableTotals {
        let place = match self.tables.last() {
            // Events of a table come in runs.
            Some((last, _)) if Arc::ptr_eq(last, name) => Some(self.tables.len() - 1),
            _ => self.place(name),
        };
        match place.and_then(|place| self.tables.get_mut(place)) {
            Some((_, totals)) => totals,
            None => self.others.get_or_insert_default(),
        }
    }

    fn place(&mut self, name: &Arc<TableName>) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        let memory = ENTRY + name.database.len() + name.table.len();
        if self.memory + memory > MEMORY {
            return None;
        }
        self.memory += memory;
        self.places.insert(Arc::clone(name), self.tables.len());
        self.tables.push((Arc::clone(name), TableTotals::default()));
        Some(self.tables.len() - 1)
    }

    /// Whether there is no table.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.others.is_none()
    }

    /// Adds the figures of a later part.
    pub(crate) fn add(&mut self, other: &ByTable) {
        for (name, totals) in &other.tables {
            self.of(name).add(totals);
        }
        if let Some(others) = &other.others {
            self.others.get_or_insert_default().add(others);
        }
    }

    /// Adds the tables of a transaction, whose events of `uncompressed` bytes take `compressed`.
    pub(crate) fn add_transaction(&mut self, tables: &ByTable, compressed: u64, uncompressed: u64) {
        let counted = |totals: &TableTotals| {
            let share = (u128::from(totals.uncompressed_bytes) * u128::from(compressed)) << 16;
            let share = share.checked_div(u128::from(uncompressed)).unwrap_or(0);
            TableTotals {
                transactions: 1,
                compressed_share: u64::try_from(share).unwrap_or(u64::MAX),
                ..*totals
            }
        };
        for (name, totals) in &tables.tables {
            self.of(name).add(&counted(totals));
        }
        if let Some(others) = &tables.others {
            self.others.get_or_insert_default().add(&counted(others));
        }
    }

    /// The number of tables.
    pub(crate) fn len(&self) -> usize {
        self.tables.len() + usize::from(self.others.is_some())
    }

    /// The tables, the one with the most bytes first; `None` for those that had no room.
    pub(crate) fn largest_first(&self) -> Vec<(Option<&TableName>, &TableTotals)> {
        let named = self.tables.iter().map(|(name, totals)| (Some(&**name), totals));
        let mut tables: Vec<_> = named.collect();
        tables.sort_by(|(a_name, a), (b_name, b)| {
            b.uncompressed_bytes.cmp(&a.uncompressed_bytes).then_with(|| a_name.cmp(b_name))
        });
        tables.extend(self.others.as_ref().map(|totals| (None, totals)));
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> Arc<TableName> {
        Arc::new(TableName { database: b"d"[..].into(), table: table.as_bytes().into() })
    }

    #[test]
    fn shares_of_many_small_transactions_add_up() {
        let mut all = ByTable::default();
        for _ in 0..1000 {
            let mut transaction = ByTable::default();
            transaction.of(&name("a")).uncompressed_bytes += 1;
            transaction.of(&name("b")).uncompressed_bytes += 2;
            all.add_transaction(&transaction, 1, 3);
        }
        let tables = all.largest_first();
        let shares: Vec<_> = tables.iter().map(|(_, totals)| totals.compressed_bytes()).collect();
        assert_eq!(shares, [667, 333]);
        assert_eq!(tables[0].1.transactions, 1000);
    }

    #[test]
    fn tables_without_room_are_counted_together() {
        let mut all = ByTable::default();
        let names: Vec<_> = (0..60_000).map(|number| name(&format!("table_{number}"))).collect();
        for name in names.iter().chain(&names) {
            all.of(name).rows.inserts += 1;
        }
        let tables = all.largest_first();
        assert_eq!(tables.iter().map(|(_, totals)| totals.rows.inserts).sum::<u64>(), 120_000);
        assert_eq!(tables.last().unwrap().0, None);
        assert!(all.tables.len() > 40_000 && all.memory <= MEMORY);
        assert_eq!(all.tables.iter().filter(|(_, totals)| totals.rows.inserts != 2).count(), 0);
    }
}
