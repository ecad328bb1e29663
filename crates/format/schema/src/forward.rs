//! Tables as the statements of logs define them up to a place: what can be known of logs that are read once.
//!
//! A table is known from its CREATE TABLE on, through each change that can be followed. [`TableHistory`](crate::TableHistory) knows more, because
//! it also goes backward from the tables of now. A copy is cheap: what it holds is shared until one of them changes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::alter::AlterAction;
use crate::history::{
    HistoryName, HistoryPlace, RecordedStatement, StatementEffect, Sweep, TurningPoint, names_in,
};
use crate::statement::{DdlStatement, NamedTable};
use crate::table::DefinedTable;

/// The most bytes of definitions and statements that are kept: tens of thousands of tables. If there are more, all of them
/// are forgotten.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// Bytes of a table, and of a column, besides their names.
const ENTRY_BYTES: usize = 256;
/// The most statements that are kept of those that don't name the tables they may have changed.
const SWEEPS_MAX: usize = 1000;

/// The tables that the statements so far have defined.
#[derive(Debug, Clone, Default)]
pub struct TablesSoFar {
    content: Option<Arc<TableDefinitions>>,
    /// Counts the statements that changed it.
    statements: usize,
    /// Which of the logs it is, counted from 1.
    log: u64,
    /// The server that wrote the log.
    server_id: Option<u32>,
    /// The number of the log that comes after this one, as its name has it.
    next_log: Option<Box<[u8]>>,
}

