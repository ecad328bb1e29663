//! A batch of events in a worker's hands: checks each event and hands it out, expands small payloads.

use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::{CompressionType, TransactionPayloadEvent, TransactionPayloadHeader};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::transaction::Placement;
use binlogz_binlog::{
    Boundary, Error as BinlogError, EventFrame, EventHeader, EventType, TransactionAssembler, VerifiedFrame,
};
use binlogz_payload::{Error as PayloadError, Expander, PayloadSizes, expanded_size_max};

use super::carried::Carried;
use super::kept::ReadAgain;
use super::large_payload::{PayloadBytes, cut_event, no_events, whole_event};
use super::list::{EventList, Listed};
use super::permit::Permit;
use super::source::Log;
use crate::buffers::Lent;
use crate::error::Error;

/// Events are read ahead until their payloads expanded to so many bytes.
const EXPANDED_AHEAD_MAX: usize = 3 << 20;

/// Events on their way to a worker.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) log: Arc<Log>,
    pub(super) bytes: Arc<Lent>,
    /// Which of the bytes.
    pub(super) range: Range<usize>,
    /// Where the range can be read again, if it stands in a file.
    pub(super) again: Option<ReadAgain>,
    pub(super) content: Content,
    pub(super) carried: Carried,
    /// Bytes of the log that are read when this batch is done.
    pub(super) bytes_read: u64,
    /// Held while the batch is larger than others may be.
    pub(super) permit: Option<Permit>,
    /// Whether checksums are looked at.
    pub(super) verify: bool,
}

/// Where the events of a batch stand.
#[derive(Debug)]
pub(super) enum Content {
    /// In the log, from this offset on.
    Log { offset: u64 },
    /// In a payload that was too large for a worker.
    Payload {
        place: Arc<PayloadPlace>,
        /// Whether the payload event itself comes first.
        opens: bool,
        /// Which event of the payload is the first of the batch, and where it begins in there.
        first_index: u64,
        first_offset: u64,
        /// Set if the payload ends behind the last event.
        end: Option<PayloadEnd>,
    },
}

/// A payload event in its log.
#[derive(Debug)]
pub(super) struct PayloadPlace {
    pub(super) offset: u64,
    pub(super) header: EventHeader,
    /// The event up to its payload.
    pub(super) front: Box<[u8]>,
    /// What stands behind it as its checksum, where the log has checksums.
    pub(super) checksum: Option<u32>,
    /// All of it.
    pub(super) source: Arc<PayloadBytes>,
}

/// What [`EventBatch::next_item`] hands out.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// An event. One that is a payload is followed by the events inside.
    Event(Event<'a>),
    /// Behind the last event of a payload.
    PayloadEnd(PayloadEnd),
}

/// A whole event, checked as far as its checksum goes.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The log it stands in.
    pub log: &'a Log,
    /// Where it stands there.
    pub position: EventPosition,
    /// Where it stands in its transaction. A payload ends one as far as the log goes, and all events
    /// inside are [`Boundary::Inside`]; what ends with [`Item::PayloadEnd`] is the transaction.
    pub placement: Placement,
    /// Its header.
    pub header: EventHeader,
    /// What stands between header and checksum. Of a payload event only the fields in front of the
    /// payload.
    pub body: &'a [u8],
    /// The whole event, with its checksum; `None` of a payload that is expanded piece by piece.
    pub frame: Option<EventFrame<'a>>,
    /// Of a payload that is expanded piece by piece.
    large: Option<&'a PayloadPlace>,
}

/// Where an event stands in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPosition {
    /// Where it begins; of one inside a payload, where the payload event begins.
    pub offset: u64,
    /// Its place in the payload.
    pub inside: Option<InsidePayload>,
}

/// The place of an event in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InsidePayload {
    /// Which of its events, counted from 0.
    pub index: u64,
    /// Where the event begins in the payload, in uncompressed bytes.
    pub offset: u64,
    /// `end_log_pos` of the payload event, which servers take for that of each event inside.
    pub end_log_pos: u32,
}

/// The end of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadEnd {
    /// Where the payload event begins.
    pub offset: u64,
    /// How large it was, and its events: as found, not as it says.
    pub sizes: PayloadSizes,
}

/// What a worker expands payloads with, used again for each.
#[derive(Debug, Default)]
pub(super) struct PayloadBuffer {
    expander: Option<Expander>,
    /// The payload that is handed out, or, for an [`EventList`], all those of the list.
    expanded: Vec<u8>,
}

