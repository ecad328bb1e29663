//! The pipeline for everything that looks at events: stats, dump, advise, verify.
//!
//! ```text
//! Input → Source: cuts batches of events, expands large payloads       one thread, headers only
//!       → workers: checksums, small payloads, whatever is made of them  all cores, any order
//!       → sink                                                          the caller's thread, in order
//! ```
//!
//! The unit of work is a batch of events, not of transactions, since one transaction may be the whole
//! file. A batch that begins inside a transaction therefore brings along what a worker needs of the
//! events before it ([`Carried`]). Where batches are cut depends on the number of workers: what is
//! made of them must add up to the same, whatever the cuts.
//!
//! Memory is bounded by law 5: 16 MiB for batches, 1 MiB a worker for what payloads expand to. An event
//! that is larger than a batch is held whole, but only one such at a time.
//!
//! ```no_run
//! use binlogz_flow::events::{self, Item};
//! use binlogz_flow::Input;
//!
//! let mut events = 0;
//! let input = Input::open("binlog.000001".as_ref())?;
//! let count = |_: &mut (), batch: &mut events::EventBatch<'_>| {
//!     let mut count = 0;
//!     while let Some(item) = batch.next_item() {
//!         count += u64::from(matches!(item, Item::Event(_)));
//!     }
//!     Ok(count)
//! };
//! events::run(input, 2, || Ok(()), count, |count| { events += count; Ok(()) }, &mut |_| {})?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod carried;
mod large_payload;
mod permit;
mod source;
mod tables;
#[cfg(test)]
mod tests;

pub use batch::{Event, EventBatch, EventPosition, InsidePayload, Item, PayloadEnd};
pub use carried::{Carried, HeldEvent};
pub use source::Log;
pub use tables::{TableEvent, Tables};

use crate::error::Error;
use crate::input::Input;
use crate::ordered;
use crate::rewrite::{Cut, Progress};
use batch::PayloadBuffer;
use source::{Job, Plan, Source};

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadSummary {
    /// Bytes of whole events, and of what stands in front of them.
    pub bytes_read: u64,
    /// The log is in use: it ends inside an event, of which so many bytes are there.
    pub cut: Option<Cut>,
}

/// Takes the events of the logs in `input` through `work`, with `workers` threads, and what it makes of
/// each batch through `sink`, in order. `new_worker` makes what a worker keeps from batch to batch.
///
/// `work` is expected to take all events of a batch: those it leaves are not looked at by anybody.
///
/// # Errors
///
/// Bad bytes with their offset, an input that fails, whatever `work` and `sink` fail with: the first
/// in the order of the log.
pub fn run<W, R: Send>(
    input: Input,
    workers: usize,
    new_worker: impl Fn() -> Result<W, Error> + Sync,
    work: impl Fn(&mut W, &mut EventBatch<'_>) -> Result<R, Error> + Sync,
    sink: impl FnMut(R) -> Result<(), Error>,
    progress: Progress<'_>,
) -> Result<ReadSummary, Error> {
    run_planned(input, workers, Plan::for_workers(workers), new_worker, work, sink, progress)
}

fn run_planned<W, R: Send>(
    mut input: Input,
    workers: usize,
    plan: Plan,
    new_worker: impl Fn() -> Result<W, Error> + Sync,
    work: impl Fn(&mut W, &mut EventBatch<'_>) -> Result<R, Error> + Sync,
    mut sink: impl FnMut(R) -> Result<(), Error>,
    progress: Progress<'_>,
) -> Result<ReadSummary, Error> {
    enum Done<R> {
        Batch { result: R, failed: Option<Error>, bytes_read: u64 },
        Cut(Cut),
    }
    let stop = input.stop();
    let mut source = Source::new(input, plan);
    let mut summary = ReadSummary::default();
    ordered::run(
        workers,
        || source.next_job(),
        stop,
        || Ok((new_worker()?, PayloadBuffer::default())),
        |(worker, payloads), job| {
            Ok(match job {
                Job::Cut(cut) => Done::Cut(cut),
                Job::Batch(batch) => {
                    let mut events = EventBatch::new(&batch, payloads);
                    let result = work(worker, &mut events)?;
                    Done::Batch { result, failed: events.into_failed(), bytes_read: batch.bytes_read }
                }
            })
        },
        |done| {
            match done {
                Done::Cut(cut) => summary.cut = Some(cut),
                Done::Batch { result, failed, bytes_read } => {
                    sink(result)?;
                    if let Some(error) = failed {
                        return Err(error);
                    }
                    summary.bytes_read += bytes_read;
                    progress(summary.bytes_read);
                }
            }
            Ok(())
        },
    )?;
    Ok(summary)
}
