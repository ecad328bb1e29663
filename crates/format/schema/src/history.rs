//! The history of tables: which table, with which columns, stood under a name at each place of the logs.
//!
//! ```text
//! statements in the order of the logs ─ record ─→ names and versions of tables, what made each of them from another
//! tables as they are now ─ settle ─→ versions that are known: forward from CREATE TABLE, backward from now, until no more
//!                                    follows
//! ```
//!
//! A version is one structure of one table, between two statements that change it; a name stands for one version after the
//! other, and RENAME gives a version another name. If a change can't be followed, the answer is *unknown*,
//! with the statement responsible. Nothing is guessed: a version that comes out differently from its two sides is unknown, too.

mod lost_keys;
mod since;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use binlogz_binlog::event::{QueryEvent, StatusVariable};
use sqlparser::tokenizer::Token;

use crate::alter::{AlterAction, ColumnFate};
use crate::foreign_key::ForeignKey;
use crate::schema_file::SchemaFile;
use crate::statement::{DdlStatement, NamedTable};
use crate::table::{DefinedColumn, DefinedTable};
use crate::tokens::{TokenReader, is_same_name};

pub use lost_keys::{LostForeignKeys, LostKeysTable, TableIdentity};
pub use since::{NoTableWay, TableWay, WayColumn};

/// A place in the logs: which of them it is, counted in their order, and the offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct HistoryPlace {
    /// Which of the logs.
    pub log: u64,
    /// Offset in the log.
    pub offset: u64,
}

impl HistoryPlace {
    /// Behind everything.
    pub const END: HistoryPlace = HistoryPlace { log: u64::MAX, offset: u64::MAX };
}

/// A statement of the logs.
#[derive(Debug, Clone, Copy)]
pub struct RecordedStatement<'s> {
    /// Where it stands.
    pub place: HistoryPlace,
    /// The session's default database.
    pub database: &'s str,
    /// The statement itself. Text that isn't UTF-8 has U+FFFD in it, as `String::from_utf8_lossy` writes it.
    pub text: &'s str,
    /// Whether the session took texts in double quotes for names (ANSI_QUOTES).
    pub quotes_names: bool,
    /// Whether a backslash was an ordinary character of texts to the session (NO_BACKSLASH_ESCAPES).
    pub keeps_backslashes: bool,
    /// Whether it failed, having done a part of its work.
    pub has_failed: bool,
}

/// Bits of `sql_mode`.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

impl<'s> RecordedStatement<'s> {
    /// The statement of an event, whose database and text were decoded.
    pub fn of_query(
        place: HistoryPlace,
        query: &QueryEvent<'_>,
        (database, text): (&'s str, &'s str),
    ) -> Self {
        let sql_mode = query
            .status_variables
            .iter()
            .find_map(|variable| match variable {
                Ok(StatusVariable::SqlMode(mode)) => Some(mode),
                _ => None,
            })
            .unwrap_or(0);
        RecordedStatement {
            place,
            database,
            text,
            quotes_names: sql_mode & ANSI_QUOTES != 0,
            keeps_backslashes: sql_mode & NO_BACKSLASH_ESCAPES != 0,
            has_failed: query.error_code != 0,
        }
    }
}

/// A statement after which a table isn't what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurningPoint {
    /// Where it stands.
    pub place: HistoryPlace,
    /// The statement's text, or the first [`STATEMENT_SIZE_MAX`] bytes of it.
    pub statement: String,
    /// A hash of the whole statement.
    digest: u64,
}

impl TurningPoint {
    pub(crate) fn of(statement: &RecordedStatement<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        statement.text.hash(&mut hasher);
        let mut end = statement.text.len().min(STATEMENT_SIZE_MAX);
        while !statement.text.is_char_boundary(end) {
            end -= 1;
        }
        let text = statement.text.get(..end).unwrap_or_default().to_owned();
        TurningPoint { place: statement.place, statement: text, digest: hasher.finish() }
    }
}

/// The most bytes of a statement that are kept: a history may have any number of them.
const STATEMENT_SIZE_MAX: usize = 2048;

