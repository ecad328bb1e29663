//! Which values of a key column a condition leaves, so that a reader with an index skips rows that can't be chosen.
//!
//! The answer is never too narrow: if the rules for comparing values leave a doubt, all keys are wanted.

use binlogz_schema::SchemaFile;
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

use super::RowSelection;
use super::literals::{literal, side_of};
use super::scalar::Scalar;

/// The keys wanted of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedKeys {
    /// No key at all: no row of the table can be wanted.
    Nothing,
    /// Rows of any key.
    All,
    /// Rows that have one of these keys, in one of their images.
    Some(Vec<KeySpan>),
}

/// Keys that are wanted: what they are in a column of numbers, and in one of texts. `None`: any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpan {
    /// Whole numbers from the first to the second; none, if the first is above the second.
    pub numbers: Option<(i128, i128)>,
    /// A text, in any letters.
    pub text: Option<Vec<u8>>,
}

/// Digits of a text that stand for the same number however it is compared: those that a double holds.
const DIGITS_MAX: usize = 15;

impl RowSelection {
    /// Which rows of a table are wanted, by the values of its key column: its number, and its name where the log has it.
    pub fn keys(
        &self,
        (database, table): (&[u8], &[u8]),
        (index, name): (usize, Option<&[u8]>),
        schema: Option<&SchemaFile>,
    ) -> WantedKeys {
        if !self.has_table(database, table) {
            return WantedKeys::Nothing;
        }
        let told = schema.and_then(|schema| schema.column(database, table, index));
        let name = name.or(told.as_deref()).map(|name| String::from_utf8_lossy(name).to_lowercase());
        let is_key = |asked: &str| {
            name.as_ref().is_some_and(|name| *name == asked.to_lowercase())
                || asked.strip_prefix('@').and_then(|number| number.parse().ok()) == Some(index + 1)
        };
        let condition = self.condition.as_ref();
        condition.and_then(|condition| spans(&condition.0, &is_key)).map_or(WantedKeys::All, WantedKeys::Some)
    }

    /// Whether any rows are wanted, if this many were inserted, updated and deleted.
    pub fn wants(&self, inserted: u64, updated: u64, deleted: u64) -> bool {
        use super::Operation::{Delete, Insert, Update};
        let counts = [(Insert, inserted), (Update, updated), (Delete, deleted)];
        counts.into_iter().any(|(operation, count)| count > 0 && self.has_operation(operation))
    }
}

/// The keys that a condition leaves; `None`: all.
fn spans(expr: &Expr, is_key: &dyn Fn(&str) -> bool) -> Option<Vec<KeySpan>> {
    let column = |expr: &Expr| is_column(expr, is_key);
    match expr {
        Expr::Nested(expr) => spans(expr, is_key),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            match (spans(left, is_key), spans(right, is_key)) {
                (Some(one), Some(two)) => Some(if one.len() <= two.len() { one } else { two }),
                (one, two) => one.or(two),
            }
        }
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
            let mut all = spans(left, is_key)?;
            all.extend(spans(right, is_key)?);
            Some(all)
        }
        Expr::BinaryOp { left, op, right } => {
            let (value, turned) = match (column(left), column(right)) {
                (true, false) => (right, false),
                (false, true) => (left, true),
                _ => return None,
            };
            let low = |value| Some(KeySpan { numbers: Some((bound(value)?.0, i128::MAX)), text: None });
            let high = |value| Some(KeySpan { numbers: Some((i128::MIN, bound(value)?.1)), text: None });
            let span = match (op, turned) {
                (BinaryOperator::Eq | BinaryOperator::Spaceship, _) => return equal(value),
                (BinaryOperator::Gt | BinaryOperator::GtEq, false)
                | (BinaryOperator::Lt | BinaryOperator::LtEq, true) => low(value)?,
                (BinaryOperator::Lt | BinaryOperator::LtEq, false)
                | (BinaryOperator::Gt | BinaryOperator::GtEq, true) => high(value)?,
                _ => return None,
            };
            Some(vec![span])
        }
        Expr::InList { expr, list, negated: false } if column(expr) => {
            let spans: Option<Vec<_>> = list.iter().map(equal).collect();
            Some(spans?.concat())
        }
        Expr::Between { expr, negated: false, low, high } if column(expr) => {
            Some(vec![KeySpan { numbers: Some((bound(low)?.0, bound(high)?.1)), text: None }])
        }
        _ => None,
    }
}

fn is_column(expr: &Expr, is_key: &dyn Fn(&str) -> bool) -> bool {
    match expr {
        Expr::Nested(expr) => is_column(expr, is_key),
        Expr::Identifier(name) => is_key(&name.value),
        Expr::CompoundIdentifier(parts) => side_of(parts).is_some_and(|(_, column)| is_key(column)),
        _ => false,
    }
}

