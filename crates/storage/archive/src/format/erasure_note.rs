//! What a run of `archive erase` did to a log.

use binlogz_binlog::MAGIC;
use serde::{Deserialize, Serialize};

/// What one run erased from a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasureNote {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The table, as `database.table`; several have a comma and a space between them.
    pub table: String,
    /// How many row changes of the log it was done to.
    pub rows: u64,
    /// Up to this offset the log is byte for byte as before: positions after it are others.
    #[serde(default = "log_begin")]
    pub same_until: u64,
}

/// Where the first event of a log is: nothing more is known.
pub(crate) fn log_begin() -> u64 {
    MAGIC.len() as u64
}
