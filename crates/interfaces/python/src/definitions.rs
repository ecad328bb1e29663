//! The columns of a table over all of its definitions in logs that can be read twice: an Arrow stream has to say them
//! before its first row. The rows themselves come out of the feed.

use std::path::{Path, PathBuf};
use std::thread;

use binlogz_archive::input;
use binlogz_arrow::TableFields;
use binlogz_binlog::row::TableSchema;
use binlogz_flow::events::{self, BatchItem, EventBatch, RunSummary, TableEvent, WorkerTables};
use binlogz_flow::{Error, Input};

use crate::interrupt::InterruptFlag;
use crate::table::column_name;

/// The name of a table.
#[derive(Debug, Clone)]
pub(crate) struct DefinedName {
    pub(crate) database: String,
    pub(crate) table: String,
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

/// The columns of a table in these logs. It ends where a log can't be read: reading the rows says why.
pub(crate) fn of_table(paths: &[PathBuf], name: &DefinedName, interrupted: &InterruptFlag) -> TableFields {
    let mut found = TableFields::default();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    for path in paths {
        let Ok(input) = open(path, name) else { break };
        let work = |tables: &mut WorkerTables, batch: &mut EventBatch<'_>| {
            let mut part = TableFields::default();
            if let Err(error) = collect(tables, batch, name, &mut part) {
                batch.fail(error);
            }
            Ok(part)
        };
        let sink = |part| {
            found.join(part);
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

/// Opens a log; of one in an archive, the blocks that may have rows of the table.
fn open(path: &Path, name: &DefinedName) -> std::io::Result<Input> {
    match input::find(path)? {
        Some(archived) => archived
            .input_of(&mut |run| run.may_have_rows(&|rows| name.has(&rows.name.database, &rows.name.table))),
        None => Input::open(path),
    }
}

fn collect(
    tables: &mut WorkerTables,
    batch: &mut EventBatch<'_>,
    name: &DefinedName,
    found: &mut TableFields,
) -> Result<(), Error> {
    tables.begin(batch)?;
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        if let Some(TableEvent::Rows(schema, _)) = tables.event(&event)?
            && name.is_of(&schema)
        {
            add(found, &schema);
        }
    }
    Ok(())
}
