//! Data sets in object storage. Nothing is renamed there, so a run's files have their names from the beginning, and the
//! run counts once its manifest is stored:
//!
//! ```text
//! TO/_binlogz/unfinished-00000042-9f3a….json              the files that the run is about to store
//! TO/shop/orders/day=2026-11-24/00000042-9f3a…-0.parquet   its files: the run's own mark is in their names
//! TO/_binlogz/00000042.json                               the manifest, stored only if there is none: the run counts
//! TO/_binlogz/last                                         the record of the last run, see `history`
//! TO/views.sql                                            names the files of all manifests, and no others
//! ```
//!
//! Of two runs that take the same number, the service lets one store its manifest; the other removes its files. Files of a
//! killed run are named in its list, and are removed by a later run whose number shows that its manifest can't come any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use binlogz_archive::Error as ArchiveError;
use binlogz_archive::storage::{ReadRange, S3Files};
use binlogz_atomic_file::{self as atomic_file, TemporaryFolder};
use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use serde::{Deserialize, Serialize};

use super::super::history::{RunHistory, run_mark};
use super::super::manifest::ExportManifest;
use super::super::names::DataPath;
use super::super::views;
use super::{CONTROL, LAST, VIEWS, fail_point, manifest_name, run_of};
use crate::error::{Error, Result};

/// How names of lists of files begin that are being stored.
const UNFINISHED: &str = "unfinished-";
/// How the name of the folder begins in which a run's files are made.
const STAGING: &str = ".binlogz-export-";
/// The version of those lists.
const UNFINISHED_FORMAT: u32 = 1;
/// Bytes of a run's own mark.
const MARK_SIZE: usize = 6;
/// Files stored at once.
const UPLOADS_MAX: usize = 4;

/// A place in object storage.
#[derive(Debug)]
pub(crate) struct Bucket {
    files: S3Files,
    /// A mark that tells this process's files from those of others.
    mark: String,
    pub(super) history: RunHistory,
    /// The manifests of all runs.
    manifests: BTreeMap<u64, ExportManifest>,
}

/// The files of a run, written before they are stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnfinishedFiles {
    format: u32,
    run: u64,
    files: Vec<DataPath>,
}

fn failed(error: ArchiveError) -> Error {
    Error::Target(error.to_string())
}

impl Bucket {
    pub(super) fn open(to: &Path) -> Result<Self> {
        let files = S3Files::at(to).map_err(failed)?;
        let files =
            files.ok_or_else(|| Error::Target(format!("{}: expected s3://BUCKET/PREFIX", to.display())))?;
        let mut mark = [0; MARK_SIZE];
        getrandom::fill(&mut mark).map_err(|error| Error::Target(format!("random number: {error}")))?;
        let mark = mark.iter().map(|byte| format!("{byte:02x}")).collect();
        let history = RunHistory::default();
        let manifests = BTreeMap::new();
        Ok(Bucket { files, mark, history, manifests })
    }

    fn place(&self, path: &str) -> String {
        format!("{}/{path}", self.files.place())
    }

    /// The names of the files that are not data.
    fn control(&self) -> Result<Vec<String>> {
        let listed = self.files.list(CONTROL).map_err(failed)?;
        let prefix = format!("{CONTROL}/");
        Ok(listed.iter().filter_map(|path| Some(path.strip_prefix(&prefix)?.to_owned())).collect())
    }

    /// The manifest of the last run.
    pub(super) fn last(mut self) -> Result<Option<ExportManifest>> {
        self.read_manifests()?;
        Ok(self.history.into_last())
    }

    /// Reads all manifests, and returns the names of the files that are not data.
    fn read_manifests(&mut self) -> Result<Vec<String>> {
        let last = format!("{CONTROL}/{LAST}");
        // Before the manifests are listed: another run may end meanwhile, and its record is never before its manifest.
        let record = self.files.get(&last).map_err(failed)?;
        let mut history = RunHistory::begin(record.as_deref(), self.place(&last))?;
        let control = self.control()?;
        let runs: BTreeSet<u64> = control.iter().filter_map(|name| run_of(name)).collect();
        self.manifests.clear();
        for run in runs {
            let path = format!("{CONTROL}/{}", manifest_name(run));
            let bytes = self
                .files
                .get(&path)
                .map_err(failed)?
                .ok_or_else(|| Error::Target(format!("{}: is gone", self.place(&path))))?;
            let manifest = history.add(run, &bytes, &self.place(&path))?;
            self.manifests.insert(run, manifest.clone());
        }
        history.end()?;
        self.history = history;
        Ok(control)
    }

