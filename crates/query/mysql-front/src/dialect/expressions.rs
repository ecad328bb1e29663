//! Rewrites a parsed statement: names of tables, columns in any case, functions, operators, variables, LIMIT, types of CAST.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use binlogz_query::moment_of;
use binlogz_query_server::StatementRefusal;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, LimitClause, ObjectName, ObjectNamePart, Offset,
    OffsetRows, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TimezoneInfo, UnaryOperator,
    Value, ValueWithSpan, VisitorMut,
};

use super::functions;
use super::having::without_groups;
use super::tables::{FoundTable, KnownTables, SystemName, find};
use crate::errors::{NOT_SUPPORTED, OPTION_PREVENTS, READ_ONLY, SYNTAX, refused};
use crate::session::MysqlSession;
use crate::variables::{FrontVariables, VERSION, VariableKind, check_character_set};

type VisitOutcome = ControlFlow<StatementRefusal>;

/// Rewrites a statement while it is visited.
pub(super) struct MysqlRewriter<'s> {
    session: &'s MysqlSession,
    variables: &'s FrontVariables,
    known: &'s dyn KnownTables,
    /// Names that WITH gives to queries.
    given: BTreeSet<String>,
    pub(super) system: BTreeSet<SystemName>,
    /// Whether it reads more than system tables.
    reads_logs: bool,
}

impl<'s> MysqlRewriter<'s> {
    pub(super) fn new(
        session: &'s MysqlSession,
        variables: &'s FrontVariables,
        known: &'s dyn KnownTables,
    ) -> Self {
        let (given, system) = Default::default();
        MysqlRewriter { session, variables, known, given, system, reads_logs: false }
    }

    /// Whether the statement reads system tables, and nothing else.
    pub(super) fn is_listing(&self) -> bool {
        !self.system.is_empty() && !self.reads_logs && self.given.is_empty()
    }

