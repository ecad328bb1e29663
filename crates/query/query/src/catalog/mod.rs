//! The names of a statement: a table's name in, a scan of it out.
//!
//! ```text
//! table        a table as DataFusion plans with it                   conditions → scan
//! base_tables  tables of a base: columns now, rows at moments
//! moment_table a table at a moment, as DataFusion plans with it
//! log_catalog  which tables there are; user tables are found on demand
//! schemas      the schema of each database
//! table_changes the changes of a table, as a function
//! table_diff   the rows in which two moments of a table differ, as a function
//! names        tables, columns and functions: for listings and completion
//! ```

mod base_tables;
mod log_catalog;
mod moment_table;
pub(crate) mod names;
mod schemas;
mod table;
pub(crate) mod table_changes;
pub(crate) mod table_diff;

pub use log_catalog::AskTables;
pub(crate) use log_catalog::{CATALOG, Catalog};
pub(crate) use schemas::LOG_SCHEMA;
