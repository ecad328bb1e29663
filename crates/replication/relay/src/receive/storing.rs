//! Stores received transactions: as they came, or with plain ones compressed.
//!
//! ```text
//! receiver ─ batches of whole transactions ┬ worker ┬ in order ─ writer ─ positions of the stored file ─ append
//!                                          └ worker ┘
//! ```
//!
//! Frames made here carry zstd's content checksum, which marks transactions that came plain. The writer also adds
//! checkpoints to the index: only it sees source and stored positions side by side.

mod writing;

use parking_lot::{Condvar, Mutex};
use std::cell::OnceCell;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_payload::{
    CompressOptions, CompressionLevel, LogContext, PieceContext, PositionWriter, RewrittenPiece,
    RewrittenSpan, ServerGeneration, Spool, SpoolMemory, TransactionCompressor,
};
use binlogz_relay_log::{Checkpoints, GtidCollector, LineageLog};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::error::{Error, Result};
use crate::receive::intake::Intake;
use crate::receive::sizes::Sizes;
use crate::telemetry::duties;
use writing::{UnchangedBytes, write};

/// How transactions are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredForm {
    /// As received.
    Received,
    /// Plain transactions compressed at this level, off the source's commit path; received payloads unchanged.
    Compressed(CompressionLevel),
}

impl StoredForm {
    /// The level to compress at; `None` for no compression.
    pub fn level(self) -> Option<CompressionLevel> {
        match self {
            StoredForm::Received => None,
            StoredForm::Compressed(level) => Some(level),
        }
    }
}

/// More threads than this would be idle: there is only one connection to feed them.
const WORKERS_MAX: usize = 8;
const STORE_WORKER: &str = "store-worker";
pub(crate) const STORE_WRITER: &str = "store-writer";
/// Compressed bytes that all workers hold in memory; the rest goes to temporary files.
const SPOOL_SIZE: usize = 8 << 20;

/// Whole transactions, one after the other, as received.
pub(crate) struct ReceivedBatch {
    pub(crate) spool: Spool,
    /// Offset of the transactions in the source's file.
    pub(crate) offset: u64,
    pub(crate) context: LogContext,
    /// Generation of the server whose file it is.
    pub(crate) generation: ServerGeneration,
    /// Whether the file's format description allows payloads.
    pub(crate) announced: bool,
    pub(crate) gtids: GtidSet,
    /// The transactions that begin with a GTID event.
    pub(crate) transactions: Vec<ReceivedTransaction>,
}

pub(crate) struct ReceivedTransaction {
    /// Range in the source's file.
    pub(crate) range: Range<u64>,
    pub(crate) gtid: Option<Gtid>,
    pub(crate) committed: u64,
    pub(crate) sizes: Sizes,
}

/// A worker's result for a batch.
pub(crate) struct Ready {
    batch: ReceivedBatch,
    rewritten: RewrittenPiece,
}

pub(crate) type StoringOutcome = Result<Ready>;

pub(crate) struct Batches<'a> {
    pub(crate) intake: &'a Intake,
    pub(crate) kept: &'a LineageLog,
    /// Started at once if compression is on; otherwise the thread that brings a batch does everything.
    pub(crate) threads: OnceCell<Threads>,
    pub(crate) start: &'a dyn Fn() -> Result<Threads>,
    pub(crate) progress: &'a StoreProgress,
}

/// A batch, the level to compress it at, and where to send the result.
type Work = (ReceivedBatch, Option<CompressionLevel>, Sender<StoringOutcome>);

pub(crate) struct Threads {
    to_workers: Sender<Work>,
    to_writer: Sender<Receiver<StoringOutcome>>,
}

