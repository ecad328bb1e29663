//! Finds the intact parts of a damaged log.
//!
//! Goes through the log event by event and checks checksums and payloads. At the first bytes that are not an
//! event it looks for the next valid GTID event and continues there. Everything in between, from the
//! beginning of the open transaction, is lost. [`crate::passes::rewrite`] can then process the log as if
//! the lost parts were not there.
//!
//! Works on one thread and reads the log once. The pass that writes the intact parts reads them a second
//! time.

use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::transaction::TransactionBoundaryParser;
use binlogz_binlog::{
    Error as BinlogError, EventHeader, EventType, EventVisitor, Framing, MAGIC, StoredChecksum,
};
use binlogz_payload::{Expander, PayloadStream};

use crate::error::Error;
use crate::read::batcher::Batcher;
use crate::read::input::{Input, ReadAt};
use crate::read::{BatchSize, BatchUnit, LogPiece};

/// Bytes read at a time.
const WINDOW_SIZE: usize = 1 << 20;

/// The largest GTID event accepted when looking for one; servers write below 200 bytes.
const GTID_EVENT_SIZE_MAX: u32 = 1024;

/// A part of the log that can't be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRange {
    /// The lost bytes, from the first byte left out to the first one after it.
    pub range: Range<u64>,
    /// Where the damage was noticed.
    pub damage: u64,
    /// The transaction that it cut into, where its GTID is known.
    pub gtid: Option<Gtid>,
    /// The problem there.
    pub why: String,
}

/// Looks for damage in a log that can be read at any place.
///
/// # Errors
///
/// A log whose beginning is damaged: without its format description nothing can be read. An input
/// that fails.
pub fn survey(places: &Arc<dyn ReadAt>) -> Result<Vec<LostRange>, Error> {
    let size = BatchSize { target: 1, max: 1 };
    let mut batcher = Batcher::new(Input::Places(Arc::clone(places)), BatchUnit::Event, size);
    let (framing, begin) = match batcher.next_piece() {
        Some(Ok(LogPiece::Start(start))) => (start.context.framing, start.offset + start.event.len() as u64),
        Some(Err(error)) => return Err(error.into()),
        _ => return Err(BinlogError::Truncated { needed: MAGIC.len() as u64, left: 0 }.into()),
    };
    let mut survey = Survey {
        window: Window { places, start: 0, bytes: Vec::new() },
        framing,
        expander: Expander::new()?,
        assembler: TransactionBoundaryParser::new(),
        open: None,
    };
    survey.run(begin)
}

struct Survey<'a> {
    window: Window<'a>,
    framing: Framing,
    expander: Expander,
    assembler: TransactionBoundaryParser,
    /// The transaction that began and did not end: where, and which.
    open: Option<(u64, Option<Gtid>)>,
}

