//! Whether there is room for the data that a run writes, if the server is on this machine: checked before anything is
//! changed, and watched under load.
//!
//! A server whose binary log finds its disk full does not fail: it waits until there is room, and ending that
//! wait makes it abort (binlog_error_action). So we end the load while there still is some.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{fs, io, thread};

use rustix::fs::statvfs;

use super::plan::CostEstimate;
use crate::error::{Error, Result};
use crate::safety::guard::Allow;
use crate::server::session::{ServerSession, column};
use crate::server::tested::TestedServer;

/// Bytes that a server writes in any case: redo log, temporary tables, its first binary log.
const BESIDE: f64 = 300e6;

/// The room left for the server to finish and for restoring it: this much, or this part of a small disk.
const LEFT: f64 = 64e6;
const LEFT_PART: f64 = 1.0 / 8.0;
/// The interval between checks: a server does not write that much in it.
const LOOK: Duration = Duration::from_millis(50);

/// A folder of the server's, and the bytes that the run puts there at once.
#[derive(Debug)]
struct Need {
    folder: PathBuf,
    bytes: f64,
}

/// Refuses a run for which there is too little room, unless that is allowed by name. A disk that we can't see is not refused.
pub(crate) fn check(
    session: &mut ServerSession,
    server: &TestedServer,
    estimates: &[CostEstimate],
    allowed: &[Allow],
) -> Result<()> {
    if allowed.contains(&Allow::LittleSpace) {
        return Ok(());
    }
    let Some([data, log]) = folders(session, server)? else { return Ok(()) };
    let needs = needs(estimates, server.is_private(), &data, &log);
    let too_small: Vec<String> = needs.iter().filter_map(lacks).collect();
    if too_small.is_empty() {
        return Ok(());
    }
    let allow = Allow::LittleSpace.name();
    Err(Error::Refused(format!("{} (--allow {allow})", too_small.join("; "))))
}

/// Where the server keeps its tables and its binary log; `None`: not on this machine.
pub(crate) fn folders(session: &mut ServerSession, server: &TestedServer) -> Result<Option<[PathBuf; 2]>> {
    if server.pid().is_none() {
        return Ok(None);
    }
    let rows = session.rows("SELECT @@GLOBAL.datadir, @@GLOBAL.log_bin_basename")?;
    let Some(row) = rows.first() else { return Ok(None) };
    let data = Path::new(column(row, 0));
    let log = Path::new(column(row, 1));
    Ok(log.parent().map(|log| [data.to_owned(), log.to_owned()]))
}

/// Does some work and watches the folders meanwhile: calls `too_full` once if one is almost full.
pub(crate) fn watched<T>(
    folders: &[PathBuf],
    too_full: impl FnOnce(String) + Send,
    work: impl FnOnce() -> T,
) -> T {
    thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if let Some(reason) = folders.iter().find_map(|folder| nearly_full(folder)) {
                    return too_full(reason);
                }
            }
        });
        let done = work();
        drop(working);
        done
    })
}

/// The message for an almost full folder.
fn nearly_full(folder: &Path) -> Option<String> {
    let system = statvfs(folder).ok()?;
    let free = system.f_bavail as f64 * system.f_frsize as f64;
    let all = system.f_blocks as f64 * system.f_frsize as f64;
    (free < LEFT.min(all * LEFT_PART)).then(|| {
        format!(
            "the disk below the server is nearly full: {:.0} MB are free in {}; the load was ended before it was",
            (free / 1e6).ceil(),
            folder.display()
        )
    })
}

/// The required space, for each file system. A private server's log is purged after each cell; a user's is
/// the user's.
fn needs(estimates: &[CostEstimate], purged: bool, data: &Path, log: &Path) -> Vec<Need> {
    let most = |of: fn(&CostEstimate) -> f64| estimates.iter().map(of).fold(0.0, f64::max);
    let log_bytes = match purged {
        true => most(|estimate| estimate.log_bytes),
        false => estimates.iter().map(|estimate| estimate.log_bytes).sum(),
    };
    let data_bytes = most(|estimate| estimate.data_bytes) + BESIDE;
    let device = |path: &Path| fs::metadata(path).map(|folder| folder.dev());
    match (device(data), device(log)) {
        (Ok(one), Ok(other)) if one != other => vec![
            Need { folder: data.to_owned(), bytes: data_bytes },
            Need { folder: log.to_owned(), bytes: log_bytes },
        ],
        _ => vec![Need { folder: data.to_owned(), bytes: data_bytes + log_bytes }],
    }
}

/// The missing space, as text.
fn lacks(need: &Need) -> Option<String> {
    let free = free(&need.folder).ok()?;
    let megabytes = |bytes: f64| (bytes / 1e6).ceil();
    (free < need.bytes).then(|| {
        format!(
            "the run may write {} MB to {}, where {} MB are free",
            megabytes(need.bytes),
            need.folder.display(),
            megabytes(free),
        )
    })
}

/// Free bytes for ordinary users.
fn free(folder: &Path) -> io::Result<f64> {
    let system = statvfs(folder)?;
    Ok(system.f_bavail as f64 * system.f_frsize as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_purged_is_needed_once() {
        let cell = CostEstimate { seconds: 1.0, log_bytes: 5e6, data_bytes: 1e6 };
        let here = Path::new("/");
        for (purged, bytes) in [(true, 6e6), (false, 11e6)] {
            let needs = needs(&[cell, cell], purged, here, here);
            assert_eq!(needs.len(), 1);
            assert_eq!(needs[0].bytes, bytes + BESIDE);
        }
    }

    #[test]
    fn what_is_too_much_is_told_with_both_figures() {
        let need = |bytes| Need { folder: PathBuf::from("/"), bytes };
        assert_eq!(lacks(&need(0.0)), None);
        let said = lacks(&need(1e24)).unwrap();
        assert!(said.starts_with("the run may write 1000000000000000000 MB to /, where "), "{said}");
        // A folder that we can't see is not a reason to refuse.
        assert_eq!(lacks(&Need { folder: "/nowhere".into(), bytes: 1e24 }), None);
    }
}
