//! A server's first message: handshake version 10.
//!
//! ```text
//! size field
//!    1 version        10
//!    + server_version NUL
//!    4 connection_id
//!    8 nonce          its first bytes
//!    1                0
//!    2 capabilities   low half
//!    1 collation
//!    2 status
//!    2 capabilities   high half
//!    1 nonce_size     21: with the NUL after it
//!   10 reserved       0; MariaDB: 6 zeros and 4 bytes of capabilities of its own
//!   12 nonce          its last bytes
//!    1                0
//!    + plugin         NUL
//! ```
//!
//! A server may send an error instead ("too many connections"); see [`crate::response`].

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

use crate::capabilities::Capabilities;
use crate::fields::{put_nul_text, take_nul_text};

const WHAT: &str = "greeting";
/// The only handshake version in use since 3.21.
const HANDSHAKE_VERSION: u8 = 10;
/// Bytes of the random data that password proofs are made with.
pub const NONCE_SIZE: usize = 20;
const NONCE_HEAD_SIZE: usize = 8;
const NONCE_TAIL_SIZE: usize = NONCE_SIZE - NONCE_HEAD_SIZE;

/// How a server introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// For example `9.7.4`; MariaDB writes `5.5.5-10.11.6-MariaDB`.
    pub server_version: &'a [u8],
    /// The connection's number, low 32 bits.
    pub connection_id: u32,
    /// The random bytes that password proofs are made with.
    pub nonce: [u8; NONCE_SIZE],
    /// The server's capabilities.
    pub capabilities: Capabilities,
    /// The low byte of the server's collation.
    pub collation: u8,
    /// Status flags of the session.
    pub status: u16,
    /// Reserved bytes; see the table above.
    pub reserved: [u8; 10],
    /// The plugin that the nonce is for.
    pub plugin: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Reads the message. Servers without plugins (before 5.5.7) are refused.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        let version = cursor.u8("version")?;
        if version != HANDSHAKE_VERSION {
            return Err(Error::invalid(WHAT, "version", version, "10, as MySQL and MariaDB send"));
        }
        let server_version = take_nul_text(&mut cursor, "server version")?;
        let connection_id = cursor.u32("connection id")?;
        let head: [u8; NONCE_HEAD_SIZE] = cursor.array("nonce")?;
        cursor.u8("filler")?;
        let low = cursor.u16("capabilities")?;
        let collation = cursor.u8("collation")?;
        let status = cursor.u16("status")?;
        let high = cursor.u16("capabilities")?;
        let capabilities = Capabilities(u32::from(high) << 16 | u32::from(low));
        if !capabilities.contains(Capabilities::PLUGIN_AUTH) {
            let found = format!("{capabilities:?}");
            return Err(Error::invalid(
                WHAT,
                "capabilities",
                found,
                "authentication plugins, as since 5.5.7",
            ));
        }
        let nonce_size = cursor.u8("nonce size")?;
        if usize::from(nonce_size) != NONCE_SIZE + 1 {
            return Err(Error::invalid(WHAT, "nonce size", nonce_size, "21"));
        }
        let reserved = cursor.array("reserved")?;
        let tail: [u8; NONCE_TAIL_SIZE] = cursor.array("nonce")?;
        cursor.u8("nonce end")?;
        let plugin = take_nul_text(&mut cursor, "plugin")?;
        cursor.finish()?;
        let mut nonce = [0; NONCE_SIZE];
        nonce.iter_mut().zip(head.iter().chain(&tail)).for_each(|(slot, byte)| *slot = *byte);
        Ok(Greeting {
            server_version,
            connection_id,
            nonce,
            capabilities,
            collation,
            status,
            reserved,
            plugin,
        })
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (head, tail) = self.nonce.split_at(NONCE_HEAD_SIZE);
        out.put_u8(HANDSHAKE_VERSION);
        put_nul_text(out, self.server_version);
        out.put_u32(self.connection_id);
        out.put(head);
        out.put_u8(0);
        out.put_u16(self.capabilities.0 as u16);
        out.put_u8(self.collation);
        out.put_u16(self.status);
        out.put_u16((self.capabilities.0 >> 16) as u16);
        out.put_u8(NONCE_SIZE as u8 + 1);
        out.put(&self.reserved);
        out.put(tail);
        out.put_u8(0);
        put_nul_text(out, self.plugin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_every_cut_is_an_error;

    /// The greeting of a MySQL 9.7.4, with its nonce replaced.
    const MYSQL: &[u8] = b"\x0a9.7.4\0\x0b\0\0\0abcdefgh\0\xff\xff\xff\x02\0\xff\xdf\x15\
        \0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0caching_sha2_password\0";

    #[test]
    fn both_directions_agree() {
        let greeting = Greeting::decode(MYSQL).unwrap();
        assert_eq!(greeting.server_version, b"9.7.4");
        assert_eq!(greeting.connection_id, 11);
        assert_eq!(&greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.capabilities, Capabilities(0xdfff_ffff));
        assert_eq!(greeting.plugin, b"caching_sha2_password");
        let mut bytes = Vec::new();
        greeting.encode(&mut bytes);
        assert_eq!(bytes, MYSQL);
    }

    #[test]
    fn cut_long_and_foreign_greetings_are_errors() {
        assert_every_cut_is_an_error(MYSQL, |bytes| Greeting::decode(bytes).map(drop));
        let error = Greeting::decode(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap_err().to_string();
        assert_eq!(error, "greeting: version is 83, expected 10, as MySQL and MariaDB send");
    }
}
