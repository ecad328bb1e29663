//! MariaDB's GTIDs: that of a transaction, and those before a file.
//!
//! ```text
//! GTID event (162)                    GTID list event (163), at the beginning of each file
//!    8 sequence number                   4 count, 28 bits; the others are flags
//!    4 domain                            and for each GTID:
//!    1 flags, and what they announce       4 domain · 4 server id · 8 sequence number
//! ```
//!
//! An empty list is followed by two bytes that mean nothing. The server id of the former is that of its header. A list has the last GTID of each server in each domain; of a domain the last one
//! is the most recent. (Facts of MariaDB's manual, and of logs of 10.11 and 11.4.)

use std::fmt;
use std::str::FromStr;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::header::EventHeader;

const GTID: &str = "GTID event of MariaDB";
const LIST: &str = "GTID list event";
/// The bytes after an empty list.
const EMPTY_PADDING: usize = 2;
const COUNT_MASK: u32 = (1 << 28) - 1;

/// A transaction's GTID in MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MariadbGtid {
    /// The domain: transactions of one domain have an order.
    pub domain: u32,
    /// The server that committed it first.
    pub server_id: u32,
    /// The number in the domain.
    pub sequence: u64,
}

impl MariadbGtid {
    /// The GTID of a transaction's first event.
    pub fn decode(header: &EventHeader, body: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(body, GTID);
        let sequence = cursor.u64("sequence number")?;
        let domain = cursor.u32("domain")?;
        Ok(MariadbGtid { domain, server_id: header.server_id, sequence })
    }
}

impl fmt::Display for MariadbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server_id, self.sequence)
    }
}

impl FromStr for MariadbGtid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::invalid("GTID of MariaDB", "text", format!("{text:?}"), "DOMAIN-SERVER-SEQUENCE");
        let mut parts = text.trim().split('-');
        let mut next = || parts.next().ok_or_else(bad);
        let (domain, server_id, sequence) = (next()?, next()?, next()?);
        let gtid = MariadbGtid {
            domain: domain.parse().map_err(|_| bad())?,
            server_id: server_id.parse().map_err(|_| bad())?,
            sequence: sequence.parse().map_err(|_| bad())?,
        };
        if parts.next().is_some() { Err(bad()) } else { Ok(gtid) }
    }
}

/// The last GTIDs before a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MariadbGtidList {
    /// One for each server in each domain; the most recent of a domain comes after its others.
    pub gtids: Vec<MariadbGtid>,
}

impl MariadbGtidList {
    /// Decodes an event's body.
    pub fn decode(body: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(body, LIST);
        let count = cursor.u32("count")? & COUNT_MASK;
        let mut gtids = Vec::new();
        for _ in 0..count {
            gtids.push(MariadbGtid {
                domain: cursor.u32("domain")?,
                server_id: cursor.u32("server id")?,
                sequence: cursor.u64("sequence number")?,
            });
        }
        match cursor.remaining() {
            EMPTY_PADDING if gtids.is_empty() => Ok(MariadbGtidList::default()),
            0 => Ok(MariadbGtidList { gtids }),
            count => Err(Error::LeftOver { what: LIST, count: count as u64 }),
        }
    }

    /// The most recent GTID of a domain.
    pub fn last(&self, domain: u32) -> Option<MariadbGtid> {
        self.gtids.iter().copied().rfind(|gtid| gtid.domain == domain)
    }

    /// Whether a transaction, or a later one of its server in its domain, is among them.
    pub fn reaches(&self, gtid: MariadbGtid) -> bool {
        let same = |one: &&MariadbGtid| (one.domain, one.server_id) == (gtid.domain, gtid.server_id);
        self.gtids.iter().find(same).is_some_and(|one| one.sequence >= gtid.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_type::EventType;
    use crate::header::HeaderFlags;

    #[test]
    fn a_gtid_is_read_from_its_event_and_its_text() {
        // Of a log of 10.11: 7-35010-1.
        let body = b"\x01\0\0\0\0\0\0\0\x07\0\0\0\x0c\0\0\0\0\0\0";
        let header = EventHeader {
            timestamp: 0,
            event_type: EventType::MARIADB_GTID,
            server_id: 35010,
            event_size: 42,
            end_log_pos: 1107,
            flags: HeaderFlags::default(),
        };
        let gtid = MariadbGtid::decode(&header, body).unwrap();
        assert_eq!((gtid.to_string().as_str(), "7-35010-1".parse().unwrap()), ("7-35010-1", gtid));
        for cut in 0..12 {
            assert!(MariadbGtid::decode(&header, &body[..cut]).is_err(), "{cut}");
        }
        for text in ["", "7", "7-1", "7-1-1-1", "7-x-1", "-1-1-1", "4294967296-1-1", "a:1"] {
            assert!(text.parse::<MariadbGtid>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_has_the_last_of_each_server_in_each_domain() {
        let mut body = b"\x03\0\0\x10".to_vec();
        for (domain, server_id, sequence) in [(7_u32, 1_u32, 4_u64), (0, 2, 9), (0, 1, 10)] {
            body.extend(domain.to_le_bytes());
            body.extend(server_id.to_le_bytes());
            body.extend(sequence.to_le_bytes());
        }
        let list = MariadbGtidList::decode(&body).unwrap();
        let texts: Vec<_> = list.gtids.iter().map(MariadbGtid::to_string).collect();
        assert_eq!(texts, ["7-1-4", "0-2-9", "0-1-10"]);
        assert_eq!(list.last(0), Some("0-1-10".parse().unwrap()));
        assert_eq!(list.last(3), None);
        for (text, reached) in [("0-2-9", true), ("0-2-10", false), ("0-1-9", true), ("3-1-1", false)] {
            assert_eq!(list.reaches(text.parse().unwrap()), reached, "{text}");
        }
        for cut in 0..body.len() {
            assert!(MariadbGtidList::decode(&body[..cut]).is_err(), "{cut}");
        }
        body.push(0);
        assert!(MariadbGtidList::decode(&body).is_err());
        // Of the first log of 10.11.
        assert_eq!(MariadbGtidList::decode(&[0; 6]).unwrap(), MariadbGtidList::default());
        assert!(MariadbGtidList::decode(&[0; 7]).is_err());
    }
}
