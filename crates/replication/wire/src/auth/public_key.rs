//! Sends a password over a connection that is not encrypted, so that only the server can read it.
//!
//! The password followed by a NUL is XORed with the repeated nonce and encrypted with the server's RSA key
//! (OAEP with SHA-1, as the server's OpenSSL does by default).

use rsa::pkcs8::DecodePublicKey;
use rsa::rand_core::{self, CryptoRng, RngCore};
use rsa::{Oaep, RsaPublicKey};
use sha1::{Digest, Sha1};

use crate::error::{Error, Result};
use crate::greeting::NONCE_SIZE;

/// Bytes of randomness that one encryption takes.
pub(crate) const SEED_SIZE: usize = 20;

/// Encrypts a password with a public key in PEM form.
///
/// `seed` must be random and used for one login: this crate has no source of randomness.
///
/// # Errors
///
/// A key that can't be read, or a password too long for it.
pub(crate) fn encrypt_password(
    password: &[u8],
    nonce: &[u8; NONCE_SIZE],
    key: &[u8],
    seed: [u8; SEED_SIZE],
) -> Result<Vec<u8>> {
    // The key file that mysqld makes for itself ends with a NUL.
    let pem = String::from_utf8_lossy(key);
    let pem = pem.trim_matches(|edge: char| edge.is_whitespace() || edge == '\0');
    let key = RsaPublicKey::from_public_key_pem(pem).map_err(|_| {
        let expected = "expected an RSA key of at most 4096 bits in PEM form";
        Error::Unsupported(format!("public key of the server can't be read: {expected}"))
    })?;
    let plain: Vec<u8> =
        password.iter().chain(&[0]).zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    // A server may ask twice in a login, with different nonces: use different randomness each time.
    let bytes = Sha1::new().chain_update(seed).chain_update(nonce).finalize().into();
    key.encrypt(&mut Seed { bytes, taken: false }, Oaep::new::<Sha1>(), &plain).map_err(|error| {
        Error::Unsupported(format!("encrypt password with the server's public key: {error}"))
    })
}

/// Hands out the seed, once.
struct Seed {
    bytes: [u8; SEED_SIZE],
    taken: bool,
}

impl RngCore for Seed {
    fn next_u32(&mut self) -> u32 {
        rand_core::impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        rand_core::impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        // OAEP draws exactly one seed; anything else would repeat bytes that must not repeat.
        assert!(!self.taken && bytes.len() == SEED_SIZE, "OAEP with SHA-1 takes one seed of 20 bytes");
        self.taken = true;
        bytes.copy_from_slice(&self.bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for Seed {}

#[cfg(test)]
mod tests {
    use rsa::RsaPrivateKey;
    use rsa::pkcs8::{EncodePublicKey, LineEnding};

    use super::*;

    /// Not random at all: only for test keys.
    struct Counter(u64);

    impl RngCore for Counter {
        fn next_u32(&mut self) -> u32 {
            self.next_u64() as u32
        }
        fn next_u64(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 ^ self.0 >> 32
        }
        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.iter_mut().for_each(|byte| *byte = self.next_u64() as u8);
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
            self.fill_bytes(bytes);
            Ok(())
        }
    }

    impl CryptoRng for Counter {}

    #[test]
    fn the_server_gets_the_password_back() {
        let private = RsaPrivateKey::new(&mut Counter(1), 1024).unwrap();
        let pem = private.to_public_key().to_public_key_pem(LineEnding::LF).unwrap();
        let nonce = b"abcdefghijklmnopqrst";
        for (password, pem) in
            [("secret", pem.clone()), ("a password of more than 20 bytes", pem.clone() + "\0")]
        {
            let sent = encrypt_password(password.as_bytes(), nonce, pem.as_bytes(), [7; SEED_SIZE]).unwrap();
            let plain = private.decrypt(Oaep::new::<Sha1>(), &sent).unwrap();
            let back: Vec<u8> =
                plain.iter().zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            assert_eq!(back, [password.as_bytes(), b"\0"].concat());
        }
        let one = encrypt_password(b"secret", nonce, pem.as_bytes(), [7; SEED_SIZE]).unwrap();
        let other = encrypt_password(b"secret", nonce, pem.as_bytes(), [8; SEED_SIZE]).unwrap();
        assert_ne!(one, other, "the seed has its part");
        let error = encrypt_password(&[b'x'; 86], nonce, pem.as_bytes(), [7; SEED_SIZE]).unwrap_err();
        assert_eq!(error.to_string(), "encrypt password with the server's public key: message too long");
        let error = encrypt_password(b"secret", nonce, b"no key", [7; SEED_SIZE]).unwrap_err().to_string();
        assert!(error.starts_with("public key of the server can't be read"), "{error}");
    }
}
