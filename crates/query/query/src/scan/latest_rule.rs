//! Finds sorts that keep only the rows of the latest transactions: `ORDER BY committed_at DESC LIMIT 10`. The scan below begins with the last
//! parts of the logs.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, config::ConfigOptions};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, replace_children_if_necessary};

use super::{LogScan, ScanPlan};
use crate::tables::MadeColumn;

/// The column by which rows are sorted.
const COMMITTED_AT: &str = "committed_at";

/// Plans that pass all rows on, as they are and in their order.
const PASSING: [&str; 2] = ["CooperativeExec", "CoalesceBatchesExec"];

/// The rule.
#[derive(Debug)]
pub(crate) struct LatestRule;

impl PhysicalOptimizerRule for LatestRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_down(|plan| {
            let below = match plan.downcast_ref::<SortExec>() {
                Some(sort) => latest_of(sort)?,
                None => None,
            };
            Ok(match below {
                Some(below) => Transformed::yes(replace_children_if_necessary(plan, vec![below])?),
                None => Transformed::no(plan),
            })
        });
        changed.data()
    }

    fn name(&self) -> &str {
        "latest_transactions_of_logs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan below a sort, of which the scan knows how many rows it keeps; `None`: it doesn't keep those of the latest transactions.
fn latest_of(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (Some(fetch), first) = (sort.fetch(), sort.expr().first()) else { return Ok(None) };
    match first.options.descending && !first.options.nulls_first {
        true => below(sort.input(), first.expr.as_ref(), fetch),
        false => Ok(None),
    }
}

fn below(
    plan: &Arc<dyn ExecutionPlan>,
    by: &dyn PhysicalExpr,
    fetch: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<LogScan>() {
        let scan = scan.scan();
        let schema = scan.reader.schema();
        let is_by_time = match scan.output(by) {
            Some(MadeColumn::Column(column)) => {
                schema.fields().get(column).is_some_and(|field| field.name() == COMMITTED_AT)
            }
            Some(MadeColumn::Field(..) | MadeColumn::Presence(..)) | None => false,
        };
        // A scan that knows them was changed already.
        let is_changed = is_by_time && scan.latest.is_none() && scan.limit.is_none();
        return Ok(is_changed.then(|| {
            Arc::new(LogScan::new(ScanPlan { latest: Some(fetch), ..scan.clone() })) as Arc<dyn ExecutionPlan>
        }));
    }
    let children = plan.children();
    let [child] = children.as_slice() else { return Ok(None) };
    let found = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column = by.downcast_ref::<Column>().and_then(|column| projection.expr().get(column.index()));
        let Some(named) = column else { return Ok(None) };
        below(child, named.expr.as_ref(), fetch)?
    } else if PASSING.contains(&plan.name()) && plan.fetch().is_none() {
        below(child, by, fetch)?
    } else {
        None
    };
    found.map(|child| replace_children_if_necessary(Arc::clone(plan), vec![child])).transpose()
}
