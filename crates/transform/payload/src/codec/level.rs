//! The compression level, with the server's range and default.

use std::fmt;
use std::str::FromStr;

/// A zstd level, 1 to 22, as `binlog_transaction_compression_level_zstd` allows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CompressionLevel(u8);

impl CompressionLevel {
    /// The fastest level.
    pub const MIN: Self = CompressionLevel(1);
    /// The level with the smallest result.
    pub const MAX: Self = CompressionLevel(22);
    /// The server's default.
    pub const DEFAULT: Self = CompressionLevel(3);

    /// The level, if it is in range.
    pub fn new(level: i64) -> Option<Self> {
        u8::try_from(level).ok().map(CompressionLevel).filter(|level| (Self::MIN..=Self::MAX).contains(level))
    }

    /// The nearest level in range: 0 → 1, 23 → 22, as the server clamps.
    pub fn clamped(level: i64) -> Self {
        CompressionLevel(level.clamp(i64::from(Self::MIN.0), i64::from(Self::MAX.0)) as u8)
    }

    /// The level as a number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl Default for CompressionLevel {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for CompressionLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CompressionLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<i64>()
            .ok()
            .and_then(CompressionLevel::new)
            .ok_or_else(|| format!("compression level is {text:?}, expected 1 to 22"))
    }
}
