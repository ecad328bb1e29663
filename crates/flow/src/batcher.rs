//! Cuts a log into the pieces that workers take: batches of whole transactions, or of events.
//!
//! Reads headers only: where an event ends, whether it begins a transaction, whether it describes
//! the format. Bodies and checksums are looked at by the workers. What comes out, in the order of
//! the log:
//!
//! ```text
//! Start   a log begins: its format description
//! Batch   whole events, in memory; a transaction (all from one GTID event to the next) is never split
//! Large   one transaction, or one event, that is too large for a batch: where its bytes can be read
//! Cut     the end of a log in use: the first bytes of an event that is still being written
//! ```
//!
//! While no GTID event has been seen (servers before 5.6, MariaDB), any place between two events
//! may end a batch: nothing of such a log is compressed.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::{FormatDescription, PostHeaderLengths};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::reader::{LOG_START_SIZE, begins_log, not_a_log};
use binlogz_binlog::{Error, EventHeader, EventType, Framing, HeaderFlags, MAGIC};

use binlogz_payload::{LogContext, Spool};

use crate::buffers::Buffers;
use crate::input::{Input, PlacesReader, ReadAt, uninterrupted};

/// What a batch may be cut between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Transactions: each begins with its GTID event.
    Transaction,
    /// Events.
    Event,
}

/// How large batches are, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize {
    /// A batch ends with the first unit that brings it to this size.
    pub target: usize,
    /// A unit above this size is not held in memory.
    pub max: usize,
}

/// A piece of a log.
#[derive(Debug)]
pub enum Piece {
    /// A log, or another format description in it, begins.
    Start(Start),
    /// Whole events, one behind the other.
    Batch(Batch),
    /// A transaction (or event) too large to hold.
    Large(Large),
    /// The log is in use and ends inside an event.
    Cut {
        /// Where that event begins.
        offset: u64,
        /// How many bytes of it are there.
        size: u64,
    },
}

/// A format description.
#[derive(Debug)]
pub struct Start {
    /// Where the event begins: 4, or later in relay logs.
    pub offset: u64,
    /// Whether the magic stands before it.
    pub magic: bool,
    /// The whole event, verified.
    pub event: Vec<u8>,
    /// The event decoded.
    pub description: FormatDescription,
    /// What it says of the events that follow.
    pub context: LogContext,
}

/// Whole events in memory.
#[derive(Debug)]
pub struct Batch {
    /// The events.
    pub bytes: Vec<u8>,
    /// Offset of the first one in its log.
    pub offset: u64,
    /// How to read them.
    pub context: LogContext,
    /// Where each event begins in the bytes, if the log is cut between events ([`Unit::Event`]).
    pub(crate) starts: Vec<u32>,
    /// Whether a payload is among them.
    pub(crate) has_payloads: bool,
}

/// A unit too large to hold in memory.
#[derive(Debug)]
pub struct Large {
    /// Offset of its first event in its log.
    pub offset: u64,
    /// Bytes of all its events.
    pub size: u64,
    /// How to read them.
    pub context: LogContext,
    source: LargeSource,
}

enum LargeSource {
    Places { places: Arc<dyn ReadAt>, offset: u64 },
    Spool(Spool),
}

impl std::fmt::Debug for LargeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LargeSource::Places { .. } => "LargeSource::Places",
            LargeSource::Spool(_) => "LargeSource::Spool",
        })
    }
}

impl LargeSource {
    /// Keeps bytes that could not be read again.
    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            LargeSource::Places { .. } => Ok(()),
            LargeSource::Spool(spool) => spool.write_all(bytes),
        }
    }
}

impl Large {
    /// Reads a range of its bytes, counted from its first one.
    pub fn reader(&self, range: Range<u64>) -> Box<dyn Read + '_> {
        let end = range.end.min(self.size);
        match &self.source {
            LargeSource::Places { places, offset } => Box::new(PlacesReader {
                places: places.as_ref(),
                offset: offset + range.start,
                left: end.saturating_sub(range.start),
            }),
            LargeSource::Spool(spool) => Box::new(spool.reader(range.start..end)),
        }
    }
}