/// The events of a batch; see [`super::run`].
#[derive(Debug)]
pub struct EventBatch<'w> {
    batch: &'w Batch,
    payloads: &'w mut PayloadBuffer,
    transaction: TransactionAssembler,
    state: State,
    /// Where the next event of the log begins in the batch's bytes.
    next: usize,
    failed: Option<Error>,
    /// Payloads are kept, one behind the other, for a list.
    keeps: bool,
}

/// What comes next.
#[derive(Debug)]
enum State {
    /// Events of the log.
    Log,
    /// The event of a payload that was too large for a worker.
    LargePayload(Inside),
    /// The events of the payload event that stands there in the batch's bytes.
    SmallPayload { event: Range<usize>, offset: u64, end_log_pos: u32 },
    /// The next event inside a payload.
    Inside(Inside),
}

/// A payload whose events are handed out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside {
    /// Where the payload event begins in the log.
    payload_offset: u64,
    end_log_pos: u32,
    /// Whether the events are in the worker's buffer; else they are the batch's bytes.
    small: bool,
    /// Where the next event begins in there, and where the first one did.
    next: usize,
    start: usize,
    /// Which event of the payload that is.
    index: u64,
    /// Where the first byte in there stands in the payload.
    base: u64,
    /// What ends the payload, if it ends there.
    end: Option<PayloadEnd>,
}

/// Something to hand out, as places instead of borrows.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Event {
        range: Range<usize>,
        checksum_size: usize,
        event_type: EventType,
    },
    LargePayload,
    Inside {
        range: Range<usize>,
        small: bool,
        event_type: EventType,
        payload_offset: u64,
        inside: InsidePayload,
    },
    PayloadEnd(PayloadEnd),
}

/// Where an event stands in its transaction as long as nobody looked.
const INSIDE: Placement = Placement { boundary: Boundary::Inside, malformed: None };

impl<'a> Event<'a> {
    /// An event that is at hand. Where it stands in its transaction is left to the caller.
    #[inline]
    pub(super) fn whole(log: &'a Log, position: EventPosition, frame: EventFrame<'a>) -> Self {
        let (header, body) = (*frame.header(), frame.body());
        Event { log, position, placement: INSIDE, header, body, frame: Some(frame), large: None }
    }
}

impl Event<'_> {
    /// Whether the event stands inside a payload.
    pub fn is_inside_payload(&self) -> bool {
        self.position.inside.is_some()
    }

    /// The checksum behind the event, where it has one.
    pub fn stored_checksum(&self) -> Option<u32> {
        match self.large {
            Some(place) => place.checksum,
            None => self.frame.and_then(|frame| frame.stored_checksum()),
        }
    }

    /// Appends a part of an event that is too large to be held: one whose `frame` is `None`.
    ///
    /// # Errors
    ///
    /// A log that can't be read a second time.
    pub fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(place) = self.large else { return Ok(()) };
        let end = range.end.min(u64::from(self.header.event_size));
        place.source.read(range.start.min(end)..end, out).map_err(|error| self.error(error))
    }

    /// Where the log goes on behind the event, as its header says: of one inside a payload, as the
    /// payload's header says, which is how servers see it.
    pub fn end_log_pos(&self) -> u32 {
        self.position.inside.map_or(self.header.end_log_pos, |inside| inside.end_log_pos)
    }

    /// Says where an error in the event's body is.
    #[cold]
    pub fn error(&self, error: BinlogError) -> Error {
        let (offset, event_type) = (self.position.offset, Some(self.header.event_type));
        match self.position.inside {
            None => error.at(offset, event_type).into(),
            Some(inside) => PayloadError::from(error.at(inside.offset, event_type)).in_payload(offset).into(),
        }
    }
}

impl<'w> EventBatch<'w> {
    pub(super) fn new(batch: &'w Batch, payloads: &'w mut PayloadBuffer) -> Self {
        let (state, next) = match &batch.content {
            Content::Log { .. } => (State::Log, batch.range.start),
            Content::Payload { place, opens, first_index, first_offset, end } => {
                let inside = Inside {
                    payload_offset: place.offset,
                    end_log_pos: place.header.end_log_pos,
                    small: false,
                    next: 0,
                    start: 0,
                    index: *first_index,
                    base: *first_offset,
                    end: *end,
                };
                let state = if *opens { State::LargePayload(inside) } else { State::Inside(inside) };
                (state, batch.range.end)
            }
        };
        let transaction = batch.carried.transaction.clone();
        EventBatch { batch, payloads, transaction, state, next, failed: None, keeps: false }
    }

