//! A definition in a CREATE TABLE statement that is no column: a key, above all.

use sqlparser::tokenizer::{Token, Word};

/// A primary or unique key, or another definition that is no column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyDefinition {
    pub(crate) is_primary: bool,
    /// As ALTER TABLE … DROP INDEX calls it, where it is named.
    pub(crate) name: Option<String>,
    /// Empty: no key that tells rows apart.
    pub(crate) columns: Vec<String>,
    /// The columns of an index that doesn't tell rows apart.
    pub(crate) index_columns: Vec<String>,
    /// Whether it is a unique key of an expression, whose columns aren't told.
    pub(crate) is_of_expression: bool,
}

impl KeyDefinition {
    /// `None`: a column.
    pub(crate) fn of(item: &[Token]) -> Option<KeyDefinition> {
        let keyword = |token: &Token| match token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        };
        let first = keyword(item.first()?)?;
        let words: Vec<String> =
            item.iter().take_while(|token| **token != Token::LParen).filter_map(keyword).collect();
        let has = |word: &str| words.iter().any(|other| other == word);
        let is_primary = has("PRIMARY");
        match first.as_str() {
            "PRIMARY" | "UNIQUE" | "CONSTRAINT" => {}
            "KEY" | "INDEX" => return Some(KeyDefinition::of_no_rows(key_columns(item))),
            "FULLTEXT" | "SPATIAL" | "FOREIGN" | "CHECK" => {
                return Some(KeyDefinition::of_no_rows(Vec::new()));
            }
            // Of MariaDB.
            "PERIOD" | "VECTOR"
                if words.get(1).is_some_and(|word| ["FOR", "KEY", "INDEX"].contains(&&**word)) =>
            {
                return Some(KeyDefinition::of_no_rows(Vec::new()));
            }
            _ => return None,
        }
        let is_unique = is_primary || has("UNIQUE");
        let columns = if is_unique { key_columns(item) } else { Vec::new() };
        let is_of_expression = is_unique && columns.is_empty();
        let name = key_name(item);
        Some(KeyDefinition { is_primary, name, columns, index_columns: Vec::new(), is_of_expression })
    }

    /// A key that tells no rows apart: an index of these columns, or none.
    fn of_no_rows(index_columns: Vec<String>) -> Self {
        KeyDefinition {
            is_primary: false,
            name: None,
            columns: Vec::new(),
            index_columns,
            is_of_expression: false,
        }
    }
}

/// The name of a key: the last word before its columns that is none of the syntax's.
fn key_name(item: &[Token]) -> Option<String> {
    let front = item.iter().take_while(|token| **token != Token::LParen);
    let names = front.filter_map(|token| match token {
        Token::Word(word) => Some(word),
        _ => None,
    });
    let syntax = ["CONSTRAINT", "PRIMARY", "UNIQUE", "KEY", "INDEX", "USING", "BTREE", "HASH"];
    let is_name = |word: &&Word| word.quote_style.is_some() || !syntax.contains(&&*word.value.to_uppercase());
    names.filter(is_name).last().map(|word| word.value.clone())
}

/// The columns of a key; none if one is an expression.
fn key_columns(item: &[Token]) -> Vec<String> {
    let mut depth = 0_usize;
    let mut columns = Vec::new();
    let mut expects = false;
    for token in item {
        match token {
            Token::LParen => {
                if depth == 1 && expects {
                    return Vec::new();
                }
                depth += 1;
                expects = depth == 1;
            }
            Token::RParen => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            Token::Comma if depth == 1 => expects = true,
            Token::Word(word) if depth == 1 && expects => {
                columns.push(word.value.clone());
                expects = false;
            }
            _ => {}
        }
    }
    columns
}
