//! The server's side of authentication: checks proofs, for accounts whose passwords are known.
//!
//! A server that keeps only hashes of passwords must be sent the password itself once
//! (`caching_sha2_password`, over TLS or RSA). One that knows its few passwords, as a relay does from its
//! configuration, can always check the short proof; the password is never sent.

use super::{AuthPlugin, Password, scramble};
use crate::greeting::NONCE_SIZE;

/// Bytes of the proof of `mysql_native_password`.
const NATIVE_PROOF_SIZE: usize = 20;
/// Bytes of the short proof of `caching_sha2_password`.
const CACHING_SHA2_PROOF_SIZE: usize = 32;

/// Whether a proof has the form that the plugin gives it, whether right or wrong.
pub(crate) fn is_proof(plugin: AuthPlugin, proof: &[u8]) -> bool {
    match plugin {
        AuthPlugin::NativePassword => proof.len() == NATIVE_PROOF_SIZE,
        AuthPlugin::CachingSha2Password => proof.len() == CACHING_SHA2_PROOF_SIZE,
        AuthPlugin::Sha256Password => false,
    }
}

/// Whether a proof shows that the client knows the password. An account without a password admits nobody.
pub fn is_right(plugin: AuthPlugin, proof: &[u8], password: &Password, nonce: &[u8; NONCE_SIZE]) -> bool {
    if password.is_empty() {
        return false;
    }
    match plugin {
        AuthPlugin::NativePassword => is_same(&scramble::native_password(password.as_bytes(), nonce), proof),
        AuthPlugin::CachingSha2Password => {
            is_same(&scramble::caching_sha2_password(password.as_bytes(), nonce), proof)
        }
        AuthPlugin::Sha256Password => false,
    }
}

/// Compares in constant time, so that timing does not reveal where the first difference is.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).fold(0, |difference, (left, right)| difference | (left ^ right)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_proof_is_right() {
        let nonce = b"abcdefghijklmnopqrst";
        let password = Password::new("secret");
        let native = scramble::native_password(b"secret", nonce);
        let sha2 = scramble::caching_sha2_password(b"secret", nonce);
        assert!(is_right(AuthPlugin::NativePassword, &native, &password, nonce));
        assert!(is_right(AuthPlugin::CachingSha2Password, &sha2, &password, nonce));
        assert!(!is_right(AuthPlugin::NativePassword, &sha2, &password, nonce));
        assert!(!is_right(AuthPlugin::CachingSha2Password, &sha2, &password, b"abcdefghijklmnopqrsX"));
        assert!(!is_right(AuthPlugin::CachingSha2Password, &sha2, &Password::new("Secret"), nonce));
        assert!(!is_right(AuthPlugin::Sha256Password, b"secret\0", &password, nonce));
        for plugin in [AuthPlugin::NativePassword, AuthPlugin::CachingSha2Password] {
            assert!(!is_right(plugin, b"", &password, nonce));
            assert!(!is_right(plugin, b"", &Password::default(), nonce), "no password lets nobody in");
        }
    }
}
