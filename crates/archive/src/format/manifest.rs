//! An archive's contents as JSON, so that an archive explains itself to anyone who finds it.

use std::collections::BTreeSet;

use binlogz_binlog::gtid::GtidSet;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::log::sort_by_name;
use crate::storage::{COPY, Storage};

const FORMAT: &str = "binlogz archive";
/// The version written, whose objects may be of version 8. We can also read version 1, which had one object for each log,
/// 2, which had no copy, 3, 4, which had logs of which a part is kept, 5, 6, and 7, which had retired objects.
const VERSION: u32 = 8;
/// The first version that must have a checksum, and has a copy.
const VERSION_COPY: u32 = 3;
/// How often to rewrite the copy while other runs keep replacing the manifest: the last of them writes it
/// last.
const COPY_ATTEMPTS_MAX: u32 = 10;
/// The largest copy.
const COPY_SIZE_MAX: u64 = 1 << 30;

/// The manifest of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    version: u32,
    /// The logs, in the order of [`crate::log::order`].
    pub files: Vec<FileEntry>,
    /// Objects that no log is in any more. They are kept for a while, for readers that have an earlier manifest. Since
    /// version 7.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<Retired>,
    /// CRC-32 of the manifest without this field; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc32: Option<u32>,
    /// The bytes it was read from; it may only replace these.
    #[serde(skip)]
    stored: Option<Vec<u8>>,
    /// The damage, if it was read from its copy.
    #[serde(skip)]
    damage: Option<String>,
    /// The version that was read.
    #[serde(skip)]
    version_read: u32,
}

/// An object that no log is in any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// Its name.
    pub object: String,
    /// When the manifest stopped naming it, in seconds since 1970.
    pub since: u64,
}

