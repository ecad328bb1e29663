//! Whatever ends a run, an archive either lacks the new logs or has them whole; and a flipped bit anywhere is
//! found.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::storage::{ArchiveStorage, ListedObject, ManifestBytes, ReadRange};
use binlogz_archive::{Error, Result, check, remove, restore};
use binlogz_atomic_file::AtomicFile;
use binlogz_testkit::corpus;

const NAMES: [&str; 2] = ["binlog.000003", "binlog.000004"];

pub(crate) fn log(name: &str) -> Vec<u8> {
    std::fs::read(corpus::path(name)).unwrap()
}

pub(crate) fn create(storage: &dyn ArchiveStorage, names: &[&str]) -> Result<()> {
    let mut told = |_: &_| {};
    let mut creator = Creator::new(storage, 1, &mut told)?;
    names.iter().try_for_each(|name| creator.add(name, Arc::new(log(name))))?;
    creator.finish().map(drop)
}

pub(crate) fn names_of(objects: &[ListedObject]) -> Vec<String> {
    objects.iter().map(|object| object.name.clone()).collect()
}

/// The names of the stored logs, each of which comes back.
#[track_caller]
pub(crate) fn whole(storage: &dyn ArchiveStorage) -> Vec<String> {
    let manifest = Manifest::read(storage).unwrap().unwrap_or_default();
    for file in &manifest.files {
        let mut back = Vec::new();
        restore::whole(storage, file, &mut back, 1).unwrap();
        assert!(back == log(&file.name), "{}", file.name);
    }
    manifest.files.into_iter().map(|file| String::from(file.name)).collect()
}

/// Storage on which one operation, or the writing of some bytes, fails, and so does everything after it.
pub(crate) struct Failing<'a> {
    storage: &'a ArchiveFolder,
    left: AtomicUsize,
    /// Objects can't be deleted.
    is_locked: bool,
}

impl<'a> Failing<'a> {
    pub(crate) fn after(steps: usize, storage: &'a ArchiveFolder) -> Self {
        Failing { storage, left: AtomicUsize::new(steps), is_locked: false }
    }

    pub(crate) fn locked(storage: &'a ArchiveFolder) -> Self {
        Failing { is_locked: true, ..Failing::after(usize::MAX, storage) }
    }

    fn step(&self) -> Result<()> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| Error::writing(io::ErrorKind::StorageFull.into()))
    }
}

impl ArchiveStorage for Failing<'_> {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.step()?;
        self.storage.put(name, &mut |out| {
            let mut bytes = Vec::new();
            write(&mut bytes)?;
            for part in bytes.chunks(bytes.len().div_ceil(3).max(1)) {
                self.step()?;
                out.write_all(part).map_err(Error::writing)?;
            }
            self.step()
        })?;
        self.step()
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        self.step()?;
        self.storage.get(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.step()?;
        if self.is_locked {
            return Err(Error::writing(io::ErrorKind::PermissionDenied.into()));
        }
        self.storage.delete(name)?;
        self.step()
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        self.step()?;
        self.storage.stored()
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        self.step()?;
        self.storage.manifest()
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        self.step()?;
        self.storage.put_manifest(manifest, replaces)?;
        self.step()
    }
}

#[test]
fn a_run_that_fails_anywhere_leaves_the_archive_without_the_new_logs_or_with_them_whole() {
    let mut steps = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        let folder = ArchiveFolder::new(dir.path());
        create(&folder, &NAMES[..1]).unwrap();
        let done = create(&Failing::after(steps, &folder), &NAMES);
        let names = whole(&folder);
        match done {
            Ok(()) => {
                assert_eq!(names, NAMES);
                break;
            }
            Err(_) => assert!(names == NAMES[..1] || names == NAMES, "after {steps} steps: {names:?}"),
        }
        // The same command continues from there.
        create(&folder, &NAMES).unwrap();
        assert_eq!(whole(&folder), NAMES, "after {steps} steps");
        steps += 1;
    }
    assert!(steps > 7, "{steps}");
}

