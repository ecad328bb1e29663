//! The event that says that the log may lack events here. Replicas stop at it.
//!
//! ```text
//! offset size field
//!      0    2 incident         1 LOST_EVENTS
//!      2    1 message_length   then the message
//!         0|4 inner_checksum   CRC32 of the event as it was before the log's own checksum came
//! ```
//!
//! A server that writes checksums first writes an incident into a cache, with a checksum of its own, and
//! leaves that in when the event goes to the log. It covers header and fields, with `end_log_pos` 0 and
//! `event_size` without the log's checksum. mysqlbinlog and replicas ignore it. (Facts of MySQL 9.7.4's
//! `Incident_event`, and of logs it wrote.)

use std::fmt;

use crate::checksum::{CHECKSUM_SIZE, Crc32};
use crate::error::{Error, Result};
use crate::event::narrow;
use crate::frame::{EventFrame, decode_whole};
use crate::header::{EventHeader, HEADER_SIZE};
use crate::put::PutFields;

const WHAT: &str = "incident event";

/// The kind of incident. Unknown values survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incident(pub u16);

impl Incident {
    /// Events were lost.
    pub const LOST_EVENTS: Self = Incident(1);
}

impl fmt::Display for Incident {
    /// Writes the incident as mysqlbinlog and SHOW BINLOG EVENTS print it.
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
    /// The kind of incident.
    pub incident: Incident,
    /// The server's message, at most 255 bytes.
    pub message: &'a [u8],
    /// The checksum from the server's cache, if the event went through one that has checksums.
    pub inner_checksum: Option<u32>,
}

impl<'a> IncidentEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, WHAT, |cursor| {
            let incident = Incident(cursor.u16("incident")?);
            let length = cursor.u8("message length")?;
            let message = cursor.bytes(usize::from(length), "message")?;
            let inner_checksum = match cursor.remaining() {
                CHECKSUM_SIZE => Some(cursor.u32("inner checksum")?),
                _ => None,
            };
            Ok(IncidentEvent { incident, message, inner_checksum })
        })
    }

    /// Reads a whole event and checks its inner checksum.
    ///
    /// # Errors
    ///
    /// As for [`IncidentEvent::decode`]; a wrong inner checksum.
    pub fn decode_frame(frame: &EventFrame<'a>) -> Result<Self> {
        let event = Self::decode(frame.body())?;
        let Some(found) = event.inner_checksum else { return Ok(event) };
        let expected = event.checksum_in_cache(frame.header())?;
        if found != expected {
            let found = format!("{found:#010x}, computed {expected:#010x}");
            return Err(Error::invalid(
                WHAT,
                "inner checksum",
                found,
                "the checksum of the event in the server's cache",
            ));
        }
        Ok(event)
    }

    /// The inner checksum of the event with this header.
    fn checksum_in_cache(&self, header: &EventHeader) -> Result<u32> {
        let fields = IncidentEvent { inner_checksum: None, ..*self }.encode()?;
        let event_size = (HEADER_SIZE + fields.len() + CHECKSUM_SIZE) as u32;
        let mut crc = Crc32::new();
        crc.update(&EventHeader { event_size, end_log_pos: 0, ..*header }.encode());
        crc.update(&fields);
        Ok(crc.finish())
    }

    /// The body as it stands in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// A message above 255 bytes: its length does not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(3 + self.message.len());
        body.put_u16(self.incident.0);
        body.put_u8(narrow(self.message.len(), WHAT, "message length", "at most 255 bytes")?);
        body.put(self.message);
        if let Some(checksum) = self.inner_checksum {
            body.put_u32(checksum);
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Framing;
    use crate::checksum::ChecksumAlgorithm;

    #[test]
    fn both_directions_agree() {
        let event =
            IncidentEvent { incident: Incident::LOST_EVENTS, message: b"error", inner_checksum: None };
        let body = event.encode().unwrap();
        assert_eq!(body, b"\x01\0\x05error");
        assert_eq!(IncidentEvent::decode(&body).unwrap(), event);
        for length in 0..body.len() {
            assert!(IncidentEvent::decode(&body[..length]).is_err(), "{length}");
        }
        assert!(IncidentEvent::decode(&[&body[..], b"x"].concat()).is_err());
        let unknown = IncidentEvent { incident: Incident(0x1234), message: b"", ..event };
        assert_eq!(IncidentEvent::decode(&unknown.encode().unwrap()).unwrap(), unknown);
        assert!(IncidentEvent { message: &[b'x'; 256], ..event }.encode().is_err());
    }

    /// The event that MySQL 9.7.4 wrote when a statement's changes to a MyISAM table did not fit
    /// `max_binlog_stmt_cache_size`.
    #[test]
    fn an_incident_of_a_live_server_has_two_checksums() {
        let mut bytes = b"\x3e\x87\x03\x6b\x1a\x01\0\0\0\x57\0\0\0\xb5\x02\0\0\0\x01\x01\0\x39\
            Non-transactional changes were not written to the binlog.\x6d\x23\x85\x90\x2b\x70\xc3\x97"
            .to_vec();
        assert_eq!(bytes.len(), 87);
        let framing = Framing::with_checksum(ChecksumAlgorithm::CRC32);
        let frame = framing.next_frame(&bytes).unwrap().unwrap().verify().unwrap();
        let event = IncidentEvent::decode_frame(&frame).unwrap();
        assert_eq!((event.incident, event.inner_checksum), (Incident::LOST_EVENTS, Some(0x9085_236d)));
        assert_eq!(event.message, b"Non-transactional changes were not written to the binlog.");
        assert_eq!(event.encode().unwrap(), frame.body());
        for length in (frame.body().len() - 3)..frame.body().len() {
            assert!(IncidentEvent::decode(&frame.body()[..length]).is_err(), "{length}");
        }
        // Another message, with an outer checksum that matches it.
        bytes[30] ^= 1;
        let frame = framing.next_frame(&bytes).unwrap().unwrap().unchecked().unwrap();
        let error = IncidentEvent::decode_frame(&frame).unwrap_err().to_string();
        assert!(error.contains("inner checksum"), "{error}");
    }
}