    /// The log that the events stand in.
    pub fn log(&self) -> &'w Log {
        &self.batch.log
    }

    /// What the events before the batch left behind.
    pub fn carried(&self) -> &'w Carried {
        &self.batch.carried
    }

    /// Where the batch begins in the log; of one inside a payload, where the payload event begins.
    pub fn offset(&self) -> u64 {
        self.batch.start()
    }

    /// The transactions as they are behind the last item: whether one is open, what it holds.
    pub fn transaction(&self) -> &TransactionAssembler {
        &self.transaction
    }

    /// Ends the batch: nothing more is handed out, and the run fails with this error once what was
    /// made of the events before went to the sink.
    pub fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Whether the run fails behind what is made of the batch.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// What the batch failed with.
    pub(super) fn into_failed(self) -> Option<Error> {
        self.failed
    }

    /// The next event, or end of a payload; `None` behind the last. Bytes that can't be read are an
    /// end too: the run then fails as with [`EventBatch::fail`].
    #[inline]
    pub fn next_item(&mut self) -> Option<Item<'_>> {
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

    /// Finds and checks what comes next.
    #[inline]
    fn step(&mut self) -> Result<Option<Step>, Error> {
        loop {
            match &mut self.state {
                State::Log => return self.log_event(),
                State::LargePayload(inside) => {
                    self.state = State::Inside(*inside);
                    return Ok(Some(Step::LargePayload));
                }
                State::SmallPayload { event, offset, end_log_pos } => {
                    let event = self.batch.bytes.get(event.clone()).unwrap_or_default();
                    let inside =
                        self.payloads.expand(event, *offset, *end_log_pos, self.batch, self.keeps)?;
                    self.state = State::Inside(inside);
                }
                State::Inside(inside) => {
                    let bytes = match inside.small {
                        true => &self.payloads.expanded,
                        false => self.batch.bytes(),
                    };
                    if let Some(step) = inside.event(bytes, &self.batch.log)? {
                        return Ok(Some(step));
                    }
                    let end = inside.end;
                    self.state = State::Log;
                    if let Some(end) = end {
                        return Ok(Some(Step::PayloadEnd(end)));
                    }
                }
            }
        }
    }

    /// The next event of the log.
    #[inline]
    fn log_event(&mut self) -> Result<Option<Step>, Error> {
        let bytes = self.batch.bytes.get(self.next..self.batch.range.end).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(None);
        }
        let offset = self.batch.offset_of(self.next);
        let unverified = self.batch.log.context.framing.next_frame(bytes);
        let unverified = unverified.map_err(|error| error.at(offset, None))?;
        // The source hands out whole events.
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
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            let (event, end_log_pos) = (range.clone(), header.end_log_pos);
            self.state = State::SmallPayload { event, offset, end_log_pos };
        }
        let (checksum_size, event_type) = (frame.checksum_size(), header.event_type);
        Ok(Some(Step::Event { range, checksum_size, event_type }))
    }

    /// Hands out what a step found.
    #[inline]
    fn item(&mut self, step: Step) -> Option<Item<'_>> {
        let batch = self.batch;
        let mut item = item_of(batch, &self.payloads.expanded, &step)?;
        if let Item::Event(event) = &mut item
            && event.position.inside.is_none()
        {
            event.placement = self.transaction.feed(&event.header, event.body);
        }
        Some(item)
    }

    /// Reads events ahead into `list`, in place of what it held: until the batch ends, or until much
    /// was expanded. They can be looked at as often as need be. `false`: the batch had none left.
    pub fn read_ahead(&mut self, list: &mut EventList) -> bool {
        list.steps.clear();
        self.keeps = true;
        self.payloads.expanded.clear();
        while self.failed.is_none() {
            let is_whole = !matches!(self.state, State::Inside(inside) if inside.small);
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

    /// Whether all events of the batch were handed out or read ahead.
    pub fn is_at_end(&self) -> bool {
        self.failed.is_some() || matches!(self.state, State::Log) && self.next >= self.batch.range.end
    }

    /// The events that were read ahead.
    pub fn listed<'l>(&'l self, list: &'l EventList) -> Listed<'l> {
        Listed { batch: self.batch, expanded: &self.payloads.expanded, steps: &list.steps }
    }
}

/// What a step found, as borrows. Where it stands in its transaction is left to the caller.
#[inline]
pub(super) fn item_of<'a>(batch: &'a Batch, expanded: &'a [u8], step: &Step) -> Option<Item<'a>> {
    let log = &*batch.log;
    Some(Item::Event(match step {
        Step::PayloadEnd(end) => return Some(Item::PayloadEnd(*end)),
        Step::Event { range, checksum_size, .. } => {
            let position = EventPosition { offset: batch.offset_of(range.start), inside: None };
            let frame = EventFrame::from_bytes(batch.bytes.get(range.clone())?, *checksum_size).ok()?;
            let mut event = Event::whole(log, position, frame);
            if event.header.event_type == EventType::TRANSACTION_PAYLOAD {
                event.body = payload_fields(event.body)?;
            }
            event
        }
        Step::LargePayload => {
            let Content::Payload { place, .. } = &batch.content else { return None };
            let (header, body) = (place.header, place.front.get(HEADER_SIZE..)?);
            let position = EventPosition { offset: place.offset, inside: None };
            Event { log, position, placement: INSIDE, header, body, frame: None, large: Some(place) }
        }
        Step::Inside { range, small, payload_offset, inside, .. } => {
            let bytes = if *small { expanded } else { batch.bytes() };
            let frame = EventFrame::from_bytes(bytes.get(range.clone())?, 0).ok()?;
            Event::whole(log, EventPosition { offset: *payload_offset, inside: Some(*inside) }, frame)
        }
    }))
}

impl Batch {
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }

    /// Where it begins in the log; of one inside a payload, where the payload event begins.
    pub(super) fn start(&self) -> u64 {
        match &self.content {
            Content::Log { offset } => *offset,
            Content::Payload { place, .. } => place.offset,
        }
    }

    /// Offset in the log of a place in the bytes.
    pub(super) fn offset_of(&self, place: usize) -> u64 {
        match &self.content {
            Content::Log { offset } => offset + (place - self.range.start) as u64,
            Content::Payload { place, .. } => place.offset,
        }
    }
}

