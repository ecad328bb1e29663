//! One DDL statement: the tables that it makes, changes, renames and drops. Statements about other things (views, indexes
//! of no unique key, routines, accounts) leave tables as they are.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::alter::AlterAction;
use crate::column_default::ColumnDefault;
use crate::foreign_key::ForeignKey;
use crate::key::KeyDefinition;
use crate::table::DefinedTable;
use crate::tokens::{TokenReader, is_word};

/// A table as a statement names it: its database, where it is named, and its name.
pub(crate) type NamedTable = (Option<String>, String);

/// A DDL statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DdlStatement {
    /// CREATE TABLE.
    Create {
        table: NamedTable,
        /// `None`: its columns are a query's, or can't be read.
        definition: Option<DefinedTable>,
        /// IF NOT EXISTS.
        is_conditional: bool,
        /// OR REPLACE.
        replaces: bool,
    },
    /// CREATE TABLE … LIKE.
    CreateLike { table: NamedTable, of: NamedTable, is_conditional: bool, replaces: bool },
    /// CREATE TEMPORARY TABLE: statements after it may mean this one.
    CreateTemporary { table: NamedTable },
    /// ALTER TABLE, CREATE INDEX and DROP INDEX; `None`: what it does isn't known.
    Alter { table: NamedTable, actions: Option<Vec<AlterAction>> },
    /// RENAME TABLE, from each name to the next.
    Rename(Vec<(NamedTable, NamedTable)>),
    /// DROP TABLE.
    Drop(Vec<NamedTable>),
    /// TRUNCATE TABLE.
    Truncate(NamedTable),
    /// DROP DATABASE.
    DropDatabase(String),
    /// USE, in a file.
    Use(String),
    /// No table is another one after it.
    Irrelevant,
    /// It may do anything to the tables that it mentions.
    Unreadable,
}

impl DdlStatement {
    /// Reads the statement that begins here, up to its end.
    pub(crate) fn read(reader: &mut TokenReader) -> Self {
        let begin = reader.next;
        let statement = statement(reader).unwrap_or(DdlStatement::Unreadable);
        reader.next = begin.max(reader.next);
        reader.skip_statement();
        statement
    }

    /// Forgets defaults whose bytes the client's character set decides over, which isn't known.
    pub(crate) fn forget_defaults(&mut self) {
        let is_doubtful = |default: &ColumnDefault| !default.is_plain();
        match self {
            DdlStatement::Create { definition: Some(table), .. } => table.forget_defaults(is_doubtful),
            DdlStatement::Alter { actions: Some(actions), .. } => {
                actions.iter_mut().for_each(|action| action.forget_default(is_doubtful));
            }
            DdlStatement::Create { definition: None, .. }
            | DdlStatement::CreateLike { .. }
            | DdlStatement::CreateTemporary { .. }
            | DdlStatement::Alter { actions: None, .. }
            | DdlStatement::Rename(_)
            | DdlStatement::Drop(_)
            | DdlStatement::Truncate(_)
            | DdlStatement::DropDatabase(_)
            | DdlStatement::Use(_)
            | DdlStatement::Irrelevant
            | DdlStatement::Unreadable => {}
        }
    }
}

/// `None`: it can't be read.
fn statement(reader: &mut TokenReader) -> Option<DdlStatement> {
    if reader.takes(Keyword::USE) {
        return reader.name().map(DdlStatement::Use);
    }
    if reader.takes(Keyword::SET) {
        // MariaDB's SET STATEMENT variable = value FOR statement.
        if !reader.takes_word("STATEMENT") {
            return Some(DdlStatement::Irrelevant);
        }
        while !reader.takes(Keyword::FOR) {
            reader.peek()?;
            reader.next += 1;
        }
        return statement(reader);
    }
    if reader.takes(Keyword::CREATE) {
        return create(reader);
    }
    if reader.takes(Keyword::ALTER) {
        let mut ignores = false;
        while reader.takes_word("ONLINE") || reader.takes_word("OFFLINE") || {
            let is_next = reader.takes_word("IGNORE");
            ignores |= is_next;
            is_next
        } {}
        return match reader.takes(Keyword::TABLE) {
            true => alter(reader, ignores),
            false => Some(DdlStatement::Irrelevant),
        };
    }
    if reader.takes(Keyword::RENAME) {
        return match reader.takes(Keyword::TABLE) || reader.takes_word("TABLES") {
            true => rename(reader),
            false => Some(DdlStatement::Irrelevant),
        };
    }
    if reader.takes(Keyword::DROP) {
        return drop(reader);
    }
    if reader.takes(Keyword::TRUNCATE) {
        reader.takes(Keyword::TABLE);
        return reader.table_name().map(DdlStatement::Truncate);
    }
    // Other statements aren't DDL.
    Some(DdlStatement::Irrelevant)
}

