//! The definition of a table with masked columns: it leaves if it holds no value that may be one of theirs.
//!
//! | part | of a masked column | of others |
//! |---|---|---|
//! | lengths of types and of parts of keys | stay | stay |
//! | members of ENUM and SET | become numbers | stay |
//! | COMMENT | becomes empty | stays |
//! | DEFAULT of zero or nothing, CURRENT_TIMESTAMP | stays | stays |
//! | any other value | none may be there | stays, unless the same part names a masked column |
//!
//! A column that is generated from a masked one, or has it in its DEFAULT, needs a rule of its own.
//!
//! AUTO_INCREMENT of the table becomes 1: servers take the highest number that there is.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use super::StatementVerdict;
use super::words::LoggedWords;
use crate::policy::{ColumnExit, ExitPolicy};

/// Words with which a part begins that is no column.
const NO_COLUMNS: [&str; 12] = [
    "PRIMARY",
    "KEY",
    "INDEX",
    "UNIQUE",
    "FULLTEXT",
    "SPATIAL",
    "CONSTRAINT",
    "CHECK",
    "FOREIGN",
    "PERIOD",
    "LIKE",
    "PARTITION",
];
/// Words of a part that is more than a key: partitions may stand after one, with values, and SUBPARTITION BY KEY is none.
const NO_PLAIN_KEY: [&str; 5] = ["CHECK", "AS", "PARTITION", "SUBPARTITION", "VALUES"];
/// Words that end the value or expression of a DEFAULT: what comes next says no more of it.
const AFTER_DEFAULT: [&str; 9] =
    ["CHECK", "CONSTRAINT", "REFERENCES", "UNIQUE", "PRIMARY", "KEY", "COLLATE", "ON", "AFTER"];
/// Words after which a number in parentheses is a precision.
const CLOCKS: [&str; 5] = ["CURRENT_TIMESTAMP", "NOW", "LOCALTIMESTAMP", "LOCALTIME", "CURRENT_TIME"];

/// What comes after the table's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefinitionForm {
    /// Columns and keys in parentheses, then options.
    Create,
    /// The columns of an index in parentheses.
    Index,
    /// Changes of the table.
    Change,
}

/// Why a definition can't leave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadDefinition {
    /// It may hold a value of this masked column, or of any.
    HasValue(Option<String>),
    /// A column gets another name, for which other rules are.
    Renamed(String, String),
    /// A column for which no rule is has what the server makes of a masked one.
    Derived(String, String),
    /// The policy names a column that the table doesn't have: what to say.
    Missing(String),
}

impl BadDefinition {
    pub(super) fn verdict(self, policy: &ExitPolicy, rules: &[usize], table: &str) -> StatementVerdict {
        match self {
            BadDefinition::HasValue(column) => {
                let column = column.map(|column| format!(" at column {column}")).unwrap_or_default();
                StatementVerdict::Unmasked(format!(
                    "{table}: statements that define it, with values{column} that can't be masked (DEFAULT, CHECK, AS, PARTITION)"
                ))
            }
            BadDefinition::Renamed(from, to) => StatementVerdict::Refused(format!(
                "{}: {table}, column {from} becomes {to}, for which the policy has other rules, expected the same for both names",
                policy.shown(policy.line_of(rules))
            )),
            BadDefinition::Derived(column, from) => StatementVerdict::Refused(format!(
                "{}: {table}, column {column} is made of {from}, which doesn't leave as it is, expected a rule for it, too",
                policy.shown(policy.line_of(rules))
            )),
            BadDefinition::Missing(text) => StatementVerdict::Refused(text),
        }
    }
}

/// The text of a definition that may leave; the words are read up to the table's name.
pub(super) fn checked_definition(
    policy: &ExitPolicy,
    rules: &[usize],
    words: LoggedWords,
    form: DefinitionForm,
) -> Result<String, BadDefinition> {
    let parts = parts(&words, form);
    let mut checker = DefinitionChecker { policy, rules, form, words };
    if form == DefinitionForm::Create {
        checker.has_named_columns(&parts)?;
    }
    for part in parts {
        checker.part(part)?;
    }
    Ok(checker.words.text())
}

/// A part of a definition.
#[derive(Debug, Clone)]
struct DefinitionPart {
    words: Range<usize>,
    /// Whether it stands in a list of columns and keys, where no action can be.
    is_listed: bool,
}

