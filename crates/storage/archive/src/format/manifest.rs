//! The manifest: an archive's logs and objects as JSON, so that an archive explains itself to anyone who finds it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::file_entry::{FileEntry, objects};
use super::parts::{self, ManifestPart};
use crate::chosen_tables::TableChoice;
use crate::error::{Error, Result};
use crate::log::sort_by_name;
use crate::storage::{ArchiveStorage, COPY, ManifestBytes, ObjectName};

/// The words for a place without an archive.
pub(crate) const NO_MANIFEST: &str = "is no archive: it has no manifest.json";
const FORMAT: &str = "binlogz archive";
/// The version that is written; its objects may be of version 13, too, or of 18. We also read 1, which had one object for each log,
/// 2, which had no copy of the manifest, 3, 4, the first with logs that are kept in part, 5, 6, 7, the first with retired
/// objects, 8, 9, 10, the first with parts, and 11 and 12, whose objects have no steps by key.
const VERSION: u32 = 13;
/// The version written if there are parts.
const VERSION_PARTS: u32 = 14;
/// The version written if the archive is a selection of tables, with parts or without.
const VERSION_SELECTION: u32 = 15;
/// The version written if values were erased from a log.
const VERSION_ERASED: u32 = 16;
/// The version written if the logs are masked by a policy, and the newest that we can read.
const VERSION_MASKED: u32 = 17;
/// The first version that must have a checksum, and has a copy.
const VERSION_COPY: u32 = 3;
/// How often to rewrite the copy while other runs keep replacing the manifest: the last of them writes it
/// last.
const COPY_ATTEMPTS_MAX: u32 = 10;
/// The largest copy.
const COPY_SIZE_MAX: u64 = 1 << 30;
/// How often a manifest is read again because others replace it and its parts.
const READ_ATTEMPTS_MAX: u32 = 10;
/// Seconds for which replaced parts stay, for a run that has read the manifest and not yet its parts.
const PARTS_STAY_SECONDS: u64 = 3600;

/// The manifest of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: String,
    version: u32,
    /// The tables whose rows its logs have, if they are a selection; `None`: they are the server's logs. Since version 15.
    #[serde(default)]
    pub selection: Option<TableChoice>,
    /// Names the policy by which its logs were masked, and its key; `None`: they weren't. Since version 17.
    #[serde(default)]
    pub exits: Option<String>,
    /// Objects with the oldest logs, if there are many. Since version 10.
    #[serde(default)]
    parts: Vec<ManifestPart>,
    /// The logs, in the order of [`crate::log::order`]: in JSON those that are in no part.
    pub files: Vec<FileEntry>,
    /// Objects that no log is in any more. They are kept for a while, for readers that have an earlier manifest. Since
    /// version 7.
    #[serde(default)]
    pub retired: Vec<RetiredObject>,
    /// CRC-32 of the manifest without this field; `None` if it has none.
    #[serde(default)]
    crc32: Option<u32>,
    /// The bytes it was read from; it may only replace these.
    #[serde(skip)]
    stored: Option<ManifestBytes>,
    /// The damage, if it was read from its copy.
    #[serde(skip)]
    damage: Option<String>,
    /// The version that was read.
    #[serde(skip)]
    version_read: u32,
}

/// A manifest as it is stored, without its checksum.
#[derive(Serialize)]
struct AsStored<'a> {
    format: &'a str,
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<&'a TableChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exits: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    parts: &'a [ManifestPart],
    files: &'a [FileEntry],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    retired: &'a [RetiredObject],
}

/// An object that no log is in any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetiredObject {
    /// The object's name.
    pub object: ObjectName,
    /// When the manifest stopped naming it, in seconds since 1970.
    pub since: u64,
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
            selection: None,
            exits: None,
            parts: Vec::new(),
            files: Vec::new(),
            retired: Vec::new(),
            crc32: None,
            stored: None,
            damage: None,
            version_read: VERSION,
        }
    }
}

