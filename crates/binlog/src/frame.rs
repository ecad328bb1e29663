//! Finds one whole event in a buffer and checks its checksum. Does not interpret the body; see
//! [`crate::event`].
//!
//! ```text
//! header (19) | body (event_size - 19 - checksum) | checksum (4, or none)
//! ```
//!
//! A stream's [`Framing`] knows which checksum algorithm is in force: the one of the last format
//! description. It hands out [`UnverifiedFrame`]s. [`UnverifiedFrame::verify`] compares the checksum and gives a
//! [`VerifiedFrame`], of which new events may be made; [`UnverifiedFrame::unchecked`] does not, and gives an
//! [`EventFrame`], which can only be read. A verified frame is one of these too.

use std::ops::Deref;

use crate::checksum::{CHECKSUM_SIZE, ChecksumAlgorithm, StoredChecksum, Verified, crc32};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::FormatDescription;
use crate::event_type::EventType;
use crate::header::{END_LOG_POS_OFFSET, EventHeader, FLAGS_OFFSET, HEADER_SIZE, HeaderFlags};
use crate::{EVENT_SIZE_MAX, checksum};

/// How the events of a stream are to be framed, as its last format description says.
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

    /// As a format description says.
    pub fn of(description: &FormatDescription) -> Self {
        Framing {
            checksum: description.checksum_algorithm,
            // The array is cut from an event body and may lie about its size; types are bytes.
            number_of_event_types: description.number_of_event_types(),
        }
    }

    /// Any type may come, with this checksum behind it: for streams whose format description was
    /// looked at elsewhere.
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

    /// Finds the event at the front of `buffer`. `None`: the buffer does not hold it whole yet.
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

    /// Checks what a header alone can show: its size and its type.
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
        Ok(())
    }

    /// The algorithm that protects this event. A format description has a checksum even where
    /// the algorithm is NONE; its frame is resolved by [`UnverifiedFrame::verify`].
    fn checksum_of(self, header: &EventHeader) -> ChecksumAlgorithm {
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            ChecksumAlgorithm::NONE
        } else {
            self.checksum
        }
    }
}

/// A whole event whose checksum has not been looked at.
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
            Some(stored) => Verified::compare(stored, frame.computed_checksum())?,
            None => Verified::nothing_to_compare(),
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

/// A whole event whose checksum was compared, or that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedFrame<'a> {
    frame: EventFrame<'a>,
    proof: Verified,
}

impl<'a> VerifiedFrame<'a> {
    /// The event, to be read.
    #[inline]
    pub fn frame(self) -> EventFrame<'a> {
        self.frame
    }

    /// The proof that code needs to make new events from this one.
    #[inline]
    pub fn proof(self) -> Verified {
        self.proof
    }
}

impl<'a> Deref for VerifiedFrame<'a> {
    type Target = EventFrame<'a>;

    #[inline]
    fn deref(&self) -> &EventFrame<'a> {
        &self.frame
    }
}

/// A whole event: its header, its bytes, where its body ends. The body is not interpreted, and the checksum may be
/// wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFrame<'a> {
    header: EventHeader,
    bytes: &'a [u8],
    checksum_size: usize,
}

impl<'a> EventFrame<'a> {
    /// An event that came apart and was put together again: header and body, no checksum. The
    /// header may still count one.
    ///
    /// # Errors
    ///
    /// Fewer bytes than a header has.
    pub fn without_checksum_behind(bytes: &'a [u8]) -> Result<Self> {
        EventFrame::new(EventHeader::decode(bytes)?, bytes, 0)
    }

    fn new(header: EventHeader, bytes: &'a [u8], checksum_size: usize) -> Result<Self> {
        if bytes.len() < HEADER_SIZE + checksum_size {
            return Err(Error::Short {
                what: "event",
                field: "checksum",
                needed: checksum_size as u64,
                left: (bytes.len().saturating_sub(HEADER_SIZE)) as u64,
            });
        }
        Ok(EventFrame { header, bytes, checksum_size })
    }

    /// An event that was framed before, of which only the bytes were kept.
    #[inline]
    pub fn from_bytes(bytes: &'a [u8], checksum_size: usize) -> Result<Self> {
        EventFrame::new(EventHeader::decode(bytes)?, bytes, checksum_size)
    }

