//! The key with which an owner signs the report of an erasure: Ed25519 (RFC 8032), as PKCS #8 in PEM.
//!
//! ```text
//! openssl genpkey -algorithm ed25519 -out key.pem
//! openssl pkey -in key.pem -pubout -out public.pem
//! openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in REPORT -sigfile REPORT.sig
//! ```

use std::io::Read;
use std::path::Path;

use binlogz_atomic_file::{SecretFileError, open_secret};
use ring::signature::Ed25519KeyPair;

use crate::failure::{CommandFailure, Result};

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// More than such a key takes.
const FILE_SIZE_MAX: u64 = 16 << 10;

/// A key that signs reports.
pub(super) struct ReportKey(Ed25519KeyPair);

impl std::fmt::Debug for ReportKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReportKey")
    }
}

impl ReportKey {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// A file that can't be read, or that others may read; no such key, or one behind a passphrase.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let trouble = |what: &dyn std::fmt::Display| CommandFailure::of(&path.display(), what);
        let file = open_secret(path).map_err(|error| match error {
            SecretFileError::Io(error) => trouble(&error),
            SecretFileError::Shared { mode, .. } => {
                trouble(&format_args!("has the mode {mode:04o}, so others may use it, expected 0600"))
            }
        })?;
        let mut text = String::new();
        file.take(FILE_SIZE_MAX).read_to_string(&mut text).map_err(|error| trouble(&error))?;
        of_pem(&text).map_err(|found| {
            trouble(&format_args!(
                "is {found}, expected an Ed25519 key, as openssl genpkey -algorithm ed25519 writes it"
            ))
        })
    }

    /// The signature of a report, 64 bytes.
    pub(super) fn sign(&self, report: &[u8]) -> Vec<u8> {
        self.0.sign(report).as_ref().to_vec()
    }
}

/// The key of a text; an error is what it is instead.
fn of_pem(text: &str) -> std::result::Result<ReportKey, &'static str> {
    let Some((_, rest)) = text.split_once(BEGIN) else {
        return Err(match text.contains("ENCRYPTED PRIVATE KEY") {
            true => "a key behind a passphrase",
            false => "no PRIVATE KEY in PEM",
        });
    };
    let (base64, _) = rest.split_once(END).ok_or("a PRIVATE KEY without an end")?;
    let digits: String = base64.split_whitespace().collect();
    let key = base64_simd::STANDARD.decode_to_vec(digits).map_err(|_| "no base64 in PEM")?;
    // OpenSSL leaves the public key out, which is computed then.
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key).map(ReportKey).map_err(|_| "a key of another kind")
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, KeyPair, UnparsedPublicKey};

    use super::*;

    /// The front of such a key as `openssl genpkey` writes it: version 0, without the public key; the seed comes after it.
    const FRONT: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    const SEED: [u8; 32] = [7; 32];

    fn pem() -> String {
        let digits = base64_simd::STANDARD.encode_to_string([&FRONT[..], &SEED].concat());
        format!("{BEGIN}\n{digits}\n{END}\n")
    }

    #[test]
    fn a_key_of_openssl_signs() {
        let signature = of_pem(&pem()).unwrap().sign(b"a report\n");
        let pair = Ed25519KeyPair::from_seed_unchecked(&SEED).unwrap();
        let public = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref().to_vec());
        assert!(
            public.verify(b"a report\n", &signature).is_ok()
                && public.verify(b"a report", &signature).is_err()
        );
    }

    #[test]
    fn all_else_is_no_key() {
        let other = |text: &str| of_pem(text).err();
        assert_eq!(other("-----BEGIN ENCRYPTED PRIVATE KEY-----"), Some("a key behind a passphrase"));
        assert_eq!(other("-----BEGIN OPENSSH PRIVATE KEY-----"), Some("no PRIVATE KEY in PEM"));
        assert_eq!(other(&pem().replace(END, "")), Some("a PRIVATE KEY without an end"));
        assert_eq!(other(&pem().replace("MC4", "M!4")), Some("no base64 in PEM"));
        assert_eq!(other(&pem().replace("MC4", "MC5")), Some("a key of another kind"));
    }
}
