//! The text before an encrypted manifest: the data key, encrypted with its owner's key.
//!
//! ```text
//! binlogz encrypted archive 1
//! {"key":"5f0c…","data_key":"…","crc32":…}      the name of the owner's key, the data key, CRC-32 of both
//! …                                            the manifest, encrypted as an object
//! ```

use serde::{Deserialize, Serialize};

use super::keys::{DataKey, OwnersKey, Wrapped, from_hex, hex};
use crate::error::{Error, Result};

/// The first line.
const MARK: &[u8] = b"binlogz encrypted archive 1\n";
/// The largest second line.
const LINE_MAX: usize = 4096;

/// The second line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Names the owner's key.
    pub(super) key: String,
    data_key: String,
    crc32: u32,
}

/// Whether these are the bytes of an encrypted manifest, or their beginning.
pub(super) fn is_encrypted(manifest: &[u8]) -> bool {
    manifest.starts_with(MARK)
}

impl Header {
    pub(super) fn new(owner: &OwnersKey, data_key: &DataKey) -> Result<Header> {
        let data_key = hex(&owner.wrap(data_key)?);
        let key = owner.name();
        Ok(Header { crc32: checksum(&key, &data_key), key, data_key })
    }

    /// Takes an encrypted manifest apart: the header, and what follows it.
    pub(super) fn split(manifest: &[u8]) -> Result<(Header, &[u8])> {
        let rest = manifest.strip_prefix(MARK);
        let line = rest.and_then(|rest| rest.iter().take(LINE_MAX).position(|byte| *byte == b'\n'));
        let (line, sealed) =
            rest.zip(line).and_then(|(rest, end)| rest.split_at_checked(end)).ok_or_else(damaged)?;
        let header: Header = serde_json::from_slice(line).map_err(|_| damaged())?;
        if header.crc32 != checksum(&header.key, &header.data_key) {
            return Err(damaged());
        }
        Ok((header, sealed.strip_prefix(b"\n").unwrap_or_default()))
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        Ok([MARK, &serde_json::to_vec(self)?, b"\n"].concat())
    }

    pub(super) fn data_key(&self, owner: &OwnersKey) -> Result<DataKey> {
        let wrapped: Wrapped = from_hex(&self.data_key).ok_or_else(damaged)?;
        owner.unwrap(&wrapped)
    }
}

fn checksum(key: &str, data_key: &str) -> u32 {
    crc32fast::hash([key, " ", data_key].concat().as_bytes())
}

fn damaged() -> Error {
    Error::damaged("manifest", "a damaged header", "that of an encrypted archive")
}
