//! Finds one whole event in a buffer.
//!
//! A stream's [`Framing`] knows which checksum algorithm is in force: that of the last format description. It
//! returns [`UnverifiedFrame`]s. [`UnverifiedFrame::verify`] compares the checksum and returns a
//! [`VerifiedFrame`], from which new events may be made. [`UnverifiedFrame::unchecked`] skips that and
//! returns an [`EventFrame`], which can only be read.

use crate::EVENT_SIZE_MAX;
use crate::checksum::{ChecksumAlgorithm, VerifiedChecksum};
use crate::error::{Error, Result};
use crate::event::FormatDescription;
use crate::event_type::EventType;
use crate::frame::{EventFrame, VerifiedFrame};
use crate::header::{EventHeader, HEADER_SIZE, HeaderFlags};

/// How to frame the events of a stream, according to its last format description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    checksum: ChecksumAlgorithm,
    number_of_event_types: u8,
}

impl Default for Framing {
    fn default() -> Self {
        Self::new()
    }
}

impl Framing {
    /// Before any format description: every type may come, none has a checksum.
    pub const fn new() -> Self {
        Framing { checksum: ChecksumAlgorithm::NONE, number_of_event_types: u8::MAX }
    }

    /// Returns the framing that a format description announces.
    pub fn of(description: &FormatDescription) -> Self {
        Framing {
            checksum: description.checksum_algorithm,
            // The array is cut from an event body and may have a wrong size; types are bytes.
            number_of_event_types: description.number_of_event_types(),
        }
    }

    /// Allows any type, followed by this checksum: for streams whose format description was read elsewhere.
    pub const fn with_checksum(checksum: ChecksumAlgorithm) -> Self {
        Framing { checksum, ..Framing::new() }
    }

    /// The framing inside a transaction payload: the stream's, without checksums.
    #[must_use]
    pub fn inside_payload(self) -> Self {
        Framing { checksum: ChecksumAlgorithm::NONE, ..self }
    }

    /// The checksum algorithm in force for the next event.
    pub fn checksum(self) -> ChecksumAlgorithm {
        self.checksum
    }

    /// The highest type code that the stream announced.
    pub fn number_of_event_types(self) -> u8 {
        self.number_of_event_types
    }

    /// Finds the event at the front of `buffer`. `None` if the buffer does not hold all of it yet.
    #[inline]
    pub fn next_frame<'a>(&self, buffer: &'a [u8]) -> Result<Option<UnverifiedFrame<'a>>> {
        if buffer.len() < HEADER_SIZE {
            return Ok(None);
        }
        let header = EventHeader::decode(buffer)?;
        self.check_header(&header)?;
        match buffer.split_at_checked(header.event_size as usize) {
            Some((bytes, _)) => {
                Ok(Some(UnverifiedFrame { header, bytes, checksum: self.checksum_of(&header) }))
            }
            None => Ok(None),
        }
    }

    /// Checks the facts that the header alone shows: size and type. After MariaDB's start of encryption nothing can be read, unless a
    /// server sent it: then it is ignorable, and what comes after it is decrypted.
    #[inline]
    pub fn check_header(&self, header: &EventHeader) -> Result<()> {
        let smallest = HEADER_SIZE + self.checksum_of(header).size();
        if (header.event_size as usize) < smallest {
            return Err(Error::invalid(
                "event header",
                "event size",
                header.event_size,
                if smallest == HEADER_SIZE {
                    "at least the 19 bytes of a header"
                } else {
                    "at least the 23 bytes of a header and a checksum"
                },
            ));
        }
        if header.event_size > EVENT_SIZE_MAX {
            return Err(Error::invalid("event header", "event size", header.event_size, "at most 1 GiB"));
        }
        if header.event_type.0 > self.number_of_event_types {
            return Err(Error::invalid(
                "event header",
                "event type",
                header.event_type.0,
                "a type that the format description announces",
            ));
        }
        if header.event_type == EventType::MARIADB_START_ENCRYPTION
            && !header.flags.contains(HeaderFlags::IGNORABLE)
        {
            return Err(Error::EncryptedByMariadb);
        }
        Ok(())
    }

    /// The algorithm that protects this event. A format description has a checksum even if the algorithm is
    /// NONE; [`UnverifiedFrame::verify`] resolves its frame.
    fn checksum_of(self, header: &EventHeader) -> ChecksumAlgorithm {
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            ChecksumAlgorithm::NONE
        } else {
            self.checksum
        }
    }
}

/// A whole event whose checksum has not been checked.
#[derive(Debug, Clone, Copy)]
pub struct UnverifiedFrame<'a> {
    header: EventHeader,
    bytes: &'a [u8],
    checksum: ChecksumAlgorithm,
}

impl<'a> UnverifiedFrame<'a> {
    /// The event's header.
    pub fn header(&self) -> &EventHeader {
        &self.header
    }

