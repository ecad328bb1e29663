//! A FOREIGN KEY clause of a CREATE TABLE statement.

use sqlparser::tokenizer::Token;

/// The rule of a foreign key for rows whose parent is deleted or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferentialRule {
    /// RESTRICT, NO ACTION: such a change is refused.
    Refuse,
    /// The rows go or change with it.
    Cascade,
    /// Their columns become NULL.
    SetNull,
}

/// A FOREIGN KEY clause of a CREATE TABLE statement. Names are spelled as in the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The foreign key's name.
    pub name: String,
    /// The child's columns.
    pub columns: Vec<String>,
    /// The parent's database, where it is another one.
    pub database: Option<String>,
    /// The parent's table.
    pub parent: String,
    /// The parent's columns.
    pub referenced: Vec<String>,
    /// The rule for a parent's row that is deleted.
    pub on_delete: ReferentialRule,
    /// The rule for a parent's row whose columns change.
    pub on_update: ReferentialRule,
}

impl ForeignKey {
    /// `None`: another definition.
    ///
    /// ```text
    /// [CONSTRAINT name] FOREIGN KEY [name] (column, …) REFERENCES [database.]table (column, …) [ON DELETE rule] [ON UPDATE rule]
    /// ```
    pub(crate) fn of(item: &[Token]) -> Option<ForeignKey> {
        let place = item.windows(2).position(|pair| is(pair.first(), "FOREIGN") && is(pair.last(), "KEY"))?;
        let own_name = item.get(1).filter(|_| is(item.first(), "CONSTRAINT") && place > 1).and_then(word);
        let rest = item.get(place + 2..)?;
        let (columns, rest) = list(rest)?;
        let (first, rest) = rest.split_first()?;
        if !is(Some(first), "REFERENCES") {
            return None;
        }
        let (database, parent) = match rest {
            [database, Token::Period, table, ..] => (word(database), word(table)?),
            [table, ..] => (None, word(table)?),
            [] => return None,
        };
        let (referenced, rest) = list(rest)?;
        Some(ForeignKey {
            name: own_name.unwrap_or_else(|| "without a name".to_owned()),
            columns,
            database,
            parent,
            referenced,
            on_delete: rule_of(rest, "DELETE"),
            on_update: rule_of(rest, "UPDATE"),
        })
    }
}

fn rule_of(tokens: &[Token], event: &str) -> ReferentialRule {
    let place = tokens.windows(2).position(|pair| is(pair.first(), "ON") && is(pair.last(), event));
    let rule = place.and_then(|place| tokens.get(place + 2..)).unwrap_or_default();
    match rule {
        [first, ..] if is(Some(first), "CASCADE") => ReferentialRule::Cascade,
        [first, second, ..] if is(Some(first), "SET") && is(Some(second), "NULL") => ReferentialRule::SetNull,
        _ => ReferentialRule::Refuse,
    }
}

/// The names of the first list in parentheses, and what follows it.
fn list(tokens: &[Token]) -> Option<(Vec<String>, &[Token])> {
    let begin = tokens.iter().position(|token| *token == Token::LParen)?;
    let end = tokens.iter().position(|token| *token == Token::RParen)?;
    let names = tokens.get(begin + 1..end)?.iter().filter_map(word).collect();
    Some((names, tokens.get(end + 1..)?))
}

fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    }
}

/// Whether it is this keyword.
fn is(token: Option<&Token>, keyword: &str) -> bool {
    matches!(token, Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
}
