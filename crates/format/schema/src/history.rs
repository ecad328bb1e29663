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

mod lookup;
mod lost_keys;
mod record;
mod settle;
mod since;
mod statement;

use std::collections::{HashMap, HashSet};

use crate::alter::AlterAction;
use crate::foreign_key::ForeignKey;
use crate::schema_file::SchemaFile;
use crate::table::{DefinedColumn, DefinedTable};

pub use lost_keys::{LostForeignKeys, LostKeysTable, TableIdentity};
pub use since::{NoTableWay, TableWay, WayColumn};
pub use statement::{RecordedStatement, TurningPoint};
pub(crate) use statement::{StatementEffect, names_in};

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

#[cfg(test)]
mod tests;

#[cfg(test)]
mod since_tests;
