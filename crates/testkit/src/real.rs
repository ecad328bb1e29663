//! A real binlog or relay log and what is known of how it was made: what tests iterate over.

use std::path::PathBuf;

use crate::workload::{self, Setting};
use crate::{Error, Result, corpus, mixed, tool};

/// How the transactions of a file were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
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
    pub compression: Compression,
    /// Whether it is a relay log.
    pub relay_log: bool,
}

impl RealBinlog {
    /// All of it, in memory: none of these files is large.
    ///
    /// # Panics
    /// If it can't be read: the cache or the checkout is damaged.
    pub fn read(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap_or_else(|error| panic!("read {}: {error}", self.path.display()))
    }
}

/// The scale of the workloads in [`every_binlog`]: each file is below 1 MB.
pub const SMALL_SCALE: f64 = 0.01;

/// Every real file that a short test can go through: what the repository ships and, where a server can be had, the
/// [mix of everything](mixed) and the five workloads at [`SMALL_SCALE`], plain and at levels 1, 3 and 19.
/// Without a server it says `SKIPPED` aloud about those and gives the rest.
///
/// # Panics
/// If the server fails at making them, or if it can't be had where it must (`BINLOGZ_REQUIRE_SERVERS=1`).
pub fn every_binlog() -> Vec<RealBinlog> {
    let mut files = corpus::binlogs();
    match made_on_a_server() {
        Ok(made) => files.extend(made),
        Err(Error::Unavailable(reason)) => {
            tool::skip(&format!("only the shipped binlogs are used: {reason}"))
        }
        Err(error) => panic!("make binlogs: {error}"),
    }
    files
}

fn made_on_a_server() -> Result<Vec<RealBinlog>> {
    let mut files = mixed::binlogs()?;
    let levels = [1, 3, 19].map(|level| (Setting::level(level), Compression::Level(level)));
    for (setting, compression) in [(Setting::plain(), Compression::Off)].into_iter().chain(levels) {
        files.extend(workload::binlogs(SMALL_SCALE, &setting)?.into_iter().map(|binlog| RealBinlog {
            name: format!("workloads/{setting}/{}", binlog.workload.name()),
            path: binlog.path,
            compression,
            relay_log: false,
        }));
    }
    Ok(files)
}
