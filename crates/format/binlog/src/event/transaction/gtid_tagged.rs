//! Begins a transaction whose GTID has a tag (type 42, since 8.3).
//!
//! The body is a message of `mysql::serialization`, encoded entirely as variable-length integers (VLI, see
//! [`crate::cursor`]; signed numbers zig-zag):
//!
//! ```text
//! serialization_version    1
//! size                     of the message, version and size included
//! last_non_ignorable       1 + id of the last field that a reader must know; 0: none
//! then fields in the order of their ids, each after its id:
//!  id field
//!   0 flags                        as in the untagged event
//!   1 uuid                         16 numbers, so that bytes from 0x80 on take two bytes
//!   2 gno                          signed
//!   3 tag                          length, then as many bytes
//!   4 last_committed               signed
//!   5 sequence_number              signed
//!   6 immediate_commit_timestamp   microseconds since 1970
//!   7 original_commit_timestamp    if it differs
//!   8 transaction_length           bytes of the whole transaction, this event included
//!   9 immediate_server_version
//!  10 original_server_version      if it differs
//!  11 commit_group_ticket          if it is not 0
//! ```
//!
//! Fields that later servers add after these stay as bytes. A server computes `size` with as many
//! bytes for itself as the fields' size needs; see [`TaggedHead::message_size`].
//! (Facts of MySQL 9.7.4's `Gtid_event::define_fields` and `mysql/serialization`; WL#15294.)

use super::gtid::{CommitTimestamps, GtidFlags, LogicalClock, ServerVersions};
use super::length_field::LengthField;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::frame::EventFrame;
use crate::gtid::{Gtid, ServerUuid, Tsid, UUID_SIZE, decode_tag, encode_tag};
use crate::put::{PutFields, vli_size};

const WHAT: &str = "tagged GTID event";

const SERIALIZATION_VERSION: u64 = 1;
/// One more than the last field that we know.
const FIELDS_END: u64 = 12;

/// The ids of the fields.
mod id {
    pub(in crate::event) const FLAGS: u8 = 0;
    pub(in crate::event) const UUID: u8 = 1;
    pub(in crate::event) const GNO: u8 = 2;
    pub(in crate::event) const TAG: u8 = 3;
    pub(in crate::event) const LAST_COMMITTED: u8 = 4;
    pub(in crate::event) const SEQUENCE_NUMBER: u8 = 5;
    pub(in crate::event) const IMMEDIATE_COMMIT_TIMESTAMP: u8 = 6;
    pub(in crate::event) const ORIGINAL_COMMIT_TIMESTAMP: u8 = 7;
    pub(in crate::event) const TRANSACTION_LENGTH: u8 = 8;
    pub(in crate::event) const IMMEDIATE_SERVER_VERSION: u8 = 9;
    pub(in crate::event) const ORIGINAL_SERVER_VERSION: u8 = 10;
    pub(in crate::event) const COMMIT_GROUP_TICKET: u8 = 11;
}

/// A tagged GTID event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidTaggedEvent<'a> {
    /// One more than the id of the last field that a reader must know; 0 if it may skip all.
    pub last_non_ignorable_field: u64,
    /// Flags of the event.
    pub flags: GtidFlags,
    /// The transaction's identifier.
    pub gtid: Gtid,
    /// The numbers that appliers use for scheduling.
    pub logical_clock: LogicalClock,
    /// When the transaction committed.
    pub commit_timestamps: CommitTimestamps,
    /// Bytes of the whole transaction in its log, this event included.
    pub transaction_length: u64,
    /// Versions of the servers that wrote the transaction.
    pub server_versions: ServerVersions,
    /// Ticket of the group commit, where Group Replication gave one.
    pub commit_group_ticket: Option<u64>,
    /// Fields after those that we know, with their ids.
    pub unknown_fields: &'a [u8],
}