/// Bytes of a stream read at a time.
const READ_SIZE: usize = 256 << 10;

/// Bytes of a file read beyond the size of a batch.
const READ_BEYOND: usize = 16 << 10;

/// Bytes of buffers that are kept for the next batches.
const BUFFERS_MEMORY: usize = 4 << 20;

/// The largest format description that is believed, in bytes; servers write 123.
pub(crate) const FORMAT_DESCRIPTION_SIZE_MAX: u32 = 4096;

/// Cuts a log into pieces; see the module.
#[derive(Debug)]
pub struct Batcher {
    input: Input,
    unit: Unit,
    size: BatchSize,
    /// Where buffers of batches come from, if somebody gives them back.
    buffers: Buffers,
    /// Bytes read and not handed out; the first one begins a unit.
    pending: Vec<u8>,
    /// Where in `pending` the next event begins that was not looked at.
    walked: usize,
    /// Where the events begin that were, if that is asked for; whether a payload is among them.
    starts: Vec<u32>,
    has_payloads: bool,
    /// The last place in `pending` at which a unit begins, if that is not its front.
    boundary: usize,
    /// Offset in the input of the first byte not read.
    read_offset: u64,
    /// Offset in the input at which the log begins.
    log_begin: u64,
    /// What is read into: filled with zeros once, not for each of a pipe's small reads.
    chunk: Box<[u8]>,
    end_of_input: bool,
    context: Option<LogContext>,
    in_use: bool,
    gtid_seen: bool,
    /// Parts of the log to be passed over, in order.
    lost: VecDeque<Range<u64>>,
    /// What ends the log, once everything before it was handed out.
    ending: Option<Result<Piece, Error>>,
    done: bool,
}

impl Batcher {
    /// Reads `input` from its beginning.
    pub fn new(input: Input, unit: Unit, size: BatchSize) -> Self {
        let (input, lost) = match input {
            Input::Seek { places, passed } => (Input::Places(places), VecDeque::from([passed])),
            other => (other, VecDeque::new()),
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
            lost,
            ending: None,
            done: false,
        }
    }

    /// Passes over these parts of the log as if they were not there; see [`crate::salvage`]. Each
    /// begins and ends between two events.
    #[must_use]
    pub fn without(mut self, lost: impl IntoIterator<Item = Range<u64>>) -> Self {
        self.lost = lost.into_iter().collect();
        self
    }

