//! Keeps tables' names intact on the way to the scheduler.
//!
//! DataFusion (55.2) sends the table of a column as text without quotes and parses it there: `Shop.Orders` comes back
//! right, but `my table` and `a"b` don't. So we give each column of a plan a table whose text is the quoted name. The
//! scheduler parses that back to the original name, so the plan and its column names are the same there as here. Names of
//! tables themselves, and aliases, are sent part by part, and stay as they are.
//!
//! The plan that comes out is only good for sending: its columns don't fit its tables.

use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::planner::scans_only_information_schema;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, TableReference};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{Expr, LogicalPlan, Unnest};
use datafusion::physical_plan::ExecutionPlan;

/// Ballista's planner, with names that survive.
#[derive(Debug)]
pub(crate) struct QuotedPlanner(pub(crate) Arc<dyn QueryPlanner + Send + Sync>);

#[async_trait]
impl QueryPlanner for QuotedPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // The list of tables is known here.
        if scans_only_information_schema(plan)? {
            return self.0.create_physical_plan(plan, session).await;
        }
        self.0.create_physical_plan(&quoted(plan.clone())?, session).await
    }
}

/// A plan as it has to be sent.
///
/// # Errors
///
/// None is known: nothing is planned again.
pub fn quoted(plan: LogicalPlan) -> Result<LogicalPlan> {
    // From the leaves up: looking for the subqueries of a node reads its columns, which have to fit still.
    let sent = plan.transform_up_with_subqueries(|node| match node {
        // Its schema would be made anew.
        LogicalPlan::Unnest(unnest) => {
            let exec_columns = unnest.exec_columns.into_iter().map(column).collect();
            Ok(Transformed::yes(LogicalPlan::Unnest(Unnest { exec_columns, ..unnest })))
        }
        node => node.map_expressions(|expression| {
            expression.transform(|expression| match expression {
                Expr::Column(named) => Ok(Transformed::yes(Expr::Column(column(named)))),
                other => Ok(Transformed::no(other)),
            })
        }),
    })?;
    Ok(sent.data)
}

fn column(named: Column) -> Column {
    Column { relation: named.relation.map(|table| TableReference::bare(text(&table))), ..named }
}

/// A table's name as the scheduler parses it.
fn text(table: &TableReference) -> String {
    let parts = [table.catalog(), table.schema(), Some(table.table())];
    let quote = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    parts.into_iter().flatten().map(quote).collect::<Vec<_>>().join(".")
}
