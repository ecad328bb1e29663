//! Tells a reader of logs which table a table map describes at its place: joins the map with what the schema and the
//! statements of the logs say.
//!
//! ```text
//! --schema: the tables of now ─┬─ statements of all logs, read ahead → TableHistory ─┐
//!                              └─ or logs that are read once ────────→ TablesSoFar ──┴→ CompletedTable: names, members, key
//! ```
//!
//! A map that names all columns (`binlog_row_metadata=FULL`) needs neither. A table whose columns aren't known is noted once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use binlogz_binlog::row::{ColumnClass, ColumnKind, ColumnSchema, TableSchema};
use parking_lot::Mutex;

use crate::forward::{TableByNow, TablesSoFar};
use crate::history::{HistoryPlace, TableHistory, TableThen, TurningPoint};
use crate::schema_file::SchemaFile;
use crate::table::{ColumnFacts, DefinedColumn, DefinedTable};

/// The collation of binary strings.
const BINARY: u64 = 63;
/// utf8mb4_0900_ai_ci: that of members that a statement names.
const UTF8MB4: u64 = 255;
/// Tables that a worker remembers: more than a transaction usually has.
const REMEMBERED: usize = 64;
/// The most tables that a line names.
const ASSUMED_SHOWN_MAX: usize = 3;
/// The most characters of a statement in a line for a person.
const STATEMENT_SHOWN_MAX: usize = 200;

/// A table as its rows are read: its map, completed.
#[derive(Debug, Clone)]
pub struct CompletedTable {
    /// The table map with what it lacked.
    pub schema: Arc<TableSchema>,
    /// The columns of its primary key, or of the first unique one, where the map doesn't tell; empty if it has none.
    pub key: Vec<usize>,
    /// The columns of the primary key, and of each unique one, as far as statements tell.
    pub keys: Vec<Vec<usize>>,
    /// Why nothing more than the map is known, or not all of it, though a schema was given.
    pub problem: Option<String>,
    /// Whether the table is known besides its map.
    pub is_told: bool,
}

impl CompletedTable {
    /// The problem, and what it means for rows that are shown.
    pub fn note(&self) -> Option<String> {
        let shown = match self.is_told {
            true => "members are shown by number, whole numbers as signed, bytes as text",
            false => "its columns are @1, @2, …",
        };
        self.problem.as_ref().map(|problem| format!("{problem}; {shown}"))
    }
}

/// Takes a line that names what isn't known.
type TellUnknown = dyn Fn(&str) + Send + Sync;

/// A table by its database and name, and what isn't known of it, if it is known besides its map.
type NotedTable = (String, String, Option<String>);

/// Which tables are in logs, as far as schema and statements tell.
#[derive(Default)]
pub struct TablesOfLogs {
    now: Option<SchemaFile>,
    history: Option<TableHistory>,
    /// The names of the logs so far.
    logs: Mutex<Vec<String>>,
    /// Tables whose columns were named as the schema has them, though statements may follow that aren't seen.
    assumed: Mutex<BTreeSet<(String, String)>>,
    /// Why statements of the logs may be missing from the history, if they may.
    gap: Option<String>,
    /// What is told of each, once.
    notes: Mutex<BTreeMap<NotedTable, String>>,
    /// Up to where the logs were read ahead: those in use go on after it.
    read_ahead_to: Option<HistoryPlace>,
    /// Statements may be left out between those that are recorded.
    has_gaps: bool,
    /// Takes each note at once.
    tell: Option<Box<TellUnknown>>,
    /// No table is assumed, and no text of a statement told.
    is_for_masks: bool,
}

impl std::fmt::Debug for TablesOfLogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TablesOfLogs").finish_non_exhaustive()
    }
}

impl TablesOfLogs {
    /// Tables by the statements up to each place, and before the first of a table by this schema.
    pub fn forward(now: Option<SchemaFile>) -> Self {
        TablesOfLogs { now, ..TablesOfLogs::default() }
    }

    /// Tables by the statements of these logs, settled with this schema, which is that of the end of the logs.
    pub fn of_history(history: TableHistory, now: SchemaFile, logs: Vec<String>) -> Self {
        TablesOfLogs {
            logs: Mutex::new(logs),
            now: Some(now),
            history: Some(history),
            ..TablesOfLogs::default()
        }
    }

