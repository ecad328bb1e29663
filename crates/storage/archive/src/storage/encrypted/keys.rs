//! Keys of encrypted archives. The owner's key encrypts only the archive's data key, which stands before the manifest;
//! so another owner's key costs one small write, and no object has to be encrypted again.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{SecretFileError, open_secret};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::storage::command;

/// Bytes of a key.
pub(super) const KEY_SIZE: usize = 32;
/// Bytes of a nonce, and of a tag.
const NONCE: usize = 12;
/// Authenticated together with an encrypted data key.
const PURPOSE: &[u8] = b"binlogz archive data key";
/// Hashed before a key to get its name.
const NAMED: &[u8] = b"binlogz archive key name";

/// The environment variable that names a file with the owner's key.
pub const KEY_FILE: &str = "BINLOGZ_ARCHIVE_KEY_FILE";
/// The environment variable that has a command which prints the owner's key.
pub(crate) const KEY_COMMAND: &str = "BINLOGZ_ARCHIVE_KEY_COMMAND";

/// Where the owner's key comes from. It has 32 bytes, as 64 hexadecimal digits or in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file that holds it, such as `openssl rand -base64 32` makes.
    File(PathBuf),
    /// A command for the shell that prints it, such as one that asks a key management service.
    Command(String),
}

impl KeySource {
    /// The one that the environment names: [`KEY_FILE`], or else [`KEY_COMMAND`].
    pub fn from_environment() -> Option<KeySource> {
        let file = std::env::var_os(KEY_FILE).filter(|path| !path.is_empty());
        let command = || std::env::var(KEY_COMMAND).ok().filter(|command| !command.is_empty());
        file.map(|path| KeySource::File(path.into())).or_else(|| command().map(KeySource::Command))
    }

    /// Reads the key.
    ///
    /// # Errors
    ///
    /// A file that can't be read, a command that fails, bytes that are no key.
    pub(super) fn key(&self) -> Result<OwnersKey> {
        let text = match self {
            KeySource::File(path) => of_file(path)?,
            KeySource::Command(command) => printed(command)?,
        };
        let key = decoded(text.trim()).ok_or_else(|| {
            Error::unexpected(
                format!("key of {self}"),
                format!("{} characters", text.trim().len()),
                "32 bytes as 64 hexadecimal digits or in base64, as `openssl rand -base64 32` prints",
            )
        })?;
        Ok(OwnersKey(key))
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::File(path) => write!(f, "{}", path.display()),
            KeySource::Command(_) => write!(f, "the key command"),
        }
    }
}

/// More than any key takes.
const FILE_SIZE_MAX: u64 = 4096;

/// The contents of a key file. As ssh does, one that is ours and that others may use is refused: it is no secret.
fn of_file(path: &Path) -> Result<String> {
    let doing = || Error::io(format!("read the key file {}", path.display()));
    let file = open_secret(path).map_err(|error| match error {
        SecretFileError::Io(error) => doing()(error),
        SecretFileError::Shared { path, mode } => Error::unexpected(
            format!("mode of the key file {}", path.display()),
            format_args!("{mode:04o}: others may use it"),
            format_args!("0600: chmod 600 {}", path.display()),
        ),
    })?;
    let mut text = String::new();
    file.take(FILE_SIZE_MAX).read_to_string(&mut text).map_err(doing())?;
    Ok(text)
}

/// The output of a command.
fn printed(command: &str) -> Result<String> {
    let failed = |found: String| Error::unexpected("the key command", found, "it to print the key");
    let output = command::output(command, command::PATIENCE).map_err(Error::io("run the key command"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{}: {}", output.status, said.trim())));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("bytes that are no text".into()))
}

fn decoded(text: &str) -> Option<[u8; KEY_SIZE]> {
    match from_hex(text) {
        Some(key) => Some(key),
        None => base64_simd::STANDARD.decode_to_vec(text).ok()?.try_into().ok(),
    }
}

/// As many bytes as `N`, of twice as many hexadecimal digits.
pub(super) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::damaged("random numbers", "none from the system", "some"))?;
    Ok(bytes)
}

/// The key that its owner keeps, outside the archive.
pub(super) struct OwnersKey([u8; KEY_SIZE]);

/// A data key, encrypted: the nonce, the key, the tag.
pub(super) type WrappedKey = [u8; NONCE + KEY_SIZE + 16];

impl OwnersKey {
    /// Names the key without telling anything of it.
    pub(super) fn name(&self) -> String {
        let hash = Sha256::new().chain_update(NAMED).chain_update(self.0).finalize();
        hex(hash.get(..8).unwrap_or_default())
    }

    fn cipher(&self) -> Result<LessSafeKey> {
        let key = UnboundKey::new(&AES_256_GCM, &self.0).map_err(|_| unwrapped())?;
        Ok(LessSafeKey::new(key))
    }

    pub(super) fn wrap(&self, key: &DataKey) -> Result<WrappedKey> {
        let nonce = random::<NONCE>()?;
        let mut bytes = key.0.to_vec();
        let sealed = self.cipher()?.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(PURPOSE),
            &mut bytes,
        );
        sealed.map_err(|_| unwrapped())?;
        [nonce.as_slice(), &bytes].concat().try_into().map_err(|_| unwrapped())
    }

    pub(super) fn unwrap(&self, wrapped: &WrappedKey) -> Result<DataKey> {
        let (nonce, bytes) = wrapped.split_at(NONCE);
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| unwrapped())?;
        let mut bytes = bytes.to_vec();
        let key =
            self.cipher()?.open_in_place(nonce, Aad::from(PURPOSE), &mut bytes).map_err(|_| unwrapped())?;
        Ok(DataKey((&*key).try_into().map_err(|_| unwrapped())?))
    }
}

fn unwrapped() -> Error {
    Error::damaged("data key of the archive", "one that its owner's key does not open", "the one stored")
}

/// The key that an archive's objects are encrypted with, by way of keys derived from it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct DataKey([u8; KEY_SIZE]);

impl DataKey {
    pub(super) fn new() -> Result<DataKey> {
        random().map(DataKey)
    }

    /// A key for one purpose and salt.
    pub(super) fn derived<const N: usize>(&self, salt: &[u8], purpose: &[u8]) -> Result<[u8; N]> {
        let mut key = [0; N];
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&self.0);
        let purpose = [purpose];
        let expanded = extracted.expand(&purpose, Length(N));
        expanded.and_then(|key_material| key_material.fill(&mut key)).map_err(|_| unwrapped())?;
        Ok(key)
    }
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
