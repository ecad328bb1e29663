//! The tables that a statement logged as text names as those it changes, from its tokens alone.
//!
//! It knows INSERT, REPLACE, LOAD, UPDATE and DELETE, and no other statement. All tables of an UPDATE or DELETE over several
//! count, also those that are only read.

use binlogz_schema::statement_tokens;
use sqlparser::tokenizer::{Token, Word};

/// A table as a statement names it, in small letters: its database, where it stands there, and its name.
pub(crate) type ChangedTableName = (Option<String>, String);

/// Words between the verb and the table.
const FILLERS: [&str; 6] = ["low_priority", "high_priority", "delayed", "quick", "ignore", "into"];
/// Words that may stand in place of a table, and begin a query or a function.
const NO_TABLES: [&str; 6] = ["select", "with", "values", "table", "lateral", "json_table"];

/// The tables that the statement changes; `None` if its text doesn't tell.
pub(crate) fn changed_tables(text: &str) -> Option<Vec<ChangedTableName>> {
    // A server executes the content of such a comment, or not, as its version says.
    if text.contains("/*!") || text.contains("/*M!") {
        return None;
    }
    let mut statement = Statement { tokens: statement_tokens(text).ok()?, place: 0 };
    match statement.word()?.as_str() {
        "insert" | "replace" => {
            statement.skip(&FILLERS);
            Some(vec![statement.name()?])
        }
        "load" => {
            statement.seek("into")?;
            statement.skip(&["table"]);
            Some(vec![statement.name()?])
        }
        "update" => {
            statement.skip(&FILLERS);
            statement.references()
        }
        "delete" => {
            statement.skip(&FILLERS);
            if !statement.is_at("from") {
                statement.seek("from")?;
                return statement.references();
            }
            statement.place += 1;
            if statement.clone().seek("using").is_some() && statement.is_list() {
                statement.seek("using")?;
            }
            statement.references()
        }
        _ => None,
    }
}

/// The text up to the first quote: in a statement of which only the front is kept the tables still stand there.
fn before_quotes(text: &str) -> &str {
    text.split(['\'', '"']).next().unwrap_or_default()
}

/// Whether a statement takes the place of rows that have its keys: REPLACE, or LOAD DATA … REPLACE.
pub(crate) fn replaces_rows(text: &str) -> bool {
    let Ok(tokens) = statement_tokens(text).or_else(|_| statement_tokens(before_quotes(text))) else {
        return false;
    };
    let mut statement = Statement { tokens, place: 0 };
    match statement.word().as_deref() {
        Some("replace") => true,
        Some("load") => {
            let into = statement.tokens.iter().position(|token| is_word(token, "into"));
            let mut front = statement.tokens.iter().take(into.unwrap_or(0));
            front.any(|token| is_word(token, "replace"))
        }
        _ => false,
    }
}

/// The tables that a statement changes of which perhaps only the front is kept.
pub(crate) fn changed_tables_by_front(text: &str) -> Option<Vec<ChangedTableName>> {
    changed_tables(text).or_else(|| changed_tables(before_quotes(text)))
}

#[derive(Clone)]
struct Statement {
    tokens: Vec<Token>,
    place: usize,
}

impl Statement {
    /// The word here, in small letters, if it is one without quotes.
    fn here(&self) -> Option<String> {
        match self.tokens.get(self.place)? {
            Token::Word(Word { value, quote_style: None, .. }) => Some(value.to_lowercase()),
            _ => None,
        }
    }

    fn is_at(&self, word: &str) -> bool {
        self.here().is_some_and(|here| here == word)
    }

    fn word(&mut self) -> Option<String> {
        let word = self.here();
        self.place += 1;
        word
    }

    fn skip(&mut self, words: &[&str]) {
        while self.here().is_some_and(|here| words.contains(&here.as_str())) {
            self.place += 1;
        }
    }

    /// Goes on after the next such word.
    fn seek(&mut self, word: &str) -> Option<()> {
        while self.place < self.tokens.len() {
            self.place += 1;
            if self.tokens.get(self.place - 1).is_some_and(|token| is_word(token, word)) {
                return Some(());
            }
        }
        None
    }

    /// Whether only names, separated by commas, come before the word USING: `DELETE FROM a, b USING …`, not
    /// `DELETE FROM a WHERE … JOIN … USING (…)`.
    fn is_list(&self) -> bool {
        let mut list = self.clone();
        loop {
            if list.name().is_none() {
                return false;
            }
            match list.tokens.get(list.place) {
                Some(Token::Comma) => list.place += 1,
                Some(token) => return is_word(token, "using"),
                None => return false,
            }
        }
    }

