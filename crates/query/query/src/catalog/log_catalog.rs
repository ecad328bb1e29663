//! The catalog of tables: `transactions`, `changes`, `events`, and a schema for each database in the logs. User tables
//! are looked for when a query names one, so a query without any reads the logs only once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Cursor;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::catalog::{CatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::TableType;
use futures_util::FutureExt;
use parking_lot::Mutex;

use crate::catalog::base_tables::{BaseTables, MomentRows};
use crate::catalog::moment_table::MomentTable;
use crate::catalog::schemas::{LOG_SCHEMA, database_of, schema_of};
use crate::catalog::table::LogTable;
use crate::error::LogError;
use crate::logs::wanted::WantedLogs;
use crate::logs::{Logs, apart};
use crate::moment_name::moment_of;
use crate::tables::{ChangesTable, EventsTable, TableReader, TransactionsTable, user};

/// The name of the catalog.
pub(crate) const CATALOG: &str = "binlogz";

/// All tables of the logs.
#[derive(Debug)]
pub(crate) struct Catalog {
    of_logs: Arc<MemorySchemaProvider>,
    found: Arc<FoundTables>,
}

/// The user tables that were looked for. Names of all of them are those of their schemas.
struct FoundTables {
    logs: Arc<Logs>,
    workers: usize,
    names: OnceLock<BTreeSet<(String, String)>>,
    reading_names: Mutex<()>,
    tables: Mutex<HashMap<(String, String), Answer>>,
    /// All tables with their columns, once somebody needed them.
    all: OnceLock<AllTables>,
    /// Answers which user tables there are, in place of the logs.
    asked: Option<AskTables>,
    /// With a base, user tables have its rows and columns.
    base: Option<Arc<BaseTables>>,
}

impl std::fmt::Debug for FoundTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Found").field("logs", &self.logs).finish_non_exhaustive()
    }
}

/// The columns of all user tables, by database and name.
type AllTables = BTreeMap<(String, String), Fields>;

/// Asks for all user tables, as [`Catalog::all_tables`] tells them.
pub type AskTables = Arc<dyn Fn() -> std::result::Result<Vec<u8>, String> + Send + Sync>;

/// The name under which a table's field has its database.
const DATABASE: &str = "database";

/// A table that was looked for; `None`: there is none.
pub(crate) type Answer = Option<Arc<dyn TableProvider>>;

impl Catalog {
    pub(crate) fn new(logs: &Arc<Logs>, workers: usize, asked: Option<AskTables>) -> Result<Self> {
        let of_logs = Arc::new(MemorySchemaProvider::new());
        let readers: [(&str, Arc<dyn TableReader>); 3] = [
            ("transactions", Arc::new(TransactionsTable)),
            ("changes", Arc::new(ChangesTable::all())),
            ("events", Arc::new(EventsTable)),
        ];
        for (name, reader) in readers {
            let table = LogTable::new(Arc::clone(logs), reader, WantedLogs::default(), workers);
            of_logs.register_table(name.to_owned(), Arc::new(table))?;
        }
        let found = FoundTables {
            logs: Arc::clone(logs),
            workers,
            names: OnceLock::new(),
            reading_names: Mutex::default(),
            tables: Mutex::default(),
            all: OnceLock::new(),
            asked,
            base: BaseTables::of(logs, workers),
        };
        Ok(Catalog { of_logs, found: Arc::new(found) })
    }

    /// All user tables.
    pub(crate) fn user_tables(&self) -> Result<&BTreeSet<(String, String)>, LogError> {
        self.found.all_names()
    }