/// An archived log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its file name.
    pub name: String,
    /// The objects that hold it, in the order of its parts.
    #[serde(alias = "object", deserialize_with = "one_or_several")]
    pub objects: Vec<String>,
    /// Its bytes.
    pub size: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// The SHA-256 of the original log, if its payloads come back as other bytes of equal meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_sha256: Option<String>,
    /// Bytes of its blocks.
    pub packed_size: u64,
    /// The level at which its payloads were compressed: they are kept expanded, and compressed again on
    /// restore.
    pub payload_level: Option<u8>,
    /// The library that reproduces their bytes at that level.
    #[serde(default)]
    pub payload_codec: Option<String>,
    /// Transaction payloads kept as bytes, since compressing would not reproduce them.
    pub payloads_kept: u64,
    /// Transactions of the earlier logs.
    pub previous_gtids: String,
    /// Transactions in it.
    pub gtids: String,
    /// The smallest and the largest timestamp of its events, in seconds since 1970.
    pub times: Option<(u32, u32)>,
    /// The mode of the original file, as for chmod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Set if its server was still writing the log: this is the part that was whole, and its size in bytes.
    /// Since version 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_size: Option<u64>,
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
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
    pub fn read(storage: &dyn Storage) -> Result<Option<Manifest>> {
        let Some(bytes) = storage.manifest()? else { return Ok(None) };
        let mut manifest = match Manifest::decode(&bytes) {
            Ok(manifest) => manifest,
            Err(error) => {
                let copy = Manifest::read_copy(storage);
                let Ok(copy) = copy else { return Err(error) };
                Manifest { damage: Some(error.to_string()), ..copy }
            }
        };
        manifest.stored = Some(bytes);
        Ok(Some(manifest))
    }

    fn read_copy(storage: &dyn Storage) -> Result<Manifest> {
        Manifest::decode(&copy(storage)?)
    }

    /// Copies the current manifest, which by now may be another run's, to the copy. In a folder no other run
    /// replaces it meanwhile; in object storage it is checked again afterwards.
    pub(crate) fn mend_copy(storage: &dyn Storage) -> Result<()> {
        // Nothing was ever stored there: a folder need not even exist.
        if storage.manifest()?.is_none() {
            return Ok(());
        }
        for _ in 0..COPY_ATTEMPTS_MAX {
            let mut copied = None;
            storage.alone(&mut || {
                copied = storage.manifest()?;
                match &copied {
                    Some(there) if !has_copy(there) => Ok(()),
                    Some(there) if copy(storage).is_ok_and(|copy| copy == *there) => Ok(()),
                    Some(there) => put_copy(storage, there),
                    None => Ok(()),
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
        let mut manifest: Manifest = serde_json::from_slice(bytes)?;
        if manifest.format != FORMAT || !(1..=VERSION).contains(&manifest.version) {
            let found = format!("{} {}", manifest.format, manifest.version);
            return Err(Error::unexpected("manifest", found, format!("{FORMAT} 1 to {VERSION}")));
        }
        match manifest.crc32.take() {
            Some(crc32) if crc32fast::hash(&manifest.bytes()?) != crc32 => {
                return Err(Error::damaged("manifest", "another checksum", "that of its bytes"));
            }
            None if manifest.version >= VERSION_COPY => {
                return Err(Error::damaged("manifest", "no checksum", "one, as its version has"));
            }
            _ => {}
        }
        sort_by_name(&mut manifest.files, |file| &file.name);
        manifest.version_read = manifest.version;
        Ok(manifest)
    }

    /// Problems with it or its copy, one line each.
    pub(crate) fn problems(&self, storage: &dyn Storage) -> Vec<String> {
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
        problems
    }

    /// Replaces the manifest that it was read from.
    ///
    /// # Errors
    ///
    /// Storage that fails; [`Error::Changed`] if the stored manifest is by now another one.
    pub fn write(&mut self, storage: &dyn Storage) -> Result<()> {
        self.sort();
        let named: BTreeSet<&str> = objects(&self.files).collect();
        self.retired.retain(|retired| !named.contains(retired.object.as_str()));
        self.version = VERSION;
        self.crc32 = None;
        self.crc32 = Some(crc32fast::hash(&self.bytes()?));
        let bytes = self.bytes()?;
        self.crc32 = None;
        storage.put_manifest(&bytes, self.stored.as_deref())?;
        Manifest::mend_copy(storage)?;
        self.stored = Some(bytes);
        self.damage = None;
        Ok(())
    }

    /// The objects that hold its logs.
    pub(crate) fn objects(&self) -> BTreeSet<&str> {
        objects(&self.files).collect()
    }

    /// Puts the logs into their order.
    pub(crate) fn sort(&mut self) {
        sort_by_name(&mut self.files, |file| &file.name);
    }

    /// Notes that nothing is in these objects any more. Those that a log is in are left out when it is written.
    pub(crate) fn retire(&mut self, objects: impl IntoIterator<Item = String>, since: u64) {
        let objects: BTreeSet<String> = objects.into_iter().collect();
        self.retired.retain(|retired| !objects.contains(&retired.object));
        self.retired.extend(objects.into_iter().map(|object| Retired { object, since }));
    }

    /// The damage, if its copy was read instead: the copy may be older.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// The objects that hold these logs, some of them several times.
pub(crate) fn objects(files: &[FileEntry]) -> impl Iterator<Item = &str> {
    files.iter().flat_map(|file| &file.objects).map(String::as_str)
}

/// Whether these are the bytes of a whole manifest of a version that has a copy.
fn has_copy(manifest: &[u8]) -> bool {
    Manifest::decode(manifest).is_ok_and(|manifest| manifest.version_read >= VERSION_COPY)
}

fn copy(storage: &dyn Storage) -> Result<Vec<u8>> {
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

fn put_copy(storage: &dyn Storage, manifest: &[u8]) -> Result<()> {
    storage.put(COPY, &mut |out| out.write_all(manifest).map_err(Error::io("write")))
}

impl FileEntry {
    /// SHA-256 of the original log.
    pub fn source_sha256(&self) -> &str {
        self.source_sha256.as_ref().unwrap_or(&self.sha256)
    }

    /// Transactions in it.
    ///
    /// # Errors
    ///
    /// A manifest that was changed by hand.
    pub fn gtid_set(&self) -> Result<GtidSet> {
        parse(&self.gtids)
    }

    /// Transactions of the earlier logs.
    ///
    /// # Errors
    ///
    /// As for [`FileEntry::gtid_set`].
    pub fn previous_gtid_set(&self) -> Result<GtidSet> {
        parse(&self.previous_gtids)
    }
}

/// Version 1 named one object, as a string.
fn one_or_several<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Objects {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Objects::deserialize(from)? {
        Objects::One(object) => vec![object],
        Objects::Several(objects) => objects,
    })
}

fn parse(text: &str) -> Result<GtidSet> {
    text.parse().map_err(|_| Error::unexpected("GTID set in the manifest", text, "a GTID set"))
}
