//! An event as unit tests hand it to what is sent to clients.

use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags};

/// An event of this body, without flags.
pub(crate) fn event_with(event_type: EventType, body: &[u8], checksum: ChecksumAlgorithm) -> Vec<u8> {
    let header = EventHeader {
        timestamp: 7,
        event_type,
        server_id: 1,
        event_size: 0,
        end_log_pos: 4711,
        flags: HeaderFlags::default(),
    };
    encode_event(header, body, checksum)
}
