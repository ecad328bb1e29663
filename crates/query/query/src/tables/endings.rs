//! How the transactions of rows ended: the column `ending`. Rows stand before the end of their transaction, so those of one that a batch
//! of events leaves open wait until its end is read, in the order of the log.
//!
//! ```text
//! committed      it ended with COMMIT, or was prepared (XA) and XA COMMIT is in the logs
//! rolled back    it was prepared, and XA ROLLBACK is in the logs
//! not certain    it was prepared, and neither is there; it ended with ROLLBACK or went back to a savepoint, which keeps rows of tables
//!                without transactions; its end isn't in the log
//! ```

use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::{QueryEvent, XaPrepareEvent};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Boundary, Error as BinlogError, EventType};
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, EventBatch};
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};

use super::held::HeldRows;
use super::{BatchSink, arrow_error};
use crate::error::LogError;
use crate::logs::Logs;

const COMMITTED: &str = "committed";
const ROLLED_BACK: &str = "rolled back";
const NOT_CERTAIN: &str = "not certain";

/// A transaction, or the part of it in one batch.
#[derive(Debug, Clone, Default)]
struct TransactionTail {
    has_ended: bool,
    /// Some of its rows may have been taken back.
    is_uncertain: bool,
    /// The identifier under which it is prepared, and where.
    prepared: Option<(String, u64)>,
}

/// The endings of the transactions in a batch of events.
#[derive(Debug, Default)]
pub(super) struct BatchEndings {
    log: u64,
    tails: Vec<TransactionTail>,
    /// Whether the first one began before the batch.
    goes_on: bool,
    /// Whether the last one is open.
    is_open: bool,
}

/// Rows of a batch that follow one another, of the transaction of this number among those of its batch of events; `None`: of none.
pub(super) type TransactionRun = (Option<usize>, usize);

impl BatchEndings {
    /// No transaction yet.
    pub(super) fn of(batch: &EventBatch<'_>) -> Self {
        BatchEndings { log: batch.log().number, ..BatchEndings::default() }
    }

    /// The transaction that is open.
    pub(super) fn current(&self) -> Option<usize> {
        self.tails.len().checked_sub(1).filter(|_| self.is_open)
    }

    /// Takes the next item, before its rows.
    pub(super) fn pass(&mut self, item: &BatchItem<'_>) -> Result<(), BinlogError> {
        let BatchItem::Event(event) = item else {
            self.open();
            return Ok(());
        };
        if !event.is_inside_payload() {
            match event.placement.boundary {
                Boundary::Outside => return Ok(()),
                // Before BEGIN again, one was cut off.
                Boundary::Begin | Boundary::BeginAgain | Boundary::Single => self.begin(),
                Boundary::Inside | Boundary::End => {}
            }
        }
        let tail = self.open();
        if event.header.event_type == EventType::XA_PREPARE {
            let prepare = XaPrepareEvent::decode(event.body)?;
            tail.prepared = (!prepare.one_phase).then(|| (prepare.xa_id.to_string(), event.position.offset));
        }
        if event.header.event_type == EventType::QUERY {
            let kind = StatementKind::of(QueryEvent::decode(event.body)?.statement);
            tail.is_uncertain |= matches!(kind, StatementKind::Rollback | StatementKind::RollbackTo);
        }
        Ok(())
    }

    /// Ends the transaction that an item ends, after its rows.
    pub(super) fn end(&mut self, item: &BatchItem<'_>) {
        let ends = match item {
            BatchItem::PayloadEnd(_) => true,
            BatchItem::Event(event) => event.ends_transaction(),
        };
        if ends && self.is_open {
            self.open().has_ended = true;
            self.is_open = false;
        }
    }

    fn begin(&mut self) {
        self.tails.push(TransactionTail::default());
        self.is_open = true;
    }

    /// The open transaction: one that began before the batch, if none began in it.
    fn open(&mut self) -> &mut TransactionTail {
        if !self.is_open || self.tails.is_empty() {
            self.goes_on |= self.tails.is_empty();
            self.begin();
        }
        let last = self.tails.len() - 1;
        // It was pushed above if there was none.
        #[expect(clippy::indexing_slicing, reason = "the last of some")]
        &mut self.tails[last]
    }
}

/// Gives rows the endings of their transactions, in the order of the log.
pub(super) struct EndingColumns<'a> {
    logs: &'a Logs,
    index: usize,
    /// The places of the column among those of a batch.
    places: Vec<usize>,
    /// The transaction that goes on in the next batch, its log, and its rows so far.
    open: Option<(u64, TransactionTail)>,
    held: HeldRows,
}

impl<'a> EndingColumns<'a> {
    /// The columns at these places of a log's batches.
    pub(super) fn new(logs: &'a Logs, index: usize, places: Vec<usize>) -> Self {
        EndingColumns { logs, index, places, open: None, held: HeldRows::default() }
    }

