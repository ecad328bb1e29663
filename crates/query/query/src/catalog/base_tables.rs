//! The tables of a base: their columns now, and their rows at moments.
//!
//! ```text
//! base → a log of table maps, a log of inserts → the readers of logs, as for any other → columns of the table itself
//! ```
//!
//! So values have the types that they have in the changes of the same table. The log is in an encrypted temporary file.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::{Arc, OnceLock};

use binlogz_archive::Scratch;
use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};
use parking_lot::Mutex;

use crate::error::LogError;
use crate::logs::{BaseBlocks, BaseCondition, BaseMoment, BaseWish, Logs, TableBase, WantedOutput};
use crate::tables::{ChangesTable, MadeColumn, TableReader, user};

/// Tables at moments that are kept for the next statement, and how many of which only some rows were read.
const MOMENTS_MAX: usize = 8;
const PARTS_MAX: usize = 8;

/// The column of the image that inserts have.
const AFTER: &str = "after";

/// The tables of a base.
pub(super) struct BaseTables {
    base: Arc<dyn TableBase>,
    logs: Arc<Logs>,
    workers: usize,
    /// The columns of all tables now, by database and name.
    now: OnceLock<BTreeMap<(String, String), Fields>>,
    end: OnceLock<BaseMoment>,
    /// The moments of the statement, by their texts: `-1h` is one moment, however often the statement's tables are looked for.
    moments: Mutex<BTreeMap<String, BaseMoment>>,
    /// The tables that were read last, by name of the table and moment: with all their rows, or with some or none.
    read: ReadTables,
    parts: ReadTables,
    /// Two that ask at once would both ask the base.
    reading: Mutex<()>,
}

/// The rows of a table at a moment.
#[derive(Debug)]
pub(super) struct MomentRows {
    pub(super) logs: Arc<Logs>,
    pub(super) reader: Arc<ChangesTable>,
    /// For each column, where the reader has it.
    pub(super) places: Vec<MadeColumn>,
    pub(super) schema: SchemaRef,
    /// The columns of the key by which rows are told apart: what each is called now, and was called then.
    pub(super) key: Vec<(String, String)>,
    pub(super) workers: usize,
    /// Whether all rows are there.
    pub(super) are_all: bool,
    /// The blocks of archives that were needed, until they are told.
    blocks: Mutex<BaseBlocks>,
}

impl MomentRows {
    /// The blocks of archives that were needed for it, once.
    pub(super) fn take_blocks(&self) -> BaseBlocks {
        std::mem::take(&mut self.blocks.lock())
    }
}

impl std::fmt::Debug for BaseTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BaseTables").field("base", &self.base).finish_non_exhaustive()
    }
}

impl BaseTables {
    /// The tables of the logs' base; `None`: they have none.
    pub(super) fn of(logs: &Arc<Logs>, workers: usize) -> Option<Arc<Self>> {
        let base = Arc::clone(logs.base()?);
        Some(Arc::new(BaseTables {
            base,
            logs: Arc::clone(logs),
            workers,
            now: OnceLock::new(),
            end: OnceLock::new(),
            moments: Mutex::default(),
            read: Mutex::default(),
            parts: Mutex::default(),
            reading: Mutex::default(),
        }))
    }

    /// The columns of all tables as they are now.
    pub(super) fn now(&self) -> Result<&BTreeMap<(String, String), Fields>, LogError> {
        let _one = self.reading.lock();
        if let Some(known) = self.now.get() {
            return Ok(known);
        }
        let mut out = BufWriter::new(scratch()?);
        let tables = self.base.write_maps(&mut out).map_err(LogError)?;
        let logs = logs_of(out)?;
        let mut found = user::tables(&logs, self.workers, &|_, _| true, &|_, _| true)?;
        let fields = tables.into_iter().map(|table| {
            let name = (table.database, table.name);
            let fields = found.remove(&name).map(|columns| columns.fields()).unwrap_or_default();
            let own = table.columns.iter().filter_map(|column| fields.find(column).map(|(_, field)| field));
            let own: Fields = own.cloned().collect();
            (name, own)
        });
        let fields = fields.collect();
        Ok(self.now.get_or_init(|| fields))
    }

    /// The columns of all tables, if they were looked for.
    pub(super) fn known(&self) -> Option<&BTreeMap<(String, String), Fields>> {
        self.now.get()
    }

    /// The moment of the logs' end.
    fn end(&self) -> Result<&BaseMoment, LogError> {
        if let Some(known) = self.end.get() {
            return Ok(known);
        }
        let end = self.logs.executed()?;
        Ok(self.end.get_or_init(|| BaseMoment::Executed(end)))
    }

    /// Another statement begins.
    pub(super) fn begin_statement(&self) {
        self.moments.lock().clear();
    }

    fn moment(&self, text: &str) -> Result<BaseMoment, LogError> {
        let mut moments = self.moments.lock();
        if let Some(known) = moments.get(text) {
            return Ok(known.clone());
        }
        let moment = self.base.moment(text).map_err(|line| LogError(format!("AS OF '{text}': {line}")))?;
        moments.insert(text.to_owned(), moment.clone());
        Ok(moment)
    }

