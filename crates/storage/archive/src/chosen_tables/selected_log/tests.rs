//! Statements of tables that are chosen and others, event by event.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use binlogz_binlog::frame::encode_event;
use binlogz_testkit::builder::{EndPositions, LogBuilder, Release};

use super::*;

const CRC32: ChecksumAlgorithm = ChecksumAlgorithm::CRC32;

/// A log whose events are a statement's, of which each word is one: `m1` maps table 1 (a.t1), `r1` has rows of it, `r1!` ends
/// the statement, `q` is its text, `x` another event.
fn log_of(statement: &str) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let mut bytes = log.take();
    for word in statement.split_whitespace() {
        let table = word.as_bytes().get(1).map_or(0, |digit| digit - b'0');
        let flags = u8::from(word.ends_with('!'));
        let (event_type, body) = match word.as_bytes()[0] {
            b'm' => {
                let name = [b't', b'0' + table];
                let body =
                    [&[table, 0, 0, 0, 0, 0, 1, 0, 1, b'a', 0, 2][..], &name, &[0, 1, 3, 0, 0]].concat();
                (EventType::TABLE_MAP, body)
            }
            b'r' => {
                (EventType::WRITE_ROWS, [&[table, 0, 0, 0, 0, 0, flags, 0][..], &vec![9; 200_000]].concat())
            }
            b'q' => (EventType::ROWS_QUERY, b"\x07INSERT ".to_vec()),
            _ => (EventType::XID, vec![1; 8]),
        };
        let header = EventHeader {
            timestamp: 7,
            event_type,
            server_id: 3,
            event_size: 0,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        bytes.extend(encode_event(header, &body, CRC32));
    }
    bytes
}

/// The same statement of a selection, read back: `_` for each filler, `M` for one with the mark of its table.
fn selected(statement: &str, ignored: &str, size: usize) -> String {
    let log = log_of(statement);
    let choice = TableChoice::new(&[], &[ignored.to_owned()]).unwrap();
    let mut writer = SelectedLogWriter::new(&choice).unwrap();
    log.chunks(size).for_each(|piece| writer.write_all(piece).unwrap());
    let selected = writer.finish().unwrap();
    let mut bytes = vec![0; log.len() + 1];
    let read = selected.log.fill_at(&mut bytes, 0).unwrap();
    assert_eq!(read, log.len());
    let mut shown = Vec::new();
    let mut at = MAGIC.len();
    while at < read {
        let event_size = EventHeader::decode(&bytes[at..]).unwrap().event_size as usize;
        let frame = EventFrame::from_bytes(&bytes[at..at + event_size], 4).unwrap();
        assert_eq!(
            frame.stored_checksum(),
            Some(frame.computed_checksum()),
            "{} at {at}",
            frame.event_type()
        );
        at += event_size;
        let table = char::from(b'0' + frame.body().first().copied().unwrap_or_default().min(9));
        match frame.event_type() {
            EventType::TABLE_MAP => shown.push(format!("m{table}")),
            EventType::WRITE_ROWS => {
                let ends = if frame.body()[6] == STATEMENT_END { "!" } else { "" };
                shown.push(format!("r{table}{ends}"));
            }
            EventType::IGNORABLE => {
                let mark = LeftOutTable::decode(frame.body());
                let is_zero = frame.body().iter().all(|byte| *byte == 0);
                assert_eq!(mark.is_none(), is_zero, "{statement}");
                assert!(mark.is_none_or(|mark| mark == LeftOutTable { database: b"a", table: b"t2" }));
                shown.push(if mark.is_some() { "M" } else { "_" }.into());
            }
            EventType::XID => shown.push("x".into()),
            _ => {}
        }
    }
    let fillers = shown.iter().filter(|word| *word == "_" || *word == "M").count();
    assert_eq!(selected.events_left_out, fillers as u64, "{statement}");
    shown.join(" ")
}

