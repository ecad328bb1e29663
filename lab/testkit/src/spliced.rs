//! Real logs with events put in, replaced or left out. Lengths, positions and checksums are made anew.

use binlogz_binlog::EventType;
use binlogz_binlog::event::{Incident, IncidentEvent};

/// The bytes before the first event.
const MAGIC_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;
const HEADER_BYTES: usize = 19;
const EVENT_TYPE_OFFSET: usize = 4;
const EVENT_SIZE_OFFSET: usize = 9;
const END_LOG_POS_OFFSET: usize = 13;

/// The events of a log, each with its checksum.
pub fn events_of(log: &[u8]) -> Vec<&[u8]> {
    let mut events = Vec::new();
    let mut rest = &log[MAGIC_BYTES..];
    while !rest.is_empty() {
        let size = rest[EVENT_SIZE_OFFSET..].first_chunk::<4>().unwrap();
        let (event, after) = rest.split_at(u32::from_le_bytes(*size) as usize);
        events.push(event);
        rest = after;
    }
    events
}

/// The type of an event.
pub fn type_of(event: &[u8]) -> EventType {
    EventType(event[EVENT_TYPE_OFFSET])
}

/// An incident with the header of another event.
pub fn incident_like(event: &[u8]) -> Vec<u8> {
    let body = IncidentEvent { incident: Incident::LOST_EVENTS, message: b"no disk", inner_checksum: None };
    let mut incident = event[..HEADER_BYTES].to_vec();
    incident[EVENT_TYPE_OFFSET] = EventType::INCIDENT.0;
    incident.extend(body.encode().unwrap());
    incident.extend([0; CHECKSUM_BYTES]);
    incident
}

/// A log of these events, which get their lengths, positions and checksums.
pub fn log_of(magic: &[u8], events: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut log = magic[..MAGIC_BYTES].to_vec();
    for mut event in events {
        let size = event.len();
        let end = log.len() + event.len();
        event[EVENT_SIZE_OFFSET..][..4].copy_from_slice(&(size as u32).to_le_bytes());
        event[END_LOG_POS_OFFSET..][..4].copy_from_slice(&(end as u32).to_le_bytes());
        let covered = size - CHECKSUM_BYTES;
        let checksum = crc32fast::hash(&event[..covered]);
        event[covered..].copy_from_slice(&checksum.to_le_bytes());
        log.extend(event);
    }
    log
}
