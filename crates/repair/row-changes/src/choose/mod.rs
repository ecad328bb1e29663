//! Chooses transactions and rows by everything that a user may choose by.

mod collations;
mod condition;
mod decision;
mod grammar;
mod keys;
mod literals;
mod numbers;
mod passed;
mod proof;
mod scalar;
mod weights;

use binlogz_binlog::EventType;
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::row::Row;

pub use condition::{Condition, ConditionError};
pub use keys::{KeySpan, WantedKeys};
pub use passed::PassedTables;
pub use proof::Doubt;
pub(crate) use weights::folded as letter_class;

use crate::table::WrittenTable;

/// Whether changes are taken back or made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The changes are taken back, the last one first.
    Undo,
    /// The changes are made again, in their order.
    Redo,
}

/// The operation of a row change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

impl Operation {
    pub(crate) fn of(kind: RowsKind) -> Self {
        match kind {
            RowsKind::Write => Operation::Insert,
            RowsKind::Update | RowsKind::PartialUpdate => Operation::Update,
            RowsKind::Delete => Operation::Delete,
        }
    }

    /// The type of the events that have such rows whole, with an image for each side.
    pub(crate) fn event_type(self) -> EventType {
        match self {
            Operation::Insert => EventType::WRITE_ROWS,
            Operation::Update => EventType::UPDATE_ROWS,
            Operation::Delete => EventType::DELETE_ROWS,
        }
    }

    /// The operation's SQL keyword.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Insert => "INSERT",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// The selection; everything by default.
#[derive(Debug, Clone, Default)]
pub struct RowSelection {
    /// Only these transactions.
    pub gtids: Option<GtidSet>,
    /// Only transactions committed at this time or later, in microseconds since 1970.
    pub start_time: Option<i64>,
    /// Only transactions committed before this time.
    pub stop_time: Option<i64>,
    /// Nothing from this transaction on.
    pub stop_before_gtid: Option<Gtid>,
    /// Only these tables, by database and table, which may be [`RowSelection::ALL_TABLES`]; all if empty.
    pub tables: Vec<(String, String)>,
    /// Only these operations; all if empty.
    pub operations: Vec<Operation>,
    /// Only transactions of these sessions; all if empty.
    pub thread_ids: Vec<u32>,
    /// Only rows that meet this.
    pub condition: Option<Condition>,
    /// The tables that passed, where some were named.
    pub passed: PassedTables,
}

/// Where to begin and to end in one log: a transaction is in the range if it begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first offset in the log, in bytes.
    pub start: u64,
    /// The offset that is too far.
    pub stop: u64,
}

impl Range {
    /// All of a log.
    pub const WHOLE: Range = Range { start: 0, stop: u64::MAX };
}

impl RowSelection {
    /// The name that stands for all tables of a database.
    pub const ALL_TABLES: &str = "*";

    /// The tables whose foreign keys matter; none for all: a key may lead to any table of a database.
    pub fn tables_of_keys(&self) -> &[(String, String)] {
        let has_databases = self.tables.iter().any(|(_, name)| name == Self::ALL_TABLES);
        if has_databases { &[] } else { &self.tables }
    }

    /// Whether rows of a table may be chosen.
    pub fn has_table(&self, database: &[u8], table: &[u8]) -> bool {
        self.tables.is_empty() || self.place_of(database, table).is_some()
    }

    /// The place of a table among those that were named.
    pub fn place_of(&self, database: &[u8], table: &[u8]) -> Option<usize> {
        let is = |(own, name): &(String, String)| {
            own.as_bytes() == database && (name == Self::ALL_TABLES || name.as_bytes() == table)
        };
        self.tables.iter().position(is)
    }

    /// The places of all names that mean a table, among those that were named.
    pub(crate) fn places_of(&self, database: &[u8], table: &[u8]) -> impl Iterator<Item = usize> {
        let named = self.tables.iter().enumerate().filter(move |(_, (own, name))| {
            own.as_bytes() == database && (name == Self::ALL_TABLES || name.as_bytes() == table)
        });
        named.map(|(place, _)| place)
    }

    /// Whether all rows of its tables are chosen, whatever their transactions, sessions and values are.
    pub(crate) fn has_all_rows(&self) -> bool {
        let RowSelection {
            gtids,
            start_time,
            stop_time,
            stop_before_gtid,
            tables: _,
            operations,
            thread_ids,
            condition,
            passed: _,
        } = self;
        let has_all_times = start_time.is_none() && stop_time.is_none();
        let has_all_transactions = gtids.is_none() && stop_before_gtid.is_none() && thread_ids.is_empty();
        has_all_times && has_all_transactions && operations.is_empty() && condition.is_none()
    }

    pub(crate) fn has_operation(&self, operation: Operation) -> bool {
        self.operations.is_empty() || self.operations.contains(&operation)
    }

    /// Whether a row of a table that was chosen is chosen too.
    pub(crate) fn has_row(&self, table: &WrittenTable, row: &Row<'_, '_>) -> Result<bool, ConditionError> {
        self.condition.as_ref().map_or(Ok(true), |condition| condition.is_met(table, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_chosen_only_where_nothing_is_asked_of_them() {
        let all = RowSelection::default;
        let tables = vec![("shop".to_owned(), "orders".to_owned())];
        assert!(all().has_all_rows() && RowSelection { tables, ..all() }.has_all_rows());
        for some in [
            RowSelection { gtids: Some(GtidSet::new()), ..all() },
            RowSelection { start_time: Some(1), ..all() },
            RowSelection { stop_time: Some(1), ..all() },
            RowSelection { stop_before_gtid: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1".parse().ok(), ..all() },
            RowSelection { operations: vec![Operation::Insert], ..all() },
            RowSelection { thread_ids: vec![7], ..all() },
            RowSelection { condition: Condition::parse("id = 1").ok(), ..all() },
        ] {
            assert!(!some.has_all_rows(), "{some:?}");
        }
    }
}
