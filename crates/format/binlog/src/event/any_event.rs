//! One view of all events: a frame's body read by the module of its type, and written back.
//!
//! For callers that look at every event (`events`, `dump`, tests). A caller that needs one type decodes that
//! type's own struct from the frame's body.

use super::{
    DeleteFileEvent, ExecuteLoadQueryEvent, FormatDescription, GtidEvent, GtidTaggedEvent, HeartbeatEvent,
    HeartbeatV2Event, IncidentEvent, IntvarEvent, LoadBlockEvent, PostHeaderLengths, PreviousGtidsEvent,
    QueryEvent, RandEvent, RotateEvent, RowsEvent, RowsQueryEvent, TableMapEvent, TransactionContextEvent,
    TransactionPayloadEvent, UserVarEvent, ViewChangeEvent, XaPrepareEvent, XidEvent,
};
use crate::error::{Error, Result};
use crate::event_type::EventType;
use crate::frame::EventFrame;

/// A decoded event of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Type 2.
    Query(QueryEvent<'a>),
    /// Type 3: no body.
    Stop,
    /// Type 4.
    Rotate(RotateEvent<'a>),
    /// Type 5.
    Intvar(IntvarEvent),
    /// Type 9.
    AppendBlock(LoadBlockEvent<'a>),
    /// Type 11.
    DeleteFile(DeleteFileEvent),
    /// Type 13.
    Rand(RandEvent),
    /// Type 14.
    UserVar(UserVarEvent<'a>),
    /// Type 15.
    FormatDescription(FormatDescription),
    /// Type 16.
    Xid(XidEvent),
    /// Type 17.
    BeginLoadQuery(LoadBlockEvent<'a>),
    /// Type 18.
    ExecuteLoadQuery(ExecuteLoadQueryEvent<'a>),
    /// Type 19.
    TableMap(TableMapEvent<'a>),
    /// Types 20 to 25, 30 to 32 and 39.
    Rows(RowsEvent<'a>),
    /// Type 26.
    Incident(IncidentEvent<'a>),
    /// Type 27.
    Heartbeat(HeartbeatEvent<'a>),
    /// Type 28: a body for readers to skip.
    Ignorable(&'a [u8]),
    /// Type 29.
    RowsQuery(RowsQueryEvent<'a>),
    /// Type 33.
    Gtid(GtidEvent<'a>),
    /// Type 34.
    AnonymousGtid(GtidEvent<'a>),
    /// Type 35.
    PreviousGtids(PreviousGtidsEvent),
    /// Type 36.
    TransactionContext(TransactionContextEvent<'a>),
    /// Type 37.
    ViewChange(ViewChangeEvent<'a>),
    /// Type 38.
    XaPrepare(XaPrepareEvent<'a>),
    /// Type 40.
    TransactionPayload(TransactionPayloadEvent<'a>),
    /// Type 41.
    HeartbeatV2(HeartbeatV2Event<'a>),
    /// Type 42.
    GtidTagged(GtidTaggedEvent<'a>),
    /// A type that is not known here (or dead since 5.0) and its body.
    Unknown(EventType, &'a [u8]),
}

impl<'a> Event<'a> {
    /// Reads an event. `lengths` are those of the last format description before it.
    ///
    /// # Errors
    ///
    /// Errors of the type's own `decode`, or a post-header length that its module does not know.
    pub fn decode(frame: &EventFrame<'a>, lengths: &PostHeaderLengths) -> Result<Self> {
        let body = frame.body();
        let event_type = frame.event_type();
        lengths.check(event_type)?;
        Ok(match event_type {
            EventType::QUERY => Event::Query(QueryEvent::decode(body)?),
            EventType::STOP => decode_stop(body)?,
            EventType::ROTATE => Event::Rotate(RotateEvent::decode(body)?),
            EventType::INTVAR => Event::Intvar(IntvarEvent::decode(body)?),
            EventType::APPEND_BLOCK => Event::AppendBlock(LoadBlockEvent::decode(body)?),
            EventType::DELETE_FILE => Event::DeleteFile(DeleteFileEvent::decode(body)?),
            EventType::RAND => Event::Rand(RandEvent::decode(body)?),
            EventType::USER_VAR => Event::UserVar(UserVarEvent::decode(body)?),
            EventType::FORMAT_DESCRIPTION => {
                Event::FormatDescription(FormatDescription::decode_frame(frame)?)
            }
            EventType::XID => Event::Xid(XidEvent::decode(body)?),
            EventType::BEGIN_LOAD_QUERY => Event::BeginLoadQuery(LoadBlockEvent::decode(body)?),
            EventType::EXECUTE_LOAD_QUERY => Event::ExecuteLoadQuery(ExecuteLoadQueryEvent::decode(body)?),
            EventType::TABLE_MAP => Event::TableMap(TableMapEvent::decode(body, lengths.of(event_type))?),
            rows if rows.is_rows() => Event::Rows(RowsEvent::decode(rows, body, lengths.of(rows))?),
            EventType::INCIDENT => Event::Incident(IncidentEvent::decode_frame(frame)?),
            EventType::HEARTBEAT => Event::Heartbeat(HeartbeatEvent::decode(body)?),
            EventType::IGNORABLE => Event::Ignorable(body),
            EventType::ROWS_QUERY => Event::RowsQuery(RowsQueryEvent::decode(body)?),
            EventType::GTID => Event::Gtid(GtidEvent::decode(body, event_type)?),
            EventType::ANONYMOUS_GTID => Event::AnonymousGtid(GtidEvent::decode(body, event_type)?),
            EventType::PREVIOUS_GTIDS => Event::PreviousGtids(PreviousGtidsEvent::decode(body)?),
            EventType::TRANSACTION_CONTEXT => {
                Event::TransactionContext(TransactionContextEvent::decode(body)?)
            }
            EventType::VIEW_CHANGE => Event::ViewChange(ViewChangeEvent::decode(body)?),
            EventType::XA_PREPARE => Event::XaPrepare(XaPrepareEvent::decode(body)?),
            EventType::TRANSACTION_PAYLOAD => {
                Event::TransactionPayload(TransactionPayloadEvent::decode(body)?)
            }
            EventType::HEARTBEAT_V2 => Event::HeartbeatV2(HeartbeatV2Event::decode(body)?),
            EventType::GTID_TAGGED => Event::GtidTagged(GtidTaggedEvent::decode(body)?),
            unknown => Event::Unknown(unknown, body),
        })
    }

    /// The body as it is in a stream with these post-header lengths, without the checksum.
    ///
    /// # Errors
    ///
    /// A field that is too long for its length prefix; never for an event that was decoded.
    pub fn encode(&self, lengths: &PostHeaderLengths) -> Result<Vec<u8>> {
        Ok(match self {
            Event::Query(event) => event.encode()?,
            Event::Stop => Vec::new(),
            Event::Rotate(event) => event.encode(),
            Event::Intvar(event) => event.encode(),
            Event::AppendBlock(event) | Event::BeginLoadQuery(event) => event.encode(),
            Event::DeleteFile(event) => event.encode(),
            Event::Rand(event) => event.encode(),
            Event::UserVar(event) => event.encode()?,
            Event::FormatDescription(event) => event.encode(),
            Event::Xid(event) => event.encode(),
            Event::ExecuteLoadQuery(event) => event.encode()?,
            Event::TableMap(event) => event.encode(lengths.of(EventType::TABLE_MAP))?,
            Event::Rows(event) => event.encode(lengths.of(event.event_type))?,
            Event::Incident(event) => event.encode()?,
            Event::Heartbeat(event) => event.encode(),
            Event::RowsQuery(event) => event.encode(),
            Event::Gtid(event) | Event::AnonymousGtid(event) => event.encode()?,
            Event::PreviousGtids(event) => event.encode(),
            Event::TransactionContext(event) => event.encode()?,
            Event::ViewChange(event) => event.encode(),
            Event::XaPrepare(event) => event.encode()?,
            Event::TransactionPayload(event) => event.encode(),
            Event::HeartbeatV2(event) => event.encode(),
            Event::GtidTagged(event) => event.encode(),
            Event::Ignorable(body) | Event::Unknown(_, body) => body.to_vec(),
        })
    }
}

fn decode_stop(body: &[u8]) -> Result<Event<'_>> {
    match body.len() {
        0 => Ok(Event::Stop),
        count => Err(Error::LeftOver { what: "stop event", count: count as u64 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChecksumAlgorithm;
    use crate::header::{EventHeader, HeaderFlags};
    use crate::{Framing, frame::encode_event};

    fn bytes_of(event_type: EventType, body: &[u8]) -> Vec<u8> {
        let header = EventHeader {
            timestamp: 0,
            event_type,
            server_id: 1,
            event_size: 0,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        encode_event(header, body, ChecksumAlgorithm::NONE)
    }

    fn frame(bytes: &[u8]) -> EventFrame<'_> {
        Framing::new().next_frame(bytes).unwrap().unwrap().verify().unwrap().frame()
    }

    #[test]
    fn unknown_types_survive() {
        let bytes = bytes_of(EventType(200), b"tomorrow");
        let lengths = PostHeaderLengths::default();
        let event = Event::decode(&frame(&bytes), &lengths).unwrap();
        assert_eq!(event, Event::Unknown(EventType(200), b"tomorrow"));
        assert_eq!(event.encode(&lengths).unwrap(), b"tomorrow");
    }

    #[test]
    fn a_stop_has_no_body() {
        let lengths = PostHeaderLengths::default();
        let bytes = bytes_of(EventType::STOP, b"");
        assert_eq!(Event::decode(&frame(&bytes), &lengths).unwrap(), Event::Stop);
        let bytes = bytes_of(EventType::STOP, b"x");
        let error = Event::decode(&frame(&bytes), &lengths).unwrap_err();
        assert_eq!(error.to_string(), "stop event: 1 bytes left over after the last field");
    }

    #[test]
    fn post_headers_of_another_length_are_refused() {
        let mut announced = crate::event::POST_HEADER_LENGTHS;
        announced[usize::from(EventType::ROTATE.0) - 1] = 9;
        let bytes = bytes_of(EventType::ROTATE, b"\x04\0\0\0\0\0\0\0binlog.000002");
        let error = Event::decode(&frame(&bytes), &PostHeaderLengths::new(&announced)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "format description event: post-header length of this type is 9, expected the length that \
             every server of 5.0 to 9.7 announces"
        );
    }
}
