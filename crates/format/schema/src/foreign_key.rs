//! The foreign keys of a CREATE TABLE statement: a FOREIGN KEY clause, or REFERENCES at a column.

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
    /// The statement names none that we know.
    Unknown,
}

/// A foreign key as a CREATE TABLE statement has it. Names are spelled as in the statement.
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
    /// The parent's columns; none where the statement names none: they are those of the parent's primary key.
    pub referenced: Vec<String>,
    /// The rule for a parent's row that is deleted.
    pub on_delete: ReferentialRule,
    /// The rule for a parent's row whose columns change.
    pub on_update: ReferentialRule,
    /// Whether it is written at its column. MySQL before 9.0 reads that and makes no key of it.
    pub is_at_column: bool,
}

impl ForeignKey {
    /// `None`: another definition.
    ///
    /// ```text
    /// [CONSTRAINT name] FOREIGN KEY [name] (column, …) reference
    /// ```
    pub(crate) fn of(item: &[Token]) -> Option<ForeignKey> {
        let place = item.windows(2).position(|pair| is(pair.first(), "FOREIGN") && is(pair.last(), "KEY"))?;
        let own_name = item.get(1).filter(|_| is(item.first(), "CONSTRAINT") && place > 1).and_then(word);
        let rest = item.get(place + 2..)?;
        let begin = rest.iter().position(|token| *token == Token::LParen)?;
        let (columns, rest) = list(rest.get(begin..)?)?;
        let name = own_name.unwrap_or_else(|| UNNAMED.to_owned());
        Some(ForeignKey { name, columns, ..Self::reference(rest)? })
    }

    /// Whether a change of a parent's row changes rows of the child.
    pub fn carries_on(&self) -> bool {
        [self.on_delete, self.on_update].iter().any(|rule| *rule != ReferentialRule::Refuse)
    }

    /// The change of a parent's row for which its rule isn't known, if there is one: DELETE or UPDATE.
    pub(crate) fn unknown_rule(&self) -> Option<&'static str> {
        let rules = [("DELETE", self.on_delete), ("UPDATE", self.on_update)];
        rules.iter().find(|(_, rule)| *rule == ReferentialRule::Unknown).map(|(event, _)| *event)
    }

    /// Whether the statement names it: otherwise the server did.
    pub(crate) fn has_name(&self) -> bool {
        !self.is_at_column && self.name != UNNAMED
    }

    /// The foreign key at a column; `None`: the column has none.
    ///
    /// ```text
    /// column type … reference …
    /// ```
    pub(crate) fn of_column(item: &[Token]) -> Option<ForeignKey> {
        let mut depth = 0_usize;
        // A word within parentheses is an expression's.
        let begin = item.iter().position(|token| {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && is(Some(token), "REFERENCES")
        })?;
        let columns = vec![word(item.first()?)?];
        let name = format!("of the column {}", columns.concat());
        Some(ForeignKey { name, columns, is_at_column: true, ..Self::reference(item.get(begin..)?)? })
    }

    /// ```text
    /// REFERENCES [database.]table [(column, …)] [MATCH …] [ON DELETE rule] [ON UPDATE rule]
    /// ```
    fn reference(tokens: &[Token]) -> Option<ForeignKey> {
        let (first, rest) = tokens.split_first()?;
        if !is(Some(first), "REFERENCES") {
            return None;
        }
        let (database, parent, rest) = match rest {
            [database, Token::Period, table, rest @ ..] => (word(database), word(table)?, rest),
            [table, rest @ ..] => (None, word(table)?, rest),
            [] => return None,
        };
        let (referenced, rest) = match rest.first() {
            Some(Token::LParen) => list(rest)?,
            _ => (Vec::new(), rest),
        };
        Some(ForeignKey {
            name: String::new(),
            columns: Vec::new(),
            database,
            parent,
            referenced,
            on_delete: rule_of(rest, "DELETE"),
            on_update: rule_of(rest, "UPDATE"),
            is_at_column: false,
        })
    }
}

/// The name of a foreign key for which a statement has none.
const UNNAMED: &str = "without a name";

/// The words of the rules. SET DEFAULT is refused by MySQL's InnoDB, and RESTRICT to MariaDB's.
const RULES: [(&[&str], ReferentialRule); 5] = [
    (&["CASCADE"], ReferentialRule::Cascade),
    (&["SET", "NULL"], ReferentialRule::SetNull),
    (&["SET", "DEFAULT"], ReferentialRule::Refuse),
    (&["RESTRICT"], ReferentialRule::Refuse),
    (&["NO", "ACTION"], ReferentialRule::Refuse),
];

/// The functions of the time, to which ON UPDATE sets a column: no rule.
const TIMES: [&str; 4] = ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"];

fn rule_of(tokens: &[Token], event: &str) -> ReferentialRule {
    let place = tokens.windows(2).position(|pair| is(pair.first(), "ON") && is(pair.last(), event));
    let Some(rule) = place.and_then(|place| tokens.get(place + 2..)) else { return ReferentialRule::Refuse };
    if TIMES.iter().any(|time| is(rule.first(), time)) {
        return ReferentialRule::Refuse;
    }
    let is_it = |(words, _): &&(&[&str], ReferentialRule)| {
        words.iter().enumerate().all(|(index, word)| is(rule.get(index), word))
    };
    RULES.iter().find(is_it).map_or(ReferentialRule::Unknown, |(_, rule)| *rule)
}

/// The names of the list in parentheses with which the tokens begin, and what follows it.
fn list(tokens: &[Token]) -> Option<(Vec<String>, &[Token])> {
    let end = tokens.iter().position(|token| *token == Token::RParen)?;
    let names = tokens.get(1..end)?.iter().filter_map(word).collect();
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
