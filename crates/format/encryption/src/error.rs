//! Errors of an encrypted log, or of the keyring that should open it.

use std::fmt::Display;
use std::io;

/// The result of reading or writing an encrypted log.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Sorted by blame: the log's header, the keyring's file, the two not belonging together, us.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log's header, or a file of the keyring_file plugin, does not hold what its format says.
    #[error(transparent)]
    Format(#[from] binlogz_binlog::Error),
    /// The file is not a known kind of keyring.
    #[error(
        "not a keyring: it begins with {found}, expected the JSON of component_keyring_file \
         or \"Keyring file version:2.0\" of the keyring_file plugin"
    )]
    NoKeyring {
        /// The first bytes, as text.
        found: String,
    },
    /// The file of component_keyring_file is not the JSON it should be.
    #[error("keyring: {0}")]
    Json(#[from] serde_json::Error),
    /// The file is larger than a keyring can be.
    #[error("not a keyring: it is larger than {max} bytes")]
    KeyringTooLarge {
        /// The largest keyring that is read, in bytes.
        max: u64,
    },
    /// The digest after the keys of a keyring_file plugin is not that of the keys.
    #[error("keyring: its SHA-256 digest does not match its keys")]
    KeyringDigest,
    /// An entry of the keyring can't be what its name says.
    #[error("keyring: entry {id} {found}, expected {expected}")]
    KeyringEntry {
        /// The entry's name.
        id: String,
        /// The problem with it.
        found: String,
        /// The contents that such an entry should have.
        expected: &'static str,
    },
    /// The log needs a key that the keyring does not have.
    #[error("key {id} is not in the keyring, which has {present}{}", purged_suffix(*purged))]
    NoKey {
        /// The key's name.
        id: String,
        /// The keys that are there.
        present: String,
        /// The server removed the key when its master key was rotated.
        purged: bool,
    },
    /// The log was not encrypted with the key that the keyring has under its key's name.
    #[error(
        "decrypted with key {id} the log begins with {found}, expected fe 62 69 6e: the keyring \
         has another key of this name, or the encryption header is damaged"
    )]
    WrongKey {
        /// The key's name.
        id: String,
        /// The bytes that the log decrypts to.
        found: String,
    },
    /// The keyring has no key to encrypt with.
    #[error("the keyring has no current key of {server}, it has {present}")]
    NoCurrentKey {
        /// The server asked for, or "any server".
        server: String,
        /// The keys that are there.
        present: String,
    },
    /// The keyring has keys of more than one server, and the caller did not say whose to encrypt with.
    #[error("the keyring has keys of several servers, one must be chosen: {servers}")]
    SeveralServers {
        /// The servers' server_uuids.
        servers: String,
    },
    /// The operating system gave no random bytes.
    #[error("draw a random file password: {0}")]
    Random(#[from] getrandom::Error),
    /// The reader or writer underneath failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// The error as a line that begins with the file: `FILE at OFFSET: …` where it has an offset, or else `FILE: …`.
    #[must_use]
    pub fn in_file(&self, file: &dyn Display) -> String {
        match self {
            Error::Format(error) if error.offset().is_some() => format!("{file} {error}"),
            error => format!("{file}: {error}"),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            other => io::Error::other(other),
        }
    }
}

fn purged_suffix(purged: bool) -> &'static str {
    if purged { ": the server removed it at a key rotation, a keyring from before is needed" } else { "" }
}

/// Bytes as errors show them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}
