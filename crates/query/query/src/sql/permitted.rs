//! Decides which statements may run: those that only read. None may write a file, open one that isn't an input, or hold
//! rows beyond the memory limit.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};

/// The kind of user whose statements run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementOrigin {
    /// Statements of the user of this process: also views, settings and prepared statements, which end with it.
    Own,
    /// Statements of clients, which share the process: queries alone.
    Queries,
}

impl StatementOrigin {
    /// Refuses a plan that does more, at whatever depth.
    pub(crate) fn check(self, plan: &LogicalPlan) -> Result<()> {
        plan.apply_with_subqueries(|plan| match plan {
            LogicalPlan::Copy(_) => refused("COPY"),
            LogicalPlan::Dml(dml) => refused(&dml.op.to_string()),
            LogicalPlan::Ddl(DdlStatement::CreateView(_) | DdlStatement::DropView(_))
                if self == StatementOrigin::Own =>
            {
                Ok(TreeNodeRecursion::Continue)
            }
            LogicalPlan::Ddl(DdlStatement::CreateView(_) | DdlStatement::DropView(_)) => refused("VIEW"),
            LogicalPlan::Ddl(ddl) => refused(ddl.name()),
            LogicalPlan::Statement(statement) if self == StatementOrigin::Queries => {
                refused(statement_name(statement))
            }
            _ => Ok(TreeNodeRecursion::Continue),
        })?;
        Ok(())
    }
}

fn statement_name(statement: &Statement) -> &str {
    match statement {
        Statement::SetVariable(_) => "SET",
        Statement::ResetVariable(_) => "RESET",
        other => other.name(),
    }
}

fn refused(what: &str) -> Result<TreeNodeRecursion> {
    Err(DataFusionError::Plan(format!("{what} is not possible: statements can only read")))
}
