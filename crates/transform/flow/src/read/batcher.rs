//! Cuts a log into the pieces that workers take: batches of whole transactions, or of events.
//!
//! Reads headers only: where an event ends, whether it begins a transaction, whether it describes the format.
//! The workers read bodies and checksums. The output, in the order of the log:
//!
//! ```text
//! Start   a log begins: its format description
//! Batch   whole events, in memory; a transaction is never split
//! Large   one transaction, or one event, that is too large for a batch: where its bytes can be read
//! Cut     the end of a log in use: the first bytes of an event that is still being written
//! ```
//!
//! A transaction is all from one GTID event to the next. While no GTID event has been seen (servers before 5.6, 5.6
//! without GTIDs), the boundary parser says where transactions begin: it reads the first bytes of query events.

mod large;
mod start;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::PostHeaderLengths;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::reader::{LOG_START_SIZE, begins_log};
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::transaction::{Boundary, MalformedSequence, TransactionBoundaryParser};
use binlogz_binlog::{Error, EventHeader, EventType, Framing};
use binlogz_payload::LogContext;

use super::buffers::Buffers;
use super::input::{Input, ReadAt, uninterrupted};
use super::piece::{Batch, BatchSize, BatchUnit, CutEvent, LogPiece};

/// Bytes of a stream read at a time.
const READ_SIZE: usize = 256 << 10;

/// Bytes of a file read beyond the size of a batch.
const READ_BEYOND: usize = 16 << 10;

/// Bytes of buffers that are kept for the next batches.
const BUFFERS_MEMORY: usize = 4 << 20;

/// The largest format description accepted, in bytes; servers write 123.
pub(crate) const FORMAT_DESCRIPTION_SIZE_MAX: u32 = 4096;

/// Cuts a log into pieces; see the module.
#[derive(Debug)]
pub struct Batcher {
    input: Input,
    unit: BatchUnit,
    size: BatchSize,
    /// Where buffers of batches come from, if the consumer gives them back.
    buffers: Buffers,
    /// Bytes read and not returned yet; the first one begins a unit.
    pending: Vec<u8>,
    /// Where in `pending` the next unprocessed event begins.
    walked: usize,
    /// Where the processed events begin, if requested; whether a payload or compressed event is among them.
    starts: Vec<u32>,
    has_payloads: bool,
    /// The last place in `pending` at which a unit begins, if that is not its front.
    boundary: usize,
    /// Offset in the input of the first byte not read.
    read_offset: u64,
    /// Offset in the input at which the log begins.
    log_begin: u64,
    /// The buffer to read into: zeroed once, not for each of a pipe's small reads.
    chunk: Box<[u8]>,
    end_of_input: bool,
    context: Option<LogContext>,
    in_use: bool,
    gtid_seen: bool,
    /// Where transactions end, as long as no GTID event was seen.
    transactions: TransactionBoundaryParser,
    /// Whether the processed events end inside a transaction, or after rows of one whose beginning is in an earlier relay
    /// log: later events need their table maps.
    inside: bool,
    /// Parts of the log to skip, in order.
    lost: VecDeque<Range<u64>>,
    /// Whether the input doesn't have them anyway.
    is_sparse: bool,
    /// The error that ends the log, once everything before it was returned.
    ending: Option<Result<LogPiece, Error>>,
    done: bool,
}

impl Batcher {
    /// Reads `input` from its beginning.
    pub fn new(input: Input, unit: BatchUnit, size: BatchSize) -> Self {
        let (input, lost, is_sparse) = match input {
            Input::Seek { places, passed } => (Input::Places(places), VecDeque::from([passed]), false),
            Input::Sparse { stream, gaps } => (Input::Stream(stream), gaps.into(), true),
            other => (other, VecDeque::new(), false),
        };
        Batcher {
            input,
            unit,
            size,
            buffers: Buffers::new(BUFFERS_MEMORY),
            pending: Vec::new(),
            walked: 0,
            starts: Vec::new(),
            has_payloads: false,
            boundary: 0,
            read_offset: 0,
            log_begin: 0,
            chunk: vec![0; READ_SIZE].into(),
            end_of_input: false,
            context: None,
            in_use: false,
            gtid_seen: false,
            transactions: TransactionBoundaryParser::new(),
            inside: false,
            lost,
            is_sparse,
            ending: None,
            done: false,
        }
    }

