//! Which logs are read: those that can have transactions of the window.

use std::fs;
use std::path::Path;

use binlogz_encryption::Keyring;
use binlogz_triage::TriageWindow;

use crate::cmd::row_changes::RecoverLog;
use crate::failure::{CommandFailure, INDEX, Result};
use crate::log_path::LogPath;

/// Bytes of an index that are read: thousands of logs.
const INDEX_SIZE_MAX: u64 = 16 << 20;

/// These logs, with the logs that a folder's index lists instead of the folder: a relay's, or a server's data directory.
pub(super) fn with_folders(files: &[LogPath]) -> Result<Vec<LogPath>> {
    let mut all = Vec::new();
    for file in files {
        match file {
            LogPath::File(path) if path.is_dir() => match index_of(path)? {
                Some(logs) => all.extend(logs),
                // An archive, or no place of logs: that is told where it is opened.
                None => all.push(file.clone()),
            },
            LogPath::File(_) | LogPath::Stdin => all.push(file.clone()),
        }
    }
    Ok(all)
}

/// The logs of the one index in a folder.
fn index_of(folder: &Path) -> Result<Option<Vec<LogPath>>> {
    let failure = |error: std::io::Error| CommandFailure::of(&folder.display(), error);
    let mut indexes = Vec::new();
    for entry in fs::read_dir(folder).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let name = entry.file_name();
        let is_index = name.to_str().is_some_and(|name| name.ends_with(INDEX) && !name.contains("relay-bin"));
        if is_index && entry.metadata().map_err(failure)?.len() <= INDEX_SIZE_MAX {
            indexes.push(entry.path());
        }
    }
    match &*indexes {
        [] => Ok(None),
        [index] => {
            let text =
                fs::read_to_string(index).map_err(|error| CommandFailure::of(&index.display(), error))?;
            let lines = text.lines().filter(|line| !line.is_empty());
            Ok(Some(lines.map(|line| LogPath::File(folder.join(line.trim_start_matches("./")))).collect()))
        }
        [first, second, ..] => Err(CommandFailure::of(
            &folder.display(),
            format_args!(
                "has {} and {}, expected the index of one server's logs; name the logs themselves",
                first.display(),
                second.display()
            ),
        )),
    }
}

/// Drops the logs that ended before the window began: each ended where the next one began.
pub(super) fn needed(
    mut logs: Vec<RecoverLog>,
    window: TriageWindow,
    keyring: Option<&Keyring>,
) -> Result<Vec<RecoverLog>> {
    let mut begin = match window {
        TriageWindow::Last(_) => None,
        TriageWindow::Between(start, _) => Some(start / 1_000_000),
    };
    for place in (1..logs.len()).rev() {
        let begun = logs.get(place).map(|log| log.begun(keyring)).transpose()?.flatten();
        // What can be read only once is read whole, and so is all before it.
        let Some(begun) = begun.filter(|begun| *begun > 0) else { return Ok(logs) };
        let begin = *begin.get_or_insert(match window {
            // The last log has transactions after its begin, if any.
            TriageWindow::Last(length) => u64::from(begun).saturating_sub(length / 1_000_000),
            TriageWindow::Between(start, _) => start / 1_000_000,
        });
        // A transaction of the second in which a log was begun may be in the log before it.
        if u64::from(begun) < begin {
            logs.drain(..place);
            return Ok(logs);
        }
    }
    Ok(logs)
}
