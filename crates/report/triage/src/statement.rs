//! A logged statement that may lose data, from its words: what it does, and to which tables.
//!
//! DDL is always logged as text. Changes of rows are, where `binlog_format` is STATEMENT or MIXED: of these only DELETE and UPDATE
//! without WHERE are told from their words, since how many rows they changed is in no log.

use binlogz_schema::{statement_tokens, without_version_comments};
use sqlparser::tokenizer::Token;

/// Tables of a statement that are named; DROP TABLE may have thousands.
const TABLES_MAX: usize = 16;
/// Bytes of a statement that are looked at: a definition of a table may follow, which tells nothing here.
const SIZE_MAX: usize = 16 << 10;

/// What a statement does to the data of its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DdlEffect {
    /// DROP DATABASE.
    DropDatabase,
    /// DROP TABLE.
    DropTable,
    /// TRUNCATE TABLE.
    Truncate,
    /// ALTER TABLE that drops columns, or drops or truncates partitions.
    LosesPart,
    /// DELETE or UPDATE without WHERE, logged as text: all rows of its table.
    ChangesAllRows,
    /// Other ALTER, DROP and RENAME statements: the rows stay.
    Redefines,
}

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementTableName {
    /// Its database: that of the statement, or the default one of the session. Empty if neither is known.
    pub database: String,
    /// Its name; empty for a database as a whole.
    pub table: String,
}

/// A statement that is worth a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusualStatement {
    /// What it does.
    pub effect: DdlEffect,
    /// The words that say so: `DROP TABLE`.
    pub verb: String,
    /// The tables it names first, at most 16.
    pub tables: Vec<StatementTableName>,
}

impl UnusualStatement {
    /// Reads a statement that ran in the database `current`; `None`: an ordinary one.
    pub fn of(text: &[u8], current: &[u8]) -> Option<Self> {
        if !is_candidate(text) {
            return None;
        }
        let front = text.get(..SIZE_MAX).unwrap_or(text);
        StatementTokens::of(&String::from_utf8_lossy(front), current).read()
    }
}

/// Whether its first word may begin such a statement, or a comment stands there.
fn is_candidate(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begins =
        |word: &str| text.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word.as_bytes()));
    ["drop", "truncate", "alter", "rename", "delete", "update", "/*", "--", "#", "set statement"]
        .into_iter()
        .any(begins)
}

struct StatementTokens {
    tokens: Vec<Token>,
    current: String,
}

impl StatementTokens {
    fn of(text: &str, current: &[u8]) -> Self {
        // Cut within a quoted text, perhaps: its first words are enough.
        let tokens = statement_tokens(text).unwrap_or_else(|_| {
            let plain = without_version_comments(text);
            plain.split_whitespace().map(|word| Token::make_word(word, None)).collect()
        });
        StatementTokens { tokens, current: String::from_utf8_lossy(current).into_owned() }
    }

    /// The name, quoted or not, or the word at a place; `None`: there is a sign.
    fn name(&self, place: usize) -> Option<&String> {
        match self.tokens.get(place) {
            Some(Token::Word(word)) => Some(&word.value),
            _ => None,
        }
    }

    /// The word at a place, in small letters; empty if there is a sign.
    fn at(&self, place: usize) -> String {
        self.name(place).map(|name| name.to_lowercase()).unwrap_or_default()
    }

    fn is(&self, place: usize, word: &str) -> bool {
        self.name(place).is_some_and(|name| name.eq_ignore_ascii_case(word))
    }

    /// Whether these words stand somewhere, one after the other; what isn't essential may stand between the last two.
    fn has(&self, words: [&str; 2]) -> bool {
        (0..self.tokens.len()).any(|place| self.is(place, words[0]) && self.is(place + 1, words[1]))
    }

    /// The place after words that may be left out.
    fn after(&self, mut place: usize, words: &[&str]) -> usize {
        while words.iter().any(|word| self.is(place, word)) {
            place += 1;
        }
        place
    }

