//! `--where`: an SQL condition on the images of a row.
//!
//! A column alone is looked up in one image: the row is chosen if its image before the change meets the condition, or the
//! one after it. `before.x` and `after.x` name one of them, and are NULL where there is none. A column is called by its
//! name, or by its number as `@3`.

use std::borrow::Cow;

use binlogz_binlog::row::{Row, RowImage};
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value as Literal};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::scalar::{Scalar, is_like};
use crate::table::Table;

/// A condition that was read, and that has only what a row can be asked for.
#[derive(Debug, Clone)]
pub struct Condition(pub(super) Expr);

/// Why a condition can't be read, or doesn't fit a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is no SQL.
    #[error("--where: {0}")]
    Text(String),
    /// It has what a row can't be asked for.
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
    /// The names of a table's columns are not known.
    #[error(
        "--where: the log has no column names for {table} (binlog_row_metadata=FULL writes them); --schema FILE tells \
         them, and @3 is the third column"
    )]
    NoNames {
        /// The table.
        table: String,
    },
}

/// Containers of conditions in each other that are followed.
const DEPTH_MAX: usize = 200;

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// Text that is no condition on a row.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let no_sql = |error: sqlparser::parser::ParserError| {
            let text = error.to_string();
            ConditionError::Text(text.strip_prefix("sql parser error: ").unwrap_or(&text).to_owned())
        };
        let mut parser = Parser::new(&MySqlDialect {})
            .with_recursion_limit(DEPTH_MAX)
            .try_with_sql(text)
            .map_err(no_sql)?;
        let expr = parser.parse_expr().map_err(no_sql)?;
        if let Token::EOF = parser.peek_token().token {
            check(&expr)?;
            return Ok(Condition(expr));
        }
        Err(ConditionError::Text(format!(
            "expected the end of the condition, found {}",
            parser.peek_token().token
        )))
    }

    /// Whether a row meets it, in one of its images.
    pub(crate) fn is_met(&self, table: &Table, row: &Row<'_, '_>) -> Result<bool, ConditionError> {
        let mut is_met = false;
        for (image, other) in [(row.after, row.before), (row.before, row.after)] {
            if let Some(image) = image {
                let images = Images { table, row, image, other };
                is_met |= images.is_true(&self.0)? == Some(true);
            }
        }
        Ok(is_met)
    }
}

/// Refuses what [`Images`] can't answer, before any log is read.
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
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => check(expr),
        Expr::IsNull(expr) | Expr::IsNotNull(expr) | Expr::IsTrue(expr) | Expr::IsFalse(expr) => check(expr),
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

#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Before,
    After,
}

pub(super) fn side_of(parts: &[sqlparser::ast::Ident]) -> Option<(Side, &str)> {
    let [side, column] = parts else { return None };
    match side.value.to_lowercase().as_str() {
        "before" => Some((Side::Before, &column.value)),
        "after" => Some((Side::After, &column.value)),
        _ => None,
    }
}

/// A row whose columns are looked up in one image; what it lacks, an update left alone.
struct Images<'r, 'a> {
    table: &'r Table,
    row: &'r Row<'r, 'a>,
    image: RowImage<'r, 'a>,
    other: Option<RowImage<'r, 'a>>,
}