/// The manifest comes first: no log that it names loses an object, and leftovers are found.
#[test]
fn a_removal_that_fails_anywhere_leaves_the_other_logs_whole() {
    let mut steps = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        let folder = ArchiveFolder::new(dir.path());
        NAMES.iter().for_each(|name| create(&folder, &[name]).unwrap());
        let names = [NAMES[0].to_owned()];
        let failing = Failing::after(steps, &folder);
        let done = Manifest::read(&failing)
            .and_then(|manifest| remove::remove(&failing, manifest.unwrap_or_default(), &names));
        let left = whole(&folder);
        assert!(left == NAMES || left == NAMES[1..], "after {steps} steps: {left:?}");
        if left == NAMES {
            let manifest = Manifest::read(&folder).unwrap().unwrap();
            remove::remove(&folder, manifest, &names).unwrap();
        }
        let orphans = remove::orphans(&folder, SystemTime::now() + Duration::from_secs(1)).unwrap();
        remove::collect(&folder, &names_of(&orphans)).unwrap();
        assert_eq!(whole(&folder), NAMES[1..], "after {steps} steps");
        let objects = folder.stored().unwrap();
        assert_eq!(objects.len(), 2, "after {steps} steps: {objects:?}");
        if done.is_ok() {
            break;
        }
        steps += 1;
    }
    assert!(steps > 7, "{steps}");
}

#[test]
fn the_temporary_file_of_a_killed_run_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ArchiveFolder::new(dir.path());
    create(&folder, &NAMES[..1]).unwrap();
    // Forgotten, as if the process had been killed.
    std::mem::forget(AtomicFile::begin(&dir.path().join("objects/segment.binlogz"), 0o600));
    std::fs::write(dir.path().join("objects/.new-12-0"), "of an earlier build").unwrap();
    assert_eq!(folder.stored().unwrap().len(), 2 + 2, "an object, the copy of the manifest");
    let orphans = remove::orphans(&folder, SystemTime::now() + Duration::from_secs(1)).unwrap();
    remove::collect(&folder, &names_of(&orphans)).unwrap();
    assert_eq!(folder.stored().unwrap().len(), 2);
    assert_eq!(whole(&folder), NAMES[..1]);
}

#[test]
fn a_bit_that_flips_anywhere_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ArchiveFolder::new(dir.path());
    create(&folder, &NAMES[..1]).unwrap();
    let object =
        dir.path().join("objects").join(&Manifest::read(&folder).unwrap().unwrap().files[0].objects[0]);
    flip(&object, 60, |at| {
        let problems = check::check(&folder, &Manifest::read(&folder).unwrap().unwrap(), 1).unwrap();
        let name = object.file_name().unwrap().to_str().unwrap();
        // A CRC-32 detects every burst of 32 bits; the version and unused bytes are checked by their meaning.
        let [problem, ..] = problems.as_slice() else { panic!("a bit of byte {at} is not missed") };
        assert!(problem.starts_with("binlog.000003: ") && problem.contains(name), "byte {at}: {problem}");
    });
    let before = Manifest::read(&folder).unwrap();
    flip(&dir.path().join("manifest.json"), 400, |at| {
        if let Ok(read) = Manifest::read(&folder) {
            assert!(read.unwrap().files == before.as_ref().unwrap().files, "byte {at}");
        }
    });
    assert_eq!(whole(&folder), NAMES[..1]);
}

/// Flips a bit in `count` bytes of a file, including the first and the last, one after the other.
pub(crate) fn flip(path: &Path, count: usize, mut look: impl FnMut(usize)) {
    let bytes = std::fs::read(path).unwrap();
    let step = bytes.len().div_ceil(count);
    for at in (0..bytes.len()).step_by(step).chain(bytes.len().saturating_sub(24)..bytes.len()) {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(path, bad).unwrap();
        look(at);
    }
    std::fs::write(path, bytes).unwrap();
}