impl<'a> GtidTaggedEvent<'a> {
    /// Reads the event.
    pub fn decode_frame(frame: &EventFrame<'a>) -> Result<Self> {
        Self::decode(frame.body())
    }

    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(body, WHAT);
        let head = TaggedHead::decode(&mut cursor)?;
        require(&mut cursor, id::FLAGS, "flags")?;
        let flags = GtidFlags(narrow(cursor.vli("flags")?, "flags")?);
        require(&mut cursor, id::UUID, "uuid")?;
        let uuid = decode_uuid(&mut cursor)?;
        require(&mut cursor, id::GNO, "gno")?;
        let gno = cursor.vli_signed("gno")?;
        require(&mut cursor, id::TAG, "tag")?;
        let tag = decode_tag(&mut cursor)?;
        require(&mut cursor, id::LAST_COMMITTED, "last committed")?;
        let last_committed = cursor.vli_signed("last committed")?;
        require(&mut cursor, id::SEQUENCE_NUMBER, "sequence number")?;
        let sequence_number = cursor.vli_signed("sequence number")?;
        require(&mut cursor, id::IMMEDIATE_COMMIT_TIMESTAMP, "immediate commit timestamp")?;
        let immediate = cursor.vli("immediate commit timestamp")?;
        let original = match take_id(&mut cursor, id::ORIGINAL_COMMIT_TIMESTAMP) {
            true => Some(cursor.vli("original commit timestamp")?),
            false => None,
        };
        let commit_timestamps = CommitTimestamps { immediate, original };
        require(&mut cursor, id::TRANSACTION_LENGTH, "transaction length")?;
        let transaction_length = cursor.vli("transaction length")?;
        require(&mut cursor, id::IMMEDIATE_SERVER_VERSION, "immediate server version")?;
        let immediate = narrow(cursor.vli("immediate server version")?, "immediate server version")?;
        let original = match take_id(&mut cursor, id::ORIGINAL_SERVER_VERSION) {
            true => Some(narrow(cursor.vli("original server version")?, "original server version")?),
            false => None,
        };
        let server_versions = ServerVersions { immediate, original };
        let commit_group_ticket = match take_id(&mut cursor, id::COMMIT_GROUP_TICKET) {
            true => Some(cursor.vli("commit group ticket")?),
            false => None,
        };
        let gno = u64::try_from(gno).map_err(|_| Error::invalid(WHAT, "gno", gno, "1 to 2^63 - 2"))?;
        let event = GtidTaggedEvent {
            last_non_ignorable_field: head.last_non_ignorable_field,
            flags,
            gtid: Gtid::new(Tsid { uuid, tag }, gno)?,
            logical_clock: LogicalClock { last_committed, sequence_number },
            commit_timestamps,
            transaction_length,
            server_versions,
            commit_group_ticket,
            unknown_fields: cursor.rest(),
        };
        // Each number has one shortest form, so equal sizes mean equal bytes.
        let shortest = event.encode().len();
        if shortest != body.len() {
            return Err(Error::invalid(
                WHAT,
                "body",
                format!("{} bytes", body.len()),
                "all numbers in their shortest form",
            ));
        }
        Ok(event)
    }

    /// The body as it stands in a log, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::with_capacity(96 + self.unknown_fields.len());
        fields.put_field(id::FLAGS, u64::from(self.flags.0));
        fields.put_vli(u64::from(id::UUID));
        self.gtid.tsid().uuid.0.iter().for_each(|byte| fields.put_vli(u64::from(*byte)));
        fields.put_vli(u64::from(id::GNO));
        fields.put_vli_signed(self.gtid.gno() as i64);
        fields.put_vli(u64::from(id::TAG));
        encode_tag(self.gtid.tsid().tag, &mut fields);
        fields.put_vli(u64::from(id::LAST_COMMITTED));
        fields.put_vli_signed(self.logical_clock.last_committed);
        fields.put_vli(u64::from(id::SEQUENCE_NUMBER));
        fields.put_vli_signed(self.logical_clock.sequence_number);
        fields.put_field(id::IMMEDIATE_COMMIT_TIMESTAMP, self.commit_timestamps.immediate);
        if let Some(original) = self.commit_timestamps.original {
            fields.put_field(id::ORIGINAL_COMMIT_TIMESTAMP, original);
        }
        fields.put_field(id::TRANSACTION_LENGTH, self.transaction_length);
        fields.put_field(id::IMMEDIATE_SERVER_VERSION, u64::from(self.server_versions.immediate));
        if let Some(original) = self.server_versions.original {
            fields.put_field(id::ORIGINAL_SERVER_VERSION, u64::from(original));
        }
        if let Some(ticket) = self.commit_group_ticket {
            fields.put_field(id::COMMIT_GROUP_TICKET, ticket);
        }
        fields.put(self.unknown_fields);
        let head = TaggedHead { last_non_ignorable_field: self.last_non_ignorable_field };
        let mut body = Vec::with_capacity(head.size(fields.len()) + fields.len());
        head.encode(fields.len(), &mut body);
        body.put(&fields);
        body
    }
}

