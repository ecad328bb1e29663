//! The 19 bytes that begin every event.
//!
//! ```text
//! offset size field
//!      0    4 timestamp    seconds since 1970, start of the statement; 0 in artificial events
//!      4    1 event_type   see event_type.rs
//!      5    4 server_id    of the server that made the event first
//!      9    4 event_size   header, body and checksum
//!     13    4 end_log_pos  where the next event begins in the writer's file, modulo 2^32;
//!                          0 inside a transaction payload
//!     17    2 flags        see HeaderFlags
//! ```

use std::fmt;

use crate::cursor::Cursor;
use crate::error::Result;
use crate::event_type::EventType;

/// Bytes of an event header in version 4 of the format.
pub const HEADER_SIZE: usize = 19;
/// Offset of `event_type` in an event.
pub const EVENT_TYPE_OFFSET: usize = 4;
/// Offset of `event_size` in an event.
pub const EVENT_SIZE_OFFSET: usize = EVENT_TYPE_OFFSET + 1 + 4;
/// Offset of `end_log_pos` in an event.
pub const END_LOG_POS_OFFSET: usize = EVENT_SIZE_OFFSET + 4;
/// Offset of `flags` in an event.
pub const FLAGS_OFFSET: usize = END_LOG_POS_OFFSET + 4;

const _: () = assert!(FLAGS_OFFSET + 2 == HEADER_SIZE);

/// The flags of an event header. Unknown bits survive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HeaderFlags(pub u16);

impl HeaderFlags {
    /// The file is being written, or its writer crashed (format description only).
    pub const IN_USE: Self = HeaderFlags(0x01);
    /// The statement depends on its thread (temporary tables).
    pub const THREAD_SPECIFIC: Self = HeaderFlags(0x04);
    /// Do not print `USE` before the statement.
    pub const SUPPRESS_USE: Self = HeaderFlags(0x08);
    /// Made by the sender, not stored in the source's file.
    pub const ARTIFICIAL: Self = HeaderFlags(0x20);
    /// A relay log's own event, in the relay log's own coordinates.
    pub const RELAY_LOG: Self = HeaderFlags(0x40);
    /// A reader that does not know the type may skip the event.
    pub const IGNORABLE: Self = HeaderFlags(0x80);
    /// Replication filters do not apply.
    pub const NO_FILTER: Self = HeaderFlags(0x100);
    /// Multi-threaded appliers must run it alone.
    pub const MTS_ISOLATE: Self = HeaderFlags(0x200);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags without the bits of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        HeaderFlags(self.0 & !other.0)
    }
}

impl fmt::Debug for HeaderFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// The fields of an event header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// Seconds since 1970 at which the statement began.
    pub timestamp: u32,
    /// The event's type, which tells the meaning of the body.
    pub event_type: EventType,
    /// The server that made the event first.
    pub server_id: u32,
    /// Bytes of the whole event: header, body and checksum.
    pub event_size: u32,
    /// Where the next event begins in the writer's file, modulo 2^32.
    pub end_log_pos: u32,
    /// Flags of the event.
    pub flags: HeaderFlags,
}

impl EventHeader {
    /// Reads the header at the front of `bytes`; ignores what follows.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "event header");
        Ok(EventHeader {
            timestamp: cursor.u32("timestamp")?,
            event_type: EventType(cursor.u8("event type")?),
            server_id: cursor.u32("server id")?,
            event_size: cursor.u32("event size")?,
            end_log_pos: cursor.u32("end log pos")?,
            flags: HeaderFlags(cursor.u16("flags")?),
        })
    }

    /// The header as it stands in a file.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_SIZE] {
        let [t0, t1, t2, t3] = self.timestamp.to_le_bytes();
        let [s0, s1, s2, s3] = self.server_id.to_le_bytes();
        let [e0, e1, e2, e3] = self.event_size.to_le_bytes();
        let [p0, p1, p2, p3] = self.end_log_pos.to_le_bytes();
        let [f0, f1] = self.flags.0.to_le_bytes();
        let ty = self.event_type.0;
        [t0, t1, t2, t3, ty, s0, s1, s2, s3, e0, e1, e2, e3, p0, p1, p2, p3, f0, f1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: EventHeader = EventHeader {
        timestamp: 0x0403_0201,
        event_type: EventType(200),
        server_id: 0x0908_0706,
        event_size: 0x0d0c_0b0a,
        end_log_pos: 0x1110_0f0e,
        flags: HeaderFlags(0x1312),
    };

    #[test]
    fn both_directions_agree() {
        let bytes = HEADER.encode();
        assert_eq!(bytes[..4], [1, 2, 3, 4]);
        assert_eq!(bytes[EVENT_TYPE_OFFSET], 200);
        assert_eq!(bytes[EVENT_SIZE_OFFSET..][..4], [10, 11, 12, 13]);
        assert_eq!(bytes[END_LOG_POS_OFFSET..][..4], [14, 15, 16, 17]);
        assert_eq!(bytes[FLAGS_OFFSET..], [0x12, 0x13]);
        assert_eq!(EventHeader::decode(&bytes).unwrap(), HEADER);
    }

    #[test]
    fn one_byte_short_is_an_error() {
        let error = EventHeader::decode(&HEADER.encode()[..18]).unwrap_err();
        assert_eq!(error.to_string(), "event header: flags needs 2 bytes, 1 are left");
    }
}
