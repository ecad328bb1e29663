//! MySQL's statements as the query engine takes them.
//!
//! ```text
//! text → tokens (words)         MySQL's, with its `||` and `&&`
//!      → statement (grammar)    sqlparser's MySQL dialect, with MySQL's precedences
//!      → show                   SHOW, DESCRIBE: a query of a system table in the statement's place
//!      → names                  what the columns of the answer are called
//!      → tables                 tables of the default database, system tables
//!      → having               HAVING without groups
//!      → functions, expressions MySQL's functions and operators by DataFusion's
//! ```
//!
//! A statement without a translation is an error with MySQL's number. Nothing here reads logs: the names of tables come as an argument.

mod expressions;
mod functions;
mod grammar;
mod having;
mod names;
mod show;
mod tables;
mod words;

use std::collections::BTreeSet;

use binlogz_query::StatementTokens;
use binlogz_query_server::StatementRefusal;
use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Statement, Value, VisitMut};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::errors::{EMPTY_STATEMENT, OPTION_PREVENTS, READ_ONLY, SYNTAX, refused};
use crate::session::MysqlSession;
use crate::variables::FrontVariables;

pub(crate) use names::AnswerNames;
pub(crate) use tables::{KnownTables, SYSTEM_CATALOG, SYSTEM_SCHEMA, SystemName};
pub(crate) use words::is_write;

use expressions::MysqlRewriter;
use grammar::MysqlGrammar;

/// A statement as the query engine takes it.
#[derive(Debug)]
pub(crate) struct TranslatedStatement {
    pub(crate) statement: Statement,
    /// The names of its parameters.
    pub(crate) parameters: Vec<String>,
    pub(crate) names: AnswerNames,
    /// The system tables that it reads.
    pub(crate) system: BTreeSet<SystemName>,
    /// Whether it reads nothing else.
    pub(crate) is_listing: bool,
}

/// Translates the one statement of a text.
pub(crate) fn translate(
    text: &str,
    session: &MysqlSession,
    known: &dyn KnownTables,
) -> Result<TranslatedStatement, StatementRefusal> {
    let tokens = StatementTokens::of(text, &MysqlGrammar::default());
    let StatementTokens { mut tokens, parameters } =
        tokens.map_err(|error| syntax_of_line(&error.to_string()))?;
    let begins = words::Words::new(text, &tokens);
    if let Some(list) = show::list(begins, session, known)? {
        // As in MySQL, sql_select_limit is of SELECT alone.
        let session = MysqlSession { rows_max: u64::MAX, ..session.clone() };
        let mut translated = translate(&list.query, &session, known)?;
        translated.names = AnswerNames::Given(list.names);
        return Ok(translated);
    }
    words::read_operators(&mut tokens);
    let mut statement = parsed(text, tokens.clone())?;
    let names = AnswerNames::of(text, &tokens, &statement);
    let variables = FrontVariables::of(session.changed.clone());
    let mut rewriter = MysqlRewriter::new(session, &variables, known);
    if let std::ops::ControlFlow::Break(refusal) = statement.visit(&mut rewriter) {
        return Err(refusal);
    }
    if let AnswerNames::Given(_) = names {
        names::tell_apart(&mut statement);
    }
    limit_rows(&mut statement, session.rows_max);
    let is_listing = rewriter.is_listing();
    Ok(TranslatedStatement { statement, parameters, names, system: rewriter.system, is_listing })
}

/// Gives a query the LIMIT of the session's `sql_select_limit`, if it has none of its own.
fn limit_rows(statement: &mut Statement, rows_max: u64) {
    let Statement::Query(query) = statement else { return };
    if query.limit_clause.is_some() || query.fetch.is_some() || i64::try_from(rows_max).is_err() {
        return;
    }
    let limit = Expr::Value(Value::Number(rows_max.to_string(), false).with_empty_span());
    query.limit_clause =
        Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by: Vec::new() });
}

/// The one query among the tokens.
fn parsed(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Statement, StatementRefusal> {
    let first = tokens.iter().find(|token| !is_blank(&token.token));
    match first.map(|token| &token.token) {
        None => return Err(refused(EMPTY_STATEMENT, "Query was empty")),
        Some(Token::Word(word)) if word.quote_style.is_none() => {
            if words::is_write(&word.value) {
                return Err(refused(OPTION_PREVENTS, READ_ONLY));
            }
        }
        Some(_) => {}
    }
    let grammar = MysqlGrammar::default();
    let mut parser = Parser::new(&grammar).with_tokens_with_locations(tokens);
    let statement = parser.parse_statement().map_err(|error| syntax(text, &error))?;
    while parser.consume_token(&Token::SemiColon) {}
    let rest = parser.peek_token();
    if rest.token != Token::EOF {
        return Err(syntax_near(text, words::offset(text, rest.span.start)));
    }
    match statement {
        Statement::Query(_) | Statement::Explain { .. } => Ok(statement),
        _ => Err(refused(OPTION_PREVENTS, READ_ONLY)),
    }
}

fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_) | Token::SemiColon | Token::EOF)
}

/// An error of the parser: it tells the place at the end of its line.
fn syntax(text: &str, error: &ParserError) -> StatementRefusal {
    let line = match error {
        ParserError::TokenizerError(line) | ParserError::ParserError(line) => line.as_str(),
        ParserError::RecursionLimitExceeded => "too many expressions one in the other",
    };
    match words::told_place(line) {
        Some(place) => {
            let found = line.split_once(" at Line: ").map_or(line, |(found, _)| found);
            near(text, words::offset(text, place), found)
        }
        // It ended where more was expected.
        None => near(text, text.len(), line),
    }
}

fn syntax_of_line(line: &str) -> StatementRefusal {
    refused(SYNTAX, format!("You have an error in your SQL syntax; {line}"))
}

/// A syntax error at a place that the parser didn't expect at all.
pub(super) fn syntax_near(text: &str, offset: usize) -> StatementRefusal {
    near(text, offset, "expected the end of the statement")
}

/// Bytes of the statement that an error repeats.
const NEAR_MAX: usize = 80;

fn near(text: &str, offset: usize, what: &str) -> StatementRefusal {
    let rest = text.get(offset..).unwrap_or_default();
    let end =
        rest.char_indices().map(|(place, _)| place).find(|place| *place >= NEAR_MAX).unwrap_or(rest.len());
    let line = 1 + text.get(..offset).unwrap_or_default().matches('\n').count();
    let shown = rest.get(..end).unwrap_or_default();
    refused(
        SYNTAX,
        format!("You have an error in your SQL syntax; check it near '{shown}' at line {line}: {what}"),
    )
}

#[cfg(test)]
mod tests;
