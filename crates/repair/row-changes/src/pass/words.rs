//! Finds the tables that a statement in the log may be about, from its words alone: the statement is not parsed.

use std::collections::HashSet;

use binlogz_schema::statement_tokens;
use sqlparser::tokenizer::Token;

/// How far into a statement the kind of what it defines stands: CREATE OR REPLACE ALGORITHM = UNDEFINED DEFINER = `u`@`h` SQL
/// SECURITY DEFINER VIEW.
const DEFINER_WORDS_MAX: usize = 14;

/// The words of a statement, in small letters.
pub(crate) struct StatementWords {
    words: Vec<Word>,
    /// It can't be split into words: it may mean anything.
    is_unknown: bool,
}

struct Word {
    text: String,
    /// The word before it and a dot.
    qualifier: Option<String>,
}

impl StatementWords {
    pub(crate) fn of(text: &str) -> Self {
        let Ok(tokens) = statement_tokens(text) else {
            let word = |word: &str| Word { text: word.to_lowercase(), qualifier: None };
            return StatementWords { words: text.split_whitespace().map(word).collect(), is_unknown: true };
        };
        let mut words: Vec<Word> = Vec::new();
        let mut follows_dot = false;
        for token in tokens {
            match token {
                Token::Period => follows_dot = true,
                // With the SQL mode ANSI_QUOTES a name stands in double quotes.
                Token::Word(sqlparser::tokenizer::Word { value, .. }) | Token::DoubleQuotedString(value) => {
                    let qualifier = words.last().filter(|_| follows_dot).map(|last| last.text.clone());
                    words.push(Word { text: value.to_lowercase(), qualifier });
                    follows_dot = false;
                }
                _ => follows_dot = false,
            }
        }
        // MariaDB's SET STATEMENT variable = value FOR statement.
        let is_prefixed = |words: &[Word]| {
            let mut first = words.iter().map(|word| word.text.as_str());
            first.next() == Some("set") && first.next() == Some("statement")
        };
        while is_prefixed(&words) {
            let Some(place) = words.iter().position(|word| word.text == "for") else {
                return StatementWords { words, is_unknown: true };
            };
            words.drain(..=place);
        }
        StatementWords { words, is_unknown: false }
    }

    fn at(&self, place: usize) -> &str {
        self.words.get(place).map_or("", |word| &word.text)
    }

    /// Whether this is its first word.
    pub(crate) fn is(&self, verb: &str) -> bool {
        self.at(0) == verb
    }

    pub(crate) fn is_ddl(&self) -> bool {
        ["create", "alter", "drop", "rename", "truncate"].contains(&self.at(0))
    }

    /// Accounts, statistics, settings: nothing that a row depends on.
    pub(crate) fn leaves_rows_alone(&self) -> bool {
        let of_accounts = self.at(0) != "truncate" && ["user", "role", "server"].contains(&self.at(1));
        // MariaDB's ANALYZE UPDATE … runs the statement.
        let of_statistics =
            self.is("analyze") && ["table", "tables", "local", "no_write_to_binlog"].contains(&self.at(1));
        let others =
            ["grant", "revoke", "flush", "optimize", "check", "repair", "set", "install", "uninstall"];
        !self.is_unknown && (others.contains(&self.at(0)) || of_statistics || self.is_ddl() && of_accounts)
    }

    /// Whether one of its words is one of these names.
    pub(crate) fn names_any(&self, names: &HashSet<String>) -> bool {
        self.is_unknown && !names.is_empty() || self.words.iter().any(|word| names.contains(&word.text))
    }

    /// Whether it only defines statements that run later: a routine, a trigger, an event, a view.
    pub(crate) fn defines_program(&self) -> bool {
        let kinds = ["function", "procedure", "trigger", "event", "view"];
        self.is_ddl()
            && self.words.iter().take(DEFINER_WORDS_MAX).any(|word| kinds.contains(&word.text.as_str()))
    }