    /// The moment that a user wrote; `None`: the end of the logs.
    pub(super) fn moment_of(&self, text: Option<&str>) -> Result<BaseMoment, LogError> {
        match text {
            Some(text) => self.moment(text),
            None => self.end().cloned(),
        }
    }

    /// All rows of a table at a moment, as a user wrote it, or at the end of the logs; `None`: there is no such table.
    pub(super) fn rows(
        &self,
        table: (&str, &str),
        moment: Option<&str>,
    ) -> Result<Option<Arc<MomentRows>>, LogError> {
        self.read(table, &self.moment_of(moment)?, &BaseWish::All)
    }

    /// The columns of a table at a moment, and all its rows where these take no longer; `None`: there is no such table.
    pub(super) fn columns(
        &self,
        table: (&str, &str),
        moment: &BaseMoment,
    ) -> Result<Option<Arc<MomentRows>>, LogError> {
        self.read(table, moment, &BaseWish::Columns)
    }

    /// The rows of a table at a moment that meet these conditions, and maybe others; `None`: there is no such table.
    pub(super) fn rows_meeting(
        &self,
        table: (&str, &str),
        moment: &BaseMoment,
        conditions: Vec<BaseCondition>,
    ) -> Result<Option<Arc<MomentRows>>, LogError> {
        match conditions.is_empty() {
            true => self.read(table, moment, &BaseWish::All),
            false => self.read(table, moment, &BaseWish::Meeting(conditions)),
        }
    }

    fn read(
        &self,
        (database, table): (&str, &str),
        moment: &BaseMoment,
        wish: &BaseWish,
    ) -> Result<Option<Arc<MomentRows>>, LogError> {
        let name = format!("{database}\0{table}\0{moment}");
        let part_name = format!("{name}\0{wish:?}");
        let _one = self.reading.lock();
        let known = found_in(&self.read, &name).or_else(|| found_in(&self.parts, &part_name));
        if let Some(known) = known {
            return Ok(Some(known));
        }
        let Some(rows) = self.read_rows((database, table), (moment, wish))? else { return Ok(None) };
        let rows = Arc::new(rows);
        match rows.are_all {
            true => add_to(&self.read, (name, &rows), MOMENTS_MAX),
            false => add_to(&self.parts, (part_name, &rows), PARTS_MAX),
        }
        Ok(Some(rows))
    }

    fn read_rows(
        &self,
        (database, table): (&str, &str),
        moment: (&BaseMoment, &BaseWish),
    ) -> Result<Option<MomentRows>, LogError> {
        let mut out = WantedOutput { out: BufWriter::new(scratch()?), reading: self.logs.reading_now() };
        let told = self.base.write_rows((database, table), moment, &*self.logs, &mut out);
        let Some(told) = told.map_err(|line| LogError(format!("{database}.{table}: {line}")))? else {
            return Ok(None);
        };
        let logs = logs_of(out.out)?;
        let found = user::columns(&logs, database, table, self.workers)?;
        let fields = found.map(|found| found.fields()).unwrap_or_default();
        let reader = ChangesTable::of_fields(fields.clone());
        let lost =
            |column: &str| LogError(format!("{database}.{table}: the base doesn't tell the column {column}"));
        let image = reader.schema().index_of(AFTER).map_err(|_| lost(AFTER))?;
        let mut places = Vec::new();
        let mut own = Vec::new();
        for column in &told.columns {
            let (place, field) = fields.find(column).ok_or_else(|| lost(column))?;
            places.push(MadeColumn::Field(image, place));
            own.push(Arc::clone(field));
        }
        let schema = Arc::new(Schema::new(own.into_iter().collect::<Fields>()));
        let logs = Arc::new(logs);
        let reader = Arc::new(reader);
        Ok(Some(MomentRows {
            logs,
            reader,
            places,
            schema,
            key: told.key,
            workers: self.workers,
            are_all: told.are_all,
            blocks: Mutex::new(told.blocks),
        }))
    }
}

/// Tables that were read, by their names.
type ReadTables = Mutex<VecDeque<(String, Arc<MomentRows>)>>;

fn found_in(tables: &ReadTables, name: &str) -> Option<Arc<MomentRows>> {
    let tables = tables.lock();
    tables.iter().find(|(own, _)| own == name).map(|(_, rows)| Arc::clone(rows))
}

fn add_to(tables: &ReadTables, (name, rows): (String, &Arc<MomentRows>), count_max: usize) {
    let mut tables = tables.lock();
    if tables.len() >= count_max {
        tables.pop_front();
    }
    tables.push_back((name, Arc::clone(rows)));
}

fn temporary(error: std::io::Error) -> LogError {
    LogError(format!("temporary files, in the folder that TMPDIR names: {error}"))
}

fn scratch() -> Result<Scratch, LogError> {
    Scratch::new().map_err(temporary)
}

/// What was written, as a log.
fn logs_of(mut out: BufWriter<Scratch>) -> Result<Logs, LogError> {
    out.flush().map_err(temporary)?;
    let mut file = out.into_inner().map_err(|error| temporary(error.into_error()))?;
    let size = file.seek(SeekFrom::End(0)).map_err(temporary)?;
    Ok(Logs::of_scratch("the base", file, size))
}
