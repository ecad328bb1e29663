//! An event without content, in the place of one that is left out.
//!
//! ```text
//! header: type Ignorable (28), the flag IGNORABLE, all else as in the event it replaces
//! body:   zeros
//! checksum, if the file has them
//! ```
//!
//! It is as large as that event, so everything after it keeps its position, and a client that resumes by position finds
//! its place. Every server since 5.6, MariaDB among them, passes over it (`Ignorable_log_event`). But between rows of one
//! statement MariaDB's receiver takes no other event (error 1595), so there it gets a rows event without rows.

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, checksum::Crc32};

/// The size of the smallest filler: a header and a checksum.
pub(super) const SIZE_MIN: u32 = HEADER_SIZE as u32 + 4;

/// Zeros that are written at once.
const ZEROS: [u8; 4096] = [0; 4096];

/// Gives the bytes of the event that fills the place of another to `write`, in pieces.
pub(crate) fn write<E>(
    replaced: &EventHeader,
    algorithm: ChecksumAlgorithm,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let flags = HeaderFlags(replaced.flags.0 | HeaderFlags::IGNORABLE.0);
    let header = EventHeader { event_type: EventType::IGNORABLE, flags, ..*replaced };
    write_zeros(&header, &[], algorithm, write)
}

/// Gives a rows event without rows to `write`, in the place of one, whose body begins with `head`: table and flags. A
/// server that was sent no map of that table passes over it, as over one that its filters exclude, and closes its tables
/// if the event ends the statement.
pub(crate) fn write_blank_rows<E>(
    replaced: &EventHeader,
    head: &[u8],
    algorithm: ChecksumAlgorithm,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    const NO_EXTRA_DATA: [u8; 2] = [2, 0];
    const ONE_COLUMN: [u8; 3] = [1, 1, 1];
    let is_version_1 = [EventType::WRITE_ROWS_V1, EventType::UPDATE_ROWS_V1, EventType::DELETE_ROWS_V1]
        .contains(&replaced.event_type);
    let extra = if is_version_1 { &[][..] } else { &NO_EXTRA_DATA };
    let front = [head, extra, &ONE_COLUMN].concat();
    write_zeros(replaced, &front, algorithm, write)
}

/// Writes an event whose body has zeros after `front`.
fn write_zeros<E>(
    header: &EventHeader,
    front: &[u8],
    algorithm: ChecksumAlgorithm,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let size = (header.event_size as usize).saturating_sub(HEADER_SIZE + algorithm.size());
    let front = front.get(..size).unwrap_or(front);
    let header = header.encode();
    let mut crc = Crc32::new();
    for bytes in [&header[..], front] {
        crc.update(bytes);
        write(bytes)?;
    }
    let mut left = size.saturating_sub(front.len());
    while left > 0 {
        let zeros = ZEROS.get(..left).unwrap_or(&ZEROS);
        crc.update(zeros);
        write(zeros)?;
        left -= zeros.len();
    }
    match algorithm.size() {
        0 => Ok(()),
        _ => write(&crc.finish().to_le_bytes()),
    }
}

/// The event that fills the place of another.
pub(super) fn whole(replaced: &EventHeader, algorithm: ChecksumAlgorithm) -> Vec<u8> {
    let mut event = Vec::with_capacity(replaced.event_size as usize);
    let written: Result<(), std::convert::Infallible> = write(replaced, algorithm, |bytes| {
        event.extend_from_slice(bytes);
        Ok(())
    });
    match written {
        Ok(()) => event,
        Err(never) => match never {},
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_binlog::EventFrame;

    use super::*;

    #[test]
    fn a_filler_is_as_large_as_what_it_replaces() {
        for algorithm in [ChecksumAlgorithm::CRC32, ChecksumAlgorithm::NONE] {
            for event_size in [SIZE_MIN, SIZE_MIN + 1, 4096, 4119, 4120, 100_000] {
                let replaced = EventHeader {
                    timestamp: 7,
                    event_type: EventType::WRITE_ROWS,
                    server_id: 3,
                    event_size,
                    end_log_pos: 4711,
                    flags: HeaderFlags(0x08),
                };
                let event = whole(&replaced, algorithm);
                let frame = EventFrame::from_bytes(&event, algorithm.size()).unwrap();
                let flags = HeaderFlags(0x88);
                let expected = EventHeader { event_type: EventType::IGNORABLE, flags, ..replaced };
                assert_eq!((*frame.header(), event.len()), (expected, event_size as usize));
                assert!(frame.stored_checksum().is_none_or(|stored| stored == frame.computed_checksum()));
                assert!(frame.body().iter().all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn a_blank_rows_event_is_of_the_same_table_and_has_no_rows() {
        for (event_type, least) in [(EventType::WRITE_ROWS, 37), (EventType::UPDATE_ROWS_V1, 36)] {
            for event_size in [least, 5_000] {
                let replaced = EventHeader {
                    timestamp: 7,
                    event_type,
                    server_id: 3,
                    event_size,
                    end_log_pos: 4711,
                    flags: HeaderFlags::default(),
                };
                let mut event = Vec::new();
                let written: Result<(), ()> = write_blank_rows(
                    &replaced,
                    &[9, 0, 0, 0, 0, 0, 1, 0],
                    ChecksumAlgorithm::CRC32,
                    |bytes| {
                        event.extend_from_slice(bytes);
                        Ok(())
                    },
                );
                written.unwrap();
                let frame = EventFrame::from_bytes(&event, 4).unwrap();
                assert_eq!((*frame.header(), event.len()), (replaced, event_size as usize));
                assert_eq!(frame.stored_checksum(), Some(frame.computed_checksum()));
                let length = if event_type == EventType::WRITE_ROWS { 10 } else { 8 };
                let rows =
                    binlogz_binlog::event::RowsEvent::decode(event_type, frame.body(), length).unwrap();
                assert_eq!((rows.table_id.0, rows.flags.0), (9, 1));
            }
        }
    }
}
