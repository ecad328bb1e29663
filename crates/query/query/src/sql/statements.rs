//! Statements and their parameters as users write them: parses text into statements.
//!
//! A value never becomes a part of the text: it takes the place of its parameter in the plan, with the type that the statement
//! gives it there. `?` is the next of `$1`, `$2` …, as JDBC and others write parameters.

use std::collections::{BTreeMap, HashMap};

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, ParamValues, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::error::{Error, Result};
use crate::sql::as_of::{self, UnquotedNames};
use crate::sql::{depth, division};

/// A statement that was read, but not planned.
#[derive(Debug)]
pub struct ReadStatement {
    pub(crate) parsed: Parsed,
    parameters: Vec<String>,
    pub(crate) values: ParameterValues,
}

/// Values of parameters, by name: `1` is that of `$1`.
#[derive(Debug, Clone, Default)]
pub struct ParameterValues(BTreeMap<String, ScalarValue>);

/// Reads statements; those of a text are divided by semicolons.
///
/// # Errors
///
/// A text that is no SQL, has no statement, or one that is too deep or too large.
pub fn statements(sql: &str) -> Result<Vec<ReadStatement>> {
    let mut tokens = tokens(sql).map_err(|error| Error::Sql(error.to_string()))?;
    division::read_div(&mut tokens);
    as_of::read_moments(&mut tokens, UnquotedNames::Lowered)?;
    let mut statements = Vec::new();
    for tokens in tokens.split(|token| token.token == Token::SemiColon) {
        depth::check(tokens)?;
        let mut tokens = tokens.to_vec();
        let parameters = name_parameters(&mut tokens);
        let parser = DFParserBuilder::new(tokens).build();
        let mut parsed =
            parser.and_then(|mut parser| parser.parse_statements()).map_err(|error| Error::of(&error, 0))?;
        parsed.iter_mut().for_each(as_of::name_tables);
        statements.extend(parsed.into_iter().map(|parsed| ReadStatement {
            parsed,
            parameters: parameters.clone(),
            values: ParameterValues::default(),
        }));
    }
    match statements.is_empty() {
        true => Err(Error::Sql("there is no statement".to_owned())),
        false => Ok(statements),
    }
}

/// A text taken apart by the rules of a dialect: small and flat enough to be parsed, each `?` with a number for its name.
#[derive(Debug)]
pub struct StatementTokens {
    /// The tokens, with white space and comments.
    pub tokens: Vec<TokenWithSpan>,
    /// The names of the parameters.
    pub parameters: Vec<String>,
}

impl StatementTokens {
    /// Takes a text apart.
    ///
    /// # Errors
    ///
    /// A text or a comment without an end, a statement that is too deep or too large.
    pub fn of(sql: &str, dialect: &dyn Dialect) -> Result<Self> {
        if sql.len() > depth::STATEMENT_SIZE_MAX {
            return Err(too_long(sql));
        }
        let tokens = Tokenizer::new(dialect, sql).tokenize_with_location();
        let mut tokens = tokens.map_err(|error| Error::Sql(error.to_string()))?;
        as_of::read_moments(&mut tokens, UnquotedNames::Same)?;
        depth::check(&tokens)?;
        let parameters = name_parameters(&mut tokens);
        Ok(StatementTokens { tokens, parameters })
    }
}

/// The refusal of a long text.
pub(crate) fn too_long(sql: &str) -> Error {
    Error::Sql(format!(
        "the statement has {} bytes, expected at most {}; a parameter may have a longer value",
        sql.len(),
        depth::STATEMENT_SIZE_MAX
    ))
}

/// Whether a text ends with the semicolon of a whole statement, or can't be read whatever follows.
pub fn is_whole(sql: &str) -> bool {
    match tokens(sql) {
        Ok(tokens) => {
            let mut rest = tokens.iter().rev().map(|token| &token.token);
            rest.find(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)) == Some(&Token::SemiColon)
        }
        // A text or a comment that has no end yet.
        Err(_) => false,
    }
}

fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location()
}

/// Names each `?` by its number, and lists all parameters: numbers in their order, then names as they come.
fn name_parameters(tokens: &mut [TokenWithSpan]) -> Vec<String> {
    let mut numbers = Vec::new();
    let mut names = Vec::new();
    let mut asked = 0;
    for TokenWithSpan { token, .. } in tokens {
        let is_mark = *token == Token::Question || matches!(token, Token::Placeholder(text) if text == "?");
        if is_mark {
            asked += 1;
            *token = Token::Placeholder(format!("${asked}"));
        }
        let Token::Placeholder(text) = token else { continue };
        let name = text.trim_start_matches('$');
        match name.parse::<usize>() {
            Ok(number) => numbers.push(number),
            Err(_) if names.iter().any(|known| known == name) => {}
            Err(_) => names.push(name.to_owned()),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().map(usize::to_string).chain(names).collect()
}

impl ReadStatement {
    /// A statement that was parsed elsewhere, by [`StatementTokens`], with the names of its parameters.
    pub fn of_parsed(parsed: ast::Statement, parameters: Vec<String>) -> Self {
        let parsed = Parsed::Statement(Box::new(parsed));
        ReadStatement { parsed, parameters, values: ParameterValues::default() }
    }

    /// The names of its parameters: `1` for `$1`.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// The statement with values for its parameters; other values are ignored.
    #[must_use]
    pub fn with(self, values: ParameterValues) -> Self {
        ReadStatement { values, ..self }
    }
}

impl ParameterValues {
    /// Gives a parameter a text, which becomes what the statement needs.
    pub fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, ScalarValue::Utf8(Some(text.to_owned())));
    }

    /// Gives a parameter a value.
    pub fn set(&mut self, name: &str, value: ScalarValue) {
        self.0.insert(name.to_owned(), value);
    }

    /// The names that have a value.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A plan with these in the places of its parameters.
    pub(crate) fn bind(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let types = types(&plan).map_err(|error| Error::of(&error, 0))?;
        if types.is_empty() {
            return Ok(plan);
        }
        let mut bound = HashMap::new();
        for (name, kind) in types {
            let Some(value) = self.0.get(&name) else {
                return Err(Error::Sql(format!("parameter ${name} has no value")));
            };
            let value = match &kind {
                Some(kind) => cast_exactly(value, kind).ok_or_else(|| {
                    Error::Sql(format!("parameter ${name} is '{value}', expected a value of type {kind}"))
                })?,
                None => value.clone(),
            };
            bound.insert(name, value.into());
        }
        plan.with_param_values(ParamValues::Map(bound)).map_err(|error| Error::of(&error, 0))
    }
}

