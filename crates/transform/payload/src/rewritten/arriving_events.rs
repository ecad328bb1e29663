//! Newly made events that arrive in parts, before their GTID event is known.
//!
//! A GTID event tells how many bytes follow it. Where the output can be changed, room is left for it, the events
//! after it are written as they arrive, and it is filled in at the end: nothing of a transaction of any size has
//! to be held, and one thread expands while the other writes. Until then the room is zeros, which no reader takes
//! for an event.

use std::io::{Read, Write};

use binlogz_binlog::{EventParser, Framing, StoredChecksum, VerifiedChecksum};

use super::position_writer::{Origin, PlacedEvent, Placer, PositionWriter, SpanCursor};
use crate::error::Result;
use crate::transaction::context::{LogContext, PositionRule};

/// Room for an event in a log that is being written.
#[derive(Debug)]
pub struct ReservedEvent {
    /// Where it begins in its log.
    offset: u64,
    /// Bytes of the output before it.
    pub written_before: u64,
}

/// Events of which some bytes have arrived.
pub struct ArrivingEvents {
    parser: EventParser<StoredChecksum>,
    place: SpanCursor,
    context: LogContext,
    event: Option<PlacedEvent>,
}

impl ArrivingEvents {
    pub(super) fn new(origin: Origin, offset: u64, context: LogContext) -> Self {
        let (parsed_from, framing) = match origin {
            Origin::Input { offset } => (offset, context.framing),
            // The format description of an old server's log announces payloads only as it is written.
            Origin::Made(_) => (offset, Framing::with_checksum(context.framing.checksum())),
        };
        ArrivingEvents {
            parser: EventParser::unverified(framing, parsed_from),
            place: SpanCursor::new(origin, offset),
            context,
            event: None,
        }
    }
}

impl<W: Write> PositionWriter<W> {
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
}