    /// Where the log can be read a second time, and where it begins there; `None`: it can't.
    pub(crate) fn places(&self) -> Option<(&Arc<dyn ReadAt>, u64)> {
        match &self.input {
            Input::Places(places) => Some((places, self.log_begin)),
            Input::Seek { .. } | Input::Stream(_) | Input::Live(_) | Input::Pipe(_) => None,
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
    /// Bad bytes with their offset, an input that can't be read, a log cut inside an event while
    /// not in use. After an error there is no further piece.
    pub fn next_piece(&mut self) -> Option<Result<Piece, Error>> {
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
            // What is whole before the bad bytes comes first.
            Err(error) => self.end_with(Err(error)),
        }
    }

    fn end_with(&mut self, ending: Result<Piece, Error>) -> Option<Result<Piece, Error>> {
        if self.walked > 0 && self.context.is_some() {
            self.ending = Some(ending);
            let batch = self.cut_batch(self.walked);
            return Some(Ok(batch));
        }
        self.done = true;
        Some(ending)
    }

    fn advance(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            self.walk();
            if self.lost.front().is_some_and(|lost| lost.start == self.offset_of(self.walked)) {
                if self.walked > 0 {
                    return Ok(Some(self.cut_batch(self.walked)));
                }
                self.pass_lost()?;
                continue;
            }
            // What came whole is not to wait for what comes next.
            if self.walked > 0
                && self.unit == Unit::Event
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

    /// Takes the events that are in memory whole, up to the first one that may be more than just another one.
    fn walk(&mut self) {
        let Some(LogContext { framing, .. }) = self.context else { return };
        if !self.lost.is_empty() {
            return;
        }
        while let Some(head) = self.ahead().first_chunk::<LOG_START_SIZE>()
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
        if self.unit == Unit::Event {
            self.starts.push(self.walked as u32);
        }
        self.has_payloads |= header.event_type == EventType::TRANSACTION_PAYLOAD;
        self.gtid_seen |= header.event_type.is_gtid();
        self.walked += header.event_size as usize;
    }

    /// Passes over the next lost part, which begins at the front of what is pending.
    fn pass_lost(&mut self) -> Result<(), Error> {
        let Some(lost) = self.lost.pop_front() else { return Ok(()) };
        let mut left = lost.end - lost.start;
        if let Input::Places(_) = self.input {
            // What was not read so far never is.
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
        self.unit == Unit::Event || !self.gtid_seen || header.event_type.is_gtid()
    }

    /// A log begins here: its magic, then its format description.
    fn start_log(&mut self) -> Result<Piece, Error> {
        let head = self.ahead();
        if !head.starts_with(&MAGIC) {
            return Err(not_a_log(head));
        }
        self.log_begin += self.offset_of(0);
        self.pending.drain(..MAGIC.len());
        self.in_use = false;
        self.gtid_seen = false;
        self.context = None;
        self.fill(HEADER_SIZE)?;
        let offset = self.offset_of(0);
        let Some(header) = self.header()? else {
            let left = self.ahead().len() as u64;
            return Err(Error::Truncated { needed: HEADER_SIZE as u64, left }.at(offset, None));
        };
        if header.event_type != EventType::FORMAT_DESCRIPTION {
            let error =
                Error::invalid("binary log", "first event", header.event_type, "a format description");
            return Err(error.at(offset, Some(header.event_type)));
        }
        self.start(true)
    }

    /// The format description at the front of what is pending.
    fn start(&mut self, magic: bool) -> Result<Piece, Error> {
        let offset = self.offset_of(0);
        let at = |error: Error| error.at(offset, Some(EventType::FORMAT_DESCRIPTION));
        let header = EventHeader::decode(&self.pending)?;
        if header.event_size > FORMAT_DESCRIPTION_SIZE_MAX {
            let error = Error::invalid("event header", "event size", header.event_size, "at most 4096");
            return Err(at(error));
        }
        let size = header.event_size as usize;
        let left = self.fill(size)?;
        if left < size {
            return Err(at(Error::Truncated { needed: size as u64, left: left as u64 }));
        }
        let event: Vec<u8> = self.pending.drain(..size).collect();
        let framing = Framing::new();
        let frame = framing.next_frame(&event).map_err(at)?;
        let frame = frame.ok_or(Error::Truncated { needed: size as u64, left: 0 }).map_err(at)?;
        let frame = frame.verify().map_err(at)?;
        let description = FormatDescription::decode_frame(&frame).map_err(at)?;
        let relay_log = match self.context {
            Some(context) => context.relay_log,
            None => header.flags.contains(HeaderFlags::RELAY_LOG),
        };
        self.in_use |= header.flags.contains(HeaderFlags::IN_USE);
        let context = LogContext {
            framing: Framing::of(&description),
            post_header_lengths: PostHeaderLengths::from(&description),
            relay_log,
        };
        self.context = Some(context);
        Ok(Piece::Start(Start { offset, magic, event, description, context }))
    }

    /// The log ends inside an event: an error, unless its writer is still at it.
    fn cut_inside_event(&mut self) -> Result<Option<Piece>, Error> {
        let offset = self.offset_of(self.walked);
        let left = self.ahead().len() as u64;
        let header = EventHeader::decode(self.ahead()).ok();
        if !self.in_use {
            let needed = header.map_or(HEADER_SIZE as u64, |header| u64::from(header.event_size));
            let error = Error::Truncated { needed, left };
            return Err(error.at(offset, header.map(|header| header.event_type)));
        }
        self.end_with(Ok(Piece::Cut { offset, size: left })).transpose()
    }

    /// A unit that does not fit into memory: looks for its end, keeping only what can't be read
    /// again. On return the next unit stands at the front of what is pending.
    fn large(&mut self) -> Result<Piece, Error> {
        let offset = self.offset_of(0);
        let mut source = match &self.input {
            Input::Places(places) => {
                LargeSource::Places { places: Arc::clone(places), offset: self.log_begin + offset }
            }
            Input::Seek { .. } | Input::Stream(_) | Input::Live(_) | Input::Pipe(_) => {
                LargeSource::Spool(Spool::on_disk())
            }
        };
        let mut first = self.walked == 0;
        let end = loop {
            // What was walked belongs to the unit; it goes when its room is needed.
            if self.ahead().len() < LOG_START_SIZE {
                source.keep(self.pending.get(..self.walked).unwrap_or_default())?;
                self.pending.drain(..self.walked);
                self.walked = 0;
                self.fill(LOG_START_SIZE)?;
            }
            let begin = self.offset_of(self.walked);
            if self.lost.front().is_some_and(|lost| lost.start == begin) {
                break begin;
            }
            if self.ahead().is_empty() || begins_log(self.ahead()) {
                break begin;
            }
            let header = match self.header() {
                Ok(Some(header)) => header,
                Ok(None) => break begin,
                Err(error) if first => return Err(error),
                // What is whole before the bad bytes comes first.
                Err(error) => {
                    self.ending = Some(Err(error));
                    break begin;
                }
            };
            let ends = header.event_type == EventType::FORMAT_DESCRIPTION || self.begins_unit(&header);
            if ends && !first {
                break begin;
            }
            self.gtid_seen |= header.event_type.is_gtid();
            first = false;
            if !self.pass_event(&header, &mut source)? {
                break begin;
            }
        };
        let size = end - offset;
        source.keep(self.pending.get(..self.walked).unwrap_or_default())?;
        self.pending.drain(..self.walked);
        self.walked = 0;
        self.starts.clear();
        self.has_payloads = false;
        Ok(Piece::Large(Large { offset, size, context: self.context(), source }))
    }

    /// Passes over an event of any size. `false`: the log ends inside it; the cut is then what
    /// [`Batcher::next_piece`] tells next.
    fn pass_event(&mut self, header: &EventHeader, source: &mut LargeSource) -> Result<bool, Error> {
        let event_size = header.event_size as usize;
        if let Some(walked) = Some(self.walked + event_size).filter(|&walked| walked <= self.pending.len()) {
            self.walked = walked;
            return Ok(true);
        }
        let begin = self.offset_of(self.walked);
        let mut left = event_size - self.ahead().len();
        loop {
            source.keep(&self.pending)?;
            self.pending.clear();
            self.walked = 0;
            let count = self.fill(1)?;
            if count >= left {
                self.walked = left;
                return Ok(true);
            }
            left -= count;
            if count == 0 {
                let there = (event_size - left) as u64;
                self.ending = Some(if self.in_use {
                    Ok(Piece::Cut { offset: begin, size: there })
                } else {
                    let error = Error::Truncated { needed: event_size as u64, left: there };
                    Err(error.at(begin, Some(header.event_type)))
                });
                return Ok(false);
            }
        }
    }

    /// Hands out the first `size` bytes of what is pending.
    fn cut_batch(&mut self, size: usize) -> Piece {
        let offset = self.offset_of(0);
        let mut rest = self.buffers.take();
        let beyond = if matches!(self.input, Input::Places(_)) { READ_BEYOND } else { READ_SIZE };
        rest.reserve_exact(self.size.target + beyond);
        rest.extend_from_slice(self.pending.get(size..).unwrap_or_default());
        self.pending.truncate(size);
        let bytes = std::mem::replace(&mut self.pending, rest);
        self.walked -= size;
        self.boundary = 0;
        // Between events, all that were walked over are handed out.
        let starts = std::mem::take(&mut self.starts);
        let has_payloads = std::mem::take(&mut self.has_payloads);
        Piece::Batch(Batch { bytes, offset, context: self.context(), starts, has_payloads })
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
                    // A batch and little more, as what is more is copied into the next one's buffer; of a large event, a
                    // piece.
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
