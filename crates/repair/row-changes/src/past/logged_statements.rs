//! The statements in the logs that make, change, rename or drop tables, and what they say of a table of the moment: what it is called
//! now, and where its columns went.

use std::collections::HashMap;

use binlogz_schema::{HistoryPlace, NoTableWay, SchemaFile, TableHistory, TableWay, TurningPoint, WayColumn};

use super::PastError;
use super::create::ParentThen;
use crate::pass::{FollowedTransaction, StatementAt, shortened};

/// The DDL of the logs, and where the moment is among it.
#[derive(Debug, Default)]
pub struct LoggedStatements {
    history: TableHistory,
    /// The place before the first transaction after the moment; `None`: no such transaction was met.
    moment: Option<HistoryPlace>,
    /// The place of each statement in words, with its GTID.
    places: HashMap<(u64, u64), String>,
}

impl LoggedStatements {
    /// The moment has passed, and this transaction came later.
    pub(super) fn begin_later(&mut self, transaction: &FollowedTransaction) {
        let offset = transaction.offset.saturating_sub(1);
        self.moment.get_or_insert(HistoryPlace { log: transaction.log_number, offset });
    }

    /// Takes a statement, in the order of the logs.
    pub(super) fn take(
        &mut self,
        transaction: &FollowedTransaction,
        statement: &StatementAt<'_>,
        is_ddl: bool,
    ) {
        statement.record(transaction, &mut self.history);
        if is_ddl {
            let place = (transaction.log_number, transaction.offset);
            self.places.entry(place).or_insert_with(|| place_of(transaction, transaction.offset));
        }
    }

    /// Whether both have the same statements that make, change, rename or drop tables of these names.
    pub(super) fn has_statements_on(&self, names: &[(String, String)], other: &LoggedStatements) -> bool {
        self.history.has_statements_on(names, &other.history)
    }

    /// Derives the tables of each place from these, as they are now.
    pub(super) fn settle(&mut self, now: SchemaFile) {
        self.history.settle(now);
    }

    pub(super) fn history(&self) -> &TableHistory {
        &self.history
    }

    fn moment(&self) -> HistoryPlace {
        self.moment.unwrap_or(HistoryPlace::END)
    }

    /// All names that a table had, from the one that it had at the moment; that of now is the last.
    ///
    /// # Errors
    ///
    /// There was no such table, or statements can't be followed.
    pub fn names(&self, table: (&str, &str)) -> Result<Vec<(String, String)>, PastError> {
        let names = self.history.names_since(self.moment(), table.0, table.1);
        names.map_err(|why| self.unknown(table, why))
    }

    /// The names since the moment of a table of now, and whether statements changed it.
    ///
    /// # Errors
    ///
    /// The statement that leaves open what it was, with its place.
    pub(super) fn names_of_now(&self, table: (&str, &str)) -> Result<(Vec<(String, String)>, bool), String> {
        let names = self.history.names_of_now(self.moment(), table.0, table.1);
        names.map_err(|turn| self.placed(turn, &shortened(&turn.statement)))
    }

