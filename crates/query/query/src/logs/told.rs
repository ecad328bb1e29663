//! Names and types of columns from `--schema` and from the statements of the logs, where the events lack them.
//!
//! All statements are read before the first table is asked for: a table's columns at a place depend on those before and after it.

use std::sync::Arc;

use binlogz_archive::input;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::row::TableSchema;
use binlogz_flow::passes::statements::record_statements;
use binlogz_flow::{FactsUpTo, Input, LogFacts, NotInSequence, check_sequence};
use binlogz_schema::{HistoryPlace, SchemaFile, TableHistory, TablesOfLogs, TablesSoFar, names_lacking};

use super::inputs::{Logs, SchemaTime};
use crate::error::LogError;

/// A table at a place: its map, with what is told besides.
#[derive(Debug, Clone)]
pub(crate) struct ToldTable {
    pub(crate) schema: Arc<TableSchema>,
    /// The names of its columns. One without a name is `@1`, `@2`, as mysqlbinlog has it.
    pub(crate) names: Vec<String>,
    /// The columns of its primary key, as far as it is known.
    pub(crate) key: Vec<usize>,
}

impl Logs {
    /// The place of an offset in a log.
    pub(crate) fn place(index: usize, offset: u64) -> HistoryPlace {
        HistoryPlace { log: index as u64 + 1, offset }
    }

    /// The tables, if a schema is given. The first call reads the statements of all logs.
    ///
    /// # Errors
    ///
    /// Logs that can't be read, or have statements and don't continue one another in any order.
    pub(crate) fn tables(&self) -> Result<Option<&TablesOfLogs>, LogError> {
        let Some(schema) = self.schema_file() else { return Ok(None) };
        self.read_once(|| self.read_statements(schema).map_err(|LogError(line)| line)).map(Some)
    }

    /// The tables as far as they tell which columns to mask.
    ///
    /// # Errors
    ///
    /// Logs that can't be read; with a schema, logs that aren't in their order.
    pub(super) fn tables_for_masks(&self) -> Result<TablesOfLogs, LogError> {
        let Some(now) = self.schema_file() else { return Ok(TablesOfLogs::forward(None)) };
        if self.are_in_order()? {
            return self.read_statements(now);
        }
        Err(LogError(
            "the logs are not in their order, or some are there twice, so that nobody knows which columns to mask"
                .to_owned(),
        ))
    }

    fn read_statements(&self, now: &SchemaFile) -> Result<TablesOfLogs, LogError> {
        let _pass = self.pass(|_| true);
        let mut history = TableHistory::default();
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut names = Vec::new();
        for index in 0..self.len() {
            let input = self.open(index, &mut |run| run.may_have_statements())?;
            let number = Logs::place(index, 0).log;
            // Events that can't be read are named where they are asked for.
            drop(
                record_statements(input, workers, number, &mut history)
                    .map_err(|error| self.error(index, &error))?,
            );
            names.push(self.path(index).to_owned());
        }
        // They tell what tables were if all of them are there, in their order.
        if history.statements_before(HistoryPlace::END) > 0 && !self.are_in_order()? {
            let line = "the logs are not in their order, or some are there twice, so their statements don't tell what tables were: all \
                        have the columns that --schema gives them";
            self.tell_once(line.to_owned())?;
            history = TableHistory::default();
        }
        let last = self.len().saturating_sub(1);
        let SchemaTime { begin, end } = self.schema_time();
        let [begin, end] = [begin, end].map(|offset| Logs::place(last, offset));
        if history.statements_before(begin) != history.statements_before(end) {
            let log = self.path(last);
            return Err(LogError(format!(
                "{log}: DDL was logged while the schema was read; repeat the command"
            )));
        }
        history.settle_at(now.clone(), Some(end));
        Ok(TablesOfLogs::of_history(history, now.clone(), names))
    }

    /// Whether the logs continue one another as they were given. An error: not in any order.
    fn are_in_order(&self) -> Result<bool, LogError> {
        // A server sends its logs in their order.
        if self.are_received() {
            return Ok(true);
        }
        let given: Vec<usize> = (0..self.len()).collect();
        if self.check_order(&given).is_ok() {
            return Ok(true);
        }
        let name = |index: &usize| self.path(*index).rsplit('/').next().unwrap_or_default().to_owned();
        let mut sorted = given;
        sorted.sort_by_key(name);
        sorted.dedup_by_key(|index| name(index));
        self.check_order(&sorted).map(|()| false)
    }

    /// Whether these logs continue one another.
    fn check_order(&self, logs: &[usize]) -> Result<(), LogError> {
        let mut facts = logs
            .iter()
            .map(|index| self.facts(*index, FactsUpTo::FirstTransaction))
            .collect::<Result<Vec<_>, _>>()?;
        let whole = &mut |place: usize| {
            let index = logs.get(place).copied().unwrap_or_default();
            self.facts_to_end(index).map_err(OrderError)
        };
        // Where only the logs' numbers tell, they tell enough.
        check_sequence(&mut facts, whole).map(drop).map_err(|OrderError(LogError(line))| {
            LogError(format!(
                "{line}; --schema needs logs that continue one another, since their statements tell what tables were"
            ))
        })
    }

