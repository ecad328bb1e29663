//! Joins beyond the limit of memory. DataFusion's fastest join holds one of the tables, and ends if that doesn't fit. Nothing was
//! passed on then, so the query begins anew with joins that sort both tables, in temporary files if they have to.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures_util::{StreamExt, TryStreamExt, stream};

/// Rows of a batch: the sorts of both tables in all partitions have several at once.
const ROWS_SORTED: usize = 1024;

/// The rows of a plan.
///
/// # Errors
///
/// A plan that can't begin.
pub(crate) async fn execute(
    context: &SessionContext,
    plan: LogicalPlan,
) -> Result<SendableRecordBatchStream> {
    let (physical, rows) = begin(context, plan.clone()).await?;
    let holds_table = physical.exists(|node| Ok(node.is::<HashJoinExec>()))?;
    if !holds_table {
        return Ok(rows);
    }
    let schema = rows.schema();
    let sorting = sorting(context);
    let rows = stream::once(first_or_again(rows, sorting, plan)).try_flatten();
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// The rows; those of joins that sort, if the first of them can't be made within the limit.
async fn first_or_again(
    mut rows: SendableRecordBatchStream,
    sorting: SessionContext,
    plan: LogicalPlan,
) -> Result<SendableRecordBatchStream> {
    match rows.next().await {
        Some(Err(error)) if is_of_memory(&error) => {
            // What it holds until then is given back.
            drop(rows);
            Ok(begin(&sorting, plan).await?.1)
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
) -> Result<(Arc<dyn ExecutionPlan>, SendableRecordBatchStream)> {
    let frame = context.execute_logical_plan(plan).await?;
    let task = Arc::new(frame.task_ctx());
    let physical = frame.create_physical_plan().await?;
    let rows = execute_stream(Arc::clone(&physical), task)?;
    Ok((physical, rows))
}

/// The same session, in which joins sort. It shares the limit.
fn sorting(context: &SessionContext) -> SessionContext {
    let mut state = context.state();
    // With one partition DataFusion has no joins that sort.
    let partitions = state.config().target_partitions().max(2);
    let config = state.config().clone().with_target_partitions(partitions).with_batch_size(ROWS_SORTED);
    *state.config_mut() = config;
    state.config_mut().options_mut().optimizer.prefer_hash_join = false;
    SessionContext::new_with_state(state)
}

fn is_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