    fn name_part(&mut self) -> Option<String> {
        let name = match self.tokens.get(self.place)? {
            Token::Word(Word { value, .. }) | Token::DoubleQuotedString(value) => value.to_lowercase(),
            _ => return None,
        };
        self.place += 1;
        Some(name)
    }

    fn name(&mut self) -> Option<ChangedTableName> {
        if self.here().is_some_and(|here| NO_TABLES.contains(&here.as_str())) {
            return None;
        }
        let first = self.name_part()?;
        if !matches!(self.tokens.get(self.place), Some(Token::Period)) {
            return Some((None, first));
        }
        self.place += 1;
        Some((Some(first), self.name_part()?))
    }

    /// The tables of `a JOIN (b, c) ON … , d`, up to SET, WHERE or the end.
    fn references(&mut self) -> Option<Vec<ChangedTableName>> {
        let mut tables = Vec::new();
        let mut is_expected = true;
        while let Some(token) = self.tokens.get(self.place) {
            match token {
                Token::LParen if is_expected => self.place += 1,
                Token::LParen => self.skip_parentheses()?,
                _ if is_expected => {
                    tables.push(self.name()?);
                    is_expected = false;
                }
                Token::Comma => {
                    self.place += 1;
                    is_expected = true;
                }
                // USE INDEX FOR ORDER BY (i)
                token if ["use", "force", "ignore"].iter().any(|word| is_word(token, word)) => {
                    while !matches!(self.tokens.get(self.place)?, Token::LParen) {
                        self.place += 1;
                    }
                    self.skip_parentheses()?;
                }
                token if ["set", "where", "order", "limit"].iter().any(|word| is_word(token, word)) => break,
                token => {
                    is_expected = ["join", "straight_join"].iter().any(|word| is_word(token, word));
                    self.place += 1;
                }
            }
        }
        (!is_expected).then_some(tables)
    }

    fn skip_parentheses(&mut self) -> Option<()> {
        let mut depth = 0_u32;
        while let Some(token) = self.tokens.get(self.place) {
            self.place += 1;
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
        None
    }
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_a_statement_changes_are_told_by_its_text() {
        for (text, tables) in [
            ("INSERT INTO Orders VALUES (1)", "orders"),
            ("insert low_priority ignore `shop`.`Orders` (a) SELECT a FROM other", "shop.orders"),
            ("REPLACE DELAYED orders SET a = 1", "orders"),
            ("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE shop.orders (a)", "shop.orders"),
            ("/* by hand */ UPDATE orders SET a = (SELECT b FROM other)", "orders"),
            (
                "UPDATE LOW_PRIORITY orders o JOIN shop.items AS i ON f(o.a, i.b) SET o.a = 1",
                "orders shop.items",
            ),
            ("UPDATE a, b LEFT JOIN (c CROSS JOIN d) USING (x, y) SET a.x = 1", "a b c d"),
            ("UPDATE a USE INDEX (i, j) STRAIGHT_JOIN b SET x = 1 WHERE y IN (1, 2)", "a b"),
            ("UPDATE a USE INDEX FOR ORDER BY (i) IGNORE KEY (k) JOIN b ON a.x = b.x SET a.x = 1", "a b"),
            ("UPDATE a PARTITION (p0, p1) SET x = 1", "a"),
            ("DELETE FROM shop.orders WHERE id = 1", "shop.orders"),
            ("DELETE QUICK FROM orders ORDER BY id LIMIT 1, 2", "orders"),
            ("DELETE a, b FROM t1 AS a JOIN t2 AS b WHERE a.id = b.id", "t1 t2"),
            ("DELETE FROM a, b USING t1 AS a, t2 AS b WHERE a.id = b.id", "t1 t2"),
            ("DELETE FROM a WHERE x IN (SELECT x FROM b JOIN c USING (x))", "a"),
            ("DELETE FROM \"orders\"", "orders"),
        ] {
            let found = changed_tables(text).expect(text).into_iter();
            let found =
                found.map(|(database, table)| database.map_or(table.clone(), |of| format!("{of}.{table}")));
            assert_eq!(found.collect::<Vec<_>>().join(" "), tables, "{text}");
        }
    }

    #[test]
    fn other_statements_and_tables_that_are_queries_are_not_told() {
        for text in [
            "SELECT f()",
            "CALL p()",
            "WITH a AS (SELECT 1) UPDATE b SET x = 1",
            "UPDATE a JOIN (SELECT 1 AS x) AS b SET a.x = b.x",
            "UPDATE a, LATERAL (SELECT 1) AS b SET a.x = 1",
            "UPDATE a /*!80000 JOIN b */ SET a.x = 1",
            "INSERT INTO 'a",
            "DELETE a, b",
            "UPDATE a,",
            "",
        ] {
            assert_eq!(changed_tables(text), None, "{text}");
        }
    }
}
