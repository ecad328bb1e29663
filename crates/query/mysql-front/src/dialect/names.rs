//! Names of an answer's columns: as in MySQL, the words of the statement, which clients look for.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::words::offsets;

/// Bytes of a name that is an expression's text.
const NAME_SIZE_MAX: usize = 256;

/// The names of an answer's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerNames {
    /// The query engine's own names.
    Own,
    /// Names from the words of the statement.
    Given(Vec<String>),
    /// The first ones, as many of the query engine's as there are, the last ones.
    Around(Vec<String>, Vec<String>),
}

impl AnswerNames {
    /// The names that a statement gives.
    pub(super) fn of(text: &str, tokens: &[TokenWithSpan], statement: &Statement) -> Self {
        let Statement::Query(query) = statement else { return AnswerNames::Own };
        let Some(select) = first_select(query) else { return AnswerNames::Own };
        let texts = item_texts(text, tokens).filter(|texts| texts.len() == select.projection.len());
        let mut names: [Vec<String>; 2] = Default::default();
        let mut wildcards = 0;
        for (number, item) in select.projection.iter().enumerate() {
            let name = match item {
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    wildcards += 1;
                    continue;
                }
                SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.value.clone(),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
                    names.last().map(|name| name.value.clone()).unwrap_or_default()
                }
                other => match texts.as_ref().and_then(|texts| texts.get(number)) {
                    Some(text) => text.clone(),
                    None => other.to_string(),
                },
            };
            if let Some(part) = names.get_mut(wildcards.min(1)) {
                part.push(cut(name));
            }
        }
        let [before, after] = names;
        match wildcards {
            0 => AnswerNames::Given(before),
            1 => AnswerNames::Around(before, after),
            // Which of the columns are whose is not known here.
            _ => AnswerNames::Own,
        }
    }

    /// The names, for columns that the query engine calls so.
    pub(crate) fn names(&self, own: Vec<String>) -> Vec<String> {
        match self {
            AnswerNames::Given(names) if names.len() == own.len() => names.clone(),
            AnswerNames::Around(before, after) if before.len() + after.len() <= own.len() => {
                let between = own.len() - before.len() - after.len();
                let between = own.iter().skip(before.len()).take(between);
                before.iter().chain(between).chain(after).cloned().collect()
            }
            AnswerNames::Own | AnswerNames::Given(_) | AnswerNames::Around(..) => own,
        }
    }
}

/// Tells columns of the answer apart for the query engine, which takes each name once; MySQL takes any.
pub(super) fn tell_apart(statement: &mut Statement) {
    let Statement::Query(query) = statement else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let mut known = HashSet::new();
    for (number, item) in select.projection.iter_mut().enumerate() {
        let name = match item {
            SelectItem::UnnamedExpr(expression) => expression.to_string(),
            SelectItem::ExprWithAlias { alias, .. } => alias.value.to_lowercase(),
            // MySQL has no list of names after AS.
            SelectItem::Wildcard(_)
            | SelectItem::QualifiedWildcard(..)
            | SelectItem::ExprWithAliases { .. } => continue,
        };
        if known.insert(name) {
            continue;
        }
        let alias = Ident::with_quote('"', format!("column {}", number + 1));
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

fn cut(mut name: String) -> String {
    let end = (0..=NAME_SIZE_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or_default());
    name
}

/// The SELECT whose columns name those of the answer.
fn first_select(query: &Query) -> Option<&Select> {
    let mut body = &query.body;
    loop {
        body = match body.as_ref() {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            _ => return None,
        };
    }
}

/// The texts of the first SELECT's columns, as they are written. `None`: the statement begins in another way, as in `WITH`.
fn item_texts(text: &str, tokens: &[TokenWithSpan]) -> Option<Vec<String>> {
    let words: Vec<_> = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let places = offsets(text, words.iter().map(|token| token.span.start));
    let is = |token: &Token, keyword| matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none());
    let begin = words.iter().position(|token| !matches!(token.token, Token::LParen))?;
    if !is(&words.get(begin)?.token, Keyword::SELECT) {
        return None;
    }
    let mut texts = Vec::new();
    let mut depth = 0_usize;
    let mut item = *places.get(begin + 1)?;
    for (word, place) in words.iter().zip(&places).skip(begin + 1) {
        let token = &word.token;
        let is_end = depth == 0
            && (matches!(token, Token::SemiColon | Token::EOF | Token::RParen)
                || [
                    Keyword::FROM,
                    Keyword::WHERE,
                    Keyword::LIMIT,
                    Keyword::ORDER,
                    Keyword::UNION,
                    Keyword::GROUP,
                    Keyword::HAVING,
                ]
                .into_iter()
                .any(|keyword| is(token, keyword)));
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if !is_end => depth = depth.saturating_sub(1),
            _ => {}
        }
        let place = if *token == Token::EOF { text.len() } else { *place };
        if is_end || depth == 0 && *token == Token::Comma {
            texts.push(text.get(item..place)?.trim().to_owned());
            item = place + 1;
        }
        if is_end {
            return Some(texts);
        }
    }
    // The tokens have no end of their own.
    texts.push(text.get(item..)?.trim().to_owned());
    Some(texts)
}
