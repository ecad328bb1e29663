//! A batch of events in a worker's hands: checks each event and returns it.

use std::ops::Range;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{
    ChangeContent, Error as BinlogError, EventFrame, EventType, TransactionBoundaryParser, UnverifiedFrame,
    VerifiedFrame,
};

use super::carried::CarriedState;
use super::event::BatchItem;
use super::list::{EventList, ListedEvents};
use super::log::InputLog;
use super::queued::{BatchContent, QueuedBatch};
use super::small_payload::{PayloadBuffer, PayloadEvents};
use super::step::{ItemStep, item_of};
use crate::error::Error;
use crate::position::EventPosition;
use crate::unread::{self, UnreadChanges, UnreadEvents};

/// Events are read ahead until their payloads have expanded to this many bytes.
const EXPANDED_AHEAD_MAX: usize = 3 << 20;

/// The events of a batch; see [`super::run`].
#[derive(Debug)]
pub struct EventBatch<'w> {
    batch: &'w QueuedBatch,
    payloads: &'w mut PayloadBuffer,
    transaction: TransactionBoundaryParser,
    state: BatchState,
    /// Where the next event of the log begins in the batch's bytes.
    next: usize,
    failed: Option<Error>,
    /// Payloads are kept, one after the other, for a list.
    keeps: bool,
    /// Payloads of the batch's events are left as they are.
    leaves_payloads: bool,
}

/// The next step.
#[derive(Debug)]
enum BatchState {
    /// Events of the log.
    Log,
    /// The event of a payload that was too large for a worker.
    LargePayload(PayloadEvents),
    /// The events of the payload event at this place in the batch's bytes.
    SmallPayload { event: Range<usize>, offset: u64, end_log_pos: u32 },
    /// The next event inside a payload.
    Inside(PayloadEvents),
}

impl<'w> EventBatch<'w> {
    pub(super) fn new(batch: &'w QueuedBatch, payloads: &'w mut PayloadBuffer) -> Self {
        let (state, next) = match &batch.content {
            BatchContent::Log { .. } => (BatchState::Log, batch.range.start),
            BatchContent::Payload { place, opens, first_index, first_offset, end } => {
                let inside = PayloadEvents {
                    payload_offset: place.offset,
                    end_log_pos: place.header.end_log_pos,
                    small: false,
                    next: 0,
                    start: 0,
                    index: *first_index,
                    base: *first_offset,
                    end: *end,
                };
                let state =
                    if *opens { BatchState::LargePayload(inside) } else { BatchState::Inside(inside) };
                (state, batch.range.end)
            }
        };
        let transaction = batch.carried.transaction.clone();
        EventBatch {
            batch,
            payloads,
            transaction,
            state,
            next,
            failed: None,
            keeps: false,
            leaves_payloads: false,
        }
    }

