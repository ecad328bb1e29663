//! One view of the three events that begin a transaction: GTID, anonymous, tagged.

use crate::error::Result;
use crate::event::gtid::{CommitTimestamps, GtidEvent, GtidFlags, LogicalClock, ServerVersions};
use crate::event::gtid_tagged::GtidTaggedEvent;
use crate::event_type::EventType;
use crate::frame::EventFrame;
use crate::gtid::Gtid;

/// An event that begins a transaction. What its writer did not know yet is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyGtidEvent<'a> {
    /// With a GTID without tag, or anonymous.
    Untagged(GtidEvent<'a>),
    /// With a GTID that has a tag.
    Tagged(GtidTaggedEvent<'a>),
}

impl<'a> AnyGtidEvent<'a> {
    /// Reads the event; `None` if it is not one of the three.
    pub fn decode_frame(frame: &EventFrame<'a>) -> Result<Option<Self>> {
        Ok(match frame.event_type() {
            EventType::GTID | EventType::ANONYMOUS_GTID => {
                Some(AnyGtidEvent::Untagged(GtidEvent::decode_frame(frame)?))
            }
            EventType::GTID_TAGGED => Some(AnyGtidEvent::Tagged(GtidTaggedEvent::decode_frame(frame)?)),
            _ => None,
        })
    }

    /// The body as it stands in a log, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            AnyGtidEvent::Untagged(event) => event.encode(),
            AnyGtidEvent::Tagged(event) => event.encode(),
        }
    }

    /// The transaction's GTID; `None` if anonymous.
    pub fn gtid(&self) -> Option<Gtid> {
        match self {
            AnyGtidEvent::Untagged(event) => event.gtid(),
            AnyGtidEvent::Tagged(event) => Some(event.gtid),
        }
    }

    /// See [`GtidFlags`].
    pub fn flags(&self) -> GtidFlags {
        match self {
            AnyGtidEvent::Untagged(event) => event.flags,
            AnyGtidEvent::Tagged(event) => event.flags,
        }
    }

    /// What appliers schedule by. Since 5.7.5.
    pub fn logical_clock(&self) -> Option<LogicalClock> {
        match self {
            AnyGtidEvent::Untagged(event) => event.logical_clock,
            AnyGtidEvent::Tagged(event) => Some(event.logical_clock),
        }
    }

    /// When the transaction committed. Since 8.0.1.
    pub fn commit_timestamps(&self) -> Option<CommitTimestamps> {
        match self {
            AnyGtidEvent::Untagged(event) => event.commit_timestamps,
            AnyGtidEvent::Tagged(event) => Some(event.commit_timestamps),
        }
    }

    /// Bytes of the whole transaction in its log, the GTID event included. Since 8.0.2.
    pub fn transaction_length(&self) -> Option<u64> {
        match self {
            AnyGtidEvent::Untagged(event) => event.transaction_length,
            AnyGtidEvent::Tagged(event) => Some(event.transaction_length),
        }
    }

    /// Who wrote the transaction. Since 8.0.14.
    pub fn server_versions(&self) -> Option<ServerVersions> {
        match self {
            AnyGtidEvent::Untagged(event) => event.server_versions,
            AnyGtidEvent::Tagged(event) => Some(event.server_versions),
        }
    }

    /// Ticket of the group commit, where Group Replication gave one.
    pub fn commit_group_ticket(&self) -> Option<u64> {
        match self {
            AnyGtidEvent::Untagged(event) => event.commit_group_ticket,
            AnyGtidEvent::Tagged(event) => event.commit_group_ticket,
        }
    }
}
