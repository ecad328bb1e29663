//! User tables: which ones the logs have, and their columns. An archive knows them by its blocks; in other logs, table
//! maps are read before the first query of a table.
//!
//! Over DDL a table has the columns of all its table maps with rows, in the order in which they first appear.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use binlogz_archive::format::contents::ListedTable;
use binlogz_archive::part::{BlockRun, TableRows};
use binlogz_arrow::TableFields;
use binlogz_binlog::row::TableSchema;
use binlogz_flow::Error;
use binlogz_flow::events::{
    self, BatchItem, EventBatch, RunSummary, TableEvent, UnreadChanges, WorkerTables,
};
use binlogz_schema::HistoryPlace;
use datafusion::arrow::datatypes::Fields;

use crate::error::LogError;
use crate::logs::{Logs, ToldTable};

/// The columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserColumns {
    all: TableFields,
    /// The names of the columns that are in primary keys.
    keys: BTreeSet<String>,
}

impl UserColumns {
    /// As the fields of a row image.
    pub(crate) fn fields(&self) -> Fields {
        self.all.fields()
    }

    /// The columns of primary keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        // Fields have the name that a column had first.
        self.keys.iter().filter_map(|key| self.all.name_of(key))
    }

    /// Adds the columns of the image before the change: they come first.
    pub(crate) fn after(&mut self, before: &Fields) {
        let mut all = TableFields::default();
        before.iter().for_each(|field| all.add(field.name().clone(), field.data_type().clone()));
        all.join(std::mem::take(&mut self.all));
        self.all = all;
    }

    fn add(&mut self, map: &Arc<TableSchema>, place: HistoryPlace, logs: &Logs) {
        let (ToldTable { schema, names, key }, _) = logs.told(map, place);
        self.keys.extend(key.iter().filter_map(|&key| names.get(key).cloned()));
        for (name, column) in names.into_iter().zip(schema.columns()) {
            self.all.add(name, binlogz_arrow::of(column));
        }
    }

    fn join(&mut self, later: UserColumns) {
        self.keys.extend(later.keys);
        self.all.join(later.all);
    }
}

/// The columns of a table; `None`: no log has changes of it.
pub(crate) fn columns(
    logs: &Logs,
    database: &str,
    table: &str,
    workers: usize,
) -> Result<Option<UserColumns>, LogError> {
    let is_it = |other: &str, name: &str| other == database && name == table;
    let has_rows = |rows: TableRows<'_>| {
        let (database, table) = name_of(&rows.name.database, &rows.name.table);
        is_it(&database, &table)
    };
    let is_wanted = |_: usize, run: Option<&BlockRun<'_>>| run.is_none_or(|run| run.may_have_rows(&has_rows));
    let found = tables(logs, workers, &is_wanted, &is_it)?;
    Ok(found.into_values().next())
}

/// All tables, by database and name.
pub(crate) fn names(logs: &Logs, workers: usize) -> Result<BTreeSet<(String, String)>, LogError> {
    let mut found = BTreeSet::new();
    let collect = |collector: &mut BTreeSet<(String, String)>, schema: &Arc<TableSchema>, _| {
        collector.insert(name_of(&schema.database, &schema.table));
    };
    let tell = |collector: &mut BTreeSet<(String, String)>, name: &ListedTable, _| {
        collector.insert(name_of(&name.database, &name.table));
        true
    };
    let has_rows = |_: usize, run: Option<&BlockRun<'_>>| run.is_none_or(|run| run.may_have_rows(&|_| true));
    each_log(logs, workers, &has_rows, &|_| 0, tell, collect, |part| found.extend(part))?;
    Ok(found)
}

/// All tables that `has_table` takes, by database and name, with their columns, in the parts of the logs that are wanted:
/// a log's number, and a part of it; without a part, the log.
pub(crate) fn tables(
    logs: &Logs,
    workers: usize,
    is_wanted: &dyn Fn(usize, Option<&BlockRun<'_>>) -> bool,
    has_table: &(dyn Fn(&str, &str) -> bool + Sync),
) -> Result<BTreeMap<(String, String), UserColumns>, LogError> {
    let mut found: BTreeMap<(String, String), UserColumns> = BTreeMap::new();
    logs.tables()?;
    let collect =
        |collector: &mut BTreeMap<(String, String), UserColumns>, schema: &Arc<TableSchema>, place| {
            let (database, table) = name_of(&schema.database, &schema.table);
            if has_table(&database, &table) {
                collector.entry((database, table)).or_default().add(schema, place, logs);
            }
        };
    let tell = |collector: &mut BTreeMap<(String, String), UserColumns>, name: &ListedTable, place| {
        let (database, table) = name_of(&name.database, &name.table);
        if !has_table(&database, &table) {
            return true;
        }
        let place = match logs.may_change(&name.database, &name.table) {
            true => place,
            false => Some(HistoryPlace::default()),
        };
        // Without one place of all its rows, the places of table maps tell its columns.
        place.is_some_and(|place| {
            told(name, |schema| {
                let columns = collector.entry((database, table)).or_default();
                columns.add(&Arc::new(schema), place, logs);
            })
        })
    };
    each_log(logs, workers, is_wanted, &|place| logs.era(place), tell, collect, |part| {
        part.into_iter().for_each(|(name, columns)| found.entry(name).or_default().join(columns));
    })?;
    Ok(found)
}

/// Database and name of a table.
fn name_of(database: &[u8], table: &[u8]) -> (String, String) {
    let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).into_owned());
    (database, table)
}

