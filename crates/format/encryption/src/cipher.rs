//! The two ciphers of an encrypted log: one wraps the file's password, one runs over its bytes.
//!
//! ```text
//! file password (32 random bytes) ⇄ AES-256-CBC(master key, IV of the header), no padding ⇄ header
//! SHA-512(file password) = file key (32) · nonce (8) · 24 bytes unused
//! plaintext ⇄ AES-256-CTR(file key, nonce ‖ block number u64 big-endian, from 0) ⇄ the log from 512 on
//! ```
//!
//! (`EVP_BytesToKey` with one round and no salt, in OpenSSL's terms.) CTR has no integrity check of its own: only the
//! checksum of each event tells a damaged log from a good one.

use aes::Aes256;
use aes::cipher::{
    BlockDecryptMut, BlockEncryptMut, InnerIvInit, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek,
};
use binlogz_binlog::MAGIC;
use sha2::{Digest, Sha512};

use crate::error::{Error, Result, hex};
use crate::header::{EncryptionHeader, HEADER_SIZE, IV_SIZE, PASSWORD_SIZE};
use crate::keyring::{Keyring, MasterKey};

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

    /// Decrypts the password of a header. Any key gives some password: the first bytes of the log show
    /// whether it was the right one.
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
    /// Bytes that [`FileCipher::open`] needs: the header, and the magic after it.
    pub const START_SIZE: usize = HEADER_SIZE + MAGIC.len();

    /// The cipher of the log that begins with `start`: its first [`FileCipher::START_SIZE`] bytes,
    /// or all of a shorter log.
    ///
    /// # Errors
    ///
    /// A bad header; a key that the keyring lacks, or has wrong. A log that ends after its header can't show
    /// whether the key is right.
    pub fn open(start: &[u8], keyring: &Keyring) -> Result<Self> {
        let header = EncryptionHeader::decode(start)?;
        let key = keyring.master_key(&header.key_id)?;
        let cipher = FileCipher::new(&FilePassword::unwrap(&header, &key));
        let body = start.get(HEADER_SIZE..).unwrap_or_default();
        let mut magic = body.get(..MAGIC.len()).unwrap_or(body).to_vec();
        cipher.apply(&mut magic, 0);
        if !MAGIC.starts_with(&magic) {
            return Err(Error::WrongKey { id: header.key_id, found: hex(&magic) });
        }
        Ok(cipher)
    }

    /// The cipher of a new log, and its header: the password and the IV come from the operating system's
    /// random number generator.
    ///
    /// # Errors
    ///
    /// No random numbers.
    pub fn create(key: &MasterKey) -> Result<(Self, EncryptionHeader)> {
        let mut password = FilePassword([0; PASSWORD_SIZE]);
        let mut iv = [0; IV_SIZE];
        getrandom::fill(&mut password.0)?;
        getrandom::fill(&mut iv)?;
        Ok((FileCipher::new(&password), password.wrap(key, iv)))
    }

    pub(crate) fn new(password: &FilePassword) -> Self {
        let digest: [u8; 64] = Sha512::digest(password.0).into();
        let (file_key, rest) = digest.split_first_chunk::<32>().unwrap_or((&[0; 32], &[]));
        let mut first_counter_block = [0; BLOCK_SIZE];
        for (byte, nonce) in first_counter_block.iter_mut().zip(rest).take(NONCE_SIZE) {
            *byte = *nonce;
        }
        FileCipher { aes: Aes256::new(file_key.into()), first_counter_block }
    }

    /// Turns plaintext into ciphertext, or back (the two are the same): `bytes` are at `offset` in the plain
    /// log.
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