impl<'a> Images<'_, 'a> {
    /// The value of a condition; `None`: unknown.
    fn is_true(&self, expr: &Expr) -> Result<Option<bool>, ConditionError> {
        Ok(match expr {
            Expr::Nested(expr) => self.is_true(expr)?,
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.is_true(expr)?.map(|is| !is),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                match (self.is_true(left)?, self.is_true(right)?) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                match (self.is_true(left)?, self.is_true(right)?) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                }
            }
            Expr::BinaryOp { left, op: BinaryOperator::Xor, right } => {
                self.is_true(left)?.zip(self.is_true(right)?).map(|(one, two)| one != two)
            }
            Expr::BinaryOp { left, op, right } => self.compare(left, op, right)?,
            Expr::IsNull(expr) => Some(self.scalar(expr)? == Scalar::Null),
            Expr::IsNotNull(expr) => Some(self.scalar(expr)? != Scalar::Null),
            Expr::IsTrue(expr) => Some(self.is_true(expr)? == Some(true)),
            Expr::IsFalse(expr) => Some(self.is_true(expr)? == Some(false)),
            Expr::InList { expr, list, negated } => {
                let value = self.scalar(expr)?;
                let mut found = Some(false);
                for item in list {
                    match value.compare(&self.scalar(item)?) {
                        Some(order) if order.is_eq() => {
                            found = Some(true);
                            break;
                        }
                        Some(_) => {}
                        None => found = None,
                    }
                }
                found.map(|is| is != *negated)
            }
            Expr::Between { expr, negated, low, high } => {
                let value = self.scalar(expr)?;
                let low = value.compare(&self.scalar(low)?).map(|order| order.is_ge());
                let high = value.compare(&self.scalar(high)?).map(|order| order.is_le());
                match (low, high) {
                    (Some(false), _) | (_, Some(false)) => Some(*negated),
                    (Some(true), Some(true)) => Some(!negated),
                    _ => None,
                }
            }
            Expr::Like { negated, expr, pattern, escape_char, .. } => {
                let (value, pattern) = (self.scalar(expr)?, self.scalar(pattern)?);
                let escape = match escape_char {
                    Some(literal_value) => literal_text(literal_value).and_then(|text| text.chars().next()),
                    None => Some('\\'),
                };
                let both = value.text().zip(pattern.text());
                both.map(|((text, has_case), (pattern, _))| {
                    is_like(&text, &pattern, escape, has_case) != *negated
                })
            }
            // A value alone: true unless it is 0.
            other => {
                self.scalar(other)?.compare(&Scalar::Number(Cow::Borrowed("0"))).map(|order| order.is_ne())
            }
        })
    }

    fn compare(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Result<Option<bool>, ConditionError> {
        let (left, right) = (self.scalar(left)?, self.scalar(right)?);
        if *op == BinaryOperator::Spaceship {
            let are_null = left == Scalar::Null && right == Scalar::Null;
            return Ok(Some(are_null || left.compare(&right).is_some_and(|order| order.is_eq())));
        }
        Ok(left.compare(&right).map(|order| match op {
            BinaryOperator::Eq => order.is_eq(),
            BinaryOperator::NotEq => order.is_ne(),
            BinaryOperator::Lt => order.is_lt(),
            BinaryOperator::LtEq => order.is_le(),
            BinaryOperator::Gt => order.is_gt(),
            _ => order.is_ge(),
        }))
    }

    fn scalar<'s>(&'s self, expr: &'s Expr) -> Result<Scalar<'s>, ConditionError> {
        Ok(match expr {
            Expr::Nested(expr) => self.scalar(expr)?,
            Expr::Identifier(name) => self.column(&name.value, None)?,
            Expr::CompoundIdentifier(parts) => match side_of(parts) {
                Some((side, column)) => self.column(column, Some(side))?,
                None => Scalar::Null,
            },
            Expr::Value(value) => literal(&value.value).unwrap_or(Scalar::Null),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match self.scalar(expr)? {
                Scalar::Number(text) => Scalar::Number(match text.strip_prefix('-') {
                    Some(digits) => digits.to_owned().into(),
                    None => format!("-{text}").into(),
                }),
                Scalar::Double(number) => Scalar::Double(-number),
                _ => Scalar::Null,
            },
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.scalar(expr)?,
            condition => match self.is_true(condition)? {
                Some(is) => Scalar::Number(Cow::Borrowed(if is { "1" } else { "0" })),
                None => Scalar::Null,
            },
        })
    }

    fn column(&self, name: &str, side: Option<Side>) -> Result<Scalar<'a>, ConditionError> {
        let columns = &self.table.columns;
        let is_it = |own: &[u8]| String::from_utf8_lossy(own).to_lowercase() == name.to_lowercase();
        let by_number = || {
            name.strip_prefix('@')?
                .parse::<usize>()
                .ok()?
                .checked_sub(1)
                .filter(|index| *index < columns.len())
        };
        let named = columns.iter().position(|column| column.name.as_deref().is_some_and(is_it));
        let Some(index) = named.or_else(by_number) else {
            let table = self.table.shown();
            return Err(match self.table.has_names || name.starts_with('@') {
                true => ConditionError::NoColumn { table, column: name.to_owned() },
                false => ConditionError::NoNames { table },
            });
        };
        let cell = match side {
            None => self.image.cell(index).or_else(|| self.other.and_then(|other| other.cell(index))),
            // An update's image lacks what it left alone.
            Some(Side::Before) => self.row.before.and_then(|before| {
                before.cell(index).or_else(|| self.row.after.and_then(|after| after.cell(index)))
            }),
            Some(Side::After) => self.row.after.and_then(|after| {
                after.cell(index).or_else(|| self.row.before.and_then(|before| before.cell(index)))
            }),
        };
        let unsigned = columns.get(index).and_then(|column| column.unsigned);
        Ok(cell.and_then(|cell| Scalar::of(&cell, unsigned)).unwrap_or(Scalar::Null))
    }
}

fn literal_text(value: &Literal) -> Option<&str> {
    match value {
        Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// `None`: a literal that MySQL doesn't have.
pub(super) fn literal(value: &Literal) -> Option<Scalar<'_>> {
    Some(match value {
        Literal::Number(text, _) => match text.contains(['e', 'E']) {
            true => Scalar::Double(text.parse().ok()?),
            false => Scalar::Number(Cow::Borrowed(text)),
        },
        Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => {
            Scalar::Text { text: Cow::Borrowed(text), has_case: false }
        }
        Literal::HexStringLiteral(digits) => {
            let bytes = (0..digits.len()).step_by(2);
            let bytes = bytes.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
            Scalar::Bytes(bytes.collect::<Option<Vec<u8>>>()?.into())
        }
        Literal::Boolean(is) => Scalar::Number(Cow::Borrowed(if *is { "1" } else { "0" })),
        Literal::Null => Scalar::Null,
        _ => return None,
    })
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
        ] {
            let error = Condition::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in [
            "status = \"paid\" AND id BETWEEN 10 AND 20",
            "@1 = 5",
            "NOT before.x <=> after.x",
            "x LIKE 'a%'",
        ] {
            Condition::parse(text).unwrap();
        }
    }
}
