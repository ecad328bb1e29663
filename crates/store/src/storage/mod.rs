//! What a store asks of a disk: five verbs on a directory, five on a file.
//!
//! [`FileStorage`] is a real directory, [`MemoryStorage`] keeps everything in memory; the testkit has a
//! simulated disk that loses, tears and refuses. What is assumed of each verb stands here and nowhere else:
//! without [`StorageFile::sync`] nothing of a file need survive a crash of the system, in no order, and
//! without [`Storage::sync_names`] no name.

mod directory;
mod memory;

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;

pub use directory::{DIRECTORY_MODE, FILE_MODE, FileStorage};
pub use memory::MemoryStorage;

/// A flat directory.
pub trait Storage: Send + Sync + Debug {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to read and write. `create`: it must not be there yet; else it must.
    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn StorageFile>>;

    /// Gives a file another name, in one step; what had that name is gone.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name. Whoever has the file open may go on reading.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable: of files created, renamed and removed before.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file.
pub trait StorageFile: Send + Sync + Debug {
    /// Bytes of the file.
    fn size(&self) -> io::Result<u64>;

    /// Reads some bytes; 0 at the end of the file.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes all bytes, in one call of the system where it takes them. After an error some may be there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Makes all bytes written before durable, and the file's size.
    fn sync(&self) -> io::Result<()>;
}

/// All bytes of a small file.
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

/// Writes a file from its beginning, one write after another.
#[derive(Debug)]
pub struct FileWriter {
    file: Arc<dyn StorageFile>,
    offset: u64,
}

impl FileWriter {
    /// At the beginning of this file.
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

/// Whether an error of the system may be gone when the same is tried again, although nobody repairs anything: no
/// descriptor or memory was left, the call was interrupted, there was no room.
pub fn is_transient(error: &io::Error) -> bool {
    /// ENFILE, EMFILE.
    const NO_DESCRIPTOR: [i32; 2] = [23, 24];
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
    matches!(error.kind(), Interrupted | WouldBlock | OutOfMemory | StorageFull | QuotaExceeded)
        || error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code))
}

/// Replaces a small file in one step: after a crash there is the old one or the new one, whole.
pub fn replace(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    Replacement::begin(storage, name)?.finish(storage, bytes)
}

/// The same for what can be made again: a crash of the system may leave anything.
pub fn replace_unsynced(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let Replacement { name, new, file } = Replacement::begin(storage, name)?;
    file.write_at(0, bytes)?;
    storage.rename(&new, &name)
}

/// A file that will take another's name.
#[derive(Debug)]
pub(crate) struct Replacement {
    name: String,
    new: String,
    file: Arc<dyn StorageFile>,
}

impl Replacement {
    /// An empty file beside it.
    pub(crate) fn begin(storage: &dyn Storage, name: &str) -> io::Result<Self> {
        let new = format!("{name}{NEW_SUFFIX}");
        if storage.list()?.contains(&new) {
            storage.remove(&new)?;
        }
        Ok(Replacement { name: name.to_owned(), file: storage.open(&new, true)?, new })
    }

    /// Has these bytes and the name, durably.
    pub(crate) fn finish(self, storage: &dyn Storage, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(0, bytes)?;
        self.file.sync()?;
        storage.rename(&self.new, &self.name)?;
        storage.sync_names()
    }
}

/// What [`replace`] puts behind a name while the file is not whole.
pub(crate) const NEW_SUFFIX: &str = ".new";