fn create(reader: &mut TokenReader) -> Option<DdlStatement> {
    let replaces = reader.takes(Keyword::OR) && reader.takes(Keyword::REPLACE);
    let is_temporary = reader.takes(Keyword::TEMPORARY);
    if !reader.takes(Keyword::TABLE) {
        return create_index(reader);
    }
    let is_conditional = reader.takes(Keyword::IF);
    if is_conditional {
        reader.takes(Keyword::NOT);
        reader.takes(Keyword::EXISTS);
    }
    let table = reader.table_name()?;
    if is_temporary {
        return Some(DdlStatement::CreateTemporary { table });
    }
    let is_like = |token: Option<&Token>| token.is_some_and(|token| is_word(token, "LIKE"));
    if reader.peek() == Some(&Token::LParen) && is_like(reader.peek_after()) {
        reader.next += 1;
    }
    if reader.takes(Keyword::LIKE) {
        let of = reader.table_name()?;
        return Some(DdlStatement::CreateLike { table, of, is_conditional, replaces });
    }
    let definition = DefinedTable::of_create(reader, &table.1);
    Some(DdlStatement::Create { table, definition, is_conditional, replaces })
}

/// CREATE UNIQUE INDEX is ALTER TABLE … ADD UNIQUE INDEX.
fn create_index(reader: &mut TokenReader) -> Option<DdlStatement> {
    if !reader.takes(Keyword::UNIQUE) {
        return Some(DdlStatement::Irrelevant);
    }
    reader.takes(Keyword::INDEX);
    if reader.takes(Keyword::IF) {
        reader.takes(Keyword::NOT);
        reader.takes(Keyword::EXISTS);
    }
    let name = reader.name()?;
    while !reader.takes(Keyword::ON) {
        reader.peek().filter(|token| **token != Token::SemiColon)?;
        reader.next += 1;
    }
    let table = reader.table_name()?;
    let mut item = vec![Token::make_word("UNIQUE", None), Token::make_word(&name, Some('`'))];
    item.extend(reader.item());
    let key = KeyDefinition::of(&item)?;
    Some(DdlStatement::Alter { table, actions: Some(vec![AlterAction::AddKey(key, None::<ForeignKey>)]) })
}

fn alter(reader: &mut TokenReader, ignores: bool) -> Option<DdlStatement> {
    if reader.takes(Keyword::IF) {
        reader.takes(Keyword::EXISTS);
    }
    let table = reader.table_name()?;
    // MariaDB's WAIT n and NOWAIT.
    if reader.takes_word("WAIT") {
        reader.next += 1;
    }
    reader.takes_word("NOWAIT");
    let mut actions = Some(Vec::from_iter(ignores.then_some(AlterAction::MayLoseRows)));
    while !reader.is_at_end() {
        let begin = reader.next;
        let more = AlterAction::of(&reader.item());
        actions = actions.zip(more).map(|(mut actions, more)| {
            actions.extend(more);
            actions
        });
        reader.next += usize::from(matches!(reader.peek(), Some(Token::Comma | Token::RParen)));
        if reader.next == begin {
            return None;
        }
    }
    Some(DdlStatement::Alter { table, actions })
}

