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

use crate::event_type::EventType;
use crate::header::EventHeader;
use role::{Role, is_row_based};

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
pub enum Malformed {
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

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::UnexpectedGtid => "a GTID event is inside a transaction",
            Malformed::UnexpectedBegin => "a transaction begins inside another",
            Malformed::UnexpectedEnd => "a transaction ends that did not begin",
            Malformed::UnexpectedPayload => "a transaction payload does not follow a GTID event",
            Malformed::UnexpectedRows => "rows stand outside of BEGIN and COMMIT",
            Malformed::MissingStatement => "a query event has no statement",
            Malformed::UnknownEvent => "an event of unknown type may not be ignored",
        })
    }
}

/// The answer of [`TransactionBoundaryParser::feed`] about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Where the event is relative to transactions.
    pub boundary: Boundary,
    /// Why a server would not have written it there.
    pub malformed: Option<Malformed>,
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
    pub malformed: Option<Malformed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
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
    state: State,
    content: TransactionContent,
}

impl TransactionBoundaryParser {
    /// A parser outside of any transaction, as at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a transaction has begun and not ended. If so at the end of a log, it was cut off.
    pub fn is_open(&self) -> bool {
        self.state != State::Outside
    }

    /// Contents of the open transaction, or of the last one to end.
    pub fn content(&self) -> &TransactionContent {
        &self.content
    }

    /// Takes the next event of the stream.
    ///
    /// The body is only read for query events, compressed ones too, where its first [`crate::statement::QUERY_PREFIX_SIZE_MAX`]
    /// bytes are enough, and for MariaDB's GTID events.
    pub fn feed(&mut self, header: &EventHeader, body: &[u8]) -> Placement {
        let role = Role::of(header, body);
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
    fn transition(&self, role: Role) -> (Boundary, State, Option<Malformed>) {
        use Boundary::{Begin, BeginAgain, End, Inside, Outside, Single};
        let open = self.is_open();
        let begin = |state, malformed| match open {
            true => (BeginAgain, state, Some(malformed)),
            false => (Begin, state, None),
        };
        let end = |malformed| (if open { End } else { Single }, State::Outside, malformed);
        let stay = |malformed| (if open { Inside } else { Outside }, self.state, malformed);
        match (role, self.state) {
            (Role::Gtid, _) => begin(State::AfterGtid, Malformed::UnexpectedGtid),
            (Role::GtidAndBegin, _) => begin(State::InsideBegin, Malformed::UnexpectedGtid),

            (Role::Begin, State::AfterGtid) => (Inside, State::InsideBegin, None),
            (Role::Begin, _) => begin(State::InsideBegin, Malformed::UnexpectedBegin),

            (Role::End, State::InsideBegin) => end(None),
            (Role::XaRollback, State::InsideBegin | State::AfterGtid) => end(None),
            (Role::End | Role::XaRollback, _) => end(Some(Malformed::UnexpectedEnd)),

            (Role::Statement | Role::Control, State::InsideBegin) => stay(None),
            (Role::Statement | Role::Control, _) => end(None),
            (Role::MissingStatement, State::InsideBegin) => stay(Some(Malformed::MissingStatement)),
            (Role::MissingStatement, _) => end(Some(Malformed::MissingStatement)),

            (Role::BeforeStatement, State::Outside) => (Begin, State::BeforeStatement, None),
            (Role::BeforeStatement, State::AfterGtid) => (Inside, State::BeforeStatement, None),
            (Role::BeforeStatement, _) => stay(None),

            // A load that failed ends with this instead of its statement.
            (Role::DeleteFile, State::BeforeStatement) => end(None),
            (Role::DeleteFile, _) => stay(None),

            (Role::Rows, State::InsideBegin) => stay(None),
            (Role::Rows, State::Outside) => stay(Some(Malformed::UnexpectedRows)),
            (Role::Rows, _) => (Inside, State::InsideBegin, Some(Malformed::UnexpectedRows)),

            (Role::Payload, State::AfterGtid) => end(None),
            (Role::Payload, _) => end(Some(Malformed::UnexpectedPayload)),

            (Role::Incident, _) => end(None),
            (Role::Foreign, _) => stay(None),
            (Role::Unknown, _) => stay(Some(Malformed::UnknownEvent)),
        }
    }

    fn record(&mut self, event_type: EventType, role: Role, malformed: Option<Malformed>) {
        let content = &mut self.content;
        match role {
            Role::Gtid | Role::GtidAndBegin => content.gtid = Some(event_type),
            Role::Statement | Role::MissingStatement | Role::BeforeStatement | Role::DeleteFile => {
                content.with_sbr = true;
            }
            Role::Rows => content.with_rbr |= is_row_based(event_type),
            Role::Payload => content.with_payload = true,
            Role::Incident => content.with_incident = true,
            Role::Foreign | Role::Unknown => content.with_foreign = true,
            Role::Begin | Role::End | Role::XaRollback | Role::Control => {}
        }
        content.malformed = content.malformed.or(malformed);
    }
}
