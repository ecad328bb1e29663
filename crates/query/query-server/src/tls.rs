//! The certificate of the server: given as files, or made once and kept in a folder, as the relay's.
//!
//! ```text
//! sql-key.pem     the private key, for the owner alone; written first
//! sql-cert.pem    a certificate signed with that key, for clients that check it
//! ```
//!
//! One made here doesn't expire: nobody would renew it.

use std::fmt::Display;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use binlogz_atomic_file::{self as atomic_file, ExistingFile, open_secret};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use crate::QueryServerError as Error;

const KEY: &str = "sql-key.pem";
const CERTIFICATE: &str = "sql-cert.pem";
/// Anybody who has the key can pretend to be the server.
const KEY_MODE: u32 = 0o600;
const CERTIFICATE_MODE: u32 = 0o644;

/// How long a client may take to agree on TLS.
pub const TLS_HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads PEM files: a certificate chain, and the key of the first certificate, which only its owner may use.
    ///
    /// # Errors
    ///
    /// A file that can't be read, a key that others may use.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let at = |path: &Path, error: &dyn Display| Error::of(&path.display(), error);
        let mut private = open_secret(key).map_err(|error| at(key, &error))?;
        let mut pem = Vec::new();
        private.read_to_end(&mut pem).map_err(|error| at(key, &error))?;
        let certificate = fs::read(certificate).map_err(|error| at(certificate, &error))?;
        Ok(Tls { certificate, key: pem })
    }

    /// The server's own in this folder, made for these names and addresses if there is none.
    ///
    /// # Errors
    ///
    /// Files that can't be written or read.
    pub fn own(folder: &Path, names: Vec<String>) -> Result<Self, Error> {
        let certificate = folder.join(CERTIFICATE);
        let key = folder.join(KEY);
        match fs::symlink_metadata(&certificate) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => make(&certificate, &key, names)?,
            Err(error) => return Err(Error::of(&certificate.display(), &error)),
        }
        Tls::read(&certificate, &key)
    }

    /// The certificate and those that signed it, as PEM.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The private key, as PEM.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

fn make(certificate: &Path, key: &Path, names: Vec<String>) -> Result<(), Error> {
    let failed = |error: rcgen::Error| Error::of(&"make a certificate", &error);
    let pair = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "binlogz sql, certificate made by itself");
    let made = params.self_signed(&pair).map_err(failed)?;
    let write = |path: &Path, mode, text: String| {
        let written: io::Result<()> = atomic_file::write(path, mode, ExistingFile::Replace, text.as_bytes());
        written.map_err(|error| Error::of(&path.display(), &error))
    };
    write(key, KEY_MODE, pair.serialize_pem())?;
    write(certificate, CERTIFICATE_MODE, made.pem())
}
