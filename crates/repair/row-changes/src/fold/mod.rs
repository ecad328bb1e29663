//! Folds logs: a binary log that has the same effect as the logs read, with one net change for each row.
//!
//! ```text
//! logs ─ tables: statements, read ahead: which key holds where ─┐
//! logs ─ worker (all cores): events, changes of rows ───────────┴→ follow: whole transactions, in order
//!        foldable → net: first image before and last image after, by key; beyond a bound, sorted runs
//!        border   → the net changes so far, ordered; then the transaction as it is
//! ordered → write: deletes, then updates, then inserts, in transactions of a bounded number of rows
//! ```
//!
//! A border is a transaction that goes through as it is: statements, XA, whatever lacks columns. Before it stands everything that
//! came before it, so each segment between two borders is folded by itself.
//!
//! A row is known by the value of its key, as bytes: an update of the key is a delete of one value and an insert of the other, so
//! swaps need nothing more. A table without a key that is known for certain is folded by images: each is counted, up and down.
//! That is right for any table as long as images have all columns.
//!
//! The order makes constraints hold at every step. After all deletes, and updates that leave unique keys alone, there are only rows
//! that are there in the end, with the values of unique keys that they have in the end; inserts then meet no other's value. So an
//! update that changes a unique key, or may, becomes a delete and an insert. Foreign keys aren't checked, as the events' flags say:
//! the state in the end is one that the source had, and all rows that foreign keys changed are in the log (since 9.6), or the
//! transaction is a border (before).
//!
//! Read backwards, the order is right as well: inserts are taken back first, then updates, then deletes. So a log that is to be taken
//! back has everything since a moment, and `script` does the rest. In it the rows of tables with foreign keys are one transaction for each
//! segment: only before and after it does every row have those that it refers to.
//! For a log with GTIDs see `gtids`.

mod border;
mod follow;
mod gtids;
mod net;
mod numbers;
mod sides;
mod tables;
mod worker;
mod write;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::num::NonZeroU64;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_flow::events::{self, RunSummary};
use binlogz_flow::{Error as FlowError, Input};
use binlogz_payload::SpoolMemory;

use crate::apply::SplitTables;
use crate::choose::RowSelection;
use crate::digest::Digests;
use crate::pass::Error;
use crate::past::TableMoment;
use follow::{FoldFollower, FollowEnd};
use worker::FoldWorker;

pub use border::BorderCount;
pub use numbers::LargestNumber;
pub use tables::FoldTables;
pub use write::FoldAim;

/// Memory for the records of all batches under way.
const RECORDS_MEMORY: usize = 16 << 20;

/// The range that is folded, and the size of the transactions that come of it.
#[derive(Debug, Clone)]
pub struct FoldOptions {
    /// Transactions that the target has already: they are left out.
    pub excluded: GtidSet,
    /// Where to begin; `None`: at the beginning of the logs.
    pub since: Option<TableMoment>,
    /// Where to stop; `None`: at the end of the logs.
    pub until: Option<TableMoment>,
    /// Which tables' rows are folded; no tables are chosen: all.
    pub selection: RowSelection,
    /// What becomes of the folded log.
    pub aim: FoldAim,
    /// The most rows of a transaction that is written to be applied.
    pub transaction_rows: NonZeroU64,
    /// The transactions before a log in which each has a GTID of the range: those that stand for others one of these, the others their own. `None`:
    /// all are anonymous.
    pub previous: Option<GtidSet>,
}

/// What was folded, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldSummary {
    /// Transactions of the range.
    pub transactions: u64,
    /// Transactions that were left out, since the target has them.
    pub excluded: u64,
    /// Changes of rows that were folded.
    pub changes: u64,
    /// Transactions that were written, borders among them.
    pub written: u64,
    /// Rows that are inserted.
    pub inserted: u64,
    /// Rows that are updated.
    pub updated: u64,
    /// Rows that are deleted.
    pub deleted: u64,
    /// Transactions that went through as they are, by reason.
    pub borders: Vec<BorderCount>,
    /// The GTIDs of the range.
    pub gtids: GtidSet,
    /// The first one in the logs' order.
    pub first: Option<Gtid>,
    /// The last one in the logs' order.
    pub last: Option<Gtid>,
    /// Those that the log has.
    pub given: GtidSet,
    /// For a log with GTIDs: the largest numbers that columns were given by transactions that were folded.
    pub numbers: Vec<LargestNumber>,
    /// A transaction that the last log doesn't have to its end, as `LOG at OFFSET`.
    pub cut: Option<String>,
    /// Whether the moment to begin at was in the logs, or before them, if there is one.
    pub has_begun: bool,
    /// Whether the moment to stop at was in the logs, if there is one.
    pub has_met_moment: bool,
    /// Names the rows of other tables that the statements of chosen rows changed too.
    pub together: Option<String>,
    /// The tables with rows that the folded log deletes and inserts.
    pub split: SplitTables,
    /// The places of the chosen tables that the logs have rows of.
    pub tables_met: BTreeSet<usize>,
    /// All transactions up to the end, those before the moment to begin at and before the logs among them, as far as the logs tell.
    pub up_to_end: GtidSet,
}

/// Folds logs, which are read in their order.
pub struct Fold<'o> {
    tables: Option<&'o FoldTables>,
    follower: FoldFollower<'o>,
    digests: Digests,
    logs: u64,
}

impl<'o> Fold<'o> {
    /// Nothing read yet. `tables` are those of the logs, read ahead; `None`: the logs can't be read twice.
    ///
    /// # Errors
    ///
    /// The output can't be written.
    pub fn new(
        tables: Option<&'o FoldTables>,
        options: FoldOptions,
        out: &'o mut dyn Write,
    ) -> io::Result<Self> {
        let follower = FoldFollower::new(options, tables, out)?;
        Ok(Fold { tables, follower, digests: Digests::default(), logs: 0 })
    }

    /// Reads a log. `false`: the moment to stop at has passed.
    ///
    /// # Errors
    ///
    /// A log that can't be read, or is MariaDB's; changes that contradict each other; a temporary file, the output.
    pub fn read(
        &mut self,
        input: Input,
        name: &str,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(RunSummary, bool), Error> {
        self.logs += 1;
        let log = self.logs;
        let tables = self.tables;
        let digests = &self.digests;
        let follower = &mut self.follower;
        follower.begin_log(name)?;
        let takes_numbers = follower.takes_numbers();
        let memory = SpoolMemory::new(RECORDS_MEMORY);
        let mut ended = None;
        let ran = events::run(
            input,
            workers,
            || Ok(FoldWorker::new(tables, digests, (log, workers), (&memory, takes_numbers))),
            |worker, batch| Ok(worker.batch(batch)),
            |records| {
                let taken =
                    records.map_err(FollowEnd::Error).and_then(|records| follower.take_batch(&records));
                taken.map_err(|end| {
                    ended = Some(end);
                    FlowError::Output(io::Error::other("the pass was ended").into())
                })
            },
            progress,
        );
        match (ran, ended) {
            (_, Some(FollowEnd::Moment)) => Ok((RunSummary::default(), false)),
            (_, Some(FollowEnd::Error(error))) => Err(error),
            (ran, None) => Ok((ran?, !follower.is_over())),
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// Changes that contradict each other; a temporary file, the output.
    pub fn finish(self) -> Result<FoldSummary, Error> {
        self.follower.finish()
    }
}