/// The fields before the numbered ones.
#[derive(Debug, Clone, Copy)]
pub(in crate::event) struct TaggedHead {
    last_non_ignorable_field: u64,
}

impl TaggedHead {
    /// Reads the head and leaves the cursor at the first field.
    pub(in crate::event) fn decode(cursor: &mut Cursor<'_>) -> Result<Self> {
        let version = cursor.vli("serialization version")?;
        if version != SERIALIZATION_VERSION {
            return Err(Error::invalid(WHAT, "serialization version", version, "1"));
        }
        let size = cursor.vli("message size")?;
        let last_non_ignorable_field = cursor.vli("last non-ignorable field")?;
        if last_non_ignorable_field > FIELDS_END {
            return Err(Error::invalid(
                WHAT,
                "last non-ignorable field",
                last_non_ignorable_field - 1,
                "at most 11, the last one known here",
            ));
        }
        let head = TaggedHead { last_non_ignorable_field };
        if size != head.message_size(cursor.remaining()) {
            return Err(Error::invalid(
                WHAT,
                "message size",
                format!("{size} over {} bytes of fields", cursor.remaining()),
                "the size of the body",
            ));
        }
        Ok(head)
    }

    /// Appends the head of a message with this many bytes of fields.
    pub(in crate::event) fn encode(self, fields_size: usize, out: &mut Vec<u8>) {
        out.put_vli(SERIALIZATION_VERSION);
        out.put_vli(self.message_size(fields_size));
        out.put_vli(self.last_non_ignorable_field);
    }

    /// The value of `size`. For `size` itself, the server counts the bytes that the *fields'* size would
    /// need. From 125 to 127 bytes of fields that is one less than `size` takes; we do the same as the
    /// server.
    fn message_size(self, fields_size: usize) -> u64 {
        let version_size = vli_size(SERIALIZATION_VERSION);
        let own_size = vli_size(fields_size as u64);
        (version_size + own_size + vli_size(self.last_non_ignorable_field) + fields_size) as u64
    }

    /// Bytes that [`TaggedHead::encode`] appends.
    pub(in crate::event) fn size(self, fields_size: usize) -> usize {
        vli_size(SERIALIZATION_VERSION)
            + vli_size(self.message_size(fields_size))
            + vli_size(self.last_non_ignorable_field)
    }
}

/// Appends a field with its id.
trait PutField {
    fn put_field(&mut self, id: u8, value: u64);
}

impl PutField for Vec<u8> {
    fn put_field(&mut self, id: u8, value: u64) {
        self.put_vli(u64::from(id));
        self.put_vli(value);
    }
}

/// Takes the id of the next field if it is this one. All ids that we know fit in one byte.
fn take_id(cursor: &mut Cursor<'_>, id: u8) -> bool {
    let found = cursor.peek().first() == Some(&(id << 1));
    found && cursor.u8("field id").is_ok()
}

fn require(cursor: &mut Cursor<'_>, id: u8, field: &'static str) -> Result<()> {
    if take_id(cursor, id) {
        return Ok(());
    }
    match cursor.clone().vli(field) {
        Ok(found) => {
            Err(Error::invalid(WHAT, field, format!("missing: field {found} stands there"), "a field"))
        }
        Err(short) => Err(short),
    }
}