impl Survey<'_> {
    fn run(&mut self, begin: u64) -> Result<Vec<LostRange>, Error> {
        let mut lost = Vec::new();
        let mut offset = begin;
        loop {
            match self.event(offset) {
                Ok(Some(size)) => offset += size,
                Ok(None) => break,
                Err(error @ Error::Input(binlogz_payload::Error::Io(_))) => return Err(error),
                Err(why) => {
                    let (start, gtid) = self.open.take().unwrap_or((offset, None));
                    let next = self.next_transaction(offset + 1)?;
                    lost.push(LostRange { range: start..next, damage: offset, gtid, why: why.to_string() });
                    self.assembler = TransactionBoundaryParser::new();
                    offset = next;
                }
            }
        }
        // After a loss, a transaction without its end is not intact either.
        if let Some((start, gtid)) = self.open.take().filter(|_| !lost.is_empty()) {
            let why = "the log ends inside the transaction".to_string();
            lost.push(LostRange { range: start..offset, damage: offset, gtid, why });
        }
        Ok(lost)
    }

    /// Checks the event at `offset`; its size. `None` at the end of the log.
    fn event(&mut self, offset: u64) -> Result<Option<u64>, Error> {
        let Some(header) = self.header(offset)? else { return Ok(None) };
        self.check_bytes(offset, &header)?;
        let body_start = offset + HEADER_SIZE as u64;
        let body_size = u64::from(header.event_size) - (HEADER_SIZE + self.framing.checksum().size()) as u64;
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            self.check_payload(offset, &header, body_start..body_start + body_size)?;
        }
        let prefix_size = body_size.min(QUERY_PREFIX_SIZE_MAX as u64) as usize;
        let prefix = self.window.bytes(body_start, prefix_size)?.to_vec();
        if header.event_type.is_gtid() {
            self.open = Some((offset, self.gtid(offset, &header)?));
        }
        self.assembler.feed(&header, &prefix);
        if !self.assembler.is_open() {
            self.open = None;
        }
        Ok(Some(u64::from(header.event_size)))
    }

    fn header(&mut self, offset: u64) -> Result<Option<EventHeader>, Error> {
        let bytes = self.window.bytes(offset, HEADER_SIZE)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() < HEADER_SIZE {
            let error = BinlogError::Truncated { needed: HEADER_SIZE as u64, left: bytes.len() as u64 };
            return Err(error.at(offset, None).into());
        }
        let header = EventHeader::decode(bytes)?;
        self.framing.check_header(&header).map_err(|error| error.at(offset, None))?;
        Ok(Some(header))
    }

    /// Whether all bytes of an event are there, and its checksum is right.
    fn check_bytes(&mut self, offset: u64, header: &EventHeader) -> Result<(), Error> {
        let at = |error: BinlogError| error.at(offset, Some(header.event_type));
        let size = u64::from(header.event_size);
        let checksum_size = self.framing.checksum().size();
        let covered = offset + size - checksum_size as u64;
        let mut crc = Crc32::new();
        let mut place = offset;
        while place < covered {
            let wanted = (covered - place).min(WINDOW_SIZE as u64) as usize;
            let bytes = self.window.bytes(place, wanted)?;
            if bytes.is_empty() {
                return Err(at(BinlogError::Truncated { needed: size, left: place - offset }).into());
            }
            crc.update(bytes);
            place += bytes.len() as u64;
        }
        let stored = self.window.bytes(covered, checksum_size)?;
        if checksum_size == 0 {
            return Ok(());
        }
        let Some(stored) = stored.first_chunk::<CHECKSUM_SIZE>() else {
            return Err(at(BinlogError::Truncated { needed: size, left: size - 1 }).into());
        };
        let stored = u32::from_le_bytes(*stored);
        let computed = crc.finish();
        if stored == computed { Ok(()) } else { Err(at(BinlogError::Checksum { stored, computed }).into()) }
    }

    fn check_payload(&mut self, offset: u64, header: &EventHeader, body: Range<u64>) -> Result<(), Error> {
        let mut stream = PayloadStream::begin(offset, header, self.framing);
        let mut place = body.start;
        while place < body.end {
            let wanted = (body.end - place).min(WINDOW_SIZE as u64) as usize;
            let bytes = self.window.bytes(place, wanted)?;
            if bytes.is_empty() {
                break;
            }
            place += bytes.len() as u64;
            stream.body(bytes, &mut self.expander, &mut IgnoredEvents)?;
        }
        stream.end(&self.expander)?;
        Ok(())
    }

    fn gtid(&mut self, offset: u64, header: &EventHeader) -> Result<Option<Gtid>, Error> {
        let bytes = self.window.bytes(offset, header.event_size as usize)?;
        let Some(frame) = self.framing.next_frame(bytes)? else { return Ok(None) };
        let decoded = AnyGtidEvent::decode_frame(&frame.unchecked()?);
        Ok(decoded.map_err(|error| error.at(offset, Some(header.event_type)))?.and_then(|event| event.gtid()))
    }

    /// Where the next whole GTID event begins, or the log ends.
    fn next_transaction(&mut self, mut offset: u64) -> Result<u64, Error> {
        loop {
            let size = self.window.bytes(offset, WINDOW_SIZE)?.len();
            let found = (0..size as u64).map(|place| offset + place).find(|&place| self.is_gtid_event(place));
            match found {
                Some(place) => return Ok(place),
                None if size < WINDOW_SIZE => return Ok(offset + size as u64),
                None => offset += size as u64,
            }
        }
    }

    /// Whether a whole GTID event begins here, with something readable after it.
    fn is_gtid_event(&mut self, offset: u64) -> bool {
        let Ok(Some(header)) = self.header(offset) else { return false };
        if !header.event_type.is_gtid() || header.event_size > GTID_EVENT_SIZE_MAX {
            return false;
        }
        self.check_bytes(offset, &header).is_ok()
            && self.gtid(offset, &header).is_ok()
            && self.header(offset + u64::from(header.event_size)).is_ok()
    }
}

/// Part of a log in memory.
struct Window<'a> {
    places: &'a Arc<dyn ReadAt>,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// The bytes from `offset` on: `size` of them, or as many as there are.
    fn bytes(&mut self, offset: u64, size: usize) -> Result<&[u8], Error> {
        let held = self.start..self.start + self.bytes.len() as u64;
        let inside = held.contains(&offset) && offset + size as u64 <= held.end;
        if !inside {
            self.fill(offset, size.max(WINDOW_SIZE))?;
        }
        let from = (offset - self.start) as usize;
        let there = self.bytes.get(from..).unwrap_or_default();
        Ok(there.get(..size).unwrap_or(there))
    }

    fn fill(&mut self, offset: u64, size: usize) -> Result<(), Error> {
        self.start = offset;
        self.bytes.resize(size, 0);
        let filled =
            self.places.fill_at(&mut self.bytes, offset).map_err(|error| Error::Input(error.into()))?;
        self.bytes.truncate(filled);
        Ok(())
    }
}

/// Ignores everything: only whether there are events counts.
struct IgnoredEvents;

impl EventVisitor<StoredChecksum> for IgnoredEvents {
    type Error = binlogz_payload::Error;

    fn begin(&mut self, _: u64, _: &EventHeader) -> binlogz_payload::Result<()> {
        Ok(())
    }

    fn body(&mut self, _: &[u8]) -> binlogz_payload::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: StoredChecksum) -> binlogz_payload::Result<()> {
        Ok(())
    }
}
