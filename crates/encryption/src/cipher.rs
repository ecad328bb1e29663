//! The two ciphers of an encrypted log: one wraps the file's password, one runs over its bytes.
//!
//! ```text
//! file password (32 random bytes) ⇄ AES-256-CBC(master key, IV of the header), no padding ⇄ header
//! SHA-512(file password) = file key (32) · nonce (8) · 24 bytes unused
//! plaintext ⇄ AES-256-CTR(file key, nonce ‖ block number u64 big-endian, from 0) ⇄ the log from 512 on
//! ```
//!
//! (`EVP_BytesToKey` with one round and no salt, in OpenSSL's terms.) CTR has no integrity check of
//! its own: the checksum of each event is what tells a damaged log from a good one.

use aes::Aes256;
use aes::cipher::{
    BlockDecryptMut, BlockEncryptMut, InnerIvInit, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek,
};
use sha2::{Digest, Sha512};

use crate::header::{EncryptionHeader, IV_SIZE, PASSWORD_SIZE};
use crate::keyring::MasterKey;

const BLOCK_SIZE: usize = 16;

/// Bytes of the digest that begin the counter block.
const NONCE_SIZE: usize = 8;

/// The secret that a log's bytes are encrypted with; itself encrypted in the header.
pub(crate) struct FilePassword(pub(crate) [u8; PASSWORD_SIZE]);

impl FilePassword {
    /// Encrypts the password for a header: the other direction of [`FilePassword::unwrap`].
    pub(crate) fn wrap(&self, key: &MasterKey, iv: [u8; IV_SIZE]) -> EncryptionHeader {
        let mut encrypted_password = self.0;
        let mut cbc = cbc::Encryptor::<Aes256>::new(key.value().into(), &iv.into());
        for block in encrypted_password.as_chunks_mut::<BLOCK_SIZE>().0 {
            cbc.encrypt_block_mut(block.into());
        }
        EncryptionHeader { key_id: key.id().to_owned(), encrypted_password, iv }
    }

    /// Decrypts the password of a header. Any key gives some password: whether it was the right
    /// one shows in the first bytes of the log.
    pub(crate) fn unwrap(header: &EncryptionHeader, key: &MasterKey) -> Self {
        let mut password = header.encrypted_password;
        let mut cbc = cbc::Decryptor::<Aes256>::new(key.value().into(), &header.iv.into());
        for block in password.as_chunks_mut::<BLOCK_SIZE>().0 {
            cbc.decrypt_block_mut(block.into());
        }
        FilePassword(password)
    }
}

/// Encrypts and decrypts one log, at any offset and from several threads.
pub struct FileCipher {
    aes: Aes256,
    first_counter_block: [u8; BLOCK_SIZE],
}

impl FileCipher {
    pub(crate) fn new(password: &FilePassword) -> Self {
        let digest: [u8; 64] = Sha512::digest(password.0).into();
        let (file_key, rest) = digest.split_first_chunk::<32>().unwrap_or((&[0; 32], &[]));
        let mut first_counter_block = [0; BLOCK_SIZE];
        for (byte, nonce) in first_counter_block.iter_mut().zip(rest).take(NONCE_SIZE) {
            *byte = *nonce;
        }
        FileCipher { aes: Aes256::new(file_key.into()), first_counter_block }
    }

    /// Turns plaintext into ciphertext, or back (the two are the same): `bytes` stand at `offset`
    /// in the plain log.
    pub fn apply(&self, bytes: &mut [u8], offset: u64) {
        let counter = ctr::CtrCore::inner_iv_init(self.aes.clone(), &self.first_counter_block.into());
        let mut keystream = ctr::Ctr64BE::<Aes256>::from_core(counter);
        // A position of 64 bits is always in a keystream of 2^64 blocks: this can't panic.
        keystream.seek(offset);
        keystream.apply_keystream(bytes);
    }
}

impl std::fmt::Debug for FileCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FileCipher")
    }
}
