//! Where an archive is kept: immutable objects and one manifest, the only thing that is replaced. [`folder`]
//! keeps them as files, `object_storage` in S3, Azure or Google Cloud; [`encrypted`] encrypts them before either gets them.
//!
//! ```text
//! PLACE/manifest.json     what the archive holds; replaced last, and only if it is still the expected one
//! PLACE/objects/NAME      whole or absent; NAME ends with .binlogz, but for the manifest's copy and the record of checks
//! ```

mod command;
pub mod encrypted;
mod folder;
mod names;
#[cfg(not(feature = "s3"))]
mod no_s3;
#[cfg(feature = "s3")]
mod object_storage;
mod place;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::error::{Error, Result};

pub use encrypted::{EncryptedStorage, KeySource};
pub use folder::ArchiveFolder;
pub(crate) use names::name_tells;
pub use names::{LogName, ObjectName};
#[cfg(not(feature = "s3"))]
pub use no_s3::NoS3Files as S3Files;
#[cfg(feature = "s3")]
pub use object_storage::{ObjectStorage, Patience, S3Files};
pub use place::{ObjectPlace, StorageService, refuse_addresses};

/// The manifest's name.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The copy of the manifest, stored beside the objects: written after the manifest, read if the manifest is damaged.
pub(crate) const COPY: &str = "manifest-copy.json";
/// The first part of objects' names.
pub(crate) const OBJECTS: &str = "objects";
/// The findings of the archive's last checks, stored beside the objects.
pub(crate) const LAST_CHECK: &str = "last-check.json";
/// How the names of segments begin.
pub(crate) const SEGMENT: &str = "segment-";

/// Storage for objects that never change and a manifest that names them.
pub trait ArchiveStorage: Send + Sync {
    /// Stores an object whole or not at all; `write` writes its bytes. It is durable when this returns.
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()>;
    /// Opens an existing object.
    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>>;
    /// Deletes an object. It is no error if the object does not exist.
    fn delete(&self, name: &str) -> Result<()>;
    /// Deletes objects, several at once. Returns those that can't be deleted.
    fn delete_all(&self, names: &[&str]) -> Vec<(String, Error)> {
        delete_each(self, names)
    }
    /// All objects and unfinished uploads or files.
    fn stored(&self) -> Result<Vec<ListedObject>>;
    /// The manifest; `None` if there is no archive yet.
    fn manifest(&self) -> Result<Option<ManifestBytes>>;
    /// Replaces the manifest, whole or not at all, if it is still the one in `replaces` (`None`: there was
    /// none). Otherwise does nothing and returns [`Error::Changed`]. It is durable when this returns.
    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()>;
    /// Replaces the copy by the stored manifest: these bytes, unless another run has replaced them.
    fn copy_manifest(&self, manifest: &[u8]) -> Result<()> {
        self.put(COPY, &mut |out| out.write_all(manifest).map_err(Error::io("write")))
    }
    /// Whether the copy is known to have these bytes, which are those of the stored manifest.
    fn has_copy_of(&self, manifest: &[u8]) -> bool {
        self.get(COPY).and_then(|copy| copy.read(0, copy.size()? as usize)).is_ok_and(|copy| copy == manifest)
    }
    /// Runs `work` while no other run replaces the manifest, if the storage can ensure that; `work` must not
    /// replace it.
    fn alone(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        work()
    }
    /// Whether objects are encrypted before they are stored.
    ///
    /// # Errors
    ///
    /// An archive that can't be read.
    fn is_encrypted(&self) -> Result<bool> {
        Ok(false)
    }
}

/// A manifest may be large, and is shared by those that know it.
pub type ManifestBytes = Arc<Vec<u8>>;

/// An object, as a storage lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Name of the object.
    pub name: String,
    /// Size of the object in bytes.
    pub size: u64,
    /// When the object was stored.
    pub at: SystemTime,
}

