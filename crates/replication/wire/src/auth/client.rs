//! The client's side of authentication: which message to send when.

use super::public_key::{SEED_SIZE, encrypt_password};
use super::{AuthPlugin, Password, scramble};
use crate::error::{Error, Result};
use crate::greeting::NONCE_SIZE;

/// `caching_sha2_password`: the server has the password cached, and the proof was right.
const FAST_AUTH_OK: u8 = 3;
/// `caching_sha2_password`: the server needs the password itself.
const FULL_AUTH_NEEDED: u8 = 4;
/// `caching_sha2_password`: the client asks for the public key.
const WANT_KEY_CACHING_SHA2: u8 = 2;
/// `sha256_password`: the client asks for the public key.
const WANT_KEY_SHA256: u8 = 1;

/// The kind of connection, and who can listen on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginChannel {
    /// Not encrypted: anyone on the way can listen.
    Plain,
    /// A Unix socket: nobody can listen.
    LocalSocket,
    /// TLS: nobody can listen.
    Tls,
}

/// A client's credentials.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The account's name.
    pub user: String,
    /// The account's password.
    pub password: Password,
    /// The server's public RSA key in PEM form, if it is known beforehand.
    pub server_public_key: Option<Vec<u8>>,
    /// Whether to ask the server itself for that key over a connection that is not encrypted. This is safe against
    /// listeners, but not against an attacker who can change the messages and substitute another key. (MySQL's clients
    /// ask for `sha256_password` even if they may not; we don't.)
    pub get_server_public_key: bool,
    /// Random bytes for encrypting the password; different ones for every login.
    pub seed: [u8; SEED_SIZE],
}

/// A client's side of the exchange of one plugin.
#[derive(Debug)]
pub struct ClientAuth {
    plugin: AuthPlugin,
    nonce: [u8; NONCE_SIZE],
    awaits_key: bool,
}

impl ClientAuth {
    /// Begins with a plugin and returns its first proof.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the password would have to be sent unprotected.
    pub fn begin(
        plugin: AuthPlugin,
        nonce: [u8; NONCE_SIZE],
        credentials: &Credentials,
        channel: LoginChannel,
    ) -> Result<(Self, Vec<u8>)> {
        let mut auth = ClientAuth { plugin, nonce, awaits_key: false };
        let password = credentials.password.as_bytes();
        let proof = match plugin {
            AuthPlugin::NativePassword if password.is_empty() => Vec::new(),
            // Both of them say "no password" with a single NUL.
            _ if password.is_empty() => vec![0],
            AuthPlugin::NativePassword => scramble::native_password(password, &nonce).to_vec(),
            AuthPlugin::CachingSha2Password => scramble::caching_sha2_password(password, &nonce).to_vec(),
            AuthPlugin::Sha256Password => auth.send_password(credentials, channel)?,
        };
        Ok((auth, proof))
    }

    /// Answers more data from the server; `None` if there is nothing to answer.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] for data that does not belong here, [`Error::Unsupported`] if the password would
    /// have to be sent unprotected.
    pub(crate) fn more_data(
        &mut self,
        data: &[u8],
        credentials: &Credentials,
        channel: LoginChannel,
    ) -> Result<Option<Vec<u8>>> {
        if std::mem::take(&mut self.awaits_key) {
            return self.encrypt(credentials, data).map(Some);
        }
        match (self.plugin, data) {
            (AuthPlugin::CachingSha2Password, [FAST_AUTH_OK]) => Ok(None),
            (AuthPlugin::CachingSha2Password, [FULL_AUTH_NEEDED]) => {
                self.send_password(credentials, channel).map(Some)
            }
            _ => Err(Error::Protocol {
                doing: "logging in".into(),
                found: format!("{} bytes of data for {}", data.len(), self.plugin.name()),
                expected: "OK, an error or a known step of the plugin",
            }),
        }
    }

    /// Sends the password as it is if nobody can listen, otherwise encrypted, otherwise a request for the
    /// key.
    fn send_password(&mut self, credentials: &Credentials, channel: LoginChannel) -> Result<Vec<u8>> {
        // sha256_password does not trust a socket either.
        let private = match self.plugin {
            AuthPlugin::CachingSha2Password => channel != LoginChannel::Plain,
            _ => channel == LoginChannel::Tls,
        };
        if private {
            let mut password = credentials.password.as_bytes().to_vec();
            password.push(0);
            return Ok(password);
        }
        if let Some(key) = &credentials.server_public_key {
            return self.encrypt(credentials, key);
        }
        // Over a Unix socket only the server can answer.
        if channel == LoginChannel::Plain && !credentials.get_server_public_key {
            return Err(Error::Unsupported(format!(
                "authentication plugin {} needs a secure connection: use TLS, give the server's public key or \
                 allow asking for it (get-server-public-key)",
                self.plugin.name()
            )));
        }
        let wish = match self.plugin {
            AuthPlugin::CachingSha2Password => WANT_KEY_CACHING_SHA2,
            _ => WANT_KEY_SHA256,
        };
        self.awaits_key = true;
        Ok(vec![wish])
    }

    fn encrypt(&self, credentials: &Credentials, key: &[u8]) -> Result<Vec<u8>> {
        encrypt_password(credentials.password.as_bytes(), &self.nonce, key, credentials.seed)
    }
}
