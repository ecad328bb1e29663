//! Puts what was received into the store: as it came, or its plain transactions compressed.
//!
//! ```text
//! receiver ─ batches of whole transactions ┬ worker ┬ in order ─ writer ─ positions of the stored file ─ append
//!                                          └ worker ┘
//! ```
//!
//! Frames that are made here carry zstd's content checksum: that is how the stored file tells what came plain. The writer
//! also notes places of the index: it alone sees source's and stored positions side by side.

use std::cell::OnceCell;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_payload::rewritten::Span;
use binlogz_payload::{
    CompressOptions, CompressionLevel, LogContext, PieceBytes, Place, PositionWriter, Rewritten, Spool,
    SpoolMemory, TransactionCompressor,
};
use binlogz_store::StoreWriter;
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::checkpoints::{Checkpoints, Noting, Seen};
use crate::compression_stats::{self, Sizes};
use crate::duties;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::lineages::Kept;
use crate::meters::Meters;
use crate::relay::{Relay, lock};

/// How transactions are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storing {
    /// As they are received.
    Received,
    /// Plain ones compressed at this level, off the source's commit path; received payloads as they are received.
    Compressed(CompressionLevel),
}

impl Storing {
    /// The level to compress at; `None`: not at all.
    pub fn level(self) -> Option<CompressionLevel> {
        match self {
            Storing::Received => None,
            Storing::Compressed(level) => Some(level),
        }
    }
}

/// More threads than this find no work: one connection brings what there is.
const WORKERS_MAX: usize = 8;
/// What the threads are called.
const STORE_WORKER: &str = "store-worker";
const STORE_WRITER: &str = "store-writer";
/// Compressed bytes held in memory by all workers; the rest goes to temporary files.
const SPOOL_SIZE: usize = 8 << 20;

/// Whole transactions, one behind the other, as they were received.
pub(crate) struct Batch {
    pub(crate) spool: Spool,
    /// Where they begin in the source's file.
    pub(crate) offset: u64,
    pub(crate) context: LogContext,
    /// Whether the file's format description lets payloads follow.
    pub(crate) announced: bool,
    pub(crate) gtids: GtidSet,
    /// Each transaction that begins with a GTID event.
    pub(crate) transactions: Vec<Transaction>,
}

/// A transaction of a batch.
pub(crate) struct Transaction {
    /// In the source's file.
    pub(crate) range: Range<u64>,
    pub(crate) gtid: Option<Gtid>,
    pub(crate) committed: u64,
    pub(crate) sizes: Sizes,
}

/// What a worker made of a batch.
struct Ready {
    batch: Batch,
    rewritten: Rewritten,
}

type Answer = Result<Ready>;

/// Takes batches.
pub(crate) struct Batches<'a> {
    relay: &'a Relay,
    kept: &'a Kept,
    /// From the beginning where something is to be compressed; else everything is done by the thread that brings a batch.
    threads: OnceCell<Threads>,
    start: &'a dyn Fn() -> Result<Threads>,
    progress: &'a Progress,
}

/// A batch, what to do with it, and whom to tell.
type Work = (Batch, Option<CompressionLevel>, Sender<Answer>);

struct Threads {
    to_workers: Sender<Work>,
    to_writer: Sender<Receiver<Answer>>,
}

/// How far the writer is.
#[derive(Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    brought: u64,
    written: u64,
    failed: bool,
    /// Whether nobody writes any more.
    writer_ended: bool,
    /// Why; taken by the first who asks.
    error: Option<Error>,
    /// GTIDs since the last place of the index.
    noting: Noting,
    places: Option<Arc<Checkpoints>>,
}

