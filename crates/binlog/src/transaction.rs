//! Says where transactions begin and end, event by event, by the server's rules.
//!
//! ```text
//! fed event                        outside    behind GTID  before statement  inside BEGIN
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
//! `!` marks what no server writes. It is reported as a value beside the [`Boundary`], where the
//! server only warns. `again` begins a transaction although the one before did not end.
//!
//! This is MySQL 9.7.4's `Transaction_boundary_parser` with what older files need: the blocks of
//! LOAD DATA count as the statement's prelude (5.0 logs them without BEGIN), rows behind a GTID
//! without BEGIN stay together up to their commit, unknown events stay where they stand, and
//! MariaDB's GTID event is at the same time the BEGIN, unless its flags say that one statement
//! follows.
//!
//! Nothing is held here: `binlogz-payload` and `binlogz-flow` keep the bytes from
//! [`Boundary::Begin`] to [`Boundary::End`].

use std::fmt;

use crate::event_type::EventType;
use crate::header::{EventHeader, HeaderFlags};
use crate::statement::StatementKind;

/// MariaDB: the statement behind the rows that follow.
const MARIADB_ANNOTATE_ROWS: EventType = EventType(160);
/// MariaDB: which file a checkpoint reached.
const MARIADB_BINLOG_CHECKPOINT: EventType = EventType(161);
/// MariaDB: begins a transaction; see [`mariadb_gtid_begins_rows`].
const MARIADB_GTID: EventType = EventType(162);
/// MariaDB: the GTIDs of all files before.
const MARIADB_GTID_LIST: EventType = EventType(163);
/// MariaDB: what follows is encrypted.
const MARIADB_START_ENCRYPTION: EventType = EventType(164);
/// MariaDB: a statement, compressed.
const MARIADB_QUERY_COMPRESSED: EventType = EventType(165);
/// MariaDB: the first and last type of compressed rows.
const MARIADB_ROWS_COMPRESSED: std::ops::RangeInclusive<u8> = 166..=171;

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Between transactions.
    Outside,
    /// The first event of a transaction of several.
    Begin,
    /// The same, although the transaction before did not end: it was cut off.
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
            Malformed::UnexpectedGtid => "a GTID event stands inside a transaction",
            Malformed::UnexpectedBegin => "a transaction begins inside another",
            Malformed::UnexpectedEnd => "a transaction ends that did not begin",
            Malformed::UnexpectedPayload => "a transaction payload does not follow a GTID event",
            Malformed::UnexpectedRows => "rows stand outside of BEGIN and COMMIT",
            Malformed::MissingStatement => "a query event has no statement",
            Malformed::UnknownEvent => "an event of unknown type may not be ignored",
        })
    }
}

/// What [`TransactionAssembler::feed`] says about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Where the event stands.
    pub boundary: Boundary,
    /// What is wrong with its standing there.
    pub malformed: Option<Malformed>,
}

/// What a transaction holds so far: what decides whether a server would have compressed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TransactionContent {
    /// The type of the GTID event that it begins with.
    pub gtid: Option<EventType>,
    /// Changes as rows.
    pub with_rbr: bool,
    /// Changes as statements, or what belongs to them.
    pub with_sbr: bool,
    /// A transaction payload.
    pub with_payload: bool,
    /// An incident.
    pub with_incident: bool,
    /// Events that are no part of it: rotate, format description, unknown ones.
    pub with_foreign: bool,
    /// The first thing that was wrong with it.
    pub malformed: Option<Malformed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Outside,
    /// Behind a GTID event.
    BehindGtid,
    /// Between INTVAR and its like and their statement.
    BeforeStatement,
    /// Behind BEGIN.
    InsideBegin,
}

/// What an event means for the bounds of transactions: the rows of the module's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
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

/// Finds the bounds of transactions in a stream of events.
#[derive(Debug, Clone, Default)]
pub struct TransactionAssembler {
    state: State,
    content: TransactionContent,
}

impl TransactionAssembler {
    /// An assembler outside of transactions, as at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a transaction has begun and not ended. At the end of a log: it was cut off.
    pub fn is_open(&self) -> bool {
        self.state != State::Outside
    }

