//! A folder of data sets.
//!
//! ```text
//! TO/_binlogz/run-00000042/                              the files of run 42, until they have their names
//! TO/_binlogz/.unfinished-…/                             files of a run that has no manifest yet
//! TO/_binlogz/lock                                       held by the run
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{self as atomic_file, Existing, TemporaryFolder};
use datafusion::arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use super::super::manifest::Manifest;
use super::super::views;
use super::{
    CONTROL, VIEWS, fail_point, failed, manifest_bytes, manifest_name, not_ours, read_manifest, run_of,
};
use crate::error::{Error, Result};

const LOCK: &str = "lock";
const UNFINISHED: &str = ".unfinished-";
const RUN: &str = "run-";
const MODE: u32 = 0o666;

/// A target that no other run writes to.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: PathBuf,
    control: PathBuf,
    /// Locked until it is closed.
    _lock: File,
}

impl Folder {
    /// Opens a target, and makes it if it isn't there.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let control = folder.join(CONTROL);
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let folder = folder.canonicalize().map_err(failed(folder))?;
        if !control.is_dir() {
            if fs::read_dir(&folder).map_err(failed(&folder))?.next().is_some() {
                return Err(not_ours(&folder.display().to_string()));
            }
            fs::create_dir(&control).map_err(failed(&control))?;
        }
        let place = control.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&place);
        let lock = lock.map_err(failed(&place))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Target(format!("{}: another export writes to it", folder.display())));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&place)(error)),
        }
        Ok(Folder { control: folder.join(CONTROL), folder, _lock: lock })
    }

    /// The manifest of the last run, of a target that may not exist.
    pub(super) fn last(folder: &Path) -> Result<Option<Manifest>> {
        let control = folder.join(CONTROL);
        let entries = match fs::read_dir(&control) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
                return if is_empty { Ok(None) } else { Err(not_ours(&folder.display().to_string())) };
            }
            Err(error) => return Err(failed(&control)(error)),
        };
        let mut last = None;
        for entry in entries {
            let name = entry.map_err(failed(&control))?.file_name();
            last = last.max(name.to_str().and_then(run_of));
        }
        let Some(run) = last else { return Ok(None) };
        let place = control.join(manifest_name(run));
        let bytes = fs::read(&place).map_err(failed(&place))?;
        read_manifest(&bytes, &place.display().to_string()).map(Some)
    }

    /// Ends what a killed run left: a run that counts is published, what does not is removed.
    pub(super) fn recover(&self) -> Result<Option<Manifest>> {
        let last = Folder::last(&self.folder)?;
        if let Some(manifest) = &last {
            self.publish(manifest)?;
        }
        for entry in fs::read_dir(&self.control).map_err(failed(&self.control))? {
            let entry = entry.map_err(failed(&self.control))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let place = entry.path();
            if name.starts_with(UNFINISHED) || name.starts_with(RUN) {
                fs::remove_dir_all(&place).map_err(failed(&place))?;
            } else if atomic_file::is_temporary(&name) {
                fs::remove_file(&place).map_err(failed(&place))?;
            }
        }
        Ok(last)
    }

    /// A folder for the files of a new run; it is gone if the run ends without them.
    pub(super) fn begin(&self) -> Result<TemporaryFolder> {
        TemporaryFolder::begin(&self.control, UNFINISHED).map_err(failed(&self.control))
    }

    /// Makes a run count, and gives its files their names.
    pub(super) fn commit(&self, staging: TemporaryFolder, manifest: &Manifest) -> Result<()> {
        let folder = self.run_folder(manifest.run);
        fail_point("staged");
        let rename = || -> io::Result<()> {
            atomic_file::sync_folder(staging.path())?;
            fs::rename(staging.path(), &folder)?;
            atomic_file::sync_folder(&self.control)
        };
        rename().map_err(failed(&folder))?;
        fail_point("moved");
        let place = self.control.join(manifest_name(manifest.run));
        let bytes = manifest_bytes(manifest, &place.display().to_string())?;
        if let Err(error) = atomic_file::write(&place, MODE, Existing::Refuse, &bytes) {
            return Err(failed(&place)(error));
        }
        fail_point("committed");
        self.publish(manifest)
    }

    /// Gives the files of a run their names, those that have none yet.
    fn publish(&self, manifest: &Manifest) -> Result<()> {
        let staging = self.run_folder(manifest.run);
        if staging.is_dir() {
            let mut folders = BTreeSet::new();
            for file in &manifest.files {
                let (staged, place) = (staging.join(&file.staged), self.folder.join(&file.path));
                let folder = atomic_file::folder_of(&place);
                fs::create_dir_all(folder).map_err(failed(folder))?;
                match fs::rename(&staged, &place) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound && place.is_file() => {}
                    renamed => renamed.map_err(failed(&place))?,
                }
                folders.extend(
                    folder
                        .ancestors()
                        .take_while(|above| above.starts_with(&self.folder))
                        .map(Path::to_owned),
                );
                fail_point("published");
            }
            for folder in folders {
                atomic_file::sync_folder(&folder).map_err(failed(&folder))?;
            }
            fs::remove_dir_all(&staging).map_err(failed(&staging))?;
        }
        let place = self.folder.join(VIEWS);
        let views = views::of_folder(&self.folder, self.data_sets()?);
        if fs::read(&place).is_ok_and(|there| there == views.as_bytes()) {
            return Ok(());
        }
        atomic_file::write(&place, MODE, Existing::Replace, views.as_bytes()).map_err(failed(&place))
    }

    fn run_folder(&self, run: u64) -> PathBuf {
        self.control.join(format!("{RUN}{run:08}"))
    }

    /// The tables that have files: database and name.
    fn data_sets(&self) -> Result<Vec<(String, String)>> {
        let folders = |folder: &Path| -> Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(folder).map_err(failed(folder))? {
                let entry = entry.map_err(failed(folder))?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                if !name.starts_with(['_', '.']) && entry.path().is_dir() {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        };
        let mut sets = Vec::new();
        for database in folders(&self.folder)? {
            let tables = folders(&self.folder.join(&database))?;
            sets.extend(tables.into_iter().map(|table| (database.clone(), table)));
        }
        Ok(sets)
    }

    /// The columns of a data set's newest file; `None`: it has none.
    pub(super) fn newest_schema(&self, data_set: &str) -> Result<Option<SchemaRef>> {
        let Some(place) = newest(&self.folder.join(data_set))? else { return Ok(None) };
        let file = File::open(&place).map_err(failed(&place))?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
        let metadata = metadata.map_err(|error| Error::Target(format!("{}: {error}", place.display())))?;
        Ok(Some(metadata.schema().clone()))
    }
}

/// The last file, by name, of the last partition that has one.
fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(folder)(error)),
    };
    let places = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    let mut places = places.map_err(failed(folder))?;
    places.sort();
    while let Some(place) = places.pop() {
        if place.is_dir() {
            if let Some(newest) = newest(&place)? {
                return Ok(Some(newest));
            }
        } else if place.extension().is_some_and(|extension| extension == "parquet") {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
