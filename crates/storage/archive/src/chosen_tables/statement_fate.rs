//! What becomes of a statement in a log with some tables only, as a replica's filters by table decide.
//!
//! | statement | fate |
//! |---|---|
//! | transaction control | stays |
//! | about tables, indexes | stays if all of them are chosen, is left out if none is; DROP TABLE is shortened; others stay, in doubt |
//! | a foreign key to another table | stays, in doubt: its server changes rows by it that no log has |
//! | about a database | stays if a table of it may be chosen |
//! | views, triggers, routines, accounts, settings | left out |
//! | what may change rows, or can't be read | stays, in doubt |
//!
//! A name that a statement spells in other letters, upper or lower case, than a pattern may be that of a chosen table: servers with
//! `lower_case_table_names=1` store names in small letters, and log statements as they were typed.

use std::borrow::Cow;

use binlogz_binlog::StatementKind;
use binlogz_binlog::charset::Charset;
use binlogz_binlog::event::{LeftOutStatement, LeftOutTable, QueryEvent, StatusVariable};
use binlogz_schema::{RecordedStatement, StatementSubject, TableReference};

use super::TableChoice;
use super::doubts::DoubtfulStatement;

/// What becomes of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StatementFate {
    Stay,
    StayInDoubt(DoubtfulStatement),
    /// A mark says what it was about.
    LeaveOut(StatementMark),
    /// It is this text that stays.
    Shorten(String),
}

/// The mark that replaces a statement that was left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StatementMark {
    /// Nothing: it changed no rows and no table.
    None,
    /// Tables, by database and name; none, if they aren't known.
    Tables(Vec<[String; 2]>),
}

impl StatementMark {
    /// The front of a filler's body.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let StatementMark::Tables(tables) = self else { return None };
        let tables = tables
            .iter()
            .map(|[database, table]| LeftOutTable { database: database.as_bytes(), table: table.as_bytes() });
        Some(LeftOutStatement { tables: tables.collect() }.encode())
    }
}

/// Decides about statements.
#[derive(Debug)]
pub(super) struct StatementJudge<'c> {
    pub(super) choice: &'c TableChoice,
    /// The patterns in small letters.
    pub(super) lowered: TableChoice,
}

impl StatementJudge<'_> {
    pub(super) fn fate(&self, query: &QueryEvent<'_>) -> StatementFate {
        if StatementKind::of(query.statement) != StatementKind::Other {
            return StatementFate::Stay;
        }
        let (Some(text), Ok(database)) = (decoded(query), std::str::from_utf8(query.database)) else {
            return StatementFate::StayInDoubt(DoubtfulStatement::Rows);
        };
        let statement = RecordedStatement::of_query(Default::default(), query, (database, &text));
        match StatementSubject::of(&statement) {
            StatementSubject::Rows => StatementFate::StayInDoubt(DoubtfulStatement::Rows),
            StatementSubject::NoTable => StatementFate::LeaveOut(StatementMark::None),
            StatementSubject::Database(name) => self.of_database(name.as_deref().unwrap_or(database), &text),
            StatementSubject::Tables { tables, parents } => self.of_tables((&tables, &parents), database),
            StatementSubject::Drop { tables, front } => self.of_drop(&tables, &front, database),
        }
    }

    fn of_database(&self, name: &str, text: &str) -> StatementFate {
        if self.has_some_of(name.as_bytes()) {
            return StatementFate::Stay;
        }
        let drops = text.trim_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case("DROP"));
        // All tables of it are gone, which have no names here.
        StatementFate::LeaveOut(if drops { StatementMark::Tables(Vec::new()) } else { StatementMark::None })
    }

    /// Whether a table of a database may be chosen. If none may, the database is not made either.
    pub(super) fn has_some_of(&self, database: &[u8]) -> bool {
        let lowered = String::from_utf8_lossy(database).to_lowercase();
        self.choice.has_some_of(database) || self.lowered.has_some_of(lowered.as_bytes())
    }

    fn of_tables(
        &self,
        (tables, parents): (&[TableReference], &[TableReference]),
        database: &str,
    ) -> StatementFate {
        let chosen = tables.iter().filter(|table| self.may_have(table, database)).count();
        match chosen {
            0 => left_out(tables, database),
            count if count < tables.len() => StatementFate::StayInDoubt(DoubtfulStatement::BothKinds),
            _ if parents.iter().all(|parent| self.may_have(parent, database)) => StatementFate::Stay,
            _ => StatementFate::StayInDoubt(DoubtfulStatement::Parents),
        }
    }

    fn of_drop(&self, tables: &[TableReference], front: &str, database: &str) -> StatementFate {
        let chosen: Vec<_> = tables.iter().filter(|table| self.may_have(table, database)).collect();
        if chosen.is_empty() {
            return left_out(tables, database);
        }
        if chosen.len() == tables.len() {
            return StatementFate::Stay;
        }
        let names: Vec<_> = chosen.into_iter().map(TableReference::quoted).collect();
        let shortened = format!("{front}{}", names.join(","));
        // Other letters are written in the client's character set.
        match shortened.is_ascii() {
            true => StatementFate::Shorten(shortened),
            false => StatementFate::StayInDoubt(DoubtfulStatement::BothKinds),
        }
    }

    /// Whether a table that a statement names may be chosen.
    fn may_have(&self, table: &TableReference, database: &str) -> bool {
        let database = table.database.as_deref().unwrap_or(database);
        self.choice.has(database.as_bytes(), table.name.as_bytes())
            || self.lowered.has(database.to_lowercase().as_bytes(), table.name.to_lowercase().as_bytes())
    }
}

