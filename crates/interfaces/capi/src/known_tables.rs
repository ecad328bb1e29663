//! Tables as a schema and the statements of the log tell them: names of columns, members of ENUM and SET, by the table's structure at each
//! row's place. The log is read ahead for its statements.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use binlogz_binlog::row::TableSchema;
use binlogz_flow::passes::statements::record_statements;
use binlogz_flow::{Input, RowChange};
use binlogz_schema::{
    CompletedTable, HistoryPlace, SchemaFile, SchemaFileError, TableHistory, TablesOfLogs, TablesSoFar,
};

use crate::status::{CallTrouble, Result};

/// The number of the log in its history.
const LOG: u64 = 1;

/// The tables of one log, at each of its places.
pub(crate) struct TablesOfLog {
    tables: TablesOfLogs,
    /// The last table that was asked for: its map, the statements before it, the answer.
    last: Option<(TableSchema, usize, CompletedTable)>,
}

impl TablesOfLog {
    /// Reads a schema, that of the end of this log, and the statements of the log.
    pub(crate) fn read(log: &Path, schema: &Path) -> Result<Self> {
        let kind = fs::metadata(log).map_err(|error| CallTrouble::io(log, &error))?;
        if !kind.is_file() {
            let name = log.display();
            return Err(CallTrouble::argument(format!("{name} is no file: with a schema it is read twice")));
        }
        let schema = schema_of(schema)?;
        let mut history = TableHistory::default();
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let input = Input::open(log).map_err(|error| CallTrouble::io(log, &error))?;
        // Events that can't be read are told where the changes are.
        let read = record_statements(input, workers, LOG, &mut history);
        drop(read.map_err(|error| CallTrouble::in_log(log, &error))?);
        history.settle(schema.clone());
        let tables = TablesOfLogs::of_history(history, schema, vec![log.display().to_string()]);
        Ok(TablesOfLog { tables, last: None })
    }

    /// The table of a change, as it was then.
    ///
    /// # Errors
    ///
    /// Why that isn't known: a statement after which it isn't, columns that the schema has otherwise.
    pub(crate) fn of_change(&mut self, change: &RowChange) -> Result<Arc<TableSchema>> {
        if change.position.log > 0 {
            return Err(CallTrouble::input(
                "the file has several logs, expected one: a schema is of the end of one",
            ));
        }
        let place = HistoryPlace { log: LOG, offset: change.position.offset };
        let so_far = TablesSoFar::default();
        let map = change.table();
        let era = self.tables.era(place, &so_far);
        let last = self.last.take().filter(|(own, own_era, _)| (own, *own_era) == (map, era));
        let (_, _, completed) = self.last.insert(last.unwrap_or_else(|| {
            let completed = self.tables.complete(&Arc::new(map.clone()), place, &so_far);
            (map.clone(), era, completed)
        }));
        match &completed.problem {
            None => Ok(Arc::clone(&completed.schema)),
            Some(problem) => Err(CallTrouble::input(format!("{}: {problem}", change.table_name()))),
        }
    }
}

fn schema_of(path: &Path) -> Result<SchemaFile> {
    let size = fs::metadata(path).map_err(|error| CallTrouble::io(path, &error))?.len();
    let wrong = |error| CallTrouble::input(error).behind(&path.display().to_string());
    if size > SchemaFile::SIZE_MAX {
        return Err(wrong(SchemaFileError::TooLarge(size)));
    }
    let bytes = fs::read(path).map_err(|error| CallTrouble::io(path, &error))?;
    SchemaFile::parse(&String::from_utf8_lossy(&bytes)).map_err(wrong)
}
