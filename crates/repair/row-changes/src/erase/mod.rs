//! Takes values out of logs: of the rows that a condition chooses, columns become NULL or empty, or the rows go.
//!
//! ```text
//! aim          the tables, conditions and columns; children by foreign key
//! references   which tables refer to which
//! key_numbers  numbers of a key without which a row meets no condition
//! plan         what becomes of each column of a table, by its map and what schema and statements tell
//! choice       which rows are chosen: by conditions, and by what they refer to
//! rows         the rows of an event without the values
//! statement    the events of the statement that passes; which of them go with its rows
//! events       the events of a transaction, kept until its length is known
//! findings     statements and texts that may hold the values, which stay
//! log          a whole log, event by event, with positions and checksums
//! ```
//!
//! All images of a chosen row lose the values: the one before the change, and the one after it. A transaction stays with its GTID, even if nothing
//! is left of it. All other events stay as they are; only their positions move.

mod aim;
mod choice;
mod events;
mod findings;
mod key_numbers;
mod log;
mod plan;
mod references;
mod rows;
mod statement;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_flow::{Input, ReadAt, walk};
use binlogz_schema::{TablesOfLogs, TablesSoFar};

use crate::pass::Error;
pub use aim::ErasureAim;
use choice::ReferredRows;
use findings::StatementLook;
pub use findings::{MayHold, StatementFinding, StatementFindings};
use log::LogRewriting;
use plan::PlannedTables;
pub use references::{ChildReference, LoggedDefinitions, NoDatabaseOfKey};
use rows::RemainingRows;

/// What a pass over logs found and erased.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasureCounts {
    /// Row changes whose values were erased, or that were taken out.
    pub rows: u64,
    /// Transactions with such rows.
    pub transactions: u64,
    /// Of them and of those that were chosen, how many each table has, in the order of [`ErasureAim::names`].
    pub tables: Vec<TableCounts>,
    /// Texts of statements, beside such rows or naming a table, that are taken out.
    pub texts: u64,
    /// Row changes of which it can't be decided whether they are chosen, since their images lack columns.
    pub undecided: u64,
    /// Events with such rows whose other rows had to be written anew: with the same values, though perhaps in other bytes.
    pub rewritten_alike: u64,
}

/// The row changes of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Those that were chosen.
    pub chosen: u64,
    /// Those of them whose values were erased, or that were taken out.
    pub erased: u64,
}

/// What is left of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogErasure {
    /// What was erased from it.
    pub counts: ErasureCounts,
    /// Up to this offset what is left has the bytes of the log; `None`: all of it has.
    pub same_until: Option<u64>,
    /// Of the blocks that were asked for, where they began and where what is left of them begins; those are missing that began within an event.
    pub block_begins: Vec<(u64, u64)>,
    /// Where those of them began of which more than positions is other than it was; 0 is the first, which begins with the log.
    pub changed_blocks: BTreeSet<u64>,
}

/// Goes over the logs of an archive in their order, and erases.
pub struct Eraser<'a> {
    aim: &'a ErasureAim,
    planned: PlannedTables<'a>,
    findings: StatementFindings,
    counts: ErasureCounts,
    referred: ReferredRows,
}

impl std::fmt::Debug for Eraser<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Eraser").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<'a> Eraser<'a> {
    /// Before the first log. `tables` tells columns' names and keys where the logs don't.
    pub fn new(aim: &'a ErasureAim, tables: Arc<TablesOfLogs>) -> Self {
        Eraser {
            aim,
            planned: PlannedTables::new(aim, tables, TablesSoFar::default()),
            findings: StatementFindings::default(),
            counts: ErasureCounts::of(aim),
            referred: ReferredRows::default(),
        }
    }

    /// Whether a pass over all logs found more that rows of children may refer to than was known before it: such rows may have passed before, so
    /// there has to be [another](Self::following).
    pub fn has_grown(&mut self) -> bool {
        self.aim.follows() && self.referred.has_grown()
    }

    /// Before the first log, with all that this one found of what rows of children refer to.
    #[must_use]
    pub fn following(&mut self, tables: Arc<TablesOfLogs>) -> Self {
        Eraser { referred: std::mem::take(&mut self.referred), ..Eraser::new(self.aim, tables) }
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

    /// Writes what is left of the next log, which is packed in blocks that begin at these offsets.
    ///
    /// # Errors
    ///
    /// A log that can't be read, with where; a condition or columns that don't fit the table; output that fails.
    pub fn write(
        &mut self,
        name: &str,
        log: Arc<dyn ReadAt>,
        blocks: &[u64],
        out: &mut dyn Write,
    ) -> Result<LogErasure, Error> {
        self.take(name, (log, &[]), (blocks, out))
    }

    /// Counts what would be erased from the next log. Parts between two transactions may be left out of it, which have no such rows, statements
    /// or texts.
    ///
    /// # Errors
    ///
    /// As [`Eraser::write`].
    pub fn look(
        &mut self,
        name: &str,
        log: Arc<dyn ReadAt>,
        gaps: &[Range<u64>],
    ) -> Result<ErasureCounts, Error> {
        self.take(name, (log, gaps), (&[], &mut io::sink())).map(|erasure| erasure.counts)
    }

    fn take(
        &mut self,
        name: &str,
        (log, gaps): (Arc<dyn ReadAt>, &[Range<u64>]),
        (blocks, out): (&[u64], &mut dyn Write),
    ) -> Result<LogErasure, Error> {
        self.planned.begin_log(name);
        let mut rewriting = LogRewriting::new(
            self.aim,
            (name, &mut self.referred),
            &mut self.planned,
            &mut self.findings,
            (blocks, out),
        );
        rewriting.run(log, gaps)?;
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

    /// The columns that no table had in these logs, though such tables were there.
    pub fn unmet_columns(&self) -> Vec<&str> {
        self.planned.unmet_columns()
    }
}

impl ErasureCounts {
    /// Whether anything was erased.
    pub fn is_any(&self) -> bool {
        self.rows + self.texts > 0
    }

    fn of(aim: &ErasureAim) -> Self {
        ErasureCounts { tables: vec![TableCounts::default(); aim.names().len()], ..ErasureCounts::default() }
    }

    /// The rows of an event of the table with this number.
    fn add_rows(&mut self, table: usize, rows: &RemainingRows) {
        self.rows += rows.erased;
        self.undecided += rows.undecided;
        self.rewritten_alike += u64::from(rows.rows.is_some() && !rows.is_exact && rows.left > 0);
        if let Some(counts) = self.tables.get_mut(table) {
            counts.chosen += rows.chosen;
            counts.erased += rows.erased;
        }
    }

    fn add(&mut self, other: &ErasureCounts) {
        for (own, other) in self.tables.iter_mut().zip(&other.tables) {
            own.chosen += other.chosen;
            own.erased += other.erased;
        }
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
