//! Finds counts that need no rows: `count(*)` over a table of row changes, grouped by nothing but `log`, `schema`,
//! `table`, `operation` and what a transaction's GTID event tells, also under conditions on these. Their first step becomes a [`CountScan`]; the last step,
//! which adds up several counts, stays DataFusion's.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, config::ConfigOptions};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateMode, AggregateOutputMode,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::scan::LogScan;
use crate::scan::count_scan::{CountScan, CountStep, CountedRows};

/// Plans that pass rows on as they are.
const PASSING: [&str; 4] =
    ["CooperativeExec", "RepartitionExec", "CoalescePartitionsExec", "CoalesceBatchesExec"];

/// The rule.
#[derive(Debug)]
pub(crate) struct CountRule;

impl PhysicalOptimizerRule for CountRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_down(|plan| {
            let counted = match plan.downcast_ref::<AggregateExec>() {
                Some(aggregate) => counted(aggregate)?,
                None => None,
            };
            Ok(match counted {
                Some(counted) => Transformed::new(counted, true, TreeNodeRecursion::Jump),
                None => Transformed::no(plan),
            })
        });
        changed.data()
    }

    fn name(&self) -> &str {
        "count_rows_of_logs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan that counts in place of an aggregate; `None`: the aggregate needs rows.
fn counted(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let groups = aggregate.group_expr();
    let functions = aggregate.aggr_expr();
    let is_filtered = aggregate.filter_expr().iter().any(Option::is_some);
    if aggregate.mode().input_mode() != AggregateInputMode::Raw
        || groups.has_grouping_set()
        || is_filtered
        || !functions.iter().all(|function| counts(function))
    {
        return Ok(None);
    }
    let mut steps = Vec::new();
    let Some(scan) = below(aggregate.input(), &mut steps) else { return Ok(None) };
    let group_by: Vec<_> = groups.expr().iter().map(|(group, _)| Arc::clone(group)).collect();
    let arguments: Vec<_> = functions.iter().map(|function| function.expressions()).collect();
    if group_by.iter().chain(arguments.iter().flatten()).any(is_volatile)
        || steps.iter().any(CountStep::is_volatile)
    {
        return Ok(None);
    }
    let partial = match aggregate.mode().output_mode() {
        AggregateOutputMode::Partial => aggregate.schema(),
        // What its first half would have.
        AggregateOutputMode::Final => AggregateExec::try_new(
            AggregateMode::Partial,
            groups.clone(),
            functions.to_vec(),
            aggregate.filter_expr().to_vec(),
            Arc::clone(aggregate.input()),
            aggregate.input_schema(),
        )?
        .schema(),
    };
    let Some(counted) = CountedRows::new(scan.scan(), steps, group_by, arguments, partial) else {
        return Ok(None);
    };
    let scan: Arc<dyn ExecutionPlan> = Arc::new(CountScan::new(counted));
    if aggregate.mode().output_mode() == AggregateOutputMode::Partial {
        return Ok(Some(scan));
    }
    let last = AggregateExec::try_new(
        AggregateMode::Final,
        groups.as_final(),
        functions.to_vec(),
        aggregate.filter_expr().to_vec(),
        scan,
        aggregate.input_schema(),
    )?;
    Ok(Some(Arc::new(last)))
}

/// Whether a function counts rows.
pub(super) fn counts(function: &AggregateFunctionExpr) -> bool {
    function.fun().name() == "count" && !function.is_distinct() && !function.expressions().is_empty()
}

/// The scan below, and the steps between, the last first.
fn below<'p>(plan: &'p Arc<dyn ExecutionPlan>, steps: &mut Vec<CountStep>) -> Option<&'p LogScan> {
    if let Some(scan) = plan.downcast_ref::<LogScan>() {
        steps.reverse();
        return Some(scan);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        if filter.fetch().is_some() {
            return None;
        }
        let columns = filter.projection().as_ref().map(|columns| columns.to_vec());
        steps.push(CountStep::Filter(Arc::clone(filter.predicate()), columns));
        return below(filter.input(), steps);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let expressions: Vec<Arc<dyn PhysicalExpr>> =
            projection.expr().iter().map(|named| Arc::clone(&named.expr)).collect();
        steps.push(CountStep::Project(expressions, projection.schema()));
        return below(projection.input(), steps);
    }
    if PASSING.contains(&plan.name()) && plan.fetch().is_none() {
        let [input] = <[&Arc<dyn ExecutionPlan>; 1]>::try_from(plan.children()).ok()?;
        return below(input, steps);
    }
    None
}