    /// The log that the events belong to.
    pub fn log(&self) -> &'w InputLog {
        &self.batch.log
    }

    /// State that the events before the batch left behind.
    pub fn carried(&self) -> &'w CarriedState {
        &self.batch.carried
    }

    /// Where the batch begins in the log; of one inside a payload, where the payload event begins.
    pub fn offset(&self) -> u64 {
        self.batch.start()
    }

    /// The state of the transactions after the last item: whether one is open, and which kind of events it has.
    pub fn transaction(&self) -> &TransactionBoundaryParser {
        &self.transaction
    }

    /// Ends the batch: it returns nothing more, and the run fails with this error once the results for the
    /// earlier events went to the sink.
    pub fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Whether the run fails after the batch's results.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Leaves payloads unopened, but for those too large for a worker: for callers that look for what isn't in payloads.
    pub(crate) fn leave_payloads(&mut self) {
        self.leaves_payloads = true;
    }

    /// Keeps only those notes about changes that could not be read which the caller was asked for. It takes the events
    /// of the batch that have passed, or were read ahead.
    pub fn retain_unread(&self, keep: impl FnMut(&UnreadEvents<'_>) -> bool) {
        self.batch.unread.retain(keep);
    }

    /// Whether there are notes about changes that could not be read, of events that have passed or were read ahead.
    pub fn has_unread(&self) -> bool {
        !self.batch.unread.is_empty()
    }

    /// Takes the notes about changes that could not be read: the run's result doesn't have them then.
    pub fn take_unread(&self) -> UnreadChanges {
        self.batch.unread.take()
    }

    /// The error that the batch failed with; after the last event, which leaves no large buffer.
    pub(super) fn into_failed(self) -> Option<Error> {
        self.payloads.shrink();
        self.failed
    }

    /// The next event, or end of a payload; `None` after the last. Bytes that can't be read are an end too:
    /// the run then fails as with [`EventBatch::fail`].
    #[inline]
    pub fn next_item(&mut self) -> Option<BatchItem<'_>> {
        if self.failed.is_some() {
            return None;
        }
        match self.step() {
            Ok(step) => self.item(step?),
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }

    /// Finds and checks the next item.
    #[inline]
    fn step(&mut self) -> Result<Option<ItemStep>, Error> {
        loop {
            match &mut self.state {
                BatchState::Log => return self.log_event(),
                BatchState::LargePayload(inside) => {
                    self.state = BatchState::Inside(*inside);
                    return Ok(Some(ItemStep::LargePayload));
                }
                BatchState::SmallPayload { event, offset, end_log_pos } => {
                    let event = self.batch.bytes.get(event.clone()).unwrap_or_default();
                    let inside =
                        self.payloads.expand(event, *offset, *end_log_pos, self.batch, self.keeps)?;
                    self.state = BatchState::Inside(inside);
                }
                BatchState::Inside(inside) => {
                    let bytes = match inside.small {
                        true => &self.payloads.expanded,
                        false => self.batch.bytes(),
                    };
                    if let Some(step) = inside.event(bytes, &self.batch.log)? {
                        note_inside(self.batch, bytes, &step);
                        return Ok(Some(step));
                    }
                    let end = inside.end;
                    self.state = BatchState::Log;
                    if let Some(end) = end {
                        return Ok(Some(ItemStep::PayloadEnd(end)));
                    }
                }
            }
        }
    }

    /// The next event of the log.
    #[inline]
    fn log_event(&mut self) -> Result<Option<ItemStep>, Error> {
        let bytes = self.batch.bytes.get(self.next..self.batch.range.end).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(None);
        }
        let offset = self.batch.offset_of(self.next);
        let unverified =
            self.batch.log.context.framing.next_frame(bytes).map_err(|error| error.at(offset, None))?;
        // The source only passes on whole events.
        let cut = || BinlogError::Truncated { needed: HEADER_SIZE as u64, left: bytes.len() as u64 };
        let unverified = unverified.ok_or_else(cut).map_err(|error| error.at(offset, None))?;
        let header = *unverified.header();
        let frame = match self.batch.verify {
            true => unverified.verify().map(VerifiedFrame::frame),
            false => unverified.unchecked(),
        };
        let frame = frame.map_err(|error| error.at(offset, Some(header.event_type)))?;
        let range = self.next..self.next + header.event_size as usize;
        self.next = range.end;
        let checksum_size = frame.checksum_size();
        let event_type = header.event_type;
        if event_type == EventType::TRANSACTION_PAYLOAD {
            if !self.leaves_payloads {
                let event = range.clone();
                let end_log_pos = header.end_log_pos;
                self.state = BatchState::SmallPayload { event, offset, end_log_pos };
            }
        } else if event_type.mariadb_expanded().is_some() {
            return Ok(Some(self.expand(range, checksum_size, unverified)));
        } else {
            let position = EventPosition { offset, inside: None };
            self.batch.unread.by_type(self.batch.log.number, position, &header, frame.body());
        }
        Ok(Some(ItemStep::Event { range, checksum_size, event_type }))
    }

    /// Expands a compressed event of MariaDB. One that can't be expanded is handed out as it is, and noted.
    fn expand(&mut self, stored: Range<usize>, checksum_size: usize, event: UnverifiedFrame<'_>) -> ItemStep {
        let batch = self.batch;
        let header = *event.header();
        // Damage must not be expanded, and so hidden, even where checksums are not asked for.
        let expanded = event
            .verify()
            .and_then(|frame| self.payloads.expand_event(frame.frame(), &batch.log.lengths, self.keeps));
        match expanded {
            Ok((range, event_type)) => ItemStep::Expanded { range, stored, event_type },
            Err(error) => {
                let position = EventPosition { offset: batch.offset_of(stored.start), inside: None };
                batch.unread.note(batch.log.number, (position, &header), None, unread::why(&error));
                ItemStep::Event { range: stored, checksum_size, event_type: header.event_type }
            }
        }
    }

    /// Returns the item of a step.
    #[inline]
    fn item(&mut self, step: ItemStep) -> Option<BatchItem<'_>> {
        let batch = self.batch;
        let mut item = item_of(batch, &self.payloads.expanded, &step)?;
        if let BatchItem::Event(event) = &mut item
            && event.position.inside.is_none()
        {
            event.placement = self.transaction.feed(&event.header, event.body);
        }
        Some(item)
    }

    /// Reads events ahead into `list`, replacing its contents, until the batch ends or many bytes were
    /// expanded. They can then be read repeatedly. `false` if the batch had none left.
    pub fn read_ahead(&mut self, list: &mut EventList) -> bool {
        list.steps.clear();
        self.keeps = true;
        self.payloads.expanded.clear();
        while self.failed.is_none() {
            let is_whole = !matches!(self.state, BatchState::Inside(inside) if inside.small);
            if is_whole && self.payloads.expanded.len() >= EXPANDED_AHEAD_MAX {
                break;
            }
            match self.step() {
                Ok(Some(step)) => list.steps.push(step),
                Ok(None) => break,
                Err(error) => self.failed = Some(error),
            }
        }
        !list.steps.is_empty()
    }

    /// Whether all events of the batch were returned or read ahead.
    pub fn is_at_end(&self) -> bool {
        self.failed.is_some() || matches!(self.state, BatchState::Log) && self.next >= self.batch.range.end
    }

    /// The events that were read ahead.
    pub fn listed<'l>(&'l self, list: &'l EventList) -> ListedEvents<'l> {
        ListedEvents { batch: self.batch, expanded: &self.payloads.expanded, steps: &list.steps }
    }
}

/// Notes an event inside a payload, if it may hold changes and can't be decoded.
#[inline]
fn note_inside(batch: &QueuedBatch, bytes: &[u8], step: &ItemStep) {
    let ItemStep::Inside { range, event_type, payload_offset, inside, .. } = step else { return };
    match event_type.changes() {
        ChangeContent::None if *event_type != EventType::IGNORABLE => {}
        ChangeContent::Beside => {}
        ChangeContent::Decoded if event_type.mariadb_expanded().is_none() => {}
        ChangeContent::None | ChangeContent::Decoded | ChangeContent::Unread | ChangeContent::Lost => {
            let bytes = bytes.get(range.clone()).unwrap_or_default();
            if let Ok(frame) = EventFrame::from_bytes(bytes, 0) {
                let position = EventPosition { offset: *payload_offset, inside: Some(*inside) };
                batch.unread.by_type(batch.log.number, position, frame.header(), frame.body());
            }
        }
    }
}