    fn table(
        &mut self,
        name: &mut ObjectName,
        alias: &mut Option<TableAlias>,
    ) -> Result<(), StatementRefusal> {
        let last =
            name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.clone()).unwrap_or_default();
        if name.0.len() == 1 && self.given.contains(&last.to_lowercase()) {
            unquoted(name);
            return Ok(());
        }
        let found = find(name, &self.session.database, self.known)?;
        let is_system = match &found {
            FoundTable::System(found) => {
                self.system.insert(found.clone());
                true
            }
            FoundTable::OfLogs(..) => {
                self.reads_logs = true;
                false
            }
        };
        *name = found.name();
        let own = moment_of(&last).map_or(last.as_str(), |(table, _)| table);
        // Columns name their table in lower case, as all names without quotes become.
        let is_renamed = is_system || own != last || last.chars().any(char::is_uppercase);
        if alias.is_none() && is_renamed {
            *alias =
                Some(TableAlias { explicit: true, name: Ident::new(own), columns: Vec::new(), at: None });
        }
        if let Some(alias) = alias {
            alias.name.quote_style = None;
            alias.columns.iter_mut().for_each(|column| column.name.quote_style = None);
        }
        Ok(())
    }

    /// The literal that a word stands for: `@@version`, `@@session.autocommit`.
    fn variable(&self, names: &[Ident]) -> Result<Option<Expr>, StatementRefusal> {
        let Some(first) = names.first().filter(|name| name.quote_style.is_none()) else { return Ok(None) };
        if let Some(first) = first.value.strip_prefix("@@") {
            let last = names.last().map_or(first, |last| last.value.trim_start_matches("@@"));
            let value = self.variables.value(last).map_err(|error| refused(error.code, error.message))?;
            return Ok(Some(match value.kind {
                VariableKind::Switch | VariableKind::Number => number(value.value),
                VariableKind::Text => text(value.value),
            }));
        }
        match first.value.starts_with('@') {
            true => {
                let message = format!("{} is not possible in a query here: write its value", first.value);
                Err(refused(NOT_SUPPORTED, message))
            }
            false => Ok(None),
        }
    }

    /// The literal of a function that tells of the session.
    fn told(&self, name: &str, arguments: &[Expr]) -> Option<Expr> {
        if !arguments.is_empty() {
            return None;
        }
        let MysqlSession { user, address, database, connection, .. } = self.session;
        Some(match name.to_ascii_uppercase().as_str() {
            "VERSION" => text(VERSION),
            "DATABASE" | "SCHEMA" if database.is_empty() => null(),
            "DATABASE" | "SCHEMA" => text(database),
            "USER" | "SESSION_USER" | "SYSTEM_USER" => text(&format!("{user}@{address}")),
            "CURRENT_USER" => text(&format!("{user}@%")),
            "CURRENT_ROLE" => text("NONE"),
            "CONNECTION_ID" => number(&connection.to_string()),
            // Nothing is inserted. How many rows the statement before had isn't kept: ROW_COUNT and FOUND_ROWS are not there.
            "LAST_INSERT_ID" => number("0"),
            _ => return None,
        })
    }

    fn function(&self, function: &mut Function) -> Result<Option<Expr>, StatementRefusal> {
        let [name] = function.name.0.as_slice() else { return Ok(None) };
        let Some(name) = name.as_ident().map(|name| name.value.clone()) else { return Ok(None) };
        if name.eq_ignore_ascii_case("GROUP_CONCAT") {
            return group_concat(function).map(|()| None);
        }
        // The engine's STDDEV is that of a sample.
        if let Some(told) = functions::aggregate(&name) {
            function.name = ObjectName::from(vec![Ident::new(told)]);
            return Ok(None);
        }
        let arguments = match &function.args {
            FunctionArguments::None => Some(Vec::new()),
            FunctionArguments::List(list) => plain(&list.args),
            FunctionArguments::Subquery(_) => None,
        };
        let is_plain = function.over.is_none() && function.filter.is_none();
        let Some(arguments) = arguments.filter(|_| is_plain) else { return Ok(None) };
        if let Some(told) = self.told(&name, &arguments).or_else(|| functions::function(&name, &arguments)) {
            return Ok(Some(told));
        }
        match functions::has_no_format(&name, arguments.len()) {
            true => {
                let message = format!(
                    "{name} with this format is not supported: letters such as %Y %m %d %H %i %s %f are"
                );
                Err(refused(NOT_SUPPORTED, message))
            }
            false => Ok(None),
        }
    }

    fn expression(&self, expression: &mut Expr) -> Result<(), StatementRefusal> {
        match expression {
            Expr::Identifier(name) => {
                if let Some(value) = self.variable(std::slice::from_ref(name))? {
                    *expression = value;
                } else {
                    name.quote_style = None;
                }
            }
            Expr::CompoundIdentifier(names) => {
                if let Some(value) = self.variable(names)? {
                    *expression = value;
                } else {
                    names.iter_mut().for_each(|name| name.quote_style = None);
                }
            }
            Expr::Function(function) => {
                if let Some(told) = self.function(function)? {
                    *expression = told;
                }
            }
            Expr::BinaryOp { left, op, right } => {
                let both = [left.as_ref().clone(), right.as_ref().clone()];
                let told = match op {
                    BinaryOperator::Arrow => functions::expression("json_extract($1, $2)", &both),
                    BinaryOperator::LongArrow => functions::expression("json_value($1, $2)", &both),
                    BinaryOperator::Spaceship => functions::expression("$1 IS NOT DISTINCT FROM $2", &both),
                    _ => None,
                };
                if let Some(told) = told {
                    *expression = told;
                }
            }
            // Both kinds of quotes are of texts here.
            Expr::Value(ValueWithSpan { value, .. }) => {
                if let Value::DoubleQuotedString(text) = value {
                    *value = Value::SingleQuotedString(std::mem::take(text));
                }
            }
            Expr::UnaryOp { op: op @ UnaryOperator::BangNot, .. } => *op = UnaryOperator::Not,
            Expr::Collate { expr, collation } => {
                let name = collation.to_string().to_ascii_lowercase();
                let name = name.trim_matches(['`', '\'', '"']);
                if name != "binary" && !name.ends_with("_bin") {
                    let message = format!("COLLATE {name} is not supported: texts are compared exactly here");
                    return Err(refused(NOT_SUPPORTED, message));
                }
                *expression = take(expr);
            }
            Expr::Prefixed { prefix, value } => {
                check_text_form(prefix.value.trim_start_matches('_'))?;
                *expression = take(value);
            }
            Expr::Convert { expr, data_type: None, charset, .. } => {
                if let Some(charset) = charset {
                    check_text_form(&charset.to_string())?;
                }
                *expression = take(expr);
            }
            Expr::Convert { expr, data_type: Some(kind), .. } => {
                let (kind, length) = (cast_type(kind)?, cast_length(kind));
                *expression = cut(cast(take(expr), kind), length);
            }
            Expr::Cast { data_type, .. } => {
                let length = cast_length(data_type);
                *data_type = cast_type(data_type)?;
                if length.is_some() {
                    let whole = std::mem::replace(expression, null());
                    *expression = cut(whole, length);
                }
            }
            Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                let length = substring_for.as_deref().cloned();
                if let Some(told) = functions::substring(expr, from, length) {
                    *expression = told;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl VisitorMut for MysqlRewriter<'_> {
    type Break = StatementRefusal;

    fn pre_visit_query(&mut self, query: &mut Query) -> VisitOutcome {
        if let Some(with) = &mut query.with {
            for table in &mut with.cte_tables {
                table.alias.name.quote_style = None;
                table.alias.columns.iter_mut().for_each(|column| column.name.quote_style = None);
                self.given.insert(table.alias.name.value.to_lowercase());
            }
        }
        // Nothing is written, so nothing needs to be locked.
        query.locks.clear();
        if let Some(LimitClause::OffsetCommaLimit { offset, limit }) = &query.limit_clause {
            let offset = Some(Offset { value: offset.clone(), rows: OffsetRows::None });
            let limit = Some(limit.clone());
            query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
        }
        if let SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) = *query.body
        {
            return ControlFlow::Break(refused(OPTION_PREVENTS, READ_ONLY));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> VisitOutcome {
        select.select_modifiers = None;
        select.optimizer_hints.clear();
        without_groups(select);
        for item in &mut select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                alias.quote_style = None;
            }
        }
        // FROM DUAL is no table at all.
        let is_dual = |factor: &TableFactor| matches!(factor, TableFactor::Table { name, .. } if name.to_string().eq_ignore_ascii_case("dual"));
        if select.from.len() == 1
            && select.from.iter().all(|from| from.joins.is_empty() && is_dual(&from.relation))
        {
            select.from.clear();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> VisitOutcome {
        match factor {
            TableFactor::Table { name, alias, args: None, with_hints, index_hints, partitions, .. } => {
                with_hints.clear();
                index_hints.clear();
                if !partitions.is_empty() {
                    let message = "PARTITION is not supported: logs don't tell the partitions of rows";
                    return ControlFlow::Break(refused(NOT_SUPPORTED, message));
                }
                match self.table(name, alias) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(refusal) => ControlFlow::Break(refusal),
                }
            }
            TableFactor::Derived { alias, .. } => {
                if let Some(alias) = alias {
                    alias.name.quote_style = None;
                    alias.columns.iter_mut().for_each(|column| column.name.quote_style = None);
                }
                ControlFlow::Continue(())
            }
            _ => {
                self.reads_logs = true;
                ControlFlow::Continue(())
            }
        }
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> VisitOutcome {
        match self.expression(expression) {
            Ok(()) => ControlFlow::Continue(()),
            Err(refusal) => ControlFlow::Break(refusal),
        }
    }
}

/// Arguments that are expressions alone.
fn plain(arguments: &[FunctionArg]) -> Option<Vec<Expr>> {
    arguments
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression.clone()),
            _ => None,
        })
        .collect()
}

