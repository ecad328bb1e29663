//! What a manifest tells of a log.

use binlogz_binlog::gtid::GtidSet;
use serde::{Deserialize, Serialize};

use super::erasure_note::ErasureNote;
use crate::error::{Error, Result};
use crate::storage::{LogName, ObjectName};

/// An archived log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// File name of the log.
    pub name: LogName,
    /// The objects that hold it, in the order of its parts.
    #[serde(alias = "object", deserialize_with = "one_or_several")]
    pub objects: Vec<ObjectName>,
    /// Size of the log in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// The SHA-256 of the original log, if its payloads come back as other bytes of equal meaning, or if values were erased from it.
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
    /// The runs that erased values from it, the oldest first: it isn't byte for byte the server's log any more. Since
    /// version 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erasures: Vec<ErasureNote>,
}

impl FileEntry {
    /// Whether values were erased from it.
    pub fn is_erased(&self) -> bool {
        !self.erasures.is_empty()
    }

    /// Up to here its positions are those of its server's log; `None`: all are, nothing was erased.
    pub fn positions_until(&self) -> Option<u64> {
        self.erasures.iter().map(|note| note.same_until).min()
    }

    /// Whether a log with this SHA-256 is this one: as it was, or as it is since values were erased from it.
    pub(crate) fn is_of(&self, sha256: &str) -> bool {
        self.source_sha256() == sha256 || self.is_erased() && self.sha256 == sha256
    }

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
fn one_or_several<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<ObjectName>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Objects {
        One(String),
        Several(Vec<String>),
    }
    // Checked after serde has chosen between the two: an error of its choice would not tell the name.
    let objects = match Objects::deserialize(from)? {
        Objects::One(object) => vec![object],
        Objects::Several(objects) => objects,
    };
    objects.into_iter().map(|object| ObjectName::new(object).map_err(serde::de::Error::custom)).collect()
}

fn parse(text: &str) -> Result<GtidSet> {
    text.parse().map_err(|_| Error::unexpected("GTID set in the manifest", text, "a GTID set"))
}

/// The objects that hold these logs, some of them several times.
pub(crate) fn objects(files: &[FileEntry]) -> impl Iterator<Item = &str> {
    files.iter().flat_map(|file| &file.objects).map(ObjectName::as_str)
}