/// The keys that equal a value; `None`: unknown.
fn equal(expr: &Expr) -> Option<Vec<KeySpan>> {
    if let Some((low, high)) = bound(expr) {
        // A number with a fraction lies between two whole ones, and equals none.
        let is_whole = low + 1 == high - 1;
        let numbers = if is_whole { (low + 1, low + 1) } else { (1, 0) };
        return Some(vec![KeySpan { numbers: Some(numbers), text: None }]);
    }
    let Expr::Value(value) = expr else { return None };
    match literal(&value.value)? {
        Scalar::Text { text, .. } => {
            let digits = text.strip_prefix('-').unwrap_or(&text);
            let is_number =
                (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<i128>().ok().filter(|_| is_number);
            let text = text.into_owned().into_bytes();
            let numbers = number.map(|number| (number, number));
            let logged = without_zeros(&text);
            Some([KeySpan { numbers, text: Some(text) }].into_iter().chain(logged).collect())
        }
        Scalar::Bytes(bytes) => {
            let logged = without_zeros(&bytes);
            Some(
                [KeySpan { numbers: None, text: Some(bytes.into_owned()) }]
                    .into_iter()
                    .chain(logged)
                    .collect(),
            )
        }
        _ => None,
    }
}

/// The key of a BINARY as a log has it, if it differs: without the zeros at its end. The index of an archive is made of
/// logs alone, so it has keys in that form.
fn without_zeros(bytes: &[u8]) -> Option<KeySpan> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let logged = bytes.get(..end).filter(|logged| logged.len() < bytes.len())?;
    Some(KeySpan { numbers: None, text: Some(logged.to_vec()) })
}

/// Whole numbers just below and just above a number as it is written; `None`: it is none.
fn bound(expr: &Expr) -> Option<(i128, i128)> {
    match expr {
        Expr::Nested(expr) | Expr::UnaryOp { op: UnaryOperator::Plus, expr } => bound(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => bound(expr).map(|(low, high)| (-high, -low)),
        Expr::Value(value) => {
            let Scalar::Number(text) = literal(&value.value)? else { return None };
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let number: i64 =
                if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.try_into().ok()? };
            let is_whole = fraction.bytes().all(|digit| digit == b'0');
            Some((i128::from(number) - i128::from(is_whole), i128::from(number) + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Condition;
    use super::*;

    fn told(condition: &str) -> Option<Vec<KeySpan>> {
        let condition = Condition::parse(condition).unwrap();
        spans(&condition.0, &|name| name == "id" || name == "@1")
    }

    fn numbers(condition: &str) -> Vec<(i128, i128)> {
        told(condition).unwrap().into_iter().map(|span| span.numbers.unwrap()).collect()
    }

    #[test]
    fn a_condition_leaves_keys() {
        assert_eq!(numbers("id = 42"), [(42, 42)]);
        assert_eq!(numbers("42.0 = after.id AND total > 3"), [(42, 42)]);
        assert_eq!(numbers("id = -1.5"), [(1, 0)]);
        assert_eq!(numbers("id = -7"), [(-7, -7)]);
        assert_eq!(numbers("id IN (1, '2') OR before.id = 3"), [(1, 1), (2, 2), (3, 3)]);
        assert_eq!(numbers("id BETWEEN 2 AND 5"), [(1, 6)]);
        assert_eq!(numbers("10 > id"), [(i128::MIN, 11)]);
        assert_eq!(numbers("@1 >= 10.5"), [(10, i128::MAX)]);
        let text = told("id = 'Ab'").unwrap();
        assert_eq!(text, [KeySpan { numbers: None, text: Some(b"Ab".to_vec()) }]);
        // A BINARY(4) that ends in zeros: with them as its column has it, without as the log has it.
        let texts = |condition| {
            told(condition).unwrap().into_iter().map(|span| span.text.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(texts("id = X'61000000'"), [b"a\0\0\0".to_vec(), b"a".to_vec()]);
        assert_eq!(texts("id IN (X'6100', X'62')"), [b"a\0".to_vec(), b"a".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn in_doubt_all_keys_are_left() {
        for condition in [
            "NOT id = 1",
            "id != 1",
            "id = 1 OR total = 2",
            "id NOT IN (1)",
            "id LIKE '1%'",
            "id IS NULL",
            "id = 1e3",
            "id = total",
            "id = NULL",
            "id > 'a'",
            "id = 99999999999999999999",
            "id",
        ] {
            assert_eq!(told(condition), None, "{condition}");
        }
    }
}
