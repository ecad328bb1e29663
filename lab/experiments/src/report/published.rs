//! The figures of the public studies: one data file, with their known errors.

use std::sync::OnceLock;

use serde::Deserialize;

const DATA: &str = include_str!("published.toml");

/// All studies.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedStudies {
    /// The saving by workload.
    pub space: Study<Space>,
    /// Levels.
    pub levels: Study<LevelBytes>,
    /// Small and large updates.
    pub updates: Study<Update>,
    /// Inserts a second.
    pub insert: Study<Insert>,
    /// Updates of a large table, and a reader of the log.
    pub network: Study<Network>,
}

/// A study's table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study<R> {
    /// The measurement and the machine.
    pub source: String,
    /// Notes for readers.
    pub note: String,
    /// The figures.
    pub rows: Vec<R>,
}

/// Bytes of a workload.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// The workload.
    pub workload: String,
    /// Without compression.
    pub plain: u64,
    /// Compressed by the server.
    pub compressed: u64,
    /// Encrypted.
    pub encrypted: u64,
    /// Both.
    pub encrypted_and_compressed: u64,
    /// The plain file by zstd.
    pub zstd_file: u64,
    /// The setting whose figure has a slip.
    pub slip_of: Option<String>,
    /// The slip.
    pub slip: Option<String>,
}

/// Bytes at a level.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelBytes {
    /// The level.
    pub level: u8,
    /// The load, by the server.
    pub load: u64,
    /// OLTP, by the server.
    pub oltp: u64,
    /// The load's plain file by zstd.
    pub zstd_load: Option<u64>,
    /// OLTP's plain file by zstd.
    pub zstd_oltp: Option<u64>,
}

/// A run of updates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// Which.
    pub updates: String,
    /// Compression.
    pub setting: String,
    /// How long it took.
    pub seconds: f64,
    /// Bytes of the log.
    pub bytes: u64,
    /// The slip.
    pub slip: Option<String>,
}

/// Inserts a second by connections.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    /// Connections.
    pub threads: u32,
    /// With `innodb_flush_log_at_trx_commit=1`.
    pub policy_1: Option<f64>,
    /// With 2.
    pub policy_2: Option<f64>,
}

/// Row changes in a binary log file of 1 GiB.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Off or on.
    pub compression: String,
    /// Row changes.
    pub row_changes_per_file: u64,
}

/// The studies.
pub fn published() -> &'static PublishedStudies {
    static PUBLISHED: OnceLock<PublishedStudies> = OnceLock::new();
    PUBLISHED
        .get_or_init(|| toml::from_str(DATA).expect("the file that is built in is right: a test reads it"))
}

#[cfg(test)]
mod tests {
    use super::published;

    #[test]
    fn the_data_file_is_read() {
        let published = published();
        assert_eq!(published.space.rows.len(), 5);
        assert_eq!(published.space.rows.iter().filter(|row| row.slip.is_some()).count(), 2);
        assert_eq!(published.levels.rows.len(), 5);
        assert_eq!(published.updates.rows.len(), 5);
        assert_eq!(published.insert.rows.len(), 12);
    }
}
