//! Expands a large payload event into batches of the events inside, as its bytes come.
//!
//! Neither payload nor transaction is in memory as a whole, only the batch being filled and the largest
//! event. Nothing the payload says of itself is trusted. Its checksum is checked once its last byte arrived,
//! after the last batch.

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::event::transaction_payload::HEADER_SIZE_LIMIT;
use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{Error as BinlogError, EventHeader, EventType, Framing};
use binlogz_payload::{Error as PayloadError, Expander, PayloadSizes, check_inside};

use super::carried::{CarriedState, Tracker, WholeEvents};
use super::event::PayloadEnd;
use super::log::InputLog;
use super::payload_place::{PayloadBytes, PayloadPlace};
use super::permit::{Permit, Permits};
use super::queued::{BatchContent, QueuedBatch};
use crate::error::Error;
use crate::read::buffers::Buffers;
use crate::unread::UnreadNotes;

/// Compressed bytes read at a time.
const STAGE_SIZE: u64 = 128 << 10;
/// Approximate size of the expander's output at a time.
const PIECE_MAX: usize = 256 << 10;

/// A payload that is being expanded.
#[derive(Debug)]
pub(super) struct LargePayload {
    log: Arc<InputLog>,
    place: Arc<PayloadPlace>,
    source: Arc<PayloadBytes>,
    compression_type: CompressionType,
    /// The payload's bytes in the event that were not read yet.
    payload: Range<u64>,
    payload_size: u64,
    /// Whether checksums are checked; the checksum of the event's bytes read so far.
    verify: bool,
    crc: Option<Crc32>,
    /// Compressed bytes in memory, and how many of them are used.
    stage: Vec<u8>,
    taken: usize,
    /// The beginning of the next batch.
    expanded: Vec<u8>,
    /// Where the memory of batches comes from.
    buffers: Buffers,
    permit: Option<Permit>,
    /// Events inside that were handed out: how many, and their bytes.
    events: u64,
    bytes: u64,
    /// State for the next batch.
    carried: CarriedState,
    tracker: Tracker,
    /// The error after the last whole event.
    broken: Option<Error>,
    state: PayloadState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PayloadState {
    /// The payload event itself was not returned yet.
    Begin,
    Inside,
    Done,
}

impl LargePayload {
    pub(super) fn begin(
        log: Arc<InputLog>,
        header: EventHeader,
        offset: u64,
        source: PayloadBytes,
        (carried, tracker): (CarriedState, Tracker),
        verify: bool,
        buffers: &Buffers,
    ) -> Result<Self, Error> {
        let source = Arc::new(source);
        let at = |error: BinlogError| error.at(offset, Some(header.event_type));
        let size = u64::from(header.event_size);
        let body_size = size.saturating_sub((HEADER_SIZE + log.context.framing.checksum().size()) as u64);
        let mut front = Vec::new();
        let front_end = HEADER_SIZE as u64 + body_size.min(HEADER_SIZE_LIMIT as u64);
        source.read(0..front_end, &mut front).map_err(at)?;
        let fields = front.get(HEADER_SIZE..).unwrap_or_default();
        let decoded = TransactionPayloadHeader::decode_front(fields, body_size).map_err(at)?;
        let short = || at(BinlogError::Truncated { needed: body_size + 1, left: body_size });
        let (fields, fields_size) = decoded.ok_or_else(short)?;
        let compression_type = fields.compression_type();
        if !matches!(compression_type, CompressionType::ZSTD | CompressionType::NONE) {
            let expected = "0 (ZSTD) or 255 (NONE)";
            let what = "transaction payload";
            return Err(at(BinlogError::invalid(what, "compression type", compression_type, expected)).into());
        }
        let payload_size = fields.payload_size();
        let begin = (HEADER_SIZE + fields_size) as u64;
        front.truncate(HEADER_SIZE + fields_size);
        let crc = verify.then(|| {
            let mut crc = Crc32::new();
            crc.update(&front);
            crc
        });
        let mut checksum = Vec::new();
        source.read(HEADER_SIZE as u64 + body_size..size, &mut checksum).map_err(at)?;
        let checksum = checksum.first_chunk().map(|stored| u32::from_le_bytes(*stored));
        Ok(LargePayload {
            log,
            place: Arc::new(PayloadPlace {
                offset,
                header,
                front: front.into(),
                checksum,
                source: Arc::clone(&source),
            }),
            source,
            compression_type,
            payload: begin..begin + payload_size,
            payload_size,
            verify,
            crc,
            stage: Vec::new(),
            taken: 0,
            expanded: buffers.take(),
            buffers: buffers.clone(),
            permit: None,
            events: 0,
            bytes: 0,
            carried,
            tracker,
            broken: None,
            state: PayloadState::Begin,
        })
    }