fn rename(reader: &mut TokenReader) -> Option<DdlStatement> {
    let mut renames = Vec::new();
    if reader.takes(Keyword::IF) {
        reader.takes(Keyword::EXISTS);
    }
    loop {
        let from = reader.table_name()?;
        if !reader.takes(Keyword::TO) {
            return None;
        }
        renames.push((from, reader.table_name()?));
        match reader.peek() {
            Some(Token::Comma) => reader.next += 1,
            None | Some(Token::SemiColon) => return Some(DdlStatement::Rename(renames)),
            Some(_) => return None,
        }
    }
}

fn drop(reader: &mut TokenReader) -> Option<DdlStatement> {
    if reader.takes(Keyword::TEMPORARY) {
        return Some(DdlStatement::Irrelevant);
    }
    if reader.takes(Keyword::DATABASE) || reader.takes(Keyword::SCHEMA) {
        if reader.takes(Keyword::IF) {
            reader.takes(Keyword::EXISTS);
        }
        return reader.name().map(DdlStatement::DropDatabase);
    }
    if reader.takes(Keyword::INDEX) {
        if reader.takes(Keyword::IF) {
            reader.takes(Keyword::EXISTS);
        }
        let name = reader.name()?;
        let action = match name.eq_ignore_ascii_case("PRIMARY") {
            true => AlterAction::DropPrimaryKey,
            false => AlterAction::DropKey(name),
        };
        if !reader.takes(Keyword::ON) {
            return None;
        }
        return Some(DdlStatement::Alter { table: reader.table_name()?, actions: Some(vec![action]) });
    }
    if !reader.takes(Keyword::TABLE) && !reader.takes_word("TABLES") {
        return Some(DdlStatement::Irrelevant);
    }
    if reader.takes(Keyword::IF) {
        reader.takes(Keyword::EXISTS);
    }
    let mut tables = vec![reader.table_name()?];
    while reader.peek() == Some(&Token::Comma) {
        reader.next += 1;
        tables.push(reader.table_name()?);
    }
    Some(DdlStatement::Drop(tables))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DdlStatement {
        DdlStatement::read(&mut TokenReader::of(text).unwrap())
    }

    #[test]
    fn statements_that_leave_tables_are_told_from_those_that_can_not_be_read() {
        for text in [
            "CREATE VIEW v AS SELECT * FROM orders",
            "CREATE INDEX i ON orders (a)",
            "CREATE DEFINER=`root`@`%` TRIGGER t BEFORE INSERT ON orders FOR EACH ROW SET NEW.a = 1",
            "ALTER VIEW v AS SELECT 1",
            "DROP VIEW v",
            "DROP TEMPORARY TABLE IF EXISTS orders",
            "GRANT SELECT ON orders TO u",
            "RENAME USER a TO b",
            "/* a */ INSERT INTO orders VALUES (1)",
            "SET STATEMENT lock_wait_timeout = 5 FOR INSERT INTO orders VALUES (1)",
            "SET @a = 1",
        ] {
            assert_eq!(read(text), DdlStatement::Irrelevant, "{text}");
        }
        let prefixed = "SET STATEMENT lock_wait_timeout = 5, sql_mode = '' FOR TRUNCATE orders";
        assert_eq!(read(prefixed), DdlStatement::Truncate((None, "orders".into())));
        for text in ["RENAME TABLE a AS b", "DROP TABLE 'a'", "ALTER TABLE (a)", "CREATE TABLE \"a\" (b INT)"]
        {
            assert_eq!(read(text), DdlStatement::Unreadable, "{text}");
        }
        for text in [
            "ALTER TABLE t ADD SYSTEM VERSIONING",
            "ALTER TABLE t ADD a UNHEARDOF",
            "ALTER TABLE t ADD a INT AFTER b PARTITION BY HASH (a)",
            "ALTER TABLE t CONVERT TO CHARACTER SET binary",
            "ALTER TABLE t FROBNICATE",
        ] {
            let expected = DdlStatement::Alter { table: (None, "t".into()), actions: None };
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn names_in_double_quotes_are_read_where_the_mode_says_so() {
        let reader = TokenReader::of("DROP TABLE \"a\".\"b c\", d").unwrap();
        let drop = DdlStatement::read(&mut reader.quoting_names());
        assert_eq!(drop, DdlStatement::Drop(vec![(Some("a".into()), "b c".into()), (None, "d".into())]));
    }
}
