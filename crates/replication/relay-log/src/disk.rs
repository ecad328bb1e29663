//! Where a relay keeps its files: a directory, with a folder for the log of each further server. Tests use a
//! simulated disk instead.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use binlogz_store::{FileStorage, Storage};

use crate::error::Result;

/// A directory with folders.
pub trait Disk: Debug + Send + Sync {
    /// Whether this folder exists.
    fn has(&self, folder: &str) -> bool;

    /// Locks a folder, or the directory itself, for this process; creates it if necessary.
    fn take(&self, folder: Option<&str>) -> Result<Arc<dyn Storage>>;

    /// Free space in bytes; `None` if unknown.
    fn free_space(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }
}

/// A directory of the file system.
#[derive(Debug)]
pub struct Directory(pub PathBuf);

impl Disk for Directory {
    fn has(&self, folder: &str) -> bool {
        self.0.join(folder).exists()
    }

    fn take(&self, folder: Option<&str>) -> Result<Arc<dyn Storage>> {
        let path = folder.map_or_else(|| self.0.clone(), |folder| self.0.join(folder));
        Ok(Arc::new(FileStorage::open(&path)?))
    }

    fn free_space(&self) -> io::Result<Option<u64>> {
        let system = rustix::fs::statvfs(&self.0)?;
        Ok(Some(system.f_bavail.saturating_mul(system.f_frsize)))
    }
}
