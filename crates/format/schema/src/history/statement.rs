//! A statement of the logs: what it is to a history, and the little of it that is kept.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use binlogz_binlog::event::{QueryEvent, StatusVariable};
use sqlparser::tokenizer::Token;

use super::HistoryPlace;
use crate::statement::DdlStatement;
use crate::tokens::TokenReader;

/// A statement of the logs.
#[derive(Debug, Clone, Copy)]
pub struct RecordedStatement<'s> {
    /// Where it stands.
    pub place: HistoryPlace,
    /// The session's default database.
    pub database: &'s str,
    /// The statement itself. Text that isn't UTF-8 has U+FFFD in it, as `String::from_utf8_lossy` writes it.
    pub text: &'s str,
    /// Whether the session took texts in double quotes for names (ANSI_QUOTES).
    pub quotes_names: bool,
    /// Whether a backslash was an ordinary character of texts to the session (NO_BACKSLASH_ESCAPES).
    pub keeps_backslashes: bool,
    /// Whether it failed, having done a part of its work.
    pub has_failed: bool,
}

/// Bits of `sql_mode`.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

impl<'s> RecordedStatement<'s> {
    /// The statement of an event, whose database and text were decoded.
    pub fn of_query(
        place: HistoryPlace,
        query: &QueryEvent<'_>,
        (database, text): (&'s str, &'s str),
    ) -> Self {
        let sql_mode = query
            .status_variables
            .iter()
            .find_map(|variable| match variable {
                Ok(StatusVariable::SqlMode(mode)) => Some(mode),
                _ => None,
            })
            .unwrap_or(0);
        RecordedStatement {
            place,
            database,
            text,
            quotes_names: sql_mode & ANSI_QUOTES != 0,
            keeps_backslashes: sql_mode & NO_BACKSLASH_ESCAPES != 0,
            has_failed: query.error_code != 0,
        }
    }
}

/// A statement after which a table isn't what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurningPoint {
    /// Where it stands.
    pub place: HistoryPlace,
    /// The statement's text, or the first [`STATEMENT_SIZE_MAX`] bytes of it.
    pub statement: String,
    /// A hash of the whole statement.
    digest: u64,
}

impl TurningPoint {
    pub(crate) fn of(statement: &RecordedStatement<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        statement.text.hash(&mut hasher);
        let mut end = statement.text.len().min(STATEMENT_SIZE_MAX);
        while !statement.text.is_char_boundary(end) {
            end -= 1;
        }
        let text = statement.text.get(..end).unwrap_or_default().to_owned();
        TurningPoint { place: statement.place, statement: text, digest: hasher.finish() }
    }
}

/// The most bytes of a statement that are kept: a history may have any number of them.
pub(super) const STATEMENT_SIZE_MAX: usize = 2048;

/// First words of statements that change rows at most.
const OF_ROWS: [&str; 7] = ["INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "SELECT"];

/// Whether a statement leaves all tables as they are, by its first word behind comments.
pub(super) fn changes_rows_only(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("/*").filter(|comment| !comment.starts_with(['!', 'M'])) {
        let Some((_, behind)) = comment.split_once("*/") else { return false };
        rest = behind.trim_start();
    }
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    let first = rest.get(..end).unwrap_or_default();
    OF_ROWS.iter().any(|word| word.eq_ignore_ascii_case(first))
}

/// The effect of a statement on tables.
#[derive(Debug)]
pub(crate) enum StatementEffect {
    /// It leaves all of them as they are.
    None,
    /// It may have done anything to tables of these names, in small letters; `None`: of any name.
    Unclear(Option<HashSet<String>>),
    Ddl(DdlStatement),
}

impl StatementEffect {
    pub(crate) fn of(statement: &RecordedStatement<'_>) -> Self {
        if changes_rows_only(statement.text) {
            return StatementEffect::None;
        }
        let tokens = TokenReader::of(statement.text).ok().map(|reader| match statement.quotes_names {
            true => reader.quoting_names(),
            false => reader,
        });
        let Some(mut reader) = tokens else {
            return if is_ddl(statement.text) {
                StatementEffect::Unclear(None)
            } else {
                StatementEffect::None
            };
        };
        let words: HashSet<String> = reader.tokens.iter().filter_map(name_in).collect();
        // A backslash may have ended a text elsewhere than we think; a name may have been cut in two.
        let is_doubtful = statement.has_failed
            || statement.keeps_backslashes && statement.text.contains('\\')
            || words.iter().any(|word| word.contains('\u{FFFD}'));
        match DdlStatement::read(&mut reader) {
            DdlStatement::Irrelevant | DdlStatement::Use(_) => StatementEffect::None,
            DdlStatement::Unreadable => StatementEffect::Unclear(Some(words)),
            _ if is_doubtful => {
                let is_named = !words.iter().any(|word| word.contains('\u{FFFD}'));
                StatementEffect::Unclear(is_named.then_some(words))
            }
            mut read => {
                if !statement.text.is_ascii() {
                    read.forget_defaults();
                }
                StatementEffect::Ddl(read)
            }
        }
    }
}

/// The names that a statement mentions, in small letters; `None`: it can't be split into words.
pub(crate) fn names_in(text: &str) -> Option<HashSet<String>> {
    let reader = TokenReader::of(text).ok()?;
    Some(reader.tokens.iter().filter_map(name_in).collect())
}

/// A name that a token can be, in small letters.
fn name_in(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.value.to_lowercase()),
        Token::DoubleQuotedString(text) | Token::SingleQuotedString(text) => Some(text.to_lowercase()),
        _ => None,
    }
}

/// Whether text that can't be split into tokens can be DDL, whatever comments stand before it.
fn is_ddl(text: &str) -> bool {
    let text = text.to_lowercase();
    ["create", "alter", "drop", "rename"].iter().any(|verb| text.contains(verb))
}
