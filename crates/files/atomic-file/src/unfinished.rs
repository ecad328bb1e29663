//! The temporary files and folders of this process, so that a signal that ends it leaves none behind.
//!
//! One lock covers the list and the listed files: while [`remove_unfinished`] holds it, no file can be begun or get its
//! name.

use std::io;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// An entry of the list, taken off when it is dropped.
#[derive(Debug)]
pub(crate) struct UnfinishedEntry(PathBuf);

impl UnfinishedEntry {
    /// Begins what will be removed, and lists it.
    pub(crate) fn begin<T>(
        begin: impl FnOnce() -> io::Result<T>,
        path: impl FnOnce(&T) -> &Path,
    ) -> io::Result<(T, UnfinishedEntry)> {
        let mut list = UNFINISHED.lock();
        let begun = begin()?;
        let path = path(&begun).to_owned();
        list.push(path.clone());
        Ok((begun, UnfinishedEntry(path)))
    }

    /// Gives it its place, while no signal ends the process.
    pub(crate) fn end<T>(self, end: impl FnOnce() -> T) -> T {
        let list = UNFINISHED.lock();
        let ended = end();
        drop(list);
        ended
    }
}

impl Drop for UnfinishedEntry {
    fn drop(&mut self) {
        UNFINISHED.lock().retain(|path| *path != self.0);
    }
}

/// While it is held, no temporary file can be begun or get its name.
#[derive(Debug)]
#[must_use = "dropped, it lets other threads begin files again"]
pub struct NoneBegins {
    _list: MutexGuard<'static, Vec<PathBuf>>,
}

/// Removes the unfinished files and folders of this process, and lets no thread begin another one. For a process that ends
/// now, and holds what this gives until then.
pub fn remove_unfinished() -> NoneBegins {
    let mut list = UNFINISHED.lock();
    for path in list.drain(..) {
        // Nothing more can be done about one that can't be removed.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    NoneBegins { _list: list }
}
