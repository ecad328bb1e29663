//! The foreign keys that statements of the logs took away: from a table that stays, or with a table that they dropped. The tables
//! of now don't tell them, and they did their work up to there.
//!
//! A key's text is known if the logs have the CREATE TABLE of its table; otherwise only the statement is.

use std::collections::HashSet;

use sqlparser::keywords::Keyword;

use super::{
    Change, HistoryName, HistoryPlace, NamePeriod, RecordedStatement, Sweep, TableHistory, TurnId,
    TurningPoint, VersionId,
};
use crate::alter::AlterAction;
use crate::foreign_key::ForeignKey;
use crate::table::DefinedTable;
use crate::tokens::TokenReader;

/// A table, whatever its name is at a place of the logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableIdentity(FirstState);

#[derive(Debug, Clone, PartialEq, Eq)]
enum FirstState {
    /// The first version of it in the logs.
    Version(VersionId),
    /// No statement is about it.
    Name(HistoryName),
}

/// The table that lost foreign keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostKeysTable {
    /// This one, by the database and the name that it had.
    Table(String, String),
    /// Any of a database that was dropped.
    OfDatabase(String),
    /// The statement doesn't tell.
    Any,
}

/// Foreign keys that a statement took away.
#[derive(Debug, Clone)]
pub struct LostForeignKeys<'h> {
    /// The statement.
    pub by: &'h TurningPoint,
    /// The table that had them.
    pub table: LostKeysTable,
    /// The keys, none of which may be one with a rule; `None`: they aren't known.
    pub keys: Option<Vec<ForeignKey>>,
    /// The name of the key, where the statement names one.
    pub name: Option<String>,
    /// Where the table was made; the begin of the logs, if it was there before.
    pub since: HistoryPlace,
}

impl LostForeignKeys<'_> {
    fn may_carry_on(&self) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.iter().any(ForeignKey::carries_on))
    }
}

