//! A whole event, and its checksum: [`crate::framing`] finds it. The body is not interpreted; see [`crate::event`].
//!
//! ```text
//! header (19) | body (event_size - 19 - checksum) | checksum (4, or none)
//! ```
//!
//! An [`EventFrame`] can only be read. A [`VerifiedFrame`], whose checksum was compared, is one of these too, and new
//! events may be made from it.

use std::ops::Deref;

use crate::checksum;
use crate::checksum::{CHECKSUM_SIZE, ChecksumAlgorithm, StoredChecksum, VerifiedChecksum, crc32};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event_type::EventType;
use crate::header::{END_LOG_POS_OFFSET, EventHeader, FLAGS_OFFSET, HEADER_SIZE, HeaderFlags};

/// A whole event whose checksum was compared, or that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedFrame<'a> {
    frame: EventFrame<'a>,
    proof: VerifiedChecksum,
}

impl<'a> VerifiedFrame<'a> {
    /// The event, to be read.
    #[inline]
    pub fn frame(self) -> EventFrame<'a> {
        self.frame
    }

    /// The proof that code needs to make new events from this one.
    #[inline]
    pub fn proof(self) -> VerifiedChecksum {
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
    /// An event reassembled from header and body, without checksum. The header may still count one.
    ///
    /// # Errors
    ///
    /// Fewer bytes than a header has.
    pub fn without_checksum_behind(bytes: &'a [u8]) -> Result<Self> {
        EventFrame::new(EventHeader::decode(bytes)?, bytes, 0)
    }

    pub(crate) fn new(header: EventHeader, bytes: &'a [u8], checksum_size: usize) -> Result<Self> {
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

    /// An event that was framed earlier; only its bytes were kept.
    #[inline]
    pub fn from_bytes(bytes: &'a [u8], checksum_size: usize) -> Result<Self> {
        EventFrame::new(EventHeader::decode(bytes)?, bytes, checksum_size)
    }

    /// Turns the event into a verified one. `proof` is from when it was framed, so the checksum is not compared again.
    #[inline]
    pub fn proven(self, proof: VerifiedChecksum) -> VerifiedFrame<'a> {
        VerifiedFrame { frame: self, proof }
    }

    /// The event's header.
    #[inline]
    pub fn header(&self) -> &EventHeader {
        &self.header
    }

    /// The event's type, which tells the meaning of the body.
    #[inline]
    pub fn event_type(&self) -> EventType {
        self.header.event_type
    }

    /// The whole event as it is in the stream.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes between header and checksum: post-header and body.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_SIZE..self.bytes.len() - self.checksum_size).unwrap_or_default()
    }

    /// Header and body: what the checksum covers.
    #[inline]
    pub fn without_checksum(&self) -> &'a [u8] {
        self.bytes.get(..self.bytes.len() - self.checksum_size).unwrap_or_default()
    }

    /// Bytes of the checksum after the body: 4 or 0.
    pub fn checksum_size(&self) -> usize {
        self.checksum_size
    }

    /// The checksum after the body, where the stream has checksums.
    #[inline]
    pub fn stored_checksum(&self) -> Option<u32> {
        if self.checksum_size == 0 {
            return None;
        }
        self.bytes.last_chunk::<CHECKSUM_SIZE>().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The checksum computed from the bytes.
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

/// The checksum of a format description, computed as if its file were not in use.
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

/// Builds a whole event: header, body, and a checksum if `algorithm` has one. `event_size` in the given
/// header is ignored and computed.
///
/// The checksum is computed, so the source of header and body must have been verified ([`VerifiedFrame`]).
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
