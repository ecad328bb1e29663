//! `table_diff('shop', 'orders', '10:40', '10:50')`: what two moments of a table have that differs, a row for each key.
//!
//! ```text
//! the table at the first moment  ─┐ joined by the key of both   operation   insert  update  delete
//! the table at the second moment ─┘ without equal rows          before      –       row     row
//!                                                               after       row     row     –
//! ```
//!
//! Both are read as for AS OF, and kept for the next statement. Values, also those of keys, are compared byte by byte.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Column, DataFusionError, JoinType, Result, ScalarValue, TableReference};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::functions::core::named_struct;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit, or, when};

use crate::catalog::Catalog;
use crate::catalog::base_tables::MomentRows;
use crate::catalog::moment_table::MomentTable;
use crate::moment_name::at_moment;

/// The name of the function.
pub(crate) const TABLE_DIFF: &str = "table_diff";

const BEFORE: &str = "before";
const AFTER: &str = "after";

/// The function.
#[derive(Debug)]
pub(crate) struct TableDiffFunction(pub(crate) Arc<Catalog>);

impl TableFunctionImpl for TableDiffFunction {
    fn call_with_args(&self, arguments: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let texts: Option<Vec<&str>> = arguments.exprs().iter().map(text_of).collect();
        let texts = texts.unwrap_or_default();
        let &[database, table, first, second] = texts.as_slice() else {
            let what =
                format!("{TABLE_DIFF} takes four texts: {TABLE_DIFF}('shop', 'orders', '10:40', '10:50')");
            return Err(DataFusionError::Plan(what));
        };
        let name = (database, table);
        let before = TableAt::find(&self.0, name, first)?;
        let after = TableAt::find(&self.0, name, second)?;
        Ok(Arc::new(ViewTable::new(Difference { before, after }.plan()?, None)))
    }
}

fn text_of(argument: &Expr) -> Option<&str> {
    match argument {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text),
        _ => None,
    }
}

/// A table at a moment.
struct TableAt<'a> {
    name: (&'a str, &'a str),
    moment: &'a str,
    rows: Arc<MomentRows>,
}

/// Two moments of a table.
struct Difference<'a> {
    before: TableAt<'a>,
    after: TableAt<'a>,
}

impl<'a> TableAt<'a> {
    fn find(catalog: &Catalog, name: (&'a str, &'a str), moment: &'a str) -> Result<Self> {
        match catalog.rows_at(name, moment)? {
            Some(rows) => Ok(TableAt { name, moment, rows }),
            None => {
                let (database, table) = name;
                let what = format!("table '{database}.{}' not found", at_moment(table, moment));
                Err(DataFusionError::Plan(what))
            }
        }
    }

    /// What the columns of the key are called now.
    fn key_now(&self) -> Vec<&str> {
        self.rows.key.iter().map(|(now, _)| now.as_str()).collect()
    }

    fn columns(&self) -> impl Iterator<Item = &str> {
        self.rows.schema.fields().iter().map(|field| field.name().as_str())
    }

    fn scan(&self, side: &str) -> Result<LogicalPlan> {
        let table = Arc::new(MomentTable::of_rows(self.name, Arc::clone(&self.rows)));
        LogicalPlanBuilder::scan(TableReference::bare(side), provider_as_source(table), None)?.build()
    }

    /// Columns of the key.
    fn key(&self, side: &str) -> Vec<Column> {
        self.rows.key.iter().map(|(_, then)| column(side, then)).collect()
    }

    /// The columns and their types, in any order.
    fn shape(&self) -> Vec<String> {
        let schema: &Schema = &self.rows.schema;
        let mut shape: Vec<_> =
            schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        shape.sort();
        shape
    }

    /// Its row as a struct; NULL where it has none.
    fn image(&self, side: &str, is_absent: &Expr) -> Result<Expr> {
        let fields = self.columns().flat_map(|name| [lit(name), Expr::Column(column(side, name))]);
        let image = named_struct().call(fields.collect());
        Ok(when(is_absent.clone().is_not_true(), image).end()?.alias(side))
    }
}

fn column(side: &str, name: &str) -> Column {
    Column::new(Some(TableReference::bare(side)), name)
}

impl Difference<'_> {
    /// Refuses moments whose rows can't be compared.
    fn check(&self) -> Result<()> {
        let Difference { before, after } = self;
        let (shape, then) = (before.shape(), after.shape());
        if shape != then {
            return self.refused(&format!(
                "has these columns at '{}': {}; and these at '{}': {}; expected the same at both moments",
                before.moment,
                shape.join(", "),
                after.moment,
                then.join(", ")
            ));
        }
        let (key, other) = (before.key_now(), after.key_now());
        if key.is_empty() || other.is_empty() {
            return self.refused("has a generated column in its key: expected one of stored columns");
        }
        if key != other {
            return self.refused(&format!(
                "has no key that it had at both moments: its rows are told apart by {} at '{}' and by {} at '{}'",
                key.join(", "),
                before.moment,
                other.join(", "),
                after.moment
            ));
        }
        Ok(())
    }

    fn refused(&self, what: &str) -> Result<()> {
        let (database, table) = self.before.name;
        Err(DataFusionError::Plan(format!("{TABLE_DIFF}: {database}.{table} {what}")))
    }

    fn plan(&self) -> Result<LogicalPlan> {
        self.check()?;
        let Difference { before, after } = self;
        let keys = [before.key(BEFORE), after.key(AFTER)];
        // No column of a key is NULL in a row.
        let [is_inserted, is_deleted] = keys.each_ref().map(|key| {
            let first = key.first().cloned().unwrap_or_else(|| column(BEFORE, ""));
            Expr::Column(first).is_null()
        });
        let differs = before.columns().map(|name| {
            let [own, other] = [BEFORE, AFTER].map(|side| Expr::Column(column(side, name)));
            binary_expr(own, Operator::IsDistinctFrom, other)
        });
        let is_other = differs.fold(or(is_inserted.clone(), is_deleted.clone()), or);
        let operation = when(is_inserted.clone(), lit("insert"))
            .when(is_deleted.clone(), lit("delete"))
            .otherwise(lit("update"))?
            .alias("operation");
        let [own, other] = keys;
        let images = [before.image(BEFORE, &is_inserted)?, after.image(AFTER, &is_deleted)?];
        LogicalPlanBuilder::from(before.scan(BEFORE)?)
            .join(after.scan(AFTER)?, JoinType::Full, (own, other), None)?
            .filter(is_other)?
            .project([operation].into_iter().chain(images))?
            .build()
    }
}
