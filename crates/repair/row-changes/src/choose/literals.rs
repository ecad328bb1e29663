//! The words of a condition: literals as MySQL reads them, and which column of which image a name means.

use std::borrow::Cow;

use sqlparser::ast::{Expr, Ident, UnaryOperator, Value as Literal};
use sqlparser::dialect::MySqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer, TokenizerError};

use super::scalar::{Scalar, TextRule};

/// The words of a condition, with literals as MySQL reads them.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, TokenizerError> {
    let mut tokenizer = Tokenizer::new(&MySqlDialect {}, text).with_unescape(false);
    let mut tokens = tokenizer.tokenize()?;
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

pub(super) fn literal_text(value: &Literal) -> Option<&str> {
    match value {
        Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => Some(text),
        _ => None,
    }
}

pub(super) fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_number(expr),
        Expr::Value(value) => matches!(value.value, Literal::Number(..)),
        _ => false,
    }
}

/// Whether an expression is a hexadecimal literal, which is a text or a number depending on the other operand.
pub(super) fn is_hex(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_hex(expr),
        Expr::Value(value) => matches!(value.value, Literal::HexStringLiteral(_)),
        _ => false,
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ConditionImage {
    Before,
    After,
}

pub(super) fn side_of(parts: &[Ident]) -> Option<(ConditionImage, &str)> {
    let [side, column] = parts else { return None };
    match side.value.to_lowercase().as_str() {
        "before" => Some((ConditionImage::Before, &column.value)),
        "after" => Some((ConditionImage::After, &column.value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
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
}
