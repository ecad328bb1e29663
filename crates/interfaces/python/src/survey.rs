//! What logs have that was not taken yet: their whole transactions, the tables that these have rows of, and the statements that may
//! change tables without a row event. A reader that keeps a GTID set asks here before it reads rows.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_binlog::event::{AnyGtidEvent, PreviousGtidsEvent, QueryEvent, RowsEvent};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::row::TableSchema;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Boundary, EventHeader, EventType};
use binlogz_flow::Error;
use binlogz_flow::events::{self, BatchItem, Event, EventBatch, RunSummary, TableEvent, WorkerTables};
use pyo3::prelude::*;

use crate::feed;
use crate::interrupt::{InterruptFlag, interruptible};
use crate::known_tables::{self, TablesByPlace};
use crate::selection::{GtidSelection, parsed, plain};
use crate::spark_types::spark_name;
use crate::table::column_name;
use crate::transactions::WITHOUT_GTID;
use crate::{bad, broken};

/// Bytes of a statement that are told: the names of its tables are at its beginning.
const STATEMENT_MAX: usize = 4096;
/// Definitions that are remembered.
const MET_MAX: usize = 1024;
/// The most statements that are told: a log in statement format has one for each change.
const STATEMENTS_MAX: usize = 10_000;

/// Columns of a table, by their names, with Spark's names of their types; and those of its primary key.
type ToldDefinition = (Vec<(String, String)>, Vec<String>);
/// Database and name; the definitions of its rows, in order; whether some rows lack columns after a change; whether statements tell its columns.
type SurveyedTable = (String, String, Vec<ToldDefinition>, bool, bool);
/// The path of a log; the GTIDs of the logs before it, where it tells; those of its whole transactions, also of those not asked for.
type SurveyedLog = (String, Option<String>, String);
/// Name of the log, offset, GTID, database, and the statement's beginning.
type ToldStatement = (String, u64, String, String, String);
/// Logs; the GTIDs of the whole transactions that are asked for; their tables; their statements, and how many more there were; how many
/// transactions are not whole.
type ToldSurvey = (Vec<SurveyedLog>, String, Vec<SurveyedTable>, Vec<ToldStatement>, u64, u64);

/// What an event says to a survey.
enum SurveyEvent {
    /// A transaction begins at this offset; `None`: it has no GTID.
    Begin(Option<Gtid>, u64),
    End,
    /// GTIDs of the logs before this one.
    Previous(GtidSet),
    /// Rows, and whether they lack columns after the change.
    Rows(u64, Arc<TableSchema>, bool),
    /// A statement, or the begin or the end of a log.
    Other(u64, EventHeader, Box<[u8]>),
}

/// A definition as a table map and the statements before it have it.
#[derive(Clone)]
struct MetDefinition {
    table: Arc<TableSchema>,
    key: Arc<[usize]>,
    /// Whether statements tell names of columns.
    is_told: bool,
    /// How many statements there were.
    statements: usize,
}

/// The rows of a table in transactions.
#[derive(Default)]
struct TableSurvey {
    definitions: Vec<ToldDefinition>,
    /// The last one as it was met.
    last: Option<MetDefinition>,
    is_partial: bool,
    is_told: bool,
}

/// A transaction whose end was not met yet.
struct UnendedTransaction {
    gtid: Gtid,
    is_wanted: bool,
    tables: Vec<(MetDefinition, bool)>,
    statements: Vec<ToldStatement>,
}

/// The survey so far.
struct LogSurvey {
    selection: GtidSelection,
    known: TablesByPlace,
    /// Definitions that were met, by the addresses of their maps.
    met: HashMap<usize, MetDefinition>,
    /// The name of the log, the GTIDs before it, and those in it.
    log: String,
    previous: Option<GtidSet>,
    gtids: GtidSet,
    open: Option<UnendedTransaction>,
    wanted: GtidSet,
    tables: BTreeMap<(String, String), TableSurvey>,
    statements: Vec<ToldStatement>,
    statements_more: u64,
    not_whole: u64,
}

/// The transactions of logs that are not in `start_after`, and in `until` if that is given.
#[pyfunction]
#[pyo3(signature = (paths, start_after, until=None))]
pub(crate) fn survey(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    start_after: &str,
    until: Option<&str>,
) -> PyResult<ToldSurvey> {
    let selection = GtidSelection { left_out: parsed(start_after)?, only: until.map(parsed).transpose()? };
    interruptible(py, move |interrupted| {
        let mut found = LogSurvey::new(selection);
        let mut logs = Vec::new();
        for path in feed::expand(paths).map_err(broken)? {
            found.begin_log(&path);
            let input = feed::open(&path).map_err(|error| broken(format!("{}: {error}", path.display())))?;
            let RunSummary { unread, .. } = read_log(input, &mut found, interrupted)
                .map_err(|error| bad(format!("{}: {error}", path.display())))?;
            if !unread.is_empty() {
                let lines: Vec<_> =
                    unread.iter().map(|unread| format!("{} {unread}", path.display())).collect();
                return Err(bad(lines.join("\n")));
            }
            logs.push(found.end_log(&path)?);
        }
        Ok(found.told(logs))
    })?
}