/// A value as another type; `None`: it has none of that type. 1.5 isn't an integer, and a day has no hour: without these a value
/// would compare as another one.
fn cast_exactly(value: &ScalarValue, kind: &DataType) -> Option<ScalarValue> {
    let cast = value.cast_to(kind).ok()?;
    let is_decimal = matches!(kind, DataType::Decimal128(..) | DataType::Decimal256(..));
    let is_date = matches!(kind, DataType::Date32 | DataType::Date64);
    if value.is_null() || !(kind.is_integer() || is_decimal || is_date) {
        return Some(cast);
    }
    // The type in which both are compared.
    let common = match value.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_decimal => {
            DataType::Decimal256(76, 38)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_date => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        // A text with more than an integer wasn't cast.
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => return Some(cast),
        own => own,
    };
    match (value.cast_to(&common), cast.cast_to(&common)) {
        (Ok(given), Ok(made)) => (given == made).then_some(cast),
        // A text that this type doesn't read, such as 2024-1-5, or a number of more digits than it has.
        (Err(_), _) => Some(cast),
        (Ok(_), Err(_)) => None,
    }
}

/// The parameters of a plan, and their types where it tells them.
pub(crate) fn types(plan: &LogicalPlan) -> Result<BTreeMap<String, Option<DataType>>, DataFusionError> {
    let mut types: BTreeMap<String, Option<DataType>> = BTreeMap::new();
    plan.apply_with_subqueries(|plan| {
        // LIMIT and OFFSET count rows.
        let usual = matches!(plan, LogicalPlan::Limit(_)).then_some(DataType::Int64);
        plan.apply_expressions(|expression| {
            expression.apply(|expression| {
                if let Expr::Placeholder(Placeholder { id, field }) = expression {
                    let told =
                        field.as_ref().map(|field| field.data_type().clone()).or_else(|| usual.clone());
                    let known = types.entry(id.trim_start_matches('$').to_owned()).or_default();
                    *known = match (known.take(), told) {
                        // One value for columns of several types: the type to which they compare.
                        (Some(one), Some(other)) => Some(comparison_coercion(&one, &other).unwrap_or(one)),
                        (one, other) => one.or(other),
                    };
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> ScalarValue {
        ScalarValue::Utf8(Some(text.to_owned()))
    }

    #[test]
    fn values_become_what_a_parameter_needs_or_are_none_of_it() {
        let cents = DataType::Decimal128(10, 2);
        let day = DataType::Date32;
        // 2024-02-29 in days, and in microseconds.
        let (days, micros) = (19_782, 19_782 * 86_400_000_000);
        for (value, kind, expected) in [
            (text("10.250"), &cents, Some(ScalarValue::Decimal128(Some(1025), 10, 2))),
            (text("10.254"), &cents, None),
            (ScalarValue::Float64(Some(10.25)), &cents, Some(ScalarValue::Decimal128(Some(1025), 10, 2))),
            (ScalarValue::Float64(Some(10.254)), &cents, None),
            (ScalarValue::Decimal128(Some(10_254), 8, 3), &cents, None),
            (ScalarValue::Float64(Some(2.0)), &DataType::Int32, Some(ScalarValue::Int32(Some(2)))),
            (ScalarValue::Float64(Some(1.5)), &DataType::Int32, None),
            (text("1.5"), &DataType::Int32, None),
            (ScalarValue::Int64(Some(-1)), &DataType::UInt32, None),
            (text("2024-02-29"), &day, Some(ScalarValue::Date32(Some(days)))),
            (text("2024-02-29 10:00:00"), &day, None),
            (
                ScalarValue::TimestampMicrosecond(Some(micros), None),
                &day,
                Some(ScalarValue::Date32(Some(days))),
            ),
            (ScalarValue::TimestampMicrosecond(Some(micros + 1), None), &day, None),
            (ScalarValue::Null, &DataType::Int32, Some(ScalarValue::Int32(None))),
        ] {
            assert_eq!(cast_exactly(&value, kind), expected, "{value:?} as {kind}");
        }
    }
}
