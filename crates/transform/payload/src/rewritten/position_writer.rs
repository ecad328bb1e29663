//! Writes rewritten pieces one after the other: the stage that knows the place of each event.
//!
//! Gives each event that was moved or newly made its `end_log_pos` and the checksum over it. Runs in the
//! order of the log, so it does nothing else.
//!
//! ```text
//! moved          a checksum derived from the old one, which costs no look at the event: damage shows as before
//! made anew      a checksum of its bytes: what they were made of was verified (`RewrittenSpan::New`)
//! ```
//!
//! A moved event that is read again, because its piece was too large to hold, is verified as it is read.

use std::io::{BufWriter, Read, Write};

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32, crc32};
use binlogz_binlog::frame::set_end_log_pos;
use binlogz_binlog::header::{END_LOG_POS_OFFSET, HEADER_SIZE};
use binlogz_binlog::{
    Error as BinlogError, EventHeader, EventType, EventVisitor, MAGIC, StoredChecksum, VerifiedChecksum,
};

use crate::error::{Error, Result};
use crate::rewritten::arriving_events::{ArrivingEvents, ReservedEvent};
use crate::rewritten::event_place::{Origin, PlacedEvent, SpanCursor};
use crate::rewritten::piece::{RewrittenPiece, RewrittenSpan};
use crate::transaction::context::{LogContext, PositionRule};

/// Bytes read at a time if they are not in memory.
const COPY_SIZE: usize = 256 << 10;

/// Bytes collected for one write, because small transactions would cost a system call each.
const WRITE_SIZE: usize = 256 << 10;

/// The piece of the log that a [`RewrittenPiece`] was made from.
pub trait PieceBytes {
    /// A range of it, if it is in memory; the bytes may be changed.
    fn in_memory(&mut self, range: std::ops::Range<u64>) -> Option<&mut [u8]>;

    /// Reads a range of it.
    fn reader(&mut self, range: std::ops::Range<u64>) -> std::io::Result<Box<dyn Read + '_>>;
}

impl PieceBytes for Vec<u8> {
    fn in_memory(&mut self, range: std::ops::Range<u64>) -> Option<&mut [u8]> {
        self.get_mut(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    fn reader(&mut self, range: std::ops::Range<u64>) -> std::io::Result<Box<dyn Read + '_>> {
        match self.in_memory(range) {
            Some(bytes) => Ok(Box::new(&*bytes)),
            None => Ok(Box::new(std::io::empty())),
        }
    }
}

/// Writes a log.
#[derive(Debug)]
pub struct PositionWriter<W: Write> {
    out: BufWriter<W>,
    /// Where the next event goes in its log.
    offset: u64,
    /// Bytes written of all logs.
    written: u64,
    /// Whether it is an error if an input position that does not mean a place happens to look like one.
    refuse_ambiguity: bool,
}

impl<W: Write> PositionWriter<W> {
    /// Writes to `out`. With `reversible` set, an event whose foreign position happens to be its new place is
    /// an error: expanding would take it for its own.
    pub fn new(out: W, reversible: bool) -> Self {
        let out = BufWriter::with_capacity(WRITE_SIZE, out);
        PositionWriter { out, offset: 0, written: 0, refuse_ambiguity: reversible }
    }

    /// A writer that continues at `offset` in the middle of a log.
    pub fn resume(out: W, offset: u64, reversible: bool) -> Self {
        let writer = PositionWriter::new(out, reversible);
        PositionWriter { offset, ..writer }
    }

    /// Writes to `out`, which collects bytes itself, in the middle of a log.
    pub fn unbuffered(out: W, offset: u64, reversible: bool) -> Self {
        PositionWriter {
            out: BufWriter::with_capacity(0, out),
            offset,
            written: 0,
            refuse_ambiguity: reversible,
        }
    }

    /// Where the next event goes in its log.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Continues elsewhere in its log: nothing is written in between.
    pub fn move_to(&mut self, offset: u64) -> Result<()> {
        self.out.flush()?;
        self.offset = offset;
        Ok(())
    }

    /// The underlying writer, with everything before passed on to it.
    pub fn inner(&mut self) -> Result<&mut W> {
        self.out.flush()?;
        Ok(self.out.get_mut())
    }

    /// Begins a log.
    pub fn magic(&mut self) -> Result<()> {
        self.out.write_all(&MAGIC)?;
        self.offset = MAGIC.len() as u64;
        self.written += MAGIC.len() as u64;
        Ok(())
    }

    /// Writes bytes that need no changes.
    pub fn as_is(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.advance(bytes.len() as u64);
        Ok(())
    }