    /// Skips these parts of the log as if they were not there; see [`crate::passes::salvage`]. Each begins
    /// and ends between two events.
    #[must_use]
    pub fn without(mut self, lost: impl IntoIterator<Item = Range<u64>>) -> Self {
        self.lost = lost.into_iter().collect();
        self
    }

    /// Where the log can be read a second time, and where it begins there; `None` if it can't.
    pub(crate) fn places(&self) -> Option<(&Arc<dyn ReadAt>, u64)> {
        match &self.input {
            Input::Places(places) => Some((places, self.log_begin)),
            Input::Seek { .. }
            | Input::Stream(_)
            | Input::Sparse { .. }
            | Input::Live(_)
            | Input::Pipe(_) => None,
        }
    }

    /// Takes back the buffers of batches.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// The next piece; `None` at the end of the log.
    ///
    /// # Errors
    ///
    /// Bad bytes with their offset, an input that can't be read, a log cut inside an event while not in use.
    /// No piece follows an error.
    pub fn next_piece(&mut self) -> Option<Result<LogPiece, Error>> {
        if self.done {
            return None;
        }
        if let Some(ending) = self.ending.take() {
            self.done = true;
            return Some(ending);
        }
        match self.advance() {
            Ok(Some(piece)) => Some(Ok(piece)),
            Ok(None) => {
                self.done = true;
                None
            }
            // The intact bytes before the bad ones come first.
            Err(error) => self.end_with(Err(error)),
        }
    }

    fn end_with(&mut self, ending: Result<LogPiece, Error>) -> Option<Result<LogPiece, Error>> {
        if self.walked > 0 && self.context.is_some() {
            self.ending = Some(ending);
            let batch = self.cut_batch(self.walked);
            return Some(Ok(batch));
        }
        self.done = true;
        Some(ending)
    }

    fn advance(&mut self) -> Result<Option<LogPiece>, Error> {
        loop {
            self.walk();
            if self.lost_begin() == Some(self.offset_of(self.walked)) {
                if self.walked > 0 {
                    return Ok(Some(self.cut_batch(self.walked)));
                }
                self.pass_lost()?;
                continue;
            }
            // Whole events must not wait for what comes next.
            if self.walked > 0
                && self.unit == BatchUnit::Event
                && self.ahead().is_empty()
                && self.input.is_drained()
            {
                return Ok(Some(self.cut_batch(self.walked)));
            }
            self.fill(LOG_START_SIZE)?;
            let head = self.ahead();
            if head.is_empty() && self.context.is_some() {
                return Ok((self.walked > 0).then(|| self.cut_batch(self.walked)));
            }
            if self.context.is_none() || begins_log(head) {
                if self.walked > 0 {
                    return Ok(Some(self.cut_batch(self.walked)));
                }
                return self.start_log().map(Some);
            }
            let Some(header) = self.header()? else { return self.cut_inside_event() };
            if header.event_type == EventType::FORMAT_DESCRIPTION {
                if self.walked > 0 {
                    return Ok(Some(self.cut_batch(self.walked)));
                }
                let size = header.event_size.min(FORMAT_DESCRIPTION_SIZE_MAX) as usize;
                if self.fill(size)? < size {
                    return self.cut_inside_event();
                }
                return self.start(false).map(Some);
            }
            if self.begins_unit(&header) && self.walked > 0 {
                self.boundary = self.walked;
                if self.walked >= self.size.target {
                    return Ok(Some(self.cut_batch(self.walked)));
                }
            }
            if self.walked + header.event_size as usize > self.size.max {
                if self.boundary > 0 {
                    return Ok(Some(self.cut_batch(self.boundary)));
                }
                return self.large().map(Some);
            }
            if self.fill(header.event_size as usize)? < header.event_size as usize {
                return self.cut_inside_event();
            }
            self.take(&header);
        }
    }