    /// The logs of the history don't follow one another, for this reason: statements of others may have changed tables.
    #[must_use]
    pub fn with_gap(self, why: String) -> Self {
        TablesOfLogs { gap: Some(why), ..self }
    }

    /// The history has the statements before this place. Those of a log that a server still writes come later, and are recorded as they
    /// pass.
    #[must_use]
    pub fn read_ahead_to(self, place: HistoryPlace) -> Self {
        TablesOfLogs { read_ahead_to: Some(place), ..self }
    }

    /// The statements that are recorded aren't all: no CREATE TABLE tells what its table is later.
    #[must_use]
    pub fn with_gaps(self) -> Self {
        TablesOfLogs { has_gaps: true, ..self }
    }

    /// Tells notes as soon as there are any: for logs without an end.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        TablesOfLogs { tell: Some(Box::new(tell)), ..self }
    }

    /// For whoever masks columns by their names: a table is known only if no statement that isn't seen may have changed it, and
    /// problems name the place of a statement, not its text, which may have values.
    #[must_use]
    pub fn for_masks(self) -> Self {
        TablesOfLogs { is_for_masks: true, ..self }
    }

    /// Whether tables are known by the statements up to each place, which then are to be recorded.
    pub fn is_forward(&self) -> bool {
        self.history.is_none()
    }

    /// Whether a statement at this place is to be recorded: it wasn't read ahead.
    pub fn records(&self, place: HistoryPlace) -> bool {
        self.is_forward() || self.is_beyond(place)
    }

    /// Whether the logs were read ahead up to before this place.
    fn is_beyond(&self, place: HistoryPlace) -> bool {
        self.read_ahead_to.is_some_and(|end| place >= end)
    }

    /// Whether statements of logs that were read ahead may have changed tables.
    pub fn has_statements(&self) -> bool {
        self.history.as_ref().is_some_and(|history| history.statements_before(HistoryPlace::END) > 0)
    }

    /// Whether statements of logs that were read ahead may have changed this table: what it is then depends on the place.
    pub fn may_change(&self, database: &str, table: &str) -> bool {
        let beginning = HistoryPlace::default();
        self.history.as_ref().is_some_and(|history| history.touches(beginning, database, table))
    }

    /// Whether a schema was given.
    pub fn has_schema(&self) -> bool {
        self.now.is_some()
    }

    /// The next log begins, where they weren't read ahead.
    pub fn begin_log(&self, name: &str) {
        if self.is_forward() {
            self.logs.lock().push(name.to_owned());
        }
    }

    /// As long as this is the same, so are all tables.
    pub fn era(&self, place: HistoryPlace, so_far: &TablesSoFar) -> usize {
        match &self.history {
            Some(history) => history.statements_before(place) + so_far.statements(),
            None => so_far.statements(),
        }
    }

    /// The table that a map describes at a place.
    pub fn complete(
        &self,
        map: &Arc<TableSchema>,
        place: HistoryPlace,
        so_far: &TablesSoFar,
    ) -> CompletedTable {
        let is_named = map.columns().iter().all(|column| column.name.is_some());
        let plain = |problem| CompletedTable {
            schema: Arc::clone(map),
            key: Vec::new(),
            keys: Vec::new(),
            problem,
            is_told: false,
        };
        match self.known((map, is_named), place, so_far) {
            Ok(Some(table)) => {
                let schema = Arc::new(table.completing(map));
                let problem = self.now.as_ref().and_then(|_| table.undefined(&schema));
                let key = table.keys.first().cloned().unwrap_or_default();
                CompletedTable { schema, key, keys: table.keys.clone(), problem, is_told: true }
            }
            // A log that names all columns knows better than a schema of another day.
            Ok(None) => plain(None),
            Err(_) if is_named => plain(None),
            Err(problem) => plain(Some(problem)),
        }
    }

    /// `None`: nothing is told of it.
    fn known<'t>(
        &'t self,
        (map, is_named): (&TableSchema, bool),
        place: HistoryPlace,
        so_far: &'t TablesSoFar,
    ) -> Result<Option<&'t DefinedTable>, String> {
        let [database, table] = [&map.database, &map.table].map(|name| std::str::from_utf8(name));
        let (Ok(database), Ok(table)) = (database, table) else { return Ok(None) };
        let fitting = |defined: &'t DefinedTable| match defined.unfit(map) {
            None => Ok(Some(defined)),
            Some(problem) => Err(problem),
        };
        if let Some(history) = &self.history {
            match so_far.at(database, table) {
                TableByNow::Untouched => {}
                _ if !self.is_beyond(place) => {}
                TableByNow::Defined(defined) => return fitting(defined),
                TableByNow::UnknownSince(turn) => {
                    return Err(self.unknown("what columns it has after this isn't known", turn));
                }
            }
            return match history.at(place, database, table) {
                TableThen::Known(then) => {
                    if let Some(why) = self.gap.as_ref().filter(|_| !is_named) {
                        if self.is_for_masks {
                            return Err(format!("statements that changed it may be missing: {why}"));
                        }
                        self.assume(database, table);
                    }
                    fitting(then)
                }
                TableThen::UnknownSince(turn) => {
                    Err(self.unknown("what columns it has here isn't known", turn))
                }
                TableThen::Disagrees(turn) => Err(self
                    .unknown("the statements in the logs make another table of it than --schema has", turn)),
                TableThen::NotTold => Ok(None),
            };
        }
        match so_far.at(database, table) {
            TableByNow::Defined(_) if self.has_gaps => match self.now.is_some() {
                true => Err("statements that changed it may have been left out".to_owned()),
                false => Ok(None),
            },
            TableByNow::Defined(defined) if self.now.is_some() => fitting(defined),
            TableByNow::Defined(defined) => Ok(Some(defined).filter(|defined| defined.unfit(map).is_none())),
            TableByNow::UnknownSince(turn) if self.now.is_some() => Err(format!(
                "{}; logs that are files are read ahead for such statements",
                self.unknown("what columns it has after this isn't known", turn)
            )),
            TableByNow::UnknownSince(_) => Ok(None),
            TableByNow::Untouched => {
                let now = self.now.as_ref().and_then(|now| now.table(database.as_bytes(), table.as_bytes()));
                let Some(now) = now else { return Ok(None) };
                if !is_named {
                    if self.is_for_masks {
                        return Err("statements that come later may have changed it: --schema needs logs that are files, \
                                    which are read ahead for them"
                            .to_owned());
                    }
                    self.assume(database, table);
                }
                fitting(now)
            }
        }
    }

    fn assume(&self, database: &str, table: &str) {
        let mut assumed = self.assumed.lock();
        if !assumed.iter().any(|(own, name)| own == database && name == table) {
            assumed.insert((database.to_owned(), table.to_owned()));
        }
    }

    /// The line that names the tables whose columns were named as the schema has them, where statements that changed them since can't be
    /// seen for this reason; `None`: there are no such tables.
    pub fn unseen(&self, why: &str) -> Option<String> {
        let assumed = self.assumed.lock();
        let names: Vec<_> = assumed.iter().map(|(database, table)| format!("{database}.{table}")).collect();
        let (shown, others) = names.split_at_checked(ASSUMED_SHOWN_MAX).unwrap_or((&names, &[]));
        let shown = shown.join(", ");
        let all = match others.len() {
            0 => shown,
            count => format!("{shown} and {count} other tables"),
        };
        (!names.is_empty()).then(|| {
            format!("{all}: the columns have the names that --schema gives them now, and may have had others here: {why}")
        })
    }

    fn unknown(&self, what: &str, turn: &TurningPoint) -> String {
        format!("{what} ({})", self.shown(turn))
    }

    /// A statement, with its place.
    fn shown(&self, turn: &TurningPoint) -> String {
        let logs = self.logs.lock();
        let index = usize::try_from(turn.place.log).ok().and_then(|number| number.checked_sub(1));
        let log = index.and_then(|index| logs.get(index)).map_or("a later log", |log| log);
        if self.is_for_masks {
            return format!("{log} at {}", turn.place.offset);
        }
        let words: Vec<_> = turn.statement.split_whitespace().collect();
        let statement = words.join(" ");
        let shown: String = statement.chars().take(STATEMENT_SHOWN_MAX).collect();
        let dots = if shown.len() < statement.len() { " …" } else { "" };
        format!("{log} at {}: {shown}{dots}", turn.place.offset)
    }

    /// Notes what isn't known of a table in the output.
    fn note(&self, completed: &CompletedTable) {
        let Some(note) = completed.note() else { return };
        let [database, table] = [&completed.schema.database, &completed.schema.table]
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let line = format!("{database}.{table}: {note}");
        let key = (database, table, completed.problem.clone().filter(|_| completed.is_told));
        let mut notes = self.notes.lock();
        if let Some(tell) = self.tell.as_ref().filter(|_| !notes.contains_key(&key)) {
            tell(&line);
        }
        // Workers find them in any order.
        let noted = notes.entry(key).or_insert_with(|| line.clone());
        if line < *noted {
            *noted = line;
        }
    }

    /// The lines to be told once all logs are read: tables that weren't known, and those that a schema named before a statement
    /// of the logs may have changed them.
    pub fn notes(&self, so_far: &TablesSoFar) -> Vec<String> {
        let notes = self.notes.lock().clone();
        let assumed = self.assumed.lock();
        let changed = assumed.iter().filter_map(|(database, table)| {
            let turn = so_far.first_change(database, table)?;
            Some(format!(
                "{database}.{table} was changed after its first rows here ({}): those given may be the names of other columns before \
                 that; logs that are files are read ahead for such statements",
                self.shown(turn)
            ))
        });
        let told = notes.into_values().filter(|_| self.tell.is_none());
        let mut lines: Vec<String> = told.chain(changed).collect();
        drop(assumed);
        lines.extend(self.gap.as_ref().and_then(|why| self.unseen(why)));
        lines
    }

    /// Whether a table wasn't known, of all notes so far.
    pub fn has_notes(&self) -> bool {
        !self.notes.lock().is_empty()
    }
}

