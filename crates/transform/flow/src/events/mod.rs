//! The pipeline for everything that looks at events: stats, dump, advise, verify.
//!
//! ```text
//! Input → Source: cuts batches of events, expands large payloads       one thread, headers only
//!       → workers: checksums, small payloads, whatever is made of them  all cores, any order
//!       → sink                                                          the caller's thread, in order
//! ```
//!
//! The unit of work is a batch of events, not of transactions, since one transaction may be the whole file. A batch that
//! begins inside a transaction therefore carries the facts that a worker needs from earlier events ([`CarriedState`]). Batch
//! boundaries depend on the number of workers, so the combined results must not depend on them.
//!
//! Changes that may stand in a log and can't be decoded are part of the result (law 8): [`UnreadChanges`]. MariaDB's
//! compressed events come out as the plain ones that they are.
//!
//! Memory is bounded by law 5: 16 MiB for batches, and 1 MiB a worker for expanded payloads. An event larger
//! than a batch is held whole, but only one such event at a time.
//!
//! ```no_run
//! use binlogz_flow::events::{self, BatchItem};
//! use binlogz_flow::Input;
//!
//! let mut events = 0;
//! let input = Input::open("binlog.000001".as_ref())?;
//! let count = |_: &mut (), batch: &mut events::EventBatch<'_>| {
//!     let mut count = 0;
//!     while let Some(item) = batch.next_item() {
//!         count += u64::from(matches!(item, BatchItem::Event(_)));
//!     }
//!     Ok(count)
//! };
//! let ran = events::run(input, 2, || Ok(()), count, |count| { events += count; Ok(()) }, &mut |_| {})?;
//! assert!(ran.unread.is_empty(), "changes may be missing");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod carried;
mod event;
mod kept;
mod large_payload;
mod list;
mod log;
mod payload_place;
mod permit;
mod queued;
mod small_payload;
mod source;
mod step;
mod tables;
#[cfg(test)]
mod tests;
mod turns;

pub use crate::position::{EventPosition, InsidePayload};
pub use crate::unread::{UnreadChanges, UnreadEvents};
pub use batch::EventBatch;
pub use carried::{CarriedState, HeldEvent, statement_text};
pub use event::{BatchItem, Event, PayloadEnd};
pub use kept::{KeptEvents, SpilledEvents};
pub use list::{EventList, ListedEvents, Outline};
pub use log::InputLog;
pub use tables::{TableEvent, WorkerTables};
pub use turns::BatchTurn;

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Error;
use crate::read::input::Input;
use crate::read::{CutEvent, ReadProgress};
use crate::work::ordered;
use queued::QueuedBatch;
use small_payload::PayloadBuffer;
use source::{EventsJob, LogSource, MemoryPlan};
use turns::BatchTurns;

/// Totals of the bytes read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadSummary {
    /// Bytes of whole events, and of what precedes them.
    pub bytes_read: u64,
    /// Set if the log is in use: it ends inside an event, of which this many bytes are there.
    pub cut: Option<CutEvent>,
}

/// The result of [`run`]. A caller takes both parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "changes that could not be read have to be told"]
pub struct RunSummary {
    /// Totals of the bytes read.
    pub read: ReadSummary,
    /// Changes that may stand in the logs and could not be read.
    pub unread: UnreadChanges,
}

