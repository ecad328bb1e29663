//! Proofs of a password that don't reveal it: hashes of the password and the server's nonce.
//!
//! ```text
//! mysql_native_password  SHA1(password) xor SHA1(nonce · SHA1(SHA1(password)))
//! caching_sha2_password  SHA256(password) xor SHA256(SHA256(SHA256(password)) · nonce)
//! ```

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::greeting::NONCE_SIZE;

/// The proof of `mysql_native_password`.
pub fn native_password(password: &[u8], nonce: &[u8; NONCE_SIZE]) -> [u8; 20] {
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let salted = Sha1::new().chain_update(nonce).chain_update(twice).finalize();
    xor(once.into(), salted.into())
}

/// The form in which a server keeps a password of `mysql_native_password`.
pub(crate) fn stored_password(password: &[u8]) -> [u8; 20] {
    Sha1::digest(Sha1::digest(password)).into()
}

/// The server's proof that it knows the stored password and has the certificate of this SHA-256 (MDEV-31855).
pub(crate) fn certificate_proof(
    stored: &[u8; 20],
    nonce: &[u8; NONCE_SIZE],
    certificate: &[u8; 32],
) -> [u8; 32] {
    Sha256::new().chain_update(stored).chain_update(nonce).chain_update(certificate).finalize().into()
}

/// The proof of `caching_sha2_password`, which suffices if the server has the password cached.
pub fn caching_sha2_password(password: &[u8], nonce: &[u8; NONCE_SIZE]) -> [u8; 32] {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let salted = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
    xor(once.into(), salted.into())
}

fn xor<const N: usize>(mut left: [u8; N], right: [u8; N]) -> [u8; N] {
    left.iter_mut().zip(right).for_each(|(byte, other)| *byte ^= other);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    // Values computed independently, with Python's hashlib.
    #[test]
    fn known_proofs() {
        let nonce = b"abcdefghijklmnopqrst";
        assert_eq!(hex(&native_password(b"secret", nonce)), "8817c50fa779daef010ee7577825b0847df9842e");
        assert_eq!(
            hex(&caching_sha2_password(b"secret", nonce)),
            "c76e2898612a4cf042c77fa8c4702c4c64c0c2c557c53c4d75595aaa6abae809"
        );
    }
}
