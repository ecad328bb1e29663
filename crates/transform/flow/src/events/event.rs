//! An event as a worker gets it: its place, its header, its body.

use std::ops::Range;

use binlogz_binlog::checksum::CHECKSUM_SIZE;
use binlogz_binlog::row::TableSchema;
use binlogz_binlog::transaction::Placement;
use binlogz_binlog::{Boundary, ChangeContent, Error as BinlogError, EventFrame, EventHeader, EventType};
use binlogz_payload::{Error as PayloadError, PayloadSizes};

use super::log::InputLog;
use super::payload_place::PayloadPlace;
use crate::error::Error;
use crate::position::EventPosition;
use crate::unread::{self, UnreadNotes};

/// The items that [`super::EventBatch::next_item`] hands out.
#[derive(Debug, Clone, Copy)]
pub enum BatchItem<'a> {
    /// An event. One that is a payload is followed by the events inside.
    Event(Event<'a>),
    /// After the last event of a payload.
    PayloadEnd(PayloadEnd),
}

/// A whole event, verified as far as its checksum can tell.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The log it is from.
    pub log: &'a InputLog,
    /// Where the event is in that log.
    pub position: EventPosition,
    /// The event's boundary in the transaction. A payload ends a transaction as far as the log is concerned, and all
    /// events inside are [`Boundary::Inside`]; [`BatchItem::PayloadEnd`] then ends the transaction.
    pub placement: Placement,
    /// The event's header. MariaDB's compressed events have the type that they have expanded, and the size that they have
    /// in the log.
    pub header: EventHeader,
    /// The bytes between header and checksum. For a payload event, only the fields before the payload.
    pub body: &'a [u8],
    /// The whole event, with its checksum; `None` for a payload that is expanded piece by piece.
    pub frame: Option<EventFrame<'a>>,
    /// Where the payload is, for one that is expanded piece by piece.
    pub(super) large: Option<&'a PayloadPlace>,
    /// How an event that was compressed in its log is stored there.
    pub(super) stored: Option<StoredEvent>,
    /// Where changes that can't be read are noted; `None`: nowhere.
    pub(super) unread: Option<&'a UnreadNotes>,
}

/// A compressed event of MariaDB as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredEvent {
    pub(super) size: u32,
    pub(super) checksum: Option<u32>,
}

impl StoredEvent {
    /// The stored form of an event of this log.
    pub(super) fn of(event: &[u8], log: &InputLog) -> Self {
        let has_checksum = log.context.framing.checksum().size() == CHECKSUM_SIZE;
        let checksum = event.last_chunk().filter(|_| has_checksum);
        StoredEvent { size: event.len() as u32, checksum: checksum.map(|bytes| u32::from_le_bytes(*bytes)) }
    }
}

/// The end of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadEnd {
    /// Where the payload event begins.
    pub offset: u64,
    /// Sizes of the payload and the number of its events: as found, not as declared.
    pub sizes: PayloadSizes,
}

/// The boundary of an event until it is determined.
pub(super) const INSIDE: Placement = Placement { boundary: Boundary::Inside, malformed: None };

impl<'a> Event<'a> {
    /// An event in memory. The caller fills in its boundary in the transaction.
    #[inline]
    pub(super) fn whole(log: &'a InputLog, position: EventPosition, frame: EventFrame<'a>) -> Self {
        let header = *frame.header();
        let body = frame.body();
        let placement = INSIDE;
        let frame = Some(frame);
        Event { log, position, placement, header, body, frame, large: None, stored: None, unread: None }
    }

    /// An event that was compressed in its log.
    pub(super) fn expanded(
        log: &'a InputLog,
        position: EventPosition,
        frame: EventFrame<'a>,
        stored: StoredEvent,
    ) -> Self {
        let mut event = Event::whole(log, position, frame);
        event.header.event_size = stored.size;
        event.stored = Some(stored);
        event
    }
}

impl Event<'_> {
    /// Whether a transaction begins with it. One that is open then was cut off.
    #[inline]
    pub fn begins_transaction(&self) -> bool {
        matches!(self.placement.boundary, Boundary::Begin | Boundary::BeginAgain | Boundary::Single)
    }

    /// Whether its transaction ends with it. One with a payload ends after the events inside, with [`BatchItem::PayloadEnd`].
    #[inline]
    pub fn ends_transaction(&self) -> bool {
        matches!(self.placement.boundary, Boundary::End | Boundary::Single)
            && self.header.event_type != EventType::TRANSACTION_PAYLOAD
    }

    /// Whether the event is inside a payload.
    pub fn is_inside_payload(&self) -> bool {
        self.position.inside.is_some()
    }

    /// Whether the event was compressed in its log, as MariaDB does: its frame is the plain event, without checksum.
    pub fn is_expanded(&self) -> bool {
        self.stored.is_some()
    }

    /// The checksum after the event, where it has one.
    pub fn stored_checksum(&self) -> Option<u32> {
        match (self.large, self.stored) {
            (Some(place), _) => place.checksum,
            (None, Some(stored)) => stored.checksum,
            (None, None) => self.frame.and_then(|frame| frame.stored_checksum()),
        }
    }

    /// Notes that the changes of this event, which belong to a table, could not be read: the run's
    /// [`UnreadChanges`](super::UnreadChanges) have it.
    #[cold]
    pub fn unread(&self, schema: &TableSchema, error: &BinlogError) {
        self.unread_of(Some(unread::names(schema)), unread::why(error));
    }

    /// Notes that this event could not be read, and why. `table` is the database and table it belongs to; `None`:
    /// unknown.
    #[cold]
    pub(super) fn unread_of(&self, table: Option<(&[u8], &[u8])>, why: String) {
        if let Some(notes) = self.unread {
            notes.note(self.log.number, (self.position, &self.header), table, why);
        }
    }

    /// Takes back the notes about this event: the caller was not asked for its changes.
    pub fn pass_over(&self) {
        let event_type = self.header.event_type;
        let may_be_noted = match event_type.changes() {
            ChangeContent::None | ChangeContent::Beside => false,
            ChangeContent::Unread | ChangeContent::Lost => true,
            ChangeContent::Decoded => event_type.is_rows() || event_type.mariadb_expanded().is_some(),
        };
        if let Some(notes) = self.unread.filter(|_| may_be_noted) {
            notes.take_back(self.position);
        }
    }

    /// Appends a part of an event that is too large to be held: one whose `frame` is `None`.
    ///
    /// # Errors
    ///
    /// A log that can't be read a second time.
    pub fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(place) = self.large else { return Ok(()) };
        let end = range.end.min(u64::from(self.header.event_size));
        place.source.read(range.start.min(end)..end, out).map_err(|error| self.error(error))
    }

    /// Where the log continues after the event, according to its header. For an event inside a payload, the
    /// payload's header counts, as it does for servers.
    pub fn end_log_pos(&self) -> u32 {
        self.position.inside.map_or(self.header.end_log_pos, |inside| inside.end_log_pos)
    }

    /// Adds the event's place to an error in its body.
    #[cold]
    pub fn error(&self, error: BinlogError) -> Error {
        let offset = self.position.offset;
        let event_type = Some(self.header.event_type);
        match self.position.inside {
            None => error.at(offset, event_type).into(),
            Some(inside) => PayloadError::from(error.at(inside.offset, event_type)).in_payload(offset).into(),
        }
    }
}