fn read_log(
    input: binlogz_flow::Input,
    found: &mut LogSurvey,
    interrupted: &InterruptFlag,
) -> Result<RunSummary, Error> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let work = |tables: &mut WorkerTables, batch: &mut EventBatch<'_>| {
        let mut part = Vec::new();
        if let Err(error) = collect(tables, batch, &mut part) {
            batch.fail(error);
        }
        Ok(part)
    };
    let sink = |part: Vec<SurveyEvent>| {
        part.into_iter().try_for_each(|event| found.take(event))?;
        interrupted.check().map_err(|error| Error::Output(error.into()))
    };
    events::run(input, workers, || Ok(WorkerTables::one_of(workers)), work, sink, &mut |_| {})
}

fn collect(
    tables: &mut WorkerTables,
    batch: &mut EventBatch<'_>,
    found: &mut Vec<SurveyEvent>,
) -> Result<(), Error> {
    tables.begin(batch)?;
    // The last table of this transaction: its next event says the same.
    let mut last: Option<(Arc<TableSchema>, bool)> = None;
    while let Some(item) = batch.next_item() {
        let event = match item {
            BatchItem::PayloadEnd(_) => {
                found.push(SurveyEvent::End);
                continue;
            }
            BatchItem::Event(event) => event,
        };
        let is_outside = !event.is_inside_payload();
        let boundary = event.placement.boundary;
        if is_outside && matches!(boundary, Boundary::Begin | Boundary::BeginAgain | Boundary::Single) {
            last = None;
            found.push(SurveyEvent::Begin(gtid_of(&event)?, event.position.offset));
        }
        if event.header.event_type == EventType::PREVIOUS_GTIDS {
            let before = PreviousGtidsEvent::decode(event.body).map_err(|error| event.error(error))?;
            found.push(SurveyEvent::Previous(before.gtid_set));
        }
        if known_tables::may_tell(&event.header, event.body) {
            last = None;
            found.push(SurveyEvent::Other(event.position.offset, event.header, event.body.into()));
        }
        if let Some(TableEvent::Rows(map, rows)) = tables.event(&event)? {
            let is_partial = lacks_columns(&map, &rows);
            let is_same =
                last.as_ref().is_some_and(|(last, lacked)| Arc::ptr_eq(last, &map) && *lacked >= is_partial);
            if !is_same {
                last = Some((Arc::clone(&map), is_partial));
                found.push(SurveyEvent::Rows(event.position.offset, map, is_partial));
            }
        }
        let is_end = matches!(boundary, Boundary::End | Boundary::Single);
        if is_outside && is_end && event.header.event_type != EventType::TRANSACTION_PAYLOAD {
            found.push(SurveyEvent::End);
        }
    }
    Ok(())
}

/// The GTID of the event that a transaction begins with.
fn gtid_of(event: &Event<'_>) -> Result<Option<Gtid>, Error> {
    let Some(frame) = event.frame.filter(|frame| frame.event_type().is_gtid()) else { return Ok(None) };
    let decoded = AnyGtidEvent::decode_frame(&frame).map_err(|error| event.error(error))?;
    Ok(decoded.and_then(|decoded| decoded.gtid()))
}

/// Whether the rows after a change lack columns, or may have only the differences of documents.
fn lacks_columns(map: &TableSchema, rows: &RowsEvent<'_>) -> bool {
    let count = map.columns().len();
    let has_differences = rows.event_type == EventType::PARTIAL_UPDATE_ROWS;
    has_differences || rows.columns_after.unwrap_or(rows.columns).count(count) < count
}

impl LogSurvey {
    fn new(selection: GtidSelection) -> Self {
        LogSurvey {
            selection,
            known: TablesByPlace::default(),
            met: HashMap::new(),
            log: String::new(),
            previous: None,
            gtids: GtidSet::default(),
            open: None,
            wanted: GtidSet::default(),
            tables: BTreeMap::new(),
            statements: Vec::new(),
            statements_more: 0,
            not_whole: 0,
        }
    }

    fn begin_log(&mut self, path: &Path) {
        self.log = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.known.begin_log(&self.log);
    }

