//! Columns of tables at moments in any case, as MySQL takes them: `CustomerID` and `customerid` are the column `customerId`.
//!
//! DataFusion takes a name without quotes in lower case. So a name that a table has in another case is given the table's own spelling, in
//! quotes, before the statement is planned.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, VisitMut, VisitorMut};

/// Spells columns as these do, which the tables of the statement have.
pub(crate) fn spell_columns(statement: &mut Parsed, columns: &BTreeSet<String>) {
    let mut spellings: BTreeMap<String, Option<&str>> = BTreeMap::new();
    for column in columns {
        // A table may have the name in lower case, or two tables may differ: then it stands for that, or for neither.
        let known = spellings.entry(column.to_lowercase()).or_insert(Some(column));
        if *known != Some(column) {
            *known = None;
        }
    }
    let needed = spellings.into_iter().filter_map(|(lower, own)| Some((lower, own?)));
    let spellings: BTreeMap<_, _> = needed.filter(|(lower, own)| lower != own).collect();
    if !spellings.is_empty() {
        spell(statement, &mut ColumnSpeller { spellings, given: BTreeSet::new() });
    }
}

fn spell(statement: &mut Parsed, speller: &mut ColumnSpeller<'_>) {
    match statement {
        Parsed::Statement(statement) => {
            let _continues = statement.visit(speller);
        }
        Parsed::Explain(explain) => spell(&mut explain.statement, speller),
        Parsed::CreateExternalTable(_) | Parsed::CopyTo(_) | Parsed::Reset(_) => {}
    }
}

struct ColumnSpeller<'c> {
    /// The spelling of each name, by its lower case.
    spellings: BTreeMap<String, &'c str>,
    /// Names that the statement gives to its own columns, in lower case: these are meant.
    given: BTreeSet<String>,
}

impl ColumnSpeller<'_> {
    fn take(&self, name: &mut Ident) {
        let lower = name.value.to_lowercase();
        if name.quote_style.is_some() || self.given.contains(&lower) {
            return;
        }
        if let Some(own) = self.spellings.get(&lower) {
            *name = Ident::with_quote('"', *own);
        }
    }
}

impl VisitorMut for ColumnSpeller<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item
                && alias.quote_style.is_none()
            {
                self.given.insert(alias.value.to_lowercase());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => self.take(name),
            Expr::CompoundIdentifier(names) => names.last_mut().into_iter().for_each(|name| self.take(name)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    #[test]
    fn columns_are_spelled_as_the_tables_have_them() {
        let columns = ["customerId", "id", "Total", "state", "State"].map(str::to_owned).into();
        for (sql, spelled) in [
            ("SELECT CUSTOMERID, o.total, id FROM o", "SELECT \"customerId\", o.\"Total\", id FROM o"),
            ("SELECT \"customerid\", State FROM o", "SELECT \"customerid\", State FROM o"),
            ("SELECT id AS total FROM o ORDER BY total", "SELECT id AS total FROM o ORDER BY total"),
            (
                "EXPLAIN SELECT sum(Total) FROM o WHERE customerId = 1",
                "EXPLAIN SELECT sum(\"Total\") FROM o WHERE \"customerId\" = 1",
            ),
        ] {
            let mut parsed = DFParser::parse_sql(sql).unwrap();
            parsed.iter_mut().for_each(|statement| spell_columns(statement, &columns));
            assert_eq!(parsed[0].to_string(), spelled);
        }
    }
}
