//! Begins a transaction: GTID without tag (type 33), or anonymous (type 34).
//!
//! ```text
//! offset size field
//!      0    1 flags                         bit 0: the transaction may hold statements
//!      1   16 uuid                          zeros if anonymous
//!     17    8 gno                           1 to 2^63 - 2; 0 if anonymous
//!             5.6 ends here
//!     25    1 logical_clock_type            2; another value (5.7.4 and before) hides what follows
//!     26    8 last_committed                0: nothing before it in this file
//!     34    8 sequence_number               from 1 in each file
//!             5.7 ends here
//!     42    7 immediate_commit_timestamp    microseconds since 1970; bit 55: the next field is there
//!             7 original_commit_timestamp   if it differs
//!             8.0.1 ends here
//!           LEI transaction_length          bytes of the whole transaction, this event included
//!             8.0.13 ends here
//!             4 immediate_server_version    90704 is 9.7.4; bit 31: the next field is there
//!             4 original_server_version     if it differs
//!             8 commit_group_ticket         if it is not 0
//! ```
//!
//! Parts that old writers omit are `None`, and parts that later writers may add are kept as bytes, so that
//! every event is written back unchanged. See [`crate::event::rewrite_transaction_length`] for the one change
//! that compressing and expanding make. (Facts of MySQL 9.7.4's `Gtid_event`, and of its older versions.)

use super::length_field::LengthField;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event_type::EventType;
use crate::frame::EventFrame;
use crate::gtid::{Gtid, ServerUuid, UUID_SIZE};
use crate::put::{PutFields, lei_size};

const WHAT: &str = "GTID event";

/// Bytes of flags, uuid and gno: all that 5.6 writes.
const IDENTITY_SIZE: usize = 1 + UUID_SIZE + 8;
const LOGICAL_CLOCK_TYPE: u8 = 2;
const LOGICAL_CLOCK_SIZE: usize = 8 + 8;
const TIMESTAMP_SIZE: usize = 7;
const TIMESTAMP_FOLLOWS: u64 = 1 << 55;
const VERSION_SIZE: usize = 4;
const VERSION_FOLLOWS: u32 = 1 << 31;
const TICKET_SIZE: usize = 8;
/// All optional parts at their largest, to allocate once.
const TAIL_SIZE_MAX: usize = 1 + LOGICAL_CLOCK_SIZE + 2 * TIMESTAMP_SIZE + 9 + 2 * VERSION_SIZE + TICKET_SIZE;

/// The flags of a GTID event. Unknown bits survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GtidFlags(pub u8);

impl GtidFlags {
    const MAY_HAVE_SBR: u8 = 1;

    /// Whether the transaction may hold changes logged as statements (mysqlbinlog's `rbr_only=no`).
    pub fn may_have_sbr(self) -> bool {
        self.0 & Self::MAY_HAVE_SBR != 0
    }
}

/// The numbers that a multi-threaded applier uses for scheduling. Both count within one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogicalClock {
    /// The last transaction that had committed before this one prepared; 0: none in this file.
    pub last_committed: i64,
    /// This transaction's sequence number in the file, from 1.
    pub sequence_number: i64,
}

impl LogicalClock {
    /// The clock in a file that begins after the transaction with this sequence number. A replica has all before the file by then.
    pub fn counted_after(self, before: i64) -> Self {
        let LogicalClock { last_committed, sequence_number } = self;
        if sequence_number <= before {
            // No clock, or none that is valid there: such a transaction runs alone.
            return LogicalClock { last_committed: 0, sequence_number: 0 };
        }
        LogicalClock {
            last_committed: last_committed.saturating_sub(before).max(0),
            sequence_number: sequence_number - before,
        }
    }
}

/// When a transaction committed, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitTimestamps {
    /// On the server that wrote this log.
    pub immediate: u64,
    /// On the server that committed first; `None` if the same.
    pub original: Option<u64>,
}

/// Version of the servers that wrote a transaction, as `MYSQL_VERSION_ID`: 90704 is 9.7.4. 999999 is
/// undefined, 0 unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerVersions {
    /// The server that wrote this log.
    pub immediate: u32,
    /// The server that committed first; `None` if the same.
    pub original: Option<u32>,
}

