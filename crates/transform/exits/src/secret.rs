//! The key of hashes: HMAC-SHA-256 (RFC 2104, FIPS 198-1).

use std::fmt;

use ring::hmac::{self, Context, HMAC_SHA256};

/// The least bytes of a key: 128 bits, if they are random.
pub(crate) const KEY_SIZE_MIN: usize = 16;

/// A secret key. Whoever has it can try values out.
pub(crate) struct MaskKey(hmac::Key);

impl fmt::Debug for MaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MaskKey")
    }
}

impl MaskKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        MaskKey(hmac::Key::new(HMAC_SHA256, key))
    }

    /// The hash of parts, each with its length, so that no two lists of parts have the same bytes.
    pub(crate) fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = Context::with_key(&self.0);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        for (place, byte) in digest.iter_mut().zip(context.sign().as_ref()) {
            *place = *byte;
        }
        digest
    }
}
