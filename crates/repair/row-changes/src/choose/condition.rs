//! `--where`: an SQL condition on the images of a row.
//!
//! A column alone is looked up in one image: the row is chosen if its image before the change meets the condition, or the
//! one after it. `before.x` and `after.x` name one of them, and are NULL where there is none. A column is called by its
//! name, or by its number as `@3`.

use binlogz_schema::names_lacking;
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::grammar;
use super::literals::{is_number, literal, side_of, tokens};
use super::proof::Doubt;

/// A parsed condition, which uses only facts that a row has.
#[derive(Debug, Clone)]
pub struct Condition(pub(super) Expr);

/// Why a condition can't be read, or doesn't fit a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A text that isn't SQL.
    #[error("--where: {0}")]
    Text(String),
    /// An expression, or a name, that a row's values alone don't answer.
    #[error("--where: {0} is not known here, expected comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL")]
    Unknown(String),
    /// A table has no such column.
    #[error("--where: {table} has no column {column}; --table chooses the tables")]
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A value is not in the log.
    #[error("--where: {table}: {column}: {why}")]
    NotLogged {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The reason.
        why: &'static str,
    },
    /// A server may answer otherwise.
    #[error("--where: {expression}: {doubt}; a server might choose other rows")]
    Doubtful {
        /// The part of the condition.
        expression: String,
        /// The reason.
        doubt: Doubt,
    },
    /// The names of a table's columns are not known.
    #[error("--where: {}; @3 is the third column", names_lacking(Some(table)))]
    NoNames {
        /// The table.
        table: String,
    },
}

/// Containers of conditions in each other that are followed.
const DEPTH_MAX: usize = 64;

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// Text that is no condition on a row.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let tokens = tokens(text).map_err(|error| ConditionError::Text(error.to_string()))?;
        if let Some(expr) = grammar::read(&tokens) {
            check(&expr)?;
            return Ok(Condition(expr));
        }
        // All other SQL is read only to say what isn't known here.
        let mut parser = Parser::new(&MySqlDialect {}).with_recursion_limit(DEPTH_MAX).with_tokens(tokens);
        let expr = parser.parse_expr().map_err(|error| no_sql(&error))?;
        if let Token::EOF = parser.peek_token().token {
            check(&expr)?;
            return Err(ConditionError::Unknown(format!(
                "an order of operators that MySQL doesn't have: {expr}"
            )));
        }
        Err(ConditionError::Text(format!(
            "expected the end of the condition, found {}",
            parser.peek_token().token
        )))
    }
}

fn no_sql(error: &sqlparser::parser::ParserError) -> ConditionError {
    let text = error.to_string();
    ConditionError::Text(text.strip_prefix("sql parser error: ").unwrap_or(&text).to_owned())
}

