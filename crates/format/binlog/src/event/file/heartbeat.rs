//! The event that a source sends on an idle connection, so that the replica knows the source's position. It is never
//! stored.
//!
//! ```text
//! v1 (type 27)   the name of the file; the position is the header's end_log_pos alone
//! v2 (type 41)   fields, each: type (LEI), length (LEI), value
//!                1 name       the name of the file
//!                2 position   LEI
//!                0            the end, without length
//! ```
//!
//! A replica asks for v2 with a flag in its dump request: v1 can't tell positions above 4 GiB.
//! (Facts of MySQL 9.7.4's `Heartbeat_event` and `codecs::binary::Heartbeat`.)

use crate::error::{Error, Result};
use crate::frame::decode_whole;
use crate::put::{PutFields, lei_size};

const END_MARK: u64 = 0;
const NAME: u64 = 1;
const POSITION: u64 = 2;

/// A decoded heartbeat of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatEvent<'a> {
    /// The file that the source is at.
    pub name: &'a [u8],
}

impl<'a> HeartbeatEvent<'a> {
    /// Reads a body without its checksum. An empty name is refused, as the server does.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        match body {
            [] => Err(Error::invalid("heartbeat event", "name", "empty", "the name of a file")),
            name => Ok(HeartbeatEvent { name }),
        }
    }

    /// The body as it is sent, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        self.name.to_vec()
    }
}

/// A decoded heartbeat of version 2. Unknown fields of future servers are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatV2Event<'a> {
    /// The file that the source is at.
    pub name: &'a [u8],
    /// How far the source is in that file.
    pub position: u64,
}

const V2: &str = "heartbeat v2 event";

impl<'a> HeartbeatV2Event<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, V2, |cursor| {
            let mut name = None;
            let mut position = None;
            loop {
                let field_type = cursor.lei("field type")?;
                if field_type == END_MARK {
                    break;
                }
                let length = cursor.lei("field length")?;
                let value = cursor.bytes_u64(length, "field value")?;
                match field_type {
                    NAME => name = Some(value),
                    POSITION => position = Some(decode_whole(value, V2, |cursor| cursor.lei("position"))?),
                    _ => {}
                }
            }
            let missing = |field| Error::invalid(V2, field, "absent", "a field in every heartbeat");
            Ok(HeartbeatV2Event {
                name: name.ok_or_else(|| missing("name"))?,
                position: position.ok_or_else(|| missing("position"))?,
            })
        })
    }

    /// The body as it is sent, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.name.len() + 16);
        body.put_lei(NAME);
        body.put_lei(self.name.len() as u64);
        body.put(self.name);
        body.put_lei(POSITION);
        body.put_lei(lei_size(self.position) as u64);
        body.put_lei(self.position);
        body.put_lei(END_MARK);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_a_name() {
        let event = HeartbeatEvent::decode(b"binlog.000003").unwrap();
        assert_eq!(event.encode(), b"binlog.000003");
        assert!(HeartbeatEvent::decode(b"").is_err());
    }

    #[test]
    fn version_2_round_trips_a_real_body() {
        let body = b"\x01\x0dbinlog.000003\x02\x03\xfc\x0b\x03\0";
        let event = HeartbeatV2Event::decode(body).unwrap();
        assert_eq!(event, HeartbeatV2Event { name: b"binlog.000003", position: 779 });
        assert_eq!(event.encode(), body);
        for length in 0..body.len() {
            assert!(HeartbeatV2Event::decode(&body[..length]).is_err(), "{length}");
        }
        assert!(HeartbeatV2Event::decode(&[body.as_slice(), b"x"].concat()).is_err());
    }

    #[test]
    fn version_2_reads_over_unknown_fields_and_needs_both_known_ones() {
        let event = HeartbeatV2Event::decode(b"\x09\x02xx\x01\x01b\x02\x01\x04\0").unwrap();
        assert_eq!(event, HeartbeatV2Event { name: b"b", position: 4 });
        assert!(HeartbeatV2Event::decode(b"\x01\x01b\0").is_err());
        assert!(HeartbeatV2Event::decode(b"\x02\x01\x04\0").is_err());
        assert!(HeartbeatV2Event::decode(b"\x01\x01b\x02\x02\x04\x04\0").is_err(), "two bytes of position");
    }
}