/// Lets `receive` bring batches; all threads have ended when this returns.
///
/// # Errors
///
/// The threads that compress can't be started: nothing was received then.
pub(crate) fn run<T>(
    relay: &Relay,
    kept: &Kept,
    receive: impl FnOnce(&Batches<'_>) -> Result<T>,
) -> Result<T> {
    let progress = &Progress::default();
    let received = thread::scope(|scope| {
        let start = || start_threads(scope, relay, kept, progress);
        let threads = OnceCell::new();
        if lock(&relay.compression).level().is_some() {
            let _ = threads.set(start()?);
        }
        receive(&Batches { relay, kept, threads, start: &start, progress })
    });
    relay.duties.over(duties::STORE);
    // What is left was dropped.
    relay.meters.unwritten.store(0, Ordering::Relaxed);
    received
}

/// Starts the workers and the writer: all or none.
fn start_threads<'scope>(
    scope: &'scope Scope<'scope, '_>,
    relay: &'scope Relay,
    kept: &'scope Kept,
    progress: &'scope Progress,
) -> Result<Threads> {
    let count = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    let (to_workers, batches) = bounded::<Work>(count);
    let (to_writer, in_order) = bounded::<Receiver<Answer>>(count + 1);
    let memory = SpoolMemory::new(SPOOL_SIZE);
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send + 'scope>| {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
        spawned.map(drop).map_err(|error| {
            let error = Error::thread(name)(error);
            relay.duties.failing(duties::STORE, error.to_string());
            error
        })
    };
    for _ in 0..count {
        let (batches, memory) = (batches.clone(), memory.clone());
        spawn(STORE_WORKER, Box::new(move || compress_all(&batches, &memory)))?;
    }
    spawn(STORE_WRITER, Box::new(move || write_all(relay, kept, progress, in_order)))?;
    relay.duties.well(duties::STORE);
    Ok(Threads { to_workers, to_writer })
}

/// What a worker does until nobody brings anything any more.
fn compress_all(batches: &Receiver<Work>, memory: &SpoolMemory) {
    let mut compressor = None;
    for (batch, level, answer) in batches {
        let ready = duties::attempt(duties::STORE, || match level {
            Some(level) => compress(batch, level, memory, &mut compressor),
            None => Ok(plain(batch)),
        });
        if matches!(ready, Err(Error::Panicked { .. })) {
            // It may be in any state.
            compressor = None;
        }
        // Nobody waits for it once storing has failed.
        let _ = answer.send(ready);
    }
}

/// What the writer does until nobody brings anything any more.
fn write_all(relay: &Relay, kept: &Kept, progress: &Progress, in_order: Receiver<Receiver<Answer>>) {
    /// However it ends, nobody waits for it any more.
    struct Ending<'a>(&'a Progress);
    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            lock(&self.0.state).writer_ended = true;
            self.0.changed.notify_all();
        }
    }
    let _ending = Ending(progress);
    for awaited in in_order {
        let ready = awaited.recv().unwrap_or(Err(Error::Ended(STORE_WORKER)));
        let written =
            ready.and_then(|ready| duties::attempt(duties::STORE, || write(relay, kept, progress, ready)));
        progress.done(relay, written);
    }
}