#[derive(Debug, Clone, Default)]
struct TableDefinitions {
    tables: HashMap<HistoryName, TableSoFar>,
    sweeps: Vec<(Arc<TurningPoint>, Arc<Sweep>)>,
    /// The statement at which everything before it was forgotten.
    forgotten: Option<Arc<TurningPoint>>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct TableSoFar {
    /// How the first statement spelled its name.
    spelled: (String, String),
    /// Another statement spelled it in other letters: by the server's settings these are one table or two.
    is_ambiguous: bool,
    /// A temporary table had the name as well.
    is_temporary: bool,
    /// `None`: not known since the last statement.
    table: Option<Arc<DefinedTable>>,
    first: Arc<TurningPoint>,
    last: Arc<TurningPoint>,
}

/// A table as the statements so far leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableByNow<'t> {
    /// No statement may have changed it.
    Untouched,
    /// Known: this definition.
    Defined(&'t DefinedTable),
    /// Not known since this statement.
    UnknownSince(&'t TurningPoint),
}

impl TablesSoFar {
    /// How many statements changed it: as long as it is the same, so are all tables.
    pub fn statements(&self) -> usize {
        self.statements
    }

    /// An offset's place among all logs.
    pub fn place(&self, offset: u64) -> HistoryPlace {
        HistoryPlace { log: self.log, offset }
    }

    /// The next log begins. If it isn't the one that the last rotate event named, statements may be missing between them.
    pub fn begin_log(&mut self, name: &[u8]) {
        self.log += 1;
        if self.next_log.take().is_none_or(|next| *next != *log_number_in(name)) {
            self.forget(self.place(0));
        }
    }

    /// The log ends, and the one of this name goes on.
    pub fn rotate_to(&mut self, name: &[u8]) {
        self.next_log = Some(log_number_in(name).into());
    }

    /// The log is of this server, as a format description says.
    pub fn take_server(&mut self, server_id: u32, offset: u64) {
        if self.server_id.replace(server_id).is_some_and(|before| before != server_id) {
            self.forget(self.place(offset));
        }
    }

    /// Takes a statement, in the order of the logs.
    pub fn record(&mut self, statement: &RecordedStatement<'_>) {
        let effect = StatementEffect::of(statement);
        if matches!(effect, StatementEffect::None) {
            return;
        }
        self.statements += 1;
        let turn = Arc::new(TurningPoint::of(statement));
        let content = Arc::make_mut(self.content.get_or_insert_default());
        match effect {
            StatementEffect::None => {}
            StatementEffect::Unclear(words) => content.sweep(&turn, Sweep::Unclear(words)),
            StatementEffect::Ddl(read) => content.take(statement, &turn, read),
        }
        if content.bytes > KEPT_BYTES_MAX || content.sweeps.len() > SWEEPS_MAX {
            *content = TableDefinitions { forgotten: Some(turn), ..TableDefinitions::default() };
        }
    }

    /// Forgets what is known: statements may stand before this place that aren't in the logs.
    fn forget(&mut self, place: HistoryPlace) {
        if self.content.is_some() {
            self.statements += 1;
            let forgotten = Some(Arc::new(TurningPoint::of(&RecordedStatement {
                place,
                database: "",
                text: "the log before it doesn't end where this one begins",
                quotes_names: false,
                keeps_backslashes: false,
                has_failed: false,
            })));
            self.content = Some(Arc::new(TableDefinitions { forgotten, ..TableDefinitions::default() }));
        }
    }

    /// The table of this name by the statements so far.
    pub fn at(&self, database: &str, table: &str) -> TableByNow<'_> {
        let Some(content) = &self.content else { return TableByNow::Untouched };
        let name = (database.to_lowercase(), table.to_lowercase());
        let Some(so_far) = content.tables.get(&name) else {
            let swept = content.sweeps.iter().find(|(_, sweep)| sweep.touches(&name));
            let since = swept.map(|(turn, _)| turn).or(content.forgotten.as_ref());
            return since.map_or(TableByNow::Untouched, |turn| TableByNow::UnknownSince(turn));
        };
        let is_spelled = so_far.spelled.0 == database && so_far.spelled.1 == table;
        match &so_far.table {
            Some(table) if is_spelled && !so_far.is_ambiguous => TableByNow::Defined(table),
            _ => TableByNow::UnknownSince(&so_far.last),
        }
    }

    /// The first statement that may have changed the table of this name.
    pub fn first_change(&self, database: &str, table: &str) -> Option<&TurningPoint> {
        let content = self.content.as_ref()?;
        let so_far = content.tables.get(&(database.to_lowercase(), table.to_lowercase()));
        match (so_far, self.at(database, table)) {
            (Some(so_far), _) => Some(&so_far.first),
            (None, TableByNow::UnknownSince(turn)) => Some(turn),
            (None, _) => None,
        }
    }
}

impl TableDefinitions {
    fn take(&mut self, statement: &RecordedStatement<'_>, turn: &Arc<TurningPoint>, read: DdlStatement) {
        let current = statement.database;
        match read {
            DdlStatement::Create { table, definition, is_conditional, replaces } => {
                let is_there = self.may_be_there(&spelled(&table, current), is_conditional, replaces);
                if is_there != Some(true) {
                    let definition = definition.filter(|_| is_there.is_some());
                    self.put(spelled(&table, current), turn, definition.map(Arc::new));
                }
            }
            DdlStatement::CreateLike { table, of, is_conditional, replaces } => {
                let is_there = self.may_be_there(&spelled(&table, current), is_conditional, replaces);
                if is_there != Some(true) {
                    let like = self.known(&spelled(&of, current)).map(|like| Arc::new(like.like(&table.1)));
                    self.put(spelled(&table, current), turn, like.filter(|_| is_there.is_some()));
                }
            }
            DdlStatement::CreateTemporary { table } => {
                self.put(spelled(&table, current), turn, None).is_temporary = true;
            }
            DdlStatement::Alter { table, actions } => match actions {
                Some(actions) => self.alter(&spelled(&table, current), current, turn, &actions),
                // Perhaps it gave the table another name, too.
                None => self.sweep(turn, Sweep::Unclear(names_in(statement.text))),
            },
            DdlStatement::Rename(renames) => {
                for (from, to) in renames {
                    self.rename(&spelled(&from, current), spelled(&to, current), turn);
                }
            }
            DdlStatement::Drop(tables) => {
                for table in tables {
                    self.put(spelled(&table, current), turn, None);
                }
            }
            DdlStatement::DropDatabase(database) => {
                self.sweep(turn, Sweep::DroppedDatabase(database.to_lowercase()));
            }
            DdlStatement::Truncate(_)
            | DdlStatement::Use(_)
            | DdlStatement::Irrelevant
            | DdlStatement::Unreadable => {}
        }
    }

    /// Whether a table that a statement makes is there already, and stays; `None`: that isn't known.
    fn may_be_there(&self, name: &(String, String), is_conditional: bool, replaces: bool) -> Option<bool> {
        // Without the condition it would have failed.
        if !is_conditional || replaces {
            return Some(false);
        }
        self.known(name).map(|_| true)
    }