/// GROUP_CONCAT as STRING_AGG: a text of each value, then the separator.
fn group_concat(function: &mut Function) -> Result<(), StatementRefusal> {
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let Some(arguments) = plain(&list.args) else { return Ok(()) };
    // With DISTINCT the expression is compared with that of ORDER BY: it stays as it is.
    let alone = list.duplicate_treatment.and_then(|_| <[Expr; 1]>::try_from(arguments.clone()).ok());
    let value = alone.map(|[value]| value).or_else(|| functions::function("CONCAT", &arguments)).ok_or_else(
        || refused(SYNTAX, "You have an error in your SQL syntax; GROUP_CONCAT without an expression"),
    )?;
    let mut separator = Some(",".to_owned());
    // The query engine refuses other clauses than ORDER BY.
    list.clauses.retain(|clause| {
        let FunctionArgumentClause::Separator(given) = clause else { return true };
        separator = given.value.clone().into_string();
        false
    });
    let separator = separator.ok_or_else(|| {
        refused(SYNTAX, "You have an error in your SQL syntax; SEPARATOR of GROUP_CONCAT is a text in quotes")
    })?;
    list.args = [value, text(&separator)]
        .into_iter()
        .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)))
        .collect();
    function.name = ObjectName::from(vec![Ident::new("string_agg")]);
    Ok(())
}

