//! `table_changes('shop', 'orders')`: the changes of a table, where its own name stands for its rows.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Expr;

use crate::catalog::Catalog;
use crate::catalog::schemas::schema_of;

/// The name of the function.
pub(crate) const TABLE_CHANGES: &str = "table_changes";

/// The function.
#[derive(Debug)]
pub(crate) struct TableChangesFunction(pub(crate) Arc<Catalog>);

impl TableFunctionImpl for TableChangesFunction {
    fn call_with_args(&self, arguments: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let text = |argument: &Expr| match argument {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text.clone()),
            _ => None,
        };
        let texts: Option<Vec<String>> = arguments.exprs().iter().map(text).collect();
        let texts = texts.unwrap_or_default();
        let [database, table] = texts.as_slice() else {
            let what = format!("{TABLE_CHANGES} takes two texts: {TABLE_CHANGES}('shop', 'orders')");
            return Err(DataFusionError::Plan(what));
        };
        let found = self.0.changes_of(&schema_of(database), table)?;
        found.ok_or_else(|| DataFusionError::Plan(format!("the logs have no changes of {database}.{table}")))
    }
}
