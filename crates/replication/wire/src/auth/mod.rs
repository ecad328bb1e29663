//! How a client proves that it knows the password.
//!
//! The greeting names a plugin. The client answers with that plugin's proof or, if it does not know the
//! plugin, with that of its own default. The server may then switch to the account's plugin, send more data,
//! or end with OK or an error:
//!
//! ```text
//! switch     fe · plugin NUL · nonce 20 · 00
//! more data  01 · data, the rest
//! ```
//!
//! [`scramble`] makes the proofs, [`public_key`] encrypts a password if the connection is not encrypted, and
//! [`ClientAuth`] says what to send when.

mod client;
pub mod public_key;
pub mod scramble;
pub mod server;

use std::fmt;

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

pub use client::{ClientAuth, Credentials, LoginChannel};

use crate::fields::{put_nul_text, take_nul_text};
use crate::greeting::NONCE_SIZE;

/// First byte of a switch to another plugin.
pub(crate) const AUTH_SWITCH: u8 = 0xfe;
/// First byte of more data for the current plugin.
pub(crate) const AUTH_MORE_DATA: u8 = 0x01;
/// First byte of a request for another factor.
pub(crate) const AUTH_NEXT_FACTOR: u8 = 0x02;

/// A password. It is never printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Password(Vec<u8>);

impl Password {
    /// A password as it was typed or read.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Password(bytes.into())
    }

    /// The password itself.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the password is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// The authentication methods that binlogz speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPlugin {
    /// `mysql_native_password`, the default up to 5.7 and in MariaDB.
    NativePassword,
    /// `sha256_password`, since 5.6.
    Sha256Password,
    /// `caching_sha2_password`, the default since 8.0.
    CachingSha2Password,
}

impl AuthPlugin {
    const ALL: [AuthPlugin; 3] =
        [AuthPlugin::NativePassword, AuthPlugin::Sha256Password, AuthPlugin::CachingSha2Password];

    /// The plugin's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            AuthPlugin::NativePassword => "mysql_native_password",
            AuthPlugin::Sha256Password => "sha256_password",
            AuthPlugin::CachingSha2Password => "caching_sha2_password",
        }
    }

    /// The plugin of that name, if binlogz speaks it.
    pub fn from_name(name: &[u8]) -> Option<AuthPlugin> {
        AuthPlugin::ALL.into_iter().find(|plugin| plugin.name().as_bytes() == name)
    }
}

/// A switch to another plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    /// The plugin of the account.
    pub plugin: &'a [u8],
    /// The data its proof is made from, if the plugin uses any.
    pub data: &'a [u8],
}

const WHAT: &str = "authentication switch";

impl<'a> AuthSwitch<'a> {
    /// Reads the message. The switch to the 4.0 method, which is one byte long, is refused.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        let first = cursor.u8("first byte")?;
        if first != AUTH_SWITCH {
            return Err(Error::invalid(WHAT, "first byte", format!("{first:02x}"), "fe"));
        }
        Ok(AuthSwitch { plugin: take_nul_text(&mut cursor, "plugin")?, data: cursor.rest() })
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(AUTH_SWITCH);
        put_nul_text(out, self.plugin);
        out.put(self.data);
    }

    /// The nonce in the data, which is followed by a NUL.
    pub fn nonce(&self) -> Result<[u8; NONCE_SIZE]> {
        let mut cursor = Cursor::new(self.data, WHAT);
        let nonce = cursor.array("nonce")?;
        if !cursor.is_empty() {
            cursor.u8("nonce end")?;
        }
        cursor.finish()?;
        Ok(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree() {
        let bytes = b"\xfemysql_native_password\0abcdefghijklmnopqrst\0";
        let switch = AuthSwitch::decode(bytes).unwrap();
        assert_eq!(switch.plugin, b"mysql_native_password");
        assert_eq!(&switch.nonce().unwrap(), b"abcdefghijklmnopqrst");
        let mut encoded = Vec::new();
        switch.encode(&mut encoded);
        assert_eq!(encoded, bytes);
        assert!(AuthSwitch::decode(b"\xfe").is_err());
        assert!(AuthSwitch::decode(b"\xfeplugin").is_err());
        assert!(AuthSwitch { plugin: b"x", data: b"short" }.nonce().is_err());
        assert!(AuthSwitch { plugin: b"x", data: &[0; 22] }.nonce().is_err());
    }

    #[test]
    fn a_password_is_not_printed() {
        assert_eq!(format!("{:?}", Password::new("secret")), "Password(…)");
    }
}
