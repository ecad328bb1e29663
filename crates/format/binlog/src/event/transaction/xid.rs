//! Commit of a transaction that changed a transactional engine.
//!
//! ```text
//! offset size field
//!      0    8 xid   the server's number of the transaction; only crash recovery reads it
//! ```
//!
//! (Facts of MySQL 9.7.4's `Xid_event`.)

use crate::error::Result;
use crate::frame::decode_whole;

/// A decoded XID event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XidEvent {
    /// The server's number of the transaction.
    pub xid: u64,
}

impl XidEvent {
    /// Reads a body without its checksum.
    pub fn decode(body: &[u8]) -> Result<Self> {
        decode_whole(body, "xid event", |cursor| Ok(XidEvent { xid: cursor.u64("xid")? }))
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        self.xid.to_le_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree() {
        let body = b"\x0f\0\0\0\0\0\0\x01";
        let event = XidEvent { xid: 0x0100_0000_0000_000f };
        assert_eq!(XidEvent::decode(body).unwrap(), event);
        assert_eq!(event.encode(), body);
        assert!(XidEvent::decode(&body[..7]).is_err());
        assert!(XidEvent::decode(&[0; 9]).is_err());
    }
}
