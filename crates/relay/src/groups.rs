//! Finds the transactions in what is durable of a stored file.
//!
//! Reads headers, GTID events, the beginnings of statements and of payloads. What was read of a transaction of usual
//! size stays at hand, so that it need not be read twice. A transaction is told once it is durable to its last byte.

use std::io::Read;

use binlogz_binlog::event::transaction_payload::HEADER_SIZE_LIMIT;
use binlogz_binlog::event::{AnyGtidEvent, TransactionPayloadHeader};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{EventFrame, EventHeader, EventType, Framing, TransactionAssembler};
use binlogz_payload::{Provenance, provenance};
use binlogz_store::LogReader;

use crate::error::{Error, Result};

/// Bytes read at a time.
const READ_SIZE: usize = 64 << 10;
/// More than any GTID event; 9.7 writes at most 150 bytes.
const GTID_EVENT_SIZE_MAX: u32 = 64 << 10;
/// Of a payload, what servers write in front of it and the beginning of its frame.
const PAYLOAD_FRONT_SIZE: u32 = 64;
/// Transactions up to this size are kept at hand: every replica has such a buffer.
const HELD_SIZE_MAX: u64 = 64 << 10;

/// A transaction, or an event between transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    /// Where it stands in the file.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Its GTID, if it has one.
    pub(crate) gtid: Option<Gtid>,
    /// When it was committed on the server that wrote the log: microseconds since 1970; 0: it does not say.
    pub(crate) committed: u64,
    /// Its number in the file, for multi-threaded appliers; 0: it has none.
    pub(crate) sequence_number: i64,
    /// Bytes of its events behind the GTID event, payloads expanded, without checksums: as the headers say.
    pub(crate) expanded_size: u64,
    /// The header of its first event.
    pub(crate) first: EventHeader,
    /// Whether it is a transaction.
    pub(crate) is_transaction: bool,
    /// Who made its payload, if it is compressed.
    pub(crate) payload: Option<Provenance>,
}

impl Group {
    pub(crate) fn size(&self) -> u64 {
        self.end - self.begin
    }
}

/// Goes through a file.
#[derive(Debug)]
pub(crate) struct GroupWalker {
    reader: LogReader,
    framing: Framing,
    /// What was read: `buffer` begins at `buffer_offset` of the file.
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// Where the next event begins.
    offset: u64,
    /// How far the file could be read when that was last looked at.
    end: u64,
    assembler: TransactionAssembler,
    open: Option<Group>,
}

impl GroupWalker {
    /// Begins at `offset`: behind the format description, or between transactions.
    pub(crate) fn new(reader: LogReader, framing: Framing, offset: u64) -> Self {
        GroupWalker {
            reader,
            framing,
            buffer: Vec::new(),
            buffer_offset: offset,
            offset,
            end: 0,
            assembler: TransactionAssembler::new(),
            open: None,
        }
    }

    /// The next one; `None`: it is not durable, or the file ends.
    pub(crate) fn next(&mut self) -> Result<Option<Group>> {
        while let Some(header) = self.header()? {
            let end = self.offset + u64::from(header.event_size);
            if self.end < end {
                self.end = self.reader.end()?;
                if self.end < end {
                    return Ok(None);
                }
            }
            let seen = self.look_into(&header)?;
            let was_open = self.assembler.is_open();
            self.assembler.feed(&header, &seen.body);
            let begin = self.offset;
            self.offset = end;
            let group = self.open.get_or_insert(Group {
                begin,
                end,
                gtid: seen.gtid,
                committed: seen.committed,
                sequence_number: seen.sequence_number,
                expanded_size: 0,
                first: header,
                is_transaction: false,
                payload: None,
            });
            group.end = end;
            let without_checksum = u64::from(header.event_size) - self.framing.checksum().size() as u64;
            let expanded_size = match header.event_type.is_gtid() {
                true => 0,
                false => seen.expanded_size.unwrap_or(without_checksum),
            };
            group.expanded_size = group.expanded_size.saturating_add(expanded_size);
            group.payload = group.payload.or(seen.payload);
            group.is_transaction |= was_open || self.assembler.is_open();
            if !self.assembler.is_open() {
                return Ok(self.open.take());
            }
        }
        Ok(None)
    }

