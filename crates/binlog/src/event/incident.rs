//! The log may lack events here; replicas stop.
//!
//! ```text
//! offset size field
//!      0    2 incident         1 LOST_EVENTS
//!      2    1 message_length   then the message
//! ```
//!
//! (Facts of MySQL 9.7.4's `Incident_event`.)

use std::fmt;

use super::narrow;
use crate::error::Result;
use crate::frame::decode_whole;
use crate::put::Put;

const WHAT: &str = "incident event";

/// What happened. Unknown values survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incident(pub u16);

impl Incident {
    /// Events were lost.
    pub const LOST_EVENTS: Self = Incident(1);
}

impl fmt::Display for Incident {
    /// As mysqlbinlog and SHOW BINLOG EVENTS print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LOST_EVENTS => f.write_str("LOST_EVENTS"),
            Incident(other) => write!(f, "{other:#x}"),
        }
    }
}

/// A decoded incident event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncidentEvent<'a> {
    /// What happened.
    pub incident: Incident,
    /// The server's words, at most 255 bytes.
    pub message: &'a [u8],
}

impl<'a> IncidentEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, WHAT, |cursor| {
            let incident = Incident(cursor.u16("incident")?);
            let length = cursor.u8("message length")?;
            Ok(IncidentEvent { incident, message: cursor.bytes(usize::from(length), "message")? })
        })
    }

    /// The body as it stands in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// A message above 255 bytes: its length has no room.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(3 + self.message.len());
        body.put_u16(self.incident.0);
        body.put_u8(narrow(self.message.len(), WHAT, "message length", "at most 255 bytes")?);
        body.put(self.message);
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree() {
        let event = IncidentEvent { incident: Incident::LOST_EVENTS, message: b"error" };
        let body = event.encode().unwrap();
        assert_eq!(body, b"\x01\0\x05error");
        assert_eq!(IncidentEvent::decode(&body).unwrap(), event);
        for length in 0..body.len() {
            assert!(IncidentEvent::decode(&body[..length]).is_err(), "{length}");
        }
        assert!(IncidentEvent::decode(&[&body[..], b"x"].concat()).is_err());
        let unknown = IncidentEvent { incident: Incident(0x1234), message: b"" };
        assert_eq!(IncidentEvent::decode(&unknown.encode().unwrap()).unwrap(), unknown);
        assert!(IncidentEvent { message: &[b'x'; 256], ..event }.encode().is_err());
    }
}