/// A GTID event or an anonymous one.
///
/// Each optional part requires the one above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidEvent<'a> {
    /// Flags of the event.
    pub flags: GtidFlags,
    /// The server that committed first; zeros if anonymous.
    pub uuid: ServerUuid,
    /// The transaction's number there; 0 if anonymous.
    pub gno: u64,
    /// Since 5.7.5.
    pub logical_clock: Option<LogicalClock>,
    /// Since 8.0.1.
    pub commit_timestamps: Option<CommitTimestamps>,
    /// Bytes of the whole transaction in its log, this event included. Since 8.0.2.
    pub transaction_length: Option<u64>,
    /// Since 8.0.14.
    pub server_versions: Option<ServerVersions>,
    /// Ticket of the group commit, where Group Replication gave one.
    pub commit_group_ticket: Option<u64>,
    /// Bytes after the last part that we know.
    pub trailing: &'a [u8],
}

impl<'a> GtidEvent<'a> {
    /// Reads the event.
    pub fn decode_frame(frame: &EventFrame<'a>) -> Result<Self> {
        Self::decode(frame.body(), frame.event_type())
    }

    /// Reads a body without its checksum. The type says whether there must be a GTID.
    pub fn decode(body: &'a [u8], event_type: EventType) -> Result<Self> {
        let mut cursor = Cursor::new(body, WHAT);
        let mut event = GtidEvent {
            flags: GtidFlags(cursor.u8("flags")?),
            uuid: ServerUuid(cursor.array("uuid")?),
            gno: cursor.u64("gno")?,
            logical_clock: None,
            commit_timestamps: None,
            transaction_length: None,
            server_versions: None,
            commit_group_ticket: None,
            trailing: &[],
        };
        if event_type == EventType::ANONYMOUS_GTID {
            if event.gno != 0 {
                return Err(Error::invalid("anonymous GTID event", "gno", event.gno, "0"));
            }
        } else {
            Gtid::new(event.uuid.into(), event.gno)?;
        }
        event.decode_tail(&mut cursor)?;
        event.trailing = cursor.rest();
        Ok(event)
    }

    /// Reads the parts that are there. If too few bytes are left for the next part, they are kept as trailing
    /// bytes.
    fn decode_tail(&mut self, cursor: &mut Cursor<'a>) -> Result<()> {
        if cursor.peek().first() != Some(&LOGICAL_CLOCK_TYPE) {
            return Ok(());
        }
        cursor.u8("logical clock type")?;
        self.logical_clock = Some(LogicalClock {
            last_committed: cursor.i64("last committed")?,
            sequence_number: cursor.i64("sequence number")?,
        });
        if cursor.remaining() < TIMESTAMP_SIZE {
            return Ok(());
        }
        self.commit_timestamps = Some(decode_timestamps(cursor)?);
        if cursor.is_empty() {
            return Ok(());
        }
        self.transaction_length = Some(decode_shortest_lei(cursor)?);
        if cursor.remaining() < VERSION_SIZE {
            return Ok(());
        }
        self.server_versions = Some(decode_versions(cursor)?);
        if cursor.remaining() >= TICKET_SIZE {
            self.commit_group_ticket = Some(cursor.u64("commit group ticket")?);
        }
        Ok(())
    }

