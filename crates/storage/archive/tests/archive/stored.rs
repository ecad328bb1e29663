//! Checks that the tests of every kind of storage share: the manifest, and that its logs come back.

use binlogz_archive::format::Manifest;
use binlogz_archive::restore;
use binlogz_archive::storage::ArchiveStorage;

use crate::faults::log;

pub(crate) fn manifest(storage: &dyn ArchiveStorage) -> Manifest {
    Manifest::read(storage).unwrap().unwrap_or_default()
}

/// All its logs are there, whole.
#[track_caller]
pub(crate) fn holds(storage: &dyn ArchiveStorage, names: &[&str]) {
    let manifest = manifest(storage);
    assert_eq!(manifest.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), names);
    for file in &manifest.files {
        let mut back = Vec::new();
        restore::whole(storage, file, &mut back, 1).unwrap();
        assert!(back == log(&file.name), "{}", file.name);
    }
}
