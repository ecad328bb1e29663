//! Copies an archive: the objects that its manifest names, several at once, then the manifest.
//!
//! ```text
//! object   read, hashed and written in one pass; kept if the hash is what its name tells; then read back
//! manifest last: the other archive's logs, which may have more, and these
//! ```
//!
//! An object that is there already with the same size is read and compared with the SHA-256 that its name tells, or with the
//! archive's own object if it tells none; one that differs is replaced. So a run after one
//! that was killed goes on where that ended, a later one copies the new objects, and damaged objects of the other archive are mended.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::format::{FileEntry, Manifest, objects};
use crate::operations::create::seconds;
use crate::operations::digest::{Hasher, each_part, of_object};
use crate::operations::remove::refuse_older;
use crate::operations::restore;
use crate::storage::{ArchiveStorage, ListedObject, name_tells};

/// The result of a copy.
#[derive(Debug, Default)]
pub struct CopySummary {
    /// Objects that were copied.
    pub objects: Vec<ListedObject>,
    /// Objects that were there already.
    pub there: Vec<ListedObject>,
    /// Objects of the same size that were there and not the same, and what was found in their place.
    pub replaced: Vec<(ListedObject, Error)>,
    /// Logs that the other archive did not have.
    pub logs: usize,
    /// Objects that could not be copied, and why. Their logs are left out.
    pub failed: Vec<(String, Error)>,
    /// How many logs the other archive has now.
    pub logs_there: usize,
}

/// How often to read the manifest again while other runs keep replacing it.
const ATTEMPTS_MAX: u32 = 10;

/// The objects that a copy will read.
///
/// # Errors
///
/// Archives that can't be read, or that have different logs of the same name.
pub fn plan(from: &dyn ArchiveStorage, to: &dyn ArchiveStorage) -> Result<CopyPlan> {
    let source = Manifest::read(from)?.unwrap_or_default();
    let target = Manifest::read(to)?.unwrap_or_default();
    refuse_older(&target)?;
    merged(&source.files, &source, target, SystemTime::UNIX_EPOCH)?;
    let stored = stored_by_name(from)?;
    let known = stored_by_name(to)?;
    let mut plan = CopyPlan { source, objects: Vec::new(), there: Vec::new(), takes_sizes: false };
    let mut seen = BTreeSet::new();
    for name in objects(&plan.source.files).filter(|name| seen.insert(*name)) {
        // One that is missing fails when it is read.
        let missing = || ListedObject { name: name.into(), size: 0, at: SystemTime::UNIX_EPOCH };
        let object = stored.get(name).cloned().unwrap_or_else(missing);
        match known.get(name).is_some_and(|known| known.size == object.size) {
            true => plan.there.push(object),
            false => plan.objects.push(object),
        }
    }
    Ok(plan)
}

fn stored_by_name(storage: &dyn ArchiveStorage) -> Result<HashMap<String, ListedObject>> {
    Ok(storage.stored()?.into_iter().map(|object| (object.name.clone(), object)).collect())
}

/// The work of a copy: the objects to copy, and those that are there already. [`plan`] makes it.
#[derive(Debug)]
pub struct CopyPlan {
    source: Manifest,
    /// The objects to copy.
    pub objects: Vec<ListedObject>,
    /// The objects of which the target has one of the same size: they are compared.
    pub there: Vec<ListedObject>,
    takes_sizes: bool,
}

impl CopyPlan {
    /// The fault in the source archive's manifest, if its backup was read instead.
    pub fn damage(&self) -> Option<&str> {
        self.source.damage()
    }