    /// All user tables with their columns, as Arrow's IPC stream: a field for each.
    pub(crate) fn all_tables(&self) -> Result<Vec<u8>, LogError> {
        let fields = self.found.all_tables()?.iter().map(|((database, table), fields)| {
            let metadata = HashMap::from([(DATABASE.to_owned(), database.clone())]);
            Field::new(table, DataType::Struct(fields.clone()), true).with_metadata(metadata)
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let failed = |error: ArrowError| LogError(error.to_string());
        let stream = StreamWriter::try_new(Vec::new(), &schema).map_err(failed)?;
        stream.into_inner().map_err(failed)
    }

    /// All user tables, if they were looked for.
    pub(crate) fn known_user_tables(&self) -> Option<&BTreeSet<(String, String)>> {
        self.found.names.get()
    }

    /// The columns of a table; `None`: there is none.
    pub(crate) fn columns(&self, schema: &str, table: &str) -> Result<Option<SchemaRef>, LogError> {
        match schema {
            LOG_SCHEMA => Ok(self.log_columns(table)),
            _ => self.found.columns(schema, table),
        }
    }

    /// The rows of a table, by its database and name then, at a moment as a user wrote it; `None`: there is no such table.
    pub(super) fn rows_at(
        &self,
        table: (&str, &str),
        moment: &str,
    ) -> Result<Option<Arc<MomentRows>>, LogError> {
        match &self.found.base {
            Some(base) => apart(|| base.rows(table, Some(moment))),
            None => Err(no_base(table, moment)),
        }
    }

    /// Whether tables have the rows of a base.
    pub(crate) fn has_base(&self) -> bool {
        self.found.base.is_some()
    }

    /// A statement begins: moments that it writes against the present are those of now.
    pub(crate) fn begin_statement(&self) {
        if let Some(base) = &self.found.base {
            base.begin_statement();
        }
    }

    /// Ends the readings of logs that run now.
    pub(crate) fn stop_readings(&self) {
        self.found.logs.stop_readings();
    }

    /// The changes of a table, whatever its own name stands for.
    pub(crate) fn changes_of(&self, schema: &str, table: &str) -> Result<Answer, LogError> {
        self.found.changes(schema, table)
    }

    /// The columns of a table, if they were looked for.
    pub(crate) fn known_columns(&self, schema: &str, table: &str) -> Option<SchemaRef> {
        match schema {
            LOG_SCHEMA => self.log_columns(table),
            _ if let Some(base) = &self.found.base => {
                let name = (database_of(schema).to_owned(), table.to_owned());
                let fields = base.known()?.get(&name)?;
                Some(Arc::new(Schema::new(fields.clone())))
            }
            _ => {
                // A caller that looks for a table holds them; this caller doesn't wait.
                let tables = self.found.tables.try_lock()?;
                let known = tables.get(&(database_of(schema).to_owned(), table.to_owned()))?;
                known.as_ref().map(|table| table.schema())
            }
        }
    }

    /// The columns of a table that all logs have, or of a view.
    fn log_columns(&self, table: &str) -> Option<SchemaRef> {
        let found = self.of_logs.table(table).now_or_never()?;
        found.ok()?.map(|table| table.schema())
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let databases: BTreeSet<_> =
            self.found.names().iter().map(|(database, _)| database.clone()).collect();
        let others = databases.into_iter().filter(|name| name != LOG_SCHEMA);
        std::iter::once(LOG_SCHEMA.to_owned()).chain(others).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == LOG_SCHEMA {
            return Some(Arc::clone(&self.of_logs) as _);
        }
        // Whether there is such a database is known once a table of it was looked for.
        Some(Arc::new(Database { name: name.to_owned(), found: Arc::clone(&self.found) }))
    }
}

/// A database in the logs.
#[derive(Debug)]
struct Database {
    name: String,
    found: Arc<FoundTables>,
}

#[async_trait]
impl SchemaProvider for Database {
    fn table_names(&self) -> Vec<String> {
        let names = self.found.names().iter();
        names.filter(|(database, _)| *database == self.name).map(|(_, table)| table.clone()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if self.found.base.is_none() {
            return Ok(self.found.table(&self.name, name)?);
        }
        // A base may take minutes, and a query can be stopped meanwhile.
        let (found, schema, name) = (Arc::clone(&self.found), self.name.clone(), name.to_owned());
        let asked = tokio::task::spawn_blocking(move || found.table(&schema, &name)).await;
        Ok(asked.map_err(|error| DataFusionError::External(Box::new(error)))??)
    }

    /// A listing of tables asks for it: it doesn't need their columns.
    async fn table_type(&self, _: &str) -> Result<Option<TableType>> {
        Ok(Some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.found.table(&self.name, name).is_ok_and(|table| table.is_some())
    }
}

fn no_base((database, table): (&str, &str), moment: &str) -> LogError {
    LogError(format!("{database}.{table} AS OF '{moment}': needs --base, the server that has the tables"))
}

/// Tables with the schemas of their databases.
fn in_schemas(names: impl Iterator<Item = (String, String)>) -> BTreeSet<(String, String)> {
    names.map(|(database, table)| (schema_of(&database), table)).collect()
}

impl FoundTables {
    /// All tables. Logs that can't be read have none here; the query that reads them fails.
    fn names(&self) -> &BTreeSet<(String, String)> {
        static NONE: BTreeSet<(String, String)> = BTreeSet::new();
        self.all_names().unwrap_or(&NONE)
    }

    fn all_names(&self) -> Result<&BTreeSet<(String, String)>, LogError> {
        // Two that ask at once would both read the logs.
        let _one = self.reading_names.lock();
        if let Some(known) = self.names.get() {
            return Ok(known);
        }
        if self.asked.is_some() || self.all.get().is_some() {
            let names = in_schemas(self.all_tables()?.keys().cloned());
            return Ok(self.names.get_or_init(|| names));
        }
        if let Some(base) = &self.base {
            let names = in_schemas(apart(|| base.now())?.keys().cloned());
            return Ok(self.names.get_or_init(|| names));
        }
        let names = apart(|| user::names(&self.logs, self.workers))?;
        Ok(self.names.get_or_init(|| in_schemas(names.into_iter())))
    }

    /// All tables with their columns: as who is asked tells them, else from the logs, in one pass.
    fn all_tables(&self) -> Result<&AllTables, LogError> {
        if let Some(known) = self.all.get() {
            return Ok(known);
        }
        let all = match (&self.asked, &self.base) {
            (None, Some(base)) => return apart(|| base.now()),
            (Some(ask), _) => {
                let failed = |error: ArrowError| LogError(error.to_string());
                let stream = StreamReader::try_new(Cursor::new(ask().map_err(LogError)?), None);
                let fields = stream.map_err(failed)?.schema().fields().clone();
                let tables = fields.iter().filter_map(|field| {
                    let database = field.metadata().get(DATABASE)?.clone();
                    let DataType::Struct(columns) = field.data_type() else { return None };
                    Some(((database, field.name().clone()), columns.clone()))
                });
                tables.collect()
            }
            (None, None) => {
                let found = apart(|| user::tables(&self.logs, self.workers, &|_, _| true, &|_, _| true))?;
                found.into_iter().map(|(name, columns)| (name, columns.fields())).collect()
            }
        };
        Ok(self.all.get_or_init(|| all))
    }

    fn of_fields(&self, (database, table): (&str, &str), fields: Fields) -> Arc<dyn TableProvider> {
        let reader = Arc::new(ChangesTable::of_fields(fields));
        let all = WantedLogs::of_table(database, table);
        Arc::new(LogTable::new(Arc::clone(&self.logs), reader, all, self.workers))
    }

    /// The columns of a table.
    fn columns(&self, schema: &str, table: &str) -> Result<Option<SchemaRef>, LogError> {
        if self.base.is_none() || moment_of(table).is_some() {
            return Ok(self.table(schema, table)?.map(|table| table.schema()));
        }
        let name = (database_of(schema).to_owned(), table.to_owned());
        Ok(self.all_tables()?.get(&name).map(|fields| Arc::new(Schema::new(fields.clone())) as SchemaRef))
    }

    /// A table: its changes, or with a base its rows.
    fn table(&self, schema: &str, table: &str) -> Result<Answer, LogError> {
        let database = database_of(schema);
        let moment = moment_of(table);
        let Some(base) = &self.base else {
            return match moment {
                None => self.changes(schema, table),
                Some((name, moment)) => Err(no_base((database, name), moment)),
            };
        };
        if let Some((name, moment)) = moment {
            return self.table_at(base, (database, name), moment);
        }
        let name = (database.to_owned(), table.to_owned());
        if let Some(fields) = self.all_tables()?.get(&name).filter(|fields| !fields.is_empty()) {
            let schema = Arc::new(Schema::new(fields.clone()));
            return Ok(Some(Arc::new(MomentTable::at_end((database, table), schema, base))));
        }
        // It may have had this name at the end of the logs, and another one now.
        let rows = apart(|| base.rows((database, table), None))?;
        Ok(rows.map(|rows| Arc::new(MomentTable::of_rows((database, table), rows)) as _))
    }

    /// A table at a moment, as a user wrote it.
    fn table_at(
        &self,
        base: &Arc<BaseTables>,
        table: (&str, &str),
        moment: &str,
    ) -> Result<Answer, LogError> {
        let moment = base.moment_of(Some(moment))?;
        let Some(told) = apart(|| base.columns(table, &moment))? else { return Ok(None) };
        let found = match told.are_all {
            true => MomentTable::of_rows(table, told),
            false => MomentTable::of_columns(table, moment, told, base),
        };
        Ok(Some(Arc::new(found)))
    }

    /// The changes of a table in the logs.
    fn changes(&self, schema: &str, table: &str) -> Result<Answer, LogError> {
        let database = database_of(schema);
        let name = (database.to_owned(), table.to_owned());
        if self.base.is_none() && (self.asked.is_some() || self.all.get().is_some()) {
            let fields = self.all_tables()?.get(&name).cloned();
            return Ok(fields.map(|fields| self.of_fields((database, table), fields)));
        }
        let mut tables = self.tables.lock();
        if let Some(known) = tables.get(&name) {
            return Ok(known.clone());
        }
        let columns = apart(|| user::columns(&self.logs, database, table, self.workers))?;
        let found = columns.map(|columns| self.of_fields((database, table), columns.fields()));
        tables.insert(name, found.clone());
        Ok(found)
    }
}
