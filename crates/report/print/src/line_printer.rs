//! Parts shared by the printers of lines: JSON lines, and row changes in the formats of other programs.

use binlogz_binlog::gtid::Gtid;
use binlogz_flow::Error;
use binlogz_flow::events::{EventBatch, EventList};

use crate::met::MetRequests;

/// Whether there is more to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// There may be.
    GoesOn,
    /// Nothing after this is asked for.
    Ends,
}

/// The state that a printer hands from batch to batch.
pub trait LineState: Clone + Default + Send {
    /// Prepares for the next log.
    fn begin_log(&mut self);

    /// The requests met so far.
    fn met(&self) -> MetRequests;
}

/// A worker's printer, used for all its batches of a log.
pub trait LinePrinter {
    /// State that depends on the order of events, handed from batch to batch.
    type State: LineState;

    /// Takes the table maps in force where a batch begins.
    ///
    /// # Errors
    ///
    /// A table map that can't be read.
    fn begin_batch(&mut self, batch: &EventBatch<'_>) -> Result<(), Error>;

    /// Passes over the events that were read ahead, without printing any. Errors in an event are found where
    /// it is printed.
    fn pass(&self, batch: &EventBatch<'_>, list: &EventList, state: &mut Self::State);

    /// Appends the lines of a batch's events, as far as they were read ahead into the list. Calls `flush`
    /// with whole lines, which it may take.
    ///
    /// # Errors
    ///
    /// Events that can't be read: the lines before them are whole. The errors of `flush`.
    fn print<E: From<Error>>(
        &mut self,
        batch: &EventBatch<'_>,
        list: &EventList,
        state: &mut Self::State,
        out: &mut Vec<u8>,
        flush: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Flow, E>;

    /// The transactions whose lines were completed since the last call, as far as they have GTIDs.
    fn take_finished(&mut self) -> FinishedTransactions {
        FinishedTransactions::default()
    }
}

/// Transactions whose lines were all made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinishedTransactions {
    /// GTIDs of the transactions.
    pub gtids: Vec<Gtid>,
    /// Whether there were some without.
    pub has_anonymous: bool,
}
