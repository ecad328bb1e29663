//! The file with earlier statements: `$XDG_STATE_HOME/binlogz/sql_history`, for its owner alone, since statements may hold data.

use std::env;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The file, which is there now; `None`: it can't be, and the prompt does without.
pub(super) fn file() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = state.join("binlogz");
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder).ok()?;
    let path = folder.join("sql_history");
    OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(&path).ok()?;
    Some(path)
}