/// The tables of one worker, each completed once as long as statements leave it as it is.
#[derive(Debug, Default)]
pub struct CompletedTables(Vec<(Arc<TableSchema>, usize, Arc<CompletedTable>)>);

impl CompletedTables {
    /// The table that a map describes at a place; what isn't known is noted.
    pub fn complete(
        &mut self,
        tables: &TablesOfLogs,
        map: &Arc<TableSchema>,
        place: HistoryPlace,
        so_far: &TablesSoFar,
    ) -> Arc<TableSchema> {
        let era = tables.era(place, so_far);
        let is_it = |(own, of, _): &&(Arc<TableSchema>, usize, _)| Arc::ptr_eq(own, map) && *of == era;
        if let Some((_, _, known)) = self.0.iter().rev().find(is_it) {
            return Arc::clone(&known.schema);
        }
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        let completed = tables.complete(map, place, so_far);
        tables.note(&completed);
        let schema = Arc::clone(&completed.schema);
        self.0.push((Arc::clone(map), era, Arc::new(completed)));
        schema
    }
}

impl DefinedTable {
    /// A map of this table with what it lacks.
    fn completing(&self, map: &TableSchema) -> TableSchema {
        map.completed(|index, column| {
            let Some(told) = self.columns.get(index) else { return };
            column.name.get_or_insert_with(|| told.name.as_bytes().into());
            let Some(facts) = &told.facts else { return };
            if column.unsigned.is_none() {
                column.kind = facts.signed(column.kind);
                column.unsigned = Some(facts.is_unsigned);
            }
            if column.collation.is_none() && (facts.is_binary() || facts.is_logged_as_bytes()) {
                column.collation = Some(BINARY);
            }
            if column.members.is_none() && !facts.members.is_empty() {
                column.members = Some(facts.members.iter().map(|member| member.as_bytes().into()).collect());
                column.collation = Some(UTF8MB4);
            }
        })
    }
}

