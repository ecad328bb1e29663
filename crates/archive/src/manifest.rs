//! What an archive holds: JSON, so that an archive explains itself to whoever finds it.

use binlogz_binlog::gtid::GtidSet;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::order;
use crate::storage::Storage;

const FORMAT: &str = "binlogz archive";
/// The version written. Versions 1, which had one object for each log, and 2, which had no copy, are read.
const VERSION: u32 = 3;
/// The first version that must have a checksum, and has a copy.
const VERSION_COPY: u32 = 3;
/// The manifest once more, among the objects: written behind it, read where it is damaged.
const COPY: &str = "manifest-copy.json";
/// How often the copy is written of a manifest that other runs replace all the time: the last of them has the last word.
const COPY_ATTEMPTS_MAX: u32 = 10;
/// A copy is no larger.
const COPY_SIZE_MAX: u64 = 1 << 30;

/// The manifest of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    version: u32,
    /// The logs, in the order of [`crate::order`].
    pub files: Vec<FileEntry>,
    /// CRC-32 of the manifest as it is without this field; `None` in those that have it not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc32: Option<u32>,
    /// The bytes it was read from, which alone it may replace.
    #[serde(skip)]
    stored: Option<Vec<u8>>,
    /// What is wrong with it, where it was read from its copy.
    #[serde(skip)]
    damage: Option<String>,
    /// The version that was read.
    #[serde(skip)]
    version_read: u32,
}

/// An archived log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its file name.
    pub name: String,
    /// The objects that hold it, one part of it behind the other.
    #[serde(alias = "object", deserialize_with = "one_or_several")]
    pub objects: Vec<String>,
    /// Its bytes.
    pub size: u64,
    /// Their SHA-256, in hexadecimal.
    pub sha256: String,
    /// That of the log as it was, where its payloads come back in other bytes of equal meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_sha256: Option<String>,
    /// Bytes of its blocks.
    pub packed_size: u64,
    /// The level at which its payloads were compressed: they are kept expanded, and come back by compressing.
    pub payload_level: Option<u8>,
    /// The library that gives their bytes back at that level.
    #[serde(default)]
    pub payload_codec: Option<String>,
    /// Transaction payloads kept as bytes, since compressing would not give them back.
    pub payloads_kept: u64,
    /// Transactions of the logs before.
    pub previous_gtids: String,
    /// Transactions in it.
    pub gtids: String,
    /// The smallest and the largest timestamp of its events, in seconds since 1970.
    pub times: Option<(u32, u32)>,
    /// The mode of the file that it was, as chmod counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
            files: Vec::new(),
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
    /// One that can't be read, or of another version.
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

    /// Makes the copy that of the manifest that is there, which by now may be another run's. In a folder nobody replaces
    /// it meanwhile; in object storage it is looked at again afterwards.
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
                return Err(Error::damaged("manifest", "is damaged (checksum differs)"));
            }
            None if manifest.version >= VERSION_COPY => {
                return Err(Error::damaged("manifest", "is damaged (without a checksum)"));
            }
            _ => {}
        }
        order::sort_by_name(&mut manifest.files, |file| &file.name);
        manifest.version_read = std::mem::replace(&mut manifest.version, VERSION);
        Ok(manifest)
    }

    /// What is wrong with it or its copy, one line each.
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

    /// Stores it in the place of the manifest it was read from.
    ///
    /// # Errors
    ///
    /// Storage that fails; [`Error::Changed`] where another manifest stands there by now.
    pub fn write(&mut self, storage: &dyn Storage) -> Result<()> {
        order::sort_by_name(&mut self.files, |file| &file.name);
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

    fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Whether these are the bytes of a manifest that is whole, and of a version that has a copy.
fn has_copy(manifest: &[u8]) -> bool {
    Manifest::decode(manifest).is_ok_and(|manifest| manifest.version_read >= VERSION_COPY)
}

fn copy(storage: &dyn Storage) -> Result<Vec<u8>> {
    let copy = storage.get(COPY)?;
    let size = copy.size()?;
    if size > COPY_SIZE_MAX {
        return Err(Error::damaged("copy of the manifest", "is larger than can be"));
    }
    copy.read(0, size as usize)
}

fn put_copy(storage: &dyn Storage, manifest: &[u8]) -> Result<()> {
    storage.put(COPY, &mut |out| out.write_all(manifest).map_err(Error::io("write")))
}

impl FileEntry {
    /// SHA-256 of the log as it was.
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

    /// Transactions of the logs before.
    ///
    /// # Errors
    ///
    /// As above.
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
