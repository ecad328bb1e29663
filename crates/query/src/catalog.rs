//! Which tables there are: `transactions`, `changes`, `events`, and a schema for each database in the logs. User tables are
//! looked for when a query names one, so a query that doesn't reads the logs once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{panic, thread};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};

use crate::division::Division;
use crate::error::LogError;
use crate::logs::Logs;
use crate::table::LogTable;
use crate::tables::{Changes, Events, Reader, Transactions, user};
use crate::wanted::Wanted;

/// The name of the catalog.
pub(crate) const CATALOG: &str = "binlogz";
/// The schema of the tables that all logs have, and of views.
pub(crate) const LOG_SCHEMA: &str = "binlog";

/// All tables of the logs.
#[derive(Debug)]
pub(crate) struct Catalog {
    of_logs: Arc<MemorySchemaProvider>,
    found: Arc<Found>,
}

/// The user tables that were looked for.
#[derive(Debug)]
struct Found {
    logs: Arc<Logs>,
    workers: usize,
    division: Option<Arc<Division>>,
    names: OnceLock<BTreeSet<(String, String)>>,
    tables: Mutex<HashMap<(String, String), Answer>>,
}

/// A table that was looked for; `None`: there is none.
type Answer = Option<Arc<dyn TableProvider>>;

impl Catalog {
    /// `division`: how a cluster divides the logs, if one reads them.
    pub(crate) fn new(logs: &Arc<Logs>, workers: usize, division: Option<Arc<Division>>) -> Result<Self> {
        let of_logs = Arc::new(MemorySchemaProvider::new());
        let readers: [(&str, Arc<dyn Reader>); 3] = [
            ("transactions", Arc::new(Transactions)),
            ("changes", Arc::new(Changes::all())),
            ("events", Arc::new(Events)),
        ];
        for (name, reader) in readers {
            let table = LogTable::new(Arc::clone(logs), reader, Wanted::default(), workers);
            let table = table.divided(division.clone());
            of_logs.register_table(name.to_owned(), Arc::new(table))?;
        }
        let found = Found {
            logs: Arc::clone(logs),
            workers,
            division,
            names: OnceLock::new(),
            tables: Mutex::default(),
        };
        Ok(Catalog { of_logs, found: Arc::new(found) })
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
    found: Arc<Found>,
}

#[async_trait]
impl SchemaProvider for Database {
    fn table_names(&self) -> Vec<String> {
        let names = self.found.names().iter();
        names.filter(|(database, _)| *database == self.name).map(|(_, table)| table.clone()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(self.found.table(&self.name, name)?)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.found.table(&self.name, name).is_ok_and(|table| table.is_some())
    }
}

impl Found {
    /// All tables. Logs that can't be read have none here; the query that reads them fails.
    fn names(&self) -> &BTreeSet<(String, String)> {
        self.names.get_or_init(|| apart(|| user::names(&self.logs, self.workers)).unwrap_or_default())
    }

    fn table(&self, database: &str, table: &str) -> Result<Answer, LogError> {
        let name = (database.to_owned(), table.to_owned());
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tables.get(&name) {
            return Ok(known.clone());
        }
        let columns = apart(|| user::columns(&self.logs, database, table, self.workers))?;
        let found = columns.map(|columns| -> Arc<dyn TableProvider> {
            let reader = Arc::new(Changes::of_table(&columns));
            let all = Wanted::of_table(database, table);
            let table = LogTable::new(Arc::clone(&self.logs), reader, all, self.workers);
            Arc::new(table.divided(self.division.clone()))
        });
        tables.insert(name, found.clone());
        Ok(found)
    }
}

/// Runs work that waits for object storage on a thread of its own: DataFusion plans on threads that must not wait.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
}
