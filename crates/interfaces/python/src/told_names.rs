//! The columns of tables as table maps have them, and the statements that may tell those that maps leave without names: where there
//! are some, rows can be read only where all statements before them are known. Of an archive, what its contents tell is not read.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use binlogz_archive::input;
use binlogz_archive::part::TableRows;
use binlogz_arrow::TableFields;
use binlogz_binlog::EventType;
use binlogz_binlog::event::QueryEvent;
use binlogz_binlog::row::TableSchema;
use binlogz_flow::events::{self, BatchItem, EventBatch, RunSummary, TableEvent, WorkerTables};
use binlogz_flow::{Error, Input};
use pyo3::prelude::*;

use crate::broken;
use crate::definitions::{self, DefinedName};
use crate::interrupt::{InterruptFlag, interruptible};
use crate::known_tables;
use crate::spark_types::spark_name;

/// Words of the statements that name columns, in lower case.
const NAMING_WORDS: [&str; 3] = ["create", "alter", "rename"];

/// What logs say of tables.
#[derive(Debug, Default)]
struct MetTables {
    /// The columns of the table that is asked for.
    fields: TableFields,
    /// Names of tables that have columns without names.
    nameless: BTreeSet<String>,
    /// Statements that may name columns.
    statements: BTreeSet<String>,
}

impl MetTables {
    fn join(&mut self, later: MetTables) {
        self.fields.join(later.fields);
        self.nameless.extend(later.nameless);
        self.statements.extend(later.statements);
    }

    fn take_table(&mut self, map: &TableSchema, wanted: Option<&DefinedName>) {
        if wanted.is_some_and(|wanted| !wanted.is_of(map)) {
            return;
        }
        if map.columns().iter().any(|column| column.name.is_none()) {
            self.nameless.insert(String::from_utf8_lossy(&map.table).into_owned());
        }
        if wanted.is_some() {
            definitions::add(&mut self.fields, map);
        }
    }

    fn take_statement(&mut self, statement: &[u8]) {
        let text = String::from_utf8_lossy(statement).to_lowercase();
        if NAMING_WORDS.iter().any(|word| text.contains(word)) {
            self.statements.insert(text);
        }
    }
}

/// A table's columns, by their names, with Spark's names of their types; tables that have columns without names; statements that
/// may name those.
type ToldTables = (Vec<(String, String)>, BTreeSet<String>, BTreeSet<String>);

/// What logs say of a table, or of all.
#[pyfunction]
#[pyo3(signature = (paths, table=None))]
pub(crate) fn met_tables(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    table: Option<(String, String)>,
) -> PyResult<ToldTables> {
    let wanted = table.map(|(database, table)| DefinedName { database, table });
    interruptible(py, move |interrupted| {
        let paths = input::expand(paths).map_err(|error| error.to_string())?;
        let mut met = MetTables::default();
        for path in paths {
            let read = read_log(&path, wanted.as_ref(), &mut met, interrupted);
            read.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let fields = met.fields.fields();
        let columns = fields.iter().map(|field| (field.name().clone(), spark_name(field.data_type())));
        Ok::<_, String>((columns.collect(), met.nameless, met.statements))
    })?
    .map_err(broken)
}

fn read_log(
    path: &Path,
    wanted: Option<&DefinedName>,
    met: &mut MetTables,
    interrupted: &InterruptFlag,
) -> Result<(), Error> {
    let input = open(path, wanted, met).map_err(|error| Error::Input(error.into()))?;
    let work = |tables: &mut WorkerTables, batch: &mut EventBatch<'_>| {
        let mut part = MetTables::default();
        if let Err(error) = collect(tables, batch, wanted, &mut part) {
            batch.fail(error);
        }
        Ok(part)
    };
    let sink = |part: MetTables| {
        met.join(part);
        interrupted.check().map_err(|error| Error::Output(error.into()))
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    // Changes that can't be read are told of where rows are read.
    let RunSummary { .. } =
        events::run(input, workers, || Ok(WorkerTables::one_of(workers)), work, sink, &mut |_| {})?;
    Ok(())
}

/// Opens a log; of one in an archive, the blocks that may have statements, or whose tables the archive doesn't tell.
fn open(path: &Path, wanted: Option<&DefinedName>, met: &mut MetTables) -> io::Result<Input> {
    let Some(archived) = input::find(path)? else { return Input::open(path) };
    archived.input_of(&mut |run| {
        let rows = run.rows();
        let are_told = rows.is_some_and(|rows| rows.iter().all(|rows| take_listed(rows, wanted, met)));
        !are_told || run.may_have_statements()
    })
}

/// Takes a table of an archive's contents; `false`: they don't have its columns.
fn take_listed(rows: &TableRows<'_>, wanted: Option<&DefinedName>, met: &mut MetTables) -> bool {
    let Ok(Some(schema)) = rows.name.schema() else { return false };
    met.take_table(&schema, wanted);
    true
}

fn collect(
    tables: &mut WorkerTables,
    batch: &mut EventBatch<'_>,
    wanted: Option<&DefinedName>,
    met: &mut MetTables,
) -> Result<(), Error> {
    tables.begin(batch)?;
    while let Some(item) = batch.next_item() {
        let BatchItem::Event(event) = item else { continue };
        let is_statement = event.header.event_type == EventType::QUERY && !event.is_inside_payload();
        if is_statement && known_tables::may_tell(&event.header, event.body) {
            let query = QueryEvent::decode(event.body).map_err(|error| event.error(error))?;
            met.take_statement(query.statement);
        }
        if let Some(TableEvent::Rows(map, _)) = tables.event(&event)? {
            met.take_table(&map, wanted);
        }
    }
    Ok(())
}
