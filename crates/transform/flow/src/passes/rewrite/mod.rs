//! Compresses or expands a whole log: the pipeline around the two transformations of `binlogz-payload`.

mod expand_on;
mod log_output;
mod sink;

use std::io::{self, Read, Seek, Write};
use std::ops::Range;

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::gtid::Gtid;
use binlogz_payload::rewritten::format_description::{Announcement, announce_payloads, withdraw_payloads};
use binlogz_payload::{
    CompressOptions, PieceBytes, PieceContext, PositionWriter, RewrittenPiece, Spool, Tally,
    TransactionCompressor, TransactionExpander,
};

use self::log_output::{ForwardOutput, LogOutput, SeekableOutput};
use self::sink::{RewriteDone, RewriteSink, has_payload};
use crate::error::Error;
use crate::passes::salvage::LostRange;
use crate::read::batcher::Batcher;
use crate::read::input::Input;
use crate::read::{Batch, BatchUnit, CutEvent, LargeUnit, LogPiece, LogStart, ReadProgress};
use crate::work::memory::Memory;
use crate::work::ordered;

/// The change to be made to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewrite {
    /// Every eligible transaction becomes a payload.
    Compress(CompressOptions),
    /// Payloads become transactions, then transactions payloads: this changes the level of a compressed log.
    Recompress(CompressOptions),
    /// Every payload becomes a transaction.
    Expand,
    /// Payloads whose transaction would compress to the very same bytes become transactions; the others stay.
    /// The log still announces payloads.
    ExpandReproducible(CompressOptions),
}

/// A transaction's place in the log read and in the log written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedTransaction {
    /// GTID of the transaction; `None` for anonymous ones.
    pub gtid: Option<Gtid>,
    /// The transaction's range in the log read, in bytes.
    pub old: Range<u64>,
    /// The transaction's range in the log written, in bytes.
    pub new: Range<u64>,
}

/// The result of a rewrite.
#[derive(Debug, Clone, Default)]
pub struct RewriteSummary {
    /// How many transactions were changed, and how many left for which reason.
    pub tally: Tally,
    /// Bytes of the log read that were whole events.
    pub bytes_read: u64,
    /// Bytes of the log written.
    pub bytes_written: u64,
    /// The log is in use: it ends inside an event, of which this many bytes are there.
    pub cut: Option<CutEvent>,
}

/// A rewrite of a log: which transformation, with how many threads, and which progress to report.
///
/// ```
/// use binlogz_flow::{Input, Rewrite, Rewriter};
///
/// let log = Input::open("sample/binlog.000001".as_ref())?;
/// let mut expanded = Vec::new();
/// let summary = Rewriter::new(Rewrite::Expand).workers(2).run(log, &mut expanded)?;
/// assert_eq!(summary.bytes_written, expanded.len() as u64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Rewriter<'a> {
    rewrite: Rewrite,
    workers: usize,
    memory: Option<&'a Memory>,
    lost: &'a [LostRange],
    moved: Option<&'a mut dyn FnMut(MovedTransaction) -> io::Result<()>>,
    progress: Option<ReadProgress<'a>>,
    places: &'a [(u64, u64)],
}

impl<'a> Rewriter<'a> {
    /// A rewrite with one worker.
    pub fn new(rewrite: Rewrite) -> Self {
        Rewriter { rewrite, workers: 1, memory: None, lost: &[], moved: None, progress: None, places: &[] }
    }

