//! The manifest of a run: what it and all runs before it exported, a JSON file for each, `_binlogz/00000042.json`. The last one
//! tells what is there.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of the manifest.
pub(super) const FORMAT: u32 = 1;

/// How a data set is divided into folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Partition {
    /// By the day of the commit, in UTC.
    #[default]
    Day,
    /// By its month.
    Month,
    /// Not at all.
    None,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Partition::Day => "day",
            Partition::Month => "month",
            Partition::None => "none",
        })
    }
}

/// A run's manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// The number of the run; runs are numbered from 1.
    pub(super) run: u64,
    pub(super) partition: Partition,
    /// The chosen tables; none: all.
    pub(super) tables: Vec<[String; 2]>,
    /// The transactions of all runs.
    pub(super) gtids: String,
    /// Transactions without GTID: by log, where the last one begins that was exported.
    pub(super) logs: BTreeMap<String, u64>,
    /// Transactions and row changes of this run.
    pub(super) transactions: u64,
    pub(super) rows: u64,
    /// The files of this run.
    pub(super) files: Vec<Written>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// Where it is in the folder.
    pub(super) path: String,
    /// Its name before it got there.
    pub(super) staged: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}
