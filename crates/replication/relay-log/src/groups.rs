//! Finds the transactions in the durable part of a stored file.
//!
//! Reads headers, GTID events, the beginnings of statements and of payloads. Transactions of usual size stay in memory,
//! so they need not be read twice. A transaction is returned once its last byte is durable. We verify only the checksums
//! of GTID events: they decide which transactions a client has or lacks.

use std::io::Read;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::event::transaction_payload::HEADER_SIZE_LIMIT;
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{
    Error as BinlogError, EventHeader, EventType, Framing, TransactionBoundaryParser, VerifiedChecksum,
};
use binlogz_payload::{Error as PayloadError, Provenance, provenance};
use binlogz_store::LogReader;

use crate::error::{Error, Result};

const READ_SIZE: usize = 64 << 10;
/// Larger than any GTID event; 9.7 writes at most 150 bytes.
const GTID_EVENT_SIZE_MAX: u32 = 64 << 10;
/// How much of a payload we read: the fields before its frame, and the frame's beginning.
const PAYLOAD_FRONT_SIZE: u32 = 64;
/// Transactions up to this size stay in memory: every replica has such a buffer.
const HELD_SIZE_MAX: u64 = 64 << 10;

/// A transaction, or an event between transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventGroup {
    /// Where the transaction begins in the file, in bytes.
    pub begin: u64,
    /// Where it ends.
    pub end: u64,
    /// Its GTID, if it has one.
    pub gtid: Option<Gtid>,
    /// When it was committed on the server that wrote the log, in microseconds since 1970; 0 if unknown.
    pub committed: u64,
    /// The sequence number in the file, for multi-threaded appliers; 0 if it has none.
    pub sequence_number: i64,
    /// Bytes of its events after the GTID event, payloads expanded, without checksums, according to the headers.
    pub expanded_size: u64,
    /// The header of its first event.
    pub first: EventHeader,
    /// Set if that is a GTID event, whose checksum was verified.
    pub verified: Option<VerifiedChecksum>,
    /// Whether it is a transaction, not an event between two of them.
    pub is_transaction: bool,
    /// Where its payload was made, if it is compressed.
    pub payload: Option<Provenance>,
}

impl EventGroup {
    /// Its bytes in the file.
    pub fn size(&self) -> u64 {
        self.end - self.begin
    }
}

/// Goes through the durable part of a stored file, transaction by transaction.
#[derive(Debug)]
pub struct GroupWalker {
    reader: LogReader,
    framing: Framing,
    /// Bytes read: `buffer` begins at `buffer_offset` of the file.
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// The offset of the next event.
    offset: u64,
    /// The readable end of the file, when last checked.
    end: u64,
    assembler: TransactionBoundaryParser,
    open: Option<EventGroup>,
}

impl GroupWalker {
    /// Begins at `offset`: after the format description, or between transactions.
    pub fn new(reader: LogReader, framing: Framing, offset: u64) -> Self {
        GroupWalker {
            reader,
            framing,
            buffer: Vec::new(),
            buffer_offset: offset,
            offset,
            end: 0,
            assembler: TransactionBoundaryParser::new(),
            open: None,
        }
    }

