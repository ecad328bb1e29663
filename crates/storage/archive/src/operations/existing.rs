//! Opens archives that have to be there, and says what is there instead.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::format::{Manifest, NO_MANIFEST};
use crate::storage::{self, ArchiveStorage, KeySource, Manner};

/// Opens the archive at a place; objects are stored in this manner.
///
/// # Errors
///
/// There is no archive, or it can't be read.
pub fn open(place: &Path, manner: &Manner) -> Result<(Box<dyn ArchiveStorage>, Manifest)> {
    let storage = storage_at(place, manner)?;
    match Manifest::read(&storage)? {
        Some(manifest) => Ok((storage, manifest)),
        // Object storage has no folders.
        None if !place.to_string_lossy().contains("://") && !place.exists() => {
            Err(Error::NoArchive("there is no such folder, expected an archive"))
        }
        None => Err(Error::NoArchive(NO_MANIFEST)),
    }
}

/// The storage at a place, whether or not there is an archive yet; objects are stored in this manner.
///
/// # Errors
///
/// The place is a file, or can't be opened.
pub fn storage_at(place: &Path, manner: &Manner) -> Result<Box<dyn ArchiveStorage>> {
    if place.is_file() {
        return Err(Error::NoArchive("is a file, expected an archive's folder"));
    }
    Ok(Box::new(storage::with_key(place, KeySource::from_environment(), manner)?))
}

/// The archives at a place and below it; there is one at least. With a limit, object storage that doesn't answer is an error in
/// that time.
///
/// # Errors
///
/// There is none, or the place can't be listed.
pub fn archives_at(place: &Path, limit: Option<Duration>) -> Result<Vec<PathBuf>> {
    if storage::in_object_storage(place).is_none() && !place.exists() {
        open(place, &Manner::default())?;
    }
    let archives = storage::archives(place, limit)?;
    match archives.is_empty() {
        true => Err(Error::NoArchive("is no archive: neither it nor a place below it has a manifest.json")),
        false => Ok(archives),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_instead_of_an_archive_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let said = |place: &Path| open(place, &Manner::default()).err().unwrap().to_string();
        assert_eq!(said(folder.path()), "is no archive: it has no manifest.json");
        assert_eq!(said(&file), "is a file, expected an archive's folder");
        assert_eq!(said(&folder.path().join("none")), "there is no such folder, expected an archive");
        let below = |place: &Path| archives_at(place, None).unwrap_err().to_string();
        assert_eq!(
            below(folder.path()),
            "is no archive: neither it nor a place below it has a manifest.json"
        );
        assert_eq!(below(&folder.path().join("none")), "there is no such folder, expected an archive");
    }
}