    /// Takes the rows of the next batch of events.
    pub(super) fn take(
        &mut self,
        rows: Vec<(RecordBatch, Vec<TransactionRun>)>,
        endings: BatchEndings,
        sink: BatchSink<'_>,
    ) -> Result<(), Error> {
        let BatchEndings { log, mut tails, goes_on, is_open } = endings;
        if !tails.is_empty()
            && let Some((open_log, open)) = self.open.take()
        {
            match tails.first_mut().filter(|_| goes_on && open_log == log) {
                Some(first) => {
                    first.is_uncertain |= open.is_uncertain;
                    let ending = first.has_ended.then(|| self.ending(first)).transpose()?;
                    self.release(ending, sink)?;
                }
                None => self.release(Some(NOT_CERTAIN), sink)?,
            }
        }
        let count = tails.len();
        let words = tails
            .iter()
            .zip(1..)
            .map(|(tail, number)| match tail.has_ended {
                true => self.ending(tail).map(Some),
                false if is_open && number == count => Ok(None),
                false => Ok(Some(NOT_CERTAIN)),
            })
            .collect::<Result<Vec<_>, Error>>()?;
        if is_open && let Some(last) = tails.pop() {
            self.open = Some((log, last));
        }
        rows.into_iter().try_for_each(|(batch, runs)| self.rows(&batch, &runs, &words, sink))
    }

    /// The log has ended.
    pub(super) fn end(&mut self, sink: BatchSink<'_>) -> Result<(), Error> {
        self.open = None;
        self.release(Some(NOT_CERTAIN), sink)
    }

    /// Passes on the rows of transactions that have ended, and holds those of the open one, which are the last.
    fn rows(
        &mut self,
        batch: &RecordBatch,
        runs: &[TransactionRun],
        words: &[Option<&'static str>],
        sink: BatchSink<'_>,
    ) -> Result<(), Error> {
        let mut texts = Vec::with_capacity(batch.num_rows());
        for (transaction, rows) in runs {
            let word = transaction.map_or(Some(NOT_CERTAIN), |number| words.get(number).copied().flatten());
            let Some(word) = word else { break };
            texts.extend(std::iter::repeat_n(word, *rows));
        }
        let ended = texts.len();
        if ended > 0 {
            sink(self.with_texts(batch, 0..ended, texts)?)?;
        }
        if ended < batch.num_rows() {
            let open = batch.slice(ended, batch.num_rows() - ended);
            self.held.add(0, open).map_err(failed)?;
        }
        Ok(())
    }

    /// Passes on the rows that were held, if the ending of their transaction is known.
    fn release(&mut self, ending: Option<&'static str>, sink: BatchSink<'_>) -> Result<(), Error> {
        let Some(word) = ending else { return Ok(()) };
        let mut held = std::mem::take(&mut self.held);
        let mut trouble = None;
        let released = held.release(&mut |_, batch| {
            let rows = batch.num_rows();
            let made = self.with_texts(&batch, 0..rows, vec![word; rows]);
            made.and_then(&mut *sink).map_err(|error| {
                trouble = Some(error);
                crate::error::Error::Stopped
            })
        });
        match trouble {
            Some(error) => Err(error),
            None => released.map_err(failed),
        }
    }

    /// Some rows of a batch, with these texts in its columns of endings.
    fn with_texts(
        &self,
        batch: &RecordBatch,
        rows: Range<usize>,
        texts: Vec<&'static str>,
    ) -> Result<RecordBatch, Error> {
        let part = batch.slice(rows.start, rows.len());
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let columns =
            part.columns().iter().enumerate().map(|(place, column)| {
                Arc::clone(if self.places.contains(&place) { &texts } else { column })
            });
        RecordBatch::try_new(part.schema(), columns.collect()).map_err(arrow_error)
    }

    fn ending(&self, tail: &TransactionTail) -> Result<&'static str, Error> {
        let Some((xid, offset)) = tail.prepared.as_ref().filter(|_| !tail.is_uncertain) else {
            return Ok(if tail.is_uncertain { NOT_CERTAIN } else { COMMITTED });
        };
        let decided = self.logs.is_xa_committed(xid, Logs::place(self.index, *offset));
        Ok(match decided.map_err(failed_log)? {
            Some(true) => COMMITTED,
            Some(false) => ROLLED_BACK,
            None => NOT_CERTAIN,
        })
    }
}

fn failed_log(LogError(line): LogError) -> Error {
    Error::Input(std::io::Error::other(line).into())
}

fn failed(error: crate::error::Error) -> Error {
    Error::Output(std::io::Error::other(error.to_string()).into())
}