impl Manifest {
    /// The manifest of an archive.
    ///
    /// # Errors
    ///
    /// A manifest that can't be read, or of another version.
    pub fn read(storage: &dyn ArchiveStorage) -> Result<Option<Manifest>> {
        let mut attempts = 1;
        loop {
            let Some(bytes) = storage.manifest()? else { return Ok(None) };
            let mut manifest = match Manifest::decode(&bytes) {
                Ok(manifest) => manifest,
                Err(error) => {
                    let copy = Manifest::read_copy(storage);
                    let Ok(copy) = copy else { return Err(error) };
                    Manifest { damage: Some(error.to_string()), ..copy }
                }
            };
            match manifest.read_parts(storage) {
                Ok(()) => {
                    manifest.stored = Some(bytes);
                    return Ok(Some(manifest));
                }
                // A run that replaced it has deleted parts that were replaced before.
                Err(_) if attempts < READ_ATTEMPTS_MAX && storage.manifest()?.as_ref() != Some(&bytes) => {
                    attempts += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts the logs of its parts before its own.
    /// Reads the manifest of an archive that has to be there. Without a manifest it isn't known which objects hold logs: to take it for an
    /// empty one would be to delete them all.
    pub(crate) fn of_archive(storage: &dyn ArchiveStorage) -> Result<Manifest> {
        Manifest::read(storage)?.ok_or(Error::NoArchive(NO_MANIFEST))
    }

    fn read_parts(&mut self, storage: &dyn ArchiveStorage) -> Result<()> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let newest = std::mem::take(&mut self.files);
        for part in &mut self.parts {
            self.files.extend(part.read(storage)?);
        }
        self.files.extend(newest);
        self.sort();
        check_entries(&self.files)
    }

    fn read_copy(storage: &dyn ArchiveStorage) -> Result<Manifest> {
        Manifest::decode(&copy(storage)?)
    }

    /// Copies the current manifest, which by now may be another run's, to the copy. In a folder no other run
    /// replaces it meanwhile; in object storage it is checked again afterwards.
    pub(crate) fn mend_copy(storage: &dyn ArchiveStorage) -> Result<()> {
        // Nothing was ever stored there: a folder need not even exist.
        if storage.manifest()?.is_none() {
            return Ok(());
        }
        Manifest::copy_after(storage, None)
    }

    /// Copies the current manifest to the copy, unless the copy has the same bytes already. `written`: the manifest that
    /// this run has just written; the copy is then another for certain, and isn't compared.
    fn copy_after(storage: &dyn ArchiveStorage, written: Option<&ManifestBytes>) -> Result<()> {
        for _ in 0..COPY_ATTEMPTS_MAX {
            let mut copied = None;
            storage.alone(&mut || {
                copied = storage.manifest()?;
                match &copied {
                    Some(there) if written == Some(there) => storage.copy_manifest(there),
                    Some(there) if has_copy(there) && !storage.has_copy_of(there) => {
                        storage.copy_manifest(there)
                    }
                    _ => Ok(()),
                }
            })?;
            if storage.manifest()? == copied {
                break;
            }
        }
        Ok(())
    }

    /// Reads its bytes.
    fn decode(bytes: &[u8]) -> Result<Manifest> {
        let mut manifest: Manifest = match serde_json::from_slice(bytes) {
            Ok(manifest) => manifest,
            // A later version may have fields of which nothing is known here.
            Err(error) => match serde_json::from_slice::<Head>(bytes) {
                Ok(head) => return Err(head.check().err().unwrap_or_else(|| error.into())),
                Err(_) => return Err(error.into()),
            },
        };
        Head { format: manifest.format.clone(), version: manifest.version }.check()?;
        match manifest.crc32.take() {
            Some(crc32)
                if Ends::of(bytes).is_none_or(|ends| ends.checksum() != crc32)
                    && crc32fast::hash(&manifest.bytes(&manifest.files)?) != crc32 =>
            {
                return Err(Error::damaged("manifest", "another checksum", "that of its bytes"));
            }
            None if manifest.version >= VERSION_COPY => {
                return Err(Error::damaged("manifest", "no checksum", "one, as its version has"));
            }
            _ => {}
        }
        sort_by_name(&mut manifest.files, |file| &file.name);
        check_entries(&manifest.files)?;
        manifest.version_read = manifest.version;
        Ok(manifest)
    }

    /// Problems with it or its copy, one line each.
    pub(crate) fn problems(&self, storage: &dyn ArchiveStorage) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(damage) = &self.damage {
            problems.push(format!(
                "{damage}; its copy was read: what create stored since that was written has to be given to create again"
            ));
        } else if self.version_read >= VERSION_COPY
            && let Err(error) = Manifest::read_copy(storage)
        {
            problems.push(format!("copy of the manifest: {error}; nothing is lost"));
        }
        problems.extend(self.parts.iter().flat_map(|part| part.problems(storage)));
        problems
    }

    /// Replaces the manifest that it was read from.
    ///
    /// # Errors
    ///
    /// Storage that fails; [`Error::Changed`] if the stored manifest is by now another one.
    pub fn write(&mut self, storage: &dyn ArchiveStorage) -> Result<()> {
        self.sort();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let (tail, old) = self.write_parts(storage, now)?;
        let named = self.named();
        let retired = std::mem::take(&mut self.retired);
        self.retired = retired.into_iter().filter(|retired| !named.contains(&retired.object)).collect();
        let is_erased = self.files.iter().any(FileEntry::is_erased);
        self.version = match (&self.selection, self.parts.is_empty()) {
            (Some(_) | None, _) if self.exits.is_some() => VERSION_MASKED,
            (Some(_) | None, _) if is_erased => VERSION_ERASED,
            (Some(_), _) => VERSION_SELECTION,
            (None, true) => VERSION,
            (None, false) => VERSION_PARTS,
        };
        self.crc32 = None;
        let bytes = Arc::new(with_checksum(self.bytes(self.files.get(tail..).unwrap_or_default())?));
        storage.put_manifest(&bytes, self.stored.as_ref().map(|stored| stored.as_slice()))?;
        Manifest::copy_after(storage, Some(&bytes))?;
        self.stored = Some(bytes);
        self.damage = None;
        // One that can't be deleted is left behind, as by a killed run: `prune` finds it.
        old.iter().for_each(|object| drop(storage.delete(object)));
        Ok(())
    }

    /// Stores the parts that aren't there yet. Returns the number of the first log that is in none, and objects of parts that were replaced
    /// long ago.
    fn write_parts(&mut self, storage: &dyn ArchiveStorage, now: u64) -> Result<(usize, Vec<ObjectName>)> {
        let (runs, tail) = parts::arrange(&self.files, &self.parts);
        let before = std::mem::take(&mut self.parts);
        let mut has_new = false;
        for run in &runs {
            let part = match run.stored.and_then(|number| before.get(number)) {
                Some(part) => part.clone(),
                None => {
                    has_new = true;
                    ManifestPart::store(storage, self.files.get(run.logs.clone()).unwrap_or_default())?
                }
            };
            self.parts.push(part);
        }
        self.retire(before.iter().flat_map(ManifestPart::objects), now);
        let is_old = |retired: &RetiredObject| {
            has_new
                && parts::is_part(&retired.object)
                && now.saturating_sub(retired.since) >= PARTS_STAY_SECONDS
        };
        let named = self.named();
        let (old, retired) = std::mem::take(&mut self.retired)
            .into_iter()
            .partition::<Vec<_>, _>(|retired| is_old(retired) && !named.contains(&retired.object));
        self.retired = retired;
        Ok((tail, old.into_iter().map(|retired| retired.object).collect()))
    }

    /// Refuses to put logs with the rows of these tables among those that are there; `None`: logs as they are.
    ///
    /// # Errors
    ///
    /// It has other logs, or logs of another choice.
    pub(crate) fn check_selection(&self, choice: Option<&TableChoice>) -> Result<()> {
        if self.files.is_empty() || self.selection.as_ref() == choice {
            return Ok(());
        }
        let in_words = |choice: Option<&TableChoice>| {
            choice.map_or("whole logs".to_owned(), |choice| format!("a selection of tables ({choice})"))
        };
        let expected = format!("{}, as these logs; another archive can have them", in_words(choice));
        Err(Error::unexpected("archive", in_words(self.selection.as_ref()), expected))
    }

    /// Refuses to put logs that were masked by this policy among those that are there; `None`: logs that weren't masked.
    ///
    /// # Errors
    ///
    /// It has other logs, or logs masked by another policy.
    pub(crate) fn check_exits(&self, exits: Option<&str>) -> Result<()> {
        if self.files.is_empty() || self.exits.as_deref() == exits {
            return Ok(());
        }
        let [found, expected] = [self.exits.as_deref(), exits]
            .map(|exits| exits.map_or("logs that aren't masked".to_owned(), masked_in_words));
        Err(Error::unexpected("archive", found, format!("{expected}; another archive can have them")))
    }

    /// The objects that hold its logs, and its own parts.
    pub(crate) fn named(&self) -> BTreeSet<ObjectName> {
        let parts = self.parts.iter().flat_map(ManifestPart::objects);
        self.files.iter().flat_map(|file| &file.objects).cloned().chain(parts).collect()
    }

    /// The objects that hold its logs.
    pub(crate) fn objects(&self) -> BTreeSet<&str> {
        objects(&self.files).collect()
    }

    /// Puts the logs into their order.
    pub(crate) fn sort(&mut self) {
        sort_by_name(&mut self.files, |file| &file.name);
    }

    /// Notes that nothing is in these objects any more. Objects that still hold a log are left out when it is written.
    pub(crate) fn retire(&mut self, objects: impl IntoIterator<Item = ObjectName>, since: u64) {
        let objects: BTreeSet<ObjectName> = objects.into_iter().collect();
        self.retired.retain(|retired| !objects.contains(&retired.object));
        self.retired.extend(objects.into_iter().map(|object| RetiredObject { object, since }));
    }

    /// The damage, if its copy was read instead: the copy may be older.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Without the checksum; `files` are the logs that are in no part.
    fn bytes(&self, files: &[FileEntry]) -> Result<Vec<u8>> {
        let mut bytes =
            Vec::with_capacity(self.stored.as_ref().map_or(0, |stored| stored.len() + stored.len() / 64));
        let Manifest { format, version, selection, exits, parts, retired, .. } = self;
        let (selection, exits) = (selection.as_ref(), exits.as_deref());
        serde_json::to_writer_pretty(
            &mut bytes,
            &AsStored { format, version: *version, selection, exits, parts, files, retired },
        )?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Characters of a policy's digest that are shown.
const DIGEST_SHOWN: usize = 8;

/// Logs that were masked by this policy, in words.
pub fn masked_in_words(digest: &str) -> String {
    format!("logs masked by the policy {}", digest.get(..DIGEST_SHOWN).unwrap_or(digest))
}

/// The fields that every version of a manifest begins with.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

impl Head {
    fn check(&self) -> Result<()> {
        if self.format != FORMAT || !(1..=VERSION_MASKED).contains(&self.version) {
            let found = format!("{} {}", self.format, self.version);
            return Err(Error::unexpected("manifest", found, format!("{FORMAT} 1 to {VERSION_MASKED}")));
        }
        Ok(())
    }
}

/// The last line of a manifest.
const END: &[u8] = b"\n}\n";
/// The line before it, which has the checksum of all others.
const CHECKSUM: &[u8] = b",\n  \"crc32\": ";

/// The bytes of a manifest around its checksum, as we write it. A manifest of other spaces is checked field by field.
struct Ends<'a> {
    before: &'a [u8],
    told: &'a [u8],
}

impl Ends<'_> {
    fn of(bytes: &[u8]) -> Option<Ends<'_>> {
        let rest = bytes.strip_suffix(END)?;
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, told) = rest.split_at_checked(rest.len() - digits)?;
        Some(Ends { before: rest.strip_suffix(CHECKSUM)?, told })
    }

