//! Starts a query again that has too little memory, as long as no rows were passed on. DataFusion's fastest join holds one of
//! the tables, and a sort with a limit holds as many rows; both end if that doesn't fit. On the second attempt joins sort both
//! tables, and all rows are sorted, in temporary files if they have to.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::run::ending::{QueryEnd, with_end};

/// Rows of a batch: the sorts of both tables in all partitions have several at once.
const ROWS_SORTED: usize = 1024;

/// The rows of a plan, up to its end.
///
/// # Errors
///
/// A plan that can't begin.
pub(crate) async fn execute(
    context: &SessionContext,
    plan: LogicalPlan,
    end: QueryEnd,
) -> Result<SendableRecordBatchStream> {
    let (physical, rows) = begin(context, plan.clone(), &end).await?;
    let holds =
        |node: &Arc<dyn ExecutionPlan>| Ok(node.is::<HashJoinExec>() || limit_of_sort(node).is_some());
    let can_spill = physical.exists(holds)?;
    let schema = rows.schema();
    let rows = stream::once(first_or_again(rows, context.clone(), (plan, end), can_spill)).try_flatten();
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// The rows. If the first of them can't be made within the limit, they are those of a plan that spills.
async fn first_or_again(
    mut rows: SendableRecordBatchStream,
    context: SessionContext,
    (plan, end): (LogicalPlan, QueryEnd),
    can_spill: bool,
) -> Result<SendableRecordBatchStream> {
    match rows.next().await {
        Some(Err(error)) if can_spill && is_of_memory(&error) => {
            // Frees its memory first.
            drop(rows);
            Ok(begin(&spilling(&context), plan, &end).await?.1)
        }
        first => {
            let schema = rows.schema();
            let rows = stream::iter(first).chain(rows);
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
        }
    }
}

async fn begin(
    context: &SessionContext,
    plan: LogicalPlan,
    end: &QueryEnd,
) -> Result<(Arc<dyn ExecutionPlan>, SendableRecordBatchStream)> {
    let frame = context.execute_logical_plan(plan).await?;
    let task = Arc::new(frame.task_ctx());
    let physical = with_end(frame.create_physical_plan().await?, end)?;
    let rows = execute_stream(Arc::clone(&physical), task)?;
    Ok((physical, rows))
}

/// A copy of the session in which joins and sorts spill. Both share one limit of memory.
fn spilling(context: &SessionContext) -> SessionContext {
    let state = context.state();
    // With one partition DataFusion has no joins that sort.
    let partitions = state.config().target_partitions().max(2);
    let mut config = state.config().clone().with_target_partitions(partitions).with_batch_size(ROWS_SORTED);
    config.options_mut().optimizer.prefer_hash_join = false;
    let state = SessionStateBuilder::new_from_existing(state)
        .with_config(config)
        .with_physical_optimizer_rule(Arc::new(WholeSorts))
        .build();
    SessionContext::new_with_state(state)
}

/// Sorts all rows where a sort would hold only those within its limit, which can't be spilled.
#[derive(Debug)]
struct WholeSorts;

impl PhysicalOptimizerRule for WholeSorts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let whole = |node: Arc<dyn ExecutionPlan>| {
            Ok(match limit_of_sort(&node) {
                Some((sort, limit)) => {
                    let whole = Arc::new(sort.with_fetch(None));
                    Transformed::yes(Arc::new(LocalLimitExec::new(whole, limit)) as Arc<dyn ExecutionPlan>)
                }
                None => Transformed::no(node),
            })
        };
        plan.transform_up(whole).data()
    }

    fn name(&self) -> &str {
        "whole_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A sort with a limit.
fn limit_of_sort(node: &Arc<dyn ExecutionPlan>) -> Option<(&SortExec, usize)> {
    let sort = node.downcast_ref::<SortExec>()?;
    Some((sort, sort.fetch()?))
}

fn is_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
