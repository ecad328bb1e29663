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
//! The parts that old writers leave out are `None`, what later writers may add stays as bytes, so
//! that every event is written back as it was. See [`crate::event::rewrite_transaction_length`]
//! for the one change that compressing and expanding make.
//! (Facts of MySQL 9.7.4's `Gtid_event`, and of its older versions.)

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::transaction_length::LengthField;
use crate::event_type::EventType;
use crate::frame::EventFrame;
use crate::gtid::{Gtid, ServerUuid, UUID_SIZE};
use crate::put::{Put, lei_size};

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

/// What a multi-threaded applier schedules by. Both numbers count within one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogicalClock {
    /// The last transaction that had committed before this one prepared; 0: none in this file.
    pub last_committed: i64,
    /// This transaction's place in the file, from 1.
    pub sequence_number: i64,
}

/// When a transaction committed, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitTimestamps {
    /// On the server that wrote this log.
    pub immediate: u64,
    /// On the server that committed first; `None` if the same.
    pub original: Option<u64>,
}

/// Who wrote a transaction, as `MYSQL_VERSION_ID`: 90704 is 9.7.4. 999999 is undefined, 0 unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerVersions {
    /// The server that wrote this log.
    pub immediate: u32,
    /// The server that committed first; `None` if the same.
    pub original: Option<u32>,
}

/// A GTID event or an anonymous one.
///
/// Each optional part needs the one above it: writing ends at the first that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidEvent<'a> {
    /// See [`GtidFlags`].
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
    /// What follows the last part that we know.
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

    /// Reads the parts that are there. Bytes too few for the next part are nobody's: trailing.
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
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(IDENTITY_SIZE + 64 + self.trailing.len());
        body.put_u8(self.flags.0);
        body.put(&self.uuid.0);
        body.put_u64(self.gno);
        // `None` only ends the writing of the tail.
        let _ = self.encode_tail(&mut body);
        body.put(self.trailing);
        body
    }

    fn encode_tail(&self, body: &mut Vec<u8>) -> Option<()> {
        let clock = self.logical_clock?;
        body.put_u8(LOGICAL_CLOCK_TYPE);
        body.put_i64(clock.last_committed);
        body.put_i64(clock.sequence_number);
        let timestamps = self.commit_timestamps?;
        let immediate = timestamps.immediate & !TIMESTAMP_FOLLOWS;
        match timestamps.original {
            None => body.put_uint(immediate, TIMESTAMP_SIZE),
            Some(original) => {
                body.put_uint(immediate | TIMESTAMP_FOLLOWS, TIMESTAMP_SIZE);
                body.put_uint(original, TIMESTAMP_SIZE);
            }
        }
        body.put_lei(self.transaction_length?);
        let versions = self.server_versions?;
        let immediate = versions.immediate & !VERSION_FOLLOWS;
        match versions.original {
            None => body.put_u32(immediate),
            Some(original) => {
                body.put_u32(immediate | VERSION_FOLLOWS);
                body.put_u32(original);
            }
        }
        body.put_u64(self.commit_group_ticket?);
        Some(())
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

fn decode_versions(cursor: &mut Cursor<'_>) -> Result<ServerVersions> {
    let immediate = cursor.u32("immediate server version")?;
    let original = match immediate & VERSION_FOLLOWS {
        0 => None,
        _ => Some(cursor.u32("original server version")?),
    };
    Ok(ServerVersions { immediate: immediate & !VERSION_FOLLOWS, original })
}

/// A longer form than needed would not be written back as it was; no server writes one.
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

/// Finds the transaction length in a body, looking at no more than needed.
pub(super) fn find_transaction_length(body: &[u8]) -> Result<Option<LengthField>> {
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
