//! Rows of which a folded log has two changes: a delete, and an insert.

use std::collections::BTreeMap;

/// Which of a table's rows have two changes in a folded log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SplitRows {
    /// Rows whose key is the same, while a unique key has another value, or may have.
    OfOneKey,
    /// Also rows that got another key, or that have none: nothing tells which delete belongs to which insert.
    OfAnyKey,
}

/// The tables with such rows, as `database.table`.
pub type SplitTables = BTreeMap<String, SplitRows>;
