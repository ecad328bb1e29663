//! The place that an event gets in the log being written.

use binlogz_binlog::EventHeader;
use binlogz_binlog::checksum::Crc32;

use crate::transaction::context::{LogContext, PositionRule};

/// Where events come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The events come from this offset of the input's log.
    Input { offset: u64 },
    /// The events were newly made.
    Made(PositionRule),
}

/// Where the next event of a span goes.
pub(super) struct SpanCursor {
    pub(super) origin: Origin,
    /// The event's offset in the output.
    pub(super) offset: u64,
    /// Bytes of the span's events before it.
    begun: u64,
}

impl SpanCursor {
    /// The span begins at `offset` of the output's log.
    pub(super) fn new(origin: Origin, offset: u64) -> Self {
        SpanCursor { origin, offset, begun: 0 }
    }

    /// The position that the next event gets, and whether that is its own place.
    #[inline]
    pub(super) fn next(&mut self, header: &EventHeader, context: LogContext) -> (u32, bool) {
        let size = u64::from(header.event_size);
        self.offset += size;
        self.begun += size;
        // Modulo 2^32, as the server writes positions beyond 4 GiB.
        let own = self.offset as u32;
        match self.origin {
            Origin::Input { offset } if context.has_own_position(header, offset + self.begun) => (own, true),
            Origin::Input { .. } => (header.end_log_pos, false),
            Origin::Made(PositionRule::Own) => (own, true),
            Origin::Made(PositionRule::ConsecutiveFrom(from)) => {
                (from.wrapping_add(self.begun as u32), false)
            }
            Origin::Made(PositionRule::Fixed(position)) => (position, false),
        }
    }
}

/// The current event.
pub(super) struct PlacedEvent {
    /// Where the event begins in the bytes read.
    pub(super) begin: u64,
    pub(super) header: EventHeader,
    pub(super) end_log_pos: u32,
    /// The checksum of a moved event as it was read, of a new one as it is written.
    pub(super) crc: Crc32,
}