    /// The next group; `None` if it is not durable yet, or the file ends.
    pub fn next_group(&mut self) -> Result<Option<EventGroup>> {
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
            // Built for its first event only: most events only add to it.
            let group = match &mut self.open {
                Some(group) => group,
                none @ None => none.insert(EventGroup {
                    begin,
                    end,
                    gtid: seen.gtid,
                    committed: seen.committed,
                    sequence_number: seen.sequence_number,
                    expanded_size: 0,
                    first: header,
                    verified: seen.verified,
                    is_transaction: false,
                    payload: None,
                }),
            };
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

    /// Reads as much of an event as is needed.
    fn look_into(&mut self, header: &EventHeader) -> Result<EventFacts> {
        let event_size = header.event_size;
        let offset = self.offset;
        let framing = self.framing;
        let checksum_size = framing.checksum().size();
        let wanted = match header.event_type {
            EventType::QUERY => event_size.min((HEADER_SIZE + QUERY_PREFIX_SIZE_MAX) as u32),
            EventType::TRANSACTION_PAYLOAD => event_size.min(HEADER_SIZE as u32 + PAYLOAD_FRONT_SIZE),
            event_type if event_type.is_gtid() => event_size.min(GTID_EVENT_SIZE_MAX),
            _ => match TransactionBoundaryParser::body_wanted(header) {
                0 => return Ok(EventFacts::default()),
                body => event_size.min((HEADER_SIZE + body) as u32),
            },
        };
        let Some(event) = self.peek(wanted as usize)? else { return Ok(EventFacts::default()) };
        // A statement ends where the checksum begins.
        let end = (event_size as usize).saturating_sub(checksum_size).min(event.len());
        let body = event.get(HEADER_SIZE..end).unwrap_or_default();
        let mut seen = EventFacts::default();
        let at = |error: BinlogError| error.at(offset, Some(header.event_type));
        let payload_at = |error| match error {
            PayloadError::Binlog(error) => PayloadError::Binlog(at(error)),
            other => other,
        };
        match header.event_type {
            EventType::QUERY | EventType::MARIADB_QUERY_COMPRESSED | EventType::MARIADB_GTID => {
                seen.body = body.to_vec();
            }
            EventType::TRANSACTION_PAYLOAD => {
                let body_size = u64::from(event_size) - HEADER_SIZE as u64;
                let mut told = provenance(body, body_size).map_err(payload_at)?;
                if told.is_none() {
                    let all = event_size.min((HEADER_SIZE + HEADER_SIZE_LIMIT) as u32 + PAYLOAD_FRONT_SIZE);
                    let event = self.peek(all as usize)?.unwrap_or_default();
                    told = provenance(event.get(HEADER_SIZE..).unwrap_or_default(), body_size)
                        .map_err(payload_at)?;
                }
                if let Some((maker, fields)) = told {
                    seen.payload = Some(maker);
                    seen.expanded_size = Some(fields.uncompressed_size().unwrap_or(fields.payload_size()));
                }
            }
            _ => {
                if event_size > GTID_EVENT_SIZE_MAX {
                    let error =
                        BinlogError::invalid("event header", "event size", event_size, "at most 64 KiB");
                    return Err(at(error).into());
                }
                let Some(frame) = framing.next_frame(event).map_err(at)? else { return Ok(seen) };
                let frame = frame.verify().map_err(at)?;
                seen.verified = Some(frame.proof());
                if let Some(event) = AnyGtidEvent::decode_frame(&frame).map_err(at)? {
                    seen.gtid = event.gtid();
                    seen.committed = event.commit_timestamps().map_or(0, |times| times.immediate);
                    seen.sequence_number = event.logical_clock().map_or(0, |clock| clock.sequence_number);
                }
            }
        }
        Ok(seen)
    }

    /// The offset of the next event; the file is complete if it ends there.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the transaction begins whose end was not found yet.
    pub fn open_begin(&self) -> Option<u64> {
        self.open.map(|group| group.begin)
    }

    /// A transaction that the source never ended, at the end of its file.
    pub fn left(&mut self) -> Option<EventGroup> {
        self.assembler = TransactionBoundaryParser::new();
        self.open.take()
    }

    /// The readable end of the file.
    pub fn end(&self) -> Result<u64> {
        Ok(self.reader.end()?)
    }

    /// The bytes of the transaction returned last, if it is not too large.
    pub fn bytes(&mut self, group: &EventGroup) -> Result<Option<&[u8]>> {
        let Some(skip) = group.begin.checked_sub(self.buffer_offset) else { return Ok(None) };
        if group.size() > HELD_SIZE_MAX {
            return Ok(None);
        }
        let skip = skip as usize;
        let size = group.size() as usize;
        if self.buffer.len() < skip + size {
            let more = skip + size - self.buffer.len();
            self.read(more)?;
        }
        Ok(self.buffer.get(skip..skip + size))
    }

    /// Whether an event begins here, according to its header, or the file ends.
    pub fn is_between_events(&mut self) -> Result<bool> {
        let end = self.reader.end()?;
        if end <= self.offset {
            return Ok(end == self.offset);
        }
        let offset = self.offset;
        let framing = self.framing;
        let Some(bytes) = self.peek(HEADER_SIZE)? else { return Ok(false) };
        let Ok(header) = EventHeader::decode(bytes) else { return Ok(false) };
        let ends = offset + u64::from(header.event_size);
        Ok(framing.check_header(&header).is_ok() && ends <= end && header.end_log_pos == ends as u32)
    }

    /// Continues at another offset, between transactions.
    pub fn move_to(&mut self, offset: u64) {
        let held =
            offset.checked_sub(self.buffer_offset).is_some_and(|skip| skip <= self.buffer.len() as u64);
        if !held {
            self.buffer.clear();
            self.buffer_offset = offset;
        }
        self.offset = offset;
        self.assembler = TransactionBoundaryParser::new();
        self.open = None;
    }

    /// Frees memory, before a pause.
    pub fn release(&mut self) {
        if self.open.is_none() {
            self.buffer = Vec::new();
            self.buffer_offset = self.offset;
        }
    }

    fn header(&mut self) -> Result<Option<EventHeader>> {
        let offset = self.offset;
        let framing = self.framing;
        let Some(bytes) = self.peek(HEADER_SIZE)? else { return Ok(None) };
        let at = |error: binlogz_binlog::Error| error.at(offset, None);
        let header = EventHeader::decode(bytes).map_err(at)?;
        framing.check_header(&header).map_err(at)?;
        Ok(Some(header))
    }

    /// The next bytes; `None` if they are not there yet.
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

    /// Reads until `size` bytes of the next event are in the buffer. Keeps the open transaction, if it is not too
    /// large.
    fn fill(&mut self, size: usize) -> Result<()> {
        let begin = self.open.map_or(self.offset, |group| group.begin);
        let keep = if self.offset - begin <= HELD_SIZE_MAX { begin } else { self.offset };
        match usize::try_from(keep.saturating_sub(self.buffer_offset)) {
            Ok(drop) if keep >= self.buffer_offset && drop <= self.buffer.len() => {
                self.buffer.drain(..drop);
            }
            _ => self.buffer.clear(),
        }
        // Dropped bytes of a large transaction are not read again.
        let keep = if self.buffer.is_empty() && keep < self.buffer_offset { self.offset } else { keep };
        self.buffer_offset = keep;
        let missing = (self.offset - keep) as usize + size;
        self.read(missing.saturating_sub(self.buffer.len()).max(READ_SIZE))
    }

    /// Reads this many more bytes, as far as the file goes. The buffer has no room for bytes beyond its end: a replica at
    /// the end of the log is sent little at a time.
    fn read(&mut self, more: usize) -> Result<()> {
        let mut size = self.buffer.len();
        let before = size;
        let readable = self.reader.end()?.saturating_sub(self.buffer_offset + size as u64);
        let more = usize::try_from(readable).unwrap_or(usize::MAX).min(more);
        self.reader.seek_to(self.buffer_offset + size as u64);
        self.buffer.resize(size + more, 0);
        while let Some(room) = self.buffer.get_mut(size..).filter(|room| !room.is_empty()) {
            match self.reader.read(room) {
                Ok(0) => break,
                Ok(count) => size += count,
                // The bytes before the damage are read first.
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

/// An event's facts.
#[derive(Debug, Default)]
struct EventFacts {
    /// The beginning of a statement.
    body: Vec<u8>,
    gtid: Option<Gtid>,
    committed: u64,
    sequence_number: i64,
    verified: Option<VerifiedChecksum>,
    payload: Option<Provenance>,
    /// For a payload: the bytes of its events.
    expanded_size: Option<u64>,
}