    fn alter(
        &mut self,
        name: &(String, String),
        current: &str,
        turn: &Arc<TurningPoint>,
        actions: &[AlterAction],
    ) {
        // The last of several counts.
        let renamed = actions.iter().rev().find_map(|action| match action {
            AlterAction::RenameTable(database, new) => Some((database, new)),
            _ => None,
        });
        let changes_columns = actions.iter().any(|action| match action {
            AlterAction::Add { .. }
            | AlterAction::Drop { .. }
            | AlterAction::Redefine { .. }
            | AlterAction::RenameColumn { .. }
            // Texts may get a type with more room.
            | AlterAction::ChangesCharset => true,
            AlterAction::SetDefault { .. }
            | AlterAction::AddKey(..)
            | AlterAction::DropPrimaryKey
            | AlterAction::DropKey(_)
            | AlterAction::DropConstraint(_)
            | AlterAction::DropForeignKey(_)
            | AlterAction::RenameKey { .. }
            | AlterAction::RenameTable(..)
            | AlterAction::Exchange(..)
            | AlterAction::LosesRows
            | AlterAction::MayLoseRows
            | AlterAction::Harmless => false,
        });
        let altered = self.known(name).map(|table| table.altered(actions));
        match altered {
            Some(altered) => {
                self.put(name.clone(), turn, altered.map(Arc::new));
            }
            None if changes_columns => {
                self.put(name.clone(), turn, None);
            }
            None => {}
        }
        if let Some((database, new)) = renamed {
            let current = if current.is_empty() { &name.0 } else { current };
            let database = database.as_deref().unwrap_or(current);
            self.rename(name, (database.to_owned(), new.clone()), turn);
        }
    }

    fn rename(&mut self, from: &(String, String), to: (String, String), turn: &Arc<TurningPoint>) {
        let table = self.known(from).cloned();
        self.put(from.clone(), turn, None);
        self.put(to, turn, table);
    }

    fn known(&self, (database, table): &(String, String)) -> Option<&Arc<DefinedTable>> {
        let so_far = self.tables.get(&(database.to_lowercase(), table.to_lowercase()))?;
        let is_spelled = so_far.spelled.0 == *database && so_far.spelled.1 == *table;
        so_far.table.as_ref().filter(|_| is_spelled && !so_far.is_ambiguous && !so_far.is_temporary)
    }

    /// A name stands for this table from the statement on.
    fn put(
        &mut self,
        spelled: (String, String),
        turn: &Arc<TurningPoint>,
        table: Option<Arc<DefinedTable>>,
    ) -> &mut TableSoFar {
        let bytes = |table: &Option<Arc<DefinedTable>>| {
            table.as_ref().map_or(0, |table| table.bytes()) + turn.statement.len() + ENTRY_BYTES
        };
        self.bytes += bytes(&table);
        let name = (spelled.0.to_lowercase(), spelled.1.to_lowercase());
        let so_far = self.tables.entry(name).or_insert_with(|| TableSoFar {
            spelled: spelled.clone(),
            is_ambiguous: false,
            is_temporary: false,
            table: None,
            first: Arc::clone(turn),
            last: Arc::clone(turn),
        });
        self.bytes = self.bytes.saturating_sub(bytes(&so_far.table).min(self.bytes));
        so_far.is_ambiguous |= so_far.spelled != spelled;
        so_far.last = Arc::clone(turn);
        // Perhaps the statement means the temporary one.
        so_far.table = table.filter(|_| !so_far.is_temporary);
        so_far
    }

    fn sweep(&mut self, turn: &Arc<TurningPoint>, sweep: Sweep) {
        for (name, so_far) in &mut self.tables {
            if sweep.touches(name) {
                so_far.table = None;
                so_far.last = Arc::clone(turn);
            }
        }
        self.bytes += turn.statement.len() + ENTRY_BYTES;
        self.sweeps.push((Arc::clone(turn), Arc::new(sweep)));
    }
}

impl DefinedTable {
    /// Approximately the bytes that it takes.
    fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|column| {
            let members = column.facts.iter().flat_map(|facts| &facts.members);
            ENTRY_BYTES + column.name.len() + members.map(|member| member.len() + 48).sum::<usize>()
        });
        ENTRY_BYTES + columns.sum::<usize>()
    }
}

/// The number in a log's name: what comes after its last dot. Copies may have another name before it.
fn log_number_in(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b'.').next().unwrap_or(name)
}