impl TableHistory {
    /// The foreign keys that statements took away, by statement, in their order. A key that the same statement gave the table again is
    /// among them, as its rules may be others.
    pub fn lost_foreign_keys(&self) -> Vec<LostForeignKeys<'_>> {
        let mut lost = self.keys_taken();
        lost.extend(self.keys_of_dropped_tables());
        lost.extend(self.sweeps.iter().filter_map(|(turn, sweep)| {
            let by = self.turns.get(*turn)?;
            let table = match sweep {
                Sweep::DroppedDatabase(database) => LostKeysTable::OfDatabase(database.clone()),
                Sweep::Unclear(words) if may_take_keys(words.as_ref()) => LostKeysTable::Any,
                Sweep::Unclear(_) => return None,
            };
            Some(LostForeignKeys { by, table, keys: None, name: None, since: HistoryPlace::default() })
        }));
        lost.retain(|lost| !self.is_of_new_database(lost));
        lost.sort_by_key(|lost| lost.by.place);
        lost
    }

    /// Whether a statement made the database: all of its tables were made in the logs, and those that no CREATE TABLE made weren't there,
    /// unless a table of another database was renamed into it.
    fn is_of_new_database(&self, lost: &LostForeignKeys<'_>) -> bool {
        let database = match &lost.table {
            LostKeysTable::Table(database, _) | LostKeysTable::OfDatabase(database) => database,
            LostKeysTable::Any => return false,
        };
        let made = |(place, made): &(HistoryPlace, String)| {
            *place < lost.by.place && made.eq_ignore_ascii_case(database)
        };
        lost.keys.is_none()
            && lost.since == HistoryPlace::default()
            && self.new_databases.iter().any(made)
            && !self.takes_others(database)
    }

    /// Whether a database has, at some time, a table that was in another one at another time.
    fn takes_others(&self, database: &str) -> bool {
        let (inside, outside): (Vec<_>, Vec<_>) =
            self.names.iter().partition(|((own, _), _)| own.eq_ignore_ascii_case(database));
        let [inside, outside] = [inside, outside].map(|names| {
            let versions = names.iter().flat_map(|(_, periods)| periods.iter().filter_map(|(_, id)| *id));
            versions.map(|id| self.first_of(id)).collect::<HashSet<_>>()
        });
        !inside.is_disjoint(&outside)
    }

    /// Takes the database that a statement makes, if it makes one.
    pub(super) fn note_database(&mut self, statement: &RecordedStatement<'_>) {
        let made = made_database(statement.text);
        self.new_databases.extend(made.map(|database| (statement.place, database)));
    }

    /// The foreign keys that ALTER TABLE dropped from tables that still exist.
    fn keys_taken(&self) -> Vec<LostForeignKeys<'_>> {
        let mut taken = Vec::new();
        for step in &self.successions {
            let (Change::Altered(actions), Some(by)) = (&step.change, self.turns.get(step.by)) else {
                continue;
            };
            let names = actions.iter().filter_map(|action| match action {
                AlterAction::DropForeignKey(name) | AlterAction::DropConstraint(name) => Some(name),
                _ => None,
            });
            let Some((database, table)) = self.name_of(step.from) else { continue };
            for name in names {
                let known = self.foreign_keys_of(step.from);
                let keys = known.map(|known| called(known, name)).filter(|keys| !keys.is_empty());
                let is_other = keys.is_none() && self.is_other_constraint(step.from, name);
                if !is_other {
                    taken.push(LostForeignKeys {
                        by,
                        table: LostKeysTable::Table(database.clone(), table.clone()),
                        keys,
                        name: Some(name.clone()),
                        since: self.begin_of(step.from),
                    });
                }
            }
        }
        taken
    }

    /// The foreign keys of tables that were dropped, or replaced by CREATE OR REPLACE.
    fn keys_of_dropped_tables(&self) -> Vec<LostForeignKeys<'_>> {
        let dropped = self.versions.iter().enumerate().filter_map(|(id, version)| {
            let by = self.turns.get(version.dropped_by?)?;
            let (database, table) = self.name_of(id)?;
            let keys = self.foreign_keys_of(id);
            if keys.as_ref().is_some_and(Vec::is_empty) {
                return None;
            }
            let table = LostKeysTable::Table(database, table);
            Some(LostForeignKeys { by, table, keys, name: None, since: self.begin_of(id) })
        });
        dropped.collect()
    }

    /// Whether a statement adds a foreign key of this name to a table that is there.
    pub fn adds_foreign_key(&self, name: &str) -> bool {
        let is_it = |action: &AlterAction| matches!(action, AlterAction::AddKey(_, Some(key)) if key.name.eq_ignore_ascii_case(name));
        let mut changes = self.successions.iter().filter_map(|step| match &step.change {
            Change::Altered(actions) => Some(actions),
            Change::Like | Change::OtherRows | Change::Unclear => None,
        });
        changes.any(|actions| actions.iter().any(is_it))
    }

    /// Where a statement added the foreign key of this name to the table that has this name now; the begin of the logs, if none did: then
    /// the key may have been there.
    pub fn foreign_key_added(&self, (database, table): (&str, &str), key: &str) -> HistoryPlace {
        let name = (database.to_lowercase(), table.to_lowercase());
        let periods = self.names.get(&name).and_then(|periods| periods.last());
        let mut version = periods.and_then(|(_, version)| *version);
        while let Some(step) = version.and_then(|id| self.successions.iter().find(|step| step.to == id)) {
            match &step.change {
                Change::Altered(actions) if actions.iter().any(|action| adds_key(action, key)) => {
                    let turn = self.turns.get(step.by);
                    return turn.map_or(HistoryPlace::default(), |turn| turn.place);
                }
                Change::Altered(_) | Change::OtherRows => version = Some(step.from),
                Change::Like | Change::Unclear => break,
            }
        }
        HistoryPlace::default()
    }

    /// Whether the statements at a place may have taken away a foreign key that carries changes on.
    pub fn loses_carrying_key(&self, place: HistoryPlace) -> bool {
        self.lost_foreign_keys().iter().any(|lost| lost.by.place == place && lost.may_carry_on())
    }

    /// Whether any statement may have taken away a foreign key that carries changes on.
    pub fn loses_carrying_keys(&self) -> bool {
        self.lost_foreign_keys().iter().any(LostForeignKeys::may_carry_on)
    }

    /// The table that had this name at a place.
    pub fn identity_at(&self, place: HistoryPlace, database: &str, table: &str) -> TableIdentity {
        let name = (database.to_lowercase(), table.to_lowercase());
        match self.version_at(place, &name) {
            Some((_, Some(id))) => TableIdentity(FirstState::Version(self.first_of(id))),
            Some((_, None)) | None => TableIdentity(FirstState::Name(name)),
        }
    }

    /// All databases and names that a table had in the logs, as statements spell them.
    pub fn names_of_identity(&self, table: &TableIdentity) -> Vec<(String, String)> {
        let first = match &table.0 {
            FirstState::Name(name) => return vec![name.clone()],
            FirstState::Version(first) => *first,
        };
        let is_it = |id: VersionId| self.first_of(id) == first;
        let named =
            self.names.iter().filter(|(_, periods)| periods.iter().any(|(_, id)| id.is_some_and(is_it)));
        let spelled = named.flat_map(|(name, _)| self.spellings.get(name).into_iter().flatten());
        let mut names: Vec<_> = spelled.cloned().collect();
        names.sort();
        names
    }

    /// The first version of the table that a version is one of.
    fn first_of(&self, mut id: VersionId) -> VersionId {
        while let Some(step) = self.successions.iter().find(|step| step.to == id) {
            if matches!(step.change, Change::Like) {
                break;
            }
            id = step.from;
        }
        id
    }

    /// Where the table of a version was made.
    fn begin_of(&self, id: VersionId) -> HistoryPlace {
        let made_by = self.versions.get(self.first_of(id)).and_then(|version| version.made_by);
        made_by.and_then(|turn| self.turns.get(turn)).map_or(HistoryPlace::default(), |turn| turn.place)
    }

    /// The last name of a version, as a statement spells it.
    fn name_of(&self, id: VersionId) -> Option<(String, String)> {
        let named = self.names.iter().filter_map(|(name, periods)| Some((end_of(periods, id)?, name)));
        let (_, name) = named.max()?;
        self.spellings.get(name).and_then(|spelled| spelled.iter().min()).or(Some(name)).cloned()
    }

    /// The foreign keys of a version, from its table's CREATE TABLE on. `None`: the logs don't tell.
    fn foreign_keys_of(&self, id: VersionId) -> Option<Vec<ForeignKey>> {
        let mut changes: Vec<&[AlterAction]> = Vec::new();
        let mut first = id;
        let mut keys = loop {
            let version = self.versions.get(first)?;
            if version.is_disputed {
                return None;
            }
            let Some(step) = self.successions.iter().find(|step| step.to == first) else {
                break version.created_keys.clone()?;
            };
            match &step.change {
                Change::Altered(actions) => changes.push(actions),
                Change::OtherRows => {}
                Change::Like => break Vec::new(),
                Change::Unclear => return None,
            }
            first = step.from;
        };
        for actions in changes.into_iter().rev() {
            let mut table = DefinedTable { foreign_keys: keys, ..DefinedTable::default() };
            table.alter_keys(actions);
            keys = table.foreign_keys;
        }
        Some(keys)
    }

    /// Whether a constraint is known to be no foreign key: it is a key of its table, or all foreign keys are known.
    fn is_other_constraint(&self, id: VersionId, name: &str) -> bool {
        let table = self.versions.get(id).and_then(|version| version.table.as_ref());
        let mut keys = table.into_iter().flat_map(|table| &table.defined);
        self.foreign_keys_of(id).is_some()
            || keys.any(|key| key.name.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name)))
    }
}

