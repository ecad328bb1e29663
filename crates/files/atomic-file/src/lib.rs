//! Writes a file that appears at its place whole, or not at all.
//!
//! ```text
//! begin     a temporary file beside the place, named .binlogz-…
//! write     by the caller
//! finish    synced │ renamed │ the folder synced
//! ```
//!
//! Until [`AtomicFile::finish`] nothing appears at the place, and what stood there still stands there. It is replaced only if
//! the caller says [`ExistingFile::Replace`]. A file that is dropped before it is finished is removed. When a signal ends the
//! process, its handler calls [`remove_unfinished`]; only `kill -9` or a crash of the machine leaves a temporary file behind.
//!
//! [`open_secret`] opens a file that only its owner may use.
//!
//! ```
//! use binlogz_atomic_file::{AtomicFile, ExistingFile};
//! use std::io::Write;
//!
//! let folder = tempfile::tempdir()?;
//! let place = folder.path().join("report.txt");
//! let mut file = AtomicFile::begin(&place, 0o644)?;
//! file.write_all(b"42 transactions\n")?;
//! assert!(!place.exists());
//! file.finish(ExistingFile::Refuse)?;
//! assert_eq!(std::fs::read(&place)?, b"42 transactions\n");
//! # std::io::Result::Ok(())
//! ```

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

mod secret_file;
mod unfinished;

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

pub use secret_file::{SecretFileError, open_secret};
use unfinished::UnfinishedEntry;
pub use unfinished::{NoneBegins, remove_unfinished};

/// The prefix of temporary files: a user who finds one after a crash sees which program left it.
const PREFIX: &str = ".binlogz-";

/// The treatment of a file that already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// It stays, and finishing fails with [`io::ErrorKind::AlreadyExists`].
    Refuse,
    /// It is replaced in one step.
    Replace,
}

/// Whether a file of this name is a temporary file of this program: what only `kill -9` or a crash leaves behind.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// A file being written beside its place.
#[derive(Debug)]
pub struct AtomicFile {
    place: PathBuf,
    // Dropped, and so removed, before it is taken off the list of unfinished files.
    temporary: NamedTempFile,
    unfinished: UnfinishedEntry,
}

impl AtomicFile {
    /// Begins a file that will stand at `place`. It has this mode, less the umask of the process, from its first byte.
    ///
    /// # Errors
    ///
    /// The folder of the place is missing or takes no file.
    pub fn begin(place: &Path, mode: u32) -> io::Result<AtomicFile> {
        AtomicFile::begin_in(folder_of(place), place, mode)
    }

    /// As [`AtomicFile::begin`], with the temporary file in another folder of the same file system.
    ///
    /// # Errors
    ///
    /// The folder is missing or takes no file.
    pub fn begin_in(folder: &Path, place: &Path, mode: u32) -> io::Result<AtomicFile> {
        let begin = || {
            let mut options = tempfile::Builder::new();
            options.prefix(PREFIX).permissions(Permissions::from_mode(mode)).tempfile_in(folder)
        };
        let (temporary, unfinished) = UnfinishedEntry::begin(begin, NamedTempFile::path)?;
        Ok(AtomicFile { place: place.to_owned(), temporary, unfinished })
    }

    /// The temporary file, for what [`Write`] can't do.
    pub fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// All is written: syncs the file, gives it its name and syncs the folder.
    ///
    /// # Errors
    ///
    /// A sync or the rename failed, or a file stands there that must not be replaced. Nothing is left behind, unless it was
    /// the sync of the folder that failed: then the file is at its place, but a crash may take its name back.
    pub fn finish(self, existing: ExistingFile) -> io::Result<()> {
        let AtomicFile { place, temporary, unfinished } = self;
        temporary.as_file().sync_all()?;
        let renamed = unfinished.end(|| match existing {
            ExistingFile::Refuse => temporary.persist_noclobber(&place),
            ExistingFile::Replace => temporary.persist(&place),
        });
        renamed.map_err(|error| error.error)?;
        sync_folder(folder_of(&place))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not the temporary file's own `write`: that adds the temporary name to errors.
        self.temporary.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.temporary.as_file().seek(place)
    }
}

/// Writes a small file in one go.
///
/// # Errors
///
/// As [`AtomicFile::begin`] and [`AtomicFile::finish`], or the disk takes no more.
pub fn write(place: &Path, mode: u32, existing: ExistingFile, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::begin(place, mode)?;
    file.write_all(bytes)?;
    file.finish(existing)
}