impl DefinedTable {
    /// Why not all that a completed map may have is known: of these columns only the names are, and the map doesn't tell the rest.
    fn undefined(&self, completed: &TableSchema) -> Option<String> {
        let is_undefined = |(column, told): &(&ColumnSchema, &DefinedColumn)| {
            let class = column.kind.class();
            class == ColumnClass::Member && column.members.is_none()
                || class == ColumnClass::Integer && column.unsigned.is_none()
                || class == ColumnClass::String && column.collation.is_none() && told.facts.is_none()
        };
        let columns = completed.columns().iter().zip(&self.columns).filter(is_undefined);
        let names: Vec<_> = columns.map(|(_, told)| told.name.as_str()).collect();
        (!names.is_empty())
            .then(|| format!("the definition of {} at this place isn't known", names.join(", ")))
    }
}

impl ColumnFacts {
    /// Whether it is a string of bytes.
    pub fn is_binary(&self) -> bool {
        self.type_name.contains("BINARY") || self.type_name.contains("BLOB")
    }

    /// Whether it is a BINARY in logs, of which statements write another text: MariaDB's UUID, INET6 and INET4.
    pub fn is_logged_as_bytes(&self) -> bool {
        matches!(self.type_name.as_str(), "UUID" | "INET6" | "INET4")
    }

