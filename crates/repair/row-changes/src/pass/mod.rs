//! One pass over logs. Workers find the chosen rows and write them; the caller's thread puts the results in order, with
//! their transactions.
//!
//! ```text
//! events → worker (all cores): rows of chosen tables → Renderer → records in a spool, a batch at a time
//!        → Follower (in order): which transaction is open, was it chosen? → Listener: rows, statements, ends
//! ```
//!
//! A batch's records may be many times its size, so beyond a bound they go to a temporary file.

mod carried;
mod carried_rows;
mod changed_cells;
mod follow;
mod lost_keys;
mod order;
mod renderer;
mod replaced;
mod shortened;
mod tables_then;
mod targets;
mod together;
mod words;
mod work;

use std::io;

use binlogz_flow::events::{self, RunSummary, UnreadChanges};
use binlogz_flow::{Error as FlowError, Input};
use binlogz_payload::SpoolMemory;
use binlogz_schema::{SchemaFile, TableHistory};

use crate::choose::{ConditionError, Range, RowSelection};

pub use carried::CarryingKeys;
pub(crate) use carried::{KeysOfEvent, NamedReach};
pub(crate) use carried_rows::EventOfParent;
pub(crate) use changed_cells::content;
pub(crate) use follow::{
    ChoiceListener, FollowedTransaction, Follower, StatementAt, TransactionEnding, early_end,
};
pub(crate) use order::Break;
pub(crate) use renderer::{
    FollowedTables, NoRows, PassOnText, RebuiltColumns, Renderer, RowRendering, TableRow, digests_of,
    lacks_columns, row_digest,
};
pub(crate) use replaced::{OmittedColumns, REPLACED, UNSURE};
pub(crate) use shortened::shortened;
pub(crate) use tables_then::written_table;
pub(crate) use targets::changed_tables;
pub(crate) use together::ChangesTogether;
pub(crate) use words::StatementWords;
pub(crate) use work::changes_below;

/// Memory for the records of all batches under way.
const RECORDS_MEMORY: usize = 16 << 20;
/// Why a schema can't tell the names of a table's columns; the last statement that made another table of it follows.
pub(crate) const OTHER_SCHEMA: &str = "--schema has another table than the statements in the logs make of it";

/// The reason for the end of a pass.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A log can't be read.
    #[error(transparent)]
    Log(#[from] FlowError),
    /// The condition doesn't fit a table.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// Logs that can't be used as they are: the second of two doesn't follow the first.
    #[error("{0}")]
    Refused(String),
    /// A temporary file, or the output.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The aim of a pass, and its means.
pub(crate) struct Search<'o, R> {
    pub(crate) selection: &'o RowSelection,
    pub(crate) schema: Option<&'o SchemaFile>,
    pub(crate) history: Option<HistoryUse<'o>>,
    /// The foreign keys of which it is to be said what they carried on below the log.
    pub(crate) carrying: Option<&'o CarryingKeys<'o>>,
    pub(crate) renderer: &'o R,
    pub(crate) workers: usize,
}

impl<'o, R> Search<'o, R> {
    /// A search that knows nothing of tables but what the logs tell.
    pub(crate) fn new(selection: &'o RowSelection, renderer: &'o R, workers: usize) -> Self {
        Search { selection, schema: None, history: None, carrying: None, renderer, workers }
    }
}

/// The history of tables, and what their columns are called by it.
#[derive(Clone, Copy)]
pub(crate) struct HistoryUse<'o> {
    pub(crate) history: &'o TableHistory,
    /// As they are called now, for changes of the tables of now; otherwise as they were called then.
    pub(crate) as_now: bool,
}

/// Reads one log, under its name; `range` of its offsets is chosen. Returns how much was read, the chosen changes that
/// could not be read, and whether more logs are needed.
pub(crate) fn read_log<L: ChoiceListener, R: Renderer + Sync>(
    input: Input,
    (name, range): (&str, Range),
    search: &Search<'_, R>,
    follower: &mut Follower<L>,
    progress: &mut dyn FnMut(u64),
) -> Result<(RunSummary, bool), Error> {
    let memory = SpoolMemory::new(RECORDS_MEMORY);
    follower.begin_log(name, range);
    let log_number = follower.log_number;
    let mut trouble = None;
    let mut unread = UnreadChanges::default();
    let ran = events::run(
        input,
        search.workers,
        || Ok(work::PassWorker::new(search, (log_number, range), &memory)),
        |worker, batch| {
            let records = worker.batch(batch);
            // A pass that ends early has seen them too.
            Ok((records, batch.take_unread()))
        },
        |(records, of_batch)| {
            let taken = match records {
                Ok(records) => follower.take_batch(&records, search.selection, &of_batch),
                Err(error) => Err(error),
            };
            unread.add(of_batch);
            taken.map_err(|error| {
                trouble = Some(error);
                stop()
            })
        },
        progress,
    );
    match (ran, trouble) {
        (_, Some(Error::Io(error))) if follow::is_end(&error) => {
            Ok((RunSummary { unread, ..RunSummary::default() }, false))
        }
        (_, Some(error)) => Err(error),
        (Ok(RunSummary { read, unread: others }), None) => {
            unread.add(others);
            Ok((RunSummary { read, unread }, true))
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// The way out of a run: the cause is kept beside it.
fn stop() -> FlowError {
    FlowError::Output(io::Error::other("the pass was ended").into())
}