    /// What the transaction holds that is open, or was the last to end.
    pub fn content(&self) -> &TransactionContent {
        &self.content
    }

    /// Takes the next event of the stream.
    ///
    /// The body is only looked at in query events, where its first
    /// [`crate::statement::QUERY_PREFIX_SIZE_MAX`] bytes are enough, and in MariaDB's GTID events.
    pub fn feed(&mut self, header: &EventHeader, body: &[u8]) -> Placement {
        let role = role(header, body);
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
            (Role::Gtid, _) => begin(State::BehindGtid, Malformed::UnexpectedGtid),
            (Role::GtidAndBegin, _) => begin(State::InsideBegin, Malformed::UnexpectedGtid),

            (Role::Begin, State::BehindGtid) => (Inside, State::InsideBegin, None),
            (Role::Begin, _) => begin(State::InsideBegin, Malformed::UnexpectedBegin),

            (Role::End, State::InsideBegin) => end(None),
            (Role::XaRollback, State::InsideBegin | State::BehindGtid) => end(None),
            (Role::End | Role::XaRollback, _) => end(Some(Malformed::UnexpectedEnd)),

            (Role::Statement | Role::Control, State::InsideBegin) => stay(None),
            (Role::Statement | Role::Control, _) => end(None),
            (Role::MissingStatement, State::InsideBegin) => stay(Some(Malformed::MissingStatement)),
            (Role::MissingStatement, _) => end(Some(Malformed::MissingStatement)),

            (Role::BeforeStatement, State::Outside) => (Begin, State::BeforeStatement, None),
            (Role::BeforeStatement, State::BehindGtid) => (Inside, State::BeforeStatement, None),
            (Role::BeforeStatement, _) => stay(None),

            // A load that failed ends with this instead of its statement.
            (Role::DeleteFile, State::BeforeStatement) => end(None),
            (Role::DeleteFile, _) => stay(None),

            (Role::Rows, State::InsideBegin) => stay(None),
            (Role::Rows, State::Outside) => stay(Some(Malformed::UnexpectedRows)),
            (Role::Rows, _) => (Inside, State::InsideBegin, Some(Malformed::UnexpectedRows)),

            (Role::Payload, State::BehindGtid) => end(None),
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

fn role(header: &EventHeader, body: &[u8]) -> Role {
    match header.event_type {
        EventType::GTID | EventType::ANONYMOUS_GTID | EventType::GTID_TAGGED => Role::Gtid,
        EventType::QUERY => match StatementKind::of_query(body) {
            None => Role::MissingStatement,
            Some(StatementKind::Begin | StatementKind::XaStart) => Role::Begin,
            Some(StatementKind::Commit | StatementKind::Rollback) => Role::End,
            Some(StatementKind::XaRollback) => Role::XaRollback,
            Some(kind) if kind.is_statement_based() => Role::Statement,
            Some(_) => Role::Control,
        },
        EventType::XID | EventType::XA_PREPARE => Role::End,
        EventType::EXECUTE_LOAD_QUERY | MARIADB_QUERY_COMPRESSED => Role::Statement,
        EventType::INTVAR
        | EventType::RAND
        | EventType::USER_VAR
        | EventType::BEGIN_LOAD_QUERY
        | EventType::APPEND_BLOCK => Role::BeforeStatement,
        EventType::DELETE_FILE => Role::DeleteFile,
        EventType::ROWS_QUERY | EventType::VIEW_CHANGE | MARIADB_ANNOTATE_ROWS => Role::Rows,
        rows if is_row_based(rows) => Role::Rows,
        EventType::TRANSACTION_PAYLOAD => Role::Payload,
        EventType::INCIDENT => Role::Incident,
        EventType::FORMAT_DESCRIPTION
        | EventType::ROTATE
        | EventType::STOP
        | EventType::PREVIOUS_GTIDS
        | EventType::HEARTBEAT
        | EventType::HEARTBEAT_V2
        | EventType::SLAVE
        | EventType::TRANSACTION_CONTEXT
        | MARIADB_BINLOG_CHECKPOINT
        | MARIADB_GTID_LIST
        | MARIADB_START_ENCRYPTION => Role::Foreign,
        MARIADB_GTID if mariadb_gtid_begins_rows(body) => Role::GtidAndBegin,
        MARIADB_GTID => Role::Gtid,
        _ if header.flags.contains(HeaderFlags::IGNORABLE) => Role::Foreign,
        _ => Role::Unknown,
    }
}

/// Whether the event carries changes as rows, for the server's `is_rbr_logging_format`.
fn is_row_based(event_type: EventType) -> bool {
    event_type == EventType::TABLE_MAP
        || event_type.is_rows()
        || MARIADB_ROWS_COMPRESSED.contains(&event_type.0)
}

/// MariaDB's GTID event (sequence number 8, domain 4, flags 1) stands for BEGIN too, unless it says
/// that one statement follows, or the end of an XA transaction.
fn mariadb_gtid_begins_rows(body: &[u8]) -> bool {
    const FLAGS_OFFSET: usize = 8 + 4;
    const STANDALONE: u8 = 0x01;
    const COMPLETED_XA: u8 = 0x80;
    body.get(FLAGS_OFFSET).is_some_and(|flags| flags & (STANDALONE | COMPLETED_XA) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Boundary::{Begin, BeginAgain, End, Inside, Outside, Single};

    /// An event by a short name; a name that is none of these is a statement.
    fn event(name: &str) -> (EventType, Vec<u8>) {
        let event_type = match name {
            "gtid" => EventType::GTID,
            "anonymous" => EventType::ANONYMOUS_GTID,
            "tagged" => EventType::GTID_TAGGED,
            "xid" => EventType::XID,
            "prepare" => EventType::XA_PREPARE,
            "intvar" => EventType::INTVAR,
            "rand" => EventType::RAND,
            "user var" => EventType::USER_VAR,
            "begin load" => EventType::BEGIN_LOAD_QUERY,
            "append" => EventType::APPEND_BLOCK,
            "delete file" => EventType::DELETE_FILE,
            "load" => EventType::EXECUTE_LOAD_QUERY,
            "map" => EventType::TABLE_MAP,
            "rows" => EventType::WRITE_ROWS,
            "rows v1" => EventType::WRITE_ROWS_V1,
            "rows query" => EventType::ROWS_QUERY,
            "view" => EventType::VIEW_CHANGE,
            "payload" => EventType::TRANSACTION_PAYLOAD,
            "incident" => EventType::INCIDENT,
            "rotate" => EventType::ROTATE,
            "format" => EventType::FORMAT_DESCRIPTION,
            "ignorable" | "unknown" => EventType(200),
            "maria gtid" | "maria standalone" | "maria xa" => MARIADB_GTID,
            "maria rows" => EventType(167),
            "maria list" => MARIADB_GTID_LIST,
            statement => {
                let mut body = vec![0; 14];
                body.extend_from_slice(statement.as_bytes());
                return (EventType::QUERY, body);
            }
        };
        let mut body = vec![0; 19];
        body[12] = match name {
            "maria standalone" => 0x01,
            "maria xa" => 0x84,
            _ => 0x0c,
        };
        (event_type, body)
    }

    fn feed(assembler: &mut TransactionAssembler, name: &str) -> Placement {
        let (event_type, body) = event(name);
        let header = EventHeader {
            timestamp: 0,
            event_type,
            server_id: 1,
            event_size: 0,
            end_log_pos: 0,
            flags: if name == "ignorable" { HeaderFlags::IGNORABLE } else { HeaderFlags::default() },
        };
        assembler.feed(&header, &body)
    }

    /// Feeds events in order and compares where each stands; nothing may be malformed.
    fn check(events: &[(&str, Boundary)]) -> TransactionContent {
        let mut assembler = TransactionAssembler::new();
        for (name, boundary) in events {
            let placement = feed(&mut assembler, name);
            assert_eq!(placement, Placement { boundary: *boundary, malformed: None }, "{name}");
        }
        assert!(!assembler.is_open());
        *assembler.content()
    }

    #[test]
    fn a_row_transaction_runs_from_gtid_to_xid() {
        for gtid in ["gtid", "anonymous", "tagged"] {
            let content = check(&[
                ("format", Outside),
                (gtid, Begin),
                ("BEGIN", Inside),
                ("rows query", Inside),
                ("map", Inside),
                ("rows", Inside),
                ("SAVEPOINT `a`", Inside),
                ("ROLLBACK TO `a`", Inside),
                ("xid", End),
                ("rotate", Outside),
            ]);
            let expected =
                TransactionContent { gtid: Some(event(gtid).0), with_rbr: true, ..Default::default() };
            assert_eq!(content, expected);
        }
    }

    #[test]
    fn transactions_end_with_commit_rollback_and_xa() {
        for end in ["COMMIT", "ROLLBACK", "rollback", "prepare", "XA ROLLBACK X'61',X'',1"] {
            check(&[("gtid", Begin), ("BEGIN", Inside), ("rows", Inside), (end, End)]);
        }
        let content = check(&[
            ("gtid", Begin),
            ("XA START X'61',X'',1", Inside),
            ("map", Inside),
            ("rows", Inside),
            ("XA END X'61',X'',1", Inside),
            ("prepare", End),
        ]);
        assert!(content.with_rbr && !content.with_sbr);
        for second_phase in ["XA COMMIT X'61',X'',1", "XA ROLLBACK X'61',X'',1"] {
            let content = check(&[("gtid", Begin), (second_phase, End)]);
            assert!(!content.with_rbr && !content.with_sbr);
        }
    }

    #[test]
    fn a_statement_behind_a_gtid_is_a_transaction() {
        let content = check(&[("gtid", Begin), ("CREATE TABLE t (a INT)", End)]);
        assert!(content.with_sbr && !content.with_rbr);
        check(&[("gtid", Begin), ("user var", Inside), ("DROP TABLE t", End)]);
        check(&[("anonymous", Begin), ("begin load", Inside), ("append", Inside), ("load", End)]);
        check(&[("gtid", Begin), ("incident", End)]);
    }

    #[test]
    fn create_table_select_holds_rows_and_a_statement() {
        let content = check(&[
            ("gtid", Begin),
            ("BEGIN", Inside),
            ("CREATE TABLE `t` (`a` INT) START TRANSACTION", Inside),
            ("map", Inside),
            ("rows", Inside),
            ("xid", End),
        ]);
        assert!(content.with_sbr && content.with_rbr);
    }

    #[test]
    fn a_payload_behind_a_gtid_is_a_transaction() {
        let content = check(&[("gtid", Begin), ("payload", End), ("anonymous", Begin), ("payload", End)]);
        assert!(content.with_payload);
        assert_eq!(content.gtid, Some(EventType::ANONYMOUS_GTID));
    }

    #[test]
    fn without_gtids_begin_and_single_statements_bound_transactions() {
        check(&[
            ("CREATE TABLE t (a INT)", Single),
            ("intvar", Begin),
            ("INSERT INTO t VALUES (1)", End),
            ("BEGIN", Begin),
            ("intvar", Inside),
            ("INSERT INTO t VALUES (1)", Inside),
            ("xid", End),
            ("begin load", Begin),
            ("append", Inside),
            ("load", End),
            ("begin load", Begin),
            ("delete file", End),
            ("delete file", Outside),
            ("BEGIN", Begin),
            ("map", Inside),
            ("rows v1", Inside),
            ("COMMIT", End),
            ("incident", Single),
        ]);
    }

    #[test]
    fn mariadb_begins_rows_with_its_gtid() {
        let content = check(&[
            ("maria list", Outside),
            ("maria standalone", Begin),
            ("CREATE TABLE t (a INT)", End),
            ("maria xa", Begin),
            ("XA COMMIT X'61',X'',1", End),
            ("maria gtid", Begin),
            ("map", Inside),
            ("maria rows", Inside),
            ("xid", End),
        ]);
        assert!(content.with_rbr && !content.with_sbr);
        assert_eq!(content.gtid, Some(MARIADB_GTID));
    }

    #[test]
    fn foreign_events_change_nothing_but_are_noted() {
        let content = check(&[
            ("ignorable", Outside),
            ("gtid", Begin),
            ("ignorable", Inside),
            ("BEGIN", Inside),
            ("rotate", Inside),
            ("format", Inside),
            ("rows", Inside),
            ("xid", End),
        ]);
        assert!(content.with_foreign);
        let content = check(&[("rotate", Outside), ("gtid", Begin), ("BEGIN", Inside), ("xid", End)]);
        assert!(!content.with_foreign);
    }

    /// Feeds events that are in order and then one that is not.
    fn misfit(events: &[&str], boundary: Boundary, malformed: Malformed) -> TransactionAssembler {
        let mut assembler = TransactionAssembler::new();
        let (last, before) = events.split_last().unwrap();
        for name in before {
            assert_eq!(feed(&mut assembler, name).malformed, None, "{name}");
        }
        assert_eq!(
            feed(&mut assembler, last),
            Placement { boundary, malformed: Some(malformed) },
            "{events:?}"
        );
        if boundary != Outside {
            assert_eq!(assembler.content().malformed, Some(malformed));
        }
        assembler
    }

    #[test]
    fn what_no_server_writes_is_reported_and_bounded() {
        for open in [&["gtid"][..], &["gtid", "intvar"], &["gtid", "BEGIN"], &["BEGIN", "map"], &["intvar"]] {
            let then = |name| [open, &[name]].concat();
            misfit(&then("gtid"), BeginAgain, Malformed::UnexpectedGtid);
            misfit(&then("unknown"), Inside, Malformed::UnknownEvent);
        }
        misfit(&["BEGIN", "BEGIN"], BeginAgain, Malformed::UnexpectedBegin);
        misfit(&["gtid", "intvar", "BEGIN"], BeginAgain, Malformed::UnexpectedBegin);
        for end in ["xid", "prepare", "COMMIT", "ROLLBACK", "XA ROLLBACK 'a'"] {
            misfit(&[end], Single, Malformed::UnexpectedEnd);
            misfit(&["intvar", end], End, Malformed::UnexpectedEnd);
        }
        misfit(&["gtid", "xid"], End, Malformed::UnexpectedEnd);
        misfit(&["payload"], Single, Malformed::UnexpectedPayload);
        misfit(&["gtid", "BEGIN", "payload"], End, Malformed::UnexpectedPayload);
        misfit(&["gtid", "intvar", "payload"], End, Malformed::UnexpectedPayload);
        misfit(&["map"], Outside, Malformed::UnexpectedRows);
        misfit(&["unknown"], Outside, Malformed::UnknownEvent);
        misfit(&[""], Single, Malformed::MissingStatement);
        misfit(&["gtid", "BEGIN", ""], Inside, Malformed::MissingStatement);
    }

    #[test]
    fn rows_behind_a_gtid_without_begin_stay_together() {
        for name in ["map", "rows query", "view"] {
            let mut assembler = misfit(&["gtid", name], Inside, Malformed::UnexpectedRows);
            assert_eq!(feed(&mut assembler, "rows"), Placement { boundary: Inside, malformed: None });
            assert_eq!(feed(&mut assembler, "xid"), Placement { boundary: End, malformed: None });
            assert_eq!(assembler.content().malformed, Some(Malformed::UnexpectedRows));
        }
    }

    #[test]
    fn a_cut_off_transaction_leaves_nothing_to_the_next() {
        let mut assembler = misfit(&["gtid", "BEGIN", "rows", "gtid"], BeginAgain, Malformed::UnexpectedGtid);
        assert!(!assembler.content().with_rbr);
        assert_eq!(feed(&mut assembler, "DROP TABLE t").boundary, End);
        assert_eq!(feed(&mut assembler, "gtid").boundary, Begin);
        assert_eq!(assembler.content().malformed, None);
        assert!(assembler.is_open());
        assert_eq!(feed(&mut assembler, "payload").boundary, End);
        assert_eq!(feed(&mut assembler, "incident").boundary, Single);
        let expected = TransactionContent { with_incident: true, ..Default::default() };
        assert_eq!(*assembler.content(), expected);
    }
}
