//! The checksum after each event: CRC-32 (zlib's polynomial, initial value 0) over the whole event except its
//! last four bytes, stored little-endian and counted in `event_size`.
//!
//! A format description carries the algorithm byte and a checksum of its own even if the algorithm is NONE. This checksum
//! is computed with the in-use flag cleared, because closing the file rewrites that one byte.
//!
//! We never compute a checksum over bytes unless we compared their old one in the same pass; otherwise
//! damaged bytes would get a valid checksum. Two types enforce this rule:
//!
//! ```text
//! Verified         the event's checksum was compared: new events may be made of its bytes
//! StoredChecksum   it was not: an event that moves gets a checksum derived from the old one, wrong wherever that was
//! ```

use std::fmt;

use crate::error::{Error, Result};
use crate::header::{END_LOG_POS_OFFSET, EventHeader};

/// Bytes of a stored checksum.
pub const CHECKSUM_SIZE: usize = 4;

/// The algorithm byte of a format description. Unknown values survive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChecksumAlgorithm(pub u8);

impl ChecksumAlgorithm {
    /// No checksum after events.
    pub const NONE: Self = ChecksumAlgorithm(0);
    /// CRC-32 after every event.
    pub const CRC32: Self = ChecksumAlgorithm(1);
    /// The writer did not know checksums (before 5.6.1): neither algorithm byte nor checksum.
    pub const UNDEFINED: Self = ChecksumAlgorithm(255);

    /// Bytes that this algorithm adds to every event.
    pub fn size(self) -> usize {
        if self == Self::CRC32 { CHECKSUM_SIZE } else { 0 }
    }
}

impl fmt::Debug for ChecksumAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NONE => f.write_str("NONE"),
            Self::CRC32 => f.write_str("CRC32"),
            Self::UNDEFINED => f.write_str("UNDEFINED"),
            ChecksumAlgorithm(other) => write!(f, "{other:#04x}"),
        }
    }
}

/// Proof that the event's checksum was compared in this pass, or that it has none. Functions that make new
/// events from old bytes require it. Apart from [`VerifiedChecksum::made_here`], only this crate's code that compares
/// checksums creates one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedChecksum(());

impl VerifiedChecksum {
    /// For an event that this process made itself, not from another event's bytes.
    pub const fn made_here() -> Self {
        VerifiedChecksum(())
    }

    /// Compares an event's checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`].
    #[inline]
    pub(crate) fn compare(stored: u32, computed: u32) -> Result<Self> {
        if stored == computed { Ok(VerifiedChecksum(())) } else { Err(Error::Checksum { stored, computed }) }
    }

    /// An event without a checksum: there is nothing to compare.
    #[inline]
    pub(crate) const fn nothing_to_compare() -> Self {
        VerifiedChecksum(())
    }
}

/// An event's stored checksum, not yet compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChecksum(pub(crate) Option<u32>);

impl StoredChecksum {
    /// The checksum as a number; `None` if the event has none.
    pub fn value(self) -> Option<u32> {
        self.0
    }

    /// The checksum of the same event at another position. It is derived from the old one, not from the event's
    /// bytes: if the event is damaged, the checksum shows it as before.
    ///
    /// CRC-32 is linear in the bits that change. The bits of `end_log_pos` are followed by all the event's
    /// bytes after that field, up to the checksum.
    #[inline]
    #[must_use]
    pub fn moved(self, header: &EventHeader, end_log_pos: u32) -> Self {
        let StoredChecksum(Some(old)) = self else { return self };
        let behind = u64::from(header.event_size).saturating_sub((END_LOG_POS_OFFSET + CHECKSUM_SIZE) as u64);
        StoredChecksum(Some(old ^ append_zeros(header.end_log_pos ^ end_log_pos, behind)))
    }
}

/// Up to this many zero bytes are checksummed directly, which is faster than multiplying.
const ZEROS: [u8; 1024] = [0; 1024];

