//! The contents of logs in figures: the server's compression statistics, and figures that a server can't report.
//!
//! ```text
//! EventBatch → Collector (one a worker) → Part → FileStats (in the log's order) → Stats → Section → text, JSON, CSV
//! ```
//!
//! [`StatsCollector`] counts the events of a batch: [`CutTransactions::of_batch`] goes through its transactions, for `triage` too. Those that
//! begin or end in another batch come out of it in pieces, which [`FileStats`] puts together, so the figures are the same however a log was cut. A [`StatsFilter`]
//! says what is counted at all. [`Stats`] adds files up. [`Stats::sections`] lays the figures out as tables, which [`binlogz_figures::FigureFormat`]
//! writes. The caller reads the logs: no file is opened here.
//!
//! docs/reference/stats.md describes each column.

mod by_table;
mod collector;
mod counts;
mod figures;
mod file;
mod filter;
mod largest;
mod reason;
mod row_counter;
mod sections;
pub mod size_class;
mod summary;
mod transaction;
mod walk;

pub use binlogz_payload::statistics::{CompressionStats, LogType, TransactionFigures};
pub use by_table::TableName;
pub use collector::{BatchFigures, StatsCollector};
pub use counts::{RowCounts, Totals};
pub use file::{FileStats, Stats};
pub use filter::StatsFilter;
pub use reason::Reason;
pub use row_counter::{EventRows, RowCounter, TableEventRows};
pub use sections::StatsGrouping;
pub use transaction::TransactionEnd;
pub use walk::{CutTransactions, TransactionCounter};