    /// The way from the moment on of the table that has this name now; `None`: it can't be told, or the table is younger.
    pub(super) fn way_of_now(
        &self,
        now: &(String, String),
        names: &[(String, String)],
    ) -> Option<TableWay<'_>> {
        let then = self.name_then(now, names)?;
        self.history.since(self.moment(), &then.0, &then.1).ok()
    }

    /// Which of its names the table that has this name now had at the moment.
    fn name_then<'n>(
        &self,
        now: &(String, String),
        names: &'n [(String, String)],
    ) -> Option<&'n (String, String)> {
        let ends_there = |name: &&(String, String)| {
            let later = self.history.names_since(self.moment(), &name.0, &name.1);
            later.is_ok_and(|later| later.last().is_some_and(|last| is_same(last, now)))
        };
        names.iter().find(ends_there)
    }

    /// The name that a table of now had at the moment, and those of its columns as far as they are known; `None`: it can't be told, or the
    /// table is younger.
    pub(super) fn parent_then(&self, now: &(String, String)) -> Option<ParentThen> {
        let (names, _) = self.names_of_now((&now.0, &now.1)).ok()?;
        let name = self.name_then(now, &names)?.clone();
        let way = self.way_of_now(now, &names);
        let names_of = |way: &TableWay<'_>, column: &WayColumn<'_>| {
            let now = way.now.columns.get(column.place_now()?)?;
            Some((now.name.clone(), column.then.name.clone()))
        };
        let columns = way
            .iter()
            .flat_map(|way| way.columns.iter().filter_map(|column| names_of(way, column)))
            .collect();
        Some(ParentThen { name, columns })
    }

    /// Whether the statements of a transaction may have taken away a foreign key that carries changes on.
    pub(super) fn loses_carrying_key(&self, transaction: &FollowedTransaction) -> bool {
        let place = HistoryPlace { log: transaction.log_number, offset: transaction.offset };
        self.history.loses_carrying_key(place)
    }

    /// The tables that a database had at the moment, if these are those that it has now.
    ///
    /// # Errors
    ///
    /// Statements that may have touched any table.
    pub fn tables_of(&self, database: &str, now: Vec<String>) -> Result<Vec<String>, PastError> {
        let found = self.history.tables_at(self.moment(), database);
        let (mut tables, gone) = found.map_err(|why| self.unknown((database, "*"), why))?;
        let is_among =
            |name: &String, among: &[String]| among.iter().any(|own| own.eq_ignore_ascii_case(name));
        let others: Vec<_> =
            now.into_iter().filter(|name| !is_among(name, &gone) && !is_among(name, &tables)).collect();
        tables.extend(others);
        tables.sort();
        Ok(tables)
    }

    /// The way of a table from the moment to now.
    ///
    /// # Errors
    ///
    /// As [`LoggedStatements::names`]; columns that can't be told.
    pub(super) fn way(&self, table: (&str, &str)) -> Result<TableWay<'_>, PastError> {
        let way = self.history.since(self.moment(), table.0, table.1);
        way.map_err(|why| self.unknown(table, why))
    }

    fn unknown(&self, (database, name): (&str, &str), why: NoTableWay<'_>) -> PastError {
        let shown = format!("{database}.{name}");
        match why {
            NoTableWay::MadeBy(turn) => PastError::Unmet(self.line(
                turn,
                &format!("this statement made {shown}, which didn't exist at the moment"),
            )),
            NoTableWay::LostBy(turn) => PastError::Refused(
                self.line(turn, &format!("a statement changed the table, which can't be taken back ({shown})")),
            ),
            NoTableWay::UnknownBefore(turn) => PastError::Refused(self.line(
                turn,
                &format!("a statement changed the table, which can't be taken back: what {shown} was before isn't known"),
            )),
            NoTableWay::NotTold => {
                PastError::Absent(format!("{shown} is not on the server, or this account may not see it"))
            }
        }
    }

    /// A statement with its place, and what is to be said of it.
    pub(super) fn line(&self, turn: &TurningPoint, what: &str) -> String {
        self.placed(turn, &format!("{what}: {}", shortened(&turn.statement)))
    }

    fn placed(&self, turn: &TurningPoint, what: &str) -> String {
        let place = self.places.get(&(turn.place.log, turn.place.offset));
        let place =
            place.map_or_else(|| format!("log {} at {}", turn.place.log, turn.place.offset), Clone::clone);
        format!("{place}: {what}")
    }
}

fn is_same(one: &(String, String), other: &(String, String)) -> bool {
    one.0.eq_ignore_ascii_case(&other.0) && one.1.eq_ignore_ascii_case(&other.1)
}

/// The place of something in a transaction, in words.
pub(super) fn place_of(transaction: &FollowedTransaction, offset: u64) -> String {
    let gtid = transaction.gtid.as_deref().unwrap_or("a transaction without GTID");
    format!("{} at {offset}, {gtid}", transaction.log)
}