/// The table that had a name at a place of the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableThen<'h> {
    /// This table.
    Known(&'h DefinedTable),
    /// Another one than now, and this statement doesn't tell which.
    UnknownSince(&'h TurningPoint),
    /// The table that the logs end with, after this statement, is not the one that there is now.
    Disagrees(&'h TurningPoint),
    /// Neither the logs nor the tables of now have it.
    NotTold,
}

/// The columns of an earlier table in the table as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnsNow<'h> {
    /// It is the table that has its name now.
    Kept {
        /// The table as it is now.
        now: &'h DefinedTable,
        /// For each of its columns that of now, `None` if it was dropped.
        columns: Vec<Option<KeptColumn<'h>>>,
    },
    /// This statement dropped it, gave its name to another table, or took rows from it.
    GoneSince(&'h TurningPoint),
    /// It isn't known.
    Unknown,
}

/// A column that is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptColumn<'h> {
    /// The column as it is now.
    pub now: &'h DefinedColumn,
    /// Whether it takes the values that it had: its type is the same, or one that has room for them.
    pub takes_values: bool,
}

/// A table's name, in small letters.
pub(crate) type HistoryName = (String, String);
type VersionId = usize;
type TurnId = usize;
/// Since which statement a name stood for a version; `None`: from the beginning, for no table.
type NamePeriod = (Option<TurnId>, Option<VersionId>);

/// How one version came from another.
#[derive(Debug, Clone)]
enum Change {
    Altered(Vec<AlterAction>),
    /// CREATE TABLE … LIKE: another table, with the same columns.
    Like,
    /// EXCHANGE PARTITION, TRUNCATE: other rows in the same columns.
    OtherRows,
    /// Nobody knows.
    Unclear,
}

#[derive(Debug, Clone)]
struct Succession {
    from: VersionId,
    to: VersionId,
    by: TurnId,
    change: Change,
}

#[derive(Debug, Clone, Default)]
struct Version {
    table: Option<DefinedTable>,
    /// The foreign keys that its CREATE TABLE gave it, if one made it.
    created_keys: Option<Vec<ForeignKey>>,
    /// The succession that ended it, as one of `successions`.
    next: Option<usize>,
    /// The statement that dropped it.
    dropped_by: Option<TurnId>,
    /// The statement that made it, if one did.
    made_by: Option<TurnId>,
    /// It is known from two sides that don't agree.
    is_disputed: bool,
    /// The logs and the schema give its columns different defaults.
    has_disputed_defaults: bool,
    /// Perhaps there is no such table.
    may_be_absent: bool,
}

/// A statement that touched tables without naming each.
#[derive(Debug, Clone)]
pub(crate) enum Sweep {
    DroppedDatabase(String),
    /// It may have done anything to tables of these names; `None`: of any name.
    Unclear(Option<HashSet<String>>),
}

/// Which tables stood under which names, through the logs.
#[derive(Debug, Clone, Default)]
pub struct TableHistory {
    turns: Vec<TurningPoint>,
    versions: Vec<Version>,
    successions: Vec<Succession>,
    /// For each name the versions that it stood for, each with the statement since which it did; the first without.
    names: HashMap<HistoryName, Vec<NamePeriod>>,
    sweeps: Vec<(TurnId, Sweep)>,
    /// How the statements spell each name.
    spellings: HashMap<HistoryName, HashSet<(String, String)>>,
    /// Names that temporary tables had as well.
    temporary: HashSet<HistoryName>,
    /// Names that CREATE TABLE IF NOT EXISTS gave to no table, if there was one.
    conditional: Vec<(TurnId, HistoryName)>,
    /// Databases that weren't there before, and where each was made.
    new_databases: Vec<(HistoryPlace, String)>,
    now: SchemaFile,
    /// The place at which the tables are those of now; `None`: the end.
    now_at: Option<HistoryPlace>,
}

/// First words of statements that change rows at most.
const OF_ROWS: [&str; 7] = ["INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "SELECT"];

/// Whether a statement leaves all tables as they are, by its first word behind comments.
fn changes_rows_only(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("/*").filter(|comment| !comment.starts_with(['!', 'M'])) {
        let Some((_, behind)) = comment.split_once("*/") else { return false };
        rest = behind.trim_start();
    }
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    let first = rest.get(..end).unwrap_or_default();
    OF_ROWS.iter().any(|word| word.eq_ignore_ascii_case(first))
}

/// The effect of a statement on tables.
#[derive(Debug)]
pub(crate) enum StatementEffect {
    /// It leaves all of them as they are.
    None,
    /// It may have done anything to tables of these names, in small letters; `None`: of any name.
    Unclear(Option<HashSet<String>>),
    Ddl(DdlStatement),
}

impl StatementEffect {
    pub(crate) fn of(statement: &RecordedStatement<'_>) -> Self {
        if changes_rows_only(statement.text) {
            return StatementEffect::None;
        }
        let tokens = TokenReader::of(statement.text).ok().map(|reader| match statement.quotes_names {
            true => reader.quoting_names(),
            false => reader,
        });
        let Some(mut reader) = tokens else {
            return if is_ddl(statement.text) {
                StatementEffect::Unclear(None)
            } else {
                StatementEffect::None
            };
        };
        let words: HashSet<String> = reader.tokens.iter().filter_map(name_in).collect();
        // A backslash may have ended a text elsewhere than we think; a name may have been cut in two.
        let is_doubtful = statement.has_failed
            || statement.keeps_backslashes && statement.text.contains('\\')
            || words.iter().any(|word| word.contains('\u{FFFD}'));
        match DdlStatement::read(&mut reader) {
            DdlStatement::Irrelevant | DdlStatement::Use(_) => StatementEffect::None,
            DdlStatement::Unreadable => StatementEffect::Unclear(Some(words)),
            _ if is_doubtful => {
                let is_named = !words.iter().any(|word| word.contains('\u{FFFD}'));
                StatementEffect::Unclear(is_named.then_some(words))
            }
            mut read => {
                if !statement.text.is_ascii() {
                    read.forget_defaults();
                }
                StatementEffect::Ddl(read)
            }
        }
    }
}

/// The names that a statement mentions, in small letters; `None`: it can't be split into words.
pub(crate) fn names_in(text: &str) -> Option<HashSet<String>> {
    let reader = TokenReader::of(text).ok()?;
    Some(reader.tokens.iter().filter_map(name_in).collect())
}

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

    fn dispute(&mut self, name: &HistoryName) {
        let versions = self.names.get(name).into_iter().flatten().filter_map(|(_, id)| *id);
        for id in versions.collect::<Vec<_>>() {
            self.dispute_version(id);
        }
    }

    fn dispute_version(&mut self, id: VersionId) {
        if let Some(version) = self.versions.get_mut(id) {
            version.is_disputed = true;
        }
    }

    /// Whether a statement after this place may have changed the table of this name.
    pub fn touches(&self, since: HistoryPlace, database: &str, table: &str) -> bool {
        let name = (database.to_lowercase(), table.to_lowercase());
        let is_later = |turn: TurnId| self.turns.get(turn).is_some_and(|turn| turn.place > since);
        let mut periods = self.names.get(&name).into_iter().flatten();
        periods.any(|(turn, _)| turn.is_some_and(is_later))
            || self.sweeps.iter().any(|(turn, sweep)| is_later(*turn) && sweep.touches(&name))
    }

    /// How many statements before a place may have changed tables: as long as it is the same, so are all tables.
    pub fn statements_before(&self, place: HistoryPlace) -> usize {
        self.turns.partition_point(|turn| turn.place < place)
    }

    /// Whether both have the same statements.
    pub fn has_statements_of(&self, other: &TableHistory) -> bool {
        self.turns == other.turns
    }

    /// Finds what can be known, with the tables as they are after all statements.
    pub fn settle(&mut self, now: SchemaFile) {
        self.settle_at(now, None);
    }

    /// Finds what can be known, with the tables as they are at a place of the logs; `None`: at the end.
    pub fn settle_at(&mut self, now: SchemaFile, now_at: Option<HistoryPlace>) {
        (self.now, self.now_at) = (now, now_at);
        let now_at = now_at.unwrap_or(HistoryPlace::END);
        let last: Vec<(VersionId, DefinedTable)> = self
            .names
            .keys()
            .filter_map(|name| {
                let mut spelled = self.spellings.get(name)?.iter().chain([name]);
                let table = spelled
                    .find_map(|(database, table)| self.now.table(database.as_bytes(), table.as_bytes()))?;
                let (_, version) = self.version_at(now_at, name)?;
                Some((version?, table.clone()))
            })
            .collect();
        for (id, table) in last {
            self.learn(id, Some(table.clone()));
            // The server's own words rather than those of the statement.
            if let Some(version) = self.versions.get_mut(id).filter(|version| !version.is_disputed) {
                version.table = Some(table);
            }
        }
        // Forward and backward, as long as it tells more.
        while self.go_through() {}
        // A table that is gone by the statements can't be one of now: the schema is older than they are.
        let gone = self.names.keys().filter(|name @ (database, table)| {
            let is_gone = self.version_at(now_at, name).is_some_and(|(_, version)| version.is_none());
            is_gone && self.now.table(database.as_bytes(), table.as_bytes()).is_some()
        });
        for name in gone.cloned().collect::<Vec<_>>() {
            self.dispute(&name);
        }
        // By the server's settings these are one table or two.
        let both_cases = self.spellings.iter().filter(|(_, spelled)| spelled.len() > 1);
        for name in both_cases.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.dispute(&name);
        }
        self.spread(|version| &mut version.is_disputed);
        self.spread(|version| &mut version.has_disputed_defaults);
        for version in self.versions.iter_mut().filter(|version| version.has_disputed_defaults) {
            version.table.iter_mut().for_each(|table| table.forget_defaults(|_| true));
        }
    }

    /// Derives each version from its neighbours; `true`: something new is known.
    fn go_through(&mut self) -> bool {
        let mut is_new = false;
        for number in 0..self.successions.len() {
            let Some(Succession { from, to, change, .. }) = self.successions.get(number) else { continue };
            let to = *to;
            let table = self.versions.get(*from).and_then(|from| from.table.as_ref());
            let after = table.and_then(|table| match change {
                Change::Altered(actions) => table.altered(actions),
                Change::Like => Some(table.like(&table.name)),
                Change::OtherRows => Some(table.clone()),
                Change::Unclear => None,
            });
            let should_follow = matches!(change, Change::Altered(_));
            if should_follow && table.is_some() && after.is_none() {
                // It can't have been done to this table.
                self.dispute_version(to);
            }
            is_new |= self.learn(to, after);
        }
        for number in (0..self.successions.len()).rev() {
            let Some(Succession { from, to, change, .. }) = self.successions.get(number) else { continue };
            let from = *from;
            let table = self.versions.get(*to).and_then(|to| to.table.as_ref());
            let before = table.and_then(|table| match change {
                Change::Altered(actions) => table.before(actions),
                Change::Like => Some(table.like(&table.name)),
                Change::OtherRows => Some(table.clone()),
                Change::Unclear => None,
            });
            is_new |= self.learn(from, before);
        }
        is_new
    }

    /// A version is this table; `true`: that is new.
    fn learn(&mut self, id: VersionId, table: Option<DefinedTable>) -> bool {
        let (Some(version), Some(table)) = (self.versions.get_mut(id), table) else { return false };
        match &mut version.table {
            None => {
                version.table = Some(table);
                true
            }
            Some(known) => {
                version.is_disputed |= !known.has_columns_of(&table);
                version.has_disputed_defaults |= !known.learn_defaults(&table);
                false
            }
        }
    }

    /// A table that is disputed anywhere is so in all its versions: which side is wrong isn't known.
    fn spread(&mut self, flag: fn(&mut Version) -> &mut bool) {
        let mut neighbours: Vec<Vec<VersionId>> = vec![Vec::new(); self.versions.len()];
        let followed = self.successions.iter().filter(|one| !matches!(one.change, Change::Unclear));
        for Succession { from, to, .. } in followed {
            for (one, other) in [(from, to), (to, from)] {
                if let Some(neighbours) = neighbours.get_mut(*one) {
                    neighbours.push(*other);
                }
            }
        }
        let disputed =
            self.versions.iter_mut().enumerate().filter_map(|(id, version)| flag(version).then_some(id));
        let mut to_visit: Vec<VersionId> = disputed.collect();
        while let Some(id) = to_visit.pop() {
            for neighbour in neighbours.get_mut(id).map(std::mem::take).unwrap_or_default() {
                let is_disputed =
                    self.versions.get_mut(neighbour).map(flag).filter(|is_disputed| !**is_disputed);
                if let Some(is_disputed) = is_disputed {
                    *is_disputed = true;
                    to_visit.push(neighbour);
                }
            }
        }
    }

    /// The table that stood under a name at a place of the logs, which has no statement of its own.
    pub fn at(&self, place: HistoryPlace, database: &str, table: &str) -> TableThen<'_> {
        let name = (database.to_lowercase(), table.to_lowercase());
        let is_spelled = |(own, name): &(String, String)| own == database && name == table;
        // By the server's settings a name that differs in case is this one or another.
        let differs = self.spellings.get(&name).is_some_and(|spelled| !spelled.iter().any(is_spelled));
        let Some((since, version)) = self.version_at(place, &name).filter(|_| !differs) else {
            let other = self.names.get(&name).into_iter().flatten().filter_map(|(turn, _)| *turn);
            let other = other.filter_map(|turn| self.turns.get(turn)).find(|turn| turn.place > place);
            if let Some(turn) = self.swept_after(place, &name).or(other) {
                return TableThen::UnknownSince(turn);
            }
            let now = self.now.table(database.as_bytes(), table.as_bytes());
            return now.map_or(TableThen::NotTold, TableThen::Known);
        };
        let unknown = |turn: Option<TurnId>| {
            let turn = turn.and_then(|turn| self.turns.get(turn));
            turn.map_or(TableThen::NotTold, TableThen::UnknownSince)
        };
        // It has rows, so it can't be gone.
        let Some(version) = version else {
            let first = || self.names.get(&name)?.iter().find_map(|(turn, _)| *turn);
            return unknown(since.or_else(first));
        };
        let Some(known) = self.versions.get(version) else { return TableThen::NotTold };
        match &known.table {
            _ if known.is_disputed => {
                let later = || self.names.get(&name)?.iter().rev().find_map(|(turn, _)| *turn);
                let turn = self.last_turn(version).or(known.dropped_by).or_else(later);
                let turn = turn.and_then(|turn| self.turns.get(turn));
                turn.map_or(TableThen::NotTold, TableThen::Disagrees)
            }
            Some(table) => TableThen::Known(table),
            None => unknown(self.why_unknown(version)),
        }
    }

    /// Finds, in the tables of now, the columns of the table that had a name at a place of the logs.
    pub fn columns_now(&self, place: HistoryPlace, database: &str, table: &str) -> ColumnsNow<'_> {
        let name = (database.to_lowercase(), table.to_lowercase());
        let TableThen::Known(then) = self.at(place, database, table) else { return ColumnsNow::Unknown };
        let mut names: Vec<_> = then.columns.iter().map(|column| Some((&*column.name, true))).collect();
        let gone = |turn: TurnId| self.turns.get(turn).map_or(ColumnsNow::Unknown, ColumnsNow::GoneSince);
        let mut now = then;
        if let Some((_, version)) = self.version_at(place, &name) {
            let Some(mut id) = version else { return ColumnsNow::Unknown };
            while let Some(version) = self.versions.get(id) {
                if let Some(turn) = version.dropped_by {
                    return gone(turn);
                }
                let Some(next) = version.next.and_then(|next| self.successions.get(next)) else { break };
                let Change::Altered(actions) = &next.change else { return gone(next.by) };
                for column in &mut names {
                    *column = column.and_then(|(name, was_same)| match AlterAction::fate(actions, name) {
                        ColumnFate::Dropped => None,
                        ColumnFate::Kept { name, is_same } => Some((name, was_same && is_same)),
                    });
                }
                id = next.to;
            }
            match self.names.get(&name).and_then(|versions| versions.last()) {
                Some((_, Some(last))) if *last == id => {}
                Some((Some(turn), _)) => return gone(*turn),
                _ => return ColumnsNow::Unknown,
            }
            let Some(last) = self.versions.get(id).and_then(|version| version.table.as_ref()) else {
                return ColumnsNow::Unknown;
            };
            now = last;
        }
        let mut columns = Vec::new();
        for (name, then) in names.into_iter().zip(&then.columns) {
            let Some((name, is_same)) = name else {
                columns.push(None);
                continue;
            };
            let Some(column) = now.columns.iter().find(|column| is_same_name(&column.name, name)) else {
                return ColumnsNow::Unknown;
            };
            let facts = column.facts.as_ref().zip(then.facts.as_ref());
            let takes_values = is_same || facts.is_some_and(|(now, then)| now.takes_values_of(then));
            columns.push(Some(KeptColumn { now: column, takes_values }));
        }
        ColumnsNow::Kept { now, columns }
    }

    fn version_at(&self, place: HistoryPlace, name: &HistoryName) -> Option<NamePeriod> {
        period_at(self.names.get(name)?, |turn| self.turns.get(turn).is_some_and(|turn| turn.place < place))
    }

    /// A statement between a place and the tables of now that may have changed a table which none of them names.
    fn swept_after(&self, place: HistoryPlace, name: &HistoryName) -> Option<&TurningPoint> {
        let turns = self.sweeps.iter().filter(|(_, sweep)| sweep.touches(name));
        let now_at = self.now_at.unwrap_or(HistoryPlace::END);
        let first = place.min(now_at);
        let last = place.max(now_at);
        let mut turns = turns.filter_map(|(turn, _)| self.turns.get(*turn));
        turns.find(|turn| turn.place > first && turn.place < last)
    }

    /// The first statement after which a version, or one that came of it, isn't followed.
    fn why_unknown(&self, mut id: VersionId) -> Option<TurnId> {
        loop {
            let version = self.versions.get(id)?;
            let Some(next) = version.next.and_then(|next| self.successions.get(next)) else {
                return version.dropped_by.or(version.made_by);
            };
            if self.versions.get(next.to)?.table.is_some() || matches!(next.change, Change::Unclear) {
                return Some(next.by);
            }
            id = next.to;
        }
    }

    /// The last statement that changed a table.
    fn last_turn(&self, mut id: VersionId) -> Option<TurnId> {
        let mut last = self.versions.get(id)?.made_by;
        while let Some(next) = self.versions.get(id)?.next.and_then(|next| self.successions.get(next)) {
            last = Some(next.by);
            id = next.to;
        }
        last
    }
}

