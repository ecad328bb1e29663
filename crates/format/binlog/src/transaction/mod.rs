//! Says where transactions begin and end, event by event, by the server's rules.
//!
//! ```text
//! fed event                        outside    after GTID   before statement  inside BEGIN
//! GTID of any kind                 begin      again !      again !           again !
//! BEGIN, XA START                  begin      inside       again !           again !
//! XID, XA PREPARE event,
//!   COMMIT, ROLLBACK               single !   end !        end !             end
//! XA ROLLBACK                      single !   end          end !             end
//! other statement, LOAD DATA       single     end          end               inside
//! INTVAR, RAND, USER_VAR,
//!   file blocks of LOAD DATA       begin      inside       inside            inside
//! table map, rows, rows query,
//!   view change                    outside !  inside !     inside !          inside
//! transaction payload              single !   end          end !             end !
//! incident                         single     end          end               end
//! rotate, stop, heartbeat, ...     outside    inside       inside            inside
//! unknown, not ignorable           outside !  inside !     inside !          inside !
//! ```
//!
//! `!` marks sequences that no server writes. They are reported as a value beside the [`Boundary`]; the
//! server only warns about them. `again` begins a transaction although the previous one did not end.
//!
//! This is MySQL 9.7.4's `Transaction_boundary_parser`, extended for older files. The blocks of LOAD DATA
//! count as the statement's prelude (5.0 logs them without BEGIN). Rows after a GTID without BEGIN stay
//! together up to their commit. Unknown events stay where they are. MariaDB's GTID event is also the BEGIN,
//! unless its flags say that a single statement follows.
//!
//! Nothing is buffered here: `binlogz-payload` and `binlogz-flow` keep the bytes from [`Boundary::Begin`] to
//! [`Boundary::End`].

mod role;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::event_type::{EventClass, EventType};
use crate::header::EventHeader;
use crate::statement::QUERY_PREFIX_SIZE_MAX;
use role::{EventRole, is_row_based};

/// Where an event is relative to transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Between transactions.
    Outside,
    /// The first event of a transaction with several events.
    Begin,
    /// The first event of a transaction, although the previous transaction did not end: it was cut off.
    BeginAgain,
    /// Within a transaction, neither first nor last.
    Inside,
    /// The last event of a transaction.
    End,
    /// A transaction of one event, as before GTIDs.
    Single,
}

/// A sequence of events that no server writes. The server warns about most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MalformedSequence {
    /// A GTID event before the end of the transaction that is open.
    UnexpectedGtid,
    /// BEGIN or XA START within a transaction or between a variable and its statement.
    UnexpectedBegin,
    /// COMMIT, ROLLBACK, XID or XA PREPARE without BEGIN.
    UnexpectedEnd,
    /// A transaction payload that does not follow a GTID event.
    UnexpectedPayload,
    /// Rows without BEGIN.
    UnexpectedRows,
    /// A query event without a statement, or cut before it.
    MissingStatement,
    /// An event of unknown type that may not be ignored.
    UnknownEvent,
}

impl fmt::Display for MalformedSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MalformedSequence::UnexpectedGtid => "a GTID event is inside a transaction",
            MalformedSequence::UnexpectedBegin => "a transaction begins inside another",
            MalformedSequence::UnexpectedEnd => "a transaction ends that did not begin",
            MalformedSequence::UnexpectedPayload => "a transaction payload does not follow a GTID event",
            MalformedSequence::UnexpectedRows => "rows stand outside of BEGIN and COMMIT",
            MalformedSequence::MissingStatement => "a query event has no statement",
            MalformedSequence::UnknownEvent => "an event of unknown type may not be ignored",
        })
    }
}

/// The answer of [`TransactionBoundaryParser::feed`] about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Where the event is relative to transactions.
    pub boundary: Boundary,
    /// Why a server would not have written it there.
    pub malformed: Option<MalformedSequence>,
}

/// Contents of a transaction so far; they decide whether a server would have compressed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TransactionContent {
    /// The type of the GTID event it begins with.
    pub gtid: Option<EventType>,
    /// Changes as rows.
    pub with_rbr: bool,
    /// Changes as statements, or events that belong to them.
    pub with_sbr: bool,
    /// A transaction payload.
    pub with_payload: bool,
    /// An incident.
    pub with_incident: bool,
    /// Events that are not part of it: rotate, format description, unknown ones.
    pub with_foreign: bool,
    /// The first thing that was wrong with it.
    pub malformed: Option<MalformedSequence>,
}

/// Sequence number, domain and flags of MariaDB's GTID event.
const MARIADB_GTID_SIZE: usize = 8 + 4 + 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum BoundaryState {
    #[default]
    Outside,
    /// After a GTID event.
    AfterGtid,
    /// Between INTVAR (or a similar event) and its statement.
    BeforeStatement,
    /// After BEGIN.
    InsideBegin,
}

/// Finds the bounds of transactions in a stream of events.
#[derive(Debug, Clone, Default)]
pub struct TransactionBoundaryParser {
    state: BoundaryState,
    content: TransactionContent,
}

impl TransactionBoundaryParser {
    /// A parser outside of any transaction, as at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a transaction has begun and not ended. If so at the end of a log, it was cut off.
    pub fn is_open(&self) -> bool {
        self.state != BoundaryState::Outside
    }

    /// Contents of the open transaction, or of the last one to end.
    pub fn content(&self) -> &TransactionContent {
        &self.content
    }