#[test]
fn every_statement_of_which_rows_stay_ends() {
    for (statement, expected) in [
        ("m1 r1 r1! x", "m1 r1 r1! x"),
        ("q m2 r2 r2! x", "_ M _ _ x"),
        ("m1 m2 r1 r1 r2! x", "m1 M r1 r1! _ x"),
        ("m1 m2 r1 r2 r2 r1 r2 r2! x", "m1 M r1 _ _ r1! _ _ x"),
        ("m2 m1 r2 r1! x", "M m1 _ r1! x"),
        ("m1 m2 r2 r2! x", "_ M _ _ x"),
        ("m1 m3 m2 r3 r2! x", "m1 m3 M r3! _ x"),
        ("m1 r1 m2 r2! m1 r1! x", "m1 r1! M _ m1 r1! x"),
        ("m1 m2 r1 r2 x", "m1 M r1 _ x"),
        ("m1 x", "m1 x"),
        ("m1", "m1"),
    ] {
        for size in [1, 1000, 1 << 20] {
            if size == 1 && statement.len() > 12 {
                continue;
            }
            assert_eq!(selected(statement, "a.t2", size), expected, "{statement}");
        }
        let all = selected(statement, "b.*", 1 << 20);
        assert_eq!(all.replace('_', "q"), statement, "all tables");
    }
}

/// What becomes of a log; of one that can't be written, why.
fn written(bytes: &[u8], only: &[&str]) -> std::result::Result<SelectedLog, String> {
    let only: Vec<String> = only.iter().map(|pattern| (*pattern).to_owned()).collect();
    let choice = TableChoice::new(&only, &["a.b".to_owned()]).unwrap();
    let mut writer = SelectedLogWriter::new(&choice).unwrap();
    let written = writer.write_all(bytes);
    match writer.take_error() {
        Some(error) => Err(error.to_string()),
        None => {
            written.unwrap();
            writer.finish().map_err(|error| error.to_string())
        }
    }
}

fn event(event_type: EventType, end_log_pos: u32, body: &[u8]) -> Vec<u8> {
    let flags = HeaderFlags::default();
    let header = EventHeader { timestamp: 7, event_type, server_id: 3, event_size: 0, end_log_pos, flags };
    encode_event(header, body, CRC32)
}

#[test]
fn what_tables_can_not_be_told_of_is_refused() {
    let refused = |bytes: &[u8]| written(bytes, &[]).map(|log| log.events_left_out).unwrap_err();
    let log = log_of("m1 r1! x");
    assert!(written(&log, &[]).unwrap().doubts.is_empty());
    let error = refused(&log[..log.len() - 1]);
    assert!(error.contains("an end inside an event"), "{error}");
    for event_type in [EventType::TRANSACTION_PAYLOAD, EventType::MARIADB_START_ENCRYPTION, EventType(99)] {
        let error = refused(&[&log[..], &event(event_type, 0, &[0; 9])].concat());
        assert!(error.contains("expected one whose tables are known"), "{error}");
    }
    for statement in ["r7! x", "m1 r1! r1! x", "m1 r1 x r1!"] {
        let error = refused(&log_of(statement));
        assert!(error.contains("which no table map of its statement has"), "{statement}: {error}");
    }
    // An event that only ends a statement has no table.
    let end = event(EventType::WRITE_ROWS, 0, &[0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 2, 0, 0]);
    assert!(written(&[&log_of("m1 r1")[..], &end].concat(), &[]).unwrap().doubts.is_empty());
}

#[test]
fn a_table_that_would_be_chosen_in_other_letters_is_told() {
    let lines = |only: &str| written(&log_of("m1 r1! m2 r2! x"), &[only]).unwrap().doubts.lines();
    assert_eq!(lines("a.t1"), [""; 0]);
    let line = "rows of a.t1 were left out: its name differs from a pattern in upper and lower case";
    assert_eq!(lines("A.T1"), [line]);
}

