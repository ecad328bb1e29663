//! System tables: what tools ask of `information_schema` and `performance_schema`, as batches that the query engine reads
//! like any table.
//!
//! ```text
//! definitions  their columns
//! contents     their rows: databases, tables and columns of the logs, variables, what this server can do
//! columns      MySQL's type of each column
//! ```
//!
//! What logs don't have (indexes, triggers, routines, rights) is there, and empty: tools join it.

mod columns;
mod contents;
mod definitions;

use std::sync::Arc;

use binlogz_query_server::{Blame, StatementRefusal};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

pub(crate) use contents::{SystemFacts, TableColumns};

/// Whether a database is one of the system's.
pub(crate) fn is_database(name: &str) -> bool {
    definitions::DATABASES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether there is a system table of this database and name, in lower case.
pub(crate) fn is_table(name: &(String, String)) -> bool {
    definitions::find(&name.0, &name.1).is_some()
}

/// The rows of a system table, by its database and name, in lower case.
pub(crate) fn batch(
    name: &(String, String),
    facts: &SystemFacts<'_>,
) -> Result<RecordBatch, StatementRefusal> {
    let Some(table) = definitions::find(&name.0, &name.1) else {
        let line = format!("{}.{} is no system table", name.0, name.1);
        return Err(StatementRefusal::new(Blame::Program, line));
    };
    let rows = contents::rows(table, facts)?;
    let arrays: Vec<ArrayRef> =
        table.columns().enumerate().map(|(place, column)| array(&rows, place, column.is_number)).collect();
    let fields: Vec<_> = table
        .columns()
        .map(|column| {
            Field::new(column.name, if column.is_number { DataType::Int64 } else { DataType::Utf8 }, true)
        })
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| StatementRefusal::new(Blame::Program, error.to_string()))
}

/// A value of a system table.
pub(crate) type SystemValue = Option<String>;

fn array(rows: &[Vec<SystemValue>], place: usize, is_number: bool) -> ArrayRef {
    let values = rows.iter().map(|row| row.get(place).and_then(Option::as_deref));
    match is_number {
        true => Arc::new(values.map(|value| value?.parse().ok()).collect::<Int64Array>()),
        false => Arc::new(values.collect::<StringArray>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_table_has_a_batch_with_as_many_values_as_columns() {
        let columns = TableColumns::default();
        let facts = SystemFacts::for_tests(&columns);
        for table in definitions::TABLES {
            for row in contents::rows(table, &facts).unwrap() {
                assert_eq!(row.len(), table.columns().count(), "{}", table.name);
            }
            let name = (table.database.to_owned(), table.name.to_owned());
            batch(&name, &facts).unwrap();
        }
        assert!(is_database("INFORMATION_SCHEMA") && !is_database("shop"));
        let none = ("information_schema".to_owned(), "nothing".to_owned());
        assert!(!is_table(&none) && batch(&none, &facts).is_err());
    }
}
