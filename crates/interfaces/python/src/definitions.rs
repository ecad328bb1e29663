//! The columns of a table over all of its definitions in logs that can be read twice: an Arrow stream has to say them
//! before its first row. The rows themselves come out of the feed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use binlogz_archive::input;
use binlogz_archive::part::TableRows;
use binlogz_arrow::TableFields;
use binlogz_binlog::EventHeader;
use binlogz_binlog::row::TableSchema;
use binlogz_flow::events::{self, BatchItem, EventBatch, RunSummary, TableEvent, WorkerTables};
use binlogz_flow::{Error, Input};
use pyo3::prelude::*;

use crate::broken;
use crate::interrupt::{InterruptFlag, interruptible};
use crate::known_tables::{self, TablesByPlace};
use crate::spark_types::spark_name;
use crate::table::column_name;

/// The name of a table.
#[derive(Debug, Clone)]
pub(crate) struct DefinedName {
    pub(crate) database: String,
    pub(crate) table: String,
}

impl std::fmt::Display for DefinedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

impl DefinedName {
    pub(crate) fn is_of(&self, schema: &TableSchema) -> bool {
        self.has(&schema.database, &schema.table)
    }

    fn has(&self, database: &[u8], table: &[u8]) -> bool {
        String::from_utf8_lossy(database) == self.database && String::from_utf8_lossy(table) == self.table
    }
}

/// Adds the columns of one definition.
pub(crate) fn add(fields: &mut TableFields, schema: &TableSchema) {
    for (index, column) in schema.columns().iter().enumerate() {
        fields.add(column_name(index, column), binlogz_arrow::of(column));
    }
}

/// Whether all of them are the same when they are read again: files and archives, no pipes.
pub(crate) fn can_be_read_twice(paths: &[PathBuf]) -> bool {
    let is_file = |path: &Path| path.metadata().is_ok_and(|data| data.is_file());
    paths.iter().all(|path| is_file(path) || input::find(path).is_ok_and(|found| found.is_some()))
}

/// The columns of a table as the statements of all these logs tell them, by their names, with Spark's names of their types.
#[pyfunction]
pub(crate) fn told_columns(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    database: String,
    table: String,
) -> PyResult<Vec<(String, String)>> {
    let name = DefinedName { database, table };
    let told = interruptible(py, move |interrupted| {
        let expanded = input::expand(paths).map_err(|error| error.to_string())?;
        Ok::<_, String>(of_table(&expanded, &name, interrupted).fields())
    })?;
    let fields = told.map_err(broken)?;
    Ok(fields.iter().map(|field| (field.name().clone(), spark_name(field.data_type()))).collect())
}

/// The columns of a table in these logs. It ends where a log can't be read: reading the rows says why.
pub(crate) fn of_table(paths: &[PathBuf], name: &DefinedName, interrupted: &InterruptFlag) -> TableFields {
    let mut found = TableFields::default();
    let mut known = TablesByPlace::default();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    for path in paths {
        let Ok(input) = open(path, name) else { break };
        known.begin_log(&path.file_name().unwrap_or_default().to_string_lossy());
        let work = |tables: &mut WorkerTables, batch: &mut EventBatch<'_>| {
            let mut part = Vec::new();
            if let Err(error) = collect(tables, batch, name, &mut part) {
                batch.fail(error);
            }
            Ok(part)
        };
        let known = &mut known;
        let sink = |part: Vec<DefinitionEvent>| {
            for event in part {
                match event {
                    DefinitionEvent::Map(offset, map) => add(&mut found, &known.complete(map, offset)),
                    DefinitionEvent::Other(offset, header, body) => known.learn(offset, &header, &body),
                }
            }
            interrupted.check().map_err(|error| Error::Output(error.into()))
        };
        // The feed tells of changes that can't be read.
        match events::run(input, workers, || Ok(WorkerTables::one_of(workers)), work, sink, &mut |_| {}) {
            Ok(RunSummary { read: _, unread: _ }) => {}
            Err(_) => break,
        }
    }
    found
}

/// An event that says what columns the table has.
enum DefinitionEvent {
    /// The map of rows at this offset.
    Map(u64, Arc<TableSchema>),
    /// A statement, or the begin or the end of a log.
    Other(u64, EventHeader, Box<[u8]>),
}

/// Opens a log; of one in an archive, the blocks that may have rows of the table or statements.
fn open(path: &Path, name: &DefinedName) -> std::io::Result<Input> {
    match input::find(path)? {
        Some(archived) => archived.input_of(&mut |run| {
            let has_table = |rows: TableRows<'_>| name.has(&rows.name.database, &rows.name.table);
            run.may_have_statements() || run.may_have_loose() || run.may_have_rows(&has_table)
        }),
        None => Input::open(path),
    }
}

fn collect(
    tables: &mut WorkerTables,
    batch: &mut EventBatch<'_>,
    name: &DefinedName,
    found: &mut Vec<DefinitionEvent>,
) -> Result<(), Error> {
    tables.begin(batch)?;
    // The last map of the table: as long as no statement comes between, it says the same.
    let mut last: Option<Arc<TableSchema>> = None;
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        let offset = event.position.offset;
        let header = event.header;
        if known_tables::may_tell(&header, event.body) && !event.is_inside_payload() {
            last = None;
            found.push(DefinitionEvent::Other(offset, header, event.body.into()));
        }
        if let Some(TableEvent::Rows(map, _)) = tables.event(&event)?
            && name.is_of(&map)
            && !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &map))
        {
            last = Some(Arc::clone(&map));
            found.push(DefinitionEvent::Map(offset, map));
        }
    }
    Ok(())
}
