//! The log that events are from.

use binlogz_binlog::event::{FormatDescription, PostHeaderLengths};
use binlogz_payload::LogContext;

use crate::unread::UnreadNotes;

/// A log of the input: its last format description, and the facts derived from it.
#[derive(Debug)]
pub struct InputLog {
    /// The index of the log in the input, counted from 0. There may be several, as from `cat`; offsets
    /// restart in each.
    pub number: u64,
    /// The format description in force.
    pub description: FormatDescription,
    /// How events are framed, and whether this is a relay log.
    pub context: LogContext,
    /// Lengths of post-headers, for decoding bodies.
    pub lengths: PostHeaderLengths,
    /// Changes in events that were kept beyond their batch and could not be read.
    pub(super) unread: UnreadNotes,
}