/// An empty transaction would begin after the values.
#[test]
fn a_statement_with_values_before_it_stays_and_is_told() {
    let query = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: binlogz_binlog::event::StatusVariables(b""),
        database: b"other",
        statement: b"CREATE EVENT e ON SCHEDULE AT @moment DO DELETE FROM secrets",
    };
    let value = event(EventType::USER_VAR, 0, &[6, 0, 0, 0, b'm', b'o', b'm', b'e', b'n', b't', 1]);
    let statement = event(EventType::QUERY, 0, &query.encode().unwrap());
    let head = log_of("");
    let selected = written(&[&head[..], &value, &statement].concat(), &["a.*"]).unwrap();
    assert_eq!(selected.statements_left_out, 0);
    let lines = selected.doubts.lines();
    assert!(lines.len() == 1 && lines[0].contains("events with their values stand before them"), "{lines:?}");
    let selected = written(&[&head[..], &value, &statement, &statement].concat(), &["a.*"]).unwrap();
    assert_eq!((selected.statements_left_out, selected.doubts.lines().len()), (1, 1), "the second has none");
}

/// What a statement in a database becomes: its flags and text, and how many doubts there are.
fn statement_in(database: &[u8], statement: &str) -> (HeaderFlags, String, usize) {
    let query = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: binlogz_binlog::event::StatusVariables(b""),
        database,
        statement: statement.as_bytes(),
    };
    let logged = event(EventType::QUERY, 0, &query.encode().unwrap());
    let log = [&log_of("")[..], &logged].concat();
    let selected = written(&log, &["a.*"]).unwrap();
    let mut bytes = vec![0; logged.len()];
    let offset = (log.len() - logged.len()) as u64;
    assert_eq!(selected.log.fill_at(&mut bytes, offset).unwrap(), logged.len());
    let frame = EventFrame::from_bytes(&bytes, 4).unwrap();
    assert_eq!(frame.stored_checksum(), Some(frame.computed_checksum()));
    let stays = QueryEvent::decode(frame.body()).unwrap();
    assert_eq!(QueryEvent { statement: query.statement, ..stays }, query);
    let text = String::from_utf8_lossy(stays.statement).into_owned();
    (frame.header().flags, text, selected.doubts.lines().len())
}

#[test]
fn a_statement_that_stays_needs_no_database_that_is_not_made() {
    for (statement, doubts) in [
        ("CREATE TABLE a.t (id INT)", 0),
        ("BEGIN", 0),
        ("CREATE TABLE a.t (id INT, FOREIGN KEY (id) REFERENCES other.t (id))", 1),
    ] {
        let is_same = |database: &[u8], flags| {
            assert_eq!(statement_in(database, statement), (flags, statement.to_owned(), doubts));
        };
        is_same(b"other", HeaderFlags::SUPPRESS_USE);
        [&b"a"[..], b"A", b""].iter().for_each(|database| is_same(database, HeaderFlags::default()));
    }
    let shorter = format!("{:<25}", "DROP TABLE `a`.`t`");
    let dropped = statement_in(b"other", "DROP TABLE other.t, a . t");
    assert_eq!(dropped, (HeaderFlags::SUPPRESS_USE, shorter, 0));
    // Where rows of any tables may be changed, names without a database are the session's.
    let delete = "DELETE FROM t";
    assert_eq!(statement_in(b"other", delete), (HeaderFlags::default(), delete.to_owned(), 1));
}

#[test]
fn a_prepared_transaction_of_mariadb_without_rows_is_told() {
    let lines = |statement: &str, only: &str| {
        let rows = log_of(statement);
        let head = log_of("").len();
        let gtid = [&[9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x40][..], &[0; 6]].concat();
        let prepare = event(EventType::XA_PREPARE, 0, &[0; 14]);
        let log =
            [&rows[..head], &event(EventType::MARIADB_GTID, 0, &gtid), &rows[head..], &prepare].concat();
        written(&log, &[only]).unwrap().doubts.lines()
    };
    assert_eq!(lines("m1 r1!", "a.*"), [""; 0]);
    let lines = lines("m1 r1!", "b.*");
    assert!(lines.len() == 1 && lines[0].contains("prepare XA transactions"), "{lines:?}");
}

