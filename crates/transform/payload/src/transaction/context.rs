//! The log that a piece belongs to: how its events are read, and which positions mean a place in it.

use binlogz_binlog::event::PostHeaderLengths;
use binlogz_binlog::{EventHeader, Framing, HeaderFlags};

/// Properties that all events of a piece of a log have in common.
#[derive(Debug, Clone, Copy)]
pub struct LogContext {
    /// How the log's events are framed.
    pub framing: Framing,
    /// Where the variable parts of its events begin.
    pub post_header_lengths: PostHeaderLengths,
    /// Whether the log is a relay log: positions of its events are the source's.
    pub relay_log: bool,
}

impl LogContext {
    /// Whether an event that ends at `end` of this log has that as its position, which then has to be
    /// adjusted. In a relay log this is only true for the relay log's own events.
    #[inline]
    pub fn has_own_position(&self, header: &EventHeader, end: u64) -> bool {
        self.may_have_own_position(header) && header.end_log_pos == end as u32
    }

    /// Whether an event's position, if it is the place where the event ends, means that place.
    #[inline]
    pub(crate) fn may_have_own_position(&self, header: &EventHeader) -> bool {
        !self.relay_log || header.flags.contains(HeaderFlags::RELAY_LOG)
    }
}

/// A piece of a log: its place, and the log it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct PieceContext {
    /// Where its first event begins in the log.
    pub offset: u64,
    /// How to read its events.
    pub context: LogContext,
    /// Whether the log's format description, as it will be written, lets payload events follow: see
    /// [`crate::rewritten::format_description`].
    pub announced: bool,
}

/// The `end_log_pos` that new events get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionRule {
    /// Where the events end in the output.
    Own,
    /// Where the events end if the first one begins at this place of the source's log.
    ConsecutiveFrom(u32),
    /// All the same.
    Fixed(u32),
}
