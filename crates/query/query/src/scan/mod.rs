//! Tables as DataFusion reads them: batches of `tables` in, bounded streams out.
//!
//! ```text
//! log_scan    a table over logs in order                             RecordBatch → stream
//! count_scan  counts of rows by table and operation, without rows    archive's index, logs → counts
//! count_rule  finds the queries that ask for nothing else            plan → plan
//! ```

pub(crate) mod count_rule;
mod count_scan;
mod log_scan;

use std::sync::Arc;

use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{Partitioning, PlanProperties};

pub(crate) use log_scan::{BATCHES_WAITING, Counts, LogScan, ScanPlan, ScanRows};

/// The properties of a plan that reads logs.
fn properties(equivalences: EquivalenceProperties, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        equivalences,
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}