/// Passes the events of the logs in `input` through `work`, with `workers` threads, and the result of each
/// batch to `sink`, in order. `new_worker` makes the state that a worker keeps from batch to batch.
///
/// `work` should take all events of a batch: nothing else looks at those it leaves. Events that may hold changes and
/// can't be decoded are part of the result. `work` adds events that it can't decode with [`Event::unread`], and takes
/// back those that weren't asked for with [`Event::pass_over`].
///
/// # Errors
///
/// Bad bytes with their offset, an input that fails, errors of `work` and `sink`: the first one in the order
/// of the log.
pub fn run<W, R: Send>(
    input: Input,
    workers: usize,
    new_worker: impl Fn() -> Result<W, Error> + Sync,
    work: impl Fn(&mut W, &mut EventBatch<'_>) -> Result<R, Error> + Sync,
    sink: impl FnMut(R) -> Result<(), Error>,
    progress: ReadProgress<'_>,
) -> Result<RunSummary, Error> {
    run_planned(input, workers, MemoryPlan::for_workers(workers), new_worker, work, sink, progress)
}

/// As [`run`], for work that makes something of each table in a batch, in logs with many tables: of batches eight times as large, with
/// as much more memory.
///
/// # Errors
///
/// As [`run`].
pub fn run_of_many_tables<W, R: Send>(
    input: Input,
    workers: usize,
    new_worker: impl Fn() -> Result<W, Error> + Sync,
    work: impl Fn(&mut W, &mut EventBatch<'_>) -> Result<R, Error> + Sync,
    sink: impl FnMut(R) -> Result<(), Error>,
    progress: ReadProgress<'_>,
) -> Result<RunSummary, Error> {
    run_planned(input, workers, MemoryPlan::for_many_tables(workers), new_worker, work, sink, progress)
}

/// The result of a job.
enum WorkDone<R> {
    Batch { result: R, failed: Option<Error>, bytes_read: u64, unread: UnreadOfBatch },
    Cut(CutEvent),
}

/// Changes of a batch that could not be read, and those of its log, which are asked for in the order of the log.
struct UnreadOfBatch {
    batch: UnreadChanges,
    log: Arc<InputLog>,
}

impl UnreadOfBatch {
    fn add_to(self, all: &mut UnreadChanges) {
        all.add(self.batch);
        all.add(self.log.unread.take());
    }
}

/// Does the work on a batch.
fn worked<R, E>(
    batch: Box<QueuedBatch>,
    payloads: &mut PayloadBuffer,
    work: impl FnOnce(&mut EventBatch<'_>) -> Result<R, E>,
) -> Result<WorkDone<R>, E> {
    let mut events = EventBatch::new(&batch, payloads);
    let result = work(&mut events)?;
    let failed = events.into_failed();
    let unread = UnreadOfBatch { batch: batch.unread.take(), log: batch.log };
    Ok(WorkDone::Batch { result, failed, bytes_read: batch.bytes_read, unread })
}

fn run_planned<W, R: Send>(
    mut input: Input,
    workers: usize,
    plan: MemoryPlan,
    new_worker: impl Fn() -> Result<W, Error> + Sync,
    work: impl Fn(&mut W, &mut EventBatch<'_>) -> Result<R, Error> + Sync,
    mut sink: impl FnMut(R) -> Result<(), Error>,
    progress: ReadProgress<'_>,
) -> Result<RunSummary, Error> {
    let stop = input.stop();
    let mut source = LogSource::new(input, plan);
    let mut ran = RunSummary::default();
    ordered::run(
        workers,
        || source.next_job(),
        stop,
        || Ok((new_worker()?, PayloadBuffer::default())),
        |(worker, payloads), job| {
            Ok(match job {
                EventsJob::Cut(cut) => WorkDone::Cut(cut),
                EventsJob::Batch(batch) => worked(batch, payloads, |events| work(worker, events))?,
            })
        },
        |done| {
            match done {
                WorkDone::Cut(cut) => ran.read.cut = Some(cut),
                WorkDone::Batch { result, failed, bytes_read, unread } => {
                    sink(result)?;
                    unread.add_to(&mut ran.unread);
                    if let Some(error) = failed {
                        return Err(error);
                    }
                    ran.read.bytes_read += bytes_read;
                    progress(ran.read.bytes_read);
                }
            }
            Ok(())
        },
    )?;
    Ok(ran)
}

/// The result of [`run_in_turns`].
#[derive(Debug)]
#[must_use = "changes that could not be read have to be told"]
pub struct TurnsSummary<S> {
    /// Totals of the bytes read.
    pub read: ReadSummary,
    /// The state after the last event; `None` if the run ended earlier.
    pub state: Option<S>,
    /// Changes that may stand in the logs, as far as the run went, and could not be read.
    pub unread: UnreadChanges,
    /// Why the log could not be read to its end. The results for everything before that went to the sink.
    pub failed: Option<Error>,
}

/// As [`run`], for work that depends on the events before a batch: a `state` is handed from batch to batch,
/// in order; see [`BatchTurn`]. The sink may end the run. With `verify`, checksums are checked; without it, only
/// unreadable bytes are an error.
///
/// # Errors
///
/// The errors of `new_worker`, `work` and `sink`. Bad bytes are part of the summary.
pub fn run_in_turns<S: Send, W, R: Send, E: Send + From<Error>>(
    mut input: Input,
    workers: usize,
    verify: bool,
    state: S,
    new_worker: impl Fn() -> Result<W, E> + Sync,
    work: impl Fn(&mut W, BatchTurn<S>, &mut EventBatch<'_>) -> Result<R, E> + Sync,
    mut sink: impl FnMut(R) -> Result<ControlFlow<()>, E>,
) -> Result<TurnsSummary<S>, E> {
    enum End<E> {
        Asked,
        Unreadable(Error),
        Error(E),
    }
    let stop = input.stop();
    let mut source = LogSource::new(input, MemoryPlan::for_text(workers, verify));
    let mut read = ReadSummary::default();
    let mut unread = UnreadChanges::default();
    let mut turns = BatchTurns::new(state);
    let ran = ordered::run(
        workers,
        || {
            let job = source.next_job()?;
            Some(match job {
                Ok(job) => Ok((job, turns.next())),
                Err(error) => Err(End::Unreadable(error)),
            })
        },
        stop,
        || Ok((new_worker().map_err(End::Error)?, PayloadBuffer::default())),
        |(worker, payloads), (job, turn)| {
            Ok(match job {
                EventsJob::Cut(cut) => {
                    if let Some(state) = turn.wait() {
                        turn.pass(state);
                    }
                    WorkDone::Cut(cut)
                }
                EventsJob::Batch(batch) => {
                    worked(batch, payloads, |events| work(worker, turn, events)).map_err(End::Error)?
                }
            })
        },
        |done| {
            match done {
                WorkDone::Cut(cut) => read.cut = Some(cut),
                WorkDone::Batch { result, failed, bytes_read, unread: of_batch } => {
                    let goes_on = sink(result).map_err(End::Error)?.is_continue();
                    of_batch.add_to(&mut unread);
                    if let Some(error) = failed.filter(|_| goes_on) {
                        return Err(End::Unreadable(error));
                    }
                    read.bytes_read += bytes_read;
                    if !goes_on {
                        return Err(End::Asked);
                    }
                }
            }
            Ok(())
        },
    );
    let failed = match ran {
        Ok(()) | Err(End::Asked) => None,
        Err(End::Unreadable(error)) => Some(error),
        Err(End::Error(error)) => return Err(error),
    };
    Ok(TurnsSummary { read, state: turns.last(), unread, failed })
}