    /// All transactions up to the end of the logs, those before the logs too.
    ///
    /// # Errors
    ///
    /// Logs that can't be read, whose transactions have no GTIDs, or which aren't those of one server.
    pub(crate) fn executed(&self) -> Result<GtidSet, LogError> {
        let unknown = |path: &str, why: &str| {
            LogError(format!("{path}: {why}, so the end of the logs isn't known; AS OF names a moment"))
        };
        let mut befores = Vec::new();
        for index in 0..self.len() {
            let facts = self.facts(index, FactsUpTo::FirstTransaction)?;
            let before =
                facts.previous.ok_or_else(|| unknown(&facts.name, "doesn't tell the GTIDs before it"))?;
            befores.push(before);
        }
        let mut last = GtidSet::new();
        befores.iter().for_each(|before| last.union(before));
        let mut all = last.clone();
        let mut has_last = false;
        for (index, before) in befores.iter().enumerate() {
            if *before != last {
                continue;
            }
            has_last = true;
            let facts = self.facts(index, FactsUpTo::End)?;
            if facts.has_anonymous {
                return Err(unknown(&facts.name, "has transactions without GTID"));
            }
            let own = facts.gtids.ok_or_else(|| unknown(&facts.name, "doesn't tell its GTIDs"))?;
            all.union(&own);
        }
        match has_last {
            true if all.is_empty() => Err(LogError(
                "the logs have no transaction with a GTID, so their end isn't known; AS OF names a moment"
                    .to_owned(),
            )),
            true => Ok(all),
            false => Err(LogError(
                "the logs are of several servers, so they have no end that is one moment; AS OF names one"
                    .to_owned(),
            )),
        }
    }

    /// The facts of a log that tell which one it follows.
    pub(super) fn facts(&self, index: usize, up_to: FactsUpTo) -> Result<LogFacts, LogError> {
        let path = self.path(index).to_owned();
        if let Some(file) = self.path_of(index)
            && let Some(archived) = input::find(file).map_err(|error| LogError(format!("{path}: {error}")))?
        {
            return archived.facts(path.clone()).map_err(|error| LogError(format!("{path}: {error}")));
        }
        match self.open(index, &mut |_| true)? {
            Input::Places(places) | Input::Seek { places, .. } => {
                let facts = LogFacts::read(path.clone(), places.as_ref(), up_to);
                facts.map_err(|error| LogError(format!("{path}: {error}")))
            }
            _ => Ok(LogFacts { name: path, ..LogFacts::default() }),
        }
    }

    /// The same facts, with those of its end: an archived log is restored for these.
    pub(super) fn facts_to_end(&self, index: usize) -> Result<LogFacts, LogError> {
        let mut facts = self.facts(index, FactsUpTo::End)?;
        if !facts.is_end_known
            && let Input::Stream(stream) | Input::Sparse { stream, .. } = self.open(index, &mut |_| true)?
        {
            let read = facts.read_end(stream);
            read.map_err(|error| LogError(format!("{}: {error}", facts.name)))?;
        }
        Ok(facts)
    }

    /// Whether statements of the logs may have changed a table, so that what it is depends on the place.
    pub(crate) fn may_change(&self, database: &[u8], table: &[u8]) -> bool {
        let [database, table] = [database, table].map(String::from_utf8_lossy);
        match self.tables() {
            Ok(None) => false,
            Ok(Some(tables)) => tables.may_change(&database, &table),
            Err(_) => true,
        }
    }

    /// As long as this is the same, so are all tables.
    pub(crate) fn era(&self, place: HistoryPlace) -> usize {
        match self.tables() {
            Ok(Some(tables)) => tables.era(place, &TablesSoFar::default()),
            Ok(None) | Err(_) => 0,
        }
    }

    /// The table of a map at a place, and what isn't known of it, if it should be.
    pub(crate) fn told(&self, map: &Arc<TableSchema>, place: HistoryPlace) -> (ToldTable, Option<String>) {
        // An error ended the query before.
        let tables = self.tables().ok().flatten();
        let completed = tables.map(|tables| tables.complete(map, place, &TablesSoFar::default()));
        let (schema, key, note) = match completed {
            Some(completed) => {
                let note = completed.note();
                (completed.schema, completed.key, note)
            }
            None => (Arc::clone(map), Vec::new(), None),
        };
        let logged_key: Vec<_> = (map.columns().iter().enumerate())
            .filter(|(_, column)| column.primary_key.is_some())
            .map(|(index, _)| index)
            .collect();
        let key = if logged_key.is_empty() { key } else { logged_key };
        let name = |(index, name): (usize, &Option<Box<[u8]>>)| match name {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => format!("@{}", index + 1),
        };
        let names = schema.columns().iter().map(|column| &column.name).enumerate().map(name).collect();
        (ToldTable { schema, names, key }, note)
    }

    /// The table of a map at a place where its rows are read: what isn't known is told once, and [`Logs::unread`] says so.
    ///
    /// # Errors
    ///
    /// What isn't known in a part of a query that another machine asked for: it sees no lines.
    pub(crate) fn told_of_rows(
        &self,
        map: &Arc<TableSchema>,
        place: HistoryPlace,
    ) -> Result<ToldTable, LogError> {
        let (table, note) = self.told(map, place);
        if let Some(note) = note {
            let [database, name] = [&map.database, &map.table].map(|name| String::from_utf8_lossy(name));
            self.tell_once(format!("{database}.{name}: {note}"))?;
        }
        Ok(table)
    }

    /// Says once, when the columns of a table without names are shown, that they have none and how they are got. With a schema, what is wrong with it
    /// is said.
    pub(crate) fn say_names_lacking(&self, table: &TableSchema) {
        let is_nameless = table.columns().iter().any(|column| column.name.is_none());
        if is_nameless && self.schema_file().is_none() {
            self.say_once(format!("{}: @1 is the first column", names_lacking(None)));
        }
    }
}

/// Why logs are no sequence.
struct OrderError(LogError);

impl From<NotInSequence> for OrderError {
    fn from(error: NotInSequence) -> Self {
        OrderError(LogError(error.to_string()))
    }
}
