//! `--keyring` and `--encrypt`: the keys of encrypted logs.

use std::path::PathBuf;

use binlogz_encryption::{Keyring, MasterKey};
use clap::Args;

use crate::failure::{CommandFailure, Result};

/// The arguments of every command that reads logs.
#[derive(Debug, Args)]
pub struct KeyringArg {
    /// Read encrypted logs with the keys of this keyring file
    ///
    /// The file of component_keyring_file, or of the keyring_file plugin of MySQL 8.0. Plain logs are read as without it.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    keyring: Option<PathBuf>,
}

impl KeyringArg {
    /// The option as words, if it is given.
    pub fn words(&self) -> Vec<String> {
        self.keyring.iter().map(|path| format!("--keyring={}", path.display())).collect()
    }

    /// Reads the keyring, where one was named.
    pub fn open(&self) -> Result<Option<Keyring>> {
        let open = |path: &PathBuf| {
            Keyring::open(path).map_err(|error| CommandFailure::with_encryption(&path.display(), &error))
        };
        self.keyring.as_ref().map(open).transpose()
    }
}

/// The arguments of every command that writes logs.
#[derive(Debug, Args)]
pub struct EncryptArg {
    /// Encrypt the output as the server would, with the current key of the keyring
    ///
    /// Without it the output is plain, even that of an encrypted log. If the keyring has keys of several servers, give
    /// the server_uuid of one.
    #[arg(long, value_name = "SERVER_UUID", num_args = 0..=1, require_equals = true, requires = "keyring")]
    encrypt: Option<Option<String>>,
}

impl EncryptArg {
    /// The key to encrypt with, where that was asked for.
    pub fn key(&self, keyring: Option<&Keyring>) -> Result<Option<MasterKey>> {
        let (Some(server_uuid), Some(keyring)) = (&self.encrypt, keyring) else { return Ok(None) };
        let key = keyring.current_key(server_uuid.as_deref());
        key.map(Some).map_err(|error| CommandFailure::with_encryption(&"--encrypt", &error))
    }
}
