//! Finds fields of images of which a query only counts the values: `count(after.agent)`. The scan below tells whether there are values, and
//! makes none.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, config::ConfigOptions};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PhysicalExpr, replace_children_if_necessary};

use super::count_rule::counts;
use super::{LogScan, ScanPlan};
use crate::tables::MadeColumn;

/// Plans that pass all rows on as they are.
const PASSING: [&str; 3] = ["CooperativeExec", "CoalescePartitionsExec", "CoalesceBatchesExec"];

/// The rule.
#[derive(Debug)]
pub(crate) struct PresenceRule;

impl PhysicalOptimizerRule for PresenceRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_down(|plan| {
            let below = match plan.downcast_ref::<AggregateExec>() {
                Some(aggregate) => below(aggregate.input(), counted_columns(aggregate))?,
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
        "presence_of_fields_of_logs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The columns of an aggregate's input of which it only counts the values, by their places.
fn counted_columns(aggregate: &AggregateExec) -> BTreeSet<usize> {
    if aggregate.mode().input_mode() != AggregateInputMode::Raw {
        return BTreeSet::new();
    }
    let groups = aggregate.group_expr();
    let mut used = BTreeSet::new();
    let mut counted = BTreeSet::new();
    for (expression, _) in groups.expr().iter().chain(groups.null_expr()) {
        used.extend(columns_of(expression));
    }
    for filter in aggregate.filter_expr().iter().flatten() {
        used.extend(columns_of(filter));
    }
    for function in aggregate.aggr_expr() {
        for order in function.order_bys() {
            used.extend(columns_of(&order.expr));
        }
        for argument in function.expressions() {
            match argument.downcast_ref::<Column>() {
                Some(column) if counts(function) => drop(counted.insert(column.index())),
                Some(_) | None => used.extend(columns_of(&argument)),
            }
        }
    }
    &counted - &used
}

fn columns_of(expression: &Arc<dyn PhysicalExpr>) -> BTreeSet<usize> {
    collect_columns(expression).iter().map(Column::index).collect()
}

/// The plan, of which the scan below makes no values of these columns; `None`: it needs them, or has none.
fn below(plan: &Arc<dyn ExecutionPlan>, counted: BTreeSet<usize>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<LogScan>() {
        return Ok(scan_of(scan.scan(), &counted));
    }
    let children = plan.children();
    let ([child], false) = (children.as_slice(), counted.is_empty()) else { return Ok(None) };
    let counted = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        of_projection(projection, &counted)
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>().filter(|filter| filter.fetch().is_none()) {
        let counted = match filter.projection().as_ref() {
            Some(columns) => counted.iter().filter_map(|place| columns.get(*place)).copied().collect(),
            None => counted,
        };
        &counted - &columns_of(filter.predicate())
    } else if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        match repartition.partitioning() {
            Partitioning::RoundRobinBatch(_) => counted,
            _ => return Ok(None),
        }
    } else if PASSING.contains(&plan.name()) && plan.fetch().is_none() {
        counted
    } else {
        return Ok(None);
    };
    let found = below(child, counted)?;
    found.map(|child| replace_children_if_necessary(Arc::clone(plan), vec![child])).transpose()
}

/// The columns below a projection that only stand in these of its columns, each as it is.
fn of_projection(projection: &ProjectionExec, counted: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut own = BTreeSet::new();
    let mut used = BTreeSet::new();
    for (place, named) in projection.expr().iter().enumerate() {
        match named.expr.downcast_ref::<Column>() {
            Some(column) if counted.contains(&place) => drop(own.insert(column.index())),
            Some(_) | None => used.extend(columns_of(&named.expr)),
        }
    }
    &own - &used
}

fn scan_of(scan: &ScanPlan, counted: &BTreeSet<usize>) -> Option<Arc<dyn ExecutionPlan>> {
    let outputs = scan.outputs.iter().enumerate().map(|(place, output)| match *output {
        MadeColumn::Field(column, field) if counted.contains(&place) => MadeColumn::Presence(column, field),
        output => output,
    });
    let outputs: Vec<_> = outputs.collect();
    let is_changed = outputs != scan.outputs;
    is_changed.then(|| Arc::new(LogScan::new(ScanPlan { outputs, ..scan.clone() })) as _)
}
