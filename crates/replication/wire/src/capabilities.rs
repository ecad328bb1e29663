//! Each peer's abilities: 32 flags that both exchange during login.

use std::fmt;
use std::ops::{BitAnd, BitOr};

/// Capability flags. Unknown bits survive. (Names are the protocol's, without `CLIENT_`.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Passwords are longer than those of 3.20. MariaDB clears it to say that it is MariaDB.
    pub const LONG_PASSWORD: Self = Capabilities(1);
    /// A column's flags have two bytes. Connector/J reads one without it, though the 4.1 protocol always has two.
    pub const LONG_FLAG: Self = Capabilities(1 << 2);
    /// The response to the greeting names a database.
    pub const CONNECT_WITH_DB: Self = Capabilities(1 << 3);
    /// Packets may be compressed by zlib.
    pub const COMPRESS: Self = Capabilities(1 << 5);
    /// The 4.1 protocol.
    pub const PROTOCOL_41: Self = Capabilities(1 << 9);
    /// The client will switch to TLS.
    pub const SSL: Self = Capabilities(1 << 11);
    /// Answers carry the transaction's status.
    pub const TRANSACTIONS: Self = Capabilities(1 << 13);
    /// Passwords are proved by the 4.1 method.
    pub const SECURE_CONNECTION: Self = Capabilities(1 << 15);
    /// Authentication by named plugins.
    pub const PLUGIN_AUTH: Self = Capabilities(1 << 19);
    /// The client sends attributes that describe it.
    pub const CONNECT_ATTRS: Self = Capabilities(1 << 20);
    /// A plugin's answer may be longer than 255 bytes.
    pub const PLUGIN_AUTH_LENENC_DATA: Self = Capabilities(1 << 21);
    /// OK packets report changes of the session.
    pub const SESSION_TRACK: Self = Capabilities(1 << 23);
    /// An OK packet instead of EOF packets.
    pub const DEPRECATE_EOF: Self = Capabilities(1 << 24);
    /// Packets may be compressed by zstd.
    pub const ZSTD_COMPRESSION: Self = Capabilities(1 << 26);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Capabilities {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Capabilities(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Capabilities(self.0 & other.0)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}
