//! The rows of an event of a parent that a foreign key may have carried on, as far as its columns tell.

use std::borrow::Cow;

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::row::Row;
use binlogz_schema::{ColumnsNow, DefinedTable, HistoryPlace, TableHistory, TableThen};

use super::changed_cells::{differs, places_of};
use crate::choose::Operation;
use crate::table::WrittenTable;

/// An event with rows that foreign keys may have carried on to others.
pub(crate) struct EventOfParent<'e> {
    /// The format description of the log that the event is in.
    pub(crate) source: &'e FormatDescription,
    pub(crate) place: HistoryPlace,
    pub(crate) operation: Operation,
    pub(crate) table: &'e WrittenTable,
    /// The table as a schema has it.
    pub(crate) told: Option<&'e DefinedTable>,
}

/// Which rows of an event are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsAsked {
    All,
    /// Changes of the tables that are asked for.
    Chosen,
    /// All changes but those of these tables.
    Others,
}

/// The rows of an event that a foreign key may have carried on.
#[derive(Debug)]
pub(super) struct CarriedRows {
    pub(super) asked: RowsAsked,
    /// The columns to which it refers, by their places: an UPDATE of others isn't carried on. `None`: they aren't known.
    pub(super) columns: Option<Vec<usize>>,
}

impl CarriedRows {
    pub(super) fn have(&self, operation: Operation, row: &Row<'_, '_>, is_row_chosen: bool) -> bool {
        let is_asked = match self.asked {
            RowsAsked::All => true,
            RowsAsked::Chosen => is_row_chosen,
            RowsAsked::Others => !is_row_chosen,
        };
        let changes = |columns: &Vec<usize>| columns.iter().any(|column| differs(row, *column));
        is_asked
            && match operation {
                Operation::Insert => false,
                Operation::Delete => true,
                Operation::Update => self.columns.as_ref().is_none_or(changes),
            }
    }
}

impl EventOfParent<'_> {
    /// The database and the name of the table.
    pub(super) fn names(&self) -> [Cow<'_, str>; 2] {
        let schema = &self.table.schema;
        [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name))
    }

    /// Whether statements after it may have changed the table.
    fn is_touched(&self, at: Option<(&TableHistory, HistoryPlace)>) -> bool {
        let [database, table] = self.names();
        at.is_some_and(|(history, place)| history.touches(place, &database, &table))
    }

    /// The columns that have these names now; `None`: not all of them are known.
    pub(super) fn columns_of_now(
        &self,
        at: Option<(&TableHistory, HistoryPlace)>,
        names: &[String],
    ) -> Option<Vec<usize>> {
        if names.is_empty() {
            return None;
        }
        let Some((history, place)) = at.filter(|_| self.is_touched(at)) else {
            return places_of(self.table, names.iter().map(String::as_str));
        };
        let [database, table] = self.names();
        match history.at(place, &database, &table) {
            TableThen::Known(then) if then.unfit(&self.table.schema).is_none() => {}
            TableThen::Known(_)
            | TableThen::UnknownSince(_)
            | TableThen::Disagrees(_)
            | TableThen::NotTold => return None,
        }
        let ColumnsNow::Kept { columns, .. } = history.columns_now(place, &database, &table) else {
            return None;
        };
        let place_then = |name: &String| {
            columns.iter().position(|column| {
                column.as_ref().is_some_and(|column| column.now.name.eq_ignore_ascii_case(name))
            })
        };
        names.iter().map(place_then).collect()
    }

    /// The columns to which any foreign key can refer: those of the table's indexes. `None`: they aren't known, or were others then.
    pub(super) fn columns_of_indexes(&self, at: Option<(&TableHistory, HistoryPlace)>) -> Option<Vec<usize>> {
        let told = self.told.filter(|told| told.unfit(&self.table.schema).is_none() && !self.is_touched(at));
        places_of(self.table, told?.columns_of_indexes())
    }
}
