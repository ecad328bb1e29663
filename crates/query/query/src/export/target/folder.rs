//! A folder of data sets.
//!
//! ```text
//! TO/_binlogz/run-00000042/                              the files of run 42, until they have their names
//! TO/_binlogz/.unfinished-…/                             files of a run that has no manifest yet
//! TO/_binlogz/lock                                       held by the run
//! TO/_binlogz/last                                       the record of the last run, see `history`
//! ```
//!
//! Nothing in it may be a symbolic link, which would lead writes to another place. Folders and files are for owner and
//! group.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{self as atomic_file, ExistingFile, TemporaryFolder};
use datafusion::arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use super::super::TRANSACTIONS;
use super::super::history::{RunHistory, run_mark};
use super::super::manifest::ExportManifest;
use super::super::output::{MODE, at_once};
use super::super::views;
use super::{CONTROL, LAST, VIEWS, fail_point, failed, manifest_name, not_ours, run_of};
use crate::error::{Error, Result};

const LOCK: &str = "lock";
const UNFINISHED: &str = ".unfinished-";
const RUN: &str = "run-";
/// Files and folders that are synced at once. Each waits for the disk alone, whose journal takes those of all that wait in one go.
const SYNCS: usize = 16;
/// The mode of a folder that is made, less the umask.
const FOLDER_MODE: u32 = 0o750;

/// A target that no other run writes to.
#[derive(Debug)]
pub(crate) struct ExportFolder {
    folder: PathBuf,
    control: PathBuf,
    pub(super) history: RunHistory,
    /// Locked until it is closed.
    _lock: File,
}

