//! The certificate that the relay makes itself when it is given none, as mysqld does: TLS is there by default.
//!
//! ```text
//! relay-key.pem     the private key, for the owner alone; written first
//! relay-cert.pem    a certificate signed with that key, for clients that want to check it (`--ssl-ca`)
//! ```
//!
//! Both are made once and kept beside the log, so that clients may remember the certificate. It does not expire: nobody
//! would renew it. A crash between the two files leaves a key that nobody has seen, so both are made again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use binlogz_atomic_file::{self as atomic_file, ExistingFile};
use binlogz_store::storage;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use crate::error::{Error, Result};

const KEY: &str = "relay-key.pem";
const CERTIFICATE: &str = "relay-cert.pem";
/// Anybody who has the key can pretend to be the relay.
const KEY_MODE: u32 = 0o600;

/// The files of the relay's own certificate and key in this folder, made if there is no certificate.
pub(crate) fn files(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let certificate = folder.join(CERTIFICATE);
    let key = folder.join(KEY);
    match std::fs::symlink_metadata(&certificate) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => make(&certificate, &key)?,
        Err(error) => return Err(Error::io(format!("read {}", certificate.display()))(error)),
    }
    Ok((certificate, key))
}

fn make(certificate: &Path, key: &Path) -> Result<()> {
    let failed = |error: rcgen::Error| Error::Io {
        doing: "make a certificate".into(),
        source: std::io::Error::other(error),
    };
    let pair = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "binlogz relay, certificate made by itself");
    let made = params.self_signed(&pair).map_err(failed)?;
    let write = |path: &Path, mode, text: String| {
        atomic_file::write(path, mode, ExistingFile::Replace, text.as_bytes())
            .map_err(Error::io(format!("write {}", path.display())))
    };
    write(key, KEY_MODE, pair.serialize_pem())?;
    write(certificate, storage::FILE_MODE, made.pem())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::serve::connections::transport::ServerTls;

    #[test]
    fn it_is_made_once_and_its_key_is_for_the_owner() {
        let folder = tempfile::tempdir().unwrap();
        let fingerprint = || {
            let (certificate, key) = files(folder.path()).unwrap();
            ServerTls::read(&certificate, &key).unwrap().fingerprint()
        };
        let first = fingerprint();
        let mode = fs::metadata(folder.path().join(KEY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fingerprint(), first);
        // A crash after the key was written.
        fs::remove_file(folder.path().join(CERTIFICATE)).unwrap();
        assert_ne!(fingerprint(), first);
        // Put back from a backup by somebody who did not think of its mode.
        fs::set_permissions(folder.path().join(KEY), fs::Permissions::from_mode(0o640)).unwrap();
        let (certificate, key) = files(folder.path()).unwrap();
        let error = ServerTls::read(&certificate, &key).err().unwrap().to_string();
        let shown = key.display();
        let mends = "its mode is 0640: others may use it, expected 0600: chmod 600";
        assert_eq!(error, format!("{shown}: {mends} {shown}"));
        // Without its key a certificate is worth nothing, and the person who took the key away should put it back.
        fs::remove_file(folder.path().join(KEY)).unwrap();
        let (certificate, key) = files(folder.path()).unwrap();
        let error = ServerTls::read(&certificate, &key).err().unwrap().to_string();
        assert!(error.contains(KEY), "{error}");
    }
}
