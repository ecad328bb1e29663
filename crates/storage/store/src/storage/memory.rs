//! A directory in memory: for logs that need not outlive the process, and for fast tests.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::{Storage, StorageFile};

/// Files in memory. Clones share the same directory.
#[derive(Debug, Default, Clone)]
pub struct MemoryStorage {
    files: Arc<Mutex<BTreeMap<String, Arc<MemoryFile>>>>,
}

impl MemoryStorage {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Arc<MemoryFile>>) -> T) -> T {
        work(&mut self.files.lock())
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {name}"))
}

impl Storage for MemoryStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.with(|files| files.keys().cloned().collect()))
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn StorageFile>> {
        self.with(|files| match (files.get(name), create) {
            (Some(_), true) => Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{name} is there"))),
            (Some(file), false) => Ok(Arc::clone(file) as Arc<dyn StorageFile>),
            (None, false) => Err(not_found(name)),
            (None, true) => {
                let file = Arc::new(MemoryFile::default());
                files.insert(name.to_owned(), Arc::clone(&file));
                Ok(file as Arc<dyn StorageFile>)
            }
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.with(|files| {
            let file = files.remove(from).ok_or_else(|| not_found(from))?;
            files.insert(to.to_owned(), file);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|files| files.remove(name).map(drop).ok_or_else(|| not_found(name)))
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Default)]
struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
}

impl MemoryFile {
    fn with<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        work(&mut self.bytes.lock())
    }
}

impl StorageFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.with(|held| held.len() as u64))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        self.with(|held| {
            let rest = held.get(offset as usize..).unwrap_or_default();
            let count = rest.len().min(bytes.len());
            for (to, from) in bytes.iter_mut().zip(rest) {
                *to = *from;
            }
            Ok(count)
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.with(|held| {
            let start = offset as usize;
            let end = offset as usize + bytes.len();
            if held.len() < end {
                held.resize(end, 0);
            }
            if let Some(place) = held.get_mut(start..end) {
                place.copy_from_slice(bytes);
            }
            Ok(())
        })
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.with(|held| held.resize(size as usize, 0));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
