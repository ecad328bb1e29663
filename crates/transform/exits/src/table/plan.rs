//! What becomes of the columns of a table, as its map describes it.

use std::sync::Arc;

use binlogz_binlog::row::{ColumnKind, TableSchema};

use crate::policy::{ColumnExit, ExitPolicy, RulePlace};
use crate::value::ValueMask;

/// What becomes of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnPlan {
    Keep,
    LeaveOut,
    Mask(ValueMask),
}

/// What becomes of a table's rows.
#[derive(Debug)]
pub(crate) struct TablePlan {
    /// `database.table`.
    pub(crate) shown: String,
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) columns: Vec<ColumnPlan>,
    /// The rules of columns that it has.
    pub(crate) met: Vec<RulePlace>,
}

/// Why a table's rows can't leave.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// Its columns have no names: nobody knows which to mask.
    Nameless,
    /// The policy's mask doesn't fit a column.
    Refused(String),
}

impl TablePlan {
    /// The plan of a table by these rules of a policy.
    pub(crate) fn of(policy: &ExitPolicy, rules: &[usize], schema: Arc<TableSchema>) -> Result<Self, NoPlan> {
        let shown = shown(&schema.database, &schema.table);
        let mut met = Vec::new();
        let mut columns = Vec::with_capacity(schema.columns().len());
        for column in schema.columns() {
            // The server's own column of an index of a JSON array; 8.0.17 logged it.
            if column.kind == ColumnKind::TypedArray {
                columns.push(ColumnPlan::LeaveOut);
                continue;
            }
            let Some(name) = column.name.as_deref() else { return Err(NoPlan::Nameless) };
            let (exit, line, place) = policy.column(rules, name);
            met.extend(place);
            columns.push(match exit {
                ColumnExit::Keep => ColumnPlan::Keep,
                ColumnExit::LeaveOut => ColumnPlan::LeaveOut,
                ColumnExit::Mask(mask) => match ValueMask::of(mask, column) {
                    Ok(mask) => ColumnPlan::Mask(mask),
                    Err(why) => {
                        let name = String::from_utf8_lossy(name);
                        let line = policy.shown(line);
                        return Err(NoPlan::Refused(format!("{line}: {shown}, column {name}: {why}")));
                    }
                },
            });
        }
        Ok(TablePlan { shown, schema, columns, met })
    }

    /// Whether the definition of a column may hold what its values are.
    pub(crate) fn is_changed(&self, index: usize) -> bool {
        self.columns.get(index).is_some_and(|plan| *plan != ColumnPlan::Keep)
    }
}

/// A table's name for people.
pub(crate) fn shown(database: &[u8], table: &[u8]) -> String {
    format!("{}.{}", String::from_utf8_lossy(database), String::from_utf8_lossy(table))
}