#[derive(Default)]
pub(crate) struct StoreProgress {
    pub(crate) state: Mutex<StoringState>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct StoringState {
    pub(crate) brought: u64,
    written: u64,
    failed: bool,
    /// Whether the writer has ended.
    writer_ended: bool,
    /// Why it ended; taken by the first caller that asks.
    error: Option<Error>,
    /// GTIDs since the last checkpoint.
    noting: GtidCollector,
    places: Option<Arc<Checkpoints>>,
}

/// Runs `receive`, which brings batches. All threads have ended when this returns.
///
/// # Errors
///
/// The compression threads can't be started; nothing was received.
pub(crate) fn run<T>(
    intake: &Intake,
    kept: &LineageLog,
    receive: impl FnOnce(&Batches<'_>) -> Result<T>,
) -> Result<T> {
    let progress = &StoreProgress::default();
    let received = thread::scope(|scope| {
        let start = || start_threads(scope, intake, kept, progress);
        let threads = OnceCell::new();
        if intake.compression.lock().level().is_some() {
            let _ = threads.set(start()?);
        }
        receive(&Batches { intake, kept, threads, start: &start, progress })
    });
    intake.telemetry.duties.over(duties::STORE);
    // The rest was dropped.
    intake.telemetry.meters.unwritten.store(0, Ordering::Relaxed);
    received
}

/// Starts the workers and the writer: all or none.
fn start_threads<'scope>(
    scope: &'scope Scope<'scope, '_>,
    intake: &'scope Intake,
    kept: &'scope LineageLog,
    progress: &'scope StoreProgress,
) -> Result<Threads> {
    let count = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    let (to_workers, batches) = bounded::<Work>(count);
    let (to_writer, in_order) = bounded::<Receiver<StoringOutcome>>(count + 1);
    let memory = SpoolMemory::new(SPOOL_SIZE);
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send + 'scope>| {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
        spawned.map(drop).map_err(|error| {
            let error = Error::thread(name)(error);
            intake.telemetry.duties.failing(duties::STORE, error.to_string());
            error
        })
    };
    for _ in 0..count {
        let batches = batches.clone();
        let memory = memory.clone();
        spawn(STORE_WORKER, Box::new(move || compress_all(&batches, &memory)))?;
    }
    spawn(STORE_WRITER, Box::new(move || write_all(intake, kept, progress, in_order)))?;
    intake.telemetry.duties.well(duties::STORE);
    Ok(Threads { to_workers, to_writer })
}

/// A worker's loop, until no more batches come.
fn compress_all(batches: &Receiver<Work>, memory: &SpoolMemory) {
    let mut compressor = None;
    for (batch, level, answer) in batches {
        let ready = duties::attempt(duties::STORE, || match level {
            Some(level) => compress(batch, level, memory, &mut compressor),
            None => Ok(plain(batch)),
        });
        if matches!(ready, Err(Error::Panicked { .. })) {
            // It may be in any state after a failure.
            compressor = None;
        }
        // Once storing has failed, nobody waits for the result.
        let _ = answer.send(ready);
    }
}

/// The writer's loop, until no more batches come.
pub(crate) fn write_all(
    intake: &Intake,
    kept: &LineageLog,
    progress: &StoreProgress,
    in_order: Receiver<Receiver<StoringOutcome>>,
) {
    /// Wakes waiting threads, however the writer ends.
    struct WriterEnd<'a>(&'a StoreProgress);
    impl Drop for WriterEnd<'_> {
        fn drop(&mut self) {
            self.0.state.lock().writer_ended = true;
            self.0.changed.notify_all();
        }
    }
    let _ending = WriterEnd(progress);
    for awaited in in_order {
        let ready = awaited.recv().unwrap_or(Err(Error::Ended(STORE_WORKER)));
        let written =
            ready.and_then(|ready| duties::attempt(duties::STORE, || write(intake, kept, progress, ready)));
        progress.done(intake, written);
    }
}