/// The parts of a definition: each column and key of a CREATE TABLE and what comes after them, or each action of an ALTER TABLE.
fn parts(words: &LoggedWords, form: DefinitionForm) -> Vec<DefinitionPart> {
    let begin = words.place();
    // Columns are in parentheses, also those of ADD (…) and of MariaDB's ADD IF NOT EXISTS (…).
    let split_depth = |place: usize| {
        let is_list = form == DefinitionForm::Create && place == begin
            || words
                .word_at(place.wrapping_sub(1))
                .is_some_and(|word| word == "ADD" || word == "COLUMN" || word == "EXISTS");
        words.at(place) == Some(&Token::LParen) && is_list
    };
    let (mut depth, mut list_depth) = (0_usize, None);
    let mut parts = Vec::new();
    let mut start = begin;
    for place in begin..words.len() {
        match words.at(place) {
            Some(Token::LParen) => {
                depth += 1;
                if split_depth(place) {
                    list_depth = Some(depth);
                    parts.push(DefinitionPart { words: start..place, is_listed: false });
                    start = place + 1;
                }
            }
            Some(Token::RParen) => {
                if list_depth == Some(depth) {
                    list_depth = None;
                    parts.push(DefinitionPart { words: start..place, is_listed: true });
                    start = place + 1;
                }
                depth = depth.saturating_sub(1);
            }
            Some(Token::Comma) if depth == list_depth.unwrap_or(0) => {
                parts.push(DefinitionPart { words: start..place, is_listed: list_depth.is_some() });
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(DefinitionPart { words: start..words.len(), is_listed: list_depth.is_some() });
    parts
}

struct DefinitionChecker<'p> {
    policy: &'p ExitPolicy,
    rules: &'p [usize],
    form: DefinitionForm,
    words: LoggedWords,
}

impl DefinitionChecker<'_> {
    fn exit(&self, name: &str) -> &ColumnExit {
        self.policy.column(self.rules, name.as_bytes()).exit
    }

    /// Looks whether the table has the columns that the policy names, if it says what columns it has.
    fn has_named_columns(&self, parts: &[DefinitionPart]) -> Result<(), BadDefinition> {
        let mut names = Vec::new();
        for part in parts {
            names.extend(self.column(part)?.map(|(_, name)| name.to_lowercase()));
        }
        if names.is_empty() {
            return Ok(());
        }
        let has = |name: &str| names.iter().any(|own| own == name);
        self.policy.missing_column(self.rules, has).map_or(Ok(()), |text| Err(BadDefinition::Missing(text)))
    }

    fn is_masked(&self, name: &str) -> bool {
        *self.exit(name) != ColumnExit::Keep
    }

    fn part(&mut self, part: DefinitionPart) -> Result<(), BadDefinition> {
        match self.column(&part)? {
            Some((place, name)) if self.is_masked(&name) => self.masked_column(part.words, place, name),
            column => self.other(part.words, column.map(|(place, _)| place)),
        }
    }

    /// The column that a part defines: where its name stands.
    fn column(&self, part: &DefinitionPart) -> Result<Option<(usize, String)>, BadDefinition> {
        if self.form == DefinitionForm::Create && !part.is_listed {
            return Ok(None);
        }
        let words = &self.words;
        let mut place = part.words.start;
        let skip = |mut place: usize, others: &[&str]| {
            while words.word_at(place).is_some_and(|word| others.contains(&word.as_str())) {
                place += 1;
            }
            place
        };
        const FILLERS: [&str; 4] = ["COLUMN", "IF", "NOT", "EXISTS"];
        // Columns may have the names of actions, as `comment` and `lock`.
        let action = words.word_at(place).filter(|_| !part.is_listed);
        match action.as_deref() {
            Some("ADD" | "MODIFY" | "ALTER") => place = skip(place + 1, &FILLERS),
            Some("CHANGE") => {
                place = skip(place + 1, &FILLERS);
                self.renamed(place, place + 1)?;
                place += 1;
            }
            Some("RENAME") if words.word_at(place + 1).is_some_and(|word| word == "COLUMN") => {
                let from = skip(place + 2, &FILLERS);
                self.renamed(from, from + 2)?;
                return Ok(None);
            }
            Some(
                "DROP" | "RENAME" | "ENGINE" | "ORDER" | "CONVERT" | "DISCARD" | "IMPORT" | "TRUNCATE"
                | "COALESCE" | "REORGANIZE" | "EXCHANGE" | "ANALYZE" | "REBUILD" | "REMOVE" | "ENABLE"
                | "DISABLE" | "DEFAULT" | "AUTO_INCREMENT" | "COMMENT" | "ALGORITHM" | "LOCK" | "FORCE",
            ) => return Ok(None),
            _ => {}
        }
        let is_period = words.word_at(place + 1).is_some_and(|word| word == "FOR");
        let is_no_column = words
            .word_at(place)
            .is_some_and(|word| NO_COLUMNS.contains(&word.as_str()) && (word != "PERIOD" || is_period));
        if is_no_column || place >= part.words.end {
            return Ok(None);
        }
        Ok(words.name_at(place).map(|name| (place, name)))
    }

    /// A column gets another name: both need the same rule.
    fn renamed(&self, from: usize, to: usize) -> Result<(), BadDefinition> {
        match (self.words.name_at(from), self.words.name_at(to)) {
            (Some(from), Some(to)) if self.exit(&from) == self.exit(&to) => Ok(()),
            (Some(from), Some(to)) => Err(BadDefinition::Renamed(from, to)),
            _ => Err(BadDefinition::HasValue(None)),
        }
    }

    /// The definition of a masked column, whose name stands at a place.
    fn masked_column(
        &mut self,
        part: Range<usize>,
        name_at: usize,
        name: String,
    ) -> Result<(), BadDefinition> {
        let of_type = self.parentheses(name_at + 2);
        let has_members = self.words.word_at(name_at + 1).is_some_and(|word| word == "ENUM" || word == "SET");
        let mut member = 0;
        for place in part {
            let Some(token) = self.words.value_at(place).cloned() else { continue };
            let before = self.words.word_at(place.wrapping_sub(1));
            if of_type.contains(&place) {
                if has_members {
                    member += 1;
                    self.words.replace(place, text_token(&format!("{member}")));
                }
                continue;
            }
            match before.as_deref() {
                Some("COMMENT") => self.words.replace(place, text_token("")),
                Some("DEFAULT") if is_nothing(&token) => {}
                Some("SRID") => {}
                _ if self.is_precision(place) => {}
                _ => return Err(BadDefinition::HasValue(Some(name))),
            }
        }
        Ok(())
    }

    /// The parentheses that begin at a place, if any do.
    fn parentheses(&self, begin: usize) -> Range<usize> {
        if self.words.at(begin) != Some(&Token::LParen) {
            return begin..begin;
        }
        let end = (begin..self.words.len()).find(|&place| self.words.at(place) == Some(&Token::RParen));
        begin..end.unwrap_or(begin)
    }

    /// Whether the number at a place is the precision of a clock.
    fn is_precision(&self, place: usize) -> bool {
        self.words.at(place.wrapping_sub(1)) == Some(&Token::LParen)
            && self.words.word_at(place.wrapping_sub(2)).is_some_and(|word| CLOCKS.contains(&word.as_str()))
    }

    /// A key, an option of the table, or a column that is kept: its values stay unless it names a masked column.
    fn other(&mut self, part: Range<usize>, name_at: Option<usize>) -> Result<(), BadDefinition> {
        let (named, may_name) = self.masked_names(&part, name_at);
        let source = match self.has_word(&part, "AS") {
            true => named.clone(),
            false => self.named_in_default(&part),
        };
        if let (Some(from), Some(name)) = (source, name_at.and_then(|place| self.words.name_at(place)))
            && !self.policy.column(self.rules, name.as_bytes()).is_named
        {
            return Err(BadDefinition::Derived(name, from));
        }
        let of_key = name_at.is_none() && self.is_plain_key(&part);
        for place in part {
            if self.words.value_at(place).is_none() {
                continue;
            }
            let before = match self.words.at(place.wrapping_sub(1)) {
                Some(Token::Eq) => place.wrapping_sub(2),
                _ => place.wrapping_sub(1),
            };
            if self.words.word_at(before).is_some_and(|word| word == "AUTO_INCREMENT") {
                self.words.replace(place, Token::Number("1".to_owned(), false));
                continue;
            }
            if (named.is_some() || may_name) && !of_key {
                return Err(BadDefinition::HasValue(named));
            }
        }
        Ok(())
    }

    /// The masked column that the expression after DEFAULT names.
    fn named_in_default(&self, part: &Range<usize>) -> Option<String> {
        let begin = part.clone().find(|&place| self.is_one_of(place, &["DEFAULT"]))? + 1;
        let mut depth = 0_usize;
        for place in begin..part.end {
            match self.words.at(place) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && place > begin && self.is_one_of(place, &AFTER_DEFAULT) {
                return None;
            }
            let Some(name) = self.words.name_at(place) else { continue };
            let verdict = self.policy.column(self.rules, name.as_bytes());
            if verdict.is_named && *verdict.exit != ColumnExit::Keep {
                return Some(name);
            }
        }
        None
    }

    fn is_one_of(&self, place: usize, words: &[&str]) -> bool {
        self.words.word_at(place).is_some_and(|word| words.contains(&word.as_str()))
    }

    fn has_word(&self, part: &Range<usize>, word: &str) -> bool {
        part.clone().any(|place| self.words.word_at(place).is_some_and(|own| own == word))
    }

    /// The masked column that a part names besides the one that it defines; whether it may name one otherwise.
    fn masked_names(&self, part: &Range<usize>, name_at: Option<usize>) -> (Option<String>, bool) {
        let mut named = None;
        let mut may_name = false;
        let mut depth = 0_usize;
        // Which column a new partition is by stands in the CREATE TABLE only, and in the policy.
        let hides_column = self.form == DefinitionForm::Change
            && !self.has_word(part, "BY")
            && !self.policy.keeps_partition_columns(self.rules);
        for place in part.clone() {
            match self.words.at(place) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth = depth.saturating_sub(1),
                _ => {}
            }
            let Some(name) = self.words.name_at(place) else { continue };
            let word = self.words.word_at(place);
            may_name |= hides_column && word.as_deref() == Some("VALUES");
            // It only says where a column stands.
            if self.words.word_at(place.wrapping_sub(1)).is_some_and(|word| word == "AFTER") {
                continue;
            }
            let verdict = self.policy.column(self.rules, name.as_bytes());
            if *verdict.exit == ColumnExit::Keep || Some(place) == name_at {
                continue;
            }
            match verdict.is_named {
                true => named = Some(name),
                // By the rule of all other columns: any word of an expression may be one.
                false => {
                    may_name |=
                        depth > 0 || word.is_some_and(|word| matches!(&*word, "AS" | "CHECK" | "PARTITION"));
                }
            }
        }
        (named, may_name)
    }

    /// Whether a part is a key of columns, not of expressions: its numbers are lengths.
    fn is_plain_key(&self, part: &Range<usize>) -> bool {
        let is_key = self.form == DefinitionForm::Index
            || part.clone().any(|place| {
                self.words
                    .word_at(place)
                    .is_some_and(|word| matches!(&*word, "KEY" | "INDEX" | "UNIQUE" | "FULLTEXT"))
            });
        let mut places = part.clone();
        let has_expression = places.any(|place| {
            let is_open = |place: usize| self.words.at(place) == Some(&Token::LParen);
            (is_open(place) || self.words.at(place) == Some(&Token::Comma)) && is_open(place + 1)
                || self.words.word_at(place).is_some_and(|word| NO_PLAIN_KEY.contains(&word.as_str()))
        });
        let only_numbers = part
            .clone()
            .filter_map(|place| self.words.value_at(place))
            .all(|token| matches!(token, Token::Number(..)));
        is_key && !has_expression && only_numbers
    }
}

fn text_token(text: &str) -> Token {
    Token::SingleQuotedString(text.to_owned())
}

/// Whether a default is a zero or empty, which masks leave as it is.
fn is_nothing(token: &Token) -> bool {
    let text = match token {
        Token::Number(text, _) | Token::SingleQuotedString(text) => text,
        Token::Word(word) => return word.value.eq_ignore_ascii_case("FALSE"),
        _ => return false,
    };
    text.chars().all(|character| matches!(character, '0' | '.' | '-' | ':' | ' '))
}
