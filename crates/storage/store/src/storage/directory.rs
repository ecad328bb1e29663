//! A real directory, for one process at a time.
//!
//! Logs hold rows, so files are writable by their owner and readable by the group, as mysqld makes its own. A
//! stricter umask makes them stricter. Existing files keep their mode.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Storage, StorageFile};
use crate::error::{Error, Result};

/// The lock on this file marks the directory as in use. The file stays; its lock ends with the process.
const LOCK_NAME: &str = "binlogz.lock";

/// The mode, before the umask, of a file that holds a log or something a log needs beside it.
pub const FILE_MODE: u32 = 0o640;
/// The mode of a directory of such files, before the umask.
pub(crate) const DIRECTORY_MODE: u32 = 0o750;

/// A directory of the file system.
#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    directory: File,
    /// Unlocked when dropped.
    _lock: File,
}

impl FileStorage {
    /// Takes a directory, creating it if needed.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if another process has it; a directory that can't be created or written.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        make(path).map_err(Error::io("create directory", &shown))?;
        let directory = File::open(path).map_err(Error::io("open directory", &shown))?;
        let mut opened = OpenOptions::new();
        opened.write(true).create(true).truncate(false).mode(FILE_MODE);
        let lock = opened.open(path.join(LOCK_NAME)).map_err(Error::io("create lock", &shown))?;
        match lock.try_lock() {
            Ok(()) => Ok(FileStorage { path: path.to_owned(), directory, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { directory: shown }),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", &shown)(error)),
        }
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes a directory that survives a crash: its parent is synced, since that holds its name.
fn make(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).count();
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
    for above in path.ancestors().skip(1).take(missing) {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        File::open(above)?.sync_all()?;
    }
    Ok(())
}

impl Storage for FileStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            // A name that is not valid text is not ours.
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn StorageFile>> {
        let mut opened = OpenOptions::new();
        opened.read(true).write(true).create_new(create).mode(FILE_MODE);
        Ok(Arc::new(OpenFile(opened.open(self.path.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

#[derive(Debug)]
struct OpenFile(File);

impl StorageFile for OpenFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read_at(bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::storage;

    #[test]
    fn files_and_directories_are_for_owner_and_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("above/relay");
        let directory = FileStorage::open(&path).unwrap();
        directory.open("binlog.000001", true).unwrap();
        storage::replace(&directory, "binlog.index", b"./binlog.000001\n").unwrap();
        storage::replace_unsynced(&directory, "binlog.000001.places", b"").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        // The tests' umask is unknown: it can only take permissions away.
        for (path, most) in [(path.parent().unwrap(), 0o750), (&path, 0o750)] {
            assert_eq!(
                (mode(path) & !most, mode(path) & 0o700),
                (0, 0o700),
                "{}: {:o}",
                path.display(),
                mode(path)
            );
        }
        let names = directory.list().unwrap();
        assert_eq!(names.len(), 4, "{names:?}");
        for name in names {
            let mode = mode(&path.join(&name));
            assert_eq!((mode & !0o640, mode & 0o600), (0, 0o600), "{name}: {mode:o}");
        }
        // A mode set by an administrator stays.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        drop(directory);
        FileStorage::open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }
}