    /// The same for one that was verified when it was framed.
    #[inline]
    pub fn proven(self, proof: Verified) -> VerifiedFrame<'a> {
        VerifiedFrame { frame: self, proof }
    }

    /// The event's header.
    #[inline]
    pub fn header(&self) -> &EventHeader {
        &self.header
    }

    /// What the body holds.
    #[inline]
    pub fn event_type(&self) -> EventType {
        self.header.event_type
    }

    /// The whole event as it stands in the stream.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What stands between header and checksum: post-header and body.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_SIZE..self.bytes.len() - self.checksum_size).unwrap_or_default()
    }

    /// Header and body: what the checksum covers.
    #[inline]
    pub fn without_checksum(&self) -> &'a [u8] {
        self.bytes.get(..self.bytes.len() - self.checksum_size).unwrap_or_default()
    }

    /// Bytes of the checksum behind the body: 4 or 0.
    pub fn checksum_size(&self) -> usize {
        self.checksum_size
    }

    /// The checksum behind the body, where the stream has checksums.
    #[inline]
    pub fn stored_checksum(&self) -> Option<u32> {
        if self.checksum_size == 0 {
            return None;
        }
        self.bytes.last_chunk::<CHECKSUM_SIZE>().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The checksum that the bytes give.
    pub fn computed_checksum(&self) -> u32 {
        let bytes = self.without_checksum();
        match self.header.event_type {
            EventType::FORMAT_DESCRIPTION if self.header.flags.contains(HeaderFlags::IN_USE) => {
                crc32_without_in_use(bytes)
            }
            _ => crc32(bytes),
        }
    }
}

/// The checksum of a format description whose file is in use: as if it were not.
fn crc32_without_in_use(bytes: &[u8]) -> u32 {
    let mut crc = checksum::Crc32::new();
    let (front, rest) = bytes.split_at_checked(FLAGS_OFFSET).unwrap_or((bytes, &[]));
    crc.update(front);
    if let Some((low, rest)) = rest.split_first() {
        crc.update(&[low & !(HeaderFlags::IN_USE.0 as u8)]);
        crc.update(rest);
    }
    crc.finish()
}

/// Moves the event in `event` to another position and derives its checksum from the old one. A damaged event still has
/// a wrong checksum afterwards. See [`StoredChecksum::moved`].
///
/// # Errors
///
/// Bytes that are not one whole event.
#[inline]
pub fn set_end_log_pos(event: &mut [u8], end_log_pos: u32, algorithm: ChecksumAlgorithm) -> Result<()> {
    let header = EventHeader::decode(event)?;
    let size = event.len();
    if size != header.event_size as usize || size < HEADER_SIZE + algorithm.size() {
        return Err(Error::Truncated { needed: u64::from(header.event_size), left: size as u64 });
    }
    if let Some(place) = event.get_mut(END_LOG_POS_OFFSET..END_LOG_POS_OFFSET + 4) {
        place.copy_from_slice(&end_log_pos.to_le_bytes());
    }
    if let Some(checksum) = event.last_chunk_mut::<CHECKSUM_SIZE>().filter(|_| algorithm.size() > 0) {
        let stored = StoredChecksum(Some(u32::from_le_bytes(*checksum)));
        let moved = stored.moved(&header, end_log_pos).value();
        *checksum = moved.unwrap_or_default().to_le_bytes();
    }
    Ok(())
}

/// Builds a whole event: header, body, checksum where `algorithm` has one. `event_size` of the
/// header given is not looked at but computed.
///
/// The checksum is computed: what header and body were taken from must have been verified ([`VerifiedFrame`]).
pub fn encode_event(header: EventHeader, body: &[u8], algorithm: ChecksumAlgorithm) -> Vec<u8> {
    let event_size = HEADER_SIZE + body.len() + algorithm.size();
    let header = EventHeader { event_size: event_size as u32, ..header };
    let mut bytes = Vec::with_capacity(event_size);
    bytes.extend_from_slice(&header.encode());
    bytes.extend_from_slice(body);
    if algorithm.size() > 0 {
        let crc = if header.event_type == EventType::FORMAT_DESCRIPTION {
            crc32_without_in_use(&bytes)
        } else {
            crc32(&bytes)
        };
        bytes.extend_from_slice(&crc.to_le_bytes());
    }
    bytes
}

/// Decodes a body with `read` and insists that it is read to its last byte.
#[allow(dead_code)] // taken by the event modules
pub(crate) fn decode_whole<'a, T>(
    body: &'a [u8],
    what: &'static str,
    read: impl FnOnce(&mut Cursor<'a>) -> Result<T>,
) -> Result<T> {
    let mut cursor = Cursor::new(body, what);
    let value = read(&mut cursor)?;
    cursor.finish()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
