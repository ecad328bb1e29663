//! Where transactions begin and end: the table in `mod.rs`, row by row.

use super::*;
use crate::header::HeaderFlags;
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
        "maria gtid" | "maria standalone" | "maria xa" => EventType::MARIADB_GTID,
        "maria rows" => EventType(167),
        "maria list" => EventType::MARIADB_GTID_LIST,
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

fn feed(assembler: &mut TransactionBoundaryParser, name: &str) -> Placement {
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

/// Feeds events in order and checks the boundary of each; none may be malformed.
fn check(events: &[(&str, Boundary)]) -> TransactionContent {
    let mut assembler = TransactionBoundaryParser::new();
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
        let expected = TransactionContent { gtid: Some(event(gtid).0), with_rbr: true, ..Default::default() };
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
    assert_eq!(content.gtid, Some(EventType::MARIADB_GTID));
}

/// A reader that holds less of MariaDB's GTID event would end the transaction after its first statement.
#[test]
fn what_is_wanted_of_a_body_is_enough() {
    let mut assembler = TransactionBoundaryParser::new();
    let statements = ["maria gtid", "INSERT INTO t VALUES (1)", "UPDATE t SET a = 2", "xid"];
    let found = statements.map(|name| {
        let (event_type, body) = event(name);
        let flags = HeaderFlags::default();
        let header =
            EventHeader { timestamp: 0, event_type, server_id: 1, event_size: 0, end_log_pos: 0, flags };
        let wanted = TransactionBoundaryParser::body_wanted(&header).min(body.len());
        assembler.feed(&header, &body[..wanted]).boundary
    });
    assert_eq!(found, [Begin, Inside, Inside, End]);
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
fn misfit(events: &[&str], boundary: Boundary, malformed: MalformedSequence) -> TransactionBoundaryParser {
    let mut assembler = TransactionBoundaryParser::new();
    let (last, before) = events.split_last().unwrap();
    for name in before {
        assert_eq!(feed(&mut assembler, name).malformed, None, "{name}");
    }
    assert_eq!(feed(&mut assembler, last), Placement { boundary, malformed: Some(malformed) }, "{events:?}");
    if boundary != Outside {
        assert_eq!(assembler.content().malformed, Some(malformed));
    }
    assembler
}

#[test]
fn what_no_server_writes_is_reported_and_bounded() {
    for open in [&["gtid"][..], &["gtid", "intvar"], &["gtid", "BEGIN"], &["BEGIN", "map"], &["intvar"]] {
        let then = |name| [open, &[name]].concat();
        misfit(&then("gtid"), BeginAgain, MalformedSequence::UnexpectedGtid);
        misfit(&then("unknown"), Inside, MalformedSequence::UnknownEvent);
    }
    misfit(&["BEGIN", "BEGIN"], BeginAgain, MalformedSequence::UnexpectedBegin);
    misfit(&["gtid", "intvar", "BEGIN"], BeginAgain, MalformedSequence::UnexpectedBegin);
    for end in ["xid", "prepare", "COMMIT", "ROLLBACK", "XA ROLLBACK 'a'"] {
        misfit(&[end], Single, MalformedSequence::UnexpectedEnd);
        misfit(&["intvar", end], End, MalformedSequence::UnexpectedEnd);
    }
    misfit(&["gtid", "xid"], End, MalformedSequence::UnexpectedEnd);
    misfit(&["payload"], Single, MalformedSequence::UnexpectedPayload);
    misfit(&["gtid", "BEGIN", "payload"], End, MalformedSequence::UnexpectedPayload);
    misfit(&["gtid", "intvar", "payload"], End, MalformedSequence::UnexpectedPayload);
    misfit(&["map"], Outside, MalformedSequence::UnexpectedRows);
    misfit(&["unknown"], Outside, MalformedSequence::UnknownEvent);
    misfit(&[""], Single, MalformedSequence::MissingStatement);
    misfit(&["gtid", "BEGIN", ""], Inside, MalformedSequence::MissingStatement);
}

#[test]
fn rows_behind_a_gtid_without_begin_stay_together() {
    for name in ["map", "rows query", "view"] {
        let mut assembler = misfit(&["gtid", name], Inside, MalformedSequence::UnexpectedRows);
        assert_eq!(feed(&mut assembler, "rows"), Placement { boundary: Inside, malformed: None });
        assert_eq!(feed(&mut assembler, "xid"), Placement { boundary: End, malformed: None });
        assert_eq!(assembler.content().malformed, Some(MalformedSequence::UnexpectedRows));
    }
}

#[test]
fn a_cut_off_transaction_leaves_nothing_to_the_next() {
    let mut assembler =
        misfit(&["gtid", "BEGIN", "rows", "gtid"], BeginAgain, MalformedSequence::UnexpectedGtid);
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
