//! The index: the log's files in order, one a line. This is mysqld's own format, so that mysqld, users of
//! mysqlbinlog and backup scripts can read it.
//!
//! ```text
//! ./binlog.000001
//! ./binlog.000002
//! ```
//!
//! It is never changed in place: a new index is renamed over it, so it is whole after a crash.

use crate::error::{Error, Result};
use crate::files::names::{FileNumber, LogNames};
use crate::storage::{self, Replacement, Storage};

/// More than any store will list: a million files.
const INDEX_SIZE_MAX: u64 = 64 << 20;

/// Reads the index; `None` if there is none.
pub(crate) fn read(
    storage: &dyn Storage,
    names: &LogNames,
    present: &[String],
) -> Result<Option<Vec<FileNumber>>> {
    let name = names.index();
    if !present.contains(&name) {
        return Ok(None);
    }
    let bytes = storage
        .open(&name, false)
        .and_then(|file| storage::read_all(file.as_ref(), INDEX_SIZE_MAX))
        .map_err(Error::io("read", &name))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut files: Vec<FileNumber> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let listed = names.number(line.strip_prefix("./").unwrap_or(line));
        match listed.filter(|file| files.last().is_none_or(|last| last < file)) {
            Some(file) => files.push(file),
            None => {
                let found = format!("line {number} is {:?}", line.chars().take(80).collect::<String>());
                return Err(Error::unfit(&name, found, "the store's files in ascending order"));
            }
        }
    }
    Ok(Some(files))
}

/// A new index: its file is open, but nothing that matters has changed yet.
#[derive(Debug)]
pub(crate) struct NewIndex {
    names: LogNames,
    replacement: Replacement,
}

impl NewIndex {
    /// Opens what a system short of descriptors can refuse. Such an error changes nothing.
    pub(crate) fn prepare(storage: &dyn Storage, names: &LogNames) -> Result<Self> {
        let name = names.index();
        let replacement = Replacement::begin(storage, &name).map_err(Error::io("create", &name))?;
        Ok(NewIndex { names: names.clone(), replacement })
    }

    /// Makes this the index, durably.
    pub(crate) fn replace(self, storage: &dyn Storage, files: &[FileNumber]) -> Result<()> {
        let NewIndex { names, replacement } = self;
        let text: String = files.iter().map(|file| format!("./{}\n", names.log(*file))).collect();
        replacement.finish(storage, text.as_bytes()).map_err(Error::io("write", &names.index()))
    }
}
