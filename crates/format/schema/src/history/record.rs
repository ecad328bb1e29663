//! Statements in the order of the logs become names and versions of tables, and what made each version from another.

use super::statement::{RecordedStatement, StatementEffect, TurningPoint, changes_rows_only};
use super::{Change, HistoryName, Succession, Sweep, TableHistory, TurnId, Version, VersionId, names_in};
use crate::alter::AlterAction;
use crate::statement::{DdlStatement, NamedTable};

impl TableHistory {
    /// Whether a statement changes rows at most: it needn't be recorded.
    pub fn is_of_rows(statement: &[u8]) -> bool {
        changes_rows_only(&String::from_utf8_lossy(statement))
    }

    /// Takes a statement, in the order of the logs.
    pub fn record(&mut self, statement: &RecordedStatement<'_>) {
        match StatementEffect::of(statement) {
            StatementEffect::None => self.note_database(statement),
            StatementEffect::Unclear(words) => self.sweep(statement, Sweep::Unclear(words)),
            StatementEffect::Ddl(read) => self.take(statement, read),
        }
    }

    fn turn(&mut self, statement: &RecordedStatement<'_>) -> TurnId {
        self.turns.push(TurningPoint::of(statement));
        self.turns.len() - 1
    }

    fn take(&mut self, statement: &RecordedStatement<'_>, read: DdlStatement) {
        let turn = self.turn(statement);
        let spellings = &mut self.spellings;
        let mut full = |(database, table): &NamedTable| {
            let database = database.as_deref().unwrap_or(statement.database);
            let name = (database.to_lowercase(), table.to_lowercase());
            spellings.entry(name.clone()).or_default().insert((database.to_owned(), table.clone()));
            name
        };
        match read {
            DdlStatement::Create { table, definition, is_conditional, replaces } => {
                let name = full(&table);
                if is_conditional {
                    self.conditional.push((turn, name.clone()));
                }
                if self.begin(&name, turn, is_conditional, replaces) {
                    let created_keys = definition.as_ref().map(|table| table.foreign_keys.clone());
                    let made_by = Some(turn);
                    let version = Version { table: definition, created_keys, made_by, ..Version::default() };
                    self.place(&name, turn, version);
                }
            }
            DdlStatement::CreateLike { table, of, is_conditional, replaces } => {
                let name = full(&table);
                let of = full(&of);
                let from = self.current(&of, turn);
                if is_conditional {
                    self.conditional.push((turn, name.clone()));
                }
                if self.begin(&name, turn, is_conditional, replaces) {
                    let version = Version { made_by: Some(turn), ..Version::default() };
                    let to = self.place(&name, turn, version);
                    if let Some(from) = from.filter(|_| !self.temporary.contains(&of)) {
                        self.successions.push(Succession { from, to, by: turn, change: Change::Like });
                    }
                }
            }
            DdlStatement::CreateTemporary { table } => {
                let name = full(&table);
                self.temporary.insert(name);
            }
            DdlStatement::Alter { table, actions } => {
                let name = full(&table);
                self.alter(statement, turn, &name, actions);
            }
            DdlStatement::Rename(renames) => {
                let names: Vec<_> = renames.iter().map(|(from, to)| (full(from), full(to))).collect();
                for (from, to) in names {
                    self.rename(&from, &to, turn);
                }
            }
            DdlStatement::Drop(tables) => {
                let names: Vec<_> = tables.iter().map(full).collect();
                for name in names {
                    self.drop(&name, turn);
                }
            }
            DdlStatement::Truncate(table) => {
                let name = full(&table);
                self.succeed(&name, turn, Change::OtherRows);
            }
            DdlStatement::DropDatabase(database) => {
                let database = database.to_lowercase();
                let names = self.names.keys().filter(|(own, _)| *own == database);
                for name in names.cloned().collect::<Vec<_>>() {
                    self.drop(&name, turn);
                }
                self.sweeps.push((turn, Sweep::DroppedDatabase(database)));
            }
            DdlStatement::Use(_) | DdlStatement::Irrelevant | DdlStatement::Unreadable => {}
        }
    }

    fn alter(
        &mut self,
        statement: &RecordedStatement<'_>,
        turn: TurnId,
        name: &HistoryName,
        actions: Option<Vec<AlterAction>>,
    ) {
        let Some(actions) = actions.filter(|_| !self.temporary.contains(name)) else {
            // Perhaps it gave the table another name, too.
            return self.make_unclear(turn, Sweep::Unclear(names_in(statement.text)));
        };
        let spellings = &mut self.spellings;
        let mut full = |database: &Option<String>, table: &str| {
            let current = if statement.database.is_empty() { &name.0 } else { statement.database };
            let database = database.as_deref().unwrap_or(current);
            let name = (database.to_lowercase(), table.to_lowercase());
            spellings.entry(name.clone()).or_default().insert((database.to_owned(), table.to_owned()));
            name
        };
        let exchanged = actions.iter().find_map(|action| match action {
            AlterAction::Exchange(database, other) => Some(full(database, other)),
            _ => None,
        });
        // The last of several counts.
        let renamed = actions.iter().rev().find_map(|action| match action {
            AlterAction::RenameTable(database, new) => Some(full(database, new)),
            _ => None,
        });
        if let Some(other) = exchanged {
            for name in [name, &other] {
                self.succeed(name, turn, Change::OtherRows);
            }
            return;
        }
        let loses_rows = actions.contains(&AlterAction::LosesRows);
        self.succeed(name, turn, Change::Altered(actions));
        if loses_rows {
            self.succeed(name, turn, Change::OtherRows);
        }
        if let Some(new) = renamed {
            self.rename(name, &new, turn);
        }
    }