impl Batches<'_> {
    /// Takes a batch. An error may come from an earlier batch.
    pub(crate) fn bring(&self, batch: ReceivedBatch) -> Result<()> {
        self.progress.check()?;
        let level = self.intake.compression.lock().level();
        if level.is_some() && self.threads.get().is_none() {
            // Compression was switched on in the meantime.
            let _ = self.threads.set((self.start)()?);
        }
        self.progress.state.lock().brought += 1;
        self.intake.telemetry.meters.unwritten.fetch_add(1, Ordering::Relaxed);
        let Some(threads) = self.threads.get() else {
            self.progress.done(self.intake, write(self.intake, self.kept, self.progress, plain(batch)));
            return self.progress.check();
        };
        let (answer, awaited) = bounded(1);
        let is_taken = threads.to_writer.send(awaited).is_ok()
            && threads.to_workers.send((batch, level, answer)).is_ok();
        if !is_taken {
            self.progress.check()?;
            return Err(Error::Ended(duties::STORE));
        }
        Ok(())
    }

    /// Waits until all batches are written.
    pub(crate) fn drain(&self) -> Result<()> {
        let mut state = self.progress.state.lock();
        while state.written < state.brought {
            if state.writer_ended {
                drop(state);
                self.progress.check()?;
                return Err(Error::Ended(STORE_WRITER));
            }
            self.progress.changed.wait(&mut state);
        }
        drop(state);
        self.progress.check()
    }

    /// Later batches go to the file with this index. All earlier ones are written.
    pub(crate) fn note_in(&self, places: Arc<Checkpoints>, noting: GtidCollector) {
        let mut state = self.progress.state.lock();
        (state.places, state.noting) = (Some(places), noting);
    }
}

impl StoreProgress {
    fn check(&self) -> Result<()> {
        let mut state = self.state.lock();
        match state.failed {
            false => Ok(()),
            true => Err(state.error.take().unwrap_or_else(|| Error::Refused("storing has failed".into()))),
        }
    }

    fn done(&self, intake: &Intake, result: Result<()>) {
        intake.telemetry.meters.unwritten.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.written += 1;
        if let Err(error) = result {
            state.failed = true;
            state.error.get_or_insert(error);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn failed(&self) -> bool {
        self.state.lock().failed
    }
}

/// A reusable compressor and its level.
pub(crate) type LevelCompressor = Option<(CompressionLevel, TransactionCompressor)>;

/// Writes a batch's stored bytes for a given position in the stored file.
pub(crate) fn stored_as(
    batch: ReceivedBatch,
    level: Option<CompressionLevel>,
    memory: &SpoolMemory,
    compressor: &mut LevelCompressor,
    at: u64,
    out: &mut dyn Write,
) -> Result<()> {
    let Ready { batch, mut rewritten } = match level {
        Some(level) => compress(batch, level, memory, compressor)?,
        None => plain(batch),
    };
    let mut out = PositionWriter::resume(out, at, true);
    out.write(&mut rewritten, &mut UnchangedBytes(batch.spool), |_, _| {})?;
    Ok(out.finish()?)
}

fn compress(
    mut batch: ReceivedBatch,
    level: CompressionLevel,
    memory: &SpoolMemory,
    compressor: &mut LevelCompressor,
) -> StoringOutcome {
    let (_, compressor) = match compressor {
        Some(compressor) if compressor.0 == level => compressor,
        other => {
            let options =
                CompressOptions { level, mark_frames: true, marks: true, ..CompressOptions::default() };
            other.insert((level, TransactionCompressor::new(options)?))
        }
    };
    let place = PieceContext { offset: batch.offset, context: batch.context, announced: batch.announced };
    let size = batch.spool.size();
    let spool = Spool::new(memory, Vec::new());
    let rewritten = match batch.spool.in_memory(0..size) {
        Some(bytes) => compressor.batch(bytes, place, spool)?,
        None => {
            let received = &batch.spool;
            compressor.large(|range| Ok(received.reader(range)), size, place, spool)?
        }
    };
    Ok(Ready { batch, rewritten })
}

/// Changes only the fields that depend on the position.
fn plain(batch: ReceivedBatch) -> Ready {
    let none = Spool::new(&SpoolMemory::new(0), Vec::new());
    let mut rewritten = RewrittenPiece::new(batch.offset, batch.context, none, false);
    rewritten.spans.push(RewrittenSpan::Plain(0..batch.spool.size()));
    Ready { batch, rewritten }
}
