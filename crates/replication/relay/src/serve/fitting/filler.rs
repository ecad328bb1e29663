//! An event without content, in the place of one that is left out.
//!
//! ```text
//! header: type Ignorable (28), the flag IGNORABLE, all else as in the event it replaces
//! body:   zeros
//! checksum, if the file has them
//! ```
//!
//! It is as large as that event, so everything after it keeps its position, and a client that resumes by position finds
//! its place. Every server since 5.6, MariaDB among them, passes over it (`Ignorable_log_event`).

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
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let flags = HeaderFlags(replaced.flags.0 | HeaderFlags::IGNORABLE.0);
    let header = EventHeader { event_type: EventType::IGNORABLE, flags, ..*replaced }.encode();
    let mut crc = Crc32::new();
    crc.update(&header);
    write(&header)?;
    let mut left = (replaced.event_size as usize).saturating_sub(HEADER_SIZE + algorithm.size());
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
}
