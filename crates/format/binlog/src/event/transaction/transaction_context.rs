//! Certification data of Group Replication: exchanged between members, never in a server's binary log (but
//! possibly in the relay log of the group's channel).
//!
//! ```text
//! offset size field
//!      0    1 server_uuid_length
//!      1    4 thread_id
//!      5    1 gtid_specified
//!      6    4 snapshot_version_length
//!     10    4 write_set_count
//!     14    4 read_set_count
//!     18      server_uuid, as text
//!             snapshot_version, an encoded GTID set
//!             write_set, each: length u16, bytes
//!             read_set, each: length u16, bytes
//! ```
//!
//! (Facts of MySQL 9.7.4's `Transaction_context_event`.)

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::narrow;
use crate::frame::decode_whole;
use crate::put::PutFields;

const WHAT: &str = "transaction context event";

/// A decoded transaction context event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionContextEvent<'a> {
    /// The member that ran the transaction.
    pub server_uuid: &'a [u8],
    /// The session there.
    pub thread_id: u32,
    /// Whether the client gave the GTID.
    pub gtid_specified: bool,
    /// The GTIDs that the transaction saw, encoded.
    pub snapshot_version: &'a [u8],
    /// Hashes of the rows written.
    pub write_set: DataSet<'a>,
    /// Hashes of the rows read.
    pub read_set: DataSet<'a>,
}

/// A sequence of byte strings, each after two bytes of length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSet<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> DataSet<'a> {
    /// How many elements.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, WHAT);
        // Every element was read once when the event was decoded.
        std::iter::from_fn(move || read_element(&mut cursor).ok())
    }

    fn read(cursor: &mut Cursor<'a>, count: u32) -> Result<Self> {
        let start = cursor.peek();
        for _ in 0..count {
            read_element(cursor)?;
        }
        let size = start.len() - cursor.remaining();
        Ok(DataSet { count, bytes: start.get(..size).unwrap_or_default() })
    }
}

fn read_element<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let length = cursor.u16("length of an element")?;
    cursor.bytes(usize::from(length), "element")
}

impl<'a> TransactionContextEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, WHAT, |cursor| {
            let server_uuid_length = cursor.u8("server uuid length")?;
            let thread_id = cursor.u32("thread id")?;
            let gtid_specified = match cursor.u8("gtid specified")? {
                0 => false,
                1 => true,
                other => return Err(Error::invalid(WHAT, "gtid specified", other, "0 or 1")),
            };
            let snapshot_version_length = cursor.u32("snapshot version length")?;
            let write_set_count = cursor.u32("write set count")?;
            let read_set_count = cursor.u32("read set count")?;
            Ok(TransactionContextEvent {
                thread_id,
                gtid_specified,
                server_uuid: cursor.bytes(usize::from(server_uuid_length), "server uuid")?,
                snapshot_version: cursor.bytes_u64(u64::from(snapshot_version_length), "snapshot version")?,
                write_set: DataSet::read(cursor, write_set_count)?,
                read_set: DataSet::read(cursor, read_set_count)?,
            })
        })
    }

    /// The body as it stands in a relay log, without the checksum.
    ///
    /// # Errors
    ///
    /// A UUID above 255 bytes, a snapshot of 4 GiB: their lengths do not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        body.put_u8(narrow(self.server_uuid.len(), WHAT, "server uuid length", "at most 255 bytes")?);
        body.put_u32(self.thread_id);
        body.put_u8(u8::from(self.gtid_specified));
        let length = self.snapshot_version.len();
        body.put_u32(narrow(length, WHAT, "snapshot version length", "at most 4294967295 bytes")?);
        body.put_u32(self.write_set.count);
        body.put_u32(self.read_set.count);
        body.put(self.server_uuid);
        body.put(self.snapshot_version);
        body.put(self.write_set.bytes);
        body.put(self.read_set.bytes);
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"\x04\x08\0\0\0\x01\x03\0\0\0\x02\0\0\0\x01\0\0\0uuidsnp\
        \x01\0a\x02\0bc\0\0";

    #[test]
    fn both_directions_agree() {
        let event = TransactionContextEvent::decode(BODY).unwrap();
        assert_eq!((event.server_uuid, event.snapshot_version), (b"uuid".as_slice(), b"snp".as_slice()));
        assert_eq!((event.thread_id, event.gtid_specified), (8, true));
        assert_eq!(event.write_set.iter().collect::<Vec<_>>(), [b"a".as_slice(), b"bc"]);
        assert_eq!((event.read_set.count(), event.read_set.iter().count()), (1, 1));
        assert_eq!(event.encode().unwrap(), BODY);
        for length in 0..BODY.len() {
            assert!(TransactionContextEvent::decode(&BODY[..length]).is_err(), "{length}");
        }
        assert!(TransactionContextEvent::decode(&[BODY, b"x"].concat()).is_err());
    }

    #[test]
    fn counts_that_lie_are_noticed_without_waiting() {
        let mut body = BODY.to_vec();
        body[10..14].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(TransactionContextEvent::decode(&body).is_err());
    }
}