/// A folder that is removed, with all that is in it, when it is dropped or a signal ends the process. It is locked as long as the
/// process lives, so that [`remove_abandoned`] knows those whose process was killed. Where the file system has no locks, it isn't, and
/// is not removed either.
#[derive(Debug)]
pub struct TemporaryFolder {
    // Removed before it is taken off the list, and before the lock ends.
    folder: TempDir,
    _unfinished: UnfinishedEntry,
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// Makes one in `parent`, with a name that begins with `prefix`.
    ///
    /// # Errors
    ///
    /// The parent is missing or takes no folder.
    pub fn begin(parent: &Path, prefix: &str) -> io::Result<TemporaryFolder> {
        let begin = || tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
        loop {
            let (folder, unfinished) = UnfinishedEntry::begin(begin, TempDir::path)?;
            // Until it is locked, another process may take it for an abandoned one.
            let lock = File::open(folder.path()).map(|lock| lock.try_lock().map(|()| lock));
            let _lock = match lock {
                Ok(Ok(lock)) if is_at(&lock, folder.path()) => Some(lock),
                Ok(Err(TryLockError::Error(_))) => None,
                Ok(Ok(_) | Err(TryLockError::WouldBlock)) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            return Ok(TemporaryFolder { folder, _unfinished: unfinished, _lock });
        }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders in `parent`, with everything in them, that [`TemporaryFolder::begin`] made with this prefix for a
/// process that was killed. Folders of other programs stay, and so do files, and folders that can't be removed. Returns
/// how many it removed.
///
/// # Errors
///
/// The parent can't be read.
pub fn remove_abandoned(parent: &Path, prefix: &str) -> io::Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(parent)? {
        let entry = entry?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let place = entry.path();
        let Ok(folder) = File::open(&place) else { continue };
        // The lock is held until the folder is gone: who made it meanwhile finds that out.
        if folder.try_lock().is_ok() && is_at(&folder, &place) && std::fs::remove_dir_all(&place).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Whether an open folder is the one at this place.
fn is_at(folder: &File, place: &Path) -> bool {
    match (folder.metadata(), place.symlink_metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Makes the names in a folder durable.
///
/// # Errors
///
/// The folder can't be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder in which a file stands.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        let mut file = AtomicFile::begin(&place, 0o640).unwrap();
        file.write_all(b"whole").unwrap();
        let [temporary] = &names(folder.path())[..] else { panic!("one file") };
        assert!(is_temporary(temporary), "{temporary}");
        file.finish(ExistingFile::Refuse).unwrap();
        assert_eq!(names(folder.path()), ["a"]);
        assert_eq!(fs::read(&place).unwrap(), b"whole");
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7027, 0);
    }

    #[test]
    fn what_is_there_is_replaced_only_if_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        fs::write(&place, "old").unwrap();
        let refused = write(&place, 0o600, ExistingFile::Refuse, b"new").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&place).unwrap(), names(folder.path()).len()), (b"old".to_vec(), 1));
        write(&place, 0o600, ExistingFile::Replace, b"new").unwrap();
        assert_eq!((fs::read(&place).unwrap(), names(folder.path()).len()), (b"new".to_vec(), 1));
    }

    #[test]
    fn nothing_is_left_of_a_file_that_is_given_up_or_can_not_be_renamed() {
        let folder = tempfile::tempdir().unwrap();
        drop(AtomicFile::begin(&folder.path().join("a"), 0o600).unwrap());
        fs::create_dir(folder.path().join("b")).unwrap();
        write(&folder.path().join("b"), 0o600, ExistingFile::Replace, b"").unwrap_err();
        assert_eq!(names(folder.path()), ["b"]);
        write(&folder.path().join("c/d"), 0o600, ExistingFile::Refuse, b"").unwrap_err();
    }

    #[test]
    fn folders_of_killed_processes_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let ours = TemporaryFolder::begin(parent.path(), ".made-").unwrap();
        // As `kill -9` leaves them: empty, and with files.
        fs::create_dir(parent.path().join(".made-1")).unwrap();
        fs::create_dir_all(parent.path().join(".made-2/below")).unwrap();
        fs::write(parent.path().join(".made-2/below/file"), "rows").unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        fs::write(parent.path().join(".made-file"), "").unwrap();
        std::os::unix::fs::symlink(parent.path().join("other"), parent.path().join(".made-link")).unwrap();
        assert_eq!(remove_abandoned(parent.path(), ".made-").unwrap(), 2);
        let own = ours.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut left = vec![own, ".made-file".to_owned(), ".made-link".to_owned(), "other".to_owned()];
        left.sort();
        assert_eq!(names(parent.path()), left);
        drop(ours);
        assert_eq!(names(parent.path()).len(), 3);
    }

    #[test]
    fn a_name_alone_is_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("a")), Path::new("."));
        assert_eq!(folder_of(Path::new("b/a")), Path::new("b"));
    }
}
