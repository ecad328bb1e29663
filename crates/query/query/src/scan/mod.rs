//! Tables as DataFusion reads them: batches of `tables` in, bounded streams out.
//!
//! ```text
//! log_scan    a table over logs in order                             RecordBatch → stream
//! by_parts    the same part by part, where the plan tells meanwhile what is still wanted; part_filter, demand: what that is, and when
//! presence_rule finds the queries that count the values of a field, so that its texts needn't be unpacked
//! latest_rule finds the queries that keep the rows of the latest transactions alone
//! count_scan  counts of rows by table and operation, without rows    archive's index, logs → counts
//! count_rule  finds the queries that ask for nothing else            plan → plan
//! ```

mod by_parts;
pub(crate) mod count_rule;
mod count_scan;
mod demand;
pub(crate) mod latest_rule;
mod log_scan;
mod part_filter;
pub(crate) mod presence_rule;

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
