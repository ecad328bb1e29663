//! The name of the next file: the last event of a closed file, and the first one a replica is sent.
//!
//! ```text
//! offset size field
//!      0    8 position   in the next file, always 4 in a file
//!      8      name       the rest; no NUL
//! ```
//!
//! The rotate event that a source sends before each file has timestamp 0, `end_log_pos` 0 and the artificial
//! flag. (Facts of MySQL 9.7.4's `Rotate_event`.)

use crate::error::{Error, Result};
use crate::frame::decode_whole;
use crate::put::PutFields;

const WHAT: &str = "rotate event";

/// A decoded rotate event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotateEvent<'a> {
    /// Where to continue in the next file.
    pub position: u64,
    /// Name of the next file, without directory.
    pub name: &'a [u8],
}

impl<'a> RotateEvent<'a> {
    /// Reads a body without its checksum. An empty name is refused, as the server does.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, WHAT, |cursor| {
            let event = RotateEvent { position: cursor.u64("position")?, name: cursor.rest() };
            if event.name.is_empty() {
                return Err(Error::invalid(WHAT, "name", "empty", "the name of a file"));
            }
            Ok(event)
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(8 + self.name.len());
        body.put_u64(self.position);
        body.put(self.name);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree() {
        let event = RotateEvent { position: 4, name: b"binlog.000002" };
        let body = event.encode();
        assert_eq!(body, b"\x04\0\0\0\0\0\0\0binlog.000002");
        assert_eq!(RotateEvent::decode(&body).unwrap(), event);
        let error = RotateEvent::decode(&body[..7]).unwrap_err();
        assert_eq!(error.to_string(), "rotate event: position needs 8 bytes, 7 are left");
        let error = RotateEvent::decode(&body[..8]).unwrap_err();
        assert_eq!(error.to_string(), "rotate event: name is empty, expected the name of a file");
    }
}