    fn read(&self) -> Option<UnusualStatement> {
        let begin = self.begin()?;
        match &*self.at(begin) {
            "drop" => self.drop(begin),
            "truncate" => {
                let place = self.after(begin + 1, &["table"]);
                self.statement(DdlEffect::Truncate, "TRUNCATE TABLE", place)
            }
            "alter" => self.alter(begin),
            "rename" if self.is(begin + 1, "table") || self.is(begin + 1, "tables") => {
                self.statement(DdlEffect::Redefines, "RENAME TABLE", begin + 2)
            }
            "delete" if !self.has_where() => {
                let options = ["low_priority", "quick", "ignore", "from"];
                self.statement(DdlEffect::ChangesAllRows, "DELETE", self.after(begin + 1, &options))
            }
            "update" if !self.has_where() => {
                let place = self.after(begin + 1, &["low_priority", "ignore"]);
                self.statement(DdlEffect::ChangesAllRows, "UPDATE", place)
            }
            _ => None,
        }
    }

    /// Where the statement begins: after MariaDB's SET STATEMENT variable = value FOR.
    fn begin(&self) -> Option<usize> {
        match self.is(0, "set") && self.is(1, "statement") {
            true => (0..self.tokens.len()).find(|place| self.is(*place, "for")).map(|place| place + 1),
            false => Some(0),
        }
    }

    fn has_where(&self) -> bool {
        (0..self.tokens.len()).any(|place| self.is(place, "where") || self.is(place, "limit"))
    }

    fn drop(&self, begin: usize) -> Option<UnusualStatement> {
        let after_if = |place| self.after(place, &["if", "exists"]);
        match &*self.at(begin + 1) {
            "temporary" => None,
            "database" | "schema" => {
                let name = self.name(after_if(begin + 2))?;
                let tables = vec![StatementTableName { database: name.clone(), table: String::new() }];
                let verb = "DROP DATABASE".to_owned();
                Some(UnusualStatement { effect: DdlEffect::DropDatabase, verb, tables })
            }
            "table" | "tables" => self.statement(DdlEffect::DropTable, "DROP TABLE", after_if(begin + 2)),
            "index" => {
                let on = (begin..self.tokens.len()).find(|place| self.is(*place, "on"))?;
                self.statement(DdlEffect::Redefines, "DROP INDEX", on + 1)
            }
            "" => None,
            other => {
                let verb = format!("DROP {}", other.to_uppercase());
                self.of_object(other, &verb, after_if(begin + 2))
            }
        }
    }

    fn alter(&self, begin: usize) -> Option<UnusualStatement> {
        let place = self.after(begin + 1, &["online", "offline", "ignore"]);
        if !self.is(place, "table") {
            let verb = format!("ALTER {}", self.at(place).to_uppercase());
            return self.of_object(&self.at(place), verb.trim_end(), place + 1);
        }
        let (effect, verb) = match () {
            () if self.has(["drop", "partition"]) => (DdlEffect::LosesPart, "ALTER TABLE … DROP PARTITION"),
            () if self.has(["truncate", "partition"]) => {
                (DdlEffect::LosesPart, "ALTER TABLE … TRUNCATE PARTITION")
            }
            () if self.drops_column() => (DdlEffect::LosesPart, "ALTER TABLE … DROP COLUMN"),
            () => (DdlEffect::Redefines, "ALTER TABLE"),
        };
        let after_if = self.after(place + 1, &["if", "exists"]);
        let mut statement = self.statement(effect, verb, after_if)?;
        statement.tables.truncate(1);
        Some(statement)
    }

    /// `DROP [COLUMN] name`; not DROP INDEX and the like, nor ALTER COLUMN c DROP DEFAULT.
    fn drops_column(&self) -> bool {
        let others = [
            "index",
            "key",
            "primary",
            "foreign",
            "constraint",
            "check",
            "default",
            "partition",
            "expression",
            "not",
            "system",
            "period",
        ];
        (0..self.tokens.len())
            .any(|place| self.is(place, "drop") && !others.iter().any(|other| self.is(place + 1, other)))
    }

    /// A statement on something that is no table; what belongs to a database has a name as tables have.
    fn of_object(&self, object: &str, verb: &str, place: usize) -> Option<UnusualStatement> {
        let mut statement = self.statement(DdlEffect::Redefines, verb, place)?;
        if !["view", "trigger", "procedure", "function", "event"].contains(&object) {
            statement.tables.clear();
        }
        Some(statement)
    }

