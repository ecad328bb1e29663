//! Takes logs out of an archive. The manifest changes first; then the objects that hold no log any more are deleted. If a
//! run is killed in between, these objects are orphans, which the next run finds.

use std::time::{Duration, SystemTime};

use binlogz_atomic_file::is_temporary;

use crate::error::{Error, Result};
use crate::format::{FileEntry, Manifest};
use crate::log::order::base;
use crate::storage::{ArchiveStorage, ListedObject, ObjectName};

/// How old an object without logs must be before it counts as left behind: no run takes that long from storing its first
/// object to naming it, since an object holds 512 MiB of logs.
pub const ORPHAN_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The prefix of temporary files in earlier builds.
const OLDER_TEMPORARY: &str = ".new-";

/// The result of removing some logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// The logs that are removed.
    pub logs: Vec<FileEntry>,
    /// Removed logs between two that stay: each with the one before and the one after.
    pub gaps: Vec<[String; 3]>,
    /// Objects that are deleted.
    pub objects: Vec<String>,
    /// Objects that stay, since they also hold other logs.
    pub shared: Vec<String>,
}

/// Plans the removal of the logs of these names. Names that are not in the manifest are ignored.
pub fn plan(manifest: &Manifest, names: &[String]) -> Removal {
    let goes = |file: &FileEntry| names.iter().any(|name| file.name == *name);
    let mut removal = Removal::default();
    for (at, file) in manifest.files.iter().enumerate().filter(|(_, file)| goes(file)) {
        let stays = |other: &&FileEntry| base(&other.name) == base(&file.name) && !goes(other);
        let before = manifest.files.iter().take(at).rfind(stays);
        let after = manifest.files.iter().skip(at).find(stays);
        if let (Some(before), Some(after)) = (before, after) {
            removal.gaps.push([file, before, after].map(|file| file.name.to_string()));
        }
        removal.logs.push(file.clone());
    }
    let kept: Vec<&ObjectName> =
        manifest.files.iter().filter(|file| !goes(file)).flat_map(|file| &file.objects).collect();
    let mut objects: Vec<ObjectName> = removal.logs.iter().flat_map(|file| file.objects.clone()).collect();
    objects.sort();
    objects.dedup();
    let (shared, gone): (Vec<_>, Vec<_>) = objects.into_iter().partition(|object| kept.contains(&object));
    removal.shared = shared.into_iter().map(String::from).collect();
    removal.objects = gone.into_iter().map(String::from).collect();
    removal
}

/// Objects that can't be deleted, and why: they may be locked for a time. No log is in them, and `prune` deletes them later.
pub type UndeletedObjects = Vec<(String, Error)>;

/// Removes the logs of these names, gaps or not.
///
/// # Errors
///
/// An archive that can't be written; [`Error::Changed`] if another run changed it since the manifest was
/// read: then nothing was removed.
pub fn remove(
    storage: &dyn ArchiveStorage,
    mut manifest: Manifest,
    names: &[String],
) -> Result<(Removal, UndeletedObjects)> {
    refuse_older(&manifest)?;
    let removal = plan(&manifest, names);
    manifest.files.retain(|file| !names.iter().any(|name| file.name == *name));
    manifest.write(storage)?;
    let undeleted = collect(storage, &removal.objects)?;
    Ok((removal, undeleted))
}

/// Objects that were stored before `before` and hold no log, and that no earlier manifest held which readers may still
/// have. A run stores objects before the manifest names
/// their logs, so `before` must be earlier than the start of all current runs.
///
/// # Errors
///
/// Storage that can't be listed.
pub fn orphans(storage: &dyn ArchiveStorage, before: SystemTime) -> Result<Vec<ListedObject>> {
    // The manifest is read second: an object named meanwhile is not an orphan.
    let stored = storage.stored()?;
    let manifest = Manifest::of_archive(storage)?;
    refuse_older(&manifest)?;
    Ok(orphans_of(&stored, &manifest, before))
}

/// The objects among these that no log is in, and that are older than `before`.
pub(crate) fn orphans_of(
    stored: &[ListedObject],
    manifest: &Manifest,
    before: SystemTime,
) -> Vec<ListedObject> {
    let mut known = manifest.named();
    known.extend(manifest.retired.iter().map(|retired| retired.object.clone()));
    let is_orphan = |stored: &ListedObject| {
        is_ours(&stored.name) && stored.at < before && !known.contains(stored.name.as_str())
    };
    let mut orphans: Vec<ListedObject> = stored.iter().filter(|stored| is_orphan(stored)).cloned().collect();
    orphans.sort_by(|one, other| one.name.cmp(&other.name));
    orphans
}

/// Deletes those of these objects that hold no log. Returns those that can't be deleted.
///
/// # Errors
///
/// A manifest that can't be read.
pub fn collect(storage: &dyn ArchiveStorage, objects: &[String]) -> Result<UndeletedObjects> {
    let mut failed = Vec::new();
    if objects.is_empty() {
        return Ok(failed);
    }
    // A copy that is older than the manifest may still name them.
    Manifest::mend_copy(storage)?;
    storage.alone(&mut || {
        let manifest = Manifest::read(storage)?.unwrap_or_default();
        refuse_older(&manifest)?;
        let named = manifest.named();
        let unnamed = objects.iter().map(String::as_str).filter(|object| !named.contains(*object));
        failed = storage.delete_all(&unnamed.collect::<Vec<_>>());
        Ok(())
    })?;
    Ok(failed)
}

/// Whether the name is one that an archive uses, other than its manifest and the copy of it.
fn is_ours(name: &str) -> bool {
    name.ends_with(".binlogz") || is_temporary(name) || name.starts_with(OLDER_TEMPORARY)
}

/// An older copy may not know existing logs: nothing is deleted on its word.
pub(crate) fn refuse_older(manifest: &Manifest) -> Result<()> {
    match manifest.damage() {
        None => Ok(()),
        Some(damage) => {
            Err(Error::unexpected("manifest", damage, "one that is whole: run archive create first"))
        }
    }
}
