//! The part of the logs that a query's conditions leave: which blocks of an archive can have rows that meet them, and which
//! tables. A condition that isn't understood leaves everything: DataFusion checks each row again.

use std::collections::BTreeSet;
use std::str::FromStr;

use binlogz_archive::format::Key as ArchivedKey;
use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::part::{BlockRun, TableRows};
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::row::TableSchema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::logs::{BaseCondition, BaseValue, Logs};

const SECOND: i64 = 1_000_000;

/// The wanted part of the logs; `None`: everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WantedLogs {
    logs: Option<BTreeSet<String>>,
    databases: Option<BTreeSet<String>>,
    tables: Option<BTreeSet<String>>,
    operations: Option<BTreeSet<String>>,
    gtids: Option<GtidSet>,
    committed: Span,
    logged: Span,
    values: Vec<ValueCondition>,
    /// Where the parts of one archived log begin that have rows which meet all conditions on values.
    runs: Option<BTreeSet<u64>>,
    /// Values that no row has as NULL which meets the conditions.
    filled: BTreeSet<NamedValue>,
}

/// A column of a table, or a field of one: by their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedValue {
    pub(crate) column: String,
    pub(crate) field: Option<String>,
}

impl NamedValue {
    fn of(expression: &Expr) -> Option<Self> {
        match expression {
            Expr::Column(column) => Some(NamedValue { column: column.name.clone(), field: None }),
            Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                ("get_field", [Expr::Column(column), Expr::Literal(name, _)]) => {
                    Some(NamedValue { column: column.name.clone(), field: Some(text(name)?) })
                }
                _ => None,
            },
            // NULL becomes NULL.
            Expr::Cast(cast) => Self::of(&cast.expr),
            _ => None,
        }
    }
}

/// A condition on a column of a user table, before or after the change. It may be the one whose keys an archive knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueCondition {
    pub(crate) column: String,
    /// One of these is met.
    pub(crate) probes: Vec<KeyProbe>,
}

/// More values than this are not looked for row by row.
const PROBES_MAX: usize = 64;

/// The subject of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Column(String),
    /// A column of a user table, before or after the change.
    Field(String),
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

impl WantedLogs {
    /// The rows of one table.
    pub(crate) fn of_table(database: &str, table: &str) -> Self {
        WantedLogs {
            databases: Some(BTreeSet::from([database.to_owned()])),
            tables: Some(BTreeSet::from([table.to_owned()])),
            ..WantedLogs::default()
        }
    }

    /// Takes values of which every row has to have one; `None`: they aren't understood as such.
    pub(crate) fn narrow_values(&mut self, subject: Subject, values: &[&ScalarValue]) -> Option<bool> {
        match subject {
            Subject::Column(column) => {
                let values = values.iter().map(|value| text(value)).collect::<Option<_>>()?;
                Some(self.narrow_to(&column, values))
            }
            Subject::Field(column) => {
                let probes = values.iter().map(|value| probe(value)).collect::<Option<Vec<_>>>();
                Some(probes.is_some_and(|probes| self.narrow_key(column, probes)))
            }
        }
    }

    /// Takes a condition that every row has to meet; `false`: it leaves everything.
    pub(crate) fn narrow(&mut self, condition: &Expr) -> bool {
        let narrowed = self.narrow_parts(condition);
        self.fill(condition) || narrowed
    }