impl ExportFolder {
    /// Opens a target, and makes it if it isn't there.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(failed(folder))?;
        let folder = folder.canonicalize().map_err(failed(folder))?;
        let control = folder.join(CONTROL);
        if own(&control)?.is_none() {
            if fs::read_dir(&folder).map_err(failed(&folder))?.next().is_some() {
                return Err(not_ours(&folder.display().to_string()));
            }
            make(&control)?;
        }
        let place = control.join(LOCK);
        own(&place)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(MODE)
            .open(&place)
            .map_err(failed(&place))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Target(format!("{}: another export writes to it", folder.display())));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&place)(error)),
        }
        Ok(ExportFolder { control, folder, history: RunHistory::default(), _lock: lock })
    }

    /// The manifest of the last run, of a target that may not exist.
    pub(super) fn last(folder: &Path) -> Result<Option<ExportManifest>> {
        let control = folder.join(CONTROL);
        if own(&control)?.is_none() {
            let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
            return if is_empty { Ok(None) } else { Err(not_ours(&folder.display().to_string())) };
        }
        Ok(history(&control, &mut |_| Ok(()))?.into_last())
    }

    /// Cleans up after a killed run: if the run counts it is published, otherwise it is removed.
    pub(super) fn recover(&mut self) -> Result<Option<ExportManifest>> {
        let mut deleted = 0;
        let folder = &self.folder;
        let mut count = |manifest: &ExportManifest| {
            for file in &manifest.files {
                deleted += u64::from(own(&folder.join(file.path.as_str()))?.is_none());
            }
            Ok(())
        };
        // The files of the last run may have no names yet.
        let mut before: Option<ExportManifest> = None;
        let mut history = history(&self.control, &mut |manifest| {
            let before = before.replace(manifest.clone());
            before.as_ref().map_or(Ok(()), &mut count)
        })?;
        if let Some(last) = history.last() {
            self.publish(last)?;
            count(last)?;
        }
        history.deleted = deleted;
        self.history = history;
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
        if self.history.run() > 0 {
            self.write_views()?;
        }
        Ok(self.history.last().cloned())
    }

    /// Writes the record of the last run, if it changed.
    pub(super) fn record(&mut self) -> Result<()> {
        let Some(record) = self.history.record() else { return Ok(()) };
        let place = self.control.join(LAST);
        atomic_file::write(&place, MODE, ExistingFile::Replace, &record.encode()?).map_err(failed(&place))
    }

    /// A folder for the files of a new run; it is gone if the run ends without them.
    pub(super) fn begin(&self) -> Result<TemporaryFolder> {
        TemporaryFolder::begin(&self.control, UNFINISHED).map_err(failed(&self.control))
    }

    /// Makes a run count, and gives its files their names.
    pub(super) fn commit(&mut self, staging: TemporaryFolder, manifest: &ExportManifest) -> Result<()> {
        let folder = self.run_folder(manifest.run);
        sync(manifest.files.iter().map(|file| staging.path().join(file.staged.as_str())).collect())?;
        fail_point("staged");
        self.prepare(manifest)?;
        fail_point("prepared");
        let rename = || -> io::Result<()> {
            atomic_file::sync_folder(staging.path())?;
            fs::rename(staging.path(), &folder)?;
            atomic_file::sync_folder(&self.control)
        };
        rename().map_err(failed(&folder))?;
        fail_point("moved");
        let place = self.control.join(manifest_name(manifest.run));
        let bytes = manifest.encode(&place.display().to_string())?;
        if let Err(error) = atomic_file::write(&place, MODE, ExistingFile::Refuse, &bytes) {
            return Err(failed(&place)(error));
        }
        fail_point("committed");
        self.history.add(manifest.run, &bytes, &place.display().to_string())?;
        self.record()?;
        fail_point("recorded");
        self.publish(manifest)?;
        self.write_views()
    }

    /// Makes the folders of a run's files, before the run counts: nothing in their names can stop it after that.
    fn prepare(&self, manifest: &ExportManifest) -> Result<()> {
        let mut made = Vec::new();
        let mut folders = BTreeMap::new();
        let mut prepare = || {
            for file in &manifest.files {
                let place = self.folder.join(file.path.as_str());
                let folder = atomic_file::folder_of(&place);
                self.make_folder(folder, &mut made)?;
                if own(&place)?.is_some() {
                    let what = "is there already; expected none, as no run before had it";
                    return Err(Error::Target(format!("{}: {what}", place.display())));
                }
                let there = folder.metadata().map_err(failed(folder))?;
                let other = folders.entry((there.dev(), there.ino())).or_insert_with(|| folder.to_owned());
                if other != folder {
                    return Err(Error::Target(format!(
                        "{} and {} are the same folder; expected a file system that tells upper and lower case apart",
                        other.display(),
                        folder.display()
                    )));
                }
            }
            Ok(())
        };
        let prepared = prepare();
        if prepared.is_err() {
            // Those that are empty again.
            made.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
        }
        prepared
    }

    /// Makes a folder in the target, and those above it. Existing ones must be folders, and in the target.
    fn make_folder(&self, folder: &Path, made: &mut Vec<PathBuf>) -> Result<()> {
        let Ok(below) = folder.strip_prefix(&self.folder) else {
            return Err(Error::Target(format!("{}: is not in {}", folder.display(), self.folder.display())));
        };
        let mut place = self.folder.clone();
        for name in below {
            place.push(name);
            match own(&place)? {
                Some(there) if there.is_dir() => {}
                Some(_) => return Err(Error::Target(format!("{}: is no folder", place.display()))),
                None => {
                    make(&place)?;
                    made.push(place.clone());
                }
            }
        }
        Ok(())
    }

    /// Gives the files of a run their names, those that have none yet.
    fn publish(&self, manifest: &ExportManifest) -> Result<()> {
        let staging = self.run_folder(manifest.run);
        if own(&staging)?.is_none() {
            return Ok(());
        }
        let mut folders = BTreeSet::new();
        for file in &manifest.files {
            let staged = staging.join(file.staged.as_str());
            let place = self.folder.join(file.path.as_str());
            let folder = atomic_file::folder_of(&place);
            self.make_folder(folder, &mut Vec::new())?;
            match (own(&staged)?, own(&place)?) {
                (Some(_), None) => fs::rename(&staged, &place).map_err(failed(&place))?,
                (Some(_), Some(_)) => {
                    let what = "is there already, and so is the file that is to get this name:";
                    return Err(Error::Target(format!("{}: {what} {}", place.display(), staged.display())));
                }
                // It has its name, or had it until its owner deleted it.
                (None, _) => {}
            }
            folders.extend(
                folder.ancestors().take_while(|above| above.starts_with(&self.folder)).map(Path::to_owned),
            );
            fail_point("published");
        }
        sync(folders.into_iter().collect())?;
        fs::remove_dir_all(&staging).map_err(failed(&staging))
    }

    fn write_views(&self) -> Result<()> {
        let place = self.folder.join(VIEWS);
        let sets = self.data_sets()?.into_iter().map(|set| (self.history.table(&set), set)).collect();
        let has_transactions = has_file(&self.folder.join(TRANSACTIONS))?;
        let views = views::of_folder(&self.folder, has_transactions, sets);
        if own(&place)?.is_some() && fs::read(&place).is_ok_and(|there| there == views.as_bytes()) {
            return Ok(());
        }
        atomic_file::write(&place, MODE, ExistingFile::Replace, views.as_bytes()).map_err(failed(&place))
    }

    fn run_folder(&self, run: u64) -> PathBuf {
        self.control.join(format!("{RUN}{}", run_mark(run)))
    }

    /// The data sets that have files, without that of transactions. Nothing in them is a symbolic link.
    fn data_sets(&self) -> Result<Vec<String>> {
        let mut sets = Vec::new();
        for database in folders(&self.folder)? {
            for table in folders(&self.folder.join(&database))? {
                let set = format!("{database}/{table}");
                if has_file(&self.folder.join(&set))? {
                    sets.push(set);
                }
            }
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

/// The manifests of all runs; `each` gets one after the other.
fn history(control: &Path, each: &mut dyn FnMut(&ExportManifest) -> Result<()>) -> Result<RunHistory> {
    let mut runs = BTreeSet::new();
    for entry in fs::read_dir(control).map_err(failed(control))? {
        let entry = entry.map_err(failed(control))?;
        own(&entry.path())?;
        runs.extend(entry.file_name().to_str().and_then(run_of));
    }
    let place = control.join(LAST);
    let record = match own(&place)? {
        Some(_) => Some(fs::read(&place).map_err(failed(&place))?),
        None => None,
    };
    let mut history = RunHistory::begin(record.as_deref(), place.display().to_string())?;
    for run in runs {
        let place = control.join(manifest_name(run));
        let bytes = fs::read(&place).map_err(failed(&place))?;
        each(history.add(run, &bytes, &place.display().to_string())?)?;
    }
    history.end()?;
    Ok(history)
}

/// The file or folder at a place in the target; `None`: nothing is there. A symbolic link is refused.
fn own(place: &Path) -> Result<Option<Metadata>> {
    match place.symlink_metadata() {
        Ok(there) if there.is_symlink() => {
            let what = "is a symbolic link; expected none in a folder of exports";
            Err(Error::Target(format!("{}: {what}", place.display())))
        }
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(place)(error)),
    }
}

/// Makes the disk keep files and folders.
fn sync(places: Vec<PathBuf>) -> Result<()> {
    at_once(SYNCS.min(places.len()), places, |place| {
        File::open(&place).and_then(|file| file.sync_all()).map_err(failed(&place))
    })
    .map(drop)
}

/// Makes a folder.
fn make(place: &Path) -> Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(place).map_err(failed(place))
}

/// Names of the folders in a folder, without those that readers skip.
fn folders(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let place = entry.path();
        let is_folder = own(&place)?.is_some_and(|there| there.is_dir());
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_folder && !name.starts_with(['_', '.']) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a data set has a file. All of it is looked at.
fn has_file(folder: &Path) -> Result<bool> {
    if own(folder)?.is_none() {
        return Ok(false);
    }
    let mut has_file = false;
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let place = entry.map_err(failed(folder))?.path();
        let is_folder = own(&place)?.is_some_and(|there| there.is_dir());
        has_file |= if is_folder { self::has_file(&place)? } else { is_parquet(&place) };
    }
    Ok(has_file)
}

fn is_parquet(place: &Path) -> bool {
    place.extension().is_some_and(|extension| extension == "parquet")
}

/// The last file, by name, of the last partition that has one.
fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(folder)(error)),
    };
    let mut places = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed(folder))?;
    places.sort();
    while let Some(place) = places.pop() {
        if own(&place)?.is_some_and(|there| there.is_dir()) {
            if let Some(newest) = newest(&place)? {
                return Ok(Some(newest));
            }
        } else if is_parquet(&place) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