/// Refuses what no row can answer, before any log is read.
fn check(expr: &Expr) -> Result<(), ConditionError> {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            use BinaryOperator as Op;
            match op {
                Op::And
                | Op::Or
                | Op::Xor
                | Op::Eq
                | Op::NotEq
                | Op::Lt
                | Op::LtEq
                | Op::Gt
                | Op::GtEq
                | Op::Spaceship => {
                    check(left)?;
                    check(right)
                }
                _ => Err(ConditionError::Unknown(format!("the operator {op}"))),
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } | Expr::Nested(expr) => check(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => {
            match is_number(inner) {
                true => Ok(()),
                false => Err(ConditionError::Unknown(format!("a sign before anything but a number: {expr}"))),
            }
        }
        Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr) => check(expr),
        Expr::InList { expr, list, .. } => {
            check(expr)?;
            list.iter().try_for_each(check)
        }
        Expr::Between { expr, low, high, .. } => {
            [expr, low, high].into_iter().try_for_each(|expr| check(expr))
        }
        Expr::Like { expr, pattern, any: false, .. } => {
            check(expr)?;
            check(pattern)
        }
        Expr::Identifier(_) => Ok(()),
        Expr::CompoundIdentifier(parts) => match side_of(parts) {
            Some(_) => Ok(()),
            None => Err(ConditionError::Unknown(format!("{expr} (a column is x, before.x or after.x)"))),
        },
        Expr::Value(value) => {
            literal(&value.value).map(drop).ok_or_else(|| ConditionError::Unknown(expr.to_string()))
        }
        _ => Err(ConditionError::Unknown(expr.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_cannot_be_asked_is_refused_at_once() {
        for (text, part) in [
            ("id = ", "--where: Expected"),
            ("id = 1 id", "expected the end of the condition, found id"),
            ("id + 1 = 2", "the operator +"),
            ("now() > 1", "now()"),
            ("shop.id = 1", "shop.id (a column is x, before.x or after.x)"),
            ("id IN (SELECT 1)", "is not known here"),
            ("a = NOT b", "an order of operators that MySQL doesn't have"),
            ("a IS TRUE = 1", "an order of operators that MySQL doesn't have"),
            ("-a = 1", "a sign before anything but a number"),
            ("a = -'5'", "a sign before anything but a number"),
        ] {
            let error = Condition::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in [
            "status = \"paid\" AND id BETWEEN 10 AND 20",
            "@1 = 5",
            "NOT before.x <=> after.x",
            "x LIKE 'a%'",
            "(a = 1) XOR (b = 2)",
            "(a = b) IN (1, 2) OR NOT a IN (1, -2)",
            "(a = 1 OR b = 2) IS TRUE",
            "NOT a = 1 AND b IS NULL",
        ] {
            Condition::parse(text).unwrap();
        }
    }

    /// A condition with parentheses around all that has an operator.
    fn bracketed(expr: &Expr) -> String {
        let of = bracketed;
        match expr {
            Expr::Nested(expr) => of(expr),
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", of(left), of(right)),
            Expr::UnaryOp { op, expr } => format!("({op} {})", of(expr)),
            Expr::IsNull(expr) => format!("({} IS NULL)", of(expr)),
            Expr::IsTrue(expr) => format!("({} IS TRUE)", of(expr)),
            Expr::IsNotFalse(expr) => format!("({} IS NOT FALSE)", of(expr)),
            Expr::InList { expr, list, negated } => {
                let list: Vec<_> = list.iter().map(of).collect();
                format!("({}{} IN {})", of(expr), if *negated { " NOT" } else { "" }, list.join(" "))
            }
            Expr::Between { expr, low, high, .. } => {
                format!("({} BETWEEN {} AND {})", of(expr), of(low), of(high))
            }
            Expr::Like { expr, pattern, .. } => format!("({} LIKE {})", of(expr), of(pattern)),
            other => other.to_string(),
        }
    }

    #[test]
    fn operators_bind_as_in_mysql() {
        for (text, read) in [
            ("a OR b XOR c AND d", "(a OR (b XOR (c AND d)))"),
            ("a && b OR NOT c = d", "((a AND b) OR (NOT (c = d)))"),
            ("a || b XOR c = 1 || d", "((a OR (b XOR (c = 1))) OR d)"),
            ("not (id=1 && customer=5)", "(NOT ((id = 1) AND (customer = 5)))"),
            ("!a = 2", "((NOT a) = 2)"),
            ("NOT NOT a", "(NOT (NOT a))"),
            ("a = b IN (1, 2)", "(a = (b IN 1 2))"),
            ("a = b NOT IN (1) = c", "((a = (b NOT IN 1)) = c)"),
            ("a LIKE b = 1", "((a LIKE b) = 1)"),
            ("a = b BETWEEN 1 AND 2 AND c", "((a = (b BETWEEN 1 AND 2)) AND c)"),
            ("a BETWEEN 1 AND b BETWEEN 2 AND 3", "(a BETWEEN 1 AND (b BETWEEN 2 AND 3))"),
            ("1 < a < 3", "((1 < a) < 3)"),
            ("a = b IS NULL", "((a = b) IS NULL)"),
            ("a IS NULL IS NULL = b", "(((a IS NULL) IS NULL) = b)"),
            ("a = b IS NOT FALSE", "((a = b) IS NOT FALSE)"),
            ("NOT a IS TRUE XOR b", "((NOT (a IS TRUE)) XOR b)"),
        ] {
            assert_eq!(bracketed(&Condition::parse(text).unwrap().0), read, "{text}");
        }
        for text in
            ["a LIKE 'x' ESCAPE 'yz'", "a b", "a IN ()", "a IN 1", "a BETWEEN 1", "(a", "a.b.c = 1", ""]
        {
            Condition::parse(text).unwrap_err();
        }
        let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
        Condition::parse(&deep).unwrap_err();
    }
}
