//! SQL over binary logs and archives of them, by Apache DataFusion.
//!
//! ```text
//! logs       the inputs, opened as often as a query reads them      Logs → flow::Input
//! wanted     what a query's conditions leave of them                filters → blocks of an archive, tables
//! tables     events become Arrow batches, on all cores, in order    EventBatch → RecordBatch
//! scan       a table as DataFusion reads it                         RecordBatch → stream, bounded
//! count_scan counts of rows by table and operation, without rows     archive's index, logs → counts
//! count_rule finds the queries that ask for nothing else             plan → plan
//! division   the logs divided among the machines of a cluster        Logs → pieces
//! pieces     a scan of some of them
//! table      a table as DataFusion plans with it                    conditions → scan
//! shipped    tables and scans as bytes, on their way to those
//! catalog    which tables there are; user tables are found on demand
//! statements text as statements, and values of their parameters
//! depth      how deep and how large a statement may be, before it is parsed
//! checked    whole numbers that don't wrap
//! permitted  which statements are run: those that read
//! engine     statements in, batches out; memory limit
//! retry      a query once more: with a plan that spills, if its first one is beyond the limit; or after the loss of an executor
//! memory     what a process may hold, and what it holds
//! spill      what is beyond the limit, in encrypted temporary files   Arrow's bytes ↔ scratch files
//! queries    the same for many clients at once
//! shared     what those hold, of types that compile fast
//! names      tables, columns and functions: for listings and completion
//! print      batches as text, CSV, JSON, Arrow
//! export     tables as Parquet data sets, run after run            RecordBatch → files
//! ```
//!
//! DataFusion plans, joins, sorts and aggregates. This crate only reads logs, as `flow` does, and archives, by their index.

mod catalog;
mod checked;
mod count_rule;
mod count_scan;
mod depth;
mod division;
pub mod engine;
pub mod error;
pub mod export;
mod functions;
pub mod logs;
pub mod memory;
mod names;
mod permitted;
mod piece;
mod pieces;
pub mod print;
mod queries;
mod retry;
mod scan;
mod shared;
pub mod shipped;
mod spill;
pub mod statements;
mod table;
mod tables;
mod wanted;

pub use binlogz_flow::ReadMeter;
pub use catalog::AskTables;
pub use checked::aggregates;
pub use depth::STATEMENT_SIZE_MAX;
pub use engine::{QueryEngine, QueryOptions, StatementStopper};
pub use error::{Error, Result};
pub use functions::all as functions;
pub use logs::{Logs, Site};
pub use names::{Names, QualifiedName};
pub use queries::{Queries, Query, QueryRows};
pub use statements::{ParameterValues, ReadStatement};
