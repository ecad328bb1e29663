//! Where an event is: in its log, and in a payload. `events` makes these positions; every message about an event has one.

/// Where an event is in its log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPosition {
    /// Where the event begins, in bytes; for one inside a payload, where the payload event begins.
    pub offset: u64,
    /// Where the event is in the payload; `None` for an event outside payloads.
    pub inside: Option<InsidePayload>,
}

/// The place of an event in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InsidePayload {
    /// Which event of the payload it is, counted from 0.
    pub index: u64,
    /// Where the event begins in the payload, in uncompressed bytes.
    pub offset: u64,
    /// `end_log_pos` of the payload event, which servers take for that of each event inside.
    pub end_log_pos: u32,
}
