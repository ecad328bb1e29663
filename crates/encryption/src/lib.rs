//! Reads and writes encrypted binary logs (`binlog_encryption=ON`): keyrings, the header, the cipher.
//!
//! ```text
//! keyring file → Keyring ─ master key ┐
//! log → header ─ file password, wrapped ┴→ FileCipher → the plain log
//! ```
//!
//! [`Keyring`] has the master keys that a server keeps, [`EncryptionHeader`] says which of them a
//! log needs, [`FileCipher`] turns ciphertext into plaintext and back at any offset. In order they
//! are put to work by [`DecryptingReader`] and [`EncryptingWriter`]; reading at any place is the
//! business of `binlogz-flow`. Every position anywhere else, in events, indexes and errors, is one
//! of the plaintext.
//!
//! A crate of its own beside `binlogz-binlog`, which most users need without ciphers and JSON: they
//! build at the same time. The format was verified against the sources of MySQL 9.7.4
//! (`sql/rpl_log_encryption.cc`), a live server, and files of 8.0.14.
//!
//! ```
//! use std::io::Read;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/corpus/mysql-9.7.4");
//! # std::env::set_current_dir(folder)?;
//! let keyring = binlogz_encryption::Keyring::open("keyring.json".as_ref())?;
//! let log = std::fs::File::open("encrypted-binlog.000001")?;
//! let mut plain = binlogz_encryption::DecryptingReader::new(log, &keyring)?;
//! let mut magic = [0; 4];
//! plain.read_exact(&mut magic)?;
//! assert_eq!(magic, binlogz_binlog::MAGIC);
//! # Ok(())
//! # }
//! ```

#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::big_endian_bytes, clippy::host_endian_bytes)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

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