    /// Takes the events that are entirely in memory, up to the first one that may need special treatment.
    fn walk(&mut self) {
        let Some(LogContext { framing, .. }) = self.context else { return };
        let lost = self.lost_begin().unwrap_or(u64::MAX);
        while self.offset_of(self.walked) < lost
            && let Some(head) = self.ahead().first_chunk::<LOG_START_SIZE>()
            && let Ok(header) = EventHeader::decode(head)
        {
            let event_end = self.walked + header.event_size as usize;
            let is_at_hand = event_end <= self.pending.len().min(self.size.max);
            let begins_log = begins_log(head) || header.event_type == EventType::FORMAT_DESCRIPTION;
            if !is_at_hand || begins_log || framing.check_header(&header).is_err() {
                return;
            }
            if self.walked > 0 && self.begins_unit(&header) {
                if self.walked >= self.size.target {
                    return;
                }
                self.boundary = self.walked;
            }
            self.take(&header);
        }
    }

    /// Takes an event that is in memory.
    #[inline]
    fn take(&mut self, header: &EventHeader) {
        if self.unit == BatchUnit::Event {
            self.starts.push(self.walked as u32);
        }
        self.has_payloads |= header.event_type == EventType::TRANSACTION_PAYLOAD
            || header.event_type.mariadb_expanded().is_some();
        self.follow(header);
        self.walked += header.event_size as usize;
    }

    /// Offset in the log at which the next part to skip begins. The gaps of a sparse input are given by their offsets in
    /// the input, which may have several logs, one after the other.
    fn lost_begin(&self) -> Option<u64> {
        let lost = self.lost.front()?;
        Some(if self.is_sparse { lost.start.saturating_sub(self.log_begin) } else { lost.start })
    }