/// The CRC-32 state, without the inversions at beginning and end, after this many zero bytes.
fn append_zeros(state: u32, count: u64) -> u32 {
    match usize::try_from(count).ok().and_then(|count| ZEROS.get(..count)) {
        Some(zeros) => {
            let mut crc = crc32fast::Hasher::new_with_initial(!state);
            crc.update(zeros);
            !crc.finalize()
        }
        None => multiply(x_to_the_8(count), state),
    }
}

/// x^(8 * count) modulo CRC-32's polynomial.
fn x_to_the_8(count: u64) -> u32 {
    let mut product = ONE;
    for (powers, byte) in POWERS.iter().zip(count.to_le_bytes()).filter(|(_, byte)| *byte > 0) {
        let power = powers.get(usize::from(byte)).copied().unwrap_or(ONE);
        product = if product == ONE { power } else { multiply(product, power) };
    }
    product
}

/// CRC-32's polynomial without its highest power; the lowest power is in the highest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// x^0.
const ONE: u32 = 1 << 31;

/// x^(8 * n * 256^k) at `[k][n]`: events have at most 1 GiB.
static POWERS: [[u32; 256]; 4] = powers();

#[allow(clippy::indexing_slicing)] // evaluated by the compiler
const fn powers() -> [[u32; 256]; 4] {
    let mut powers = [[ONE; 256]; 4];
    // x^8
    let mut step = ONE >> 8;
    let mut k = 0;
    while k < 4 {
        let mut n = 1;
        while n < 256 {
            powers[k][n] = multiply(powers[k][n - 1], step);
            n += 1;
        }
        step = multiply(powers[k][255], step);
        k += 1;
    }
    powers
}

/// The product of two polynomials modulo CRC-32's.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        product ^= b & ((a >> bit) & 1).wrapping_neg();
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
    }
    product
}

/// The CRC-32 of an event's bytes, header included, checksum excluded.
///
/// To give an event a new checksum, the old one must have been compared in the same pass: see [`VerifiedChecksum`].
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The CRC-32 of an event that is not in memory as a whole.
#[derive(Debug, Default, Clone)]
pub struct Crc32(crc32fast::Hasher);

impl Crc32 {
    /// Starts a checksum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes taken.
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::HeaderFlags;
    use crate::{EventType, frame::encode_event};

    #[test]
    fn a_moved_event_has_the_checksum_that_its_bytes_give() {
        let sizes = (0..600).chain(1000..1040).chain([8191, 65_535, 65_536, 70_001, 1 << 20, (1 << 24) + 7]);
        for size in sizes {
            let body: Vec<u8> = (0..size as u32).map(|at| (at * 7) as u8).collect();
            let header = EventHeader {
                timestamp: 1,
                event_type: EventType::WRITE_ROWS,
                server_id: 2,
                event_size: (19 + size + 4) as u32,
                end_log_pos: 0x1234_5678 ^ size as u32,
                flags: HeaderFlags::default(),
            };
            let checksum = |end_log_pos| {
                let event =
                    encode_event(EventHeader { end_log_pos, ..header }, &body, ChecksumAlgorithm::CRC32);
                StoredChecksum(event.last_chunk().map(|bytes| u32::from_le_bytes(*bytes)))
            };
            let old = checksum(header.end_log_pos);
            for end_log_pos in [0, 1, header.end_log_pos, header.end_log_pos + 1, u32::MAX] {
                assert_eq!(old.moved(&header, end_log_pos), checksum(end_log_pos), "{size} bytes");
            }
            // Wrong before, wrong by the same bits after.
            let wrong = StoredChecksum(old.0.map(|old| old ^ 0x40));
            assert_eq!(wrong.moved(&header, 9).0.unwrap() ^ checksum(9).0.unwrap(), 0x40);
        }
        assert_eq!(StoredChecksum(None).value(), None);
    }
}