    /// The body as it stands in a log, without the checksum.
    ///
    /// # Errors
    ///
    /// A part is present without the one above it, or has more bits than fit: 55 and 56 for the timestamps,
    /// 31 for the immediate server version.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let parts = [
            self.logical_clock.is_some(),
            self.commit_timestamps.is_some(),
            self.transaction_length.is_some(),
            self.server_versions.is_some(),
            self.commit_group_ticket.is_some(),
        ];
        if !parts.is_sorted_by(|above, below| above >= below) {
            return Err(Error::invalid(WHAT, "optional part", "there", "the part above it too"));
        }
        let mut body = Vec::with_capacity(IDENTITY_SIZE + TAIL_SIZE_MAX + self.trailing.len());
        body.put_u8(self.flags.0);
        body.put(&self.uuid.0);
        body.put_u64(self.gno);
        if let Some(clock) = self.logical_clock {
            body.put_u8(LOGICAL_CLOCK_TYPE);
            body.put_i64(clock.last_committed);
            body.put_i64(clock.sequence_number);
        }
        if let Some(timestamps) = self.commit_timestamps {
            encode_timestamps(timestamps, &mut body)?;
        }
        if let Some(length) = self.transaction_length {
            body.put_lei(length);
        }
        if let Some(versions) = self.server_versions {
            encode_versions(versions, &mut body)?;
        }
        if let Some(ticket) = self.commit_group_ticket {
            body.put_u64(ticket);
        }
        body.put(self.trailing);
        Ok(body)
    }

    /// The transaction's GTID; `None` if anonymous.
    pub fn gtid(&self) -> Option<Gtid> {
        Gtid::new(self.uuid.into(), self.gno).ok()
    }
}

fn decode_timestamps(cursor: &mut Cursor<'_>) -> Result<CommitTimestamps> {
    let immediate = cursor.uint(TIMESTAMP_SIZE, "immediate commit timestamp")?;
    let original = match immediate & TIMESTAMP_FOLLOWS {
        0 => None,
        _ => Some(cursor.uint(TIMESTAMP_SIZE, "original commit timestamp")?),
    };
    Ok(CommitTimestamps { immediate: immediate & !TIMESTAMP_FOLLOWS, original })
}

fn encode_timestamps(timestamps: CommitTimestamps, body: &mut Vec<u8>) -> Result<()> {
    if timestamps.immediate >= TIMESTAMP_FOLLOWS {
        return Err(too_large("immediate commit timestamp", timestamps.immediate, "at most 55 bits"));
    }
    match timestamps.original {
        None => body.put_uint(timestamps.immediate, TIMESTAMP_SIZE),
        Some(original) if original >= TIMESTAMP_FOLLOWS << 1 => {
            return Err(too_large("original commit timestamp", original, "at most 56 bits"));
        }
        Some(original) => {
            body.put_uint(timestamps.immediate | TIMESTAMP_FOLLOWS, TIMESTAMP_SIZE);
            body.put_uint(original, TIMESTAMP_SIZE);
        }
    }
    Ok(())
}

fn decode_versions(cursor: &mut Cursor<'_>) -> Result<ServerVersions> {
    let immediate = cursor.u32("immediate server version")?;
    let original = match immediate & VERSION_FOLLOWS {
        0 => None,
        _ => Some(cursor.u32("original server version")?),
    };
    Ok(ServerVersions { immediate: immediate & !VERSION_FOLLOWS, original })
}

fn encode_versions(versions: ServerVersions, body: &mut Vec<u8>) -> Result<()> {
    if versions.immediate >= VERSION_FOLLOWS {
        return Err(too_large("immediate server version", versions.immediate, "at most 31 bits"));
    }
    match versions.original {
        None => body.put_u32(versions.immediate),
        Some(original) => {
            body.put_u32(versions.immediate | VERSION_FOLLOWS);
            body.put_u32(original);
        }
    }
    Ok(())
}

#[cold]
fn too_large(field: &'static str, value: impl ToString, expected: &'static str) -> Error {
    Error::invalid(WHAT, field, value, expected)
}

/// A longer form than needed would not be written back unchanged; no server writes one.
fn decode_shortest_lei(cursor: &mut Cursor<'_>) -> Result<u64> {
    let before = cursor.remaining();
    let value = cursor.lei("transaction length")?;
    if before - cursor.remaining() != lei_size(value) {
        return Err(Error::invalid(
            WHAT,
            "transaction length",
            format!("{value} in {} bytes", before - cursor.remaining()),
            "its shortest form",
        ));
    }
    Ok(value)
}

