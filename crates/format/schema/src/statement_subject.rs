//! What a statement is about, as far as its words tell: for readers that leave out what is about other tables.
//!
//! | statement | subject |
//! |---|---|
//! | CREATE, ALTER, DROP, RENAME and TRUNCATE TABLE, indexes, MariaDB's sequences | the tables that it makes, changes, renames, copies or drops |
//! | CREATE, ALTER and DROP DATABASE | the database |
//! | views, triggers, routines, events, accounts, settings, ANALYZE and its like | none |
//! | anything else, and what can't be read for certain | rows of any tables |
//!
//! Transaction control is for [`binlogz_binlog::StatementKind`] to tell.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::history::RecordedStatement;
use crate::tokens::{TokenReader, is_word};

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReference {
    /// The database, where the statement names it.
    pub database: Option<String>,
    /// The table.
    pub name: String,
}

impl TableReference {
    /// The name as a statement spells it.
    pub fn quoted(&self) -> String {
        match &self.database {
            Some(database) => format!("{}.{}", quoted(database), quoted(&self.name)),
            None => quoted(&self.name),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementSubject {
    /// It makes, changes, renames or empties tables, or copies one of them.
    Tables {
        /// All of these.
        tables: Vec<TableReference>,
        /// The tables that foreign keys refer to which it gives them.
        parents: Vec<TableReference>,
    },
    /// It drops these tables.
    Drop {
        /// The tables.
        tables: Vec<TableReference>,
        /// The words before them: DROP TABLE IF EXISTS.
        front: String,
    },
    /// It makes, changes or drops a database; `None`: the session's own.
    Database(Option<String>),
    /// Neither rows nor columns of any table.
    NoTable,
    /// It may change rows of any tables.
    Rows,
}

impl StatementSubject {
    /// Reads a statement that is no transaction control.
    pub fn of(statement: &RecordedStatement<'_>) -> Self {
        let text = statement.text;
        // A backslash may end a text or a name elsewhere than we think; a name may have been cut; only MariaDB executes what is in /*M!.
        let is_doubtful = text.contains('\u{FFFD}')
            || text.contains("/*M!")
            || text.contains('\\') && (statement.keeps_backslashes || statement.quotes_names);
        let reader = if is_doubtful { None } else { TokenReader::of(text).ok() };
        let Some(reader) = reader else { return StatementSubject::Rows };
        let mut reader = if statement.quotes_names { reader.quoting_names() } else { reader };
        while reader.tokens.last() == Some(&Token::SemiColon) {
            reader.tokens.pop();
        }
        // Two statements in one are none that a server logs.
        if reader.tokens.contains(&Token::SemiColon) {
            return StatementSubject::Rows;
        }
        subject(&mut reader).unwrap_or(StatementSubject::Rows)
    }
}

/// `None`: it can't be read.
fn subject(reader: &mut TokenReader) -> Option<StatementSubject> {
    if reader.takes(Keyword::CREATE) {
        return create(reader);
    }
    if reader.takes(Keyword::ALTER) {
        while ["ONLINE", "OFFLINE", "IGNORE"].iter().any(|word| reader.takes_word(word)) {}
        if reader.takes(Keyword::TABLE) || reader.takes_word("SEQUENCE") {
            takes_words(reader, &["IF", "EXISTS"]);
            return of_table(reader);
        }
        return database_or_other(reader);
    }
    if reader.takes(Keyword::DROP) {
        return drop(reader);
    }
    if reader.takes(Keyword::RENAME) {
        return match reader.takes(Keyword::TABLE) || reader.takes_word("TABLES") {
            true => rename(reader),
            false => Some(StatementSubject::NoTable),
        };
    }
    if reader.takes(Keyword::TRUNCATE) {
        reader.takes(Keyword::TABLE);
        return of_table(reader);
    }
    if reader.takes(Keyword::SET) {
        // MariaDB's SET STATEMENT variable = value FOR statement.
        return (!reader.takes_word("STATEMENT")).then_some(StatementSubject::NoTable);
    }
    const NO_TABLE: [&str; 9] =
        ["GRANT", "REVOKE", "FLUSH", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "INSTALL", "UNINSTALL"];
    NO_TABLE.iter().any(|word| reader.takes_word(word)).then_some(StatementSubject::NoTable)
}

fn create(reader: &mut TokenReader) -> Option<StatementSubject> {
    takes_words(reader, &["OR", "REPLACE"]);
    reader.takes(Keyword::TEMPORARY);
    if reader.takes(Keyword::TABLE) {
        takes_words(reader, &["IF", "NOT", "EXISTS"]);
        return create_table(reader);
    }
    if reader.takes_word("SEQUENCE") {
        takes_words(reader, &["IF", "NOT", "EXISTS"]);
        return of_table(reader);
    }
    const KINDS: [&str; 6] = ["UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE", "OFFLINE"];
    let after = (reader.next..).find(|place| !is_at(reader, *place, &KINDS))?;
    if is_at(reader, after, &["INDEX"]) {
        return of_index(reader);
    }
    database_or_other(reader)
}

/// CREATE TABLE, read up to the table's name.
fn create_table(reader: &mut TokenReader) -> Option<StatementSubject> {
    let child = table(reader)?;
    let parents = parents(reader, &child)?;
    let mut tables = vec![child];
    let rest = reader.tokens.get(reader.next..).unwrap_or_default();
    // Rows are given as a query, a table or values, unless these are of a partition.
    let gives_rows = (reader.next..reader.tokens.len()).any(|place| {
        is_at(reader, place, &["SELECT", "TABLE"])
            || is_at(reader, place, &["VALUES", "VALUE"]) && !is_at(reader, place + 1, &["IN", "LESS"])
    });
    // The account of a FEDERATED table stands there, and the tables of a MERGE table.
    let is_elsewhere = rest.iter().any(|token| is_word(token, "CONNECTION") || is_word(token, "UNION"));
    if gives_rows || is_elsewhere {
        return None;
    }
    if reader.peek() == Some(&Token::LParen) && is_at(reader, reader.next + 1, &["LIKE"]) {
        reader.next += 1;
    }
    if reader.takes(Keyword::LIKE) {
        tables.push(table(reader)?);
    }
    Some(StatementSubject::Tables { tables, parents })
}

/// The tables after the REFERENCES of a statement about a table; without a database they are of that table's. `None`: a name can't be read.
fn parents(reader: &mut TokenReader, child: &TableReference) -> Option<Vec<TableReference>> {
    let start = reader.next;
    let mut parents = Vec::new();
    for place in start..reader.tokens.len() {
        if is_at(reader, place, &["REFERENCES"]) {
            reader.next = place + 1;
            let TableReference { database, name } = table(reader)?;
            parents.push(TableReference { database: database.or_else(|| child.database.clone()), name });
        }
    }
    reader.next = start;
    Some(parents)
}

/// A statement about the table that is named next, and those that take its name or rows.
fn of_table(reader: &mut TokenReader) -> Option<StatementSubject> {
    let child = table(reader)?;
    let parents = parents(reader, &child)?;
    let mut tables = vec![child];
    for place in reader.next..reader.tokens.len() {
        let named_at = if is_at(reader, place, &["RENAME"]) {
            match () {
                () if is_at(reader, place + 1, &["COLUMN", "INDEX", "KEY"]) => continue,
                () if is_at(reader, place + 1, &["TO", "AS"])
                    || reader.tokens.get(place + 1) == Some(&Token::Eq) =>
                {
                    place + 2
                }
                () => place + 1,
            }
        } else if is_at(reader, place, &["WITH"]) && is_at(reader, place + 1, &["TABLE"]) {
            place + 2
        } else if is_at(reader, place, &["CONNECTION", "UNION"]) {
            return None;
        } else if is_at(reader, place, &["CONVERT"]) && is_at(reader, place + 1, &["TABLE", "PARTITION"]) {
            // MariaDB moves a partition's rows from or to another table.
            return None;
        } else {
            continue;
        };
        reader.next = named_at;
        tables.push(table(reader)?);
    }
    Some(StatementSubject::Tables { tables, parents })
}

/// CREATE INDEX and DROP INDEX.
fn of_index(reader: &mut TokenReader) -> Option<StatementSubject> {
    while !reader.takes(Keyword::ON) {
        reader.peek()?;
        reader.next += 1;
    }
    Some(StatementSubject::Tables { tables: vec![table(reader)?], parents: Vec::new() })
}

fn drop(reader: &mut TokenReader) -> Option<StatementSubject> {
    let temporary = if reader.takes(Keyword::TEMPORARY) { "TEMPORARY " } else { "" };
    let kind = match () {
        () if reader.takes(Keyword::TABLE) || reader.takes_word("TABLES") => "TABLE",
        () if reader.takes_word("SEQUENCE") => "SEQUENCE",
        () if reader.peek().is_some_and(|token| is_word(token, "INDEX")) => return of_index(reader),
        () => return database_or_other(reader),
    };
    let conditional = if takes_words(reader, &["IF", "EXISTS"]) { "IF EXISTS " } else { "" };
    let mut tables = vec![table(reader)?];
    while reader.peek() == Some(&Token::Comma) {
        reader.next += 1;
        tables.push(table(reader)?);
    }
    for word in ["WAIT", "NOWAIT", "RESTRICT", "CASCADE"] {
        let takes = reader.takes_word(word);
        reader.next += usize::from(takes && word == "WAIT");
    }
    reader.peek().is_none().then_some(())?;
    Some(StatementSubject::Drop { tables, front: format!("DROP {temporary}{kind} {conditional}") })
}

fn rename(reader: &mut TokenReader) -> Option<StatementSubject> {
    takes_words(reader, &["IF", "EXISTS"]);
    let mut tables = Vec::new();
    loop {
        tables.push(table(reader)?);
        if reader.takes_word("WAIT") {
            reader.next += 1;
        }
        reader.takes_word("NOWAIT");
        if !reader.takes(Keyword::TO) {
            return None;
        }
        tables.push(table(reader)?);
        match reader.peek() {
            Some(Token::Comma) => reader.next += 1,
            None => return Some(StatementSubject::Tables { tables, parents: Vec::new() }),
            Some(_) => return None,
        }
    }
}

/// CREATE, ALTER or DROP of something that is no table, read up to its kind.
fn database_or_other(reader: &mut TokenReader) -> Option<StatementSubject> {
    if !reader.takes(Keyword::DATABASE) && !reader.takes(Keyword::SCHEMA) {
        return reader.peek().map(|_| StatementSubject::NoTable);
    }
    takes_words(reader, &["IF", "NOT", "EXISTS"]);
    takes_words(reader, &["IF", "EXISTS"]);
    const SETTINGS: [&str; 9] =
        ["DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT", "UPGRADE", "CHAR"];
    match reader.peek() {
        None => Some(StatementSubject::Database(None)),
        // A database may have such a name without quotes: then this is one of any name.
        Some(_) if is_at(reader, reader.next, &SETTINGS) => Some(StatementSubject::Database(None)),
        Some(_) => Some(StatementSubject::Database(Some(reader.name()?))),
    }
}

fn table(reader: &mut TokenReader) -> Option<TableReference> {
    let (database, name) = reader.table_name()?;
    Some(TableReference { database, name })
}

/// Whether one of these words stands there, unquoted.
fn is_at(reader: &TokenReader, place: usize, words: &[&str]) -> bool {
    reader.tokens.get(place).is_some_and(|token| words.iter().any(|word| is_word(token, word)))
}

/// Takes these words, or none.
fn takes_words(reader: &mut TokenReader, words: &[&str]) -> bool {
    let are = words.iter().enumerate().all(|(place, word)| {
        reader.tokens.get(reader.next + place).is_some_and(|token| is_word(token, word))
    });
    reader.next += if are { words.len() } else { 0 };
    are
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> StatementSubject {
        with(text, false, false)
    }

    fn with(text: &str, quotes_names: bool, keeps_backslashes: bool) -> StatementSubject {
        StatementSubject::of(&RecordedStatement {
            place: Default::default(),
            database: "d",
            text,
            quotes_names,
            keeps_backslashes,
            has_failed: false,
        })
    }

    fn references(names: &[&str]) -> Vec<TableReference> {
        let reference = |name: &&str| match name.split_once('.') {
            Some((database, name)) => TableReference { database: Some(database.into()), name: name.into() },
            None => TableReference { database: None, name: (*name).into() },
        };
        names.iter().map(reference).collect()
    }

    #[test]
    fn statements_about_tables_name_all_that_they_make_change_or_copy() {
        for (text, names) in [
            ("CREATE TABLE t (id INT)", &["t"][..]),
            ("create table if not exists `shop`.`a b` (id int default 3, `select` int)", &["shop.a b"]),
            ("CREATE /*!40100 TEMPORARY */ TABLE t (id INT) COMMENT 'SELECT; TABLE x'", &["t"]),
            ("CREATE OR REPLACE TABLE s . t (id INT)", &["s.t"]),
            ("CREATE TABLE t (id INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (3))", &["t"]),
            ("CREATE TABLE t (id INT) PARTITION BY LIST (id) (PARTITION p VALUES IN (3))", &["t"]),
            ("CREATE TABLE t (id INT) START TRANSACTION", &["t"]),
            ("CREATE TABLE t LIKE o.u", &["t", "o.u"]),
            ("CREATE TABLE t (LIKE u)", &["t", "u"]),
            ("ALTER TABLE s.t ADD c INT, RENAME COLUMN a TO b, RENAME INDEX c TO d", &["s.t"]),
            ("ALTER IGNORE TABLE IF EXISTS t ADD c INT", &["t"]),
            ("ALTER TABLE s.t RENAME TO o.u", &["s.t", "o.u"]),
            ("ALTER TABLE t ADD c INT, RENAME = u", &["t", "u"]),
            ("ALTER TABLE t RENAME o.u, ALGORITHM=COPY", &["t", "o.u"]),
            ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE o.u WITHOUT VALIDATION", &["t", "o.u"]),
            ("RENAME TABLE a.b TO c.d, e TO f", &["a.b", "c.d", "e", "f"]),
            ("TRUNCATE t", &["t"]),
            ("TRUNCATE TABLE `s``x`.t", &["s`x.t"]),
            ("CREATE UNIQUE INDEX i USING BTREE ON s.t (a)", &["s.t"]),
            ("CREATE INDEX i ON t (a)", &["t"]),
            ("DROP INDEX i ON t", &["t"]),
            ("CREATE SEQUENCE s.q START WITH 3", &["s.q"]),
            ("# a note\nALTER -- one\n TABLE t /* more */ FORCE;", &["t"]),
        ] {
            let expected = StatementSubject::Tables { tables: references(names), parents: Vec::new() };
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn tables_that_foreign_keys_refer_to_are_told() {
        for (text, table, parents) in [
            ("CREATE TABLE t (id INT REFERENCES o.u (id), `REFERENCES` INT)", "t", &["o.u"][..]),
            (
                "CREATE TABLE s.t (id INT COMMENT 'REFERENCES x', FOREIGN KEY (id) REFERENCES u (id))",
                "s.t",
                &["s.u"],
            ),
            ("CREATE TABLE t (a INT REFERENCES u (a), b INT REFERENCES t (b))", "t", &["u", "t"]),
            (
                "ALTER TABLE s.t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES o.u (a) ON DELETE CASCADE",
                "s.t",
                &["o.u"],
            ),
        ] {
            let expected =
                StatementSubject::Tables { tables: references(&[table]), parents: references(parents) };
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(of("CREATE TABLE t (id INT REFERENCES"), StatementSubject::Rows);
    }

    #[test]
    fn tables_that_are_dropped_are_told_with_the_words_before_them() {
        for (text, front, names) in [
            ("DROP TABLE `t` /* generated by server */", "DROP TABLE ", &["t"][..]),
            ("drop table if exists a.b, c CASCADE", "DROP TABLE IF EXISTS ", &["a.b", "c"]),
            ("DROP TEMPORARY TABLE IF EXISTS `s`.`t`", "DROP TEMPORARY TABLE IF EXISTS ", &["s.t"]),
        ] {
            let expected = StatementSubject::Drop { tables: references(names), front: front.into() };
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(references(&["a.b"])[0].quoted(), "`a`.`b`");
        assert_eq!(references(&["b`c"])[0].quoted(), "`b``c`");
    }

    #[test]
    fn databases_and_what_has_no_tables_are_told() {
        for (text, name) in [
            ("CREATE DATABASE shop", Some("shop")),
            ("CREATE SCHEMA IF NOT EXISTS `a b` DEFAULT CHARACTER SET utf8mb4", Some("a b")),
            ("DROP DATABASE IF EXISTS shop", Some("shop")),
            ("ALTER DATABASE COLLATE utf8mb4_bin", None),
            ("ALTER DATABASE shop READ ONLY = 1", Some("shop")),
        ] {
            assert_eq!(of(text), StatementSubject::Database(name.map(str::to_owned)), "{text}");
        }
        for text in [
            "CREATE DEFINER=`a`@`%` TRIGGER t BEFORE INSERT ON u FOR EACH ROW SET NEW.a = 3",
            "CREATE ALGORITHM=MERGE VIEW v AS SELECT 1",
            "DROP VIEW v",
            "DROP TRIGGER shop.t",
            "CREATE USER a IDENTIFIED BY 'x'",
            "CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'",
            "RENAME USER a TO b",
            "GRANT ALL ON shop.* TO a",
            "SET PASSWORD FOR a = 'x'",
            "ANALYZE TABLE t",
        ] {
            assert_eq!(of(text), StatementSubject::NoTable, "{text}");
        }
    }

    #[test]
    fn what_changes_rows_or_is_not_certain_is_about_rows() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET a = 1",
            "CALL p()",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "CREATE TABLE t SELECT * FROM u",
            "CREATE TABLE t (id INT) AS TABLE u",
            "CREATE TABLE t VALUES ROW(1)",
            "CREATE TABLE t (id INT) ENGINE=MERGE UNION=(a,b)",
            "ALTER TABLE t UNION=(a,b)",
            "ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (3)",
            "SET STATEMENT sql_mode='' FOR INSERT INTO t VALUES (1)",
            "DROP TABLE t; DROP TABLE u",
            "DROP TABLE t FROM u",
            "RENAME TABLE t",
            "DROP TABLE 'a",
            "/*M!100100 DROP TABLE t */",
            "DROP TABLE `\u{FFFD}`",
            "",
        ] {
            assert_eq!(of(text), StatementSubject::Rows, "{text}");
        }
        assert_eq!(
            with(r#"DROP TABLE "a"."b""#, true, false),
            StatementSubject::Drop { tables: references(&["a.b"]), front: "DROP TABLE ".into() }
        );
        assert_eq!(with(r#"DROP TABLE "a"."b""#, false, false), StatementSubject::Rows);
        let text = r"ALTER TABLE t COMMENT 'a\', ADD c INT";
        assert_eq!(with(text, false, true), StatementSubject::Rows);
        assert_eq!(with(text, true, false), StatementSubject::Rows);
    }
}