/// A table's database and name, as a statement spells them.
fn spelled((database, table): &NamedTable, current: &str) -> (String, String) {
    (database.as_deref().unwrap_or(current).to_owned(), table.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(statements: &[&str]) -> TablesSoFar {
        let mut tables = TablesSoFar::default();
        for (number, text) in statements.iter().enumerate() {
            tables.record(&RecordedStatement {
                place: HistoryPlace { log: 1, offset: number as u64 },
                database: "shop",
                text,
                quotes_names: false,
                keeps_backslashes: false,
                has_failed: false,
            });
        }
        tables
    }

    fn columns(tables: &TablesSoFar, table: &str) -> Option<String> {
        match tables.at("shop", table) {
            TableByNow::Defined(table) => {
                Some(table.columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(" "))
            }
            TableByNow::Untouched | TableByNow::UnknownSince(_) => None,
        }
    }

    #[test]
    fn tables_are_known_from_their_creation_on() {
        let tables = after(&[
            "CREATE TABLE t (id INT, a INT, owed INT)",
            "INSERT INTO t VALUES (1, 2, 3)",
            "ALTER TABLE t MODIFY owed INT AFTER id",
            "CREATE TABLE u LIKE t",
            "ALTER TABLE u RENAME COLUMN a TO b, RENAME TO v",
            "CREATE INDEX i ON other (a)",
            "TRUNCATE t",
        ]);
        assert_eq!(columns(&tables, "t").as_deref(), Some("id owed a"));
        assert_eq!(columns(&tables, "v").as_deref(), Some("id owed b"));
        assert!(matches!(tables.at("shop", "u"), TableByNow::UnknownSince(_)));
        assert_eq!(tables.at("shop", "other"), TableByNow::Untouched);
    }

    #[test]
    fn a_swap_of_tables_is_followed() {
        let tables = after(&[
            "CREATE TABLE t (id INT, a INT)",
            "CREATE TABLE _t_new LIKE t",
            "ALTER TABLE _t_new ADD COLUMN b INT FIRST",
            "RENAME TABLE t TO _t_old, _t_new TO t",
        ]);
        assert_eq!(columns(&tables, "t").as_deref(), Some("b id a"));
        assert_eq!(columns(&tables, "_t_old").as_deref(), Some("id a"));
    }

    #[test]
    fn what_is_not_certain_is_unknown() {
        for statements in [
            ["CREATE TABLE IF NOT EXISTS t (id INT)"].as_slice(),
            &["ALTER TABLE t ADD COLUMN a INT"],
            &["CREATE TABLE t AS SELECT 1 AS a"],
            &["CREATE TABLE t (id INT)", "CREATE TABLE T (id INT, b INT)"],
            &["CREATE TABLE t (id INT)", "ALTER TABLE t DROP COLUMN gone"],
            &["CREATE TABLE t (id INT)", "ALTER TABLE t NONSENSE 7"],
            &["CREATE TABLE t (id INT)", "DROP DATABASE shop"],
            &["CREATE TABLE t (id INT)", "CREATE TEMPORARY TABLE t (a INT)", "DROP TABLE t"],
            &["CREATE TABLE t (id INT)", "ALTER TABLE u ADD COLUMN a INT, RENAME TO t"],
        ] {
            let tables = after(statements);
            assert!(matches!(tables.at("shop", "t"), TableByNow::UnknownSince(_)), "{statements:?}");
        }
        // There is no doubt about one that was there.
        let tables = after(&["CREATE TABLE t (id INT)", "CREATE TABLE IF NOT EXISTS t (a INT, b INT)"]);
        assert_eq!(columns(&tables, "t").as_deref(), Some("id"));
        // Another spelling may be another table.
        assert!(matches!(tables.at("shop", "T"), TableByNow::UnknownSince(_)));
        assert_eq!(tables.first_change("shop", "t").map(|turn| turn.place.offset), Some(0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut tables = TablesSoFar::default();
        let columns: Vec<_> = (0..200).map(|number| format!("column{number} INT")).collect();
        for number in 0..2_000_u64 {
            let text = format!("CREATE TABLE t{number} ({})", columns.join(", "));
            tables.record(&RecordedStatement {
                place: HistoryPlace { log: 1, offset: number },
                database: "shop",
                text: &text,
                quotes_names: false,
                keeps_backslashes: false,
                has_failed: false,
            });
            assert!(tables.content.as_ref().is_some_and(|content| content.bytes <= KEPT_BYTES_MAX));
        }
        assert!(matches!(tables.at("shop", "t0"), TableByNow::UnknownSince(_)));
        assert!(matches!(tables.at("shop", "t1999"), TableByNow::Defined(_)));
    }
}