    /// Takes which value isn't NULL in rows that meet a condition; `false`: it says nothing that wouldn't be known otherwise.
    fn fill(&mut self, condition: &Expr) -> bool {
        let (value, is_all) = match condition {
            Expr::IsNotNull(value) => (value, true),
            Expr::InList(list) => (&list.expr, false),
            Expr::Between(between) => (&between.expr, false),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
                (if matches!(**left, Expr::Literal(..)) { right } else { left }, false)
            }
            _ => return false,
        };
        let Some(value) = NamedValue::of(value) else { return false };
        self.filled.insert(value);
        is_all
    }

    /// Whether no wanted row has NULL there.
    pub(crate) fn is_filled(&self, value: &NamedValue) -> bool {
        self.filled.contains(value)
    }

    fn narrow_parts(&mut self, condition: &Expr) -> bool {
        if let Some((subject, values)) = values(condition)
            && let Some(narrowed) = self.narrow_values(subject, &values)
        {
            return narrowed;
        }
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                let left = self.narrow(left);
                self.narrow(right) || left
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
                (subject, Expr::Literal(value, _)) => self.compare(subject, *op, value),
                (Expr::Literal(value, _), subject) => {
                    op.swap().is_some_and(|op| self.compare(subject, op, value))
                }
                _ => false,
            },
            Expr::Between(between) if !between.negated => match (&*between.low, &*between.high) {
                (Expr::Literal(low, _), Expr::Literal(high, _)) => {
                    let low = self.compare(&between.expr, Operator::GtEq, low);
                    self.compare(&between.expr, Operator::LtEq, high) || low
                }
                _ => false,
            },
            Expr::ScalarFunction(call) if call.func.name() == crate::sql::functions::GTID_IN => {
                let [Expr::Literal(set, _), Expr::Column(column)] = call.args.as_slice() else {
                    return false;
                };
                let set = text(set).and_then(|set| GtidSet::from_str(&set).ok());
                set.is_some_and(|set| column.name == "gtid" && self.narrow_gtids(set))
            }
            _ => false,
        }
    }

    fn narrow_to(&mut self, column: &str, values: BTreeSet<String>) -> bool {
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

    fn narrow_key(&mut self, column: String, probes: Vec<KeyProbe>) -> bool {
        self.values.push(ValueCondition { column, probes });
        true
    }

    fn compare(&mut self, subject: &Expr, op: Operator, value: &ScalarValue) -> bool {
        self.narrow_compared(subject_of(subject), op, value)
    }

    /// Takes a comparison with a value that every row has to meet; `false`: it leaves everything.
    pub(crate) fn narrow_compared(
        &mut self,
        subject: Option<Subject>,
        op: Operator,
        value: &ScalarValue,
    ) -> bool {
        let span = match subject {
            Some(Subject::Column(column)) if column == "committed_at" => &mut self.committed,
            Some(Subject::Column(column)) if column == "logged_at" => &mut self.logged,
            Some(Subject::Field(column)) => {
                let Some(number) = number(value) else { return false };
                let numbers = match op {
                    Operator::Gt | Operator::GtEq => (number, i128::MAX),
                    Operator::Lt | Operator::LtEq => (i128::MIN, number),
                    _ => return false,
                };
                return self.narrow_key(column, vec![KeyProbe { numbers: Some(numbers), text: None }]);
            }
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
        self.operations.as_ref().is_none_or(|kinds| kinds.contains(kind.operation()))
    }

    /// Whether rows of a table are wanted.
    pub(crate) fn has_table(&self, schema: &TableSchema) -> bool {
        self.has_name(&schema.database, &schema.table)
    }

    /// The table, if there is only one.
    pub(crate) fn one_table(&self) -> Option<(&str, &str)> {
        let one =
            |names: &'_ Option<BTreeSet<String>>| -> Option<usize> { names.as_ref().map(BTreeSet::len) };
        if one(&self.databases) != Some(1) || one(&self.tables) != Some(1) {
            return None;
        }
        let database = self.databases.as_ref()?.first()?;
        let table = self.tables.as_ref()?.first()?;
        // Names that are no UTF-8 are not known as they are.
        let is_known = |name: &str| !name.contains(char::REPLACEMENT_CHARACTER);
        (is_known(database) && is_known(table)).then_some((database, table))
    }

    /// Whether it is chosen by nothing but logs, tables and operations.
    pub(crate) fn is_of_tables(&self) -> bool {
        let WantedLogs {
            logs: _,
            databases: _,
            tables: _,
            operations: _,
            gtids,
            committed,
            logged,
            values,
            runs,
            filled: _,
        } = self;
        let every = Span::default();
        gtids.is_none() && *committed == every && *logged == every && values.is_empty() && runs.is_none()
    }

    /// The conditions that few values meet.
    pub(crate) fn narrow_conditions(&self) -> Vec<ValueCondition> {
        let is_narrow = |condition: &&ValueCondition| {
            condition.probes.len() <= PROBES_MAX && condition.probes.iter().all(KeyProbe::is_narrow)
        };
        self.values.iter().filter(is_narrow).cloned().collect()
    }

    /// Of one archived log, only the parts that begin there.
    #[must_use]
    pub(crate) fn within(&self, runs: BTreeSet<u64>) -> Self {
        WantedLogs { runs: Some(runs), ..self.clone() }
    }

    /// Whether rows of a table of this name are wanted.
    pub(crate) fn has_name(&self, database: &[u8], table: &[u8]) -> bool {
        let is_in = |names: &Option<BTreeSet<String>>, name: &[u8]| {
            names.as_ref().is_none_or(|names| names.contains(&*String::from_utf8_lossy(name)))
        };
        is_in(&self.databases, database) && is_in(&self.tables, table)
    }

    /// Whether a part of an archived log can have the wanted rows. `is_of_rows`: only rows are wanted.
    pub(crate) fn may_be_in(&self, run: &BlockRun<'_>, is_of_rows: bool, logs: &Logs) -> bool {
        if self.runs.as_ref().is_some_and(|runs| !runs.contains(&run.start())) {
            return false;
        }
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
        !is_of_rows || run.may_have_rows(&|rows| self.may_have(rows, logs))
    }

    fn may_have(&self, rows: TableRows<'_>, logs: &Logs) -> bool {
        let counts = [
            (RowsKind::Write, rows.rows.inserted),
            (RowsKind::Update, rows.rows.updated),
            (RowsKind::Delete, rows.rows.deleted),
        ];
        counts.iter().any(|&(kind, count)| count > 0 && self.has_kind(kind))
            && self.has_name(&rows.name.database, &rows.name.table)
            && self.values.iter().all(|condition| {
                !logs.is_key(rows.name, &condition.column) || rows.may_have(&condition.probes)
            })
    }
}

/// A condition on a column that few whole numbers or texts meet, as a base takes it; `None`: it isn't one.
pub(crate) fn base_condition(condition: &Expr) -> Option<BaseCondition> {
    let (Subject::Column(column), values) = values(condition)? else { return None };
    let value = |value: &&ScalarValue| match number(value) {
        Some(number) => Some(BaseValue::Number(number)),
        None => text(value).map(BaseValue::Text),
    };
    let values: Vec<_> = values.iter().map(value).collect::<Option<_>>()?;
    (!values.is_empty() && values.len() <= PROBES_MAX).then_some(BaseCondition { column, values })
}

/// Whether it is never met by NULL.
fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The values of a column or expression that a condition leaves.
fn values(condition: &Expr) -> Option<(Subject, Vec<&ScalarValue>)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (&**left, &**right) {
            (subject, Expr::Literal(value, _)) | (Expr::Literal(value, _), subject) => {
                Some((subject_of(subject)?, vec![value]))
            }
            _ => None,
        },
        // A short list is a row of comparisons.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (subject, mut all) = values(left)?;
            let (other, more) = values(right)?;
            all.extend(more);
            (subject == other).then_some((subject, all))
        }
        Expr::InList(list) if !list.negated => {
            let values = list.list.iter().map(|value| match value {
                Expr::Literal(value, _) => Some(value),
                _ => None,
            });
            Some((subject_of(&list.expr)?, values.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

fn subject_of(expression: &Expr) -> Option<Subject> {
    match expression {
        Expr::Column(column) => Some(Subject::Column(column.name.clone())),
        // To a wider number, since the literal is one.
        Expr::Cast(cast) if cast.field.data_type().is_integer() => match subject_of(&cast.expr)? {
            field @ Subject::Field(_) => Some(field),
            Subject::Column(_) => None,
        },
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
            ("get_field", [Expr::Column(image), Expr::Literal(name, _)]) => {
                matches!(image.name.as_str(), "before" | "after").then_some(Subject::Field(text(name)?))
            }
            ("coalesce", args) => same_subject(args.iter()),
            _ => None,
        },
        // What becomes of coalesce: whichever it is, it is one of them.
        Expr::Case(case) if case.expr.is_none() => {
            let then = case.when_then_expr.iter().map(|(_, then)| &**then);
            same_subject(then.chain(case.else_expr.as_deref()))
        }
        _ => None,
    }
}

/// The field of a user table that all of these are, before or after the change.
fn same_subject<'e>(expressions: impl Iterator<Item = &'e Expr>) -> Option<Subject> {
    let mut same = None;
    for expression in expressions {
        let Some(subject @ Subject::Field(_)) = subject_of(expression) else { return None };
        if same.get_or_insert_with(|| subject.clone()) != &subject {
            return None;
        }
    }
    same
}

/// A value as an archive looks for it among the keys of its blocks.
fn probe(value: &ScalarValue) -> Option<KeyProbe> {
    if let Some(number) = number(value) {
        return Some(KeyProbe { numbers: Some((number, number)), text: None });
    }
    let text = text(value)?;
    // What is no text in its character set looks like this.
    let is_bytes = text.starts_with("0x");
    let number = text.parse().ok().filter(|number: &i128| number.to_string() == text);
    Some(KeyProbe {
        numbers: number.map(|number| (number, number)),
        text: (!is_bytes).then(|| ArchivedKey::of_bytes(text.as_bytes())),
    })
}

fn number(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(number) => number.map(i128::from),
        ScalarValue::Int16(number) => number.map(i128::from),
        ScalarValue::Int32(number) => number.map(i128::from),
        ScalarValue::Int64(number) => number.map(i128::from),
        ScalarValue::UInt8(number) => number.map(i128::from),
        ScalarValue::UInt16(number) => number.map(i128::from),
        ScalarValue::UInt32(number) => number.map(i128::from),
        ScalarValue::UInt64(number) => number.map(i128::from),
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

impl std::fmt::Display for WantedLogs {
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
        if !self.filled.is_empty() {
            let filled = self.filled.iter().map(|value| match &value.field {
                Some(field) => format!("{}.{field}", value.column),
                None => value.column.clone(),
            });
            parts.push(format!("filled=[{}]", filled.collect::<Vec<_>>().join(" ")));
        }
        let mut columns: Vec<_> = self.values.iter().map(|key| key.column.as_str()).collect();
        columns.dedup();
        if !columns.is_empty() {
            parts.push(format!("key=[{}]", columns.join(" ")));
        }
        f.write_str(&parts.join(", "))
    }
}
