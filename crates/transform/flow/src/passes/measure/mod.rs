//! Goes through a log's transactions to measure the effect of compressing them.
//!
//! ```text
//! Input → Batcher → workers: payloads expanded, transactions extracted, measured → sink, in order
//! ```
//!
//! A log that is compressed already is measured as if it were plain: sizes are those of
//! [`Rewrite::Recompress`], to the byte. A [`Measure`] decides what to measure; [`CompressionMeter`] compresses and
//! times.

mod clock;
mod meter;
mod sessions;

use std::ops::Range;

use binlogz_payload::{
    CompressOptions, Error as PayloadError, ExtractedTransaction, Extraction, PieceContext,
    TransactionExpander, TransactionExtractor,
};

pub use clock::CpuClock;
pub use meter::{CompressionMeter, LevelCost, MARK_EVERY};
pub use sessions::ServerSessions;

use crate::error::Error;
use crate::passes::rewrite::{NewStart, PieceInput, Rewrite, expanded, start_of};
use crate::read::batcher::Batcher;
use crate::read::input::Input;
use crate::read::{BatchUnit, LogPiece};
use crate::read::{CutEvent, ReadProgress};
use crate::work::memory::Memory;
use crate::work::ordered;

/// The measurement that a worker makes of transactions.
pub trait Measure {
    /// The result for a piece of the log.
    type Part: Send;

    /// Measures a transaction.
    ///
    /// # Errors
    ///
    /// Bad bytes, a log that can't be read.
    fn transaction(&mut self, transaction: &mut ExtractedTransaction<'_>) -> Result<(), PayloadError>;

    /// Counts a transaction without GTID event; its bytes are not passed on.
    fn without_gtid(&mut self);

    /// Returns the figures since the last call.
    fn take(&mut self) -> Self::Part;
}

/// A piece of a log.
#[derive(Debug)]
pub struct MeasuredPiece<P> {
    /// Bytes that it has in the log.
    pub bytes_read: u64,
    /// Bytes outside of the transactions passed on, before and after compressing.
    pub outside: [u64; 2],
    /// How many of its transactions are compressed already.
    pub payloads: u64,
    /// The findings about its transactions.
    pub part: Option<P>,
}

/// How far a log was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeasureSummary {
    /// Bytes of whole events that were looked at.
    pub bytes_read: u64,
    /// The log is in use: it ends inside an event.
    pub cut: Option<CutEvent>,
    /// Whether it was stopped before the end.
    pub stopped: bool,
}

/// Passes the transactions of `input` to workers that `new_worker` makes, and their results to `sink`, in
/// order. Ends early once `stop` returns true.
///
/// # Errors
///
/// Bad bytes with their offset, an input that fails, errors of a worker or `sink`: the first one in the order
/// of the log.
pub fn measure<M: Measure>(
    mut input: Input,
    workers: usize,
    stop: &(dyn Fn() -> bool + Sync),
    new_worker: impl Fn() -> Result<M, Error> + Sync,
    mut sink: impl FnMut(MeasuredPiece<M::Part>) -> Result<(), Error>,
    progress: ReadProgress<'_>,
) -> Result<MeasureSummary, Error> {
    let memory = &Memory::for_measuring(workers);
    let end_of_input = input.stop();
    let mut batcher = Batcher::new(input, BatchUnit::Transaction, memory.batch);
    let mut summary = MeasureSummary::default();
    let mut announced = true;
    let mut stopped = false;
    let jobs = || {
        if stop() {
            stopped = true;
            return None;
        }
        let piece = batcher.next_piece()?;
        Some(piece.map_err(Error::from).and_then(|piece| {
            let rewrite = Rewrite::Recompress(CompressOptions::default());
            Ok(match piece {
                LogPiece::Start(start) => MeasureJob::Start(start_of(start, rewrite, &mut announced)?),
                LogPiece::Cut(cut) => MeasureJob::Cut(cut),
                LogPiece::Batch(batch) => {
                    let place = PieceContext { offset: batch.offset, context: batch.context, announced };
                    MeasureJob::Piece(PieceInput::Batch(batch.bytes), place)
                }
                LogPiece::Large(large) => {
                    let place = PieceContext { offset: large.offset, context: large.context, announced };
                    MeasureJob::Piece(PieceInput::Large(large), place)
                }
            })
        }))
    };
    let work = |worker: &mut Worker<M>, job: MeasureJob| {
        Ok(match job {
            MeasureJob::Cut(cut) => MeasureDone::Cut(cut),
            MeasureJob::Start(NewStart { magic, size_read, event }) => {
                let magic = if magic { 4 } else { 0 };
                MeasureDone::Piece(MeasuredPiece {
                    bytes_read: size_read + magic,
                    outside: [size_read + magic, event.len() as u64 + magic],
                    payloads: 0,
                    part: None,
                })
            }
            MeasureJob::Piece(input, place) => MeasureDone::Piece(worker.work(input, place, memory)?),
        })
    };
    let sink = |done: MeasureDone<M::Part>| {
        match done {
            MeasureDone::Cut(cut) => summary.cut = Some(cut),
            MeasureDone::Piece(piece) => {
                summary.bytes_read += piece.bytes_read;
                sink(piece)?;
                progress(summary.bytes_read);
            }
        }
        Ok(())
    };
    ordered::run(workers, jobs, end_of_input, || Worker::new(new_worker()?), work, sink)?;
    summary.stopped = stopped;
    Ok(summary)
}

enum MeasureJob {
    Start(NewStart),
    Piece(PieceInput, PieceContext),
    Cut(CutEvent),
}

enum MeasureDone<P> {
    Piece(MeasuredPiece<P>),
    Cut(CutEvent),
}

/// A worker's state, kept from piece to piece.
struct Worker<M> {
    measure: M,
    expander: TransactionExpander,
    extractor: TransactionExtractor,
}

impl<M: Measure> Worker<M> {
    fn new(measure: M) -> Result<Self, Error> {
        Ok(Worker { measure, expander: TransactionExpander::new()?, extractor: TransactionExtractor::new() })
    }

    fn work(
        &mut self,
        input: PieceInput,
        place: PieceContext,
        memory: &Memory,
    ) -> Result<MeasuredPiece<M::Part>, Error> {
        let bytes_read = input.size();
        let (input, payloads) = expanded(&mut self.expander, input, place, memory)?;
        let mut found = MeasureFeeder { measure: &mut self.measure, outside: 0 };
        match &input {
            PieceInput::Batch(bytes) => self.extractor.batch(bytes, place, &mut found)?,
            PieceInput::Large(large) => {
                self.extractor.large(|range| Ok(large.reader(range)), large.size, place, &mut found)?;
            }
            PieceInput::Spool(plain) => {
                self.extractor.large(|range| Ok(plain.reader(range)), plain.size(), place, &mut found)?;
            }
        }
        let outside = [found.outside; 2];
        if let PieceInput::Spool(plain) = input {
            memory.keep(plain.into_buffer());
        }
        Ok(MeasuredPiece { bytes_read, outside, payloads, part: Some(self.measure.take()) })
    }
}

/// Passes transactions to a [`Measure`].
struct MeasureFeeder<'a, M> {
    measure: &'a mut M,
    outside: u64,
}

impl<M: Measure> Extraction for MeasureFeeder<'_, M> {
    fn transaction(&mut self, mut transaction: ExtractedTransaction<'_>) -> Result<(), PayloadError> {
        self.measure.transaction(&mut transaction)
    }

    fn outside(&mut self, log: Range<u64>) {
        self.outside += log.end - log.start;
    }

    fn without_gtid(&mut self) {
        self.measure.without_gtid();
    }
}
