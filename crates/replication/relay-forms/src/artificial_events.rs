//! Events that are in no file: those that a sender sends before each file, and heartbeats.
//!
//! ```text
//! fake rotate          names the file and where in it the stream begins; timestamp and end_log_pos are 0
//! format description   the file's; if the stream begins after it, marked so that it is not taken for a restart of the source
//! heartbeat            the stream's position; version 1 has 32 bits of it
//! ```
//!
//! (Facts of MySQL 9.7.4's `Binlog_sender`.)

use binlogz_binlog::event::{FormatDescription, HeartbeatEvent, HeartbeatV2Event, RotateEvent};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, VerifiedChecksum};
use binlogz_relay_log::StoredHead;

fn header(server_id: u32, event_type: EventType, flags: HeaderFlags, end_log_pos: u32) -> EventHeader {
    EventHeader { timestamp: 0, event_type, server_id, event_size: 0, end_log_pos, flags }
}

/// Precedes every file.
pub fn fake_rotate(server_id: u32, name: &str, position: u64, checksum: ChecksumAlgorithm) -> Vec<u8> {
    let body = RotateEvent { position, name: name.as_bytes() }.encode();
    encode_event(header(server_id, EventType::ROTATE, HeaderFlags::ARTIFICIAL, 0), &body, checksum)
}

/// A rotate event of the file itself, for another position and another name. `original` is the header of a verified
/// event.
pub(crate) fn rotate(
    original: &EventHeader,
    _: VerifiedChecksum,
    begin: u64,
    next: &str,
    checksum: ChecksumAlgorithm,
) -> Vec<u8> {
    let body = RotateEvent { position: 4, name: next.as_bytes() }.encode();
    let size = binlogz_binlog::header::HEADER_SIZE + body.len() + checksum.size();
    // Modulo 2^32, as mysqld has it.
    let end_log_pos = (begin + size as u64) as u32;
    encode_event(EventHeader { end_log_pos, ..*original }, &body, checksum)
}

/// The file's format description, as it is sent.
pub fn format_description(head: &StoredHead, begins_behind: bool, created_counts: bool) -> Vec<u8> {
    let end_log_pos = if begins_behind { 0 } else { head.header.end_log_pos };
    let created = if created_counts { head.description.created } else { 0 };
    if end_log_pos == head.header.end_log_pos && created == head.description.created {
        let mut event = head.event.clone();
        // The checksum is computed without this flag.
        if let Some(flags) = event.get_mut(FLAGS_OFFSET) {
            *flags &= !(HeaderFlags::IN_USE.0 as u8);
        }
        return event;
    }
    let description = FormatDescription { created, ..head.description.clone() };
    let flags = head.header.flags.without(HeaderFlags::IN_USE);
    // It has a checksum even if the other events have none.
    encode_event(
        EventHeader { end_log_pos, flags, ..head.header },
        &description.encode(),
        ChecksumAlgorithm::CRC32,
    )
}

/// Tells the stream's position.
pub fn heartbeat(
    server_id: u32,
    version_2: bool,
    name: &str,
    position: u64,
    checksum: ChecksumAlgorithm,
) -> Vec<u8> {
    let name = name.as_bytes();
    let (event_type, body) = match version_2 {
        true => (EventType::HEARTBEAT_V2, HeartbeatV2Event { name, position }.encode()),
        false => (EventType::HEARTBEAT, HeartbeatEvent { name }.encode()),
    };
    encode_event(header(server_id, event_type, HeaderFlags::default(), position as u32), &body, checksum)
}