    /// The next batch of about `target` bytes; `None` when all were handed out.
    pub(super) fn next_batch(
        &mut self,
        expander: &mut Expander,
        target: usize,
        permits: &Permits,
    ) -> Result<Option<QueuedBatch>, Error> {
        let opens = match self.state {
            PayloadState::Begin => {
                expander.begin()?;
                self.state = PayloadState::Inside;
                true
            }
            PayloadState::Inside => false,
            PayloadState::Done => return Ok(None),
        };
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        // Room for a batch and the output beyond it, so that it only grows for large events.
        self.expanded.reserve_exact((target + PIECE_MAX).saturating_sub(self.expanded.len()));
        let mut whole = 0;
        let mut events = 0;
        let end = loop {
            let more = match self.expand(expander, whole) {
                Ok(more) => more,
                Err(error) => break Err(error),
            };
            if let Err(error) = self.find_events(&mut whole, &mut events) {
                break Err(PayloadError::from(error).in_payload(self.place.offset).into());
            }
            if !more {
                break self.finish(expander, whole, events).map(Some);
            }
            if whole >= target {
                break Ok(None);
            }
            if self.expanded.len() > 2 * (target + PIECE_MAX) && self.permit.is_none() {
                self.permit = Some(permits.take());
            }
        };
        let end = end.unwrap_or_else(|error| {
            self.broken = Some(error);
            None
        });
        if end.is_none() && whole == 0 && !opens {
            // There is nothing whole before the error.
            return self.broken.take().map_or(Ok(None), Err);
        }
        self.cut(whole, events, opens, end).map(Some)
    }

    /// Returns the first `whole` bytes of the expanded output.
    fn cut(
        &mut self,
        whole: usize,
        events: u64,
        opens: bool,
        end: Option<PayloadSizes>,
    ) -> Result<QueuedBatch, Error> {
        let mut rest = self.buffers.take();
        rest.extend_from_slice(self.expanded.get(whole..).unwrap_or_default());
        let mut bytes = std::mem::replace(&mut self.expanded, rest);
        bytes.truncate(whole);
        let content = BatchContent::Payload {
            place: Arc::clone(&self.place),
            opens,
            first_index: self.events,
            first_offset: self.bytes,
            end: end.map(|sizes| PayloadEnd { offset: self.place.offset, sizes }),
        };
        self.tracker.pass_table_maps(WholeEvents {
            bytes: &bytes,
            offset: self.place.offset,
            framing: self.log.context.framing.inside_payload(),
            lengths: &self.log.lengths,
        })?;
        let carried = std::mem::replace(&mut self.carried, self.tracker.carried());
        self.events += events;
        self.bytes += whole as u64;
        let mut bytes_read = 0;
        if end.is_some() {
            self.state = PayloadState::Done;
            bytes_read = u64::from(self.place.header.event_size);
        }
        let log = Arc::clone(&self.log);
        let permit = self.permit.take();
        Ok(QueuedBatch {
            log,
            range: 0..whole,
            again: None,
            bytes: Arc::new(self.buffers.lend(bytes)),
            content,
            carried,
            bytes_read,
            permit,
            verify: self.verify,
            unread: UnreadNotes::default(),
        })
    }

    /// Expands the next piece. `false`: the payload has no more.
    fn expand(&mut self, expander: &mut Expander, whole: usize) -> Result<bool, Error> {
        let offset = self.place.offset;
        loop {
            let piece = if self.compression_type == CompressionType::NONE {
                let rest = self.stage.get(self.taken..).unwrap_or_default();
                self.taken = self.stage.len();
                Some(rest).filter(|rest| !rest.is_empty())
            } else {
                expander.next_piece(&self.stage, &mut self.taken).map_err(|error| error.in_payload(offset))?
            };
            if let Some(piece) = piece {
                if reserve(&mut self.expanded, piece.len(), whole).is_err() {
                    return Err(no_memory(&self.place.header, self.place.offset));
                }
                self.expanded.extend_from_slice(piece);
                return Ok(true);
            }
            if self.payload.is_empty() {
                return Ok(false);
            }
            self.read_stage()?;
        }
    }

    /// Reads the next compressed bytes.
    fn read_stage(&mut self) -> Result<(), Error> {
        self.stage.clear();
        self.taken = 0;
        let range = self.payload.start..self.payload.end.min(self.payload.start + STAGE_SIZE);
        self.source.read(range.clone(), &mut self.stage)?;
        if self.stage.len() as u64 != range.end - range.start {
            let found = "the file became shorter while it was read".to_owned();
            return Err(PayloadError::Payload { offset: self.place.offset, found }.into());
        }
        self.payload.start = range.end;
        if let Some(crc) = &mut self.crc {
            crc.update(&self.stage);
        }
        Ok(())
    }