impl Batches<'_> {
    /// Takes a batch; an error may be that of an earlier one.
    pub(crate) fn bring(&self, batch: Batch) -> Result<()> {
        self.progress.check()?;
        let level = lock(&self.relay.compression).level();
        if level.is_some() && self.threads.get().is_none() {
            // Compression was switched on meanwhile.
            let _ = self.threads.set((self.start)()?);
        }
        lock(&self.progress.state).brought += 1;
        self.relay.meters.unwritten.fetch_add(1, Ordering::Relaxed);
        let Some(threads) = self.threads.get() else {
            self.progress.done(self.relay, write(self.relay, self.kept, self.progress, plain(batch)));
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
        let mut state = lock(&self.progress.state);
        while state.written < state.brought {
            if state.writer_ended {
                drop(state);
                self.progress.check()?;
                return Err(Error::Ended(STORE_WRITER));
            }
            state = self.progress.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.progress.check()
    }

    /// What is brought from now on goes to the file whose index this is. All before is written.
    pub(crate) fn note_in(&self, places: Arc<Checkpoints>, noting: Noting) {
        let mut state = lock(&self.progress.state);
        (state.places, state.noting) = (Some(places), noting);
    }
}

impl Progress {
    fn check(&self) -> Result<()> {
        let mut state = lock(&self.state);
        match state.failed {
            false => Ok(()),
            true => Err(state.error.take().unwrap_or_else(|| Error::Refused("storing has failed".into()))),
        }
    }

    fn done(&self, relay: &Relay, result: Result<()>) {
        relay.meters.unwritten.fetch_sub(1, Ordering::Relaxed);
        let mut state = lock(&self.state);
        state.written += 1;
        if let Err(error) = result {
            state.failed = true;
            state.error.get_or_insert(error);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn failed(&self) -> bool {
        lock(&self.state).failed
    }
}

/// A compressor that is used again and again, and its level.
pub(crate) type Compressing = Option<(CompressionLevel, TransactionCompressor)>;

/// Writes what is stored of a batch at a place of the stored file.
pub(crate) fn stored_as(
    batch: Batch,
    level: Option<CompressionLevel>,
    memory: &SpoolMemory,
    compressor: &mut Compressing,
    at: u64,
    out: &mut dyn Write,
) -> Result<()> {
    let Ready { batch, mut rewritten } = match level {
        Some(level) => compress(batch, level, memory, compressor)?,
        None => plain(batch),
    };
    let mut out = PositionWriter::resume(out, at, true);
    out.write(&mut rewritten, &mut Received(batch.spool), |_, _| {})?;
    Ok(out.finish()?)
}

fn compress(
    mut batch: Batch,
    level: CompressionLevel,
    memory: &SpoolMemory,
    compressor: &mut Compressing,
) -> Answer {
    let (_, compressor) = match compressor {
        Some(compressor) if compressor.0 == level => compressor,
        other => {
            let options = CompressOptions { level, mark_frames: true, marks: true };
            other.insert((level, TransactionCompressor::new(options)?))
        }
    };
    let place = Place { offset: batch.offset, context: batch.context, announced: batch.announced };
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

/// Nothing is done to it but what its place asks for.
fn plain(batch: Batch) -> Ready {
    let none = Spool::new(&SpoolMemory::new(0), Vec::new());
    let mut rewritten = Rewritten::new(batch.offset, batch.context, none, false);
    rewritten.spans.push(Span::Plain(0..batch.spool.size()));
    Ready { batch, rewritten }
}

fn write(relay: &Relay, kept: &Kept, progress: &Progress, ready: Ready) -> Result<()> {
    let Ready { batch, mut rewritten } = ready;
    if progress.failed() {
        return Ok(());
    }
    let Batch { spool, offset, gtids, transactions, .. } = batch;
    let writer = kept.store.writer()?;
    let Some(begin) = writer.position() else {
        return Err(Error::Gap {
            name: kept
                .store
                .names()
                .log(kept.store.positions().map_or(binlogz_store::FileNumber(0), |now| now.written.file)),
            offset,
            expected: "the next file: this one was closed".into(),
        });
    };
    let mut append = Append { writer, meters: &relay.meters, error: None };
    let mut placed = Vec::new();
    let mut out = PositionWriter::resume(&mut append, begin.offset, true);
    let mut input = Received(spool);
    let written = out.write(&mut rewritten, &mut input, |_, offset| placed.push(offset));
    let written = written.and_then(|()| out.finish());
    if let Some(error) = append.error.take() {
        return Err(error.into());
    }
    written?;
    // Only now: nobody sees a part of a batch, and an error above leaves none.
    append.writer.publish()?;
    drop(append);
    let marks = rewritten.marks.as_deref();
    let mut table = lock(&relay.compression_stats);
    for (index, transaction) in transactions.iter().enumerate() {
        let made = marks.and_then(|marks| marks.get(index)?.payload_size);
        compression_stats::count(&mut table, transaction, made);
    }
    drop(table);
    let mut state = lock(&progress.state);
    let State { noting, places, .. } = &mut *state;
    if let Some(places) = places {
        note(noting, places, &transactions, |index, transaction| match marks {
            None => {
                let moved = |at: u64| begin.offset + (at - offset);
                Some(moved(transaction.range.start)..moved(transaction.range.end))
            }
            Some(marks) => {
                let mark = marks.get(index).filter(|mark| mark.old == transaction.range)?;
                let at = |span: usize| placed.get(span).copied();
                Some(at(mark.spans.start)?..at(mark.spans.end)?)
            }
        });
        // An index that can't be written is made again by the next one who needs it.
        let durable =
            kept.store.positions().map(|now| now.durable).filter(|durable| durable.file == begin.file);
        let _ = durable.map(|durable| places.save(durable.offset, false));
    }
    drop(state);
    relay.written(kept, &gtids);
    Ok(())
}

/// Notes the transactions of a batch for the index. `stored`: where one of them is now; if that is not known of one, it is
/// not known of any after it, and the index is told that some were missed.
fn note(
    noting: &mut Noting,
    places: &Checkpoints,
    transactions: &[Transaction],
    stored: impl Fn(usize, &Transaction) -> Option<Range<u64>>,
) {
    for (index, transaction) in transactions.iter().enumerate() {
        let Some(stored) = stored(index, transaction) else { return noting.missed() };
        let Transaction { range, gtid, committed, .. } = transaction;
        let seen = Seen { stored, gtid: *gtid, committed: *committed };
        noting.transaction(places, Form::Received, &seen, range.end);
    }
}

/// Appends to the store.
struct Append<'a> {
    writer: StoreWriter<'a>,
    meters: &'a Meters,
    /// Why the last write failed.
    error: Option<binlogz_store::Error>,
}

impl Write for Append<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writer.extend(bytes) {
            Ok(_) => {
                self.meters.stored(bytes.len() as u64);
                Ok(bytes.len())
            }
            Err(error) => {
                let kind = io::Error::other(error.to_string());
                self.error = Some(error);
                Err(kind)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Received bytes.
struct Received(Spool);

impl PieceBytes for Received {
    fn in_memory(&mut self, range: Range<u64>) -> Option<&mut [u8]> {
        self.0.in_memory(range)
    }

    fn reader(&mut self, range: Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.reader(range)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_testkit::builder::UUID;
    use binlogz_testkit::disk::SimulatedDisk;
    use binlogz_testkit::random::Random;

    use super::*;
    use crate::checkpoints::Indexes;
    use crate::receiver::crashes::{OneDisk, options};

    const SERVER: &str = "1410447f-e54d-11f1-848d-02fc00000001";

    #[test]
    fn transactions_whose_place_is_not_known_leave_no_claim_behind() {
        let indexes = Indexes::new(Arc::new(binlogz_store::MemoryStorage::new()));
        let places = indexes.of(binlogz_store::FileNumber(1), "binlog.000001", b"head");
        // Each ends just beyond a mebibyte: a place.
        let transactions: Vec<Transaction> = (1..=6_u64)
            .map(|number| Transaction {
                range: (number << 20) - 9..(number << 20) + 9,
                gtid: Some(format!("{SERVER}:{number}").parse().unwrap()),
                committed: 1,
                sizes: Sizes::default(),
            })
            .collect();
        let (first, rest) = transactions.split_at(4);
        let mut noting = Noting::default();
        // As where what a worker did does not agree with what was received.
        note(&mut noting, &places, first, |index, transaction| {
            (index != 2).then(|| transaction.range.clone())
        });
        note(&mut noting, &places, rest, |_, transaction| Some(transaction.range.clone()));
        // A replica that lacks the third is not sent on behind it.
        let behind = |has: &str| {
            let start = places.behind_gtids(Form::Received, &format!("{SERVER}:{has}").parse().unwrap());
            start.map(|start| start.stored >> 20)
        };
        assert_eq!(behind("1-2:4-6"), Some(2));
        assert_eq!(behind("1-6"), Some(2), "and one that lacks nothing reads a little in vain");
    }

    #[test]
    fn nobody_waits_for_a_writer_that_has_ended() {
        let progress = Progress::default();
        lock(&progress.state).brought = 1;
        let disk = Arc::new(OneDisk(SimulatedDisk::new()));
        let relay = Relay::open(options(&mut Random::new(1)), disk, Box::new(|_, _| {})).unwrap();
        let kept = relay.keep("binlog", UUID, false).unwrap();
        let (to_writer, in_order) = bounded(1);
        drop(to_writer);
        write_all(&relay, &kept, &progress, in_order);
        let start = || Err(Error::Ended(STORE_WRITER));
        let threads = OnceCell::new();
        let batches = Batches { relay: &relay, kept: &kept, threads, start: &start, progress: &progress };
        assert!(matches!(batches.drain(), Err(Error::Ended(STORE_WRITER))));
    }
}
