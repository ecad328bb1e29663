//! An archive in a folder: files that are written under a temporary name, synced and renamed. A lock on the folder
//! itself keeps two runs from replacing one manifest at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::object::ReadRange;
use crate::storage::{MANIFEST, OBJECTS, Storage, unchanged};

/// An archive in a folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The archive in `path`, whether or not it is there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Folder { path: path.into() }
    }

    /// Nobody else replaces the manifest until what this gives is dropped.
    fn lock(&self) -> Result<File> {
        let doing = || Error::io(format!("lock {}", self.path.display()));
        let folder = File::open(&self.path).map_err(doing())?;
        folder.lock().map_err(doing())?;
        Ok(folder)
    }

    fn store(&self, path: &Path, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        let doing = || format!("write {}", path.display());
        let folder = path.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder).map_err(Error::io(format!("make {}", folder.display())))?;
        let mut file = NamedTempFile::with_prefix_in(".new-", folder).map_err(Error::io(doing()))?;
        let mut buffered = io::BufWriter::with_capacity(1 << 20, file.as_file_mut());
        write(&mut buffered)?;
        buffered.flush().map_err(Error::io(doing()))?;
        drop(buffered);
        file.as_file().sync_all().map_err(Error::io(doing()))?;
        file.persist(path).map_err(|error| Error::io(doing())(error.error))?;
        let sync = |folder: &Path| File::open(folder).and_then(|folder| folder.sync_all());
        sync(folder).and_then(|()| sync(&self.path)).map_err(Error::io(doing()))
    }
}

impl Storage for Folder {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.store(&self.path.join(OBJECTS).join(name), write)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        let path = self.path.join(OBJECTS).join(name);
        let file = File::open(&path).map_err(Error::io(format!("open {}", path.display())))?;
        Ok(Box::new(ObjectFile { file, path }))
    }

    fn manifest(&self) -> Result<Option<Vec<u8>>> {
        let path = self.path.join(MANIFEST);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
        }
    }

    fn put_manifest(&self, manifest: &[u8], replaces: Option<&[u8]>) -> Result<()> {
        fs::create_dir_all(&self.path).map_err(Error::io(format!("make {}", self.path.display())))?;
        let _locked = self.lock()?;
        unchanged(self.manifest()?.as_deref(), replaces)?;
        self.store(&self.path.join(MANIFEST), &mut |out| {
            out.write_all(manifest).map_err(Error::io("write manifest"))
        })
    }

    fn alone(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _locked = self.lock()?;
        work()
    }
}

struct ObjectFile {
    file: File,
    path: PathBuf,
}

impl ReadRange for ObjectFile {
    fn size(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(Error::io(format!("read {}", self.path.display())))?;
        Ok(metadata.len())
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        let left = self.size()?.saturating_sub(offset);
        if size as u64 > left {
            return Err(Error::unexpected(
                "object",
                format!("{left} bytes long from there"),
                format!("{size} bytes"),
            ));
        }
        let mut bytes = vec![0; size];
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(Error::io(format!("read {} at {offset}", self.path.display())))?;
        Ok(bytes)
    }
}
