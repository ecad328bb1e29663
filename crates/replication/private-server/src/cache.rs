//! The cache outside the checkout: installed programs, data directories, generated binlogs.
//!
//! An entry is a directory that is made once, whole or not at all, by the first process that needs it; the
//! others wait for it. Entries are never changed afterwards: a new recipe takes a new key.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::{Error, IoContext, Result};

/// `$BINLOGZ_CACHE`, or `binlogz` in the user's cache directory; `scripts/get-tool.sh` has the same rule.
pub fn dir() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("BINLOGZ_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("binlogz")))
        .or_else(|| set("HOME").map(|dir| dir.join(".cache").join("binlogz")))
        .ok_or_else(|| {
            Error::Unavailable("no place for a cache: neither BINLOGZ_CACHE nor HOME is set".into())
        })
}

/// The directory of entry `key` (slashes make subdirectories); `make` fills an empty one if there is none yet.
pub fn entry(key: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    entry_in(&dir()?, key, make)
}

fn entry_in(cache: &Path, key: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let path = cache.join(key);
    if path.is_dir() {
        return Ok(path);
    }
    let parent = path.parent().unwrap_or(&path);
    fs::create_dir_all(parent).at("create", parent)?;
    let lock_path = cache.join(format!("{key}.lock"));
    let lock = File::create(&lock_path).at("create", &lock_path)?;
    lock.lock().at("lock", &lock_path)?;
    if path.is_dir() {
        return Ok(path); // made by another process while this one waited
    }
    let filling =
        tempfile::Builder::new().prefix(".making-").tempdir_in(parent).at("create directory in", parent)?;
    make(filling.path())?;
    let filled = filling.keep();
    fs::rename(&filled, &path).at("move into place", &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::entry_in;
    use crate::Error;

    #[test]
    fn an_entry_is_made_once_whoever_comes_first() {
        let cache = tempfile::tempdir().expect("temporary directory");
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let entry = entry_in(cache.path(), "a/b", |dir| {
                        made.fetch_add(1, Ordering::Relaxed);
                        fs::write(dir.join("file"), "whole").expect("writable");
                        Ok(())
                    });
                    let file = entry.expect("made").join("file");
                    assert_eq!(fs::read_to_string(file).expect("made"), "whole");
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn a_failure_leaves_nothing_behind_and_can_be_tried_again() {
        let cache = tempfile::tempdir().expect("temporary directory");
        let failing = entry_in(cache.path(), "a", |dir| {
            fs::write(dir.join("half"), "").expect("writable");
            Err(Error::Failed("no luck".into()))
        });
        assert!(failing.is_err());
        let again = entry_in(cache.path(), "a", |_| Ok(())).expect("made");
        assert_eq!(fs::read_dir(again).expect("a directory").count(), 0);
        let mut names: Vec<_> = fs::read_dir(cache.path()).expect("a directory").flatten().collect();
        names.sort_by_key(|entry| entry.file_name());
        assert_eq!(names.iter().map(|entry| entry.file_name()).collect::<Vec<_>>(), ["a", "a.lock"]);
    }
}