    /// Checksum of the manifest without its checksum.
    fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.before);
        hasher.update(END);
        hasher.finalize()
    }

    fn is_right(&self) -> bool {
        self.told == self.checksum().to_string().as_bytes()
    }
}

/// A manifest's bytes, and its checksum among them.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes).to_string();
    bytes.truncate(bytes.len() - END.len());
    for part in [CHECKSUM, checksum.as_bytes(), END] {
        bytes.extend_from_slice(part);
    }
    bytes
}

/// Names and sizes lie: each log is there once, and the sizes of all can be added, so that nobody who looks for one or adds some
/// has to ask.
fn check_entries(files: &[FileEntry]) -> Result<()> {
    let mut size = 0u64;
    let mut packed_size = 0u64;
    let mut names = HashSet::with_capacity(files.len());
    for file in files {
        if !names.insert(file.name.as_str()) {
            return Err(Error::unexpected(
                "manifest: log",
                format_args!("{} twice", file.name),
                "each log once",
            ));
        }
        for (total, more) in [(&mut size, file.size), (&mut packed_size, file.packed_size)] {
            *total = total.checked_add(more).ok_or_else(|| {
                Error::unexpected(
                    format!("manifest: size of {}", file.name),
                    more,
                    "less than 2^64 for all logs",
                )
            })?;
        }
    }
    Ok(())
}