fn unquoted(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let Some(ident) = part.as_ident().cloned() {
            *part = ObjectNamePart::Identifier(Ident::new(ident.value));
        }
    }
}

fn take(expression: &mut Box<Expr>) -> Expr {
    std::mem::replace(expression.as_mut(), null())
}

fn cast(expression: Expr, data_type: DataType) -> Expr {
    let kind = datafusion::sql::sqlparser::ast::CastKind::Cast;
    Expr::Cast { kind, expr: Box::new(expression), data_type, array: false, format: None }
}

/// A type of CAST as the query engine knows it.
fn cast_type(kind: &DataType) -> Result<DataType, StatementRefusal> {
    Ok(match kind {
        DataType::Signed | DataType::SignedInteger => DataType::BigInt(None),
        DataType::Unsigned | DataType::UnsignedInteger => DataType::BigIntUnsigned(None),
        DataType::Char(_) | DataType::Character(_) | DataType::Nvarchar(_) | DataType::JSON => {
            DataType::Varchar(None)
        }
        // They would be cut, or filled with zeros.
        DataType::Binary(Some(_)) | DataType::Varbinary(Some(_)) => {
            return Err(refused(NOT_SUPPORTED, "CAST to BINARY of a length is not supported: leave it out"));
        }
        DataType::Binary(_) | DataType::Varbinary(_) => DataType::Bytea,
        DataType::Decimal(ExactNumberInfo::None) | DataType::Dec(ExactNumberInfo::None) => {
            DataType::Decimal(ExactNumberInfo::PrecisionAndScale(10, 0))
        }
        DataType::Datetime(digits) => {
            // Those that Arrow's times may have.
            let digits = match digits {
                None | Some(0) => 0,
                Some(1..=3) => 3,
                Some(_) => 6,
            };
            DataType::Timestamp(Some(digits), TimezoneInfo::None)
        }
        other => other.clone(),
    })
}

/// The characters of a text that CAST leaves.
fn cast_length(kind: &DataType) -> Option<u64> {
    match kind {
        DataType::Char(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Character(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Nvarchar(Some(CharacterLength::IntegerLength { length, .. })) => Some(*length),
        _ => None,
    }
}

/// A text, cut to a length if there is one.
fn cut(whole: Expr, length: Option<u64>) -> Expr {
    let Some(length) = length else { return whole };
    let arguments = [whole.clone(), number(&length.to_string())];
    functions::expression("left($1, $2)", &arguments).unwrap_or(whole)
}

/// Refuses a character set in which a text's bytes mean something else than in UTF-8.
fn check_text_form(name: &str) -> Result<(), StatementRefusal> {
    let name = name.trim_matches(['`', '\'', '"']);
    check_character_set(name).map_err(|error| refused(error.code, error.message))
}

fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).with_empty_span())
}

fn number(value: &str) -> Expr {
    Expr::Value(Value::Number(value.to_owned(), false).with_empty_span())
}

fn null() -> Expr {
    Expr::Value(ValueWithSpan::from(Value::Null))
}