    /// Works with this many threads. The bytes written don't depend on it.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Works with the caller's memory plan and its number of workers. The bytes written don't depend on it.
    pub fn memory(mut self, memory: &'a Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Treats these parts of the log as absent; see [`survey`](crate::survey).
    pub fn without(mut self, lost: &'a [LostRange]) -> Self {
        self.lost = lost;
        self
    }

    /// Reports each transaction's move (compress only).
    pub fn on_moved(mut self, moved: &'a mut dyn FnMut(MovedTransaction) -> io::Result<()>) -> Self {
        self.moved = Some(moved);
        self
    }

    /// For a log with gaps ([`Input::Sparse`]): where each of them ends in the log read, and where the log written goes
    /// on there.
    pub fn going_on_at(mut self, places: &'a [(u64, u64)]) -> Self {
        self.places = places;
        self
    }

    /// Reports the rewrite's progress.
    pub fn on_progress(mut self, progress: ReadProgress<'a>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Reads the log of `input` and writes its new form to `out`.
    ///
    /// # Errors
    ///
    /// Bad bytes or an input that fails; an output that fails. The output until then is unusable.
    pub fn run(self, input: Input, out: impl Write) -> Result<RewriteSummary, Error> {
        self.run_to(input, &mut ForwardOutput(out))
    }

    /// As [`Rewriter::run`], where bytes that were written can be changed: large payloads are expanded right into the
    /// output, without a temporary file.
    ///
    /// # Errors
    ///
    /// As for [`Rewriter::run`].
    pub fn run_seekable(self, input: Input, out: impl Write + Seek) -> Result<RewriteSummary, Error> {
        let mut out = SeekableOutput::new(out).map_err(|error| Error::Output(error.into()))?;
        self.run_to(input, &mut out)
    }

    fn run_to(self, input: Input, out: &mut dyn LogOutput) -> Result<RewriteSummary, Error> {
        let Rewriter { rewrite, workers, memory, lost, moved, progress, places } = self;
        let expands = !matches!(rewrite, Rewrite::Compress(_));
        let planned = memory.is_none().then(|| Memory::for_workers(workers, expands));
        let Some(memory) = memory.or(planned.as_ref()) else { unreachable!("one of the two is there") };
        run(memory, (lost, places), input, out, rewrite, moved, progress)
    }
}

fn run<'a, 'm>(
    memory: &'a Memory,
    (lost, going_on_at): (&[LostRange], &'a [(u64, u64)]),
    mut input: Input,
    out: &'a mut dyn LogOutput,
    rewrite: Rewrite,
    moved: Option<&'m mut dyn FnMut(MovedTransaction) -> io::Result<()>>,
    progress: Option<ReadProgress<'m>>,
) -> Result<RewriteSummary, Error> {
    let stop = input.stop();
    let mut batcher = Batcher::new(input, BatchUnit::Transaction, memory.batch);
    if !lost.is_empty() {
        batcher = batcher.without(lost.iter().map(|lost| lost.range.clone()));
    }
    let mut announced = true;
    let jobs = || {
        let piece = batcher.next_piece()?;
        Some(piece.map_err(Error::from).and_then(|piece| {
            Ok(match piece {
                LogPiece::Start(start) => RewriteJob::Start(start_of(start, rewrite, &mut announced)?),
                LogPiece::Batch(batch) => RewriteJob::Batch(batch, announced),
                LogPiece::Large(large) => RewriteJob::Large(large, announced),
                LogPiece::Cut(cut) => RewriteJob::Cut(cut),
            })
        }))
    };
    let expands = matches!(rewrite, Rewrite::Expand | Rewrite::ExpandReproducible(_));
    let passes_on = rewrite == Rewrite::Expand && out.is_changeable();
    let writer = PositionWriter::new(out, !expands);
    let mut sink = RewriteSink {
        memory,
        writer,
        going_on_at,
        moved,
        progress,
        summary: RewriteSummary::default(),
        large_expander: None,
        places: Vec::new(),
    };
    ordered::run(
        memory.workers,
        jobs,
        stop,
        || Worker::new(rewrite, passes_on),
        |worker, job| worker.work(job, memory),
        |result| sink.take(result),
    )?;
    sink.finish()
}

/// A worker's job.
enum RewriteJob {
    Start(NewStart),
    Batch(Batch, bool),
    Large(LargeUnit, bool),
    Cut(CutEvent),
}

/// A format description as it is written.
pub(crate) struct NewStart {
    pub(crate) magic: bool,
    pub(crate) size_read: u64,
    pub(crate) event: Vec<u8>,
}

/// The format description under which the rewritten log goes on.
pub(crate) fn start_of(start: LogStart, rewrite: Rewrite, announced: &mut bool) -> Result<NewStart, Error> {
    let size_read = start.event.len() as u64;
    let changed = {
        let frame = start.frame()?;
        match rewrite {
            Rewrite::Compress(_) | Rewrite::Recompress(_) => {
                let announcement = announce_payloads(&frame, &start.description)?;
                *announced = announcement != Announcement::Impossible;
                match announcement {
                    Announcement::Changed(event) => Some(event),
                    Announcement::Unchanged | Announcement::Impossible => None,
                }
            }
            Rewrite::Expand => withdraw_payloads(&frame, &start.description)?,
            Rewrite::ExpandReproducible(_) => None,
        }
    };
    Ok(NewStart { magic: start.magic, size_read, event: changed.unwrap_or(start.event) })
}

/// A worker's state, kept from piece to piece.
struct Worker {
    compressor: Option<TransactionCompressor>,
    expander: Option<TransactionExpander>,
    /// Whether large payloads are left to the sink.
    passes_on: bool,
}

impl Worker {
    fn new(rewrite: Rewrite, passes_on: bool) -> Result<Self, Error> {
        let compressor = match rewrite {
            Rewrite::Compress(options) | Rewrite::Recompress(options) => {
                Some(TransactionCompressor::new(options)?)
            }
            Rewrite::Expand | Rewrite::ExpandReproducible(_) => None,
        };
        let expander = match rewrite {
            Rewrite::Compress(_) => None,
            Rewrite::Recompress(_) | Rewrite::Expand => Some(TransactionExpander::new()?),
            Rewrite::ExpandReproducible(options) => Some(TransactionExpander::of_reproducible(options)?),
        };
        Ok(Worker { compressor, expander, passes_on })
    }

    fn work(&mut self, job: RewriteJob, memory: &Memory) -> Result<RewriteDone, Error> {
        let (input, context, offset, announced) = match job {
            RewriteJob::Start(start) => return Ok(RewriteDone::Start(start)),
            RewriteJob::Cut(cut) => return Ok(RewriteDone::Cut(cut)),
            RewriteJob::Batch(batch, announced) => {
                (PieceInput::Batch(batch.bytes), batch.context, batch.offset, announced)
            }
            RewriteJob::Large(large, announced) => {
                let (context, offset) = (large.context, large.offset);
                if self.passes_on && has_payload(&large).map_err(BinlogError::from)? {
                    return Ok(RewriteDone::Unexpanded(large, PieceContext { offset, context, announced }));
                }
                (PieceInput::Large(large), context, offset, announced)
            }
        };
        let size_read = input.size();
        let place = PieceContext { offset, context, announced };
        let (rewritten, input) = match (&mut self.compressor, &mut self.expander) {
            (Some(compressor), None) => (compress(compressor, &input, place, memory)?, input),
            (None, Some(expander)) => (expand(expander, &input, place, memory)?, input),
            (Some(compressor), Some(expander)) => {
                let (input, _) = expanded(expander, input, place, memory)?;
                (compress(compressor, &input, place, memory)?, input)
            }
            (None, None) => unreachable!("a worker compresses, expands, or does both"),
        };
        Ok(RewriteDone::Piece { rewritten: Box::new(rewritten), input, size_read })
    }
}

fn compress(
    compressor: &mut TransactionCompressor,
    input: &PieceInput,
    place: PieceContext,
    memory: &Memory,
) -> Result<RewrittenPiece, Error> {
    let spool = memory.spool();
    Ok(match input {
        PieceInput::Batch(bytes) => compressor.batch(bytes, place, spool)?,
        PieceInput::Large(large) => {
            compressor.large(|range| Ok(large.reader(range)), large.size, place, spool)?
        }
        PieceInput::Spool(plain) => {
            compressor.large(|range| Ok(plain.reader(range)), plain.size(), place, spool)?
        }
    })
}

fn expand(
    expander: &mut TransactionExpander,
    input: &PieceInput,
    place: PieceContext,
    memory: &Memory,
) -> Result<RewrittenPiece, Error> {
    let spool = memory.spool();
    Ok(match input {
        PieceInput::Batch(bytes) => expander.batch(bytes, place, spool)?,
        PieceInput::Large(large) => expander.large(large.reader(0..large.size), place, spool)?,
        PieceInput::Spool(plain) => expander.large(plain.reader(0..plain.size()), place, spool)?,
    })
}

/// The piece as it would be in an uncompressed log that begins at the same place, and how many payloads it
/// contained.
pub(crate) fn expanded(
    expander: &mut TransactionExpander,
    mut input: PieceInput,
    place: PieceContext,
    memory: &Memory,
) -> Result<(PieceInput, u64), Error> {
    let mut rewritten = expand(expander, &input, place, memory)?;
    let payloads = rewritten.tally.changed;
    if payloads == 0 {
        memory.keep(rewritten.spool.into_buffer());
        return Ok((input, 0));
    }
    let mut plain = memory.spool();
    let mut writer = PositionWriter::resume(&mut plain, place.offset, false);
    writer.write(&mut rewritten, &mut input, |_, _| {})?;
    writer.finish()?;
    memory.keep(rewritten.spool.into_buffer());
    Ok((PieceInput::Spool(plain), payloads))
}

/// The bytes that a piece was made from.
pub(crate) enum PieceInput {
    Batch(Vec<u8>),
    Large(LargeUnit),
    Spool(Spool),
}

impl PieceInput {
    pub(crate) fn size(&self) -> u64 {
        match self {
            PieceInput::Batch(bytes) => bytes.len() as u64,
            PieceInput::Large(large) => large.size,
            PieceInput::Spool(spool) => spool.size(),
        }
    }
}

impl PieceBytes for PieceInput {
    fn in_memory(&mut self, range: Range<u64>) -> Option<&mut [u8]> {
        match self {
            PieceInput::Batch(bytes) => bytes.in_memory(range),
            PieceInput::Large(_) => None,
            PieceInput::Spool(spool) => spool.in_memory(range),
        }
    }

    fn reader(&mut self, range: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        match self {
            PieceInput::Batch(bytes) => bytes.reader(range),
            PieceInput::Large(large) => Ok(large.reader(range)),
            PieceInput::Spool(spool) => Ok(Box::new(spool.reader(range))),
        }
    }
}