fn decode_uuid(cursor: &mut Cursor<'_>) -> Result<ServerUuid> {
    let mut uuid = [0; UUID_SIZE];
    for byte in &mut uuid {
        *byte = narrow(cursor.vli("uuid")?, "uuid")?;
    }
    Ok(ServerUuid(uuid))
}

fn narrow<T: TryFrom<u64>>(value: u64, field: &'static str) -> Result<T> {
    T::try_from(value).map_err(|_| Error::invalid(WHAT, field, value, "a number that fits the field"))
}

fn skip_vli(cursor: &mut Cursor<'_>, field: &'static str) -> Result<()> {
    let first = cursor.u8(field)?;
    cursor.bytes(first.trailing_ones() as usize, field)?;
    Ok(())
}

/// Finds the transaction length in a body, after its head and the offset of the first field.
pub(in crate::event) fn find_transaction_length(
    body: &[u8],
) -> Result<(TaggedHead, usize, Option<LengthField>)> {
    let mut cursor = Cursor::new(body, WHAT);
    let head = TaggedHead::decode(&mut cursor)?;
    let fields_offset = body.len() - cursor.remaining();
    for id in id::FLAGS..id::TRANSACTION_LENGTH {
        if !take_id(&mut cursor, id) {
            continue;
        }
        match id {
            id::UUID => {
                for _ in 0..UUID_SIZE {
                    skip_vli(&mut cursor, "uuid")?;
                }
            }
            id::TAG => {
                let length = cursor.vli("tag length")?;
                cursor.bytes_u64(length, "tag")?;
            }
            _ => skip_vli(&mut cursor, "field")?,
        }
    }
    if !take_id(&mut cursor, id::TRANSACTION_LENGTH) {
        return Ok((head, fields_offset, None));
    }
    let offset = body.len() - cursor.remaining();
    let value = cursor.vli("transaction length")?;
    let size = body.len() - cursor.remaining() - offset;
    Ok((head, fields_offset, Some(LengthField { offset, size, value })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by 9.7.4; each line one field after its id.
    const BODY: &[u8; 56] = b"\
        \x02\x70\x00\
        \x00\x00\
        \x02\x28\x20\x88\xfe\x95\x03\x9a\x22\xc5\x03\x11\x02\x35\x02\x04\xf1\x03\x00\x00\x00\x02\
        \x04\x04\
        \x06\x0atag_1\
        \x08\x0c\
        \x0a\x1c\
        \x0c\x7f\xa5\x42\x3c\x82\xbf\x60\x06\
        \x10\x05\x04\
        \x12\x83\x12\x0b";

    fn event() -> GtidTaggedEvent<'static> {
        GtidTaggedEvent {
            last_non_ignorable_field: 0,
            flags: GtidFlags(0),
            gtid: "1410447f-e54d-11f1-848d-02fc00000001:tag_1:1".parse().unwrap(),
            logical_clock: LogicalClock { last_committed: 3, sequence_number: 7 },
            commit_timestamps: CommitTimestamps { immediate: 1_795_225_500_271_269, original: None },
            transaction_length: 257,
            server_versions: ServerVersions { immediate: 90704, original: None },
            commit_group_ticket: None,
            unknown_fields: &[],
        }
    }

    /// With every field, at the end of its range, and one that we do not know.
    fn full() -> GtidTaggedEvent<'static> {
        GtidTaggedEvent {
            last_non_ignorable_field: 12,
            flags: GtidFlags(0xff),
            gtid: format!("ffffffff-ffff-ffff-ffff-ffffffffffff:{}:9223372036854775806", "t".repeat(32))
                .parse()
                .unwrap(),
            logical_clock: LogicalClock { last_committed: i64::MIN, sequence_number: i64::MAX },
            commit_timestamps: CommitTimestamps { immediate: u64::MAX, original: Some(0) },
            transaction_length: u64::MAX,
            server_versions: ServerVersions { immediate: u32::MAX, original: Some(0) },
            commit_group_ticket: Some(u64::MAX),
            unknown_fields: b"\x18\x06abc",
        }
    }

    #[test]
    fn both_directions_agree_with_the_server() {
        assert_eq!(GtidTaggedEvent::decode(BODY).unwrap(), event());
        assert_eq!(event().encode(), BODY);
    }

    #[test]
    fn every_field_and_unknown_ones_survive() {
        let body = full().encode();
        assert_eq!(GtidTaggedEvent::decode(&body).unwrap(), full());
    }

    #[test]
    fn cut_anywhere_it_is_an_error() {
        for body in [BODY.to_vec(), full().encode()] {
            for length in 0..body.len() {
                assert!(GtidTaggedEvent::decode(&body[..length]).is_err(), "{length}");
                assert!(find_transaction_length(&body[..length]).is_err(), "{length}");
            }
        }
    }

    #[test]
    fn one_byte_more_than_the_message_is_an_error() {
        let error = GtidTaggedEvent::decode(&[&BODY[..], b"x"].concat()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tagged GTID event: message size is 56 over 54 bytes of fields, expected the size of the body"
        );
    }

    #[test]
    fn the_length_is_found_where_it_stands() {
        let (_, fields_offset, field) = find_transaction_length(BODY).unwrap();
        assert_eq!((fields_offset, field), (3, Some(LengthField { offset: 50, size: 2, value: 257 })));
        let body = full().encode();
        assert_eq!(find_transaction_length(&body).unwrap().2.unwrap().value, u64::MAX);
        // A message without the field: cut before it, with its size corrected.
        let without = [b"\x02\x62\x00", &BODY[3..49]].concat();
        assert_eq!(find_transaction_length(&without).unwrap().2, None);
        let error = GtidTaggedEvent::decode(&without).unwrap_err();
        assert_eq!(error.to_string(), "tagged GTID event: transaction length needs 1 bytes, 0 are left");
    }

    #[test]
    fn the_message_size_is_the_servers_around_128_bytes() {
        // From 125 to 127 bytes of fields the server's size is one less than the body.
        let fill = [0x5a; 100];
        let base = event().encode().len() - 3;
        for fields_size in 100..140 {
            let unknown_fields = &fill[..fields_size - base];
            let event = GtidTaggedEvent { unknown_fields, ..event() };
            let body = event.encode();
            let size = Cursor::new(&body[1..], "test").vli("size").unwrap();
            let short = u64::from((125..=127).contains(&fields_size));
            assert_eq!(size + short, body.len() as u64, "{fields_size}");
            assert_eq!(GtidTaggedEvent::decode(&body).unwrap(), event);
        }
    }

    #[test]
    fn other_messages_are_refused() {
        let change = |offset: usize, byte: u8| {
            let mut body = *BODY;
            body[offset] = byte;
            GtidTaggedEvent::decode(&body).unwrap_err().to_string()
        };
        assert_eq!(change(0, 4), "tagged GTID event: serialization version is 2, expected 1");
        assert_eq!(
            change(2, 26),
            "tagged GTID event: last non-ignorable field is 12, expected at most 11, the last one known here"
        );
        assert_eq!(
            change(3, 2),
            "tagged GTID event: flags is missing: field 1 stands there, expected a field"
        );
        assert_eq!(change(28, 0), "GTID: gno is 0, expected 1 to 2^63 - 2");
        assert_eq!(change(28, 2), "tagged GTID event: gno is -1, expected 1 to 2^63 - 2");
        assert_eq!(
            change(31, b'T'),
            "GTID: tag is \"Tag_1\", expected 1 to 32 of a-z, 0-9 and _, no digit first"
        );
    }

    #[test]
    fn numbers_in_more_bytes_than_they_need_are_refused() {
        // The flags, 0, in two bytes.
        let padded = [b"\x02\x72\x00\x00\x01\x00", &BODY[5..]].concat();
        let error = GtidTaggedEvent::decode(&padded).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tagged GTID event: body is 57 bytes, expected all numbers in their shortest form"
        );
    }
}
