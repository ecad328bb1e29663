//! The place of the data sets: a folder, or object storage. Both hold the same files, and in both a run counts once its manifest
//! is there.
//!
//! ```text
//! TO/DATABASE/TABLE/day=2026-11-24/00000042-0.parquet    a file of run 42
//! TO/_transactions/day=2026-11-24/00000042-0.parquet
//! TO/views.sql
//! TO/_binlogz/00000042.json                              the manifest of run 42: with it, the run counts
//! TO/_binlogz/last                                       which run was the last one
//! ```
//!
//! Readers of data sets skip what begins with `_` or `.`.

mod bucket;
mod folder;

use std::path::{Path, PathBuf};

use binlogz_archive::storage;
use binlogz_atomic_file::TemporaryFolder;
use datafusion::arrow::datatypes::SchemaRef;

use self::bucket::Bucket;
use self::folder::ExportFolder;
use super::history::{RunHistory, run_mark};
use super::manifest::ExportManifest;
use crate::error::{Error, Result};

/// The folder of the files that are not data.
const CONTROL: &str = "_binlogz";
const VIEWS: &str = "views.sql";
/// The record of the last run, in the folder of the files that are not data.
const LAST: &str = "last";

/// Notes for the owner of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TargetNews {
    /// Files that were deleted since that was last reported.
    pub(super) deleted: u64,
    /// Whether its manifests were taken as they are: a version without checksums wrote them.
    pub(super) is_taken_over: bool,
}

/// Refuses a text that was meant as an address, but would be made a folder.
fn is_no_address(to: &Path) -> Result<()> {
    storage::refuse_addresses(&to.to_string_lossy()).map_err(|error| Error::Target(error.to_string()))
}

/// A target that this run writes to.
#[derive(Debug)]
pub(super) enum ExportTarget {
    /// One that no other run writes to.
    Folder(ExportFolder),
    /// One that others may write to: the first that stores its manifest wins.
    Bucket(Bucket),
}

impl ExportTarget {
    /// Opens a target, and makes it if it isn't there.
    pub(super) fn open(to: &Path) -> Result<Self> {
        is_no_address(to)?;
        match storage::in_object_storage(to) {
            Some(_) => Ok(ExportTarget::Bucket(Bucket::open(to)?)),
            None => Ok(ExportTarget::Folder(ExportFolder::open(to)?)),
        }
    }

    /// The manifest of the last run, of a target that may not exist.
    pub(super) fn last(to: &Path) -> Result<Option<ExportManifest>> {
        is_no_address(to)?;
        match storage::in_object_storage(to) {
            Some(_) => Bucket::open(to)?.last(),
            None => ExportFolder::last(to),
        }
    }

    /// Cleans up after a killed run, as far as its files are certain, and returns the manifest of the last run.
    pub(super) fn recover(&mut self) -> Result<Option<ExportManifest>> {
        match self {
            ExportTarget::Folder(folder) => folder.recover(),
            ExportTarget::Bucket(bucket) => bucket.recover(),
        }
    }

    /// Notes about a target that was recovered. They are recorded, so that each is reported once.
    pub(super) fn news(&mut self) -> Result<TargetNews> {
        let history = self.history();
        let news = match history.told_deleted() {
            Some(told) => TargetNews { deleted: history.deleted.saturating_sub(told), is_taken_over: false },
            None => TargetNews { deleted: 0, is_taken_over: history.is_unchecked() },
        };
        match self {
            ExportTarget::Folder(folder) => folder.record()?,
            ExportTarget::Bucket(bucket) => bucket.record()?,
        }
        Ok(news)
    }

    fn history(&self) -> &RunHistory {
        match self {
            ExportTarget::Folder(folder) => &folder.history,
            ExportTarget::Bucket(bucket) => &bucket.history,
        }
    }

    /// The hash by which the next manifest names the one before it; `None`: there is none yet.
    pub(super) fn previous(&self) -> Option<String> {
        self.history().previous()
    }

    /// A folder for the files of a new run; it is gone if the run ends without them.
    pub(super) fn begin(&self) -> Result<TemporaryFolder> {
        match self {
            ExportTarget::Folder(folder) => folder.begin(),
            ExportTarget::Bucket(bucket) => bucket.begin(),
        }
    }

    /// How the names of a run's files begin.
    pub(super) fn file_prefix(&self, run: u64) -> String {
        match self {
            ExportTarget::Folder(_) => run_mark(run),
            ExportTarget::Bucket(bucket) => bucket.file_prefix(run),
        }
    }

    /// Makes a run count, and gives its files their names.
    pub(super) fn commit(&mut self, staging: TemporaryFolder, manifest: &ExportManifest) -> Result<()> {
        match self {
            ExportTarget::Folder(folder) => folder.commit(staging, manifest),
            ExportTarget::Bucket(bucket) => bucket.commit(&staging, manifest),
        }
    }

    /// The columns of a data set's newest file; `None`: it has none.
    pub(super) fn newest_schema(&self, data_set: &str) -> Result<Option<SchemaRef>> {
        match self {
            ExportTarget::Folder(folder) => folder.newest_schema(data_set),
            ExportTarget::Bucket(bucket) => bucket.newest_schema(data_set),
        }
    }
}

fn manifest_name(run: u64) -> String {
    format!("{}.json", run_mark(run))
}

/// The run whose manifest has this name.
fn run_of(name: &str) -> Option<u64> {
    let run = name.strip_suffix(".json")?.parse().ok()?;
    (manifest_name(run) == name).then_some(run)
}

fn not_ours(place: &str) -> Error {
    Error::Target(format!(
        "{place}: is not empty, and not a folder of exports; expected one, or an empty folder"
    ))
}

/// Ends the process as `kill -9` would, where a test asks for it.
fn fail_point(name: &str) {
    if cfg!(debug_assertions) && std::env::var("BINLOGZ_EXPORT_DIES_AT").is_ok_and(|wanted| wanted == name) {
        std::process::abort();
    }
}

fn failed(place: &Path) -> impl Fn(std::io::Error) -> Error + use<> {
    let place: PathBuf = place.to_owned();
    move |error| Error::Target(format!("{}: {error}", place.display()))
}