    pub(super) fn recover(&mut self) -> Result<Option<ExportManifest>> {
        let control = self.read_manifests()?;
        if self.history.run() > 0 {
            self.sweep(&control)?;
            self.history.deleted = self.write_views()?;
        }
        Ok(self.history.last().cloned())
    }

    /// Writes the record of the last run, if it changed.
    pub(super) fn record(&mut self) -> Result<()> {
        let Some(record) = self.history.record() else { return Ok(()) };
        let bytes = record.encode()?;
        self.files.put(&format!("{CONTROL}/{LAST}"), &mut bytes.as_slice()).map_err(failed)
    }

    /// Removes the files of runs that did not count and can't any more: each run's number is taken by a manifest.
    fn sweep(&self, control: &[String]) -> Result<()> {
        let last = self.history.run();
        let counted: BTreeSet<&DataPath> = self.paths().collect();
        for name in control.iter().filter(|name| name.starts_with(UNFINISHED)) {
            let path = format!("{CONTROL}/{name}");
            let Some(bytes) = self.files.get(&path).map_err(failed)? else { continue };
            let list: UnfinishedFiles = serde_json::from_slice(&bytes)
                .map_err(|error| Error::Target(format!("{}: {error}", self.place(&path))))?;
            if list.run > last {
                continue;
            }
            // The list's own name tells the mark of its files.
            let mark = name
                .strip_prefix(UNFINISHED)
                .and_then(|name| name.strip_suffix(".json"))
                .filter(|mark| mark.starts_with(&run_mark(list.run)))
                .unwrap_or_default();
            if let Some(other) = list.files.iter().find(|file| mark.is_empty() || !file.is_of(mark)) {
                let what = format!("names {other}, expected files of its own run");
                return Err(Error::Target(format!("{}: {what}", self.place(&path))));
            }
            for file in list.files.iter().filter(|file| !counted.contains(file)) {
                self.files.delete(file.as_str()).map_err(failed)?;
            }
            self.files.delete(&path).map_err(failed)?;
        }
        Ok(())
    }

    /// The files of all runs.
    fn paths(&self) -> impl Iterator<Item = &DataPath> {
        self.manifests.values().flat_map(|manifest| &manifest.files).map(|file| &file.path)
    }

    /// The files are made in a folder of this machine.
    pub(super) fn begin(&self) -> Result<TemporaryFolder> {
        let folder = std::env::temp_dir();
        // Those of killed exports. If they can't be listed, making ours says why.
        let _ = atomic_file::remove_abandoned(&folder, STAGING);
        TemporaryFolder::begin(&folder, STAGING)
            .map_err(|error| Error::Target(format!("{}: {error}", folder.display())))
    }

    pub(super) fn file_prefix(&self, run: u64) -> String {
        format!("{}-{}", run_mark(run), self.mark)
    }

    pub(super) fn commit(&mut self, staging: &TemporaryFolder, manifest: &ExportManifest) -> Result<()> {
        let prefix = self.file_prefix(manifest.run);
        let list_path = format!("{CONTROL}/{UNFINISHED}{prefix}.json");
        let files = manifest.files.iter().map(|file| file.path.clone()).collect();
        let list = UnfinishedFiles { format: UNFINISHED_FORMAT, run: manifest.run, files };
        let list = serde_json::to_vec_pretty(&list).map_err(|error| Error::Target(error.to_string()))?;
        fail_point("staged");
        self.files.put_new(&list_path, &list).map_err(failed)?;
        fail_point("listed");
        self.store(staging.path(), manifest)?;
        fail_point("moved");
        wait_for_another();
        let path = format!("{CONTROL}/{}", manifest_name(manifest.run));
        let bytes = manifest.encode(&self.place(&path))?;
        match self.files.put_new(&path, &bytes) {
            Ok(()) => {}
            Err(ArchiveError::Changed) => {
                for file in &manifest.files {
                    self.files.delete(file.path.as_str()).map_err(failed)?;
                }
                self.files.delete(&list_path).map_err(failed)?;
                let what = "another export stored its run first; nothing was exported, run it again";
                return Err(Error::Target(format!("{}: {what}", self.place(&path))));
            }
            Err(error) => return Err(failed(error)),
        }
        fail_point("committed");
        self.history.add(manifest.run, &bytes, &self.place(&path))?;
        self.manifests.insert(manifest.run, manifest.clone());
        self.record()?;
        fail_point("recorded");
        self.write_views()?;
        fail_point("published");
        // Its own list among them.
        self.sweep(&self.control()?)
    }

