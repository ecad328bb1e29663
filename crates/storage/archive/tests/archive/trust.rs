//! Restoring returns the log that was stored or an error, even if another object has a segment's name. Concurrent runs
//! never leave a copy of the manifest that is older than the manifest.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use binlogz_archive::create::Creator;
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::storage::{ArchiveStorage, ListedObject, ManifestBytes, ReadRange};
use binlogz_archive::{Result, check, restore};
use binlogz_flow::BoundaryMoment;
use binlogz_testkit::{corpus, mutate};

fn add(storage: &dyn ArchiveStorage, name: &str, log: &[u8]) -> FileEntry {
    let mut told = |_: &_| {};
    let mut creator = Creator::new(storage, 1, &mut told).unwrap();
    creator.add(name, Arc::new(log.to_vec())).unwrap();
    creator.finish().unwrap();
    entry(storage, name)
}

fn entry(storage: &dyn ArchiveStorage, name: &str) -> FileEntry {
    let manifest = Manifest::read(storage).unwrap().unwrap();
    manifest.files.into_iter().find(|file| file.name == name).unwrap()
}

fn sample(name: &str) -> Vec<u8> {
    corpus::samples().into_iter().find(|sample| sample.name == name).unwrap().read()
}

/// A log and another one of the same size.
fn two_logs() -> [Vec<u8>; 2] {
    let log = sample("samples/plain/binlog.000004");
    let mut other = log.clone();
    other[300] ^= 1;
    mutate::mend_checksums(&mut other);
    [log, other]
}

#[test]
fn another_logs_segment_under_the_right_name_is_refused() {
    let [log, other] = two_logs();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [right, wrong] = dirs.each_ref().map(|dir| ArchiveFolder::new(dir.path()));
    let (entry, of_other) = (add(&right, "binlog.000003", &log), add(&wrong, "binlog.000003", &other));
    assert!(entry.size == of_other.size && entry.sha256 != of_other.sha256);
    let object = |dir: usize, entry: &FileEntry| dirs[dir].path().join("objects").join(&entry.objects[0]);
    std::fs::copy(object(1, &of_other), object(0, &entry)).unwrap();

    let error = restore::whole(&right, &entry, &mut std::io::sink(), 1).unwrap_err().to_string();
    assert_eq!(error, format!("SHA-256 is {}, expected {}", of_other.sha256, entry.sha256));
    let manifest = Manifest::read(&right).unwrap().unwrap();
    let problems = check::check(&right, &manifest, 1).unwrap();
    assert!(problems.len() == 1 && problems[0].contains(&of_other.sha256), "{problems:?}");
}

/// Chosen transactions have no SHA-256: the segment must agree with the manifest.
#[test]
fn transactions_are_not_chosen_from_another_logs_segment() {
    let logs = ["binlog.000003", "binlog.000004"].map(|name| std::fs::read(corpus::path(name)).unwrap());
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [right, wrong] = dirs.each_ref().map(|dir| ArchiveFolder::new(dir.path()));
    let entries = [add(&right, "binlog.000003", &logs[0]), add(&wrong, "binlog.000003", &logs[1])];
    assert!(entries[0].gtids != entries[1].gtids && !entries[1].gtids.is_empty());
    let object = |place: usize| dirs[place].path().join("objects").join(&entries[place].objects[0]);
    std::fs::copy(object(1), object(0)).unwrap();
    let all = TransactionSelection {
        start: Some(BoundaryMoment::of_microseconds(0)),
        ..TransactionSelection::default()
    };
    let mut out = || Ok(Box::new(std::io::sink()) as Box<dyn Write>);
    let error = restore::chosen(&right, &entries[0], &all, 1, &mut out).unwrap_err().to_string();
    assert!(error.starts_with("set of GTIDs of its blocks is "), "{error}");
}

#[test]
fn payloads_of_another_codec_are_an_error_that_names_both() {
    let dir = tempfile::tempdir().unwrap();
    let storage = ArchiveFolder::new(dir.path());
    let entry = add(&storage, "binlog.000004", &sample("samples/compressed/binlog.000004"));
    let ours = entry.payload_codec.clone().unwrap();
    restore::verify(&storage, &entry, 1).unwrap();
    let other = FileEntry { payload_codec: Some("libzstd 1.4.9".into()), ..entry.clone() };
    let error = restore::whole(&storage, &other, &mut std::io::sink(), 1).unwrap_err().to_string();
    assert!(error.contains("by libzstd 1.4.9,") && error.contains(&ours), "{error}");
    // Once expanded, they need no codec.
    let all = TransactionSelection {
        start: Some(BoundaryMoment::of_microseconds(0)),
        ..TransactionSelection::default()
    };
    let mut out = || Ok(Box::new(std::io::sink()) as Box<dyn Write>);
    assert!(restore::chosen(&storage, &other, &all, 1, &mut out).unwrap().transactions > 0);
}

/// Another run archives a log after this one stores its manifest and before it stores the copy.
struct Overtaken<'a> {
    storage: &'a ArchiveFolder,
    log: Vec<u8>,
    done: AtomicBool,
}

impl ArchiveStorage for Overtaken<'_> {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.storage.put(name, write)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        self.storage.get(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.storage.delete(name)
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        self.storage.stored()
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        self.storage.manifest()
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        self.storage.put_manifest(manifest, replaces)?;
        if !self.done.swap(true, Ordering::Relaxed) {
            add(self.storage, "of-another-run.000001", &self.log);
        }
        Ok(())
    }
}

fn copy(dir: &tempfile::TempDir) -> Vec<u8> {
    std::fs::read(dir.path().join("objects/manifest-copy.json")).unwrap()
}

#[test]
fn a_run_that_was_overtaken_does_not_put_an_older_copy_over_a_newer_one() {
    let [log, other] = two_logs();
    let dir = tempfile::tempdir().unwrap();
    let folder = ArchiveFolder::new(dir.path());
    let storage = Overtaken { storage: &folder, log: other, done: AtomicBool::new(false) };
    add(&storage, "binlog.000003", &log);
    let manifest = std::fs::read(dir.path().join("manifest.json")).unwrap();
    assert_eq!(Manifest::read(&folder).unwrap().unwrap().files.len(), 2);
    assert!(copy(&dir) == manifest, "the copy is an older manifest");
}

#[test]
fn of_runs_at_once_none_loses_a_log_and_the_copy_is_the_last_manifest() {
    const RUNS: usize = 4;
    let [log, _] = two_logs();
    let dir = tempfile::tempdir().unwrap();
    let begin = Barrier::new(RUNS);
    std::thread::scope(|scope| {
        for run in 0..RUNS {
            let (dir, log, begin) = (dir.path(), &log, &begin);
            scope.spawn(move || {
                let storage = ArchiveFolder::new(dir);
                begin.wait();
                for number in 1..=3 {
                    add(&storage, &format!("run-{run}.{number:06}"), log);
                }
            });
        }
    });
    let folder = ArchiveFolder::new(dir.path());
    let manifest = Manifest::read(&folder).unwrap().unwrap();
    assert_eq!(manifest.files.len(), 3 * RUNS);
    assert!(copy(&dir) == std::fs::read(dir.path().join("manifest.json")).unwrap());
}
