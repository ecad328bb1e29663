//! Division as MySQL has it.
//!
//! ```text
//! a / b      of whole numbers: DECIMAL with four digits after the point, rounded; of others as DataFusion divides them
//! a DIV b    the whole number of times, toward zero: BIGINT, of two unsigned numbers BIGINT UNSIGNED
//! by 0       NULL, in a % b too
//! ```
//!
//! (MySQL's manual, "Arithmetic Operators"; `div_precision_increment` is 4.) DataFusion's own `/` of whole numbers drops
//! what is after the point.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::functions::core::nullif;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator, lit};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Has room for every integer of 64 bits.
const INTEGER: DataType = DataType::Decimal128(20, 0);
/// A dividend: the quotient has four digits more after the point, of which the last is rounded.
const DIVIDEND: DataType = DataType::Decimal128(21, 1);
/// The quotient of two integers.
const QUOTIENT: DataType = DataType::Decimal128(24, 4);

/// Makes the word DIV the operator that the parser knows as `//`. MySQL reserves the word: without quotes it is a name only
/// after a point.
pub(super) fn read_div(tokens: &mut [TokenWithSpan]) {
    let mut is_after_point = false;
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::Word(word)
                if word.quote_style.is_none()
                    && !is_after_point
                    && word.value.eq_ignore_ascii_case("div") =>
            {
                *token = Token::DuckIntDiv;
            }
            _ => {}
        }
        is_after_point = *token == Token::Period;
    }
}

/// Plans DIV; another operation stays as it is.
pub(super) fn planned(operation: RawBinaryExpr, schema: &DFSchema) -> PlannerResult<RawBinaryExpr> {
    if !matches!(operation.op, BinaryOperator::DuckIntegerDivide | BinaryOperator::MyIntegerDivide) {
        return PlannerResult::Original(operation);
    }
    let RawBinaryExpr { left, right, .. } = operation;
    let kinds = [left.get_type(schema).ok(), right.get_type(schema).ok()];
    let are = |is: fn(&DataType) -> bool| kinds.iter().all(|kind| kind.as_ref().is_some_and(is));
    let result = match are(DataType::is_unsigned_integer) {
        true => DataType::UInt64,
        false => DataType::Int64,
    };
    // Decimals are divided without rounding.
    let quotient = match are(DataType::is_integer) {
        true => divide(cast(left, &INTEGER), Operator::Divide, cast(right, &INTEGER)),
        false => divide(left, Operator::Divide, right),
    };
    PlannerResult::Planned(cast(quotient, &result))
}

/// `/` or `%` of numbers of these types. Of others, or of none that are known, it stays as it is.
pub(super) fn checked(
    operation: BinaryExpr,
    kinds: (Option<DataType>, Option<DataType>),
) -> Transformed<Expr> {
    let (Some(left_kind), Some(right_kind)) = kinds else {
        return Transformed::no(Expr::BinaryExpr(operation));
    };
    if !left_kind.is_numeric() || !right_kind.is_numeric() {
        return Transformed::no(Expr::BinaryExpr(operation));
    }
    let BinaryExpr { left, op, right } = operation;
    if op == Operator::Divide && left_kind.is_integer() && right_kind.is_integer() {
        let divisor = unless_zero(cast(*right, &INTEGER), &INTEGER);
        return Transformed::yes(cast(divide(cast(*left, &DIVIDEND), op, divisor), &QUOTIENT));
    }
    Transformed::yes(divide(*left, op, unless_zero(*right, &right_kind)))
}

/// A divisor, or NULL if it is 0.
fn unless_zero(divisor: Expr, kind: &DataType) -> Expr {
    match ScalarValue::new_zero(kind) {
        Ok(zero) if !is_other_than(&divisor, &zero) => nullif().call(vec![divisor, lit(zero)]),
        Ok(_) | Err(_) => divisor,
    }
}

/// Whether it is another number for certain.
fn is_other_than(divisor: &Expr, zero: &ScalarValue) -> bool {
    matches!(divisor, Expr::Literal(value, _) if !value.is_null() && value != zero)
}

fn divide(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
}

fn cast(expression: Expr, kind: &DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expression), kind.clone()))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    #[test]
    fn the_word_is_an_operator_but_after_a_point_and_in_quotes() {
        for (sql, expected) in [
            ("SELECT 7 DIV 2", "SELECT 7 // 2"),
            ("SELECT a div (b)", "SELECT a // (b)"),
            (
                "SELECT after.div, t . div, \"div\", 'DIV' FROM t",
                "SELECT after.div, t . div, \"div\", 'DIV' FROM t",
            ),
            ("SELECT divide DIV individual", "SELECT divide // individual"),
        ] {
            let mut tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().unwrap();
            read_div(&mut tokens);
            let read: String = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(read, expected);
        }
    }
}