/// Bytes that can be read at any offset: a file, or an object by range requests.
pub trait ReadRange: Send + Sync {
    /// The number of bytes.
    fn size(&self) -> Result<u64>;
    /// Reads exactly these bytes.
    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>>;
    /// Reads them in place of the bytes in `into`: a caller that reads much needs no new memory each time.
    fn read_into(&self, offset: u64, size: usize, into: &mut Vec<u8>) -> Result<()> {
        *into = self.read(offset, size)?;
        Ok(())
    }
    /// Tells which ranges will be read next, in ascending order: those near each other may come together.
    fn expect(&self, _: &[Range<u64>]) {}
    /// Drops bytes that were read ahead and that nobody waits for.
    fn forget(&self) {}
}

/// Objects that are deleted at once: object storage answers after some time.
const DELETED_AT_ONCE: usize = 8;

/// Deletes objects by a call each. Returns those that can't be deleted.
fn delete_each<S: ArchiveStorage + ?Sized>(storage: &S, names: &[&str]) -> Vec<(String, Error)> {
    let left = Mutex::new(names.iter());
    let failed = Mutex::new(Vec::new());
    let next = || left.lock().next();
    thread::scope(|scope| {
        for _ in 0..DELETED_AT_ONCE.min(names.len()) {
            scope.spawn(|| {
                while let Some(name) = next() {
                    if let Err(error) = storage.delete(name) {
                        let mut failed = failed.lock();
                        failed.push(((*name).to_owned(), error));
                    }
                }
            });
        }
    });
    failed.into_inner()
}

impl<S: ArchiveStorage + ?Sized> ArchiveStorage for Box<S> {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        (**self).put(name, write)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        (**self).get(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        (**self).delete(name)
    }

    fn delete_all(&self, names: &[&str]) -> Vec<(String, Error)> {
        (**self).delete_all(names)
    }

    fn stored(&self) -> Result<Vec<ListedObject>> {
        (**self).stored()
    }

    fn manifest(&self) -> Result<Option<ManifestBytes>> {
        (**self).manifest()
    }

    fn put_manifest(&self, manifest: &ManifestBytes, replaces: Option<&[u8]>) -> Result<()> {
        (**self).put_manifest(manifest, replaces)
    }

    fn copy_manifest(&self, manifest: &[u8]) -> Result<()> {
        (**self).copy_manifest(manifest)
    }

    fn has_copy_of(&self, manifest: &[u8]) -> bool {
        (**self).has_copy_of(manifest)
    }

    fn alone(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        (**self).alone(work)
    }

    fn is_encrypted(&self) -> Result<bool> {
        (**self).is_encrypted()
    }
}

/// How a service is asked and how it stores objects, instead of the environment's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manner {
    /// The storage class of segments.
    pub storage_class: Option<String>,
    /// How the service encrypts: `AES256`, `aws:kms` and so on.
    pub sse: Option<String>,
    /// The key with which it does.
    pub sse_kms_key_id: Option<String>,
    /// The time in which a service that can't be reached is an error; else it is asked again for minutes.
    pub limit: Option<Duration>,
}

impl Manner {
    /// Whether only a service can store objects so.
    fn is_of_service(&self) -> bool {
        self.storage_class.is_some() || self.sse.is_some() || self.sse_kms_key_id.is_some()
    }
}

/// The archive at a place, which may or may not exist: a folder, or in object storage ([`ObjectPlace`]). If it is encrypted, its key
/// comes from the environment ([`KeySource::from_environment`]).
///
/// # Errors
///
/// An invalid place in object storage: no bucket, or bad settings in the environment.
pub fn at(place: &Path) -> Result<Box<dyn ArchiveStorage>> {
    Ok(Box::new(with_key(place, KeySource::from_environment(), &Manner::default())?))
}

/// The archive at a place, with this key in place of the environment's, and objects stored in this manner. A new archive
/// is encrypted if there is a key.
///
/// # Errors
///
/// As [`at`]; a manner for a folder.
pub fn with_key(
    place: &Path,
    key: Option<KeySource>,
    manner: &Manner,
) -> Result<EncryptedStorage<Box<dyn ArchiveStorage>>> {
    let inner = unencrypted(place, manner)?;
    let whole = match in_object_storage(place) {
        Some(text) => text.trim_end_matches('/').to_owned(),
        // A folder that isn't there yet has no other name.
        None => std::fs::canonicalize(place).or_else(|_| std::path::absolute(place)).map_or_else(
            |_| place.to_string_lossy().into_owned(),
            |path| path.to_string_lossy().into_owned(),
        ),
    };
    Ok(EncryptedStorage::new(inner, key).at(whole))
}

