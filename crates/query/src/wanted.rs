//! What the conditions of a query leave of the logs: which blocks of an archive can have rows that meet them, and which
//! tables. A condition that isn't understood leaves everything: DataFusion checks each row again.

use std::collections::HashSet;
use std::str::FromStr;

use binlogz_archive::part::{Run, TableRows};
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::row::TableSchema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

const SECOND: i64 = 1_000_000;

/// What is wanted; `None`: everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    logs: Option<HashSet<String>>,
    databases: Option<HashSet<String>>,
    tables: Option<HashSet<String>>,
    operations: Option<HashSet<String>>,
    gtids: Option<GtidSet>,
    committed: Span,
    logged: Span,
}

/// Moments in microseconds since 1970, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: i64,
    last: i64,
}

impl Default for Span {
    fn default() -> Self {
        Span { first: i64::MIN, last: i64::MAX }
    }
}

impl Span {
    /// Whether it has a moment of these seconds.
    fn meets(self, first: i64, last: i64) -> bool {
        self.first < last.saturating_add(1).saturating_mul(SECOND)
            && self.last >= first.saturating_mul(SECOND)
    }

    fn narrow(&mut self, op: Operator, moment: i64) -> bool {
        match op {
            Operator::Eq => {
                self.first = self.first.max(moment);
                self.last = self.last.min(moment);
            }
            Operator::Gt | Operator::GtEq => self.first = self.first.max(moment),
            Operator::Lt | Operator::LtEq => self.last = self.last.min(moment),
            _ => return false,
        }
        true
    }
}

/// The name of an operation, as the column has it.
pub(crate) fn operation(kind: RowsKind) -> &'static str {
    match kind {
        RowsKind::Write => "insert",
        RowsKind::Update | RowsKind::PartialUpdate => "update",
        RowsKind::Delete => "delete",
    }
}

impl Wanted {
    /// The rows of one table.
    pub(crate) fn of_table(database: &str, table: &str) -> Self {
        Wanted {
            databases: Some(HashSet::from([database.to_owned()])),
            tables: Some(HashSet::from([table.to_owned()])),
            ..Wanted::default()
        }
    }

    /// Takes a condition that every row has to meet; `false`: it leaves everything.
    pub(crate) fn narrow(&mut self, condition: &Expr) -> bool {
        if let Some((column, values)) = values(condition) {
            return self.narrow_to(&column, values);
        }
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                let left = self.narrow(left);
                self.narrow(right) || left
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(value, _)) => self.compare(&column.name, *op, value),
                (Expr::Literal(value, _), Expr::Column(column)) => {
                    op.swap().is_some_and(|op| self.compare(&column.name, op, value))
                }
                _ => false,
            },
            Expr::Between(between) if !between.negated => {
                match (&*between.expr, &*between.low, &*between.high) {
                    (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) => {
                        let low = self.compare(&column.name, Operator::GtEq, low);
                        self.compare(&column.name, Operator::LtEq, high) || low
                    }
                    _ => false,
                }
            }
            Expr::ScalarFunction(call) if call.func.name() == crate::functions::GTID_IN => {
                let [Expr::Literal(set, _), Expr::Column(column)] = call.args.as_slice() else {
                    return false;
                };
                let set = text(set).and_then(|set| GtidSet::from_str(&set).ok());
                set.is_some_and(|set| column.name == "gtid" && self.narrow_gtids(set))
            }
            _ => false,
        }
    }

    fn narrow_to(&mut self, column: &str, values: HashSet<String>) -> bool {
        let place = match column {
            "log" => &mut self.logs,
            "schema" => &mut self.databases,
            "table" => &mut self.tables,
            "operation" => &mut self.operations,
            "gtid" => {
                // A text that is no GTID is nobody's.
                let gtids = values.iter().filter_map(|text| Gtid::from_str(text).ok());
                return self.narrow_gtids(gtids.collect());
            }
            _ => return false,
        };
        *place = Some(match place.take() {
            Some(before) => before.intersection(&values).cloned().collect(),
            None => values,
        });
        true
    }

    fn narrow_gtids(&mut self, set: GtidSet) -> bool {
        match &mut self.gtids {
            Some(before) => before.intersect(&set),
            none => *none = Some(set),
        }
        true
    }

    fn compare(&mut self, column: &str, op: Operator, value: &ScalarValue) -> bool {
        let span = match column {
            "committed_at" => &mut self.committed,
            "logged_at" => &mut self.logged,
            _ => return false,
        };
        moment(value).is_some_and(|moment| span.narrow(op, moment))
    }

    /// Whether a log of this name can have rows.
    pub(crate) fn has_log(&self, name: &str) -> bool {
        self.logs.as_ref().is_none_or(|logs| logs.contains(name))
    }

    /// Whether changes of this kind are wanted.
    pub(crate) fn has_kind(&self, kind: RowsKind) -> bool {
        self.operations.as_ref().is_none_or(|kinds| kinds.contains(operation(kind)))
    }

    /// Whether rows of a table are wanted.
    pub(crate) fn has_table(&self, schema: &TableSchema) -> bool {
        self.has_name(&schema.database, &schema.table)
    }

    fn has_name(&self, database: &[u8], table: &[u8]) -> bool {
        let is_in = |names: &Option<HashSet<String>>, name: &[u8]| {
            names.as_ref().is_none_or(|names| names.contains(&*String::from_utf8_lossy(name)))
        };
        is_in(&self.databases, database) && is_in(&self.tables, table)
    }

    /// Whether a part of an archived log can have what is wanted. `is_of_rows`: only rows are.
    pub(crate) fn may_be_in(&self, run: &Run<'_>, is_of_rows: bool) -> bool {
        if self.gtids.as_ref().is_some_and(|gtids| gtids.is_disjoint(&run.gtids)) {
            return false;
        }
        if let Some((first, last)) = run.commits()
            && !self.committed.meets(first.min(i64::MAX as u64) as i64, last.min(i64::MAX as u64) as i64)
        {
            return false;
        }
        if let Some((first, last)) = run.times()
            && !self.logged.meets(first.into(), last.into())
        {
            return false;
        }
        !is_of_rows || run.may_have_rows(&|rows| self.may_have(rows))
    }

    fn may_have(&self, rows: TableRows<'_>) -> bool {
        let counts = [
            (RowsKind::Write, rows.rows.inserted),
            (RowsKind::Update, rows.rows.updated),
            (RowsKind::Delete, rows.rows.deleted),
        ];
        counts.iter().any(|&(kind, count)| count > 0 && self.has_kind(kind))
            && self.has_name(&rows.name.database, &rows.name.table)
    }
}

