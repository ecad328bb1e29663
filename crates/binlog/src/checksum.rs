//! The checksum behind each event: CRC-32 (zlib's polynomial, initial value 0) over the whole event
//! but its last four bytes, stored little-endian and counted in `event_size`.
//!
//! A format description carries the algorithm byte and a checksum of its own even where the
//! algorithm is NONE, and its checksum is computed with the in-use flag cleared, because closing
//! the file rewrites that one byte.

use std::fmt;

/// Bytes of a stored checksum.
pub const CHECKSUM_SIZE: usize = 4;

/// The algorithm byte of a format description. Unknown values survive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChecksumAlgorithm(pub u8);

impl ChecksumAlgorithm {
    /// No checksum behind events.
    pub const NONE: Self = ChecksumAlgorithm(0);
    /// CRC-32 behind every event.
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

/// The CRC-32 of an event's bytes, header included, checksum excluded.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The CRC-32 of an event that does not stand in memory whole.
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
