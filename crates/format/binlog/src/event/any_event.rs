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
pub enum AnyEvent<'a> {
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

impl<'a> AnyEvent<'a> {
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
            EventType::QUERY => AnyEvent::Query(QueryEvent::decode(body)?),
            EventType::STOP => decode_stop(body)?,
            EventType::ROTATE => AnyEvent::Rotate(RotateEvent::decode(body)?),
            EventType::INTVAR => AnyEvent::Intvar(IntvarEvent::decode(body)?),
            EventType::APPEND_BLOCK => AnyEvent::AppendBlock(LoadBlockEvent::decode(body)?),
            EventType::DELETE_FILE => AnyEvent::DeleteFile(DeleteFileEvent::decode(body)?),
            EventType::RAND => AnyEvent::Rand(RandEvent::decode(body)?),
            EventType::USER_VAR => AnyEvent::UserVar(UserVarEvent::decode(body)?),
            EventType::FORMAT_DESCRIPTION => {
                AnyEvent::FormatDescription(FormatDescription::decode_frame(frame)?)
            }
            EventType::XID => AnyEvent::Xid(XidEvent::decode(body)?),
            EventType::BEGIN_LOAD_QUERY => AnyEvent::BeginLoadQuery(LoadBlockEvent::decode(body)?),
            EventType::EXECUTE_LOAD_QUERY => AnyEvent::ExecuteLoadQuery(ExecuteLoadQueryEvent::decode(body)?),
            EventType::TABLE_MAP => AnyEvent::TableMap(TableMapEvent::decode(body, lengths.of(event_type))?),
            rows if rows.is_rows() => AnyEvent::Rows(RowsEvent::decode(rows, body, lengths.of(rows))?),
            EventType::INCIDENT => AnyEvent::Incident(IncidentEvent::decode_frame(frame)?),
            EventType::HEARTBEAT => AnyEvent::Heartbeat(HeartbeatEvent::decode(body)?),
            EventType::IGNORABLE => AnyEvent::Ignorable(body),
            EventType::ROWS_QUERY => AnyEvent::RowsQuery(RowsQueryEvent::decode(body)?),
            EventType::GTID => AnyEvent::Gtid(GtidEvent::decode(body, event_type)?),
            EventType::ANONYMOUS_GTID => AnyEvent::AnonymousGtid(GtidEvent::decode(body, event_type)?),
            EventType::PREVIOUS_GTIDS => AnyEvent::PreviousGtids(PreviousGtidsEvent::decode(body)?),
            EventType::TRANSACTION_CONTEXT => {
                AnyEvent::TransactionContext(TransactionContextEvent::decode(body)?)
            }
            EventType::VIEW_CHANGE => AnyEvent::ViewChange(ViewChangeEvent::decode(body)?),
            EventType::XA_PREPARE => AnyEvent::XaPrepare(XaPrepareEvent::decode(body)?),
            EventType::TRANSACTION_PAYLOAD => {
                AnyEvent::TransactionPayload(TransactionPayloadEvent::decode(body)?)
            }
            EventType::HEARTBEAT_V2 => AnyEvent::HeartbeatV2(HeartbeatV2Event::decode(body)?),
            EventType::GTID_TAGGED => AnyEvent::GtidTagged(GtidTaggedEvent::decode(body)?),
            unknown => AnyEvent::Unknown(unknown, body),
        })
    }

    /// The body as it is in a stream with these post-header lengths, without the checksum.
    ///
    /// # Errors
    ///
    /// A field that is too long for its length prefix; never for an event that was decoded.
    pub fn encode(&self, lengths: &PostHeaderLengths) -> Result<Vec<u8>> {
        Ok(match self {
            AnyEvent::Query(event) => event.encode()?,
            AnyEvent::Stop => Vec::new(),
            AnyEvent::Rotate(event) => event.encode(),
            AnyEvent::Intvar(event) => event.encode(),
            AnyEvent::AppendBlock(event) | AnyEvent::BeginLoadQuery(event) => event.encode(),
            AnyEvent::DeleteFile(event) => event.encode(),
            AnyEvent::Rand(event) => event.encode(),
            AnyEvent::UserVar(event) => event.encode()?,
            AnyEvent::FormatDescription(event) => event.encode(),
            AnyEvent::Xid(event) => event.encode(),
            AnyEvent::ExecuteLoadQuery(event) => event.encode()?,
            AnyEvent::TableMap(event) => event.encode(lengths.of(EventType::TABLE_MAP))?,
            AnyEvent::Rows(event) => event.encode(lengths.of(event.event_type))?,
            AnyEvent::Incident(event) => event.encode()?,
            AnyEvent::Heartbeat(event) => event.encode(),
            AnyEvent::RowsQuery(event) => event.encode(),
            AnyEvent::Gtid(event) | AnyEvent::AnonymousGtid(event) => event.encode()?,
            AnyEvent::PreviousGtids(event) => event.encode(),
            AnyEvent::TransactionContext(event) => event.encode()?,
            AnyEvent::ViewChange(event) => event.encode(),
            AnyEvent::XaPrepare(event) => event.encode()?,
            AnyEvent::TransactionPayload(event) => event.encode(),
            AnyEvent::HeartbeatV2(event) => event.encode(),
            AnyEvent::GtidTagged(event) => event.encode(),
            AnyEvent::Ignorable(body) | AnyEvent::Unknown(_, body) => body.to_vec(),
        })
    }
}

fn decode_stop(body: &[u8]) -> Result<AnyEvent<'_>> {
    match body.len() {
        0 => Ok(AnyEvent::Stop),
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
        let event = AnyEvent::decode(&frame(&bytes), &lengths).unwrap();
        assert_eq!(event, AnyEvent::Unknown(EventType(200), b"tomorrow"));
        assert_eq!(event.encode(&lengths).unwrap(), b"tomorrow");
    }

    #[test]
    fn a_stop_has_no_body() {
        let lengths = PostHeaderLengths::default();
        let bytes = bytes_of(EventType::STOP, b"");
        assert_eq!(AnyEvent::decode(&frame(&bytes), &lengths).unwrap(), AnyEvent::Stop);
        let bytes = bytes_of(EventType::STOP, b"x");
        let error = AnyEvent::decode(&frame(&bytes), &lengths).unwrap_err();
        assert_eq!(error.to_string(), "stop event: 1 bytes left over after the last field");
    }

    #[test]
    fn post_headers_of_another_length_are_refused() {
        let mut announced = crate::event::POST_HEADER_LENGTHS;
        announced[usize::from(EventType::ROTATE.0) - 1] = 9;
        let bytes = bytes_of(EventType::ROTATE, b"\x04\0\0\0\0\0\0\0binlog.000002");
        let error = AnyEvent::decode(&frame(&bytes), &PostHeaderLengths::new(&announced)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "format description event: post-header length of this type is 9, expected the length that \
             every server of 5.0 to 9.7 announces"
        );
    }
}
