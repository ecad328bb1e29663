//! The tables that a statement names: those of the default database, and system tables.

use binlogz_query::{Names, moment_of};
use binlogz_query_server::StatementRefusal;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use crate::errors::{NO_SUCH_TABLE, UNKNOWN_DATABASE, refused};
use crate::system;

/// Where the query engine finds the system tables: this catalog and schema, with names such as `information_schema.tables`.
pub(crate) const SYSTEM_CATALOG: &str = "mysql_front";
pub(crate) const SYSTEM_SCHEMA: &str = "system";

/// A system table's database and name, in lower case.
pub(crate) type SystemName = (String, String);

/// The tables that the logs have. To know user tables, all logs may have to be read once.
pub(crate) trait KnownTables {
    /// The databases and names of all user tables.
    fn user_tables(&self) -> Result<Vec<(String, String)>, StatementRefusal>;
}

impl KnownTables for Names {
    fn user_tables(&self) -> Result<Vec<(String, String)>, StatementRefusal> {
        let all = self.tables().map_err(StatementRefusal::from)?;
        Ok(all.into_iter().filter(|(database, _)| database != Names::LOG_SCHEMA).collect())
    }
}

/// A table as a statement names it, found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FoundTable {
    /// A table of the logs: its schema and name.
    OfLogs(String, String),
    System(SystemName),
}

/// Finds a table. Without a database it is one of the default database; the tables that all logs have are found from everywhere.
pub(super) fn find(
    name: &ObjectName,
    default: &str,
    known: &dyn KnownTables,
) -> Result<FoundTable, StatementRefusal> {
    let parts: Option<Vec<&Ident>> = name.0.iter().map(ObjectNamePart::as_ident).collect();
    let (database, table) = match parts.as_deref() {
        Some([table]) => (None, table.value.as_str()),
        Some([database, table]) => (Some(database.value.as_str()), table.value.as_str()),
        // As JDBC's tools may name the catalog, which MySQL doesn't have.
        _ => return Err(no_table(&name.to_string())),
    };
    let from = database.unwrap_or(default);
    if system::is_database(from) {
        let found = (from.to_ascii_lowercase(), table.to_ascii_lowercase());
        return match system::is_table(&found) {
            true => Ok(FoundTable::System(found)),
            false => Err(no_table(&format!("{from}.{table}"))),
        };
    }
    let of_all = Names::LOG_TABLES.iter().find(|log| log.eq_ignore_ascii_case(table));
    if from.is_empty() || from == Names::LOG_SCHEMA {
        return match of_all {
            Some(table) => Ok(FoundTable::OfLogs(Names::LOG_SCHEMA.to_owned(), (*table).to_owned())),
            None => Err(no_table(&format!("{}.{table}", Names::LOG_SCHEMA))),
        };
    }
    // A table at a moment may have another name now, or be gone: its base tells.
    if moment_of(table).is_some() {
        return Ok(FoundTable::OfLogs(from.to_owned(), table.to_owned()));
    }
    let tables = known.user_tables()?;
    if tables.iter().any(|(of, name)| of == from && name == table) {
        return Ok(FoundTable::OfLogs(from.to_owned(), table.to_owned()));
    }
    match (database, of_all) {
        (None, Some(table)) => Ok(FoundTable::OfLogs(Names::LOG_SCHEMA.to_owned(), (*table).to_owned())),
        _ if tables.iter().all(|(of, _)| of != from) => {
            Err(refused(UNKNOWN_DATABASE, format!("Unknown database '{from}'")))
        }
        _ => Err(no_table(&format!("{from}.{table}"))),
    }
}

pub(super) fn no_table(name: &str) -> StatementRefusal {
    let name = moment_of(name).map_or(name, |(table, _)| table);
    refused(NO_SUCH_TABLE, format!("Table '{name}' doesn't exist"))
}

impl FoundTable {
    /// The name by which the query engine finds it.
    pub(super) fn name(&self) -> ObjectName {
        let parts: Vec<String> = match self {
            FoundTable::OfLogs(schema, table) => vec![schema.clone(), table.clone()],
            FoundTable::System((database, table)) => {
                vec![SYSTEM_CATALOG.to_owned(), SYSTEM_SCHEMA.to_owned(), format!("{database}.{table}")]
            }
        };
        ObjectName::from(parts.into_iter().map(|part| Ident::with_quote('"', part)).collect::<Vec<_>>())
    }
}