    fn signed(&self, kind: ColumnKind) -> ColumnKind {
        let unsigned = self.is_unsigned;
        match kind {
            ColumnKind::TinyInt { .. } => ColumnKind::TinyInt { unsigned },
            ColumnKind::SmallInt { .. } => ColumnKind::SmallInt { unsigned },
            ColumnKind::MediumInt { .. } => ColumnKind::MediumInt { unsigned },
            ColumnKind::Int { .. } => ColumnKind::Int { unsigned },
            ColumnKind::BigInt { .. } => ColumnKind::BigInt { unsigned },
            kind => kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::event::{
        Bitmap, OptionalMetadata, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };

    use super::*;
    use crate::history::RecordedStatement;

    /// The table shop.t of two INTs, whose names the log doesn't have.
    fn map() -> Arc<TableSchema> {
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"shop",
            table: b"t",
            column_types: &[3, 3],
            column_metadata: &[],
            null_bitmap: Bitmap(&[3]),
            optional_metadata: OptionalMetadata(&[]),
        };
        Arc::new(TableSchema::new(&map, ServerFamily::Mysql).unwrap())
    }

    fn schema() -> SchemaFile {
        SchemaFile::parse("CREATE TABLE shop.t (id INT, email INT);").unwrap()
    }

    fn with_gap() -> TablesOfLogs {
        let mut history = TableHistory::default();
        history.settle(schema());
        TablesOfLogs::of_history(history, schema(), Vec::new()).with_gap("one is missing".to_owned())
    }

    /// Whether the columns have names, and why not.
    fn named(tables: &TablesOfLogs, so_far: &TablesSoFar) -> (bool, Option<String>) {
        let completed = tables.complete(&map(), HistoryPlace::default(), so_far);
        (completed.schema.columns().iter().all(|column| column.name.is_some()), completed.problem)
    }

    #[test]
    fn addresses_are_bytes_where_the_log_does_not_tell_it() {
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"shop",
            table: b"t",
            column_types: &[254; 4],
            column_metadata: &[254, 16, 254, 16, 254, 4, 254, 4],
            null_bitmap: Bitmap(&[15]),
            optional_metadata: OptionalMetadata(&[]),
        };
        let map = Arc::new(TableSchema::new(&map, ServerFamily::Mariadb).unwrap());
        let schema = SchemaFile::parse("CREATE TABLE shop.t (a inet6, b UUID, c INET4, d CHAR(4));").unwrap();
        let tables = TablesOfLogs::forward(Some(schema));
        let completed = tables.complete(&map, HistoryPlace::default(), &TablesSoFar::default());
        let collations = completed.schema.columns().iter().map(|column| column.collation);
        assert_eq!(collations.collect::<Vec<_>>(), [Some(BINARY), Some(BINARY), Some(BINARY), None]);
    }

    #[test]
    fn masks_assume_no_table() {
        let none = TablesSoFar::default();
        for tables in [TablesOfLogs::forward(Some(schema())), with_gap()] {
            assert_eq!(named(&tables, &none), (true, None));
            let (is_named, problem) = named(&tables.for_masks(), &none);
            assert!(!is_named && problem.is_some(), "{problem:?}");
        }
    }

    #[test]
    fn masks_show_no_text_of_a_statement() {
        let mut so_far = TablesSoFar::default();
        so_far.record(&RecordedStatement {
            place: HistoryPlace { log: 1, offset: 77 },
            database: "shop",
            text: "ALTER TABLE t NONSENSE 'bob'",
            quotes_names: false,
            keeps_backslashes: false,
            has_failed: false,
        });
        let tables = TablesOfLogs::forward(Some(schema()));
        let problem = named(&tables, &so_far).1.unwrap();
        assert!(problem.contains("'bob'"), "{problem}");
        let problem = named(&tables.for_masks(), &so_far).1.unwrap();
        assert!(problem.contains("at 77") && !problem.contains("bob"), "{problem}");
    }
}
