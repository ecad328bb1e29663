//! How a replica registers: COM_REGISTER_SLAVE, answered by OK.
//!
//! ```text
//! size field
//!    1 command    15
//!    4 server_id
//!    + host       one byte of length and bytes
//!    + user       the same
//!    + password   the same; never sent by us
//!    2 port
//!    4 rank       0
//!    4 source_id  0: the source's own
//! ```
//!
//! It fills `SHOW REPLICAS` and needs the privilege REPLICATION SLAVE; a dump works without it.

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

use crate::fields::{put_short_text, take_short_text};

const WHAT: &str = "replica registration";

/// COM_REGISTER_SLAVE.
pub(crate) const REGISTER_REPLICA: u8 = 0x15;

/// How a replica introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegisterReplica<'a> {
    /// The replica's own id.
    pub server_id: u32,
    /// The host at which the replica says it can be reached, at most 255 bytes; empty unless configured.
    pub host: &'a [u8],
    /// The account at the replica, at most 255 bytes; empty unless configured.
    pub user: &'a [u8],
    /// The password of that account, at most 255 bytes.
    pub password: &'a [u8],
    /// The port at which the replica says it can be reached.
    pub port: u16,
    /// No longer used.
    pub rank: u32,
    /// The source's id; 0 leaves it to the source.
    pub source_id: u32,
}

impl<'a> RegisterReplica<'a> {
    /// Reads the message.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        let command = cursor.u8("command")?;
        if command != REGISTER_REPLICA {
            return Err(Error::invalid(WHAT, "command", format!("{command:#04x}"), "0x15"));
        }
        let replica = RegisterReplica {
            server_id: cursor.u32("server id")?,
            host: take_short_text(&mut cursor, "host")?,
            user: take_short_text(&mut cursor, "user")?,
            password: take_short_text(&mut cursor, "password")?,
            port: cursor.u16("port")?,
            rank: cursor.u32("rank")?,
            source_id: cursor.u32("source id")?,
        };
        // What follows is ignored, as by the server.
        Ok(replica)
    }

    /// Appends the message; texts longer than 255 bytes are cut.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(REGISTER_REPLICA);
        out.put_u32(self.server_id);
        put_short_text(out, self.host);
        put_short_text(out, self.user);
        put_short_text(out, self.password);
        out.put_u16(self.port);
        out.put_u32(self.rank);
        out.put_u32(self.source_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_cuts_are_errors_and_more_is_ignored;

    #[test]
    fn both_directions_agree() {
        let replica = RegisterReplica {
            server_id: 33091,
            host: b"replica-1",
            port: 3306,
            ..RegisterReplica::default()
        };
        let mut bytes = Vec::new();
        replica.encode(&mut bytes);
        assert_eq!(bytes, b"\x15\x43\x81\0\0\x09replica-1\0\0\xea\x0c\0\0\0\0\0\0\0\0");
        assert_eq!(RegisterReplica::decode(&bytes).unwrap(), replica);
        assert_cuts_are_errors_and_more_is_ignored(&bytes, |bytes| RegisterReplica::decode(bytes).map(drop));
    }
}
