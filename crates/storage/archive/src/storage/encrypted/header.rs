//! The text before an encrypted manifest: the data key, encrypted with its owner's key.
//!
//! ```text
//! binlogz encrypted archive 2
//! {"key":"5f0c…","data_key":"…","crc32":…,"generation":…}
//!                        the name of the owner's key, the data key, CRC-32 of both, and how often the manifest was replaced
//! …                      the manifest, encrypted as an object; the generation is authenticated with it
//! ```
//!
//! Version 1 had no generation.

use serde::{Deserialize, Serialize};

use super::keys::{DataKey, OwnersKey, WrappedKey, from_hex, hex};
use crate::error::{Error, Result};
use crate::storage::MANIFEST;

/// The first line since manifests have a generation.
const MARK: &[u8] = b"binlogz encrypted archive 2\n";
/// The first line of manifests without a generation.
const MARK_1: &[u8] = b"binlogz encrypted archive 1\n";
/// The largest second line.
const LINE_MAX: usize = 4096;

/// The second line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Names the owner's key.
    pub(super) key: String,
    data_key: String,
    crc32: u32,
    /// How often the manifest was replaced; `None`: in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
}

/// Whether these are the bytes of an encrypted manifest, or their beginning.
pub(super) fn is_encrypted(manifest: &[u8]) -> bool {
    manifest.starts_with(MARK) || manifest.starts_with(MARK_1)
}

impl Header {
    pub(super) fn new(owner: &OwnersKey, data_key: &DataKey) -> Result<Header> {
        let data_key = hex(&owner.wrap(data_key)?);
        let key = owner.name();
        Ok(Header { crc32: checksum(&key, &data_key), key, data_key, generation: Some(0) })
    }

    /// Splits an encrypted manifest into the header and the bytes after it.
    pub(super) fn split(manifest: &[u8]) -> Result<(Header, &[u8])> {
        let (first, rest) = match manifest.strip_prefix(MARK) {
            Some(rest) => (MARK, Some(rest)),
            None => (MARK_1, manifest.strip_prefix(MARK_1)),
        };
        let line = rest.and_then(|rest| rest.iter().take(LINE_MAX).position(|byte| *byte == b'\n'));
        let (line, sealed) =
            rest.zip(line).and_then(|(rest, end)| rest.split_at_checked(end)).ok_or_else(damaged)?;
        let header: Header = serde_json::from_slice(line).map_err(|_| damaged())?;
        if header.crc32 != checksum(&header.key, &header.data_key)
            || header.generation.is_some() != (first == MARK)
        {
            return Err(damaged());
        }
        Ok((header, sealed.strip_prefix(b"\n").unwrap_or_default()))
    }

    /// How often the manifest was replaced since generations are counted.
    pub(super) fn generation(&self) -> u64 {
        self.generation.unwrap_or_default()
    }

    /// The header of a manifest that replaces one of this generation.
    pub(super) fn after(&self, generation: u64) -> Header {
        Header { generation: Some(generation.saturating_add(1)), ..self.clone() }
    }

    /// Whether the same keys open both.
    pub(super) fn has_keys_of(&self, other: &Header) -> bool {
        self.key == other.key && self.data_key == other.data_key
    }

    /// The name under which the manifest after this header is encrypted: chunks authenticate it.
    pub(super) fn sealed_name(&self) -> String {
        match self.generation {
            Some(generation) => format!("{MANIFEST} {generation}"),
            None => MANIFEST.to_owned(),
        }
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        let mark = if self.generation.is_some() { MARK } else { MARK_1 };
        Ok([mark, &serde_json::to_vec(self)?, b"\n"].concat())
    }

    pub(super) fn data_key(&self, owner: &OwnersKey) -> Result<DataKey> {
        let wrapped: WrappedKey = from_hex(&self.data_key).ok_or_else(damaged)?;
        owner.unwrap(&wrapped)
    }
}

fn checksum(key: &str, data_key: &str) -> u32 {
    crc32fast::hash([key, " ", data_key].concat().as_bytes())
}

fn damaged() -> Error {
    Error::damaged("manifest", "a damaged header", "that of an encrypted archive")
}