    /// Reads as much of an event as somebody needs.
    fn look_into(&mut self, header: &EventHeader) -> Result<Seen> {
        let event_size = header.event_size;
        let (offset, checksum_size) = (self.offset, self.framing.checksum().size());
        let wanted = match header.event_type {
            EventType::QUERY => event_size.min((HEADER_SIZE + QUERY_PREFIX_SIZE_MAX) as u32),
            EventType::TRANSACTION_PAYLOAD => event_size.min(HEADER_SIZE as u32 + PAYLOAD_FRONT_SIZE),
            event_type if event_type.is_gtid() => event_size.min(GTID_EVENT_SIZE_MAX),
            _ => return Ok(Seen::default()),
        };
        let Some(event) = self.peek(wanted as usize)? else { return Ok(Seen::default()) };
        // A statement ends where the checksum begins.
        let end = (event_size as usize).saturating_sub(checksum_size).min(event.len());
        let body = event.get(HEADER_SIZE..end).unwrap_or_default();
        let mut seen = Seen::default();
        match header.event_type {
            EventType::QUERY => seen.body = body.to_vec(),
            EventType::TRANSACTION_PAYLOAD => {
                let body_size = u64::from(event_size) - HEADER_SIZE as u64;
                seen.payload = provenance(body, body_size)?.map(|(maker, _)| maker);
                seen.expanded_size = declared_size(body, body_size)?;
                if seen.payload.is_none() {
                    let all = event_size.min((HEADER_SIZE + HEADER_SIZE_LIMIT) as u32 + PAYLOAD_FRONT_SIZE);
                    let event = self.peek(all as usize)?.unwrap_or_default();
                    let body = event.get(HEADER_SIZE..).unwrap_or_default();
                    seen.payload = provenance(body, body_size)?.map(|(maker, _)| maker);
                    seen.expanded_size = declared_size(body, body_size)?;
                }
            }
            _ => {
                let frame = EventFrame::from_checked(event, checksum_size)
                    .map_err(|error| error.at(offset, Some(header.event_type)))?;
                if let Some(event) = AnyGtidEvent::decode_frame(&frame)? {
                    seen.gtid = event.gtid();
                    seen.committed = event.commit_timestamps().map_or(0, |times| times.immediate);
                    seen.sequence_number = event.logical_clock().map_or(0, |clock| clock.sequence_number);
                }
            }
        }
        Ok(seen)
    }

    /// Where the next event begins; the file is whole if it ends there.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// A transaction that the source never ended: its file goes no further.
    pub(crate) fn left(&mut self) -> Option<Group> {
        self.assembler = TransactionAssembler::new();
        self.open.take()
    }

    /// How far the file can be read.
    pub(crate) fn end(&self) -> Result<u64> {
        Ok(self.reader.end()?)
    }

    /// The bytes of a transaction that was told last, if it is not too large.
    pub(crate) fn bytes(&mut self, group: &Group) -> Result<Option<&[u8]>> {
        let Some(skip) = group.begin.checked_sub(self.buffer_offset) else { return Ok(None) };
        if group.size() > HELD_SIZE_MAX {
            return Ok(None);
        }
        let (skip, size) = (skip as usize, group.size() as usize);
        if self.buffer.len() < skip + size {
            let more = skip + size - self.buffer.len();
            self.read(more)?;
        }
        Ok(self.buffer.get(skip..skip + size))
    }

    /// Whether an event begins here, as far as its header tells, or the file ends.
    pub(crate) fn is_between_events(&mut self) -> Result<bool> {
        let end = self.reader.end()?;
        if end <= self.offset {
            return Ok(end == self.offset);
        }
        let (offset, framing) = (self.offset, self.framing);
        let Some(bytes) = self.peek(HEADER_SIZE)? else { return Ok(false) };
        let Ok(header) = EventHeader::decode(bytes) else { return Ok(false) };
        let ends = offset + u64::from(header.event_size);
        Ok(framing.check_header(&header).is_ok() && ends <= end && header.end_log_pos == ends as u32)
    }