/// Whether it adds a foreign key of this name, which the statement itself gives it.
fn adds_key(action: &AlterAction, name: &str) -> bool {
    matches!(action, AlterAction::AddKey(_, Some(key)) if key.has_name() && key.name.eq_ignore_ascii_case(name))
}

/// Since which statement a name no longer stands for a version, the greatest number for none; `None`: it never did.
fn end_of(periods: &[NamePeriod], id: VersionId) -> Option<TurnId> {
    let place = periods.iter().rposition(|(_, own)| *own == Some(id))?;
    Some(periods.get(place + 1).and_then(|(turn, _)| *turn).unwrap_or(TurnId::MAX))
}

/// The keys of this name; if none has it, those to which the server gave a name.
fn called(keys: Vec<ForeignKey>, name: &str) -> Vec<ForeignKey> {
    let (named, others): (Vec<_>, Vec<_>) =
        keys.into_iter().partition(|key| key.name.eq_ignore_ascii_case(name));
    match named.is_empty() {
        false => named,
        true => others.into_iter().filter(|key| !key.has_name() && is_of_server(name)).collect(),
    }
}

/// Whether a foreign key to which no statement gave a name may be called so: `child_ibfk_1`, or since MariaDB 12 `1`.
fn is_of_server(name: &str) -> bool {
    let number = name.rsplit_once("_ibfk_").map_or(name, |(_, number)| number);
    number.bytes().all(|letter| letter.is_ascii_digit())
}

/// The database that a statement makes. With IF NOT EXISTS it may have been there.
fn made_database(text: &str) -> Option<String> {
    let begin = text.trim_start().as_bytes().get(.."CREATE".len());
    if !begin.is_some_and(|word| word.eq_ignore_ascii_case(b"CREATE")) {
        return None;
    }
    let mut reader = TokenReader::of(text).ok()?;
    if !reader.takes(Keyword::CREATE) {
        return None;
    }
    if reader.takes(Keyword::OR) {
        reader.takes(Keyword::REPLACE);
    }
    let is_it = reader.takes(Keyword::DATABASE) || reader.takes(Keyword::SCHEMA);
    reader.name().filter(|_| is_it && !reader.is(Keyword::NOT))
}

