//! The tables of the logs: which key holds at each place, and which foreign keys change rows below the log.

use std::sync::Arc;

use binlogz_binlog::row::TableSchema;
use binlogz_flow::events::RunSummary;
use binlogz_flow::passes::statements::record_statements;
use binlogz_flow::{Error as FlowError, Input};
use binlogz_schema::{HistoryPlace, SchemaFile, TableHistory};

use crate::pass::CarryingKeys;
use crate::table::WrittenTable;

/// The tables of logs that are read ahead.
#[derive(Debug, Default)]
pub struct FoldTables {
    history: TableHistory,
    schema: Option<SchemaFile>,
    /// Those of now; `None`: they aren't known.
    keys: Option<CarryingKeys<'static>>,
    logs: u64,
}

/// Foreign keys as they are at each place of the logs.
pub(super) type KeysThen<'h> = Option<CarryingKeys<'h>>;

/// A table at a place of the logs, for folding.
#[derive(Debug)]
pub(super) struct TableToFold {
    pub(super) written: WrittenTable,
    /// The columns of a key that holds there; `None`: no key is known for certain.
    pub(super) key: Option<Vec<usize>>,
    /// The columns of all unique keys; none: they aren't known.
    pub(super) in_unique_keys: Vec<usize>,
    /// Whether statements of the logs or a schema tell this table.
    pub(super) is_told: bool,
}

impl FoldTables {
    /// The tables as they are after the logs, and the foreign keys that change rows of others, of all tables.
    pub fn new(schema: Option<SchemaFile>, keys: Option<CarryingKeys<'static>>) -> Self {
        FoldTables { schema, keys, ..FoldTables::default() }
    }

    /// Reads the statements of a log, in the order of the logs.
    ///
    /// # Errors
    ///
    /// A log that can't be read.
    pub fn read_ahead(&mut self, input: Input, workers: usize) -> Result<RunSummary, FlowError> {
        self.logs += 1;
        record_statements(input, workers, self.logs, &mut self.history)
    }

    /// All logs were read.
    pub fn settle(&mut self) {
        self.history.settle(self.schema.clone().unwrap_or_default());
    }

    /// Whether a table may have foreign keys, or others may refer to it.
    pub(super) fn is_bound(&self, database: &[u8], table: &[u8]) -> bool {
        let Some(schema) = self.schema.as_ref().filter(|schema| schema.table(database, table).is_some())
        else {
            return true;
        };
        let is = |name: (Option<&str>, &str)| {
            name.1.as_bytes() == table && name.0.is_none_or(|own| own.as_bytes() == database)
        };
        schema
            .foreign_keys()
            .any(|(own, child, key)| is((own, child)) || is((key.database.as_deref().or(own), &key.parent)))
    }

    /// The foreign keys under the names that their tables had then; `None`: they aren't known.
    pub(super) fn keys_then(&self) -> KeysThen<'_> {
        let keys = self.keys.as_ref()?;
        let then = keys.through(&self.history).unwrap_or_else(|| keys.clone());
        then.are_clear().then_some(then)
    }

    /// As long as this is the same, so are all tables.
    pub(super) fn era(&self, place: HistoryPlace) -> usize {
        self.history.statements_before(place)
    }

    /// The table of a map at a place.
    pub(super) fn at(&self, schema: &Arc<TableSchema>, place: HistoryPlace) -> TableToFold {
        match WrittenTable::of_history(schema, &self.history, place, false) {
            Ok(written) => {
                let key = written.key.clone();
                let in_unique_keys = match self.tells_unique_keys(schema, place) {
                    true => written.in_keys.iter().copied().collect(),
                    false => Vec::new(),
                };
                TableToFold { written, key, in_unique_keys, is_told: true }
            }
            Err(_) => TableToFold::of_map(schema),
        }
    }

    /// Whether a statement after a place may have changed the table of a map there.
    pub(super) fn changes_later(&self, schema: &TableSchema, place: HistoryPlace) -> bool {
        let [database, table] =
            [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name).into_owned());
        self.history.touches(place, &database, &table)
    }

    /// Whether all unique keys are known: from a place on the table is that of the schema, and no key of it is an expression.
    fn tells_unique_keys(&self, schema: &TableSchema, place: HistoryPlace) -> bool {
        let [database, table] =
            [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name).into_owned());
        let told = self.schema.as_ref().and_then(|file| file.table(&schema.database, &schema.table));
        told.is_some_and(|told| !told.has_key_of_expression())
            && !self.history.touches(place, &database, &table)
    }
}

impl TableToFold {
    /// A table of which nothing is known but its map.
    pub(super) fn of_map(schema: &Arc<TableSchema>) -> Self {
        let written = WrittenTable::new(schema, None);
        let key = written.key.clone();
        TableToFold { written, key, in_unique_keys: Vec::new(), is_told: false }
    }
}