/// Finds the transaction length in a body, reading no more than needed.
pub(in crate::event) fn find_transaction_length(body: &[u8]) -> Result<Option<LengthField>> {
    let mut cursor = Cursor::new(body, WHAT);
    cursor.bytes(IDENTITY_SIZE, "flags, uuid and gno")?;
    if cursor.peek().first() != Some(&LOGICAL_CLOCK_TYPE) {
        return Ok(None);
    }
    cursor.bytes(1 + LOGICAL_CLOCK_SIZE, "logical clock")?;
    if cursor.remaining() < TIMESTAMP_SIZE {
        return Ok(None);
    }
    decode_timestamps(&mut cursor)?;
    if cursor.is_empty() {
        return Ok(None);
    }
    let offset = body.len() - cursor.remaining();
    let value = cursor.lei("transaction length")?;
    Ok(Some(LengthField { offset, size: body.len() - cursor.remaining() - offset, value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: [u8; 16] = *b"\x14\x10\x44\x7f\xe5\x4d\x11\xf1\x84\x8d\x02\xfc\0\0\0\x01";

    /// With every part, as Group Replication on a replica of another version writes it.
    fn event() -> GtidEvent<'static> {
        GtidEvent {
            flags: GtidFlags(1),
            uuid: ServerUuid(UUID),
            gno: 2,
            logical_clock: Some(LogicalClock { last_committed: 3, sequence_number: 4 }),
            commit_timestamps: Some(CommitTimestamps { immediate: 0x11, original: Some(0x10) }),
            transaction_length: Some(300),
            server_versions: Some(ServerVersions { immediate: 90704, original: Some(80400) }),
            commit_group_ticket: Some(5),
            trailing: &[],
        }
    }

    fn decode(body: &[u8]) -> GtidEvent<'_> {
        GtidEvent::decode(body, EventType::GTID).unwrap()
    }

    #[test]
    fn a_clock_begins_anew_in_a_later_file() {
        let clock = |last_committed, sequence_number| LogicalClock { last_committed, sequence_number };
        assert_eq!(clock(99, 101).counted_after(100), clock(0, 1));
        assert_eq!(clock(100, 102).counted_after(100), clock(0, 2));
        assert_eq!(clock(102, 104).counted_after(100), clock(2, 4));
        assert_eq!(clock(0, 0).counted_after(100), clock(0, 0));
        assert_eq!(clock(i64::MIN, 101).counted_after(100), clock(0, 1));
    }

    #[test]
    fn both_directions_agree_with_every_part() {
        let body = event().encode().unwrap();
        let expected = [
            &b"\x01"[..],
            &UUID,
            b"\x02\0\0\0\0\0\0\0",
            b"\x02",
            b"\x03\0\0\0\0\0\0\0",
            b"\x04\0\0\0\0\0\0\0",
            b"\x11\0\0\0\0\0\x80",
            b"\x10\0\0\0\0\0\0",
            b"\xfc\x2c\x01",
            b"\x50\x62\x01\x80",
            b"\x10\x3a\x01\0",
            b"\x05\0\0\0\0\0\0\0",
        ]
        .concat();
        assert_eq!(body, expected);
        assert_eq!(decode(&body), event());
        assert_eq!(event().gtid().unwrap().to_string(), "1410447f-e54d-11f1-848d-02fc00000001:2");
    }

    #[test]
    fn what_each_writer_leaves_out_is_none() {
        let v5_6 = GtidEvent {
            logical_clock: None,
            commit_timestamps: None,
            transaction_length: None,
            server_versions: None,
            commit_group_ticket: None,
            ..event()
        };
        let v5_7 = GtidEvent { logical_clock: event().logical_clock, ..v5_6.clone() };
        let v8_0_1 = GtidEvent {
            commit_timestamps: Some(CommitTimestamps { immediate: 0x11, original: None }),
            ..v5_7.clone()
        };
        let v8_0_2 = GtidEvent { transaction_length: Some(300), ..v8_0_1.clone() };
        let v8_0_14 = GtidEvent {
            server_versions: Some(ServerVersions { immediate: 80014, original: None }),
            ..v8_0_2.clone()
        };
        let sizes = [(v5_6, 25), (v5_7, 42), (v8_0_1, 49), (v8_0_2, 52), (v8_0_14, 56), (event(), 75)];
        for (event, size) in sizes {
            let body = event.encode().unwrap();
            assert_eq!(body.len(), size);
            assert_eq!(decode(&body), event);
        }
    }

    #[test]
    fn cut_anywhere_it_is_an_error_or_comes_back_as_it_was() {
        let body = event().encode().unwrap();
        for length in 0..body.len() {
            let cut = &body[..length];
            let field = find_transaction_length(cut);
            let decoded = GtidEvent::decode(cut, EventType::GTID);
            // Identity, clock, original timestamp, length, original version.
            let inside = matches!(length, 0..=24 | 26..=41 | 49..=55 | 57..=58 | 63..=66);
            assert_eq!(decoded.is_err(), inside, "{length}");
            if let Ok(event) = decoded {
                assert_eq!(event.encode().unwrap(), cut, "{length}");
                assert_eq!(field.unwrap().map(|field| field.value), event.transaction_length);
            }
        }
    }

    #[test]
    fn bytes_of_other_writers_survive() {
        // 5.7.4 and earlier: another type of clock. After 9.7: more fields.
        let older = [&event().encode().unwrap()[..IDENTITY_SIZE], b"\x01\x07\0\0\0\0\0\0\0"].concat();
        assert_eq!(decode(&older).trailing, &older[IDENTITY_SIZE..]);
        assert_eq!(decode(&older).logical_clock, None);
        assert_eq!(find_transaction_length(&older).unwrap(), None);
        let newer = [&event().encode().unwrap()[..], b"new"].concat();
        assert_eq!(decode(&newer), GtidEvent { trailing: b"new", ..event() });
        for body in [older, newer] {
            assert_eq!(decode(&body).encode().unwrap(), body);
        }
        // Flags that we do not know.
        let flags = GtidEvent { flags: GtidFlags(0xfe), ..event() };
        assert_eq!(decode(&flags.encode().unwrap()), flags);
        assert!(!flags.flags.may_have_sbr() && event().flags.may_have_sbr());
    }

    #[test]
    fn the_number_fits_the_type() {
        let anonymous = GtidEvent { uuid: ServerUuid::default(), gno: 0, ..event() };
        let body = anonymous.encode().unwrap();
        assert_eq!(GtidEvent::decode(&body, EventType::ANONYMOUS_GTID).unwrap(), anonymous);
        assert_eq!(anonymous.gtid(), None);
        let error = GtidEvent::decode(&body, EventType::GTID).unwrap_err();
        assert_eq!(error.to_string(), "GTID: gno is 0, expected 1 to 2^63 - 2");
        let error = GtidEvent::decode(&event().encode().unwrap(), EventType::ANONYMOUS_GTID).unwrap_err();
        assert_eq!(error.to_string(), "anonymous GTID event: gno is 2, expected 0");
        let last = GtidEvent { gno: i64::MAX as u64, ..event() };
        assert!(GtidEvent::decode(&last.encode().unwrap(), EventType::GTID).is_err());
    }

    #[test]
    fn a_length_in_more_bytes_than_it_needs_is_refused() {
        let body = event().encode().unwrap();
        let field = find_transaction_length(&body).unwrap().unwrap();
        assert_eq!((field.offset, field.size, field.value), (56, 3, 300));
        let padded = [&body[..56], b"\xfd\x2c\x01\0", &body[59..]].concat();
        assert_eq!(find_transaction_length(&padded).unwrap().unwrap().value, 300);
        let error = GtidEvent::decode(&padded, EventType::GTID).unwrap_err();
        assert_eq!(
            error.to_string(),
            "GTID event: transaction length is 300 in 4 bytes, expected its shortest form"
        );
    }

    #[test]
    fn what_has_no_place_is_not_written() {
        let timestamps = |immediate, original| Some(CommitTimestamps { immediate, original: Some(original) });
        for event in [
            GtidEvent { commit_timestamps: timestamps(1 << 55, 0), ..event() },
            GtidEvent { commit_timestamps: timestamps(0, 1 << 56), ..event() },
            GtidEvent {
                server_versions: Some(ServerVersions { immediate: 1 << 31, original: None }),
                ..event()
            },
            GtidEvent { logical_clock: None, ..event() },
            GtidEvent { server_versions: None, ..event() },
        ] {
            assert!(event.encode().is_err(), "{event:?}");
        }
    }
}