/// Whether a statement that can't be followed may take a foreign key away, by its words; `None`: it can't be split into words.
fn may_take_keys(words: Option<&HashSet<String>>) -> bool {
    let Some(words) = words else { return true };
    let has = |word: &str| words.contains(word);
    match has("alter") {
        true => has("drop") && (has("foreign") || has("constraint")),
        false => (has("drop") || has("replace")) && (has("table") || has("tables")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::in_shop;
    use super::*;

    /// The keys that these statements, each in a log of its own, took away: the number of the statement, the table, and the keys.
    fn lost(statements: &[&str]) -> Vec<(u64, String, String)> {
        let mut history = TableHistory::default();
        for (number, text) in statements.iter().enumerate() {
            history.record(&in_shop(HistoryPlace { log: number as u64 + 1, offset: 100 }, text));
        }
        let shown = |lost: &LostForeignKeys<'_>| {
            let table = match &lost.table {
                LostKeysTable::Table(database, table) => format!("{database}.{table}"),
                LostKeysTable::OfDatabase(database) => format!("{database}.*"),
                LostKeysTable::Any => "*".to_owned(),
            };
            let parents = |keys: &Vec<ForeignKey>| {
                keys.iter().map(|key| key.parent.as_str()).collect::<Vec<_>>().join(" ")
            };
            let keys = lost.keys.as_ref().map_or("?".to_owned(), parents);
            (lost.by.place.log, table, format!("{keys} since {}", lost.since.log))
        };
        history.lost_foreign_keys().iter().map(shown).collect()
    }

    fn of(statement: u64, table: &str, keys: &str) -> (u64, String, String) {
        (statement, table.to_owned(), keys.to_owned())
    }

    const CHILD: &str = "CREATE TABLE c (id INT PRIMARY KEY, p INT, q INT, CHECK (p > 0), CONSTRAINT u UNIQUE (q),
        CONSTRAINT cp FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE, FOREIGN KEY (q) REFERENCES q (id))";

    #[test]
    fn what_was_dropped_is_told_from_the_create_table() {
        let known = |drop: &str| lost(&[CHILD, drop]);
        assert_eq!(known("ALTER TABLE c DROP FOREIGN KEY cp"), [of(2, "shop.c", "p since 1")]);
        assert_eq!(known("ALTER TABLE c DROP CONSTRAINT CP"), [of(2, "shop.c", "p since 1")]);
        assert_eq!(known("ALTER TABLE c DROP FOREIGN KEY c_ibfk_1"), [of(2, "shop.c", "q since 1")]);
        assert_eq!(known("DROP TABLE c"), [of(2, "shop.c", "p q since 1")]);
        assert_eq!(known("CREATE OR REPLACE TABLE c (id INT)"), [of(2, "shop.c", "p q since 1")]);
        assert_eq!(known("ALTER TABLE c DROP INDEX u"), []);
        assert_eq!(lost(&["CREATE TABLE c (id INT)", "DROP TABLE c"]), []);
        assert_eq!(
            lost(&[
                "CREATE TABLE c (id INT, CONSTRAINT k CHECK (id > 0))",
                "ALTER TABLE c DROP CONSTRAINT k"
            ]),
            []
        );
    }

    #[test]
    fn a_table_is_followed_up_to_the_drop() {
        let statements = [
            CHILD,
            "ALTER TABLE c ADD r INT, ADD CONSTRAINT cr FOREIGN KEY (r) REFERENCES r (id), RENAME TO d",
            "CREATE TABLE e LIKE d",
            "ALTER TABLE d DROP FOREIGN KEY cp",
            "DROP TABLE e, d",
        ];
        assert_eq!(lost(&statements), [of(4, "shop.d", "p since 1"), of(5, "shop.d", "q r since 1")]);
    }

    #[test]
    fn keys_of_a_table_from_before_the_logs_are_not_known() {
        for (drop, expected) in [
            ("ALTER TABLE c DROP FOREIGN KEY cp", "shop.c"),
            ("ALTER TABLE c DROP CONSTRAINT cp", "shop.c"),
            ("DROP TABLE IF EXISTS other.c", "other.c"),
            ("DROP DATABASE other", "other.*"),
            ("ALTER TABLE c DROP FOREIGN KEY cp FROBNICATE, FROBNICATE", "*"),
        ] {
            assert_eq!(lost(&[drop]), [of(1, expected, "? since 0")], "{drop}");
        }
        assert_eq!(
            lost(&["CREATE DATABASE IF NOT EXISTS other", "DROP DATABASE other"]),
            [of(2, "other.*", "? since 0")]
        );
        assert_eq!(
            lost(&["CREATE DATABASE other", "DROP TABLE IF EXISTS other.c", "DROP DATABASE `other`"]),
            []
        );
        assert_eq!(
            lost(&[
                "CREATE DATABASE other",
                "RENAME TABLE c TO other.c",
                "ALTER TABLE other.c DROP FOREIGN KEY cp"
            ]),
            [of(3, "other.c", "? since 0")]
        );
        let renamed = ["CREATE DATABASE other", "RENAME TABLE c TO other.c", "DROP DATABASE other"];
        assert!(lost(&renamed).contains(&of(3, "other.*", "? since 0")));
        assert_eq!(lost(&["ALTER TABLE c DROP SYSTEM VERSIONING"]), []);
        assert_eq!(lost(&["ALTER TABLE c DROP COLUMN x", "ALTER TABLE c DROP INDEX i", "DROP VIEW v"]), []);
    }

    #[test]
    fn a_key_counts_from_the_statement_that_added_it() {
        let added = |statements: &[&str], key: &str| {
            let mut history = TableHistory::default();
            for (number, text) in statements.iter().enumerate() {
                history.record(&in_shop(HistoryPlace { log: number as u64 + 1, offset: 100 }, text));
            }
            history.foreign_key_added(("shop", "c"), key).log
        };
        let add = "ALTER TABLE b ADD CONSTRAINT bp FOREIGN KEY (p) REFERENCES p (id), ADD FOREIGN KEY (q) REFERENCES q (id)";
        let statements = ["ALTER TABLE b ADD x INT", add, "RENAME TABLE b TO c", "ALTER TABLE c ADD y INT"];
        assert_eq!(added(&statements, "BP"), 2);
        // Whether it is that one isn't known.
        assert_eq!(added(&statements, "c_ibfk_1"), 0);
        assert_eq!(added(&[CHILD, "ALTER TABLE c ADD y INT"], "cp"), 0);
    }

    const CARRYING: &str = "CREATE TABLE c (p INT, CONSTRAINT some CHECK (p > 0), FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL)";

    #[test]
    fn a_statement_takes_no_carrying_key_if_all_keys_are_known() {
        let loses = |statements: &[&str]| {
            let mut history = TableHistory::default();
            for (number, text) in statements.iter().enumerate() {
                history.record(&in_shop(HistoryPlace { log: number as u64 + 1, offset: 100 }, text));
            }
            history.loses_carrying_key(HistoryPlace { log: statements.len() as u64, offset: 100 })
        };
        assert!(loses(&[CHILD, "ALTER TABLE c DROP FOREIGN KEY cp"]));
        assert!(!loses(&[CHILD, "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1"]));
        assert!(!loses(&[CHILD, "ALTER TABLE c DROP CONSTRAINT u"]));
        // A CHECK, which no key is taken for.
        assert!(!loses(&[CARRYING, "ALTER TABLE c DROP CONSTRAINT some"]));
        assert!(loses(&[CARRYING, "ALTER TABLE c DROP CONSTRAINT c_ibfk_1"]));
        assert!(loses(&["ALTER TABLE c DROP CONSTRAINT u"]));
        assert!(!loses(&[CHILD, "ALTER TABLE c DROP FOREIGN KEY cp", "ALTER TABLE c ADD x INT"]));
    }

    #[test]
    fn a_table_is_the_same_one_under_all_its_names() {
        let mut history = TableHistory::default();
        for (number, text) in
            ["RENAME TABLE p TO q", "CREATE TABLE p LIKE q", "ALTER TABLE q ADD x INT"].iter().enumerate()
        {
            history.record(&in_shop(HistoryPlace { log: number as u64 + 1, offset: 100 }, text));
        }
        let at =
            |log: u64, table: &str| history.identity_at(HistoryPlace { log, offset: 200 }, "shop", table);
        assert_eq!(at(0, "p"), at(3, "q"));
        assert_ne!(at(3, "p"), at(3, "q"));
        assert_eq!(at(1, "other"), at(3, "Other"));
        let names = history.names_of_identity(&at(3, "q"));
        assert_eq!(names, [("shop".to_owned(), "p".to_owned()), ("shop".to_owned(), "q".to_owned())]);
    }
}