/// The last of a name's periods that began before a place. They are in the order of the logs.
fn period_at(periods: &[NamePeriod], mut is_before: impl FnMut(TurnId) -> bool) -> Option<NamePeriod> {
    let count = periods.partition_point(|(turn, _)| turn.is_none_or(&mut is_before));
    periods.get(count.checked_sub(1)?).copied()
}

impl Sweep {
    pub(crate) fn touches(&self, (database, table): &HistoryName) -> bool {
        match self {
            Sweep::DroppedDatabase(dropped) => dropped == database,
            Sweep::Unclear(None) => true,
            Sweep::Unclear(Some(words)) => words.contains(table),
        }
    }

    /// Whether it may have dropped or renamed tables of a database.
    fn may_take_tables_of(&self, database: &str) -> bool {
        match self {
            Sweep::DroppedDatabase(dropped) => dropped == database,
            Sweep::Unclear(None) => true,
            Sweep::Unclear(Some(words)) => words.contains("rename") || words.contains("drop"),
        }
    }
}

/// A name that a token can be, in small letters.
fn name_in(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.value.to_lowercase()),
        Token::DoubleQuotedString(text) | Token::SingleQuotedString(text) => Some(text.to_lowercase()),
        _ => None,
    }
}

/// Whether text that can't be split into tokens can be DDL, whatever comments stand before it.
fn is_ddl(text: &str) -> bool {
    let text = text.to_lowercase();
    ["create", "alter", "drop", "rename"].iter().any(|verb| text.contains(verb))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod since_tests;
