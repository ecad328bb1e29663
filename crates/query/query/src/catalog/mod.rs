//! The names of a statement: a table's name in, a scan of it out.
//!
//! ```text
//! table        a table as DataFusion plans with it                   conditions → scan
//! log_catalog  which tables there are; user tables are found on demand
//! schemas      the schema of each database
//! names        tables, columns and functions: for listings and completion
//! ```

mod log_catalog;
pub(crate) mod names;
mod schemas;
mod table;

pub use log_catalog::AskTables;
pub(crate) use log_catalog::{CATALOG, Catalog};
pub(crate) use schemas::LOG_SCHEMA;
