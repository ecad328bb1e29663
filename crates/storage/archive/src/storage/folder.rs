//! An archive in a folder: files are written under a temporary name, synced and renamed. A lock on the folder
//! itself keeps two runs from replacing the manifest at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_atomic_file::{AtomicFile, ExistingFile, sync_folder};

use crate::error::{Error, Result};
use crate::storage::names::is_plain;
use crate::storage::{
    ArchiveStorage, DEPTH_MAX, ListedObject, MANIFEST, ManifestBytes, OBJECTS, ReadRange, unchanged,
};

/// Objects hold rows, which are not for everyone to read.
const FILE_MODE: u32 = 0o600;

/// At the top of a file system; only root may look into it.
const LOST_AND_FOUND: &str = "lost+found";

/// An archive in a folder.
#[derive(Debug)]
pub struct ArchiveFolder {
    path: PathBuf,
}

impl ArchiveFolder {
    /// The archive in `path`, which may or may not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        ArchiveFolder { path: path.into() }
    }

    /// The file of an object. Nothing but names of files in the folder gets here: this is the last that could know.
    fn object(&self, name: &str) -> Result<PathBuf> {
        match is_plain(name) {
            true => Ok(self.path.join(OBJECTS).join(name)),
            false => Err(Error::unexpected("name of an object", format_args!("{name:?}"), "a file's name")),
        }
    }

    /// No other run replaces the manifest until the returned file is dropped.
    fn lock(&self) -> Result<File> {
        let doing = || Error::io(format!("lock {}", self.path.display()));
        let folder = File::open(&self.path).map_err(doing())?;
        folder.lock().map_err(doing())?;
        Ok(folder)
    }

    fn store(&self, path: &Path, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        let doing = || format!("write {}", path.display());
        // All temporary files, the manifest's too: `stored` finds what a killed run left of them.
        let folder = self.path.join(OBJECTS);
        fs::create_dir_all(&folder).map_err(Error::io(format!("make {}", folder.display())))?;
        let file = AtomicFile::begin_in(&folder, path, FILE_MODE).map_err(Error::io(doing()))?;
        let mut buffered = io::BufWriter::with_capacity(1 << 20, file);
        write(&mut buffered)?;
        let file = buffered.into_inner().map_err(|error| Error::io(doing())(error.into_error()))?;
        file.finish(ExistingFile::Replace).map_err(Error::io(doing()))?;
        // The folder of the objects may be new.
        sync_folder(&self.path).map_err(Error::io(doing()))
    }
}

impl ArchiveStorage for ArchiveFolder {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.store(&self.object(name)?, write)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        let path = self.object(name)?;
        let file = File::open(&path).map_err(Error::io(format!("open {}", path.display())))?;
        Ok(Box::new(ObjectFile { file, path }))
    }

    fn delete(&self, name: &str) -> Result<()> {
        let path = self.object(name)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("delete {}", path.display()))(error))
            }
            _ => Ok(()),
        }
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        let path = self.path.join(OBJECTS);
        let listed = || {
            let mut stored = Vec::new();
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                // A file that is gone by now was another run's.
                if let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) {
                    stored.push(ListedObject { name, size: metadata.len(), at: metadata.modified()? });
                }
            }
            Ok::<_, io::Error>(stored)
        };
        match listed() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            stored => stored.map_err(Error::io(format!("list {}", path.display()))),
        }
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        let path = self.path.join(MANIFEST);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(Arc::new(bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
        }
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        fs::create_dir_all(&self.path).map_err(Error::io(format!("make {}", self.path.display())))?;
        let _locked = self.lock()?;
        unchanged(self.manifest()?.as_ref().map(|there| there.as_slice()), replaces)?;
        self.store(&self.path.join(MANIFEST), &mut |out| {
            out.write_all(manifest).map_err(Error::io("write manifest"))
        })
    }

    fn alone(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _locked = self.lock()?;
        work()
    }
}

/// The folders of all archives at a place and below it.
pub(super) fn archives(place: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![(place.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let doing = || Error::io(format!("list {}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(doing())? {
            let name = entry.map_err(doing())?.file_name();
            let path = folder.join(&name);
            if name == MANIFEST {
                found.push(folder.clone());
            } else if name != OBJECTS && name != LOST_AND_FOUND && depth < DEPTH_MAX && path.is_dir() {
                open.push((path, depth + 1));
            }
        }
    }
    Ok(found)
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
        let mut bytes = Vec::new();
        self.read_into(offset, size, &mut bytes)?;
        Ok(bytes)
    }

    fn read_into(&self, offset: u64, size: usize, into: &mut Vec<u8>) -> Result<()> {
        let left = self.size()?.saturating_sub(offset);
        if size as u64 > left {
            return Err(Error::unexpected(
                "object",
                format!("{left} bytes long from there"),
                format!("{size} bytes"),
            ));
        }
        // The old contents are overwritten: clearing them first would take as long as reading.
        into.resize(size, 0);
        self.file
            .read_exact_at(into, offset)
            .map_err(Error::io(format!("read {} at {offset}", self.path.display())))
    }
}