/// Passes on a table as an archive tells it; `false`: it doesn't.
fn told(name: &ListedTable, take: impl FnOnce(TableSchema)) -> bool {
    // A definition that can't be read is in blocks too, whose error says more.
    name.schema().ok().flatten().map(take).is_some()
}

/// Goes through the tables with rows in the logs and parts of logs that are wanted. `tell` takes those that an archive tells,
/// unless it needs the table map; `collect` takes table maps. Both get a place, again for each `era` in which the table may have other
/// columns. `tell` gets none where blocks have rows of several.
fn each_log<C: Default + Send>(
    logs: &Logs,
    workers: usize,
    is_wanted: &dyn Fn(usize, Option<&BlockRun<'_>>) -> bool,
    era: &(dyn Fn(HistoryPlace) -> usize + Sync),
    tell: impl Fn(&mut C, &ListedTable, Option<HistoryPlace>) -> bool,
    collect: impl Fn(&mut C, &Arc<TableSchema>, HistoryPlace) + Sync,
    mut sink: impl FnMut(C),
) -> Result<(), LogError> {
    let _pass = logs.pass(|index| is_wanted(index, None));
    for index in 0..logs.len() {
        if !is_wanted(index, None) {
            continue;
        }
        let mut known = C::default();
        let mut names = HashSet::new();
        let input = logs.open(index, &mut |run: &BlockRun<'_>| {
            let Some(rows) = run.rows().filter(|_| is_wanted(index, Some(run))) else {
                return is_wanted(index, Some(run));
            };
            let begin = Logs::place(index, run.start());
            let end = run.end().map(|end| Logs::place(index, end));
            let eras = (era(begin), end.map(era));
            let place = (eras.1 == Some(eras.0)).then_some(begin);
            // Blocks share the names of their tables, which are told once.
            !rows.iter().all(|rows| {
                let name: *const ListedTable = rows.name;
                names.contains(&(name, eras))
                    || tell(&mut known, rows.name, place) && names.insert((name, eras))
            })
        })?;
        sink(known);
        let work = |known: &mut KnownTables, batch: &mut EventBatch<'_>| {
            let mut part = C::default();
            let mut collect = |schema: &Arc<TableSchema>, place| collect(&mut part, schema, place);
            let places = (index, era);
            if let Err(error) = known.batch(batch, places, &mut collect) {
                batch.fail(error);
            }
            Ok(part)
        };
        let new_worker = || Ok(KnownTables::new(workers));
        let sink = |part| {
            sink(part);
            Ok(())
        };
        let ran = events::run(input, workers, new_worker, work, sink, &mut |_| {});
        // The names of tables and columns are asked for. A caller that reads their rows is told of rows that can't be
        // read.
        let RunSummary { read, unread: _ } = ran.map_err(|error| logs.error(index, &error))?;
        logs.ended(index, &RunSummary { read, unread: UnreadChanges::default() })?;
    }
    Ok(())
}

/// The tables that a worker has seen in a batch: most come again and again.
struct KnownTables {
    tables: WorkerTables,
    seen: HashMap<(usize, usize), Arc<TableSchema>>,
}

impl KnownTables {
    fn new(workers: usize) -> Self {
        KnownTables { tables: WorkerTables::one_of(workers), seen: HashMap::new() }
    }

    fn batch(
        &mut self,
        batch: &mut EventBatch<'_>,
        (index, era): (usize, &(dyn Fn(HistoryPlace) -> usize + Sync)),
        collect: &mut dyn FnMut(&Arc<TableSchema>, HistoryPlace),
    ) -> Result<(), Error> {
        self.seen.clear();
        self.tables.begin(batch)?;
        while let Some(item) = batch.next_item() {
            let BatchItem::Event(event) = item else { continue };
            let Some(TableEvent::Rows(schema, _)) = self.tables.event(&event)? else { continue };
            // While it is held here, no other has its address.
            let address = Arc::as_ptr(&schema) as usize;
            let place = Logs::place(index, event.position.offset);
            if let Entry::Vacant(entry) = self.seen.entry((address, era(place))) {
                collect(&schema, place);
                entry.insert(schema);
            }
        }
        Ok(())
    }
}
