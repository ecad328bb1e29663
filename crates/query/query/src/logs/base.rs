//! A base: where the rows of tables are known at a moment, besides what logs tell of their changes.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;

use binlogz_archive::format::contents::KeyProbe;
use binlogz_archive::part::BlockRun;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_flow::{FactsUpTo, Input, LogFacts};

use crate::Result;

/// A moment of a base's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseMoment {
    /// Before the first transaction, in the log's order, that was committed at this time or later, in microseconds since 1970.
    Before(i64),
    /// After this transaction.
    After(Gtid),
    /// When just these transactions had been executed.
    Executed(GtidSet),
}

impl fmt::Display for BaseMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseMoment::Before(time) => write!(f, "before {time}"),
            BaseMoment::After(gtid) => write!(f, "after {gtid}"),
            BaseMoment::Executed(gtids) => write!(f, "{gtids}"),
        }
    }
}

/// A table of a base as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseTable {
    /// The database that the table is in.
    pub database: String,
    /// The name of the table.
    pub name: String,
    /// The columns whose values a base has, in their order; empty: they aren't known.
    pub columns: Vec<String>,
}

/// A value of a column, as a query names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BaseValue {
    /// A whole number.
    Number(i128),
    /// A text.
    Text(String),
}

/// A column that has one of these values in each wanted row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BaseCondition {
    /// The name of the column at the moment.
    pub column: String,
    /// The values: at least one, and few.
    pub values: Vec<BaseValue>,
}

/// The rows of a table that are wanted of a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseWish {
    /// All of them.
    All,
    /// None, for the columns are wanted alone.
    Columns,
    /// Rows that meet all of these conditions. The answer may have other rows, too.
    Meeting(Vec<BaseCondition>),
}

/// How many blocks of archives were needed to tell what a base told.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct BaseBlocks {
    /// Blocks that were unpacked as a whole.
    pub read: usize,
    /// Blocks of which the column of a key was unpacked.
    pub searched: usize,
    /// Blocks that were not unpacked as a whole.
    pub skipped: usize,
}

impl std::ops::AddAssign for BaseBlocks {
    fn add_assign(&mut self, other: BaseBlocks) {
        self.read += other.read;
        self.searched += other.searched;
        self.skipped += other.skipped;
    }
}

/// What a base wrote of a table at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseRows {
    /// Whether all rows were written, wanted or not: to find some takes as long.
    pub are_all: bool,
    /// What was read of archives.
    pub blocks: BaseBlocks,
    /// The columns that the rows have, in their order.
    pub columns: Vec<String>,
    /// The columns of the key by which rows are told apart: what each is called now, and was called then. Empty: it isn't among the columns.
    pub key: Vec<(String, String)>,
}

/// Rows of a table by the values of one column.
#[derive(Debug, Clone, Copy)]
pub struct KeyedRows<'a> {
    /// Database and name of the table.
    pub table: (&'a str, &'a str),
    /// The place of the column in the rows.
    pub column: usize,
    /// The values.
    pub probes: &'a [KeyProbe],
}

/// The logs of a query, for a base that needs those which it hasn't itself.
pub trait WholeLogs {
    /// How many there are.
    fn count(&self) -> usize;

    /// A log as the user gave it, and all of it to be read.
    ///
    /// # Errors
    ///
    /// A log that can't be opened.
    fn whole(&self, index: usize) -> Result<(&str, Input)>;

    /// Bytes of a log of which no part can be left out; 0: its archive knows its parts.
    fn undivided_size(&self, index: usize) -> u64;

    /// Goes through the parts of an archived log, in its order; `false`: it has none.
    ///
    /// # Errors
    ///
    /// An archive that can't be read.
    fn each_part(&self, index: usize, take: &mut dyn FnMut(&BlockRun<'_>)) -> Result<bool>;

    /// A log without its parts that don't begin at one of these places; and whether it has the others too.
    ///
    /// # Errors
    ///
    /// A log that can't be opened.
    fn parts(&self, index: usize, starts: &BTreeSet<u64>) -> Result<(&str, Input, bool)>;

    /// The parts at these places that may have a row whose column has one of the values, before or after its change; and how many
    /// blocks were looked into.
    ///
    /// # Errors
    ///
    /// An archive that can't be read.
    fn parts_with(
        &self,
        index: usize,
        starts: &BTreeSet<u64>,
        wanted: &KeyedRows<'_>,
    ) -> Result<(BTreeSet<u64>, usize)>;

    /// The GTIDs of the transactions that begin in the part of an archived log at this place, in their order; `None`: its archive doesn't tell
    /// them, or one has none.
    ///
    /// # Errors
    ///
    /// An archive that can't be read.
    fn gtids_in_order(&self, index: usize, start: u64) -> Result<Option<Vec<Gtid>>>;

    /// The facts of a log that tell which one it follows.
    ///
    /// # Errors
    ///
    /// A log that can't be read.
    fn sequence_facts(&self, index: usize, up_to: FactsUpTo) -> Result<LogFacts>;

    /// Another input that is read for the statement, which ends when the statement is to stop.
    fn for_statement(&self, input: Input) -> Input;
}

/// Tells tables as they were. Errors are lines for people.
pub trait TableBase: fmt::Debug + Send + Sync {
    /// The moment that a user wrote after AS OF.
    ///
    /// # Errors
    ///
    /// A text that is no moment, or a moment that is still to come.
    fn moment(&self, text: &str) -> Result<BaseMoment, String>;

    /// Writes a binary log with the table maps of all tables as they are now.
    ///
    /// # Errors
    ///
    /// A base that can't be read.
    fn write_maps(&self, out: &mut dyn Write) -> Result<Vec<BaseTable>, String>;

    /// Writes a binary log with the rows that a table, by its database and name then, had at a moment, as inserts, or if it had none, with its
    /// map alone. `None`: there is no such table. The logs are those of the query. Rows that aren't wanted may be among them.
    ///
    /// # Errors
    ///
    /// Rows that can't be told exactly; the line says after which statement, or since where.
    fn write_rows(
        &self,
        table: (&str, &str),
        moment: (&BaseMoment, &BaseWish),
        logs: &dyn WholeLogs,
        out: &mut dyn Write,
    ) -> Result<Option<BaseRows>, String>;
}