    /// Writes a piece; reports to `placed` where each of its spans begins, and where the last one ends.
    pub fn write(
        &mut self,
        rewritten: &mut RewrittenPiece,
        input: &mut dyn PieceBytes,
        mut placed: impl FnMut(usize, u64),
    ) -> Result<()> {
        let RewrittenPiece { offset, context, spool, spans, .. } = rewritten;
        for (index, span) in spans.iter().enumerate() {
            placed(index, self.offset);
            let (range, in_memory, origin) = match span {
                RewrittenSpan::Plain(range) => {
                    (range, input.in_memory(range.clone()), Origin::Input { offset: *offset + range.start })
                }
                RewrittenSpan::New { range, positions, .. } => {
                    (range, spool.in_memory(range.clone()), Origin::Made(*positions))
                }
            };
            let size = range.end - range.start;
            if let Some(bytes) = in_memory {
                self.place(bytes, origin, self.offset, *context)?;
                self.as_is(bytes)?;
                continue;
            }
            match span {
                RewrittenSpan::Plain(range) => {
                    self.stream(input.reader(range.clone())?, size, origin, *context)?
                }
                RewrittenSpan::New { range, .. } => {
                    self.stream(spool.reader(range.clone()), size, origin, *context)?
                }
            }
        }
        placed(spans.len(), self.offset);
        Ok(())
    }

    /// Writes events of the input that begin at `offset` of its log, read again.
    pub fn moved(&mut self, reader: impl Read, size: u64, offset: u64, context: LogContext) -> Result<()> {
        self.stream(reader, size, Origin::Input { offset }, context)
    }

    /// Leaves room for an event of this size: zeros until it is filled in.
    pub fn reserve(&mut self, size: usize) -> Result<ReservedEvent> {
        let room = ReservedEvent { offset: self.offset(), written_before: self.written() };
        self.as_is(&vec![0; size])?;
        Ok(room)
    }

    /// Gives the event for a room its position and checksum; the caller writes it. `verified` proves that what the
    /// events after it were made from was not damaged.
    pub fn fill(
        &self,
        room: &ReservedEvent,
        event: &mut [u8],
        positions: PositionRule,
        context: LogContext,
        _verified: VerifiedChecksum,
    ) -> Result<()> {
        self.place(event, Origin::Made(positions), room.offset, context)
    }

    /// Writes whole events that were newly made, with positions and checksums.
    pub fn made(&mut self, events: &mut [u8], positions: PositionRule, context: LogContext) -> Result<()> {
        self.place(events, Origin::Made(positions), self.offset, context)?;
        // As many as these are not collected: that would copy them.
        self.inner()?.write_all(events)?;
        self.advance(events.len() as u64);
        Ok(())
    }

    /// Begins events that were newly made, at the place where the log is.
    pub fn begin_made(&self, positions: PositionRule, context: LogContext) -> ArrivingEvents {
        ArrivingEvents::new(Origin::Made(positions), self.offset(), context)
    }

    /// Writes the next bytes of such events, cut anywhere, with positions and checksums.
    pub fn push(&mut self, events: &mut ArrivingEvents, bytes: &[u8]) -> Result<()> {
        let ArrivingEvents { parser, place, context, event } = events;
        let mut placer = Placer { writer: self, place, context: *context, event };
        parser.push(bytes, &mut placer)
    }

    /// Such events end: the last one must be whole.
    pub fn end_made(&self, events: &ArrivingEvents) -> Result<()> {
        Ok(events.parser.finish()?)
    }

