//! The events of a part of a log, with the facts that archives use: where they begin and end, GTIDs, checksums.

use binlogz_binlog::checksum::{CHECKSUM_SIZE, crc32};
use binlogz_binlog::event::{AnyGtidEvent, FormatDescription, PostHeaderLengths};
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{EventFrame, EventHeader, EventType, Framing, MAGIC};

/// Bytes of a table map's post-header, since 5.1.5.
pub(crate) const TABLE_MAP_POST_HEADER: u8 = 8;
/// The end of the event at `at`, if it is whole.
pub(crate) fn event_end(log: &[u8], at: usize) -> Option<usize> {
    let size = log.get(at..)?.get(EVENT_SIZE_OFFSET..HEADER_SIZE)?.first_chunk::<4>()?;
    let size = u32::from_le_bytes(*size) as usize;
    let end = at.checked_add(size)?;
    (size >= HEADER_SIZE && end <= log.len()).then_some(end)
}

/// Bytes before the first event of a part of a log that begins at `offset`.
pub(crate) fn magic_size(log: &[u8], offset: u64) -> u64 {
    if offset == 0 && log.starts_with(&MAGIC) { MAGIC.len() as u64 } else { 0 }
}

/// The whole events of a part of a log.
pub(crate) fn events(log: &[u8], offset: u64) -> impl Iterator<Item = &[u8]> {
    let mut at = magic_size(log, offset) as usize;
    std::iter::from_fn(move || {
        let end = event_end(log, at)?;
        let event = log.get(at..end);
        at = end;
        event
    })
}

/// An event as a frame.
pub(crate) fn frame(event: &[u8]) -> Option<EventFrame<'_>> {
    let checksum = if has_checksum(event) { CHECKSUM_SIZE } else { 0 };
    EventFrame::from_bytes(event, checksum).ok()
}

/// The body of an event, without its checksum.
pub(crate) fn body(event: &[u8]) -> &[u8] {
    frame(event).map(|frame| frame.body()).unwrap_or_default()
}

/// The GTID of a GTID event.
pub(crate) fn gtid_of(event: &[u8]) -> Option<binlogz_binlog::gtid::Gtid> {
    let event_type = EventHeader::decode(event).ok()?.event_type;
    if !matches!(event_type, EventType::GTID | EventType::GTID_TAGGED) {
        return None;
    }
    AnyGtidEvent::decode_frame(&frame(event)?).ok().flatten()?.gtid()
}

/// When the transaction of a GTID event was committed first, in microseconds since 1970.
pub(crate) fn commit_time_of(event: &[u8]) -> Option<u64> {
    let times = AnyGtidEvent::decode_frame(&frame(event)?).ok().flatten()?.commit_timestamps()?;
    Some(times.original.unwrap_or(times.immediate))
}

/// The magic, the format description and the previous GTIDs at the start of a log.
pub(crate) fn head(log: &[u8]) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    for event in events(log, 0) {
        match event.get(4).map(|&event_type| EventType(event_type)) {
            Some(EventType::FORMAT_DESCRIPTION | EventType::PREVIOUS_GTIDS) if event.len() > HEADER_SIZE => {
                head.extend_from_slice(event);
            }
            _ => break,
        }
    }
    head
}

/// The lengths of post-headers that a log's head tells; `None`: it has no format description.
pub(crate) fn lengths(head: &[u8]) -> Option<PostHeaderLengths> {
    let framing = Framing::new();
    let event = events(head, 0).next()?;
    let frame = framing.next_frame(event).ok().flatten()?.verify().ok()?;
    Some(PostHeaderLengths::from(&FormatDescription::decode_frame(&frame).ok()?))
}

/// Whether the last four bytes are the checksum of those before.
pub(crate) fn has_checksum(event: &[u8]) -> bool {
    event.split_last_chunk::<CHECKSUM_SIZE>().is_some_and(|(bytes, checksum)| {
        bytes.len() >= HEADER_SIZE && u32::from_le_bytes(*checksum) == crc32(bytes)
    })
}
