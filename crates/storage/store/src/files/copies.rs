//! Copies of bytes that recovery and repair are about to overwrite, kept beside the log file they come from.
//!
//! ```text
//! BASE.NNNNNN.cut-OFFSET       a tail cut at this offset that holds whole transactions
//! BASE.NNNNNN.torn-OFFSET      a tail without whole transactions; only the latest is kept
//! BASE.NNNNNN.damaged-OFFSET   the whole file, damaged at this offset, as it was before the repair
//! ```
//!
//! They get the log's mode, are synced before anything is overwritten, and are removed when their log is
//! purged.

use std::io;

use crate::files::log_file::LogFile;
use crate::files::names::{CUT, DAMAGED, LogNames, TORN};
use crate::storage::{NEW_SUFFIX, Storage};

/// Keeps a tail and returns the copy's name.
pub(crate) fn keep_tail(
    storage: &dyn Storage,
    names: &LogNames,
    log: &LogFile,
    from: u64,
    holds_any: bool,
) -> io::Result<String> {
    let present = storage.list()?;
    let name = free_name(&present, &format!("{}{}{from}", log.name, if holds_any { CUT } else { TORN }));
    copy(storage, &name, log, from)?;
    if !holds_any {
        for old in present.iter().filter(|old| names.log_of_copy_as(old, &[TORN]).is_some()) {
            storage.remove(old)?;
        }
    }
    storage.sync_names()?;
    Ok(name)
}

/// Keeps a damaged file and returns the copy's name. A copy that already exists is from an unfinished repair.
pub(crate) fn keep_damaged(storage: &dyn Storage, log: &LogFile, offset: u64) -> io::Result<String> {
    let name = format!("{}{DAMAGED}{offset}", log.name);
    if storage.list()?.contains(&name) {
        return Ok(name);
    }
    copy(storage, &name, log, 0)?;
    storage.sync_names()?;
    Ok(name)
}

/// The copies of a log file.
pub(crate) fn of<'a>(present: &'a [String], names: &LogNames, log: &str) -> Vec<&'a String> {
    let is_its = |name: &&String| names.log_of_copy(name) == Some(log);
    present.iter().filter(is_its).collect()
}

fn free_name(present: &[String], name: &str) -> String {
    let mut free = name.to_owned();
    for number in 2.. {
        if !present.contains(&free) {
            break;
        }
        free = format!("{name}-{number}");
    }
    free
}

/// The copy gets its name only once it is whole.
fn copy(storage: &dyn Storage, name: &str, log: &LogFile, from: u64) -> io::Result<()> {
    let half = format!("{name}{NEW_SUFFIX}");
    if storage.list()?.contains(&half) {
        storage.remove(&half)?;
    }
    let file = storage.open(&half, true)?;
    let copied = log.copy_from(from, file.as_ref()).and_then(|()| storage.rename(&half, name));
    if copied.is_err() {
        // Half a copy is useless. If it can't be removed, it does no harm.
        let _ = storage.remove(&half);
    }
    copied
}
