//! Lets a reader wait until all that it gave was used: what other parts of a plan tell of the rest is known then.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures_util::{Stream, StreamExt};
use parking_lot::{Condvar, Mutex};

/// How long it is waited before it is looked whether anybody wants more at all.
const PAUSE: Duration = Duration::from_millis(50);

/// The batches of a stream: how many were given and taken, and whether the next one is waited for.
#[derive(Debug, Default)]
pub(super) struct BatchDemand {
    counts: Mutex<BatchCounts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BatchCounts {
    given: u64,
    taken: u64,
    is_waiting: bool,
}

impl BatchCounts {
    fn is_next_wanted(&self) -> bool {
        self.is_waiting && self.taken >= self.given
    }
}

impl BatchDemand {
    /// A batch was given.
    pub(super) fn gave(&self) {
        self.counts.lock().given += 1;
    }

    /// Waits until all batches were taken and the next one is waited for, or `is_over`.
    pub(super) fn wait(&self, is_over: &dyn Fn() -> bool) {
        let mut counts = self.counts.lock();
        while !(counts.is_next_wanted() || is_over()) {
            let _timed_out = self.changed.wait_for(&mut counts, PAUSE);
        }
    }

    fn polled(&self, is_taken: bool) {
        let mut counts = self.counts.lock();
        counts.is_waiting = !is_taken;
        counts.taken += u64::from(is_taken);
        self.changed.notify_all();
    }
}

/// A stream that tells when more is waited for.
pub(super) struct DemandedStream {
    pub(super) batches: SendableRecordBatchStream,
    pub(super) demand: Arc<BatchDemand>,
}

impl Stream for DemandedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.batches.poll_next_unpin(context);
        self.demand.polled(polled.is_ready());
        polled
    }
}

impl RecordBatchStream for DemandedStream {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}