    /// Whether it is DDL in which a stored function may change tables: CREATE TEMPORARY TABLE … SELECT, TABLE or VALUES. Other tables
    /// can't be filled by functions that change tables (error 1746).
    pub(crate) fn fills_table(&self) -> bool {
        if self.is_unknown {
            return !self.defines_program();
        }
        let count = |word: &str| self.words.iter().filter(|own| own.text == word).count();
        // Partitions have VALUES LESS THAN and VALUES IN.
        let has_query = count("select") + count("row") > 0
            || count("table") > 1
            || count("values") > 0 && count("partition") == 0;
        let temporary = (1..4).find(|place| self.at(*place) == "temporary");
        self.is("create") && temporary.is_some_and(|place| self.at(place + 1) == "table") && has_query
    }

    /// Whether it may take a foreign key away from the table that it changes or drops.
    pub(crate) fn drops_foreign_key(&self) -> bool {
        let has = |word: &str| self.words.iter().any(|own| own.text == word);
        // MySQL's DROP CONSTRAINT takes any kind.
        self.is_unknown
            || self.is("drop")
            || self.is("alter") && has("drop") && (has("foreign") || has("constraint"))
    }

    /// Whether it may add or remove a way from one table to another: DDL about a view, a trigger, a stored function or a foreign
    /// key, or a statement after which another table, or none, has a table's name.
    pub(crate) fn leads_elsewhere(&self) -> bool {
        let has = |word: &str| self.words.iter().any(|own| own.text == word);
        let is_temporary = self.at(1) == "temporary";
        self.is_ddl()
            && !is_temporary
            && (["drop", "rename"].contains(&self.at(0)) && self.at(1) != "index"
                || [
                    "view",
                    "trigger",
                    "function",
                    "foreign",
                    "references",
                    "constraint",
                    "rename",
                    "exchange",
                    "replace",
                ]
                .iter()
                .any(|word| has(word)))
    }

    /// Whether it may be about a table.
    pub(crate) fn mention(&self, database: &str, table: &str) -> bool {
        let has = |name: &str| self.words.iter().any(|word| word.text == name);
        self.is_unknown
            || has(&table.to_lowercase())
            || self.is_of_database() && has(&database.to_lowercase())
    }

    /// Whether after it the table may have other columns, or another table its name; run in the database `current`. A statement
    /// that only mentions the table doesn't count, as LIKE, REFERENCES, CREATE VIEW, TRIGGER or INDEX.
    pub(crate) fn redefines(&self, current: &str, database: &str, table: &str) -> bool {
        // There it is, or another statement dropped it.
        let is_conditional = self.at(0) == "create" && self.words.iter().any(|word| word.text == "exists");
        self.is_ddl()
            && !(is_conditional && self.at(1) == "table")
            && self.may_change(current, database, table)
    }

    /// Whether it may have changed the rows or the columns of a table, run in the database `current`.
    pub(crate) fn may_change(&self, current: &str, database: &str, table: &str) -> bool {
        let [current, database, table] = [current, database, table].map(str::to_lowercase);
        if self.is_unknown {
            return self.words.iter().any(|word| word.text.contains(&table));
        }
        if self.leaves_rows_alone() {
            return false;
        }
        if self.is_of_database() {
            return self.at(0) == "drop" && self.words.iter().any(|word| word.text == database);
        }
        let names =
            |word: &Word| word.text == table && word.qualifier.as_ref().unwrap_or(&current) == &database;
        // CREATE OR REPLACE TABLE, ALTER IGNORE TABLE.
        let object = (1..4).find(|place| self.at(*place) == "table");
        match (self.at(0), object) {
            (_, Some(2)) if self.at(1) == "temporary" => false,
            // It only reads the other tables that it mentions: LIKE, SELECT, REFERENCES.
            ("create" | "alter", Some(object)) => {
                let not_names = ["if", "not", "exists", &database];
                let target = self.words.iter().skip(object + 1);
                target.take_while(|word| not_names.contains(&word.text.as_str()) || names(word)).any(names)
                    || self.at(0) == "alter" && self.others(object).iter().any(|word| names(word))
            }
            // Views, indexes, triggers, routines.
            ("create" | "alter" | "drop", None) => false,
            _ => self.words.iter().any(names),
        }
    }

