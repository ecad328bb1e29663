//! Newly made events that arrive in parts, before their GTID event is known.
//!
//! A GTID event tells how many bytes follow it. Where the output can be changed, room is left for it, the events
//! after it are written as they arrive, and it is filled in at the end: nothing of a transaction of any size has
//! to be held, and one thread expands while the other writes. Until then the room is zeros, which no reader takes
//! for an event.

use binlogz_binlog::{EventParser, Framing, StoredChecksum};

use super::event_place::{Origin, PlacedEvent, SpanCursor};
use crate::transaction::context::LogContext;

/// Room for an event in a log that is being written.
#[derive(Debug)]
pub struct ReservedEvent {
    /// Where it begins in its log.
    pub(super) offset: u64,
    /// Bytes of the output before it.
    pub written_before: u64,
}

/// Events of which some bytes have arrived.
pub struct ArrivingEvents {
    pub(super) parser: EventParser<StoredChecksum>,
    pub(super) place: SpanCursor,
    pub(super) context: LogContext,
    pub(super) event: Option<PlacedEvent>,
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
