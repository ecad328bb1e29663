//! Finds out whether a file belongs to a server: whether an index beside it lists it.
//!
//! mysqld keeps the names of its binary logs in `binlog.index` (relay logs: `*-relay-bin.index`), one a line,
//! with or without a folder. Replacing such a file would move positions while the server and its replicas use
//! them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use binlogz_atomic_file::folder_of;

/// The suffix of an index's name.
const INDEX_EXTENSION: &str = "index";

/// The longest path that a line may hold, in bytes (`FN_REFLEN` in the server is 512).
const LINE_SIZE_MAX: u64 = 64 << 10;

/// The index beside `path` that lists a file of its name.
pub(super) fn listing(path: &Path) -> io::Result<Option<PathBuf>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    for entry in fs::read_dir(folder_of(path))? {
        let index = entry?.path();
        if index.extension() == Some(OsStr::new(INDEX_EXTENSION)) && index.is_file() && lists(&index, name)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn lists(index: &Path, name: &OsStr) -> io::Result<bool> {
    let mut lines = BufReader::new(File::open(index)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A file that is no list may hold no line end at all.
        if (&mut lines).take(LINE_SIZE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        let listed = Path::new(OsStr::from_bytes(line.trim_ascii_end()));
        if listed.file_name() == Some(name) {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_name_is_found_in_whatever_form_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("binlog.index");
        for line in ["binlog.000001", "./binlog.000001", "/var/lib/mysql/binlog.000001\r"] {
            fs::write(&index, format!("./binlog.000000\n{line}\n./binlog.000002\n")).unwrap();
            let found = listing(&folder.path().join("binlog.000001")).unwrap();
            assert_eq!(found.as_deref(), Some(index.as_path()), "{line}");
        }
        for name in ["binlog.000003", "binlog.00000", "binlog.index"] {
            assert_eq!(listing(&folder.path().join(name)).unwrap(), None, "{name}");
        }
    }
}