    /// Checks the checksum.
    #[inline]
    pub fn verify(self) -> Result<VerifiedFrame<'a>> {
        let frame = self.unchecked()?;
        let proof = match frame.stored_checksum() {
            Some(_) if is_sent_again_unsummed(&frame) => VerifiedChecksum::nothing_to_compare(),
            Some(stored) => VerifiedChecksum::compare(stored, frame.computed_checksum())?,
            None => VerifiedChecksum::nothing_to_compare(),
        };
        Ok(frame.proven(proof))
    }

    /// Takes the event as it is, for a caller that only reads it and was told not to check.
    #[inline]
    pub fn unchecked(self) -> Result<EventFrame<'a>> {
        let checksum_size = if self.header.event_type == EventType::FORMAT_DESCRIPTION {
            FormatDescription::checksum_size(self.bytes)?
        } else {
            self.checksum.size()
        };
        EventFrame::new(self.header, self.bytes, checksum_size)
    }
}

/// Whether an event is the format description of a log without checksums, as a server sends it where a client goes on within the file: it
/// sets the position and the time of its start to 0, and leaves the checksum of before behind the event. (Seen with MySQL 9.7.4 and MariaDB
/// 10.11.18; replicas don't compare it.)
fn is_sent_again_unsummed(frame: &EventFrame<'_>) -> bool {
    frame.event_type() == EventType::FORMAT_DESCRIPTION
        && frame.header().end_log_pos == 0
        && frame.body().last() == Some(&ChecksumAlgorithm::NONE.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::frame::encode_event;
    use crate::header::HeaderFlags;

    fn rotate(algorithm: ChecksumAlgorithm) -> Vec<u8> {
        let header = EventHeader {
            timestamp: 1,
            event_type: EventType::ROTATE,
            server_id: 1,
            event_size: 0,
            end_log_pos: 99,
            flags: HeaderFlags::default(),
        };
        encode_event(header, b"\x04\0\0\0\0\0\0\0binlog.000002", algorithm)
    }

    fn framing(checksum: ChecksumAlgorithm) -> Framing {
        Framing { checksum, number_of_event_types: 42 }
    }

    #[test]
    fn a_frame_is_found_only_when_whole() {
        let bytes = rotate(ChecksumAlgorithm::CRC32);
        let framing = framing(ChecksumAlgorithm::CRC32);
        for length in 0..bytes.len() {
            assert!(framing.next_frame(&bytes[..length]).unwrap().is_none());
        }
        let frame = framing.next_frame(&bytes).unwrap().unwrap().verify().unwrap();
        assert_eq!(frame.body(), b"\x04\0\0\0\0\0\0\0binlog.000002");
        assert_eq!(frame.bytes(), bytes);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = rotate(ChecksumAlgorithm::CRC32);
        let framing = framing(ChecksumAlgorithm::CRC32);
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let verified =
                framing.next_frame(&bad).and_then(|frame| frame.map(|frame| frame.verify()).transpose());
            assert!(!matches!(verified, Ok(Some(_))), "bit {bit}");
        }
    }

    #[test]
    fn sizes_below_the_header_and_above_1_gib_are_refused() {
        let mut bytes = rotate(ChecksumAlgorithm::NONE);
        bytes[9..13].copy_from_slice(&18u32.to_le_bytes());
        let error = framing(ChecksumAlgorithm::NONE).next_frame(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "event header: event size is 18, expected at least the 19 bytes of a header"
        );
        bytes[9..13].copy_from_slice(&(EVENT_SIZE_MAX + 1).to_le_bytes());
        assert!(framing(ChecksumAlgorithm::NONE).next_frame(&bytes).is_err());
    }

    #[test]
    fn types_beyond_the_announced_are_refused_and_unknown_ones_within_survive() {
        let mut bytes = rotate(ChecksumAlgorithm::NONE);
        bytes[4] = 43;
        assert!(framing(ChecksumAlgorithm::NONE).next_frame(&bytes).is_err());
        let framing = Framing { checksum: ChecksumAlgorithm::NONE, number_of_event_types: 200 };
        bytes[4] = 200;
        let frame = framing.next_frame(&bytes).unwrap().unwrap().verify().unwrap();
        assert_eq!(frame.event_type(), EventType(200));
        assert_eq!(frame.bytes(), bytes);
    }

    #[test]
    fn a_format_description_that_is_sent_again_without_checksums_has_a_stale_one() {
        for (algorithm, end_log_pos, is_taken) in [
            (ChecksumAlgorithm::NONE, 0, true),
            (ChecksumAlgorithm::NONE, 127, false),
            (ChecksumAlgorithm::CRC32, 0, false),
        ] {
            let mut server_version = [0; crate::event::SERVER_VERSION_SIZE];
            server_version[..5].copy_from_slice(b"9.7.4");
            let description = FormatDescription {
                binlog_version: 4,
                server_version,
                created: 7,
                header_length: 19,
                post_header_lengths: crate::event::POST_HEADER_LENGTHS.to_vec(),
                checksum_algorithm: algorithm,
            };
            let header = EventHeader {
                timestamp: 1,
                event_type: EventType::FORMAT_DESCRIPTION,
                server_id: 1,
                event_size: 0,
                end_log_pos,
                flags: HeaderFlags::default(),
            };
            let mut event = encode_event(header, &description.encode(), ChecksumAlgorithm::CRC32);
            let whole = Framing::new().next_frame(&event).unwrap().unwrap();
            assert!(whole.verify().is_ok());
            // The time of the server's start.
            event[HEADER_SIZE + 52..][..4].fill(0);
            let changed = Framing::new().next_frame(&event).unwrap().unwrap();
            assert_eq!(changed.verify().is_ok(), is_taken, "{algorithm:?} {end_log_pos}");
        }
    }
}