    /// Looks for whole events after the first `whole` bytes.
    fn find_events(&self, whole: &mut usize, events: &mut u64) -> Result<(), BinlogError> {
        let framing = self.log.context.framing.inside_payload();
        while let Some((size, _)) = whole_event(framing, self.expanded.get(*whole..).unwrap_or_default())
            .map_err(|error| error.at(self.bytes + *whole as u64, None))?
        {
            *whole += size;
            *events += 1;
        }
        Ok(())
    }

    /// The payload is over, so its frame, its last event and the checksummed bytes must be complete.
    fn finish(&mut self, expander: &Expander, whole: usize, events: u64) -> Result<PayloadSizes, Error> {
        let offset = self.place.offset;
        if self.compression_type != CompressionType::NONE {
            expander.finish().map_err(|error| error.in_payload(offset))?;
        }
        let rest = self.expanded.get(whole..).unwrap_or_default();
        if !rest.is_empty() {
            let error = cut_event(rest).at(self.bytes + whole as u64, None);
            return Err(PayloadError::from(error).in_payload(offset).into());
        }
        if self.events + events == 0 {
            return Err(PayloadError::from(no_events()).in_payload(offset).into());
        }
        if let Some(crc) = self.crc.take() {
            self.check_checksum(crc)?;
        }
        Ok(PayloadSizes { compressed: self.payload_size, uncompressed: self.bytes + whole as u64 })
    }

    fn check_checksum(&mut self, mut crc: Crc32) -> Result<(), Error> {
        let size = u64::from(self.place.header.event_size);
        let checksum_size = self.log.context.framing.checksum().size();
        let covered = size.saturating_sub(checksum_size as u64);
        // Bytes after the payload are tolerated, as the server does.
        while self.payload.start < covered {
            self.stage.clear();
            let range = self.payload.start..covered.min(self.payload.start + STAGE_SIZE);
            self.source.read(range.clone(), &mut self.stage)?;
            crc.update(&self.stage);
            self.payload.start = range.end;
        }
        self.stage.clear();
        self.source.read(covered..size, &mut self.stage)?;
        if let Some(stored) = self.stage.first_chunk::<CHECKSUM_SIZE>() {
            let stored = u32::from_le_bytes(*stored);
            let computed = crc.finish();
            if stored != computed {
                let error = BinlogError::Checksum { stored, computed };
                return Err(error.at(self.place.offset, Some(EventType::TRANSACTION_PAYLOAD)).into());
            }
        }
        Ok(())
    }
}

/// Makes room for `more` bytes. A large event after the first `whole` bytes limits the growth by its declared
/// size, which is not trusted all at once.
fn reserve(expanded: &mut Vec<u8>, more: usize, whole: usize) -> Result<(), TryReserveError> {
    let held = expanded.len();
    if expanded.capacity() - held >= more {
        return Ok(());
    }
    let header = EventHeader::decode(expanded.get(whole..).unwrap_or_default());
    let event_end = header.map_or(0, |header| whole + header.event_size as usize);
    let goal = (2 * held).min(event_end).max(held + more);
    expanded.try_reserve_exact(goal - held)
}

/// The size and type of the event at the front of a payload's bytes; `None` if it is incomplete.
pub(super) fn whole_event(framing: Framing, bytes: &[u8]) -> Result<Option<(usize, EventType)>, BinlogError> {
    if bytes.len() < HEADER_SIZE {
        return Ok(None);
    }
    let header = EventHeader::decode(bytes)?;
    framing.check_header(&header)?;
    check_inside(&header)?;
    let size = header.event_size as usize;
    Ok((size <= bytes.len()).then_some((size, header.event_type)))
}

/// The error of a payload that ends with these bytes.
pub(super) fn cut_event(rest: &[u8]) -> BinlogError {
    let needed = EventHeader::decode(rest).map_or(HEADER_SIZE as u64, |header| u64::from(header.event_size));
    BinlogError::Truncated { needed, left: rest.len() as u64 }
}

/// The error of a payload that holds nothing.
pub(super) fn no_events() -> BinlogError {
    BinlogError::invalid("transaction payload", "number of events", 0, "at least one")
}

/// The error of an event that the memory there is has no room for.
#[cold]
pub(super) fn no_memory(header: &EventHeader, offset: u64) -> Error {
    let error = BinlogError::invalid(
        "event header",
        "event size",
        header.event_size,
        "an event that fits into the memory there is",
    );
    error.at(offset, Some(header.event_type)).into()
}