/// Events in words: texts of statements, `_` for a filler, flags of MariaDB's GTIDs.
fn shown(events: &[u8]) -> String {
    let mut shown = Vec::new();
    let mut rest = events;
    while !rest.is_empty() {
        let (event, after) = rest.split_at(EventHeader::decode(rest).unwrap().event_size as usize);
        let frame = EventFrame::from_bytes(event, 4).unwrap();
        assert_eq!(frame.stored_checksum(), Some(frame.computed_checksum()));
        shown.push(match frame.event_type() {
            EventType::MARIADB_GTID => format!("gtid {:#x}", frame.body()[12]),
            EventType::QUERY => {
                String::from_utf8_lossy(QueryEvent::decode(frame.body()).unwrap().statement).into_owned()
            }
            EventType::IGNORABLE => "_".to_owned(),
            other => other.to_string(),
        });
        rest = after;
    }
    shown.join(" · ")
}

const XA_ID: &str = "X'61616161616161616161616161616161',X'62',1";

/// An XA transaction with rows of a.t1, which ends as it says; `None`: it does not end in this log. `gtids`: MariaDB's.
fn xa_log(gtids: bool, prepare: u8, ending: Option<&str>) -> Vec<u8> {
    let query = |statement: &str| {
        let query = QueryEvent {
            thread_id: 1,
            exec_time: 0,
            error_code: 0,
            status_variables: binlogz_binlog::event::StatusVariables(b""),
            database: b"a",
            statement: statement.as_bytes(),
        };
        event(EventType::QUERY, 0, &query.encode().unwrap())
    };
    let begin = |flags: u8, statement: &str| match gtids {
        true => {
            let gtid = [&[9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, flags][..], &[7; 20]].concat();
            event(EventType::MARIADB_GTID, 0, &gtid)
        }
        false => query(statement),
    };
    let mut events = begin(0x40, &format!("XA START {XA_ID}"));
    events.extend_from_slice(&log_of("m1 r1!")[log_of("").len()..]);
    events.extend(query(&format!("XA END {XA_ID}")));
    events.extend(event(EventType::XA_PREPARE, 0, &[&[prepare][..], &[0; 12]].concat()));
    if let Some(ending) = ending {
        if gtids {
            events.extend(begin(0x80, ""));
        }
        events.extend(query(&format!("{ending} {XA_ID}")));
    }
    events
}

/// What is told of a log, and its events in words.
fn selected_xa(events: &[u8], only: &str) -> (Vec<String>, String) {
    let head = log_of("");
    let selected = written(&[&head[..], events].concat(), &[only]).unwrap();
    let mut bytes = vec![0; events.len()];
    assert_eq!(selected.log.fill_at(&mut bytes, head.len() as u64).unwrap(), events.len());
    (selected.doubts.lines(), shown(&bytes))
}

