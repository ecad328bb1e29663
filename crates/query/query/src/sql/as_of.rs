//! `shop.orders AS OF '2026-11-27 10:42'`: a table as it was at a moment.
//!
//! ```text
//! tokens      shop . orders AS OF '10:42' o      the words AS OF and the text go
//! statement   shop . "orders🕙10:42" o           into the table's name: the catalog takes both apart
//! ```
//!
//! `FOR SYSTEM_TIME AS OF TIMESTAMP '…'`, as MariaDB
//! has it, means the same.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, TableAlias, TableFactor, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::error::{Error, Result};
use crate::moment_name::{at_moment, moment_of};

const SYSTEM_TIME: &str = "SYSTEM_TIME";

/// What becomes of a name without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnquotedNames {
    /// It is taken in lower case.
    Lowered,
    /// It stays as it is.
    Same,
}

/// Puts the moments of tables into their names.
///
/// # Errors
///
/// A moment that is no text, or that belongs to no table.
pub(crate) fn read_moments(tokens: &mut Vec<TokenWithSpan>, unquoted: UnquotedNames) -> Result<()> {
    let mut place = 0;
    while let Some(found) = next_moment(tokens, place)? {
        let FoundMoment { name, end, text } = found;
        if let Some(TokenWithSpan { token: Token::Word(word), .. }) = tokens.get_mut(name) {
            let table = match (word.quote_style, unquoted) {
                (None, UnquotedNames::Lowered) => word.value.to_lowercase(),
                _ => word.value.clone(),
            };
            *word =
                Word { value: at_moment(&table, &text), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        }
        tokens.drain(name + 1..=end);
        place = name + 1;
    }
    Ok(())
}

/// A moment among tokens.
struct FoundMoment {
    /// The place of the table's name, or of its last part.
    name: usize,
    /// The place of the moment's text.
    end: usize,
    text: String,
}

fn next_moment(tokens: &[TokenWithSpan], from: usize) -> Result<Option<FoundMoment>> {
    let mut place = from;
    while let Some(at) = (place..tokens.len()).find(|at| is_word(tokens, *at, "AS")) {
        place = at + 1;
        let Some(of) = after(tokens, at).filter(|of| is_word(tokens, *of, "OF")) else { continue };
        let Some(mut end) = after(tokens, of) else { continue };
        if is_word(tokens, end, "TIMESTAMP") {
            let Some(next) = after(tokens, end) else { continue };
            end = next;
        }
        let text = match tokens.get(end).map(|token| &token.token) {
            Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => text.clone(),
            Some(Token::Placeholder(_)) => {
                let what =
                    "AS OF takes a text in quotes, not a parameter: the table's columns depend on the moment";
                return Err(Error::Sql(what.to_owned()));
            }
            _ => continue,
        };
        let mut name = before(tokens, at);
        if let Some(last) = name.filter(|last| is_word(tokens, *last, SYSTEM_TIME)) {
            let Some(for_it) = before(tokens, last) else { continue };
            name = before(tokens, for_it);
        }
        let is_name = |at: &usize| matches!(tokens.get(*at).map(|token| &token.token), Some(Token::Word(_)));
        let Some(name) = name.filter(is_name) else {
            let what = format!("AS OF '{text}': expected the name of a table before it");
            return Err(Error::Sql(what));
        };
        return Ok(Some(FoundMoment { name, end, text }));
    }
    Ok(None)
}

fn is_word(tokens: &[TokenWithSpan], at: usize, text: &str) -> bool {
    let token = tokens.get(at).map(|token| &token.token);
    matches!(token, Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The place of the next token that is no white space or comment.
fn after(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    (at + 1..tokens.len()).find(|place| tokens.get(*place).is_some_and(|token| !is_blank(token)))
}

/// The place of the last one.
fn before(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    (0..at).rev().find(|place| tokens.get(*place).is_some_and(|token| !is_blank(token)))
}

/// Gives each table with a moment its own name as an alias, if it has no other, by which columns name it.
pub(crate) fn name_tables(statement: &mut Parsed) {
    match statement {
        Parsed::Statement(statement) => {
            let _continues = statement.visit(&mut MomentAliases);
        }
        Parsed::Explain(explain) => name_tables(&mut explain.statement),
        Parsed::CreateExternalTable(_) | Parsed::CopyTo(_) | Parsed::Reset(_) => {}
    }
}

struct MomentAliases;

impl VisitorMut for MomentAliases {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: alias @ None, .. } = factor
            && let Some((table, _)) = last_part(name).and_then(moment_of)
        {
            let name = Ident::with_quote('"', table);
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}

fn last_part(name: &ObjectName) -> Option<&str> {
    Some(name.0.last()?.as_ident()?.value.as_str())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn read(sql: &str) -> Result<String> {
        let mut tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().unwrap();
        read_moments(&mut tokens, UnquotedNames::Lowered)?;
        Ok(tokens.iter().map(|token| token.token.to_string()).collect())
    }

    #[test]
    fn moments_go_into_the_names_of_tables() {
        for (sql, told) in [
            ("SELECT 1 FROM shop.Orders AS OF '10:42' o", "SELECT 1 FROM shop.\"orders🕙10:42\" o"),
            ("FROM a as /* x */ of 'x', \"B\" AS OF 'y'", "FROM \"a🕙x\", \"B🕙y\""),
            ("FROM a FOR SYSTEM_TIME AS OF TIMESTAMP '10:42' WHERE 1", "FROM \"a🕙10:42\" WHERE 1"),
            ("SELECT a AS of, b AS \"of\" FROM t AS of", "SELECT a AS of, b AS \"of\" FROM t AS of"),
            ("SELECT ' AS OF ', x FROM t -- AS OF '1'", "SELECT ' AS OF ', x FROM t -- AS OF '1'"),
        ] {
            assert_eq!(read(sql).unwrap(), told, "{sql}");
        }
        for (sql, said) in [
            ("FROM t AS OF ?", "not a parameter"),
            ("FROM (SELECT 1) AS OF '10:42'", "expected the name of a table before it"),
            ("AS OF '10:42'", "expected the name of a table before it"),
        ] {
            let error = read(sql).unwrap_err().to_string();
            assert!(error.contains(said), "{sql}: {error}");
        }
    }
}
