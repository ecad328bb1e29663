//! The transaction of an event, as its GTID event tells it. A batch of events carries that GTID event even if it came
//! earlier, so each row's transaction is known with any number of threads.

use binlogz_binlog::event::{AnyGtidEvent, CommitTimestamps};
use binlogz_binlog::{Boundary, Error as BinlogError};
use binlogz_flow::Error;
use binlogz_flow::events::{Event, EventBatch};

/// A transaction; everything is `None` where no GTID event stands before it, also an anonymous one.
#[derive(Debug, Clone, Default)]
pub(super) struct TransactionFrame {
    /// The transaction's GTID.
    pub(super) gtid: Option<String>,
    /// Where its GTID event begins.
    pub(super) position: Option<u64>,
    /// When the transaction was first committed, in microseconds since 1970: an archive knows this time of its blocks. If
    /// it is unknown this is `None` and never another time, so that a block which is left out never has a row that meets
    /// the condition.
    pub(super) committed_at: Option<i64>,
    /// When the transaction was committed on the server that wrote the log, in microseconds since 1970.
    pub(super) applied_at: Option<i64>,
}

impl TransactionFrame {
    /// The transaction that a batch begins in.
    pub(super) fn begin(batch: &EventBatch<'_>) -> Result<Self, Error> {
        let mut frame = TransactionFrame::default();
        let Some(held) = &batch.carried().gtid else { return Ok(frame) };
        let mut decode = || -> Result<(), BinlogError> {
            let Some(event) = batch.log().context.framing.next_frame(&held.bytes)? else { return Ok(()) };
            if let Some(event) = AnyGtidEvent::decode_frame(&event.unchecked()?)? {
                frame.take(&event, held.offset);
            }
            Ok(())
        };
        decode().map_err(|error| error.at(held.offset, None))?;
        Ok(frame)
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pass(&mut self, event: &Event<'_>) -> Result<(), BinlogError> {
        if event.is_inside_payload() || matches!(event.placement.boundary, Boundary::Inside | Boundary::End) {
            return Ok(());
        }
        *self = TransactionFrame::default();
        if let Some(frame) = event.frame.filter(|frame| frame.event_type().is_gtid())
            && let Some(decoded) = AnyGtidEvent::decode_frame(&frame)?
        {
            self.take(&decoded, event.position.offset);
        }
        Ok(())
    }

    fn take(&mut self, event: &AnyGtidEvent<'_>, offset: u64) {
        self.gtid = event.gtid().map(|gtid| gtid.to_string());
        self.position = Some(offset);
        self.take_times(event.commit_timestamps());
    }

    /// Takes the times that a GTID event has.
    pub(super) fn take_times(&mut self, times: Option<CommitTimestamps>) {
        // 0 is unknown: a server before 8.0.1 committed it first, and told no time.
        let micros = |time: u64| i64::try_from(time).ok().filter(|time| *time > 0);
        self.applied_at = times.and_then(|times| micros(times.immediate));
        self.committed_at = times.and_then(|times| micros(times.original.unwrap_or(times.immediate)));
    }
}
