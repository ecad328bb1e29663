//! Semi-synchronous replication: the prefix of each event, and how an event is acknowledged.
//!
//! ```text
//! before an event        ef · 01 if an acknowledgement is wanted, else 00
//! acknowledgement        ef · position 8 · name, the rest: the end of the event that is safe now
//! ```
//!
//! The acknowledgement is a packet with sequence 0 on the same connection; nothing answers it.
//! (Facts of MySQL 9.7.4's plugins `semisync_source` and `semisync_replica`.)

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

/// The first byte of both.
pub(crate) const SEMI_SYNC_MARK: u8 = 0xef;
/// Bytes before each event.
pub(crate) const SEMI_SYNC_PREFIX_SIZE: usize = 2;

const WHAT: &str = "semi-sync acknowledgement";
/// A server accepts no longer name.
const NAME_SIZE_MAX: usize = 511;

/// Acknowledges that all events up to here are safe at the replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SemiSyncAck<'a> {
    /// The end of the event in that file.
    pub position: u64,
    /// The file's name, without directory.
    pub name: &'a [u8],
}

impl<'a> SemiSyncAck<'a> {
    /// Reads the message.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, WHAT);
        let mark = cursor.u8("mark")?;
        if mark != SEMI_SYNC_MARK {
            return Err(Error::invalid(WHAT, "mark", format!("{mark:#04x}"), "0xef"));
        }
        let ack = SemiSyncAck { position: cursor.u64("position")?, name: cursor.rest() };
        if ack.name.is_empty() || ack.name.len() > NAME_SIZE_MAX {
            return Err(Error::invalid(WHAT, "name size", ack.name.len(), "1 to 511 bytes"));
        }
        Ok(ack)
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(SEMI_SYNC_MARK);
        out.put_u64(self.position);
        out.put(self.name);
    }
}

/// Whether an acknowledgement is wanted, from the prefix of an event.
pub(crate) fn decode_prefix(prefix: [u8; SEMI_SYNC_PREFIX_SIZE]) -> Result<bool> {
    match prefix {
        [SEMI_SYNC_MARK, 0] => Ok(false),
        [SEMI_SYNC_MARK, 1] => Ok(true),
        [mark, flag] => Err(Error::invalid(
            "semi-sync event",
            "prefix",
            format!("{mark:02x} {flag:02x}"),
            "ef and 00 or 01",
        )),
    }
}

/// The prefix of an event.
pub(crate) fn encode_prefix(wants_ack: bool) -> [u8; SEMI_SYNC_PREFIX_SIZE] {
    [SEMI_SYNC_MARK, u8::from(wants_ack)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_round_trip() {
        let ack = SemiSyncAck { position: 779, name: b"binlog.000003" };
        let mut bytes = Vec::new();
        ack.encode(&mut bytes);
        assert_eq!(bytes, b"\xef\x0b\x03\0\0\0\0\0\0binlog.000003");
        assert_eq!(SemiSyncAck::decode(&bytes).unwrap(), ack);
        for length in 0..10 {
            assert!(SemiSyncAck::decode(&bytes[..length]).is_err(), "{length}");
        }
        let long = [&bytes[..9], &[b'a'; 512]].concat();
        assert!(SemiSyncAck::decode(&long).is_err());
        assert!(SemiSyncAck::decode(b"\x03SELECT 1234").is_err());
    }

    #[test]
    fn prefixes_round_trip() {
        for wants_ack in [false, true] {
            assert_eq!(decode_prefix(encode_prefix(wants_ack)).unwrap(), wants_ack);
        }
        assert!(decode_prefix([0xef, 2]).is_err());
        assert!(decode_prefix([0, 0]).is_err());
    }
}