    /// A statement whose tables stand in a list from this place on.
    fn statement(&self, effect: DdlEffect, verb: &str, place: usize) -> Option<UnusualStatement> {
        let tables = self.tables(place);
        let verb = verb.to_owned();
        Some(UnusualStatement { effect, verb, tables })
    }

    /// The names of a list, up to what is no list.
    fn tables(&self, mut place: usize) -> Vec<StatementTableName> {
        let mut tables = Vec::new();
        while let Some(first) = self.name(place) {
            let (database, table, next) = match (self.tokens.get(place + 1), self.name(place + 2)) {
                (Some(Token::Period), Some(table)) => (first, table, place + 3),
                _ => (&self.current, first, place + 1),
            };
            tables.push(StatementTableName { database: database.clone(), table: table.clone() });
            if tables.len() == TABLES_MAX || self.tokens.get(next) != Some(&Token::Comma) {
                break;
            }
            place = next + 1;
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(DdlEffect, String, String)> {
        let statement = UnusualStatement::of(text.as_bytes(), b"shop")?;
        let names = statement.tables.iter().map(|table| format!("{}.{}", table.database, table.table));
        Some((statement.effect, statement.verb, names.collect::<Vec<_>>().join(" ")))
    }

    #[test]
    fn statements_that_lose_data_are_known_by_their_words() {
        for (text, effect, verb, tables) in [
            ("DROP DATABASE IF EXISTS `a b`", DdlEffect::DropDatabase, "DROP DATABASE", "a b."),
            (
                "DROP TABLE `orders` /* generated by server */",
                DdlEffect::DropTable,
                "DROP TABLE",
                "shop.orders",
            ),
            ("drop table if exists a.b, `c`", DdlEffect::DropTable, "DROP TABLE", "a.b shop.c"),
            ("TRUNCATE orders", DdlEffect::Truncate, "TRUNCATE TABLE", "shop.orders"),
            ("/* app */ TRUNCATE TABLE x.orders", DdlEffect::Truncate, "TRUNCATE TABLE", "x.orders"),
            (
                "ALTER TABLE a DROP COLUMN b, ADD c INT",
                DdlEffect::LosesPart,
                "ALTER TABLE … DROP COLUMN",
                "shop.a",
            ),
            ("ALTER TABLE a DROP b", DdlEffect::LosesPart, "ALTER TABLE … DROP COLUMN", "shop.a"),
            (
                "ALTER TABLE a TRUNCATE PARTITION p",
                DdlEffect::LosesPart,
                "ALTER TABLE … TRUNCATE PARTITION",
                "shop.a",
            ),
            ("ALTER TABLE a ADD KEY (b), DROP PRIMARY KEY", DdlEffect::Redefines, "ALTER TABLE", "shop.a"),
            ("ALTER TABLE a ALTER COLUMN b DROP DEFAULT", DdlEffect::Redefines, "ALTER TABLE", "shop.a"),
            ("RENAME TABLE a TO b", DdlEffect::Redefines, "RENAME TABLE", "shop.a"),
            ("DROP INDEX i ON t", DdlEffect::Redefines, "DROP INDEX", "shop.t"),
            ("DROP VIEW v", DdlEffect::Redefines, "DROP VIEW", "shop.v"),
            ("DROP USER visitor@localhost", DdlEffect::Redefines, "DROP USER", ""),
            ("DELETE FROM orders", DdlEffect::ChangesAllRows, "DELETE", "shop.orders"),
            ("UPDATE orders SET a = 1", DdlEffect::ChangesAllRows, "UPDATE", "shop.orders"),
            (
                "SET STATEMENT max_statement_time=1 FOR DROP TABLE t",
                DdlEffect::DropTable,
                "DROP TABLE",
                "shop.t",
            ),
            ("DROP /*!50000 TABLE */ t", DdlEffect::DropTable, "DROP TABLE", "shop.t"),
        ] {
            let expected = (effect, verb.to_owned(), tables.to_owned());
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn ordinary_statements_are_none() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE t (a INT)",
            "DELETE FROM t WHERE a = 1",
            "UPDATE t SET a = 1 LIMIT 1",
            "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`",
            "DROP TEMPORARY TABLE t",
            "DROP",
            "",
            "/* nothing */",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