    /// The version that a name stands for. A name that no statement had before stands for a table that was there before.
    fn current(&mut self, name: &HistoryName, turn: TurnId) -> Option<VersionId> {
        if !self.names.contains_key(name) {
            self.versions.push(Version::default());
            let first = self.versions.len() - 1;
            self.names.insert(name.clone(), vec![(None, Some(first))]);
            let sweeps: Vec<_> = self.sweeps.iter().filter(|(earlier, _)| *earlier < turn).collect();
            let touching = sweeps.into_iter().filter(|(_, sweep)| sweep.touches(name));
            let touching: Vec<_> =
                touching.map(|(by, sweep)| (*by, matches!(sweep, Sweep::DroppedDatabase(_)))).collect();
            for (by, drops) in touching {
                match drops {
                    true => self.drop(name, by),
                    false => self.succeed(name, by, Change::Unclear),
                }
            }
        }
        self.names.get(name).and_then(|versions| versions.last()?.1)
    }

    /// Makes room for a table that a statement makes under a name; `false`: there is one, which stays.
    fn begin(&mut self, name: &HistoryName, turn: TurnId, is_conditional: bool, replaces: bool) -> bool {
        if !self.names.contains_key(name) && !is_conditional && !replaces {
            // There was none.
            self.current(name, turn);
            if let Some(versions) = self.names.get_mut(name).filter(|versions| versions.len() == 1) {
                *versions = vec![(None, None)];
            }
        }
        match self.current(name, turn) {
            None => true,
            Some(_) if is_conditional => false,
            Some(id) if replaces || self.versions.get(id).is_some_and(|version| version.may_be_absent) => {
                if let Some(version) = self.versions.get_mut(id) {
                    version.dropped_by = Some(turn);
                }
                true
            }
            // It can't have been there: another table's name differs in case alone, or a statement isn't in the logs.
            Some(_) => {
                self.succeed(name, turn, Change::Unclear);
                self.dispute(name);
                false
            }
        }
    }

    /// A name stands for another version from this statement on.
    fn place(&mut self, name: &HistoryName, turn: TurnId, version: Version) -> VersionId {
        self.versions.push(version);
        let id = self.versions.len() - 1;
        self.names.entry(name.clone()).or_default().push((Some(turn), Some(id)));
        id
    }

    /// The table under a name becomes another one.
    fn succeed(&mut self, name: &HistoryName, turn: TurnId, change: Change) {
        let may_be_absent = matches!(change, Change::Unclear);
        let version = Version { made_by: Some(turn), may_be_absent, ..Version::default() };
        let from = self.current(name, turn);
        let to = self.place(name, turn, version);
        // If it wasn't there by the statements before, one of them isn't in the logs.
        let Some(from) = from else { return };
        if let Some(version) = self.versions.get_mut(from) {
            version.next = Some(self.successions.len());
        }
        self.successions.push(Succession { from, to, by: turn, change });
    }

    fn drop(&mut self, name: &HistoryName, turn: TurnId) {
        if self.temporary.contains(name) {
            // Perhaps the temporary one.
            return self.succeed(name, turn, Change::Unclear);
        }
        if let Some(version) = self.current(name, turn).and_then(|id| self.versions.get_mut(id)) {
            version.dropped_by = Some(turn);
            self.names.entry(name.clone()).or_default().push((Some(turn), None));
        }
    }

    fn rename(&mut self, from: &HistoryName, to: &HistoryName, turn: TurnId) {
        if self.temporary.contains(from) || self.temporary.contains(to) {
            self.succeed(from, turn, Change::Unclear);
            return self.succeed(to, turn, Change::Unclear);
        }
        let version = self.current(from, turn);
        if from == to {
            return;
        }
        self.names.entry(from.clone()).or_default().push((Some(turn), None));
        if !self.begin(to, turn, false, false) {
            return;
        }
        match version {
            Some(_) => self.names.entry(to.clone()).or_default().push((Some(turn), version)),
            None => {
                self.place(to, turn, Version { made_by: Some(turn), ..Version::default() });
            }
        }
    }

    fn sweep(&mut self, statement: &RecordedStatement<'_>, sweep: Sweep) {
        let turn = self.turn(statement);
        self.make_unclear(turn, sweep);
    }

    fn make_unclear(&mut self, turn: TurnId, sweep: Sweep) {
        let names: Vec<_> = self.names.keys().filter(|name| sweep.touches(name)).cloned().collect();
        for name in names {
            self.succeed(&name, turn, Change::Unclear);
        }
        self.sweeps.push((turn, sweep));
    }

    pub(super) fn dispute(&mut self, name: &HistoryName) {
        let versions = self.names.get(name).into_iter().flatten().filter_map(|(_, id)| *id);
        for id in versions.collect::<Vec<_>>() {
            self.dispute_version(id);
        }
    }

    pub(super) fn dispute_version(&mut self, id: VersionId) {
        if let Some(version) = self.versions.get_mut(id) {
            version.is_disputed = true;
        }
    }
}