    /// Goes on elsewhere, between transactions.
    pub(crate) fn move_to(&mut self, offset: u64) {
        let held =
            offset.checked_sub(self.buffer_offset).is_some_and(|skip| skip <= self.buffer.len() as u64);
        if !held {
            self.buffer.clear();
            self.buffer_offset = offset;
        }
        self.offset = offset;
        self.assembler = TransactionAssembler::new();
        self.open = None;
    }

    /// Gives memory back: nothing is to come for a while.
    pub(crate) fn release(&mut self) {
        if self.open.is_none() {
            self.buffer = Vec::new();
            self.buffer_offset = self.offset;
        }
    }

    fn header(&mut self) -> Result<Option<EventHeader>> {
        let (offset, framing) = (self.offset, self.framing);
        let Some(bytes) = self.peek(HEADER_SIZE)? else { return Ok(None) };
        let at = |error: binlogz_binlog::Error| error.at(offset, None);
        let header = EventHeader::decode(bytes).map_err(at)?;
        framing.check_header(&header).map_err(at)?;
        Ok(Some(header))
    }

    /// The next bytes; `None`: they are not there yet.
    fn peek(&mut self, size: usize) -> Result<Option<&[u8]>> {
        let held = |walker: &Self| {
            let skip = usize::try_from(walker.offset.checked_sub(walker.buffer_offset)?).ok()?;
            (walker.buffer.len() >= skip + size).then_some(skip)
        };
        if held(self).is_none() {
            self.fill(size)?;
        }
        Ok(held(self).and_then(|skip| self.buffer.get(skip..skip + size)))
    }

    /// Reads on, until `size` bytes from the next event on are there. What is open stays, if it is not too large.
    fn fill(&mut self, size: usize) -> Result<()> {
        let begin = self.open.map_or(self.offset, |group| group.begin);
        let keep = if self.offset - begin <= HELD_SIZE_MAX { begin } else { self.offset };
        match usize::try_from(keep.saturating_sub(self.buffer_offset)) {
            Ok(drop) if keep >= self.buffer_offset && drop <= self.buffer.len() => {
                self.buffer.drain(..drop);
            }
            _ => self.buffer.clear(),
        }
        // What was dropped of a large transaction is not read again.
        let keep = if self.buffer.is_empty() && keep < self.buffer_offset { self.offset } else { keep };
        self.buffer_offset = keep;
        let missing = (self.offset - keep) as usize + size;
        self.read(missing.saturating_sub(self.buffer.len()).max(READ_SIZE))
    }

    /// Reads so many more bytes behind those that are there, as far as the file goes.
    fn read(&mut self, more: usize) -> Result<()> {
        let mut size = self.buffer.len();
        let before = size;
        self.reader.seek_to(self.buffer_offset + size as u64);
        self.buffer.resize(size + more, 0);
        while let Some(room) = self.buffer.get_mut(size..).filter(|room| !room.is_empty()) {
            match self.reader.read(room) {
                Ok(0) => break,
                Ok(count) => size += count,
                // What stands before damage is read first.
                Err(_) if size > before => break,
                Err(error) => {
                    self.buffer.truncate(size);
                    return Err(Error::of_stored(error));
                }
            }
        }
        self.buffer.truncate(size);
        Ok(())
    }
}

/// What an event tells.
#[derive(Debug, Default)]
struct Seen {
    /// Of a statement, its beginning.
    body: Vec<u8>,
    gtid: Option<Gtid>,
    committed: u64,
    sequence_number: i64,
    payload: Option<Provenance>,
    /// Of a payload: the bytes of its events.
    expanded_size: Option<u64>,
}

/// What a payload says of its events.
fn declared_size(front: &[u8], body_size: u64) -> Result<Option<u64>> {
    let fields = TransactionPayloadHeader::decode_front(front, body_size)?;
    Ok(fields.map(|(fields, _)| fields.uncompressed_size().unwrap_or(fields.payload_size())))
}
