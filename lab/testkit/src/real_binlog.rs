//! A real binlog or relay log, and everything known about how it was made. Tests iterate over these.

use std::path::PathBuf;

/// How the transactions of a file were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleCompression {
    /// None of them compressed.
    Off,
    /// Every transaction that the server compresses, at this level.
    Level(u32),
    /// Some, at several levels.
    Mixed,
}

/// One real file.
#[derive(Clone, Debug)]
pub struct RealBinlog {
    /// Where it comes from, as in `level3/binlog.000002`.
    pub name: String,
    /// The file: to be read, not changed.
    pub path: PathBuf,
    /// How its transactions were written.
    pub compression: SampleCompression,
    /// Whether it is a relay log.
    pub relay_log: bool,
}

impl RealBinlog {
    /// All bytes of the log, in memory: none of these files is large.
    ///
    /// # Panics
    /// If it can't be read: the cache or the checkout is damaged.
    pub fn read(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap_or_else(|error| panic!("read {}: {error}", self.path.display()))
    }
}
