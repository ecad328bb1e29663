//! One view of the three events that begin a transaction: GTID, anonymous, tagged.

use super::gtid::{CommitTimestamps, GtidEvent, GtidFlags, LogicalClock, ServerVersions};
use super::gtid_tagged::GtidTaggedEvent;
use crate::error::Result;
use crate::event_type::EventType;
use crate::frame::EventFrame;
use crate::gtid::Gtid;

/// An event that begins a transaction. Fields its writer did not support yet are `None`.
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
        Self::decode(frame.body(), frame.event_type())
    }

    /// Reads a body without its checksum; `None` if the type is not one of the three.
    pub fn decode(body: &'a [u8], event_type: EventType) -> Result<Option<Self>> {
        Ok(match event_type {
            EventType::GTID | EventType::ANONYMOUS_GTID => {
                Some(AnyGtidEvent::Untagged(GtidEvent::decode(body, event_type)?))
            }
            EventType::GTID_TAGGED => Some(AnyGtidEvent::Tagged(GtidTaggedEvent::decode(body)?)),
            _ => None,
        })
    }

    /// The body as it stands in a log, without the checksum.
    pub fn encode(&self) -> Result<Vec<u8>> {
        match self {
            AnyGtidEvent::Untagged(event) => event.encode(),
            AnyGtidEvent::Tagged(event) => Ok(event.encode()),
        }
    }

    /// The transaction's GTID; `None` if anonymous.
    pub fn gtid(&self) -> Option<Gtid> {
        match self {
            AnyGtidEvent::Untagged(event) => event.gtid(),
            AnyGtidEvent::Tagged(event) => Some(event.gtid),
        }
    }

    /// Flags of the event.
    pub fn flags(&self) -> GtidFlags {
        match self {
            AnyGtidEvent::Untagged(event) => event.flags,
            AnyGtidEvent::Tagged(event) => event.flags,
        }
    }

    /// The numbers that appliers use for scheduling. Since 5.7.5.
    pub fn logical_clock(&self) -> Option<LogicalClock> {
        match self {
            AnyGtidEvent::Untagged(event) => event.logical_clock,
            AnyGtidEvent::Tagged(event) => Some(event.logical_clock),
        }
    }

    /// The event with `clock` in place of its own logical clock; an event without a clock is returned unchanged.
    pub fn with_logical_clock(mut self, clock: LogicalClock) -> Self {
        match &mut self {
            AnyGtidEvent::Untagged(event) => event.logical_clock = event.logical_clock.map(|_| clock),
            AnyGtidEvent::Tagged(event) => event.logical_clock = clock,
        }
        self
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

    /// Versions of the servers that wrote the transaction. Since 8.0.14.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::ChecksumAlgorithm;
    use crate::event::{rewrite_transaction_length, transaction_length};
    use crate::header::{EventHeader, HeaderFlags};
    use crate::{Framing, VerifiedFrame, frame::encode_event};

    fn event(event_type: EventType, body: &[u8]) -> Vec<u8> {
        let header = EventHeader {
            timestamp: 1,
            event_type,
            server_id: 1,
            event_size: 0,
            end_log_pos: 4711,
            flags: HeaderFlags::default(),
        };
        encode_event(header, body, ChecksumAlgorithm::NONE)
    }

    fn frame(event: &[u8]) -> VerifiedFrame<'_> {
        Framing::new().next_frame(event).unwrap().unwrap().verify().unwrap()
    }

    fn untagged() -> GtidEvent<'static> {
        GtidEvent {
            flags: GtidFlags(1),
            uuid: "1410447f-e54d-11f1-848d-02fc00000001".parse().unwrap(),
            gno: 9,
            logical_clock: Some(LogicalClock { last_committed: 3, sequence_number: 4 }),
            commit_timestamps: Some(CommitTimestamps { immediate: 6, original: Some(5) }),
            transaction_length: Some(300),
            server_versions: Some(ServerVersions { immediate: 90704, original: Some(80400) }),
            commit_group_ticket: Some(7),
            trailing: b"new",
        }
    }

    fn tagged() -> GtidTaggedEvent<'static> {
        GtidTaggedEvent {
            last_non_ignorable_field: 0,
            flags: GtidFlags(1),
            gtid: "1410447f-e54d-11f1-848d-02fc00000001:tag:9".parse().unwrap(),
            logical_clock: LogicalClock { last_committed: 3, sequence_number: 4 },
            commit_timestamps: CommitTimestamps { immediate: 6, original: Some(5) },
            transaction_length: 300,
            server_versions: ServerVersions { immediate: 90704, original: Some(80400) },
            commit_group_ticket: Some(7),
            unknown_fields: b"\x18\x06",
        }
    }

    #[test]
    fn all_kinds_show_the_same() {
        let plain = untagged().encode().unwrap();
        let with_tag = tagged().encode();
        let plain = event(EventType::GTID, &plain);
        let with_tag = event(EventType::GTID_TAGGED, &with_tag);
        let [plain, with_tag] = [&plain, &with_tag].map(|event| {
            let frame = frame(event);
            let event = AnyGtidEvent::decode_frame(&frame).unwrap().unwrap();
            assert_eq!(event.encode().unwrap(), frame.body());
            event
        });
        assert_eq!(plain.gtid().unwrap().to_string(), "1410447f-e54d-11f1-848d-02fc00000001:9");
        assert_eq!(with_tag.gtid().unwrap().to_string(), "1410447f-e54d-11f1-848d-02fc00000001:tag:9");
        for event in [plain, with_tag] {
            assert!(event.flags().may_have_sbr());
            assert_eq!(event.logical_clock(), untagged().logical_clock);
            assert_eq!(event.commit_timestamps(), untagged().commit_timestamps);
            assert_eq!(event.transaction_length(), Some(300));
            assert_eq!(event.server_versions(), untagged().server_versions);
            assert_eq!(event.commit_group_ticket(), Some(7));
        }
    }

    #[test]
    fn another_clock_changes_nothing_else() {
        let clock = LogicalClock { last_committed: 0, sequence_number: 1 };
        let old = GtidEvent { logical_clock: None, ..untagged() };
        let with_clock = |event: AnyGtidEvent<'static>| event.with_logical_clock(clock);
        assert_eq!(
            with_clock(AnyGtidEvent::Untagged(untagged())),
            AnyGtidEvent::Untagged(GtidEvent { logical_clock: Some(clock), ..untagged() })
        );
        assert_eq!(
            with_clock(AnyGtidEvent::Tagged(tagged())),
            AnyGtidEvent::Tagged(GtidTaggedEvent { logical_clock: clock, ..tagged() })
        );
        assert_eq!(with_clock(AnyGtidEvent::Untagged(old.clone())), AnyGtidEvent::Untagged(old));
    }

    #[test]
    fn other_events_are_none() {
        let xid = event(EventType::XID, &[0; 8]);
        assert_eq!(AnyGtidEvent::decode_frame(&frame(&xid)).unwrap(), None);
    }

    /// Must hold for any bytes: what can be read is written back unchanged, and its rewritten length is the
    /// requested one.
    fn check(event: &[u8]) {
        let frame = frame(event);
        let mut out = Vec::new();
        let rewritten = rewrite_transaction_length(&frame, 100_000, &mut out);
        assert_eq!(rewritten.is_ok(), transaction_length(&frame).is_ok());
        if rewritten.is_ok() {
            let length = transaction_length(&self::frame(&out)).unwrap();
            assert!(length.is_none_or(|length| length == 100_000 + out.len() as u64));
        }
        if let Ok(decoded) = AnyGtidEvent::decode_frame(&frame) {
            let decoded = decoded.unwrap();
            assert_eq!(decoded.encode().unwrap(), frame.body());
            assert_eq!(transaction_length(&frame).unwrap(), decoded.transaction_length());
        }
    }

    #[test]
    fn every_change_of_one_byte_is_an_error_or_comes_back() {
        let plain = untagged().encode().unwrap();
        let with_tag = tagged().encode();
        for (event_type, body) in [
            (EventType::GTID, &plain),
            (EventType::ANONYMOUS_GTID, &plain),
            (EventType::GTID_TAGGED, &with_tag),
        ] {
            for offset in 0..body.len() {
                for byte in 0..=u8::MAX {
                    let mut changed = body.clone();
                    changed[offset] = byte;
                    check(&event(event_type, &changed));
                }
            }
        }
    }
}
