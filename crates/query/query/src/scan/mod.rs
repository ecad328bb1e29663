//! Tables as DataFusion reads them: batches of `tables` in, bounded streams out.
//!
//! ```text
//! log_scan    a table over logs in order                             RecordBatch → stream
//! pieces      a scan of some pieces of the logs, in a cluster
//! count_scan  counts of rows by table and operation, without rows    archive's index, logs → counts
//! count_rule  finds the queries that ask for nothing else            plan → plan
//! ```

pub(crate) mod count_rule;
mod count_scan;
mod log_scan;
pub(crate) mod pieces;

pub(crate) use log_scan::{BATCHES_WAITING, Counts, LogScan, ScanPlan};
