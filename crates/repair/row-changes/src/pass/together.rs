//! Rows of other tables that were changed by the same statements as chosen rows: foreign keys and triggers changed them, or the
//! statement itself did. Choosing by table leaves them out, so they are counted and named.
//!
//! ```text
//! worker, a rows event at a time: the statement's table maps → has it chosen tables? → counts of the others' rows
//! follower, in order: had the statement a chosen row? → counts by table, once its transaction is over
//! ```

use std::collections::BTreeMap;
use std::mem;

use binlogz_binlog::event::{RowsEvent, RowsFlags, TableMapEvent};
use binlogz_figures::counted;

use crate::choose::RowSelection;

/// The tables of the statement that passes, as far as a worker knows them: all maps of a statement stand before its rows.
#[derive(Debug, Default)]
pub(super) struct StatementTables {
    has_chosen: bool,
    has_ended: bool,
}

impl StatementTables {
    /// A table map passes, where tables were named.
    pub(super) fn map(&mut self, map: &TableMapEvent<'_>, selection: &RowSelection) {
        if self.has_ended {
            *self = StatementTables::default();
        }
        self.has_chosen |= selection.has_table(map.database, map.table);
    }

    /// Rows pass; whether tables were named, and it may have rows of one.
    pub(super) fn rows(&mut self, rows: &RowsEvent<'_>) -> bool {
        self.has_ended = rows.flags.contains(RowsFlags::STMT_END);
        self.has_chosen
    }
}

/// Rows of a table: how many, and where the first is.
#[derive(Debug, Clone)]
struct RowsTogether {
    count: u64,
    /// Whether there are some that can't be counted.
    has_unread: bool,
    first: String,
}

impl RowsTogether {
    fn merge(into: &mut BTreeMap<String, RowsTogether>, from: &mut BTreeMap<String, RowsTogether>) {
        for (table, rows) in mem::take(from) {
            let all =
                into.entry(table).or_insert(RowsTogether { count: 0, has_unread: false, first: rows.first });
            all.count += rows.count;
            all.has_unread |= rows.has_unread;
        }
    }
}

/// Rows of other tables that were changed by the same statements as chosen rows, by table.
#[derive(Debug, Default)]
pub(crate) struct ChangesTogether {
    tables: BTreeMap<String, RowsTogether>,
    /// Those of the open transaction.
    open: BTreeMap<String, RowsTogether>,
    /// Those of the open statement, and whether it has a chosen row.
    statement: BTreeMap<String, RowsTogether>,
    has_chosen_row: bool,
}

impl ChangesTogether {
    /// Rows of another table, in the open statement; `None`: they can't be counted.
    pub(crate) fn add(&mut self, table: String, count: Option<u64>, first: impl FnOnce() -> String) {
        let rows = self.statement.entry(table).or_insert_with(|| RowsTogether {
            count: 0,
            has_unread: false,
            first: first(),
        });
        rows.count += count.unwrap_or(0);
        rows.has_unread |= count.is_none();
    }

    /// A chosen row, in the open statement.
    pub(crate) fn chosen_row(&mut self) {
        self.has_chosen_row = true;
    }

    /// The open statement ends.
    pub(crate) fn end_statement(&mut self) {
        if mem::take(&mut self.has_chosen_row) {
            RowsTogether::merge(&mut self.open, &mut self.statement);
        }
        self.statement.clear();
    }

    /// The open transaction ends; whether it was rolled back.
    pub(crate) fn end(&mut self, is_rolled_back: bool) {
        // One that was cut off.
        self.end_statement();
        if is_rolled_back {
            self.open.clear();
        }
        RowsTogether::merge(&mut self.tables, &mut self.open);
    }

    /// A line that names them, if there are any; `verb` is what isn't done with them.
    pub(crate) fn note(&self, verb: &str) -> Option<String> {
        let first = &self.tables.values().next()?.first;
        let named = self.tables.iter().map(|(table, rows)| match rows.has_unread {
            false => format!("{table} ({})", counted(rows.count, "rows")),
            true => format!("{table} (at least {})", counted(rows.count, "rows")),
        });
        Some(format!(
            "foreign keys, triggers or the statements themselves changed rows of other tables together with those chosen, which aren't \
             {verb}: {}; the first is {first}",
            named.collect::<Vec<_>>().join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_if_their_statement_has_a_chosen_one_and_their_transaction_stays() {
        let mut together = ChangesTogether::default();
        let mut statement = |rows: Option<u64>, has_chosen_row: bool, end: Option<bool>| {
            together.add("a.child".to_owned(), rows, || "log at 4".to_owned());
            if has_chosen_row {
                together.chosen_row();
            }
            together.end_statement();
            if let Some(is_rolled_back) = end {
                together.end(is_rolled_back);
            }
            together.note("undone").unwrap_or_default()
        };
        assert_eq!(statement(Some(1), false, Some(false)), "", "no chosen row");
        assert_eq!(statement(Some(2), true, None), "", "it is open");
        assert_eq!(statement(Some(2), true, Some(true)), "", "rolled back");
        assert!(statement(Some(3), true, Some(false)).contains("a.child (3 rows); the first is log at 4"));
        assert!(statement(None, true, Some(false)).contains("a.child (at least 3 rows)"));
        assert!(!together.has_chosen_row);
    }
}