    /// The bytes to copy and to compare.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().chain(self.compared()).map(|object| object.size).sum()
    }

    /// Passes over objects of the same size without reading them.
    #[must_use]
    pub fn taking_sizes(self) -> CopyPlan {
        CopyPlan { takes_sizes: true, ..self }
    }

    /// Copies the objects, `workers` at once, then names the logs. `told` gets the number of bytes that were copied or compared.
    ///
    /// # Errors
    ///
    /// An archive that can't be written, or that got another log of the same name meanwhile.
    pub fn run(
        self,
        from: &dyn ArchiveStorage,
        to: &dyn ArchiveStorage,
        workers: usize,
        told: &(dyn Fn(u64) + Sync),
    ) -> Result<CopySummary> {
        let mut results = self.work(from, to, workers, told);
        if let Some(error) = results.stopped {
            return Err(error);
        }
        if self.takes_sizes {
            results.there.extend(self.there);
        }
        let CopyResults { objects: copied, there, replaced, failed, .. } = results;
        let is_there = |file: &&FileEntry| {
            !failed.iter().any(|(failed, _): &(String, _)| file.objects.iter().any(|object| object == failed))
        };
        let files: Vec<_> = self.source.files.iter().filter(is_there).cloned().collect();
        let (logs, logs_there) = name(to, &files, &self.source)?;
        // A run that removed the same logs from the other archive may have deleted what was passed over.
        let stored = to.stored()?;
        let names: BTreeSet<&str> = stored.iter().map(|object| object.name.as_str()).collect();
        if objects(&files).any(|object| !names.contains(object)) {
            return Err(Error::Changed);
        }
        Ok(CopySummary { objects: copied, there, replaced, logs, failed, logs_there })
    }

    fn compared(&self) -> &[ListedObject] {
        if self.takes_sizes { &[] } else { &self.there }
    }

    /// Copies and compares, until the other archive can't be written.
    fn work(
        &self,
        from: &dyn ArchiveStorage,
        to: &dyn ArchiveStorage,
        workers: usize,
        told: &(dyn Fn(u64) + Sync),
    ) -> CopyResults {
        let compared = self.compared();
        let all = self.objects.iter().map(|object| (object, false));
        let queue = Mutex::new(all.chain(compared.iter().map(|object| (object, true))));
        let next = || queue.lock().next();
        let results = Mutex::new(CopyResults::default());
        std::thread::scope(|scope| {
            for _ in 0..workers.max(1) {
                scope.spawn(|| {
                    while let Some((object, is_there)) = next() {
                        let done = match is_there {
                            true => compare_object(from, to, &object.name, told),
                            false => copy_object(from, to, &object.name, told).map(|()| CopyOutcome::New),
                        };
                        if !results.lock().add(object, done) {
                            break;
                        }
                    }
                });
            }
        });
        results.into_inner()
    }
}

/// The results of all workers so far.
#[derive(Default)]
struct CopyResults {
    objects: Vec<ListedObject>,
    there: Vec<ListedObject>,
    replaced: Vec<(ListedObject, Error)>,
    failed: Vec<(String, Error)>,
    stopped: Option<Error>,
}

impl CopyResults {
    /// Returns whether to go on.
    fn add(&mut self, object: &ListedObject, done: Result<CopyOutcome, Trouble>) -> bool {
        match done {
            Ok(CopyOutcome::New) => self.objects.push(object.clone()),
            Ok(CopyOutcome::Same) => self.there.push(object.clone()),
            Ok(CopyOutcome::Replaced(why)) => self.replaced.push((object.clone(), why)),
            Err(Trouble::Source(error)) => self.failed.push((object.name.clone(), error)),
            Err(Trouble::Target(error)) => {
                self.stopped.get_or_insert(error);
            }
        }
        self.stopped.is_none()
    }
}

/// What became of an object.
enum CopyOutcome {
    New,
    Same,
    Replaced(Error),
}

/// Names these logs in the archive. Returns how many it did not have, and how many it has now.
fn name(to: &dyn ArchiveStorage, files: &[FileEntry], source: &Manifest) -> Result<(usize, usize)> {
    let mut attempts = 1;
    loop {
        let before = Manifest::read(to)?.unwrap_or_default();
        refuse_older(&before)?;
        let is_new = before.files.is_empty();
        let count = before.files.len();
        let mut manifest = merged(files, source, before.clone(), SystemTime::now())?;
        let all = manifest.files.len();
        if manifest.files == before.files && !is_new {
            Manifest::mend_copy(to)?;
            return Ok((0, all));
        }
        match manifest.write(to) {
            Ok(()) => return Ok((all - count, all)),
            Err(Error::Changed) if attempts < ATTEMPTS_MAX => attempts += 1,
            Err(error) => return Err(error),
        }
    }
}

/// A manifest with these logs too. One of a log that it has already must be of the same log, or of a longer part of it.
/// All are whole logs, or of the same selection of tables, or masked by the same policy.
fn merged(
    files: &[FileEntry],
    source: &Manifest,
    mut manifest: Manifest,
    now: SystemTime,
) -> Result<Manifest> {
    manifest.check_selection(source.selection.as_ref())?;
    manifest.check_exits(source.exits.as_deref())?;
    manifest.selection.clone_from(&source.selection);
    manifest.exits.clone_from(&source.exits);
    let mut new: HashMap<&str, &FileEntry> = files.iter().map(|file| (file.name.as_str(), file)).collect();
    let mut gone = Vec::new();
    for known in &mut manifest.files {
        let Some(file) = new.remove(known.name.as_str()) else { continue };
        let is_longer = known.active_size.is_some_and(|size| size <= file.active_size.unwrap_or(file.size));
        if known.source_sha256() != file.source_sha256() && !is_longer {
            return Err(Error::unexpected(
                format!("{}: SHA-256", file.name),
                file.source_sha256(),
                format!("{}, that of the log of this name in the other archive", known.source_sha256()),
            ));
        }
        if known.erasures.len() > file.erasures.len() {
            return Err(Error::unexpected(
                format!("{}: the log", file.name),
                "with values that were erased from it in the other archive",
                "without them: erase them here, too",
            ));
        }
        let before = std::mem::replace(known, file.clone());
        gone.extend(before.objects.into_iter().filter(|object| !file.objects.contains(object)));
    }
    manifest.files.extend(files.iter().filter(|file| new.contains_key(file.name.as_str())).cloned());
    manifest.retire(gone, seconds(now));
    manifest.sort();
    Ok(manifest)
}