#[test]
fn prepared_transactions_without_rows_become_empty_ones_where_they_end() {
    for (gtids, ending, expected) in [
        (false, "XA ROLLBACK", "BEGIN · _ · _ · _ · _ · COMMIT · BEGIN · COMMIT"),
        (false, "XA COMMIT", "BEGIN · _ · _ · _ · _ · COMMIT · BEGIN · COMMIT"),
        (true, "XA ROLLBACK", "gtid 0x0 · _ · _ · _ · COMMIT · gtid 0x0 · _ · COMMIT"),
    ] {
        let log = xa_log(gtids, 0, Some(ending));
        assert_eq!(selected_xa(&log, "b.*"), (Vec::new(), expected.to_owned()), "{ending}");
        // With rows it stays as it was.
        assert_eq!(selected_xa(&log, "a.*"), (Vec::new(), shown(&log)), "{ending}");
    }
    // In one phase it ends where it is prepared.
    let expected = "BEGIN · _ · _ · _ · _ · COMMIT";
    assert_eq!(selected_xa(&xa_log(false, 1, None), "b.*"), (Vec::new(), expected.to_owned()));
    // One that ends elsewhere stays, and so does what ends one of elsewhere.
    for gtids in [false, true] {
        let (lines, events) = selected_xa(&xa_log(gtids, 0, None), "b.*");
        assert!(lines.len() == 1 && lines[0].contains("prepare XA transactions"), "{lines:?}");
        assert!(events.ends_with(&format!("XA END {XA_ID} · XaPrepare")), "{events}");
    }
    let all = xa_log(false, 0, Some("XA COMMIT"));
    let end = &all[xa_log(false, 0, None).len()..];
    assert_eq!(selected_xa(end, "b.*"), (Vec::new(), format!("XA COMMIT {XA_ID}")));
}

/// A MariaDB log whose transaction is a single statement, with these flags of its GTID event.
fn mariadb_log(flags: u8, statement: &str) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MARIADB_10_11);
    let mut bytes = log.positions(EndPositions::Own).take();
    let gtid = [&[9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, flags][..], &[0; 6]].concat();
    bytes.extend(event(EventType::MARIADB_GTID, 0, &gtid));
    let query = QueryEvent {
        thread_id: 1,
        exec_time: 0,
        error_code: 0,
        status_variables: binlogz_binlog::event::StatusVariables(b""),
        database: b"other",
        statement: statement.as_bytes(),
    };
    bytes.extend(event(EventType::QUERY, 5_000, &query.encode().unwrap()));
    bytes
}

#[test]
fn a_statement_of_mariadb_that_stands_alone_becomes_an_empty_transaction() {
    const STANDALONE_DDL: u8 = 0x21;
    let shown = |statement: &str| {
        let log = mariadb_log(STANDALONE_DDL, statement);
        let selected = written(&log, &["a.*"]).unwrap();
        let mut bytes = vec![0; log.len() + 1];
        assert_eq!(selected.log.fill_at(&mut bytes, 0).unwrap(), log.len());
        bytes.truncate(log.len());
        let mut reader = binlogz_binlog::EventReader::new(&bytes[..]);
        let mut shown = Vec::new();
        while let Some((_, frame)) = reader.next_event().unwrap() {
            match frame.event_type() {
                EventType::MARIADB_GTID => shown.push(format!("gtid {:#x}", frame.body()[12])),
                EventType::QUERY => {
                    let query = QueryEvent::decode(frame.body()).unwrap();
                    shown.push(String::from_utf8_lossy(query.statement).into_owned());
                }
                EventType::IGNORABLE => shown.push("_".into()),
                _ => {}
            }
        }
        (shown.join(" · "), selected.statements_left_out)
    };
    let create = "CREATE TABLE secrets (id INT PRIMARY KEY)";
    assert_eq!(shown(create), ("gtid 0x0 · _ · COMMIT".to_owned(), 1));
    assert_eq!(shown("TRUNCATE TABLE some_secrets"), ("gtid 0x0 · _ · COMMIT".to_owned(), 1));
    // Too short for a filler that says that there was a statement: it stays, and is named.
    assert_eq!(shown("TRUNCATE secret"), ("gtid 0x21 · TRUNCATE secret".to_owned(), 0));
    let own = "CREATE TABLE a.chosen (id INT)";
    assert_eq!(shown(own), (format!("gtid 0x21 · {own}"), 0));
    // One that can't be read stays.
    let selected = written(&mariadb_log(STANDALONE_DDL, "DROP"), &["a.*"]).unwrap();
    assert_eq!(selected.doubts.lines().len(), 1);
    assert!(selected.doubts.lines()[0].starts_with("1 statement"), "{:?}", selected.doubts);
}
