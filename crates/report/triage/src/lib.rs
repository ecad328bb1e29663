//! The unusual changes in logs, the worst first: what somebody on call asks for.
//!
//! ```text
//! EventBatch → TriageCollector (one a worker) → BatchTriage → Triage (in the order of the logs) → RankedChange → text, JSON
//! ```
//!
//! [`TriageCollector`] counts the rows of each transaction by table and operation, from the sizes of rows: no value is decoded. It
//! sends on those that may be unusual. [`Triage`] learns from all of them what is usual in these logs, and ranks the others.
//! Memory is bounded whatever the logs hold. The caller reads the logs: no file is opened here.
//!
//! # Which changes are unusual
//!
//! A change is known by its operation and its table. Its *weight* is its number of deleted or updated rows; a statement that loses
//! data (DROP TABLE, TRUNCATE, DROP COLUMN) weighs as a million rows, other DDL as a hundred. The weight is divided by the square
//! of how often the logs have as large a change of the same kind on the same table: what is done every minute is usual. Changes
//! are ranked by the quotient. Many small transactions of one session after the other are one change (`session_loop.rs`).
//! docs/reference/incident.md has all rules.

mod below_log;
mod change;
mod collector;
mod figures;
mod largest;
mod rank;
mod report;
mod session_loop;
mod statement;
mod transaction;
mod triage;

pub use below_log::{CascadeEstimates, CascadingKey};
pub use change::{RankedChange, UnusualReason};
pub use collector::TriageCollector;
pub use figures::{BatchTriage, TriageWindow};
pub use report::{ChangeLines, change_json};
pub use statement::{DdlEffect, StatementTableName, UnusualStatement};
pub use transaction::{RepeatedTransactions, TableChanges, TransactionName, TriagedTransaction};
pub use triage::{SoughtTransaction, Triage};
