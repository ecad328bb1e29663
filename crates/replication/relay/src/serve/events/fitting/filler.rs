//! An event without content, in the place of one that is left out.
//!
//! ```text
//! header: type Ignorable (28), the flag IGNORABLE, all else as in the event it replaces
//! body:   zeros
//! checksum, if the file has them
//!
//! header: type Query (2), the flag SUPPRESS_USE        header: type User_var (14)
//! body:   13 zeros, NUL                                body:   4 bytes: length of the name
//!         "# left out", spaces                                 "!leftout!", shortened; 1: the value is NULL
//! ```
//!
//! It is as large as that event, so everything after it keeps its position, and a client that resumes by position finds
//! its place. Every server since 5.6, MariaDB among them, passes over it (`Ignorable_log_event`). But between rows of one
//! statement MariaDB's receiver takes no other event (error 1595), so there it gets a rows event without rows.
//!
//! Servers don't write the first kind into their relay logs; the other two are for one that may not be stopped after such an
//! event (`FillerKind`). A comment is a statement without effect, and so is a variable that no statement follows.

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, checksum::Crc32};

use crate::serve::events::profiles::FillerKind;

/// The size of the smallest filler: a header and a checksum.
pub(super) const SIZE_MIN: u32 = HEADER_SIZE as u32 + 4;

/// The front of a statement: no session, no database, no settings, and a comment.
const STATEMENT: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0# left out";
/// With as much of the comment as makes it one.
const STATEMENT_SIZE_MIN: usize = 15;
const VARIABLE: &[u8] = b"!leftout!";
/// The length of the name, and that the value is NULL.
const VARIABLE_FIXED_SIZE: usize = 5;

/// Bytes that are written at once.
const AT_A_TIME: usize = 4096;

/// Gives the bytes of the event that fills the place of another to `write`, in pieces.
pub(crate) fn write<E>(
    replaced: &EventHeader,
    kind: FillerKind,
    algorithm: ChecksumAlgorithm,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    if kind == FillerKind::Statement {
        let size = body_size(replaced, algorithm);
        if size >= STATEMENT_SIZE_MIN {
            let flags = HeaderFlags::SUPPRESS_USE;
            let header = EventHeader { event_type: EventType::QUERY, flags, ..*replaced };
            return write_padded(&header, STATEMENT, b' ', algorithm, write);
        }
        let name = VARIABLE.get(..size.saturating_sub(VARIABLE_FIXED_SIZE)).unwrap_or_default();
        if !name.is_empty() {
            let flags = HeaderFlags::default();
            let header = EventHeader { event_type: EventType::USER_VAR, flags, ..*replaced };
            let body = [&(name.len() as u32).to_le_bytes(), name, &[1]].concat();
            return write_padded(&header, &body, 0, algorithm, write);
        }
    }
    let flags = HeaderFlags(replaced.flags.0 | HeaderFlags::IGNORABLE.0);
    let header = EventHeader { event_type: EventType::IGNORABLE, flags, ..*replaced };
    write_padded(&header, &[], 0, algorithm, write)
}

/// The size of an event's body, without a checksum.
fn body_size(header: &EventHeader, algorithm: ChecksumAlgorithm) -> usize {
    (header.event_size as usize).saturating_sub(HEADER_SIZE + algorithm.size())
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
    write_padded(replaced, &front, 0, algorithm, write)
}

/// Writes an event whose body is filled up after `front` with one byte.
fn write_padded<E>(
    header: &EventHeader,
    front: &[u8],
    padding: u8,
    algorithm: ChecksumAlgorithm,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let size = body_size(header, algorithm);
    let front = front.get(..size).unwrap_or(front);
    let header = header.encode();
    let mut crc = Crc32::new();
    for bytes in [&header[..], front] {
        crc.update(bytes);
        write(bytes)?;
    }
    let mut left = size.saturating_sub(front.len());
    let padding = [padding; AT_A_TIME];
    while left > 0 {
        let piece = padding.get(..left).unwrap_or(&padding);
        crc.update(piece);
        write(piece)?;
        left -= piece.len();
    }
    match algorithm.size() {
        0 => Ok(()),
        _ => write(&crc.finish().to_le_bytes()),
    }
}

/// The event that fills the place of another.
pub(super) fn whole(replaced: &EventHeader, kind: FillerKind, algorithm: ChecksumAlgorithm) -> Vec<u8> {
    let mut event = Vec::with_capacity(replaced.event_size as usize);
    let written: Result<(), std::convert::Infallible> = write(replaced, kind, algorithm, |bytes| {
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
    use binlogz_binlog::event::{QueryEvent, UserVarEvent};

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
                let event = whole(&replaced, FillerKind::Ignorable, algorithm);
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
    fn a_filler_that_servers_keep_is_a_comment_or_a_variable() {
        for algorithm in [ChecksumAlgorithm::CRC32, ChecksumAlgorithm::NONE] {
            for size in (0..400).chain([4095, 4096, 4097, 100_000]) {
                let event_size = (HEADER_SIZE + size + algorithm.size()) as u32;
                let replaced = EventHeader {
                    timestamp: 7,
                    event_type: EventType::GTID,
                    server_id: 3,
                    event_size,
                    end_log_pos: 4711,
                    flags: HeaderFlags::default(),
                };
                let event = whole(&replaced, FillerKind::Statement, algorithm);
                let frame = EventFrame::from_bytes(&event, algorithm.size()).unwrap();
                assert!(frame.stored_checksum().is_none_or(|stored| stored == frame.computed_checksum()));
                let EventHeader { event_type, flags, .. } = *frame.header();
                assert_eq!(*frame.header(), EventHeader { event_type, flags, ..replaced });
                match size {
                    0..6 => assert_eq!(event_type, EventType::IGNORABLE),
                    6..15 => {
                        let variable = UserVarEvent::decode(frame.body()).unwrap();
                        assert_eq!((variable.name, variable.value), (&VARIABLE[..size - 5], None));
                    }
                    _ => {
                        let query = QueryEvent::decode(frame.body()).unwrap();
                        let comment = std::str::from_utf8(query.statement).unwrap();
                        assert!(comment.starts_with('#') && "# left out".starts_with(comment.trim_end()));
                        assert_eq!((query.database, query.status_variables.0), (&b""[..], &b""[..]));
                    }
                }
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