    /// Skips the next lost part, which begins at the front of `pending`.
    fn pass_lost(&mut self) -> Result<(), Error> {
        let Some(lost) = self.lost.pop_front() else { return Ok(()) };
        let mut left = lost.end - lost.start;
        if self.is_sparse {
            // The pending bytes stand after it.
            self.read_offset += left;
            return Ok(());
        }
        if let Input::Places(_) = self.input {
            // The part that was not read so far never is.
            let unread = left.saturating_sub(self.pending.len() as u64);
            if unread > 0 {
                self.read_offset += unread;
                self.pending.clear();
                return Ok(());
            }
        }
        while left > 0 && self.fill(1)? > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(self.pending.len());
            self.pending.drain(..count);
            left -= count as u64;
        }
        Ok(())
    }

    /// Whether an event begins a unit of its own.
    fn begins_unit(&self, header: &EventHeader) -> bool {
        self.unit == BatchUnit::Event || is_any_gtid(header.event_type) || !(self.gtid_seen || self.inside)
    }

    /// Notes where transactions end: the event lies ahead, with at least as much as [`Batcher::follow_size`].
    #[inline]
    fn follow(&mut self, header: &EventHeader) {
        if self.gtid_seen || self.unit == BatchUnit::Event {
            return;
        }
        self.gtid_seen = is_any_gtid(header.event_type);
        let checksum_size = self.context().framing.checksum().size();
        let event = self.pending.get(self.walked..).unwrap_or_default();
        let body_end = (header.event_size as usize).saturating_sub(checksum_size).min(event.len());
        let body = event.get(HEADER_SIZE..body_end).unwrap_or_default();
        let placement = self.transactions.feed(header, body);
        self.inside = match placement.boundary {
            Boundary::Begin | Boundary::BeginAgain | Boundary::Inside => true,
            Boundary::End | Boundary::Single => false,
            Boundary::Outside => placement.malformed == Some(MalformedSequence::UnexpectedRows),
        };
    }

    /// Bytes of an event that [`Batcher::follow`] reads.
    fn follow_size(&self, header: &EventHeader) -> usize {
        if self.gtid_seen || self.unit == BatchUnit::Event {
            return HEADER_SIZE;
        }
        (header.event_size as usize).min(HEADER_SIZE + QUERY_PREFIX_SIZE_MAX)
    }

    /// The log ends inside an event: an error, unless it is still being written.
    fn cut_inside_event(&mut self) -> Result<Option<LogPiece>, Error> {
        let offset = self.offset_of(self.walked);
        let left = self.ahead().len() as u64;
        let header = EventHeader::decode(self.ahead()).ok();
        if !self.in_use {
            let needed = header.map_or(HEADER_SIZE as u64, |header| u64::from(header.event_size));
            let error = Error::Truncated { needed, left };
            return Err(error.at(offset, header.map(|header| header.event_type)));
        }
        self.end_with(Ok(LogPiece::Cut(CutEvent { offset, size: left }))).transpose()
    }

    /// Returns the first `size` bytes of `pending`.
    fn cut_batch(&mut self, size: usize) -> LogPiece {
        let offset = self.offset_of(0);
        let mut rest = self.buffers.take();
        let beyond = if matches!(self.input, Input::Places(_)) { READ_BEYOND } else { READ_SIZE };
        rest.reserve_exact(self.size.target + beyond);
        rest.extend_from_slice(self.pending.get(size..).unwrap_or_default());
        self.pending.truncate(size);
        let bytes = std::mem::replace(&mut self.pending, rest);
        self.walked -= size;
        self.boundary = 0;
        // Between events, all processed ones are returned.
        let starts = std::mem::take(&mut self.starts);
        let has_payloads = std::mem::take(&mut self.has_payloads);
        LogPiece::Batch(Batch { bytes, offset, context: self.context(), starts, has_payloads })
    }

    fn context(&self) -> LogContext {
        self.context.unwrap_or(LogContext {
            framing: Framing::new(),
            post_header_lengths: PostHeaderLengths::default(),
            relay_log: false,
        })
    }

    /// The bytes from the next event on.
    fn ahead(&self) -> &[u8] {
        self.pending.get(self.walked..).unwrap_or_default()
    }

    /// The next event's header; `None` if the log ends inside it.
    fn header(&self) -> Result<Option<EventHeader>, Error> {
        if self.ahead().len() < HEADER_SIZE {
            return Ok(None);
        }
        let at = |error: Error| error.at(self.offset_of(self.walked), None);
        let header = EventHeader::decode(self.ahead()).map_err(at)?;
        self.context().framing.check_header(&header).map_err(at)?;
        Ok(Some(header))
    }

    /// Offset in the log of a place in `pending`.
    fn offset_of(&self, place: usize) -> u64 {
        self.read_offset - self.pending.len() as u64 + place as u64 - self.log_begin
    }

    /// Reads until `wanted` bytes lie ahead or the input ends; how many do.
    fn fill(&mut self, wanted: usize) -> Result<usize, Error> {
        while self.ahead().len() < wanted && !self.end_of_input {
            let count = if let Input::Places(places) = &self.input {
                let pending = &mut self.pending;
                if pending.len() == pending.capacity() {
                    // A batch and little more, since the excess is copied into the next one's buffer; for a
                    // large event, a piece.
                    let room = if pending.is_empty() { self.size.target } else { 0 };
                    pending.reserve_exact((room + READ_BEYOND).max(wanted - (pending.len() - self.walked)));
                }
                uninterrupted(|| places.append_at(pending, self.read_offset))?
            } else {
                let count = self.input.read(&mut self.chunk, self.read_offset)?;
                self.pending.extend_from_slice(self.chunk.get(..count).unwrap_or_default());
                count
            };
            self.read_offset += count as u64;
            self.end_of_input = count == 0;
        }
        Ok(self.ahead().len())
    }
}

/// MySQL's GTID events, and MariaDB's: a transaction begins with each.
fn is_any_gtid(event_type: EventType) -> bool {
    event_type.is_gtid() || event_type == EventType::MARIADB_GTID
}
