//! The manifests of all runs as one history. Each names the SHA-256 of the one before it, and a record beside them that
//! of the last one. So a manifest that was changed, put back or taken away is an error, instead of a run that skips
//! transactions or exports them twice.
//!
//! ```text
//! _binlogz/last     {"run": 42, "manifest": "…", "deleted": 3, "sha256": "…"}
//!                   the last run, the SHA-256 of its manifest, how many files were gone; a checksum as manifests have it
//! ```
//!
//! The record is written after the manifest. A killed run may leave the record one run behind the manifests; it is never
//! ahead of them.
//!
//! Manifests of format 1 have no checksum. A history may begin with them: the record is written as soon as this version opens the
//! target for writing, and from then on they can't change either.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::sha256;
use super::manifest::{ExportManifest, checked, with_checksum};
use super::names::name_of;
use crate::error::{Error, Result};

/// The record of the last run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LastRun {
    run: u64,
    /// The SHA-256 of its manifest.
    manifest: String,
    /// Files of all runs that were gone when that was last reported: their owner deletes them.
    deleted: u64,
}

impl LastRun {
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        with_checksum(self).map_err(|error| Error::Target(error.to_string()))
    }

    fn decode(bytes: &[u8], place: &str) -> Result<Self> {
        let bad = |what: String| Error::Target(format!("{place}: {what}"));
        let object = checked(bytes).map_err(bad)?;
        let object =
            object.ok_or_else(|| bad("no checksum, expected \"sha256\" in the last line".to_owned()))?;
        serde_json::from_slice(&object).map_err(|error| bad(error.to_string()))
    }
}

/// The history told by the manifests of all runs, read one after the other.
#[derive(Debug, Default)]
pub(super) struct RunHistory {
    /// The record that is there, and where.
    recorded: Option<LastRun>,
    recorded_at: String,
    last: Option<ExportManifest>,
    /// The SHA-256 of the last manifest.
    hash: String,
    /// Files of all runs that are gone.
    pub(super) deleted: u64,
    /// Database and table of each data set, by its folder.
    tables: BTreeMap<String, [String; 2]>,
}

impl RunHistory {
    /// A history with only its record read, if there is one.
    pub(super) fn begin(record: Option<&[u8]>, place: String) -> Result<Self> {
        let recorded = record.map(|bytes| LastRun::decode(bytes, &place)).transpose()?;
        Ok(RunHistory { recorded, recorded_at: place, ..RunHistory::default() })
    }

    /// The next manifest; `run`: as its name tells. `place`: where it stands.
    pub(super) fn add(&mut self, run: u64, bytes: &[u8], place: &str) -> Result<&ExportManifest> {
        let bad = |what: String| Err(Error::Target(format!("{place}: {what}")));
        let next = self.last.as_ref().map_or(1, |last| last.run.saturating_add(1));
        if run != next {
            return bad(format!(
                "is run {run}, but the manifest of run {next} is gone; expected those of all runs"
            ));
        }
        let manifest = ExportManifest::decode(bytes, place)?;
        if manifest.run != run {
            return bad(format!("is the manifest of run {}, expected that of run {run}", manifest.run));
        }
        let mark = run_mark(run);
        if let Some(file) = manifest.files.iter().find(|file| !file.path.is_of(&mark)) {
            return bad(format!("names {}, expected files of run {run}: {mark}-…", file.path));
        }
        let before = self.last.as_ref().map(|_| self.hash.as_str());
        match manifest.is_unchecked() {
            true if self.last.as_ref().is_some_and(|last| !last.is_unchecked()) => {
                return bad(
                    "has no checksum, but that of the run before has one; expected format 2".to_owned()
                );
            }
            true => {}
            false if manifest.previous.as_deref() != before => {
                let named = manifest.previous.as_deref().unwrap_or("none");
                let there = before.unwrap_or("none");
                return bad(format!(
                    "names {named} as the SHA-256 of the manifest before it, but that is {there}; one of them was changed or put back"
                ));
            }
            false => {}
        }
        let hash = sha256(bytes);
        if let Some(recorded) = self.recorded.as_ref().filter(|recorded| recorded.run == run)
            && recorded.manifest != hash
        {
            let expected = &recorded.manifest;
            let record = &self.recorded_at;
            return bad(format!("the SHA-256 of the file is {hash}, expected {expected}, as {record} says"));
        }
        self.tables.extend(manifest.data_sets.clone());
        self.hash = hash;
        Ok(self.last.insert(manifest))
    }

    /// All manifests that are there were added.
    pub(super) fn end(&self) -> Result<()> {
        let bad = |what: String| Err(Error::Target(format!("{}: {what}", self.recorded_at)));
        let last = self.run();
        match &self.recorded {
            Some(recorded) if recorded.run > last => bad(format!(
                "the last run is {}, but the last manifest is that of run {last}; expected the manifests of all runs",
                recorded.run
            )),
            // The first run may have been killed before it wrote the record.
            None if last > 1 && !self.is_unchecked() => bad(format!(
                "is gone, so that nobody knows whether run {last} was the last one; expected the record of the last run"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// The number of the last run; 0: there was none.
    pub(super) fn run(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.run)
    }

    pub(super) fn last(&self) -> Option<&ExportManifest> {
        self.last.as_ref()
    }

    pub(super) fn into_last(self) -> Option<ExportManifest> {
        self.last
    }

    /// The SHA-256 that the next manifest names.
    pub(super) fn previous(&self) -> Option<String> {
        self.last.as_ref().map(|_| self.hash.clone())
    }

    /// Whether the last run is of a version that wrote no checksums.
    pub(super) fn is_unchecked(&self) -> bool {
        self.last.as_ref().is_some_and(ExportManifest::is_unchecked)
    }

    /// Files that were gone when that was last reported; `None`: there is no record of it.
    pub(super) fn told_deleted(&self) -> Option<u64> {
        self.recorded.as_ref().map(|recorded| recorded.deleted)
    }

    /// The record that has to be written, if the one that is there is another.
    pub(super) fn record(&mut self) -> Option<LastRun> {
        let last = self.last.as_ref()?;
        let record = LastRun { run: last.run, manifest: self.hash.clone(), deleted: self.deleted };
        (self.recorded.as_ref() != Some(&record)).then(|| self.recorded.insert(record).clone())
    }

    /// Database and table of a data set's folder.
    pub(super) fn table(&self, folder: &str) -> [String; 2] {
        if let Some(table) = self.tables.get(folder) {
            return table.clone();
        }
        let (database, table) = folder.split_once('/').unwrap_or((folder, ""));
        [name_of(database), name_of(table)]
    }
}

/// How the names of a run's files and of its manifest begin.
pub(super) fn run_mark(run: u64) -> String {
    format!("{run:08}")
}