impl Inside {
    /// The next event of the payload, of which `bytes` are at hand.
    #[inline]
    fn event(&mut self, bytes: &[u8], log: &Log) -> Result<Option<Step>, Error> {
        let rest = bytes.get(self.next..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let offset = self.base + (self.next - self.start) as u64;
        let damaged =
            |error: BinlogError| PayloadError::from(error.at(offset, None)).in_payload(self.payload_offset);
        let found = whole_event(log.context.framing.inside_payload(), rest).map_err(damaged)?;
        let (size, event_type) = found.ok_or_else(|| damaged(cut_event(rest)))?;
        let range = self.next..self.next + size;
        let inside = InsidePayload { index: self.index, offset, end_log_pos: self.end_log_pos };
        self.next += size;
        self.index += 1;
        let (small, payload_offset) = (self.small, self.payload_offset);
        Ok(Some(Step::Inside { range, small, event_type, payload_offset, inside }))
    }
}

impl PayloadBuffer {
    /// Expands a payload whole. The source has looked at what it can give.
    fn expand(
        &mut self,
        event: &[u8],
        offset: u64,
        end_log_pos: u32,
        batch: &Batch,
        keeps: bool,
    ) -> Result<Inside, Error> {
        let covered = event.len().saturating_sub(batch.log.context.framing.checksum().size());
        let body = event.get(HEADER_SIZE..covered).unwrap_or_default();
        let at = |error: BinlogError| error.at(offset, Some(EventType::TRANSACTION_PAYLOAD));
        let TransactionPayloadEvent { header, payload, .. } =
            TransactionPayloadEvent::decode(body).map_err(at)?;
        let out = &mut self.expanded;
        if !keeps {
            out.clear();
        }
        let start = out.len();
        if header.compression_type() == CompressionType::NONE {
            out.extend_from_slice(payload);
        } else {
            let damaged = |error: PayloadError| error.in_payload(offset);
            let unsound = PayloadError::Zstd("the payload is no row of zstd frames");
            let size = expanded_size_max(payload).ok_or_else(|| damaged(unsound))?;
            out.reserve(usize::try_from(size).unwrap_or(usize::MAX));
            let expander = match &mut self.expander {
                Some(expander) => expander,
                none => none.insert(Expander::new()?),
            };
            expander.expand_whole(payload, out).map_err(damaged)?;
        }
        if out.len() == start {
            return Err(PayloadError::from(no_events()).in_payload(offset).into());
        }
        let uncompressed = (out.len() - start) as u64;
        let sizes = PayloadSizes { compressed: header.payload_size(), uncompressed };
        Ok(Inside {
            payload_offset: offset,
            end_log_pos,
            small: true,
            next: start,
            start,
            index: 0,
            base: 0,
            end: Some(PayloadEnd { offset, sizes }),
        })
    }
}

/// What stands in front of the payload in an event's body.
fn payload_fields(body: &[u8]) -> Option<&[u8]> {
    let (_, size) = TransactionPayloadHeader::decode_front(body, body.len() as u64).ok()??;
    body.get(..size)
}
