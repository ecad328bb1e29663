//! Reads and writes encrypted binary logs (`binlog_encryption=ON`): keyrings, the header, the cipher.
//!
//! ```text
//! keyring file → Keyring ─ master key ┐
//! log → header ─ file password, wrapped ┴→ FileCipher → the plain log
//! ```
//!
//! [`Keyring`] has a server's master keys, [`EncryptionHeader`] says which of them a log needs, and
//! [`FileCipher`] turns ciphertext into plaintext and back at any offset. [`DecryptingReader`] and
//! [`EncryptingWriter`] use them sequentially; `binlogz-flow` reads at any place. Every position anywhere
//! else, in events, indexes and errors, is one of the plaintext.
//!
//! A crate separate from `binlogz-binlog`, most of whose users need neither ciphers nor JSON; the two build
//! in parallel. The format was verified against the sources of MySQL 9.7.4 (`sql/rpl_log_encryption.cc`), a
//! live server, and files of 8.0.14.
//!
//! ```
//! use std::io::Read;
//! let keyring = binlogz_encryption::Keyring::open("sample/keyring.json".as_ref())?;
//! let log = std::fs::File::open("sample/binlog.000001")?;
//! let mut plain = binlogz_encryption::DecryptingReader::new(log, &keyring)?;
//! let mut magic = [0; 4];
//! plain.read_exact(&mut magic)?;
//! assert_eq!(magic, binlogz_binlog::MAGIC);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cipher;
mod error;
mod header;
mod keyring;
mod stream;

pub use cipher::FileCipher;
pub use error::{Error, Result};
pub use header::{EncryptionHeader, HEADER_SIZE};
pub use keyring::{KEY_SIZE, Keyring, MasterKey};
pub use stream::{DecryptingReader, EncryptingWriter};
