//! Every real log at hand: those of the repository, and those made on a server.

use crate::real_binlog::{RealBinlog, SampleCompression};
use crate::workload::{self, WorkloadSetting};
use crate::{Error, Result, corpus, mixed, tool};

/// The scale of the workloads in [`every_binlog`]: each file is below 1 MB.
pub const SMALL_SCALE: f64 = 0.01;

/// Every real file that a short test can go through: the files of the repository and, if a server is available, the [mix
/// of everything](mixed) and the five workloads at [`SMALL_SCALE`], plain and at levels 1, 3 and 19. Without a server it
/// says `SKIPPED` aloud about those and returns the rest.
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
    let levels = [1, 3, 19].map(|level| (WorkloadSetting::level(level), SampleCompression::Level(level)));
    for (setting, compression) in
        [(WorkloadSetting::plain(), SampleCompression::Off)].into_iter().chain(levels)
    {
        files.extend(workload::binlogs(SMALL_SCALE, &setting)?.into_iter().map(|binlog| RealBinlog {
            name: format!("workloads/{setting}/{}", binlog.workload.name()),
            path: binlog.path,
            compression,
            relay_log: false,
        }));
    }
    Ok(files)
}
