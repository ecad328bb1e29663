//! SQL over binary logs and archives of them, by Apache DataFusion.
//!
//! ```text
//! moment_name names of tables at moments
//! error    why a query ended, as one line
//! sql      text as statements; which of them may run, and what their functions and numbers mean
//! logs     the inputs, and what a query's conditions leave of them    paths → flow::Input
//! tables   events become Arrow batches, on all cores, in order        EventBatch → RecordBatch
//! scan     tables as DataFusion reads them                            RecordBatch → stream, bounded
//! catalog  names of tables, and the scans they stand for
//! run      statements in, batches out; memory limit, temporary files, many clients
//! print    batches as text, CSV, JSON, Arrow
//! export   tables as Parquet data sets, run after run                 RecordBatch → files
//! ```
//!
//! Each imports only from those above it in this list.
//!
//! DataFusion plans, joins, sorts and aggregates. This crate only reads logs, as `flow` does, and archives, by their index.

mod catalog;
pub mod error;
pub mod export;
pub mod logs;
mod moment_name;
pub mod print;
mod run;
mod scan;
mod sql;
mod tables;

pub use binlogz_flow::ReadMeter;
pub use catalog::AskTables;
pub use catalog::names::{Names, QualifiedName};
pub use error::{Error, Result};
pub use logs::{
    BaseBlocks, BaseCondition, BaseMoment, BaseRows, BaseTable, BaseValue, BaseWish, KeyedRows, Logs,
    SchemaTime, TableBase, WholeLogs,
};
pub use moment_name::{at_moment, moment_of};
pub use run::engine::{self, QueryEngine, QueryOptions, StatementStopper};
pub use run::memory;
pub use run::queries::{Queries, Query, QueryRows};
pub use sql::checked::aggregates;
pub use sql::depth::STATEMENT_SIZE_MAX;
pub use sql::functions::all as functions;
pub use sql::statements::{self, ParameterValues, ReadStatement, StatementTokens};
