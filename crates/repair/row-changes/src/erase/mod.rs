//! Takes values out of logs: of the rows that a condition chooses, columns become NULL or empty, or the rows go.
//!
//! ```text
//! plan         what becomes of each column of a table, by its map and what schema and statements tell
//! rows         the rows of an event without the values
//! statement    the events of the statement that passes; which of them go with its rows
//! events       the events of a transaction, kept until its length is known
//! findings     statements and texts that may hold the values, which stay
//! log          a whole log, event by event, with positions and checksums
//! ```
//!
//! All images of a chosen row lose the values: the one before the change, and the one after it. A transaction stays with its GTID, even if nothing
//! is left of it. All other events stay as they are; only their positions move.

mod events;
mod findings;
mod log;
mod plan;
mod rows;
mod statement;

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_flow::{Input, ReadAt, walk};
use binlogz_schema::{TablesOfLogs, TablesSoFar};

use crate::choose::Condition;
use crate::pass::Error;
use findings::StatementLook;
pub use findings::{MayHold, StatementFinding, StatementFindings};
use log::LogRewriting;
use plan::PlannedTables;

/// What is erased.
#[derive(Debug, Clone)]
pub struct ErasureAim {
    /// The table: its database and its name.
    pub table: (String, String),
    /// The rows: those of which one image meets this.
    pub condition: Condition,
    /// Whether the rows go; otherwise only values of these columns do.
    pub rows: bool,
    /// The columns that become NULL, by name or as `@3`.
    pub null: Vec<String>,
    /// The columns that get their type's empty value.
    pub blank: Vec<String>,
    /// Whether the texts of all statements that name the table go, not only of those with such rows.
    pub texts: bool,
}

impl ErasureAim {
    /// `database.table`, for messages.
    pub fn shown(&self) -> String {
        format!("{}.{}", self.table.0, self.table.1)
    }
}

/// What a pass over logs found and erased.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasureCounts {
    /// Row changes whose values were erased, or that were taken out.
    pub rows: u64,
    /// Transactions with such rows.
    pub transactions: u64,
    /// Texts of statements, beside such rows or naming the table, that are taken out.
    pub texts: u64,
    /// Row changes of the table of which the condition can't be decided, since their images lack columns.
    pub undecided: u64,
    /// Events with such rows whose other rows had to be written anew: with the same values, though perhaps in other bytes.
    pub rewritten_alike: u64,
}

/// What is left of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogErasure {
    /// What was erased from it.
    pub counts: ErasureCounts,
    /// Up to this offset what is left has the bytes of the log; `None`: all of it has.
    pub same_until: Option<u64>,
}

/// Goes over the logs of an archive in their order, and erases.
pub struct Eraser<'a> {
    aim: &'a ErasureAim,
    planned: PlannedTables<'a>,
    findings: StatementFindings,
    counts: ErasureCounts,
}

impl std::fmt::Debug for Eraser<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Eraser").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<'a> Eraser<'a> {
    /// Before the first log. `tables` tells columns' names and keys where the logs don't.
    pub fn new(aim: &'a ErasureAim, tables: Arc<TablesOfLogs>) -> Self {
        let planned = PlannedTables::new(aim, tables, TablesSoFar::default());
        Eraser { aim, planned, findings: StatementFindings::default(), counts: ErasureCounts::default() }
    }

    /// The next log stays as it is. Of it, only parts with statements have to be there.
    ///
    /// # Errors
    ///
    /// A log that can't be read.
    pub fn pass(&mut self, name: &str, log: Input) -> Result<(), Error> {
        self.planned.begin_log(name);
        let mut look = StatementLook::new(self.aim, name, &mut self.planned, &mut self.findings);
        walk(log, &mut look)?;
        look.finish()
    }

    /// Writes what is left of the next log.
    ///
    /// # Errors
    ///
    /// A log that can't be read, with where; a condition or columns that don't fit the table; output that fails.
    pub fn write(
        &mut self,
        name: &str,
        log: Arc<dyn ReadAt>,
        out: &mut dyn Write,
    ) -> Result<LogErasure, Error> {
        self.planned.begin_log(name);
        let mut rewriting = LogRewriting::new(self.aim, name, &mut self.planned, &mut self.findings, out);
        rewriting.run(log)?;
        let erasure = rewriting.finish();
        self.counts.add(&erasure.counts);
        Ok(erasure)
    }

    /// What was erased so far.
    pub fn counts(&self) -> &ErasureCounts {
        &self.counts
    }

    /// The statements that may hold the values, and stay.
    pub fn findings(&self) -> &StatementFindings {
        &self.findings
    }

    /// The columns that the table had nowhere in these logs, though it was there.
    pub fn unmet_columns(&self) -> Vec<&str> {
        match self.planned.has_met_table() {
            false => Vec::new(),
            true => self.planned.unmet_columns(),
        }
    }
}

impl ErasureCounts {
    /// Whether anything was erased.
    pub fn is_any(&self) -> bool {
        self.rows + self.texts > 0
    }

    fn add(&mut self, other: &ErasureCounts) {
        self.rows += other.rows;
        self.transactions += other.transactions;
        self.texts += other.texts;
        self.undecided += other.undecided;
        self.rewritten_alike += other.rewritten_alike;
    }
}

/// A log whose end is missing.
fn cut() -> Error {
    Error::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "the log ends within an event"))
}