/// Whether these are the bytes of a whole manifest of a version that has a copy.
fn has_copy(manifest: &[u8]) -> bool {
    match Ends::of(manifest).is_some_and(|ends| ends.is_right()) {
        // It is as it was written; only those versions have a checksum.
        true => true,
        false => Manifest::decode(manifest).is_ok_and(|manifest| manifest.version_read >= VERSION_COPY),
    }
}

fn copy(storage: &dyn ArchiveStorage) -> Result<Vec<u8>> {
    let copy = storage.get(COPY)?;
    let size = copy.size()?;
    if size > COPY_SIZE_MAX {
        return Err(Error::unexpected(
            "size of the copy of the manifest",
            size,
            format_args!("at most {COPY_SIZE_MAX}"),
        ));
    }
    copy.read(0, size as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Result<Manifest> {
        Manifest::decode(text.as_bytes())
    }

    #[test]
    fn a_checksum_is_that_of_the_text_or_of_the_fields_and_other_fields_are_refused() {
        let bytes = with_checksum(Manifest::default().bytes(&[]).unwrap());
        assert!(has_copy(&bytes));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(decoded(&text).unwrap(), Manifest::default());
        let spaced = text.replace('\n', "\n ");
        assert_eq!(decoded(&spaced).unwrap(), Manifest::default());
        let changed = text.replace(
            "\"files\": []",
            "\"files\": [], \"retired\": [{\"object\": \"a.binlogz\", \"since\": 1}]",
        );
        let error = |text: &str| decoded(text).unwrap_err().to_string();
        assert!(
            !has_copy(changed.as_bytes()) && error(&changed).contains("another checksum"),
            "{}",
            error(&changed)
        );
        // What this version doesn't know would be lost when it is written.
        let later = text.replace("\"files\"", "\"servers\": 3,\n  \"files\"");
        assert!(error(&later).contains("unknown field `servers`"), "{}", error(&later));
        let later = later.replace("\"version\": 13", "\"version\": 18");
        let expected = "manifest is binlogz archive 18, expected binlogz archive 1 to 17";
        assert_eq!(error(&later), expected);
    }
}
