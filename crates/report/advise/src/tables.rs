//! Bytes by table, for as many tables as fit into bounded memory.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_stats::TableName;
use binlogz_stats::size_class::CLASSES;

/// Bytes that the tables may take. Later tables are counted together.
const MEMORY: usize = 8 << 20;

/// Roughly, what one table takes besides its names and levels.
const ENTRY: usize = 320;

/// A table's part in transactions that would be compressed.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableFigures {
    pub(crate) transactions: u64,
    /// Bytes of its table maps and row events, by class of its transactions' size.
    pub(crate) bytes: [u64; CLASSES],
    /// The table's share of the payloads, by level, in 1/65536 of a byte: shares are mostly fractions.
    pub(crate) shares: Vec<u64>,
}

impl TableFigures {
    fn add(&mut self, other: &TableFigures) {
        self.transactions += other.transactions;
        for (bytes, other) in self.bytes.iter_mut().zip(other.bytes) {
            *bytes += other;
        }
        self.shares.resize(self.shares.len().max(other.shares.len()), 0);
        for (share, other) in self.shares.iter_mut().zip(&other.shares) {
            *share = share.saturating_add(*other);
        }
    }

    /// Bytes in transactions of any size.
    pub(crate) fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

/// Figures of tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct FiguresByTable {
    places: HashMap<Arc<TableName>, usize>,
    tables: Vec<(Arc<TableName>, TableFigures)>,
    memory: usize,
    /// The tables for which there was no room.
    others: Option<TableFigures>,
}

impl FiguresByTable {
    /// Adds a table's part of a transaction: `payloads` are the transaction's sizes by level, `whole` all its
    /// bytes.
    pub(crate) fn count(
        &mut self,
        name: &Arc<TableName>,
        bytes: u64,
        class: usize,
        whole: u64,
        payloads: impl ExactSizeIterator<Item = u64>,
    ) {
        let room = payloads.len();
        let figures = self.of(name, room);
        figures.transactions += 1;
        if let Some(known) = figures.bytes.get_mut(class) {
            *known += bytes;
        }
        figures.shares.resize(figures.shares.len().max(room), 0);
        for (known, payload) in figures.shares.iter_mut().zip(payloads) {
            let share = ((u128::from(bytes) * u128::from(payload)) << 16).checked_div(u128::from(whole));
            *known = known.saturating_add(u64::try_from(share.unwrap_or(0)).unwrap_or(u64::MAX));
        }
    }

    fn of(&mut self, name: &Arc<TableName>, levels: usize) -> &mut TableFigures {
        let place = self.places.get(name).copied().or_else(|| {
            let memory = ENTRY + name.database.len() + name.table.len() + levels * size_of::<u64>();
            if self.memory + memory > MEMORY {
                return None;
            }
            self.memory += memory;
            self.places.insert(Arc::clone(name), self.tables.len());
            self.tables.push((Arc::clone(name), TableFigures::default()));
            Some(self.tables.len() - 1)
        });
        match place.and_then(|place| self.tables.get_mut(place)) {
            Some((_, figures)) => figures,
            None => self.others.get_or_insert_default(),
        }
    }

    /// Adds the figures of a later piece.
    pub(crate) fn add(&mut self, other: &FiguresByTable) {
        for (name, figures) in &other.tables {
            self.of(name, figures.shares.len()).add(figures);
        }
        if let Some(others) = &other.others {
            self.others.get_or_insert_default().add(others);
        }
    }

    /// The figures of a table, if there are any.
    pub(crate) fn get(&self, name: Option<&TableName>) -> Option<&TableFigures> {
        match name {
            None => self.others.as_ref(),
            Some(name) => Some(&self.tables.get(*self.places.get(name)?)?.1),
        }
    }

    /// All figures, mutable.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Option<&TableName>, &mut TableFigures)> {
        let named = self.tables.iter_mut().map(|(name, figures)| (Some(&**name), figures));
        named.chain(self.others.iter_mut().map(|figures| (None, figures)))
    }

    /// The tables, the one with the most bytes first; `None` for those that had no room.
    pub(crate) fn largest_first(&self) -> Vec<(Option<&TableName>, &TableFigures)> {
        let mut tables: Vec<_> = self.tables.iter().map(|(name, figures)| (Some(&**name), figures)).collect();
        tables.sort_by(|(a_name, a), (b_name, b)| b.total().cmp(&a.total()).then_with(|| a_name.cmp(b_name)));
        tables.extend(self.others.as_ref().map(|figures| (None, figures)));
        tables
    }
}
