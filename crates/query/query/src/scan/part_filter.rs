//! What filters that other parts of a plan tell while it runs leave of the parts of archived logs: a join of the keys of its other side, a
//! sort with a limit of the rows that it has.
//!
//! ```text
//! gtid IN (…), id >= 7 AND id <= 9     as a condition of the statement: wanted logs
//! AND, OR, CASE … THEN filter          of what each of them leaves
//! x IS NULL                            nothing, if the statement's conditions leave no NULL there; of committed_at, the parts that may have
//!                                      transactions without this time
//! anything else                        everything: rows are checked above
//! ```

use binlogz_archive::part::BlockRun;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, DynamicFilterPhysicalExpr, InListExpr, IsNullExpr, Literal,
};
use datafusion::physical_plan::PhysicalExpr;

use super::ScanPlan;
use crate::logs::Logs;
use crate::logs::wanted::{NamedValue, Subject, WantedLogs};
use crate::tables::MadeColumn;

/// The parts of logs that a filter leaves.
#[derive(Debug)]
pub(super) enum PartFilter {
    Everything,
    Nothing,
    /// Those that may have such rows.
    Of(Box<WantedLogs>),
    /// Those that all of these leave.
    All(Vec<PartFilter>),
    /// Those that one of these leaves.
    Any(Vec<PartFilter>),
    /// Parts that may have transactions without a time of commit.
    Untimed,
}

/// The column of the times of commit.
const COMMITTED_AT: &str = "committed_at";

impl PartFilter {
    /// The filters of a scan, as they are now.
    pub(super) fn now(scan: &ScanPlan) -> Self {
        PartFilter::All(scan.filters.iter().map(|filter| Self::of(filter.as_ref(), scan)).collect())
    }

    fn of(filter: &dyn PhysicalExpr, scan: &ScanPlan) -> Self {
        if let Some(dynamic) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() {
            return dynamic.current().map_or(PartFilter::Everything, |now| Self::of(now.as_ref(), scan));
        }
        if let Some(binary) = filter.downcast_ref::<BinaryExpr>() {
            return Self::of_binary(binary, scan);
        }
        if let Some(list) = filter.downcast_ref::<InListExpr>() {
            let values: Option<Vec<_>> = list.list().iter().map(|value| literal(value.as_ref())).collect();
            return match (values, list.negated()) {
                (Some(values), false) => Self::of_values(subject(list.expr().as_ref(), scan), &values, scan),
                (_, true) | (None, false) => PartFilter::Everything,
            };
        }
        if let Some(case) = filter.downcast_ref::<CaseExpr>() {
            // One of them decides about each row.
            let then = case.when_then_expr().iter().map(|(_, then)| then);
            let each = then.chain(case.else_expr()).map(|then| Self::of(then.as_ref(), scan));
            return PartFilter::Any(each.collect());
        }
        if let Some(is_null) = filter.downcast_ref::<IsNullExpr>() {
            return match named(is_null.arg().as_ref(), scan) {
                Some(value) if scan.wanted.is_filled(&value) => PartFilter::Nothing,
                Some(NamedValue { column, field: None }) if column == COMMITTED_AT => PartFilter::Untimed,
                Some(_) | None => PartFilter::Everything,
            };
        }
        match literal(filter) {
            Some(ScalarValue::Boolean(Some(false) | None)) => PartFilter::Nothing,
            _ => PartFilter::Everything,
        }
    }

    fn of_binary(binary: &BinaryExpr, scan: &ScanPlan) -> Self {
        let (left, right) = (binary.left().as_ref(), binary.right().as_ref());
        match binary.op() {
            Operator::And => PartFilter::All(vec![Self::of(left, scan), Self::of(right, scan)]),
            Operator::Or => PartFilter::Any(vec![Self::of(left, scan), Self::of(right, scan)]),
            op => match (literal(left), literal(right)) {
                (None, Some(value)) => Self::of_comparison(subject(left, scan), *op, value, scan),
                (Some(value), None) => op.swap().map_or(PartFilter::Everything, |op| {
                    Self::of_comparison(subject(right, scan), op, value, scan)
                }),
                (None, None) | (Some(_), Some(_)) => PartFilter::Everything,
            },
        }
    }

    fn of_comparison(subject: Option<Subject>, op: Operator, value: &ScalarValue, scan: &ScanPlan) -> Self {
        if op == Operator::Eq
            && let narrowed @ PartFilter::Of(_) = Self::of_values(subject.clone(), &[value], scan)
        {
            return narrowed;
        }
        let mut wanted = scan.wanted.clone();
        match wanted.narrow_compared(subject, op, value) {
            true => PartFilter::Of(Box::new(wanted)),
            false => PartFilter::Everything,
        }
    }

    fn of_values(subject: Option<Subject>, values: &[&ScalarValue], scan: &ScanPlan) -> Self {
        let mut wanted = scan.wanted.clone();
        match subject.and_then(|subject| wanted.narrow_values(subject, values)) {
            Some(true) => PartFilter::Of(Box::new(wanted)),
            Some(false) | None => PartFilter::Everything,
        }
    }

    /// Whether a part of an archived log can have rows that meet it. `is_timed`: all its transactions have a time of commit.
    pub(super) fn may_be_in(
        &self,
        run: &BlockRun<'_>,
        is_timed: bool,
        (is_of_rows, logs): (bool, &Logs),
    ) -> bool {
        let leaves = |filter: &PartFilter| filter.may_be_in(run, is_timed, (is_of_rows, logs));
        match self {
            PartFilter::Everything => true,
            PartFilter::Nothing => false,
            PartFilter::Untimed => !is_timed,
            PartFilter::Of(wanted) => wanted.may_be_in(run, is_of_rows, logs),
            PartFilter::All(all) => all.iter().all(leaves),
            PartFilter::Any(any) => any.iter().any(leaves),
        }
    }

    /// Whether it asks which transactions have a time of commit.
    pub(super) fn asks_for_times(&self) -> bool {
        match self {
            PartFilter::Everything | PartFilter::Nothing | PartFilter::Of(_) => false,
            PartFilter::Untimed => true,
            PartFilter::All(filters) | PartFilter::Any(filters) => filters.iter().any(Self::asks_for_times),
        }
    }
}

fn literal(expression: &dyn PhysicalExpr) -> Option<&ScalarValue> {
    expression.downcast_ref::<Literal>().map(Literal::value)
}

/// What an expression stands for in the table.
fn subject(expression: &dyn PhysicalExpr, scan: &ScanPlan) -> Option<Subject> {
    if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        // To a wider number, since what it is compared with is one.
        let field = subject(cast.expr().as_ref(), scan)?;
        let is_wider = cast.cast_type().is_integer() && matches!(field, Subject::Field(_));
        return is_wider.then_some(field);
    }
    let NamedValue { column, field } = named(expression, scan)?;
    Some(field.map_or(Subject::Column(column), Subject::Field))
}

/// The names of the column, or the field, that an expression is.
fn named(expression: &dyn PhysicalExpr, scan: &ScanPlan) -> Option<NamedValue> {
    let schema = scan.reader.schema();
    let name = |column: usize| Some(schema.fields().get(column)?.name().clone());
    match scan.output(expression)? {
        MadeColumn::Column(column) => Some(NamedValue { column: name(column)?, field: None }),
        // No filter has it.
        MadeColumn::Presence(..) => None,
        MadeColumn::Field(column, field) => {
            let DataType::Struct(fields) = schema.fields().get(column)?.data_type() else { return None };
            let field = Some(fields.get(field)?.name().clone());
            Some(NamedValue { column: name(column)?, field })
        }
    }
}
