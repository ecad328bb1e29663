//! Tables as rows are written of them: what they were at a place of the logs, where that is known.

use std::sync::Arc;

use binlogz_binlog::row::TableSchema;
use binlogz_schema::{ColumnsNow, HistoryPlace, SchemaFile, TableThen, TurningPoint};

use super::shortened::shortened;
use super::{HistoryUse, OTHER_SCHEMA};
use crate::table::WrittenTable;

/// A table as it was at a place of the logs, or else as it is now.
pub(crate) fn written_table(
    schema: &Arc<TableSchema>,
    (file, history): (Option<&SchemaFile>, Option<HistoryUse<'_>>),
    place: HistoryPlace,
) -> WrittenTable {
    let then = history
        .map(|HistoryUse { history, as_now }| WrittenTable::of_history(schema, history, place, as_now));
    match then {
        None => WrittenTable::new(schema, file),
        Some(Ok(table)) => table,
        Some(Err(turn)) => {
            let mut table = WrittenTable::new(schema, file);
            if let (Some(unfit), Some(turn)) = (&mut table.unfit, turn) {
                *unfit = format!("its table was changed after it ({})", shortened(&turn.statement));
            }
            let is_named = schema.columns().iter().all(|column| column.name.is_some());
            if let Some(turn) = disagreeing(schema, history, place).filter(|_| !is_named) {
                table.unfit = Some(format!("{OTHER_SCHEMA} ({})", shortened(&turn.statement)));
            } else if let Some(turn) = gone(schema, history, place).filter(|_| !table.has_names) {
                let by = shortened(&turn.statement);
                table.unfit.get_or_insert_with(|| {
                    format!("its table has another name, other rows or is gone since ({by}), and the log has no column names")
                });
            }
            table
        }
    }
}

/// The statement that dropped the table that is to be changed as it is now, gave it another name or took rows from it.
fn gone<'h>(
    schema: &TableSchema,
    history: Option<HistoryUse<'h>>,
    place: HistoryPlace,
) -> Option<&'h TurningPoint> {
    let HistoryUse { history, as_now } = history?;
    let [database, table] =
        [&schema.database, &schema.table].map(|name| std::str::from_utf8(name).unwrap_or_default());
    match history.columns_now(place, database, table) {
        ColumnsNow::GoneSince(turn) if as_now => Some(turn),
        _ => None,
    }
}

/// The statement by which the table of now is another one than the logs make of it.
fn disagreeing<'h>(
    schema: &TableSchema,
    history: Option<HistoryUse<'h>>,
    place: HistoryPlace,
) -> Option<&'h TurningPoint> {
    let [database, table] =
        [&schema.database, &schema.table].map(|name| std::str::from_utf8(name).unwrap_or_default());
    match history?.history.at(place, database, table) {
        TableThen::Disagrees(turn) => Some(turn),
        _ => None,
    }
}
