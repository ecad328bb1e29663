//! The cache outside the checkout: installed programs, data directories, generated binlogs.
//!
//! An entry is a directory that is made once, whole or not at all, by whichever process comes first; the
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
    let path = dir()?.join(key);
    if path.is_dir() {
        return Ok(path);
    }
    let parent = path.parent().unwrap_or(&path);
    fs::create_dir_all(parent).at("create", parent)?;
    let lock_path = dir()?.join(format!("{key}.lock"));
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
