//! HAVING without groups: in MySQL it is a condition on the columns of the answer, as Connector/J asks for tables. It becomes a
//! part of WHERE, with the expressions of these columns in the places of their names.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Select, SelectItem, VisitMut, VisitorMut, visit_expressions,
};

/// Functions that make one value of a group's rows.
const AGGREGATES: [&str; 21] = [
    "ANY_VALUE",
    "AVG",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "COUNT",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "MAX",
    "MEDIAN",
    "MIN",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "STRING_AGG",
    "SUM",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];

/// Makes such a HAVING a condition of WHERE.
pub(super) fn without_groups(select: &mut Select) {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(all, _) if all.is_empty());
    let Some(mut having) = select.having.take_if(|having| !is_grouped && !aggregates(having)) else { return };
    if select.projection.iter().any(aggregates) {
        select.having = Some(having);
        return;
    }
    let columns = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.to_lowercase(), expr.clone())),
        _ => None,
    });
    let mut expressions = ColumnExpressions(columns.collect());
    let _ = having.visit(&mut expressions);
    let having = Expr::Nested(Box::new(having));
    select.selection = Some(match select.selection.take() {
        Some(selection) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(selection))),
            op: BinaryOperator::And,
            right: Box::new(having),
        },
        None => having,
    });
}

/// Whether an expression, or what has some, has a function of these.
fn aggregates(of: &impl datafusion::sql::sqlparser::ast::Visit) -> bool {
    visit_expressions(of, |expression| match expression {
        Expr::Function(Function { name, over: None, .. })
            if AGGREGATES.iter().any(|known| known.eq_ignore_ascii_case(&name.to_string())) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Puts expressions in the places of the names of columns. What was put there isn't looked at again.
struct ColumnExpressions(HashMap<String, Expr>);

impl VisitorMut for ColumnExpressions {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expression
            && let Some(column) = self.0.get(&name.value.to_lowercase())
        {
            *expression = Expr::Nested(Box::new(column.clone()));
        }
        ControlFlow::Continue(())
    }
}