    /// Ends the writing: flushes everything to the underlying writer.
    pub fn finish(mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    fn advance(&mut self, size: u64) {
        self.offset += size;
        self.written += size;
    }

    /// Gives events in memory, which begin at `offset` of the output's log, their positions and checksums.
    fn place(&self, mut bytes: &mut [u8], origin: Origin, offset: u64, context: LogContext) -> Result<()> {
        let checksum = context.framing.checksum();
        let mut place = SpanCursor::new(origin, offset);
        while !bytes.is_empty() {
            let header = EventHeader::decode(bytes)?;
            // Events that are not verified yet may claim a size of zero: the loop would never end.
            if (header.event_size as usize) < HEADER_SIZE {
                return Err(our_mistake());
            }
            let Some((event, rest)) = bytes.split_at_mut_checked(header.event_size as usize) else {
                return Err(our_mistake());
            };
            let end_log_pos = self.position(&mut place, &header, context)?;
            match origin {
                Origin::Input { .. } if end_log_pos == header.end_log_pos => {}
                Origin::Input { .. } => set_end_log_pos(event, end_log_pos, checksum)?,
                Origin::Made(_) => {
                    put(event, END_LOG_POS_OFFSET, end_log_pos)?;
                    if checksum.size() > 0 {
                        let covered = event.len().checked_sub(CHECKSUM_SIZE).ok_or_else(our_mistake)?;
                        let crc = crc32(event.get(..covered).unwrap_or_default());
                        put(event, covered, crc)?;
                    }
                }
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Writes events that are not in memory.
    fn stream(
        &mut self,
        mut reader: impl Read,
        size: u64,
        origin: Origin,
        context: LogContext,
    ) -> Result<()> {
        let mut left = size;
        let mut buffer = vec![0; COPY_SIZE.min(usize::try_from(size).unwrap_or(COPY_SIZE))];
        let mut events = ArrivingEvents::new(origin, self.offset, context);
        while left > 0 {
            let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let chunk = buffer.get_mut(..wanted).unwrap_or_default();
            let count = reader.read(chunk)?;
            if count == 0 {
                let error = std::io::Error::new(
                    std::io::ErrorKind::UnexpectedEof,
                    format!("the log became shorter while it was read: {left} bytes are missing"),
                );
                return Err(error.into());
            }
            self.push(&mut events, chunk.get(..count).unwrap_or_default())?;
            left -= count as u64;
        }
        self.end_made(&events)
    }

    /// The position of the next event. If it is not meant to be its own place, it must not happen to look
    /// like that.
    fn position(&self, place: &mut SpanCursor, header: &EventHeader, context: LogContext) -> Result<u32> {
        let (end_log_pos, own) = place.next(header, context);
        let header = EventHeader { end_log_pos, ..*header };
        if self.refuse_ambiguity && !own && context.has_own_position(&header, place.offset) {
            let error = BinlogError::invalid(
                "event header",
                "end log pos",
                end_log_pos,
                "a position that does not happen to be the event's place in the compressed log",
            );
            return Err(error.at(place.offset, Some(header.event_type)).into());
        }
        Ok(end_log_pos)
    }
}

/// Places events that arrive in pieces.
struct Placer<'a, W: Write> {
    writer: &'a mut PositionWriter<W>,
    place: &'a mut SpanCursor,
    context: LogContext,
    event: &'a mut Option<PlacedEvent>,
}

impl<W: Write> EventVisitor<StoredChecksum> for Placer<'_, W> {
    type Error = Error;

    fn begin(&mut self, begin: u64, header: &EventHeader) -> Result<()> {
        let end_log_pos = self.writer.position(self.place, header, self.context)?;
        let placed = EventHeader { end_log_pos, ..*header };
        let mut crc = Crc32::new();
        crc.update(&match self.place.origin {
            Origin::Input { .. } => header.encode(),
            Origin::Made(_) => placed.encode(),
        });
        *self.event = Some(PlacedEvent { begin, header: *header, end_log_pos, crc });
        self.writer.as_is(&placed.encode())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(event) = self.event.as_mut().filter(|_| self.context.framing.checksum().size() > 0) {
            event.crc.update(bytes);
        }
        self.writer.as_is(bytes)
    }

    fn end(&mut self, checksum: StoredChecksum) -> Result<()> {
        let (Some(event), Some(stored)) = (self.event.take(), checksum.value()) else { return Ok(()) };
        let PlacedEvent { begin, header, end_log_pos, crc } = event;
        let computed = crc.finish();
        let checksum = match self.place.origin {
            Origin::Made(_) => computed,
            Origin::Input { .. } if computed == stored => {
                checksum.moved(&header, end_log_pos).value().unwrap_or_default()
            }
            Origin::Input { .. } => return Err(damaged(begin, header.event_type, stored, computed)),
        };
        self.writer.as_is(&checksum.to_le_bytes())
    }
}

#[cold]
fn damaged(offset: u64, event_type: EventType, stored: u32, computed: u32) -> Error {
    BinlogError::Checksum { stored, computed }.at(offset, Some(event_type)).into()
}

fn put(event: &mut [u8], offset: usize, value: u32) -> Result<()> {
    let place = event.get_mut(offset..offset + 4).ok_or_else(our_mistake)?;
    place.copy_from_slice(&value.to_le_bytes());
    Ok(())
}

/// Spans hold whole events: they were made by this crate.
#[cold]
fn our_mistake() -> Error {
    BinlogError::invalid("rewritten transaction", "span", "cut inside an event", "whole events").into()
}
