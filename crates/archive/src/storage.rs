//! Where an archive is kept: immutable objects and one manifest, which alone is replaced. [`folder`] keeps them as
//! files, `s3` in object storage.
//!
//! ```text
//! PLACE/manifest.json     what the archive holds; replaced last, and only by who knows what stood there
//! PLACE/objects/NAME      whole or not there
//! ```
//!
//! [`folder`]: crate::folder

use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::object::ReadRange;

/// The manifest's name.
pub(crate) const MANIFEST: &str = "manifest.json";
/// What objects' names begin with.
pub(crate) const OBJECTS: &str = "objects";
/// What the name of a place in object storage begins with.
pub const S3: &str = "s3://";

/// Storage for objects that never change and a manifest that names them.
pub trait Storage: Send + Sync {
    /// Stores an object whole or not at all; `write` gives its bytes. Durable when it returns.
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()>;
    /// An object that is there.
    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>>;
    /// The manifest; `None`: there is no archive yet.
    fn manifest(&self) -> Result<Option<Vec<u8>>>;
    /// Replaces the manifest, whole or not at all, where it is still the one that `replaces` says (`None`: there
    /// was none), else nothing is done and [`Error::Changed`] returned. Durable when it returns.
    fn put_manifest(&self, manifest: &[u8], replaces: Option<&[u8]>) -> Result<()>;
    /// Does something while nobody replaces the manifest, where that can be kept; `work` does not replace it either.
    fn alone(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        work()
    }
}

impl<S: Storage + ?Sized> Storage for Box<S> {
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()> {
        (**self).put(name, write)
    }

    fn get(&self, name: &str) -> Result<Box<dyn ReadRange>> {
        (**self).get(name)
    }

    fn manifest(&self) -> Result<Option<Vec<u8>>> {
        (**self).manifest()
    }

    fn put_manifest(&self, manifest: &[u8], replaces: Option<&[u8]>) -> Result<()> {
        (**self).put_manifest(manifest, replaces)
    }

    fn alone(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        (**self).alone(work)
    }
}

/// The archive at a place, whether or not it is there: `s3://BUCKET/PREFIX`, or a folder.
///
/// # Errors
///
/// A place in object storage that can't be: no bucket, bad settings in the environment.
pub fn at(place: &Path) -> Result<Box<dyn Storage>> {
    match in_object_storage(place) {
        Some(place) => in_s3(place),
        None => Ok(Box::new(Folder::new(place))),
    }
}

/// BUCKET/PREFIX, if the place is in object storage.
pub fn in_object_storage(place: &Path) -> Option<&str> {
    place.to_str()?.strip_prefix(S3)
}

#[cfg(feature = "s3")]
fn in_s3(place: &str) -> Result<Box<dyn Storage>> {
    Ok(Box::new(crate::s3::S3::from_environment(place)?))
}

#[cfg(not(feature = "s3"))]
fn in_s3(_: &str) -> Result<Box<dyn Storage>> {
    Err(Error::unexpected("place", S3, "a folder: this program was built without object storage"))
}

/// Whether the manifest that is there may be replaced.
///
/// # Errors
///
/// [`Error::Changed`].
pub(crate) fn unchanged(there: Option<&[u8]>, replaces: Option<&[u8]>) -> Result<()> {
    if there == replaces { Ok(()) } else { Err(Error::Changed) }
}
