//! `--where`: an SQL condition on the images of a row.
//!
//! A column alone is looked up in one image: the row is chosen if its image before the change meets the condition, or the
//! one after it. `before.x` and `after.x` name one of them, and are NULL where there is none. A column is called by its
//! name, or by its number as `@3`.

use std::borrow::Cow;
use std::cmp::Ordering;

use binlogz_binlog::charset::{Charset, collation_name};
use binlogz_binlog::row::{ColumnKind, Row, RowImage};
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value as Literal};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::grammar;
use super::proof::{Doubt, bounded, compared, liked};
use super::scalar::{Scalar, TextRule, is_date, is_like};
use crate::table::{TableColumn, WrittenTable};

/// A parsed condition, which uses only facts that a row has.
#[derive(Debug, Clone)]
pub struct Condition(pub(super) Expr);

/// Why a condition can't be read, or doesn't fit a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is no SQL.
    #[error("--where: {0}")]
    Text(String),
    /// It uses a fact that rows don't have.
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
const DEPTH_MAX: usize = 64;

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// Text that is no condition on a row.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let tokens = tokens(text)?;
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

    /// Whether a row meets it, in one of its images.
    pub(crate) fn is_met(&self, table: &WrittenTable, row: &Row<'_, '_>) -> Result<bool, ConditionError> {
        let (mut is_met, mut lacking) = (false, None);
        // What the image after an update lacks, the update left alone; of the one before it the other tells nothing.
        for (image, other) in [(row.after, row.before), (row.before, None)] {
            let Some(image) = image else { continue };
            match (Images { table, row, image, other }).is_true(&self.0) {
                Ok(is) => is_met |= is == Some(true),
                Err(error @ ConditionError::NotLogged { .. }) => lacking = lacking.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        match lacking {
            Some(error) if !is_met => Err(error),
            _ => Ok(is_met),
        }
    }
}

fn no_sql(error: &sqlparser::parser::ParserError) -> ConditionError {
    let text = error.to_string();
    ConditionError::Text(text.strip_prefix("sql parser error: ").unwrap_or(&text).to_owned())
}

/// The words of a condition, with literals as MySQL reads them.
fn tokens(text: &str) -> Result<Vec<Token>, ConditionError> {
    let mut tokenizer = Tokenizer::new(&MySqlDialect {}, text).with_unescape(false);
    let mut tokens = tokenizer.tokenize().map_err(|error| ConditionError::Text(error.to_string()))?;
    for token in &mut tokens {
        match token {
            Token::SingleQuotedString(text) => *text = unescaped(text, '\''),
            Token::DoubleQuotedString(text) => *text = unescaped(text, '"'),
            _ => {}
        }
    }
    Ok(tokens)
}

/// A literal's text: doubled quotes are one, and a backslash has its meaning in MySQL.
fn unescaped(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == quote {
            letters.next_if_eq(&quote);
        }
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('0') => out.push('\0'),
            Some('b') => out.push('\u{8}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('Z') => out.push('\u{1a}'),
            // For LIKE they keep it.
            Some(wildcard @ ('%' | '_')) => out.extend(['\\', wildcard]),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_number(expr),
        Expr::Value(value) => matches!(value.value, Literal::Number(..)),
        _ => false,
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

#[derive(Debug, Clone, Copy)]
pub(super) enum ConditionImage {
    Before,
    After,
}

pub(super) fn side_of(parts: &[sqlparser::ast::Ident]) -> Option<(ConditionImage, &str)> {
    let [side, column] = parts else { return None };
    match side.value.to_lowercase().as_str() {
        "before" => Some((ConditionImage::Before, &column.value)),
        "after" => Some((ConditionImage::After, &column.value)),
        _ => None,
    }
}

/// A row whose columns are looked up in one image, and in the other where that tells what the image lacks.
struct Images<'r, 'a> {
    table: &'r WrittenTable,
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
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => self.joined(left, right, false)?,
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => self.joined(left, right, true)?,
            Expr::BinaryOp { left, op: BinaryOperator::Xor, right } => {
                self.is_true(left)?.zip(self.is_true(right)?).map(|(one, two)| one != two)
            }
            Expr::BinaryOp { left, op, right } => self.compare(left, op, right)?,
            Expr::IsNull(expr) => Some(self.scalar(expr)? == Scalar::Null),
            Expr::IsNotNull(expr) => Some(self.scalar(expr)? != Scalar::Null),
            Expr::IsTrue(expr) => Some(self.is_true(expr)? == Some(true)),
            Expr::IsFalse(expr) => Some(self.is_true(expr)? == Some(false)),
            Expr::IsNotTrue(expr) => Some(self.is_true(expr)? != Some(true)),
            Expr::IsNotFalse(expr) => Some(self.is_true(expr)? != Some(false)),
            Expr::InList { expr, list, negated } => {
                let value = self.scalar(expr)?;
                self.prove_list(expr, list)?;
                let mut found = Some(false);
                // Of a longer list no number is made a year.
                let is_single = list.len() == 1;
                for item in list {
                    let item_value = match is_single {
                        true => self.beside(expr, item)?,
                        false if is_hex(item) => self.beside_hex(expr, self.scalar(item)?)?,
                        false => self.scalar(item)?,
                    };
                    self.prove((expr, &value), (item, &item_value), false)?;
                    match value.compare(&item_value) {
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
                let bounds = (self.beside(expr, low)?, self.beside(expr, high)?);
                let exprs = [&**expr, low, high];
                if self.have_collations(&exprs) {
                    return Err(doubtful(expr, Doubt::Collations));
                }
                let is_plain = !exprs.into_iter().any(is_hex);
                // A NULL has its column's type, by which the others are compared.
                let kinds = exprs.map(|expr| self.kind(expr));
                let are_null = [&value, &bounds.0, &bounds.1].map(|value| *value == Scalar::Null);
                let has_null = |is: fn(ColumnKind) -> bool| {
                    are_null.into_iter().zip(kinds).any(|(is_null, kind)| is_null && kind.is_some_and(is))
                };
                let nulls = (has_null(is_numeric), has_null(|kind| !is_numeric(kind)));
                // With a column for a bound the server doesn't compare a YEAR as a number.
                if kinds.contains(&Some(ColumnKind::Year))
                    && ![low, high].into_iter().all(|bound| is_number(bound))
                {
                    return Err(doubtful(expr, Doubt::Year));
                }
                let (value, bounds) =
                    bounded(value, bounds, nulls, is_plain).map_err(|doubt| doubtful(low, doubt))?;
                self.prove((expr, &value), (low, &bounds.0), true)?;
                self.prove((expr, &value), (high, &bounds.1), true)?;
                let low = value.compare(&bounds.0).map(|order| order.is_ge());
                let high = value.compare(&bounds.1).map(|order| order.is_le());
                match (low, high) {
                    (Some(false), _) | (_, Some(false)) => Some(*negated),
                    (Some(true), Some(true)) => Some(!negated),
                    _ => None,
                }
            }
            Expr::Like { negated, expr, pattern, escape_char, .. } => {
                let (value, pattern) = (self.shown(expr)?, self.scalar(pattern)?);
                let escape = match escape_char {
                    Some(literal_value) => literal_text(literal_value).and_then(|text| text.chars().next()),
                    None => Some('\\'),
                };
                liked(&value, &pattern, escape).map_err(|doubt| doubtful(expr, doubt))?;
                let both = value.text().zip(pattern.text());
                both.map(|((text, rule), (pattern, _))| is_like(&text, &pattern, escape, rule) != *negated)
            }
            // A value alone: true unless it is 0.
            other => {
                let value = self.scalar(other)?;
                let zero = Scalar::Number(Cow::Borrowed("0"));
                match &value {
                    Scalar::Clock(clock) => {
                        return is_not_zero(clock).map(Some).map_err(|doubt| doubtful(other, doubt));
                    }
                    Scalar::Moment(seconds, micros) => return Ok(Some((*seconds, *micros) != (0, 0))),
                    _ => {}
                }
                value.compare(&zero).map(|order| order.is_ne())
            }
        })
    }

    /// AND, which one false side decides, or OR, which one true side decides: even where the log lacks what the other needs.
    fn joined(&self, left: &Expr, right: &Expr, deciding: bool) -> Result<Option<bool>, ConditionError> {
        let lacks = |side: &Result<Option<bool>, ConditionError>| {
            matches!(side, Err(ConditionError::NotLogged { .. }))
        };
        match (self.is_true(left), self.is_true(right)) {
            (Ok(Some(is)), right) if is == deciding && lacks(&right) => Ok(Some(deciding)),
            (left, Ok(Some(is))) if is == deciding && lacks(&left) => Ok(Some(deciding)),
            (left, right) => Ok(match (left?, right?) {
                (Some(is), _) | (_, Some(is)) if is == deciding => Some(deciding),
                (Some(_), Some(_)) => Some(!deciding),
                _ => None,
            }),
        }
    }

    fn compare(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Result<Option<bool>, ConditionError> {
        let (left_expr, right_expr) = (left, right);
        let (left, right) = (self.beside(right, left)?, self.beside(left, right)?);
        let is_order = matches!(
            op,
            BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq
        );
        self.prove((left_expr, &left), (right_expr, &right), is_order)?;
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

    /// Refuses a comparison that a server may make otherwise.
    fn prove(
        &self,
        (one, value): (&Expr, &Scalar<'_>),
        (two, other): (&Expr, &Scalar<'_>),
        is_order: bool,
    ) -> Result<(), ConditionError> {
        let kinds = [one, two].map(|expr| self.kind(expr));
        let are_known = *value != Scalar::Null && *other != Scalar::Null;
        let doubt = match kinds {
            [Some(_), Some(_)] if !self.are_comparable(one, two) => Some(Doubt::Collations),
            _ if !are_known => None,
            _ if is_hex(one) && is_hex_of_another_text(value, other) => Some(Doubt::Hex),
            _ if is_hex(two) && is_hex_of_another_text(other, value) => Some(Doubt::Hex),
            [Some(ColumnKind::Json { .. }), _] | [_, Some(ColumnKind::Json { .. })] => Some(Doubt::Json),
            [Some(ColumnKind::Year), None] if may_be_year(two, other) => Some(Doubt::Year),
            [None, Some(ColumnKind::Year)] if may_be_year(one, value) => Some(Doubt::Year),
            [Some(ColumnKind::Year), Some(_)] if matches!(other, Scalar::Clock(_)) => Some(Doubt::Clock),
            [Some(_), Some(ColumnKind::Year)] if matches!(value, Scalar::Clock(_)) => Some(Doubt::Clock),
            [Some(_), None] if may_be_clock(other, value) => Some(Doubt::Clock),
            [None, Some(_)] if may_be_clock(value, other) => Some(Doubt::Clock),
            _ if is_hex(one) != is_hex(two) && ![value, other].into_iter().all(Scalar::is_text) => {
                Some(Doubt::Hex)
            }
            _ if matches!((value, other), (Scalar::Member(..), Scalar::Member(..)))
                && self.place(one) != self.place(two) =>
            {
                Some(Doubt::Members)
            }
            _ => compared(value, other, is_order).err(),
        };
        doubt.map_or(Ok(()), |doubt| Err(doubtful(one, doubt)))
    }

    /// Refuses lists that servers compare by rules of their own: a BIT beside anything but numbers byte by byte, and negative
    /// numbers beside those above all signed ones as if both were of one kind.
    fn prove_list(&self, expr: &Expr, list: &[Expr]) -> Result<(), ConditionError> {
        let (mut has_bit, mut has_others, mut has_negative, mut has_large) = (false, false, false, false);
        for one in list.iter().chain([expr]) {
            has_bit |= matches!(self.kind(one), Some(ColumnKind::Bit { .. }));
            match self.scalar(one)? {
                Scalar::Number(text) => {
                    has_negative |= text.starts_with('-');
                    has_large |= text.parse::<f64>().is_ok_and(|number| number >= 2_f64.powi(63));
                }
                Scalar::Null | Scalar::Double(_) => {}
                _ => has_others = true,
            }
        }
        if has_bit && has_others || has_negative && has_large {
            return Err(doubtful(expr, Doubt::List));
        }
        let exprs: Vec<&Expr> = list.iter().chain([expr]).collect();
        if list.len() > 1 && self.have_collations(&exprs) {
            return Err(doubtful(expr, Doubt::Collations));
        }
        // Whether a number is taken for a year depends on the others.
        if is_number(expr) && list.iter().any(|one| self.is_year(one))
            || self.is_year(expr) && list.iter().any(is_number) && !list.iter().all(is_number)
        {
            return Err(doubtful(expr, Doubt::Year));
        }
        Ok(())
    }

    fn is_year(&self, expr: &Expr) -> bool {
        matches!(self.kind(expr), Some(ColumnKind::Year))
    }

    /// The collation of a column.
    fn collation(&self, expr: &Expr) -> Option<u64> {
        self.table.schema.columns().get(self.place(expr)?)?.collation
    }

    /// Whether columns of several collations are among these: the server compares all of them by one.
    fn have_collations(&self, exprs: &[&Expr]) -> bool {
        let mut collations = exprs.iter().filter_map(|expr| self.collation(expr));
        let first = collations.next();
        collations.any(|collation| Some(collation) != first)
    }

    /// Whether two columns are compared by the rule that counts more here.
    fn are_comparable(&self, one: &Expr, two: &Expr) -> bool {
        let both = self.collation(one).zip(self.collation(two));
        both.is_none_or(|(one, two)| one == two || meet_by_rule(one, two))
    }

    /// The value of one side of a comparison: a number beside a YEAR is the year that the column would store.
    fn beside<'s>(&'s self, other: &Expr, expr: &'s Expr) -> Result<Scalar<'s>, ConditionError> {
        let value = self.scalar(expr)?;
        match self.kind(other) {
            Some(ColumnKind::Year) if is_number(expr) => {
                year_of(value).ok_or_else(|| doubtful(expr, Doubt::Year))
            }
            Some(_) if is_hex(expr) => self.beside_hex(other, value),
            _ => Ok(value),
        }
    }

    /// A hexadecimal literal beside a column: its bytes are letters to the column's collation.
    fn beside_hex<'s>(&'s self, other: &Expr, literal: Scalar<'s>) -> Result<Scalar<'s>, ConditionError> {
        let text = match &literal {
            Scalar::Bytes(bytes) if bytes.is_ascii() => String::from_utf8(bytes.to_vec()).ok(),
            _ => None,
        };
        let is_text = self.collation(other).and_then(Charset::of_collation).is_some_and(is_of_ascii)
            && !matches!(self.kind(other), Some(ColumnKind::Enum { .. } | ColumnKind::Set { .. }));
        Ok(match text.filter(|_| is_text) {
            Some(text) => Scalar::Text { text: text.into(), rule: TextRule::Letters },
            None => literal,
        })
    }

    /// The value as LIKE sees it: of a number its text.
    fn shown<'s>(&'s self, expr: &'s Expr) -> Result<Scalar<'s>, ConditionError> {
        let value = self.scalar(expr)?;
        let Scalar::Double(number) = value else { return Ok(value) };
        let is_float = matches!(self.kind(expr), Some(ColumnKind::Float));
        match shown_double(number, is_float) {
            Some(text) => Ok(Scalar::Text { text: text.into(), rule: TextRule::Letters }),
            None => Err(doubtful(expr, Doubt::Shown)),
        }
    }

    /// The type of a column; `None`: it is none.
    fn kind(&self, expr: &Expr) -> Option<ColumnKind> {
        self.table.schema.columns().get(self.place(expr)?).map(|column| column.kind)
    }

    /// The index of the column that an expression is; `None`: it is none.
    fn place(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Nested(expr) => self.place(expr),
            Expr::Identifier(name) => self.index(&name.value).ok(),
            Expr::CompoundIdentifier(parts) => self.index(side_of(parts)?.1).ok(),
            _ => None,
        }
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

    /// The place of a column.
    fn index(&self, name: &str) -> Result<usize, ConditionError> {
        let columns = &self.table.columns;
        let lower = name.to_lowercase();
        let named = columns.iter().position(|column| {
            column.name.as_deref().is_some_and(|own| String::from_utf8_lossy(own).to_lowercase() == lower)
        });
        named.or_else(|| by_number(name).filter(|index| *index < columns.len())).ok_or_else(|| {
            let table = self.table.shown();
            match self.table.has_names || name.starts_with('@') {
                true => ConditionError::NoColumn { table, column: name.to_owned() },
                false => ConditionError::NoNames { table },
            }
        })
    }

    fn column(&self, name: &str, side: Option<ConditionImage>) -> Result<Scalar<'a>, ConditionError> {
        let index = self.index(name)?;
        let cell = match side {
            None => self.image.cell(index).or_else(|| self.other.and_then(|other| other.cell(index))),
            Some(ConditionImage::Before) => self.row.before.and_then(|before| before.cell(index)),
            // An update left alone what its image lacks.
            Some(ConditionImage::After) => self.row.after.and_then(|after| {
                after.cell(index).or_else(|| self.row.before.and_then(|before| before.cell(index)))
            }),
        };
        let has_image = match side {
            None => true,
            Some(ConditionImage::Before) => self.row.before.is_some(),
            Some(ConditionImage::After) => self.row.after.is_some(),
        };
        match cell {
            Some(cell) => Scalar::of(&cell, self.table.columns.get(index)).ok_or_else(|| {
                self.not_logged(index, "its value can't be told, as of a JSON document that changed in part")
            }),
            None if has_image => Err(self.not_logged(
                index,
                "the image lacks it (binlog_row_image=FULL writes all columns), so it can't be told",
            )),
            None => Ok(Scalar::Null),
        }
    }

    fn not_logged(&self, index: usize, why: &'static str) -> ConditionError {
        ConditionError::NotLogged {
            table: self.table.shown(),
            column: self.table.columns.get(index).map(TableColumn::shown).unwrap_or_default(),
            why,
        }
    }
}

/// The place of a column that is called by its number, as `@3`.
fn by_number(name: &str) -> Option<usize> {
    name.strip_prefix('@')?.parse::<usize>().ok()?.checked_sub(1)
}

fn doubtful(expr: &Expr, doubt: Doubt) -> ConditionError {
    ConditionError::Doubtful { expression: expr.to_string(), doubt }
}

/// Whether it is a hexadecimal literal, which is a text or a number depending on the other operand.
fn is_hex(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_hex(expr),
        Expr::Value(value) => matches!(value.value, Literal::HexStringLiteral(_)),
        _ => false,
    }
}

/// Whether bytes of ASCII are the same letters in a character set.
fn is_of_ascii(charset: Charset) -> bool {
    [Charset::Ascii, Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4].contains(&charset)
}

/// Whether a text's letters are other bytes than those of a literal, which its collation may still call equal.
fn is_hex_of_another_text(literal: &Scalar<'_>, text: &Scalar<'_>) -> bool {
    match (literal, text) {
        (Scalar::Bytes(bytes), Scalar::Text { .. }) => {
            !bytes.is_ascii() || bytes.iter().any(u8::is_ascii_alphabetic)
        }
        _ => false,
    }
}

/// Whether a server compares columns of two collations by the one whose [`TextRule`] counts more. It refuses two of one character set,
/// unless one of them is binary; of two sets that of Unicode counts.
fn meet_by_rule(one: u64, two: u64) -> bool {
    let Some((one_name, two_name)) = collation_name(one).zip(collation_name(two)) else { return false };
    // Unicode's other encodings count as Unicode, too: which of two the server takes, if any, isn't known here.
    if [one_name, two_name].iter().any(|name| ["utf16", "utf16le", "ucs2", "utf32"].contains(&set_of(name))) {
        return false;
    }
    match (set_of(one_name), set_of(two_name)) {
        ("binary", two_set) => unicode_rank(two_set) > 0,
        (one_set, "binary") => unicode_rank(one_set) > 0,
        (one_set, two_set) if one_set == two_set => {
            [one_name, two_name].iter().any(|name| name.ends_with("_bin"))
        }
        (one_set, two_set) => {
            let (one_rule, two_rule) = (TextRule::of(Some(one)), TextRule::of(Some(two)));
            match unicode_rank(one_set).cmp(&unicode_rank(two_set)) {
                Ordering::Equal => false,
                Ordering::Greater => one_rule >= two_rule,
                Ordering::Less => two_rule >= one_rule,
            }
        }
    }
}

/// The character set in a collation's name.
fn set_of(collation: &str) -> &str {
    collation.split('_').next().unwrap_or_default()
}

/// Which of two character sets counts when columns of both are compared: the higher one.
fn unicode_rank(set: &str) -> u8 {
    match set {
        "utf8mb4" => 2,
        "utf8" | "utf8mb3" => 1,
        _ => 0,
    }
}

/// Whether a date or a time is true by itself: as a number. Fractions of a second alone are doubtful.
fn is_not_zero(clock: &str) -> Result<bool, Doubt> {
    let whole = clock.split('.').next().unwrap_or_default();
    match has_number(whole) == has_number(clock) {
        true => Ok(has_number(clock)),
        false => Err(Doubt::Clock),
    }
}

/// Whether a text has a digit other than 0.
fn has_number(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Whether the server may take something else than a column or a number for a year in short.
fn may_be_year(expr: &Expr, value: &Scalar<'_>) -> bool {
    match value {
        Scalar::Number(text) => !is_number(expr) && text != "0",
        Scalar::Double(_) => !is_number(expr),
        Scalar::Text { text, .. } => text.bytes().any(|byte| byte.is_ascii_digit()),
        _ => true,
    }
}

/// The year that a YEAR stores for a number; as it is, if it stores none. `None`: that is not certain.
fn year_of(value: Scalar<'_>) -> Option<Scalar<'_>> {
    let number = match &value {
        Scalar::Number(text) => text.parse::<f64>().ok()?,
        Scalar::Double(number) if number.fract() == 0.0 => *number,
        Scalar::Null => return Some(value),
        _ => return None,
    };
    if number < 0.0 && number.fract() != 0.0 {
        return None;
    }
    let year = match number.round() as i64 {
        year @ 0 => year,
        year @ 1..70 => year + 2000,
        year @ 70..100 => year + 1900,
        _ if number.fract() == 0.0 => return Some(value),
        _ => return None,
    };
    Some(Scalar::Number(year.to_string().into()))
}

/// Whether a type's values are numbers.
fn is_numeric(kind: ColumnKind) -> bool {
    use ColumnKind as Kind;
    matches!(
        kind,
        Kind::TinyInt { .. }
            | Kind::SmallInt { .. }
            | Kind::MediumInt { .. }
            | Kind::Int { .. }
            | Kind::BigInt { .. }
            | Kind::Decimal(_)
            | Kind::Float
            | Kind::Double
            | Kind::Year
            | Kind::Bit { .. }
    )
}

/// The largest number that is compared with a time as a number, whether or not the server takes it for one.
const TIME_NUMBER_MAX: f64 = 59.0;
/// The largest that is no date: 101 is 2000-01-01.
const NO_DATE_MAX: f64 = 100.0;

/// Whether a number may be a date or a time in short, as 260102 and 100 are, or be rounded, as 0.1 is beside a TIME.
fn may_be_clock(number: &Scalar<'_>, clock: &Scalar<'_>) -> bool {
    if !matches!(number, Scalar::Number(_) | Scalar::Double(_)) {
        return false;
    }
    let number = number.double();
    match clock {
        Scalar::Clock(text) => {
            let has_date = is_date(text) && !text.starts_with("0000");
            !number.is_some_and(|number| is_time_number(number) || has_date && is_no_date(number))
        }
        Scalar::Moment(0, _) => !number.is_some_and(is_time_number),
        Scalar::Moment(..) => !number.is_some_and(is_no_date),
        _ => false,
    }
}

fn is_time_number(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= TIME_NUMBER_MAX
}

fn is_no_date(number: f64) -> bool {
    number.abs() <= NO_DATE_MAX
}

/// Digits of a FLOAT that the server writes.
const FLOAT_DIGITS: usize = 6;

/// The text that the server makes of a double or a FLOAT; `None`: that is not certain.
fn shown_double(number: f64, is_float: bool) -> Option<String> {
    let text = if is_float { format!("{:e}", number as f32) } else { format!("{number:e}") };
    let digits = text.split('e').next()?.bytes().filter(u8::is_ascii_digit).count();
    match number.abs() {
        _ if is_float && digits > FLOAT_DIGITS => None,
        1e10..1e14 if is_float => None,
        0.0 | 1e-4..1e15 if is_float => Some((number as f32).to_string()),
        0.0 | 1e-4..1e15 => Some(number.to_string()),
        1e15.. => Some(text),
        _ => None,
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
        Literal::Number(_, true) => return None,
        Literal::Number(text, false) => match text.contains(['e', 'E']) {
            true => Scalar::Double(text.parse().ok()?),
            false => Scalar::Number(Cow::Borrowed(text)),
        },
        Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => {
            Scalar::Text { text: Cow::Borrowed(text), rule: TextRule::Letters }
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
    use std::sync::Arc;

    use binlogz_binlog::EventType;
    use binlogz_binlog::event::{
        Bitmap, OptionalMetadata, RowsEvent, RowsFlags, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };
    use binlogz_binlog::row::{CellContent, RowDecoder, TableSchema};

    use super::*;

    #[test]
    fn literals_are_read_as_mysql_reads_them() {
        for (text, quote, read) in [
            ("it''s", '\'', "it's"),
            ("a\"\"b", '"', "a\"b"),
            ("a\"\"b", '\'', "a\"\"b"),
            (r"\a\f\n\0\Z\'\\", '\'', "af\n\0\u{1a}'\\"),
            (r"50\%\_", '\'', r"50\%\_"),
        ] {
            assert_eq!(unescaped(text, quote), read, "{text}");
        }
    }

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

    /// Whether an update of a row of three INT columns meets a condition; a column without a number isn't logged.
    fn is_met(text: &str, before: [Option<u8>; 3], after: [Option<u8>; 3]) -> Result<bool, ConditionError> {
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"s",
            table: b"t",
            column_types: &[3; 3],
            column_metadata: &[],
            null_bitmap: Bitmap(&[0]),
            optional_metadata: OptionalMetadata(b""),
        };
        let schema = Arc::new(TableSchema::new(&map, ServerFamily::Mysql).unwrap());
        let mut images = Vec::new();
        let [columns, columns_after] = [before, after].map(|cells| {
            let values = cells.map(|cell| cell.map(|number| [number, 0, 0, 0]));
            let cells = values.each_ref().map(|value| value.as_ref().map(|bytes| CellContent::Value(bytes)));
            schema.put_image(&cells, false, &mut images).unwrap()
        });
        let event = RowsEvent {
            event_type: EventType::UPDATE_ROWS,
            table_id: TableId(1),
            flags: RowsFlags(0),
            extra_data: b"",
            width: 3,
            columns: Bitmap(&columns),
            columns_after: Some(Bitmap(&columns_after)),
            rows: &images,
        };
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(&schema, &event).unwrap();
        let row = rows.next_row().unwrap().unwrap();
        Condition::parse(text)?.is_met(&WrittenTable::new(&schema, None), &row)
    }

    #[test]
    fn a_column_that_an_image_lacks_is_taken_for_no_other_and_counts_only_where_it_decides() {
        let (before, after) = ([Some(1), None, None], [None, Some(5), None]);
        for (text, expected) in [
            ("@1 = 1", Some(true)),
            ("@1 = 2", Some(false)),
            // Of the value before nothing is known, so it may be 4.
            ("@2 = 5", Some(true)),
            ("@2 = 4", None),
            ("@3 IS NULL", None),
            ("@1 = 1 AND @3 = 9", None),
            ("@1 = 2 AND @3 = 9", Some(false)),
            ("@3 = 9 AND @1 = 2", Some(false)),
            ("@1 = 1 OR @3 = 9", Some(true)),
            ("@3 = 9 OR @1 = 1", Some(true)),
            ("@1 = 2 OR @3 = 9", None),
            ("NOT (@1 = 1 OR @3 = 9)", Some(false)),
            ("@1 = 1 XOR @3 = 9", None),
        ] {
            match (is_met(text, before, after), expected) {
                (Ok(is), Some(expected)) if is == expected => {}
                (Err(ConditionError::NotLogged { .. }), None) => {}
                (other, _) => panic!("{text}: {other:?}"),
            }
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
