//! Hashes in manifests and in names.

use sha2::{Digest, Sha256};

/// A SHA-256 in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