    fn end_log(&mut self, path: &Path) -> PyResult<SurveyedLog> {
        if let Some(open) = self.open.take() {
            self.not_whole += u64::from(open.is_wanted);
        }
        let previous = self.previous.take().map(|set| plain(&set));
        Ok((
            crate::parts::whole_path(path).map_err(broken)?,
            previous,
            plain(&std::mem::take(&mut self.gtids)),
        ))
    }

    fn take(&mut self, event: SurveyEvent) -> Result<(), Error> {
        match event {
            SurveyEvent::Begin(Some(gtid), _) => {
                let is_wanted = !self.selection.leaves_out(Some(&gtid));
                let (tables, statements) = (Vec::new(), Vec::new());
                self.open = Some(UnendedTransaction { gtid, is_wanted, tables, statements });
            }
            SurveyEvent::Begin(None, offset) => {
                let what = format!("at {offset}: a transaction {WITHOUT_GTID}");
                return Err(Error::Output(std::io::Error::other(what).into()));
            }
            SurveyEvent::End => self.end(),
            SurveyEvent::Previous(before) => self.previous = Some(before),
            SurveyEvent::Rows(offset, map, is_partial) => {
                let definition = self.definition(map, offset);
                if let Some(open) = self.open.as_mut().filter(|open| open.is_wanted) {
                    open.tables.push((definition, is_partial));
                }
            }
            SurveyEvent::Other(offset, header, body) => {
                self.known.learn(offset, &header, &body);
                self.take_statement(offset, &header, &body);
            }
        }
        Ok(())
    }

    fn definition(&mut self, map: Arc<TableSchema>, offset: u64) -> MetDefinition {
        let lacks_names = map.columns().iter().any(|column| column.name.is_none());
        let table = self.known.complete(map, offset);
        let is_told = lacks_names && table.columns().iter().any(|column| column.name.is_some());
        let statements = self.known.statements();
        let address = Arc::as_ptr(&table) as usize;
        if let Some(met) = self.met.get(&address).filter(|met| met.statements == statements) {
            return met.clone();
        }
        if self.met.len() == MET_MAX {
            self.met.clear();
        }
        let key = self.known.key(&table, offset).into();
        let met = MetDefinition { table, key, is_told, statements };
        self.met.insert(address, met.clone());
        met
    }

    fn take_statement(&mut self, offset: u64, header: &EventHeader, body: &[u8]) {
        let Some(open) = self.open.as_mut().filter(|open| open.is_wanted) else { return };
        if header.event_type != EventType::QUERY {
            return;
        }
        let Ok(query) = QueryEvent::decode(body) else { return };
        if !matches!(StatementKind::of(query.statement), StatementKind::Other | StatementKind::XaRollback) {
            return;
        }
        let text = query.statement.get(..STATEMENT_MAX).unwrap_or(query.statement);
        let [database, text] =
            [query.database, text].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        match self.statements.len() + open.statements.len() < STATEMENTS_MAX {
            true => {
                open.statements.push((self.log.clone(), offset, open.gtid.to_string(), database, text));
            }
            false => self.statements_more += 1,
        }
    }

    /// The open transaction is whole.
    fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.gtids.add(open.gtid);
        if !open.is_wanted {
            return;
        }
        self.wanted.add(open.gtid);
        self.statements.extend(open.statements);
        for (definition, is_partial) in open.tables {
            let map = &definition.table;
            let [database, table] =
                [&map.database, &map.table].map(|name| String::from_utf8_lossy(name).into_owned());
            self.tables.entry((database, table)).or_default().add(definition, is_partial);
        }
    }

    fn told(self, logs: Vec<SurveyedLog>) -> ToldSurvey {
        let tables = self.tables.into_iter();
        let tables = tables.map(|((database, table), found)| {
            (database, table, found.definitions, found.is_partial, found.is_told)
        });
        let wanted = plain(&self.wanted);
        (logs, wanted, tables.collect(), self.statements, self.statements_more, self.not_whole)
    }
}

impl TableSurvey {
    fn add(&mut self, met: MetDefinition, is_partial: bool) {
        self.is_partial |= is_partial;
        self.is_told |= met.is_told;
        let MetDefinition { table: map, key, .. } = &met;
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(&last.table, map) && Arc::ptr_eq(&last.key, key))
        {
            return;
        }
        let columns = || map.columns().iter().enumerate();
        let typed = |(index, column)| (column_name(index, column), spark_name(&binlogz_arrow::of(column)));
        let key = columns().filter(|(index, _)| key.contains(index));
        let key = key.map(|(index, column)| column_name(index, column)).collect();
        let definition = (columns().map(typed).collect(), key);
        if self.definitions.last() != Some(&definition) {
            self.definitions.push(definition);
        }
        self.last = Some(met);
    }
}