    /// Stores a run's files, some at once.
    fn store(&self, staging: &Path, manifest: &ExportManifest) -> Result<()> {
        let next = AtomicUsize::new(0);
        let trouble = Mutex::new(None);
        let work = || {
            let has_failed = || trouble.lock().is_some();
            while let Some(file) = manifest.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let place = staging.join(file.staged.as_str());
                let stored = File::open(&place)
                    .map_err(|error| Error::Target(format!("{}: {error}", place.display())))
                    .and_then(|mut bytes| self.files.put(file.path.as_str(), &mut bytes).map_err(failed));
                if let Err(error) = stored {
                    *trouble.lock() = Some(error);
                }
                if has_failed() {
                    return;
                }
                fail_point("stored");
            }
        };
        thread::scope(|scope| (0..UPLOADS_MAX).for_each(|_| drop(scope.spawn(work))));
        trouble.into_inner().map_or(Ok(()), Err)
    }

    /// Writes the views of the files that count and are still there; tells how many are not.
    fn write_views(&self) -> Result<u64> {
        let there: BTreeSet<String> = self.files.list("").map_err(failed)?.into_iter().collect();
        let (files, deleted): (Vec<_>, Vec<_>) = self.paths().partition(|path| there.contains(path.as_str()));
        let mut sets: BTreeMap<&str, Vec<&DataPath>> = BTreeMap::new();
        files.into_iter().for_each(|path| sets.entry(path.data_set()).or_default().push(path));
        let sets =
            sets.into_iter().map(|(set, files)| (self.history.table(set), set.to_owned(), files)).collect();
        let text = views::of_files(&self.files.place(), sets);
        if self.files.get(VIEWS).map_err(failed)?.is_none_or(|there| there != text.as_bytes()) {
            self.files.put(VIEWS, &mut text.as_bytes()).map_err(failed)?;
        }
        Ok(deleted.len() as u64)
    }

    pub(super) fn newest_schema(&self, data_set: &str) -> Result<Option<SchemaRef>> {
        for manifest in self.manifests.values().rev() {
            let of_set = manifest.files.iter().find(|file| file.path.data_set() == data_set);
            let Some(path) = of_set.map(|file| file.path.as_str()) else { continue };
            let failed =
                |error: &dyn std::fmt::Display| Error::Target(format!("{}: {error}", self.place(path)));
            let file = match self.files.open(path) {
                Ok(file) => Object { size: file.size().map_err(|error| failed(&error))?, file: file.into() },
                // Deleted by its owner; an older one may be there.
                Err(error) if !error.may_pass() => continue,
                Err(error) => return Err(failed(&error)),
            };
            let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
            return Ok(Some(metadata.map_err(|error| failed(&error))?.schema().clone()));
        }
        Ok(None)
    }
}

/// A stored file, for Parquet's reader.
struct Object {
    file: Arc<dyn ReadRange>,
    size: u64,
}

impl Length for Object {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Object {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let size = usize::try_from(self.size.saturating_sub(start)).unwrap_or(usize::MAX);
        Ok(Box::new(Cursor::new(self.get_bytes(start, size)?)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let read = self.file.read(start, length);
        read.map(Bytes::from).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// Waits until another run stored its manifest, where a test asks for it.
fn wait_for_another() {
    if cfg!(debug_assertions)
        && let Some(place) = std::env::var_os("BINLOGZ_EXPORT_WAITS_FOR")
    {
        while !Path::new(&place).exists() {
            thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