    /// The names that ALTER TABLE gives its table, and those of the tables with which it exchanges a partition.
    fn others(&self, object: usize) -> Vec<&Word> {
        let after = |place: usize, fillers: &[&str]| {
            let mut words = self.words.iter().skip(place).skip_while(|word| fillers.contains(&&*word.text));
            let first = words.next();
            // A name with its database.
            match words.next() {
                Some(next) if next.qualifier.is_some() => Some(next),
                _ => first,
            }
        };
        let verbs = self.words.iter().enumerate().skip(object + 1);
        verbs
            .filter_map(|(place, word)| match word.text.as_str() {
                "rename" if !["column", "index", "key"].contains(&self.at(place + 1)) => {
                    after(place + 1, &["to", "as"])
                }
                "exchange" => {
                    let with = (place..place + 4).find(|place| self.at(*place) == "with")?;
                    after(with + 1, &["table"])
                }
                _ => None,
            })
            .collect()
    }

    /// Whether it may be about any table of a database, run in the database `current`.
    pub(crate) fn may_be_in(&self, current: &str, database: &str) -> bool {
        let name = database.to_lowercase();
        self.is_unknown || current.to_lowercase() == name || self.words.iter().any(|word| word.text == name)
    }

    fn is_of_database(&self) -> bool {
        ["create", "alter", "drop"].contains(&self.at(0)) && ["database", "schema"].contains(&self.at(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_a_name_another_meaning_is_told_from_what_mentions_it() {
        for (text, redefines) in [
            ("ALTER TABLE orders MODIFY owed INT AFTER id", true),
            ("ALTER TABLE shop.orders DROP COLUMN x", true),
            ("ALTER TABLE orders_new RENAME TO orders", true),
            ("ALTER TABLE orders_new RENAME orders", true),
            ("ALTER TABLE orders_new ADD x INT, RENAME AS `shop`.`orders`", true),
            ("ALTER TABLE elsewhere.new RENAME TO shop.orders", true),
            ("ALTER TABLE new RENAME TO elsewhere.orders", false),
            ("ALTER TABLE new RENAME COLUMN a TO orders", false),
            ("ALTER TABLE new RENAME INDEX a TO orders", false),
            ("ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE orders", true),
            ("ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE shop.orders WITHOUT VALIDATION", true),
            ("ALTER TABLE orders EXCHANGE PARTITION p0 WITH TABLE other", true),
            ("ALTER TABLE parts EXCHANGE PARTITION orders WITH TABLE other", false),
            ("RENAME TABLE orders TO _orders_old, _orders_new TO orders", true),
            ("RENAME TABLE shop._orders_gho TO shop.orders", true),
            ("CREATE OR REPLACE TABLE orders (id INT)", true),
            ("CREATE TABLE orders (id INT)", true),
            ("CREATE TABLE IF NOT EXISTS orders (id INT)", false),
            ("DROP TABLE IF EXISTS orders", true),
            ("DROP TABLE elsewhere.orders, orders", true),
            ("TRUNCATE orders", true),
            ("ALTER TABLE \"shop\".\"orders\" DROP COLUMN x", true),
            ("DROP SCHEMA shop", true),
            ("CREATE TABLE copy LIKE orders", false),
            ("CREATE TABLE copy AS SELECT * FROM orders", false),
            ("CREATE VIEW v AS SELECT * FROM orders", false),
            ("CREATE DEFINER=`root`@`%` TRIGGER t BEFORE INSERT ON orders FOR EACH ROW SET NEW.a = 1", false),
            ("CREATE INDEX i ON orders (a)", false),
            ("DROP INDEX i ON orders", false),
            ("ALTER TABLE other ADD FOREIGN KEY (a) REFERENCES orders (id)", false),
            ("CREATE TEMPORARY TABLE orders (id INT)", false),
            ("UPDATE orders SET x = 1", false),
        ] {
            assert_eq!(StatementWords::of(text).redefines("shop", "shop", "orders"), redefines, "{text}");
        }
    }

    #[test]
    fn ddl_in_which_functions_may_change_tables_is_told_from_other_ddl() {
        for (text, fills) in [
            ("CREATE TEMPORARY TABLE a AS SELECT f(x) FROM b", true),
            ("CREATE TABLE a AS SELECT f(x) FROM b", false),
            ("CREATE TEMPORARY TABLE IF NOT EXISTS a TABLE b", true),
            ("CREATE OR REPLACE TEMPORARY TABLE a (x INT) VALUES ROW(f(1))", true),
            ("CREATE TEMPORARY TABLE event IGNORE SELECT 1", true),
            ("CREATE TEMPORARY TABLE a (id INT)", false),
            (
                "CREATE TABLE a (id INT) PARTITION BY LIST (id) PARTITIONS 2 (PARTITION p VALUES IN (1))",
                false,
            ),
            ("CREATE TABLE a LIKE b", false),
            ("ALTER TABLE a PARTITION BY HASH (id) PARTITIONS 4", false),
            ("CREATE VIEW a AS SELECT f(x) FROM b", false),
            (
                "CREATE DEFINER=`root`@`%` TRIGGER t AFTER INSERT ON a FOR EACH ROW CREATE TABLE b SELECT 1",
                false,
            ),
            ("DROP TABLE a", false),
        ] {
            assert_eq!(StatementWords::of(text).fills_table(), fills, "{text}");
        }
    }

    #[test]
    fn a_table_may_be_called_like_what_has_no_rows() {
        for table in ["user", "role", "server", "database", "schema"] {
            for text in [format!("TRUNCATE {table}"), format!("TRUNCATE `shop`.`{table}`")] {
                let words = StatementWords::of(&text);
                assert!(!words.leaves_rows_alone(), "{text}");
                assert!(words.redefines("shop", "shop", table), "{text}");
            }
        }
    }

    #[test]
    fn statements_are_told_apart_by_their_words() {
        for (text, is_ddl, mentions, alone, changes) in [
            ("ALTER TABLE `shop`.`Orders` ADD x INT", true, true, false, true),
            ("/* a */ truncate orders", true, true, false, true),
            ("CREATE TABLE other LIKE orders", true, true, false, false),
            ("CREATE TABLE IF NOT EXISTS orders LIKE other", true, true, false, true),
            ("CREATE TABLE other (id INT COMMENT 'orders')", true, false, false, false),
            ("ALTER TABLE other ADD FOREIGN KEY (a) REFERENCES orders (id)", true, true, false, false),
            ("DROP TABLE `other` , `shop` . `orders`", true, true, false, true),
            ("ALTER IGNORE TABLE orders ADD UNIQUE KEY (a)", true, true, false, true),
            ("DROP TEMPORARY TABLE IF EXISTS orders", true, true, false, false),
            ("DROP TABLE elsewhere.orders", true, true, false, false),
            ("RENAME TABLE orders TO other", true, true, false, true),
            ("CREATE INDEX i ON orders (a)", true, true, false, false),
            ("DROP DATABASE shop", true, true, false, true),
            ("UPDATE orders SET x = 1", false, true, false, true),
            ("INSERT INTO other SELECT elsewhere.orders.id FROM elsewhere.orders", false, true, false, false),
            ("CREATE USER orders", true, true, true, false),
            ("GRANT SELECT ON shop.orders TO u", false, true, true, false),
            ("DELETE FROM 'orders", false, true, false, true),
            ("SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE orders ADD x INT", true, true, false, true),
            ("SET STATEMENT lock_wait_timeout = 5 FOR UPDATE orders SET x = 1", false, true, false, true),
            ("SET @a = 1", false, false, true, false),
            ("ANALYZE UPDATE orders SET x = 1", false, true, false, true),
            ("ANALYZE TABLE orders", false, true, true, false),
            ("ANALYZE LOCAL TABLE orders", false, true, true, false),
        ] {
            let words = StatementWords::of(text);
            assert_eq!(words.is_ddl(), is_ddl, "{text}");
            assert_eq!(words.mention("shop", "orders"), mentions, "{text}");
            assert_eq!(words.leaves_rows_alone(), alone, "{text}");
            assert_eq!(words.may_change("Shop", "shop", "orders"), changes, "{text}");
        }
    }
}