/// Why an object was not copied.
enum Trouble {
    /// The object can't be read, or its bytes don't have the hash that its name tells: other objects may be whole.
    Source(Error),
    /// It can't be written: no other can.
    Target(Error),
}

/// Compares an object that is in both archives, and replaces the other archive's if it is another one.
fn compare_object(
    from: &dyn ArchiveStorage,
    to: &dyn ArchiveStorage,
    name: &str,
    told: &(dyn Fn(u64) + Sync),
) -> Result<CopyOutcome, Trouble> {
    let replace = |why| copy_object(from, to, name, told).map(|()| CopyOutcome::Replaced(why));
    let there = match of_object_told(to, name, told) {
        Ok(there) => there,
        // Another run has deleted it since it was listed.
        Err(error) if error.is_not_found() => {
            return copy_object(from, to, name, told).map(|()| CopyOutcome::New);
        }
        Err(error) if error.is_trouble() => return Err(Trouble::Target(error)),
        Err(error) => return replace(error),
    };
    let differs = |expected: &str| Error::unexpected(format!("{name}: SHA-256"), &there, expected);
    match name_tells(name, &there) {
        Some(true) => Ok(CopyOutcome::Same),
        Some(false) => replace(differs("that in its name")),
        None => {
            let missing = |error| Trouble::Source(restore::gone(from, [name], error));
            let ours = of_object_told(from, name, told).map_err(missing)?;
            if ours == there {
                return Ok(CopyOutcome::Same);
            }
            // No name tells which of the two is whole.
            restore::open(from, name).and_then(|object| object.read_all()).map_err(Trouble::Source)?;
            replace(differs(&ours))
        }
    }
}

/// The SHA-256 of a stored object, in hexadecimal.
fn of_object_told(storage: &dyn ArchiveStorage, name: &str, told: &(dyn Fn(u64) + Sync)) -> Result<String> {
    let mut hasher = Hasher::default();
    each_part(storage.get(name)?.as_ref(), &mut |part| {
        told(part.len() as u64);
        hasher.write_all(part).map_err(Error::writing)
    })?;
    Ok(hasher.finish().0)
}

/// Copies an object, whole or not at all.
fn copy_object(
    from: &dyn ArchiveStorage,
    to: &dyn ArchiveStorage,
    name: &str,
    told: &(dyn Fn(u64) + Sync),
) -> Result<(), Trouble> {
    let missing = |error| Trouble::Source(restore::gone(from, [name], error));
    let object = from.get(name).map_err(missing)?;
    let mut sha256 = String::new();
    let mut tells = None;
    let mut is_reading = true;
    let put = to.put(name, &mut |out| {
        let mut hasher = Hasher::default();
        each_part(object.as_ref(), &mut |part| {
            is_reading = false;
            hasher.write_all(part).and_then(|()| out.write_all(part)).map_err(Error::writing)?;
            is_reading = true;
            told(part.len() as u64);
            Ok(())
        })?;
        (sha256, _) = hasher.finish();
        tells = name_tells(name, &sha256);
        match tells {
            Some(false) => Err(Error::unexpected(format!("{name}: SHA-256"), &sha256, "that in its name")),
            _ => {
                is_reading = false;
                Ok(())
            }
        }
    });
    put.map_err(|error| if is_reading { missing(error) } else { Trouble::Target(error) })?;
    let (back, _) = of_object(to, name).map_err(Trouble::Target)?;
    if back != sha256 {
        let what = format!("{name}: SHA-256 of what was read back");
        return Err(Trouble::Target(Error::unexpected(what, back, sha256)));
    }
    match tells {
        Some(_) => Ok(()),
        // Its blocks have checksums of their own.
        None => restore::open(to, name).and_then(|object| object.read_all()).map_err(Trouble::Source),
    }
}
