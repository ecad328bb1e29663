//! An event's role at the bounds of transactions, by its type, its flags and the start of its body.

use crate::event::{CompressedEvent, PostHeaderLengths};
use crate::event_type::EventType;
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
        match header.event_type {
            EventType::GTID | EventType::ANONYMOUS_GTID | EventType::GTID_TAGGED => EventRole::Gtid,
            EventType::QUERY => {
                StatementKind::of_query(body).map_or(EventRole::MissingStatement, EventRole::of_statement)
            }
            EventType::MARIADB_QUERY_COMPRESSED => {
                compressed_kind(body).map_or(EventRole::Statement, EventRole::of_statement)
            }
            EventType::XID | EventType::XA_PREPARE => EventRole::End,
            EventType::EXECUTE_LOAD_QUERY => EventRole::Statement,
            EventType::INTVAR
            | EventType::RAND
            | EventType::USER_VAR
            | EventType::BEGIN_LOAD_QUERY
            | EventType::APPEND_BLOCK => EventRole::BeforeStatement,
            EventType::DELETE_FILE => EventRole::DeleteFile,
            EventType::ROWS_QUERY | EventType::VIEW_CHANGE | EventType::MARIADB_ANNOTATE_ROWS => {
                EventRole::Rows
            }
            rows if is_row_based(rows) => EventRole::Rows,
            EventType::TRANSACTION_PAYLOAD => EventRole::Payload,
            EventType::INCIDENT => EventRole::Incident,
            EventType::FORMAT_DESCRIPTION
            | EventType::ROTATE
            | EventType::STOP
            | EventType::PREVIOUS_GTIDS
            | EventType::HEARTBEAT
            | EventType::HEARTBEAT_V2
            | EventType::SLAVE
            | EventType::TRANSACTION_CONTEXT
            | EventType::MARIADB_BINLOG_CHECKPOINT
            | EventType::MARIADB_GTID_LIST
            | EventType::MARIADB_START_ENCRYPTION => EventRole::Foreign,
            EventType::MARIADB_GTID if mariadb_gtid_begins_rows(body) => EventRole::GtidAndBegin,
            EventType::MARIADB_GTID => EventRole::Gtid,
            _ if header.flags.contains(HeaderFlags::IGNORABLE) => EventRole::Foreign,
            _ => EventRole::Unknown,
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
    event_type == EventType::TABLE_MAP || event_type.is_rows() || event_type.is_mariadb_compressed_rows()
}

/// MariaDB's GTID event (sequence number 8, domain 4, flags 1) also means BEGIN, unless it says that a single
/// statement follows, or the end of an XA transaction.
fn mariadb_gtid_begins_rows(body: &[u8]) -> bool {
    const FLAGS_OFFSET: usize = 8 + 4;
    const STANDALONE: u8 = 0x01;
    const COMPLETED_XA: u8 = 0x80;
    body.get(FLAGS_OFFSET).is_some_and(|flags| flags & (STANDALONE | COMPLETED_XA) == 0)
}
