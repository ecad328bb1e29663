//! A base: where the rows of tables are known at a moment, besides what logs tell of their changes.

use std::fmt;
use std::io::Write;

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

/// What a base wrote of a table at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseRows {
    /// The columns that the rows have, in their order.
    pub columns: Vec<String>,
    /// The columns of the key by which rows are told apart: what each is called now, and was called then. Empty: it isn't among the columns.
    pub key: Vec<(String, String)>,
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
    /// map alone. `None`: there is no such table. The logs are those of the query.
    ///
    /// # Errors
    ///
    /// Rows that can't be told exactly; the line says after which statement, or since where.
    fn write_rows(
        &self,
        table: (&str, &str),
        moment: &BaseMoment,
        logs: &dyn WholeLogs,
        out: &mut dyn Write,
    ) -> Result<Option<BaseRows>, String>;
}