/// A statement about these tables alone is left out.
fn left_out(tables: &[TableReference], database: &str) -> StatementFate {
    let names = |table: &TableReference| {
        [table.database.clone().unwrap_or_else(|| database.to_owned()), table.name.clone()]
    };
    StatementFate::LeaveOut(StatementMark::Tables(tables.iter().map(names).collect()))
}

/// The text of a statement, by its client's character set; `None`: it is not known.
fn decoded<'a>(query: &QueryEvent<'a>) -> Option<Cow<'a, str>> {
    let client = query.status_variables.iter().find_map(|variable| match variable {
        Ok(StatusVariable::Charset { client, .. }) => Some(Charset::of_collation(u64::from(client))),
        _ => None,
    });
    match client {
        Some(Some(charset)) if charset != Charset::Binary => charset.decode(query.statement),
        _ => std::str::from_utf8(query.statement).ok().map(Cow::Borrowed),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::event::StatusVariables;

    use super::*;

    fn fate(only: &[&str], ignored: &[&str], statement: &[u8]) -> StatementFate {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let choice = TableChoice::new(&owned(only), &owned(ignored)).unwrap();
        let query = QueryEvent {
            thread_id: 0,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables(b""),
            database: b"shop",
            statement,
        };
        StatementJudge { choice: &choice, lowered: choice.in_small_letters() }.fate(&query)
    }

    #[test]
    fn statements_follow_the_tables_that_they_name() {
        const ROWS: StatementFate = StatementFate::StayInDoubt(DoubtfulStatement::Rows);
        const BOTH: StatementFate = StatementFate::StayInDoubt(DoubtfulStatement::BothKinds);
        const PARENTS: StatementFate = StatementFate::StayInDoubt(DoubtfulStatement::Parents);
        use StatementFate::Stay;
        let leave_out = |tables: &[&str]| {
            let names = |table: &&str| {
                let (database, table) = table.split_once('.').unwrap();
                [database, table].map(str::to_owned)
            };
            StatementFate::LeaveOut(StatementMark::Tables(tables.iter().map(names).collect()))
        };
        for (statement, expected) in [
            ("BEGIN", Stay),
            ("ROLLBACK TO `a`", Stay),
            ("XA COMMIT X'61',X'',1", Stay),
            ("CREATE TABLE orders (id INT)", Stay),
            ("CREATE TABLE other.orders (id INT)", leave_out(&["other.orders"])),
            ("CREATE TABLE log_a (id INT)", leave_out(&["shop.log_a"])),
            ("ALTER TABLE Shop.Orders ADD c INT", Stay),
            ("ALTER TABLE Shop.Log_x ADD c INT", leave_out(&["Shop.Log_x"])),
            ("TRUNCATE log_a", leave_out(&["shop.log_a"])),
            ("RENAME TABLE a TO b, c TO d", Stay),
            ("RENAME TABLE other.a TO b", BOTH),
            ("ALTER TABLE a RENAME TO log_a", BOTH),
            ("CREATE TABLE a LIKE other.b", BOTH),
            ("CREATE TABLE lines (id INT, FOREIGN KEY (id) REFERENCES orders (id))", Stay),
            ("CREATE TABLE lines (id INT, FOREIGN KEY (id) REFERENCES other.a (id))", PARENTS),
            ("ALTER TABLE lines ADD FOREIGN KEY (id) REFERENCES log_b (id)", PARENTS),
            (
                "CREATE TABLE log_c (id INT, FOREIGN KEY (id) REFERENCES orders (id))",
                leave_out(&["shop.log_c"]),
            ),
            ("DROP TABLE a, b", Stay),
            (
                "DROP TABLE IF EXISTS other.a, b, log_c, shop.d",
                StatementFate::Shorten("DROP TABLE IF EXISTS `b`,`shop`.`d`".into()),
            ),
            ("DROP TABLE other.a, log_b", leave_out(&["other.a", "shop.log_b"])),
            ("DROP TABLE other.a, `é`", BOTH),
            ("CREATE DATABASE shop", Stay),
            ("CREATE DATABASE SHOP", Stay),
            ("DROP DATABASE other", leave_out(&[])),
            ("CREATE DATABASE other", StatementFate::LeaveOut(StatementMark::None)),
            (
                "CREATE TRIGGER a BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.a = 'secret'",
                StatementFate::LeaveOut(StatementMark::None),
            ),
            ("GRANT ALL ON shop.* TO a", StatementFate::LeaveOut(StatementMark::None)),
            ("INSERT INTO other.a VALUES ('secret')", ROWS),
        ] {
            assert_eq!(fate(&["shop.*"], &["shop.log_*"], statement.as_bytes()), expected, "{statement}");
        }
        assert_eq!(fate(&["shop.*"], &[], b"DROP TABLE other.\xe9"), ROWS);
        assert_eq!(fate(&[], &["other.*"], b"DROP DATABASE other"), leave_out(&[]));
        assert_eq!(fate(&[], &["other.a*"], b"DROP DATABASE other"), Stay);
    }
}