fn unencrypted(place: &Path, manner: &Manner) -> Result<Box<dyn ArchiveStorage>> {
    match in_object_storage(place) {
        Some(place) if manner.is_of_service() && !is_in_s3(place) => Err(Error::unexpected(
            "place",
            format!("{place}, where neither storage classes nor a service's encryption can be asked for"),
            "s3://BUCKET/PREFIX",
        )),
        Some(place) => in_service(place, manner),
        None if manner.is_of_service() => Err(Error::unexpected(
            "place",
            "a folder, which has neither storage classes nor encryption by a service",
            "s3://BUCKET/PREFIX",
        )),
        None => {
            refuse_addresses(&place.to_string_lossy())?;
            Ok(Box::new(ArchiveFolder::new(place)))
        }
    }
}

fn is_in_s3(place: &str) -> bool {
    ObjectPlace::of(place).is_some_and(|place| place.service == StorageService::S3)
}

/// How deep below a place archives are looked for: `s3://BUCKET/REGION/CLUSTER/SERVER/lineage-2`.
const DEPTH_MAX: usize = 4;

/// The places of all archives at a place and below it, sorted. With a limit, a service that can't be reached is an error in that time.
///
/// # Errors
///
/// A place that can't be listed.
pub fn archives(place: &Path, limit: Option<Duration>) -> Result<Vec<PathBuf>> {
    let mut archives = match in_object_storage(place) {
        Some(there) => archives_in_service(there, limit)?,
        None => {
            refuse_addresses(&place.to_string_lossy())?;
            folder::archives(place)?
        }
    };
    archives.sort();
    Ok(archives)
}

/// The place's text, if it is in object storage.
pub fn in_object_storage(place: &Path) -> Option<&str> {
    place.to_str().filter(|text| ObjectPlace::of(text).is_some())
}

#[cfg(feature = "s3")]
fn in_service(place: &str, manner: &Manner) -> Result<Box<dyn ArchiveStorage>> {
    use object_storage::service::{SSE, SSE_KMS_KEY_ID, STORAGE_CLASS};
    let Manner { storage_class, sse, sse_kms_key_id, limit } = manner;
    let instead = [(STORAGE_CLASS, storage_class), (SSE, sse), (SSE_KMS_KEY_ID, sse_kms_key_id)];
    let instead: Vec<_> =
        instead.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect();
    Ok(Box::new(ObjectStorage::from_environment(place, &instead, *limit)?))
}

#[cfg(feature = "s3")]
fn archives_in_service(place: &str, limit: Option<Duration>) -> Result<Vec<PathBuf>> {
    ObjectStorage::from_environment(place, &[], limit)?.archives()
}

#[cfg(not(feature = "s3"))]
fn in_service(place: &str, _: &Manner) -> Result<Box<dyn ArchiveStorage>> {
    Err(without_services(place))
}

#[cfg(not(feature = "s3"))]
fn archives_in_service(place: &str, _: Option<Duration>) -> Result<Vec<PathBuf>> {
    Err(without_services(place))
}

#[cfg(not(feature = "s3"))]
fn without_services(place: &str) -> Error {
    Error::unexpected("place", place, "a folder: this program was built without object storage")
}

/// Checks that the stored manifest may be replaced.
///
/// # Errors
///
/// [`Error::Changed`] if it may not.
pub(crate) fn unchanged(there: Option<&[u8]>, replaces: Option<&[u8]>) -> Result<()> {
    if there == replaces { Ok(()) } else { Err(Error::Changed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_classes_are_refused_where_there_are_none() {
        let manner = Manner { storage_class: Some("STANDARD_IA".into()), ..Manner::default() };
        for place in ["az://container/archive", "gs://bucket/archive", "folder"] {
            let refused = with_key(Path::new(place), None, &manner)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(refused.contains("storage classes") && refused.contains("expected s3://"), "{refused}");
        }
    }
}