    /// How many bytes of an event's body [`TransactionBoundaryParser::feed`] may read.
    pub fn body_wanted(header: &EventHeader) -> usize {
        match header.event_type.class() {
            EventClass::Statement | EventClass::CompressedStatement => QUERY_PREFIX_SIZE_MAX,
            EventClass::MariadbGtid => MARIADB_GTID_SIZE,
            EventClass::File
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::Gtid
            | EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::RowsStatement
            | EventClass::TableMap
            | EventClass::Rows
            | EventClass::CompressedRows
            | EventClass::Commit
            | EventClass::Payload
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Dead
            | EventClass::Unknown => 0,
        }
    }

    /// Takes the next event of the stream.
    ///
    /// The body is only read for query events, compressed ones too, where its first [`crate::statement::QUERY_PREFIX_SIZE_MAX`]
    /// bytes are enough, and for MariaDB's GTID events.
    pub fn feed(&mut self, header: &EventHeader, body: &[u8]) -> Placement {
        let role = EventRole::of(header, body);
        let (boundary, state, malformed) = self.transition(role);
        self.state = state;
        if matches!(boundary, Boundary::Begin | Boundary::BeginAgain | Boundary::Single) {
            self.content = TransactionContent::default();
        }
        if boundary != Boundary::Outside {
            self.record(header.event_type, role, malformed);
        }
        Placement { boundary, malformed }
    }

    /// The module's table.
    fn transition(&self, role: EventRole) -> (Boundary, BoundaryState, Option<MalformedSequence>) {
        use Boundary::{Begin, BeginAgain, End, Inside, Outside, Single};
        let open = self.is_open();
        let begin = |state, malformed| match open {
            true => (BeginAgain, state, Some(malformed)),
            false => (Begin, state, None),
        };
        let end = |malformed| (if open { End } else { Single }, BoundaryState::Outside, malformed);
        let stay = |malformed| (if open { Inside } else { Outside }, self.state, malformed);
        match (role, self.state) {
            (EventRole::Gtid, _) => begin(BoundaryState::AfterGtid, MalformedSequence::UnexpectedGtid),
            (EventRole::GtidAndBegin, _) => {
                begin(BoundaryState::InsideBegin, MalformedSequence::UnexpectedGtid)
            }

            (EventRole::Begin, BoundaryState::AfterGtid) => (Inside, BoundaryState::InsideBegin, None),
            (EventRole::Begin, _) => begin(BoundaryState::InsideBegin, MalformedSequence::UnexpectedBegin),

            (EventRole::End, BoundaryState::InsideBegin) => end(None),
            (EventRole::XaRollback, BoundaryState::InsideBegin | BoundaryState::AfterGtid) => end(None),
            (EventRole::End | EventRole::XaRollback, _) => end(Some(MalformedSequence::UnexpectedEnd)),

            (EventRole::Statement | EventRole::Control, BoundaryState::InsideBegin) => stay(None),
            (EventRole::Statement | EventRole::Control, _) => end(None),
            (EventRole::MissingStatement, BoundaryState::InsideBegin) => {
                stay(Some(MalformedSequence::MissingStatement))
            }
            (EventRole::MissingStatement, _) => end(Some(MalformedSequence::MissingStatement)),

            (EventRole::BeforeStatement, BoundaryState::Outside) => {
                (Begin, BoundaryState::BeforeStatement, None)
            }
            (EventRole::BeforeStatement, BoundaryState::AfterGtid) => {
                (Inside, BoundaryState::BeforeStatement, None)
            }
            (EventRole::BeforeStatement, _) => stay(None),

            // A load that failed ends with this instead of its statement.
            (EventRole::DeleteFile, BoundaryState::BeforeStatement) => end(None),
            (EventRole::DeleteFile, _) => stay(None),

            (EventRole::Rows, BoundaryState::InsideBegin) => stay(None),
            (EventRole::Rows, BoundaryState::Outside) => stay(Some(MalformedSequence::UnexpectedRows)),
            (EventRole::Rows, _) => {
                (Inside, BoundaryState::InsideBegin, Some(MalformedSequence::UnexpectedRows))
            }

            (EventRole::Payload, BoundaryState::AfterGtid) => end(None),
            (EventRole::Payload, _) => end(Some(MalformedSequence::UnexpectedPayload)),

            (EventRole::Incident, _) => end(None),
            (EventRole::Foreign, _) => stay(None),
            (EventRole::Unknown, _) => stay(Some(MalformedSequence::UnknownEvent)),
        }
    }

    fn record(&mut self, event_type: EventType, role: EventRole, malformed: Option<MalformedSequence>) {
        let content = &mut self.content;
        match role {
            EventRole::Gtid | EventRole::GtidAndBegin => content.gtid = Some(event_type),
            EventRole::Statement
            | EventRole::MissingStatement
            | EventRole::BeforeStatement
            | EventRole::DeleteFile => {
                content.with_sbr = true;
            }
            EventRole::Rows => content.with_rbr |= is_row_based(event_type),
            EventRole::Payload => content.with_payload = true,
            EventRole::Incident => content.with_incident = true,
            EventRole::Foreign | EventRole::Unknown => content.with_foreign = true,
            EventRole::Begin | EventRole::End | EventRole::XaRollback | EventRole::Control => {}
        }
        content.malformed = content.malformed.or(malformed);
    }
}