/// The values that a condition leaves of a column.
fn values(condition: &Expr) -> Option<(String, HashSet<String>)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (&**left, &**right) {
            (Expr::Column(column), Expr::Literal(value, _))
            | (Expr::Literal(value, _), Expr::Column(column)) => {
                Some((column.name.clone(), HashSet::from([text(value)?])))
            }
            _ => None,
        },
        // A short list is a row of comparisons.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (column, mut all) = values(left)?;
            let (other, more) = values(right)?;
            all.extend(more);
            (column == other).then_some((column, all))
        }
        Expr::InList(list) if !list.negated => {
            let Expr::Column(column) = &*list.expr else { return None };
            let values = list.list.iter().map(|value| match value {
                Expr::Literal(value, _) => text(value),
                _ => None,
            });
            Some((column.name.clone(), values.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => text.clone(),
        _ => None,
    }
}

/// Microseconds since 1970.
fn moment(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampSecond(value, _) => value.map(|value| value.saturating_mul(SECOND)),
        ScalarValue::TimestampMillisecond(value, _) => value.map(|value| value.saturating_mul(1000)),
        ScalarValue::TimestampMicrosecond(value, _) => *value,
        // Rounded down: a row between it and the next microsecond doesn't exist.
        ScalarValue::TimestampNanosecond(value, _) => value.map(|value| value.div_euclid(1000)),
        _ => None,
    }
}

impl std::fmt::Display for Wanted {
    /// For EXPLAIN.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        let named = [
            ("log", &self.logs),
            ("schema", &self.databases),
            ("table", &self.tables),
            ("operation", &self.operations),
        ];
        for (name, values) in named {
            let Some(values) = values else { continue };
            let mut values: Vec<_> = values.iter().map(String::as_str).collect();
            values.sort_unstable();
            parts.push(format!("{name}=[{}]", values.join(" ")));
        }
        if let Some(gtids) = &self.gtids {
            parts.push(format!("gtids=[{}]", gtids.to_string().replace('\n', "")));
        }
        for (name, span) in [("committed_at", self.committed), ("logged_at", self.logged)] {
            if span != Span::default() {
                parts.push(format!("{name}=[{} {}]", span.first, span.last));
            }
        }
        f.write_str(&parts.join(", "))
    }
}
