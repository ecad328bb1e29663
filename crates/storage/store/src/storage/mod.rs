//! The operations that a store needs from a disk: five verbs on a directory, five on a file.
//!
//! [`FileStorage`] is a real directory and [`MemoryStorage`] keeps everything in memory; the testkit has a
//! simulated disk that loses, tears and refuses. The assumptions about each verb are listed only here:
//! without [`StorageFile::sync`] none of a file's bytes need survive a crash of the system, and they may
//! survive in any order; without [`Storage::sync_names`] no name need survive.

mod directory;
mod memory;

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;

pub use directory::{FILE_MODE, FileStorage};
pub use memory::MemoryStorage;

/// A flat directory.
pub trait Storage: Send + Sync + Debug {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to read and write. With `create` the file must not exist yet; without it, it must.
    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn StorageFile>>;

    /// Renames a file in one step, replacing any file that had the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name. Readers that have the file open can keep reading.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names of all files created, renamed and removed so far durable.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file.
pub trait StorageFile: Send + Sync + Debug {
    /// The file's size in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Reads some bytes; 0 at the end of the file.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes all bytes, in one system call if it takes them all. After an error some of them may have been
    /// written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates the file to this size.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Makes all bytes written so far durable, and the file's size.
    fn sync(&self) -> io::Result<()>;
}

/// Reads all bytes of a small file.
pub fn read_all(file: &dyn StorageFile, size_max: u64) -> io::Result<Vec<u8>> {
    let size = file.size()?;
    if size > size_max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{size} bytes, expected at most {size_max}"),
        ));
    }
    let mut bytes = vec![0; size as usize];
    let mut held = 0;
    while let Some(rest) = bytes.get_mut(held..).filter(|rest| !rest.is_empty()) {
        match file.read_at(held as u64, rest)? {
            0 => break,
            count => held += count,
        }
    }
    bytes.truncate(held);
    Ok(bytes)
}

/// Writes a file from its start, one write after another.
#[derive(Debug)]
pub struct FileWriter {
    file: Arc<dyn StorageFile>,
    offset: u64,
}

impl FileWriter {
    /// A writer at the start of this file.
    pub fn new(file: Arc<dyn StorageFile>) -> Self {
        FileWriter { file, offset: 0 }
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(self.offset, bytes)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces a small file in one step: after a crash either the old one or the new one is there, whole.
pub fn replace(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    Replacement::begin(storage, name)?.finish(storage, bytes)
}

/// Replaces a small file that can be made again. Nothing is synced: a crash of the system may leave any contents.
pub fn replace_unsynced(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let Replacement { name, new, file } = Replacement::begin(storage, name)?;
    file.write_at(0, bytes)?;
    storage.rename(&new, &name)
}

/// A file that will replace another.
#[derive(Debug)]
pub(crate) struct Replacement {
    name: String,
    new: String,
    file: Arc<dyn StorageFile>,
}

impl Replacement {
    /// Begins an empty file beside the one it will replace.
    pub(crate) fn begin(storage: &dyn Storage, name: &str) -> io::Result<Self> {
        let new = format!("{name}{NEW_SUFFIX}");
        if storage.list()?.contains(&new) {
            storage.remove(&new)?;
        }
        Ok(Replacement { name: name.to_owned(), file: storage.open(&new, true)?, new })
    }

    /// Writes the bytes and takes the name, durably.
    pub(crate) fn finish(self, storage: &dyn Storage, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(0, bytes)?;
        self.file.sync()?;
        storage.rename(&self.new, &self.name)?;
        storage.sync_names()
    }
}

/// The suffix of a file that [`replace`] has not finished.
pub(crate) const NEW_SUFFIX: &str = ".new";
