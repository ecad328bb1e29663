//! The names that a statement may have: tables, columns, functions. For listings and for completion at a prompt.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;

use crate::catalog::schemas::schema_of;
use crate::catalog::{CATALOG, Catalog, LOG_SCHEMA};
use crate::error::{Error, Result};
use crate::moment_name::{moment_of, written};
use crate::sql::column_case::spell_columns;

/// Names in the logs. User tables are looked for when they are asked for, which may read all logs.
#[derive(Debug, Clone)]
pub struct Names {
    catalog: Arc<Catalog>,
    functions: Arc<Vec<String>>,
}

/// A table and its schema, which is the database of a user table.
pub type QualifiedName = (String, String);

impl Names {
    pub(crate) fn new(catalog: Arc<Catalog>, functions: Vec<String>) -> Self {
        Names { catalog, functions: Arc::new(functions) }
    }

    /// The name of the catalog.
    pub const CATALOG: &'static str = CATALOG;
    /// The schema of the tables that all logs have, in which a table without a schema is looked for.
    pub const LOG_SCHEMA: &'static str = LOG_SCHEMA;

    /// The tables that all logs have.
    pub const LOG_TABLES: [&'static str; 3] = ["transactions", "changes", "events"];

    /// All functions.
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// All tables, those of the logs first.
    ///
    /// # Errors
    ///
    /// Logs that can't be read.
    pub fn tables(&self) -> Result<Vec<QualifiedName>> {
        let users = self.catalog.user_tables().map_err(|error| Error::Log(error.to_string()))?;
        let of_logs = Self::LOG_TABLES.iter().map(|name| (LOG_SCHEMA.to_owned(), (*name).to_owned()));
        Ok(of_logs.chain(users.iter().cloned()).collect())
    }

    /// All user tables with their columns, for [`crate::QueryEngine::asking`].
    ///
    /// # Errors
    ///
    /// Logs that can't be read.
    pub fn all_columns(&self) -> Result<Vec<u8>> {
        self.catalog.all_tables().map_err(|error| Error::Log(error.to_string()))
    }

    /// The user tables, if they were looked for.
    pub fn known_tables(&self) -> Option<&BTreeSet<QualifiedName>> {
        self.catalog.known_user_tables()
    }

    /// Ends the readings of logs that run now: nobody wants what they find.
    pub(crate) fn stop_readings(&self) {
        self.catalog.stop_readings();
    }

    /// Looks at a statement before it is planned. Refuses one that names a table with the schema of those that all logs have,
    /// `binlog.changes`, where the logs also have a database `binlog` with that table.
    pub(crate) fn check(&self, state: &SessionState, statement: &Statement) -> DataFusionResult<()> {
        self.catalog.begin_statement();
        for name in state.resolve_table_references(statement)? {
            let table = name.table();
            if name.schema().is_none_or(|schema| schema == LOG_SCHEMA) && moment_of(table).is_some() {
                return Err(DataFusionError::Plan(format!(
                    "{}: expected a table of a database, as shop.orders AS OF '2026-11-27 10:42'",
                    written(table)
                )));
            }
            let is_of_logs = Self::LOG_TABLES.contains(&table);
            if name.schema() != Some(LOG_SCHEMA) || name.catalog().is_some_and(|catalog| catalog != CATALOG) {
                continue;
            }
            let is_view = !is_of_logs && self.catalog.columns(LOG_SCHEMA, table)?.is_some();
            let schema = schema_of(LOG_SCHEMA);
            if !is_view && self.catalog.columns(&schema, table)?.is_some() {
                let other = if is_of_logs { "; that of all logs is the name alone" } else { "" };
                return Err(DataFusionError::Plan(format!(
                    "{LOG_SCHEMA}.{table}: expected \"{schema}\".{table} for the table of the database {LOG_SCHEMA}{other}"
                )));
            }
        }
        Ok(())
    }

    /// Spells the columns of a base's tables as the tables have them: a statement may write them in any case.
    pub(crate) fn spell_columns(
        &self,
        state: &SessionState,
        statement: &mut Statement,
    ) -> DataFusionResult<()> {
        if !self.catalog.has_base() {
            return Ok(());
        }
        let mut columns = BTreeSet::new();
        for name in state.resolve_table_references(statement)? {
            let Some(schema) = name.schema().filter(|schema| *schema != LOG_SCHEMA) else { continue };
            if name.catalog().is_none_or(|catalog| catalog == CATALOG)
                && let Some(found) = self.catalog.columns(schema, name.table())?
            {
                columns.extend(found.fields().iter().map(|field| field.name().clone()));
            }
        }
        spell_columns(statement, &columns);
        Ok(())
    }

    /// The columns of a table; `None`: there is no such table.
    ///
    /// # Errors
    ///
    /// Logs that can't be read.
    pub fn columns(&self, schema: &str, table: &str) -> Result<Option<SchemaRef>> {
        self.catalog.columns(schema, table).map_err(|error| Error::Log(error.to_string()))
    }

    /// The columns of a table, if they were looked for.
    pub fn known_columns(&self, schema: &str, table: &str) -> Option<SchemaRef> {
        self.catalog.known_columns(schema, table)
    }
}
