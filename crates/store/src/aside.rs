//! Copies of what recovery and repair are about to overwrite, beside the log file that it is from.
//!
//! ```text
//! BASE.NNNNNN.cut-OFFSET       a tail with whole transactions in it that was cut there
//! BASE.NNNNNN.torn-OFFSET      a tail without any; only the last one is kept
//! BASE.NNNNNN.damaged-OFFSET   the whole file, damaged there, as it was before the repair
//! ```
//!
//! They are made with the log's mode, synced before anything is overwritten, and go when their log is purged.

use std::io;

use crate::file::LogFile;
use crate::log_name::LogNames;
use crate::storage::{NEW_SUFFIX, Storage};

const CUT: &str = ".cut-";
const TORN: &str = ".torn-";
const DAMAGED: &str = ".damaged-";

/// Keeps a tail; the copy's name.
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
        for old in present.iter().filter(|old| log_of(names, old, &[TORN]).is_some()) {
            storage.remove(old)?;
        }
    }
    storage.sync_names()?;
    Ok(name)
}

/// Keeps a damaged file; the copy's name. One that is there already is from a repair that did not end.
pub(crate) fn keep_damaged(storage: &dyn Storage, log: &LogFile, offset: u64) -> io::Result<String> {
    let name = format!("{}{DAMAGED}{offset}", log.name);
    if storage.list()?.contains(&name) {
        return Ok(name);
    }
    copy(storage, &name, log, 0)?;
    storage.sync_names()?;
    Ok(name)
}

/// The copies that belong to a log file.
pub(crate) fn of<'a>(present: &'a [String], names: &LogNames, log: &str) -> Vec<&'a String> {
    let is_its = |name: &&String| log_of_copy(names, name) == Some(log);
    present.iter().filter(is_its).collect()
}

/// The log file that this is a copy of, if it is one.
pub(crate) fn log_of_copy<'a>(names: &LogNames, name: &'a str) -> Option<&'a str> {
    log_of(names, name, &[CUT, TORN, DAMAGED])
}

fn log_of<'a>(names: &LogNames, name: &'a str, kinds: &[&str]) -> Option<&'a str> {
    let (log, _) = kinds.iter().find_map(|kind| name.split_once(kind))?;
    names.number(log).map(|_| log)
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

/// The copy has its name when it is whole.
fn copy(storage: &dyn Storage, name: &str, log: &LogFile, from: u64) -> io::Result<()> {
    let half = format!("{name}{NEW_SUFFIX}");
    if storage.list()?.contains(&half) {
        storage.remove(&half)?;
    }
    let file = storage.open(&half, true)?;
    let copied = log.copy_from(from, file.as_ref()).and_then(|()| storage.rename(&half, name));
    if copied.is_err() {
        // Half a copy is of no use; where it can't be removed, it is in nobody's way.
        let _ = storage.remove(&half);
    }
    copied
}
