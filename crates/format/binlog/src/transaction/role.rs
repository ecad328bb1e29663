//! An event's role at the bounds of transactions, by its type, its flags and the start of its body.

use crate::event::{CompressedEvent, PostHeaderLengths};
use crate::event_type::{EventClass, EventType};
use crate::header::{EventHeader, HeaderFlags};
use crate::statement::StatementKind;

/// An event's role at the bounds of transactions: the rows of the module's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventRole {
    Gtid,
    GtidAndBegin,
    Begin,
    End,
    XaRollback,
    /// Changes something.
    Statement,
    /// A statement that changes nothing: SAVEPOINT, XA END, XA COMMIT, ...
    Control,
    MissingStatement,
    BeforeStatement,
    DeleteFile,
    Rows,
    Payload,
    Incident,
    Foreign,
    Unknown,
}

impl EventRole {
    /// The role of an event.
    pub(super) fn of(header: &EventHeader, body: &[u8]) -> EventRole {
        match header.event_type.class() {
            EventClass::Gtid => EventRole::Gtid,
            EventClass::MariadbGtid if mariadb_gtid_begins_rows(body) => EventRole::GtidAndBegin,
            EventClass::MariadbGtid => EventRole::Gtid,
            EventClass::Statement => {
                StatementKind::of_query(body).map_or(EventRole::MissingStatement, EventRole::of_statement)
            }
            EventClass::CompressedStatement => {
                compressed_kind(body).map_or(EventRole::Statement, EventRole::of_statement)
            }
            EventClass::LoadStatement => EventRole::Statement,
            EventClass::StatementValue | EventClass::LoadBlock => EventRole::BeforeStatement,
            EventClass::LoadEnd => EventRole::DeleteFile,
            EventClass::RowsStatement
            | EventClass::GroupView
            | EventClass::TableMap
            | EventClass::Rows
            | EventClass::CompressedRows => EventRole::Rows,
            EventClass::Commit => EventRole::End,
            EventClass::Payload => EventRole::Payload,
            EventClass::Incident => EventRole::Incident,
            EventClass::File | EventClass::FileNote | EventClass::Heartbeat | EventClass::GroupContext => {
                EventRole::Foreign
            }
            EventClass::Ignorable | EventClass::Dead | EventClass::Unknown => {
                let is_ignorable = header.flags.contains(HeaderFlags::IGNORABLE);
                if is_ignorable { EventRole::Foreign } else { EventRole::Unknown }
            }
        }
    }

    fn of_statement(kind: StatementKind) -> EventRole {
        match kind {
            StatementKind::Begin | StatementKind::XaStart => EventRole::Begin,
            StatementKind::Commit | StatementKind::Rollback => EventRole::End,
            StatementKind::XaRollback => EventRole::XaRollback,
            kind if kind.is_statement_based() => EventRole::Statement,
            _ => EventRole::Control,
        }
    }
}

/// The kind of a compressed statement; `None` if it can't be expanded.
fn compressed_kind(body: &[u8]) -> Option<StatementKind> {
    // The post-header of a query event has the same length in all versions.
    let lengths = PostHeaderLengths::default();
    let event = CompressedEvent::decode(EventType::MARIADB_QUERY_COMPRESSED, body, &lengths);
    event.ok()?.statement_start().map(|start| StatementKind::of(&start))
}

/// Whether the event carries changes as rows, for the server's `is_rbr_logging_format`.
pub(super) fn is_row_based(event_type: EventType) -> bool {
    matches!(event_type.class(), EventClass::TableMap | EventClass::Rows | EventClass::CompressedRows)
}

/// MariaDB's GTID event (sequence number 8, domain 4, flags 1) also means BEGIN, unless it says that a single
/// statement follows, or the end of an XA transaction.
fn mariadb_gtid_begins_rows(body: &[u8]) -> bool {
    const FLAGS_OFFSET: usize = 8 + 4;
    const STANDALONE: u8 = 0x01;
    const COMPLETED_XA: u8 = 0x80;
    body.get(FLAGS_OFFSET).is_some_and(|flags| flags & (STANDALONE | COMPLETED_XA) == 0)
}
