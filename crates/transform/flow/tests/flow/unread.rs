//! Issue 42, items 1 to 3: changes that a log holds come out, or the run says that they could not be read.

use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::checksum::crc32;
use binlogz_binlog::event::{Incident, IncidentEvent};
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, EVENT_TYPE_OFFSET, HEADER_SIZE};
use binlogz_binlog::row::Value;
use binlogz_flow::events::{self, BatchItem, EventBatch, RunSummary};
use binlogz_flow::{Error, Input, RowChange, RowChanges, verify};
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_event, inner_transaction};
use binlogz_testkit::corpus::{self, mariadb};

fn memory(bytes: &[u8]) -> Input {
    Input::Places(Arc::new(bytes.to_vec()))
}

/// All changes, and what could not be read.
fn read(bytes: &[u8]) -> (Vec<RowChange>, Vec<String>) {
    let mut changes = Vec::new();
    for change in RowChanges::new(memory(bytes)) {
        match change {
            Ok(change) => changes.push(change),
            Err(Error::Unread(unread)) => {
                return (changes, unread.iter().map(|unread| unread.to_string()).collect());
            }
            Err(error) => panic!("{error}"),
        }
    }
    (changes, Vec::new())
}

/// `table @1=value …` of the image that there is, the one after the change first; long texts by their length.
fn shown(change: &RowChange) -> String {
    let row = change.row();
    let mut text = change.table_name();
    for cell in row.after.or(row.before).unwrap().cells() {
        let value = match cell.value().unwrap() {
            Value::Bytes(bytes) if bytes.len() > 20 => format!("{}*{}", char::from(bytes[0]), bytes.len()),
            Value::Bytes(bytes) => format!("'{}'", String::from_utf8_lossy(bytes)),
            Value::Int(number) => number.to_string(),
            Value::Decimal(decimal) => decimal.to_string(),
            other => format!("{other:?}"),
        };
        text.push_str(&format!(" {value}"));
    }
    text
}

/// Each event of a log: its place, and its size there.
fn events_of(log: &[u8]) -> Vec<(usize, usize)> {
    let mut events = Vec::new();
    let mut at = 4;
    while at < log.len() {
        let size = u32::from_le_bytes(log[at + EVENT_SIZE_OFFSET..][..4].try_into().unwrap()) as usize;
        events.push((at, size));
        at += size;
    }
    events
}

/// Changes an event and makes its checksum right again.
fn planted(log: &[u8], event_type: u8, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut log = log.to_vec();
    let (at, size) =
        events_of(&log).into_iter().find(|(at, _)| log[at + EVENT_TYPE_OFFSET] == event_type).unwrap();
    change(&mut log[at..at + size - 4]);
    let crc = crc32(&log[at..at + size - 4]);
    log[at + size - 4..at + size].copy_from_slice(&crc.to_le_bytes());
    log
}

#[test]
fn the_rows_of_compressed_events_are_those_of_the_server() {
    let (changes, unread) = read(&mariadb("compressed.000001"));
    assert_eq!(unread, [] as [&str; 0]);
    let shown: Vec<_> = changes.iter().map(shown).collect();
    // As mariadb-binlog 10.11 shows them.
    assert_eq!(
        shown,
        [
            "d.t 1 x*700 Null 5",
            "d.t 2 Null y*900 Null",
            "d.t 3 'short' Null Null",
            "d.t 1 z*800 Null 5",
            "d.t 1 z*800 Null 7",
            "d.t 2 Null y*900 7",
            "d.t 3 'short' Null 7",
            "d.t m*500",
            "d.t 3",
            "d.t 9",
            "d.t 1 z*800 Null 7",
            "d.t 2 Null m*500 7",
            "d.t 9 Null Null Null",
        ]
    );
}

#[test]
fn compressed_events_are_handed_out_as_the_plain_ones_in_their_place() {
    let log = mariadb("compressed.000001");
    let places = events_of(&log);
    let compressed = |types: [u8; 2]| {
        let is_one = |(at, _): &&(usize, usize)| types.contains(&log[at + EVENT_TYPE_OFFSET]);
        places.iter().filter(is_one).count()
    };
    assert!(compressed([165, 165]) >= 4 && compressed([166, 168]) >= 2 && compressed([167, 167]) >= 3);
    let mut statements = Vec::new();
    for workers in [1, 3] {
        statements.clear();
        let mut found = Vec::new();
        let work = |_: &mut (), batch: &mut EventBatch<'_>| {
            let mut part = Vec::new();
            while let Some(item) = batch.next_item() {
                let BatchItem::Event(event) = item else { continue };
                assert!(event.header.event_type.mariadb_expanded().is_none());
                let frame = event.frame.unwrap();
                assert_eq!(frame.bytes().len(), frame.header().event_size as usize);
                let place = (event.position.offset as usize, event.header.event_size as usize);
                part.push((place, event.stored_checksum(), event.header.event_type, event.body.to_vec()));
            }
            Ok(part)
        };
        let sink = |part| {
            found.extend(part);
            Ok(())
        };
        let RunSummary { read, unread } =
            events::run(memory(&log), workers, || Ok(()), work, sink, &mut |_| {}).unwrap();
        assert_eq!(read.bytes_read, log.len() as u64);
        assert!(unread.is_empty());
        assert_eq!(found.iter().map(|(place, ..)| *place).collect::<Vec<_>>(), places);
        for ((at, size), checksum, event_type, body) in &found {
            let stored = u32::from_le_bytes(log[at + size - 4..at + size].try_into().unwrap());
            assert_eq!(*checksum, Some(stored));
            if *event_type == EventType::QUERY {
                let query = binlogz_binlog::event::QueryEvent::decode(body).unwrap();
                statements.push(String::from_utf8_lossy(query.statement).into_owned());
            }
        }
    }
    assert!(statements.iter().any(|text| text.starts_with("alter table t add column")), "{statements:?}");
    assert!(statements.iter().any(|text| text.starts_with("XA COMMIT")), "{statements:?}");
}

#[test]
fn verify_counts_the_rows_of_compressed_events() {
    let verdict = verify(memory(&mariadb("compressed.000001")), 2, &mut |_| {}).unwrap();
    assert_eq!(verdict.problems(), []);
    assert_eq!(verdict.findings.rows, 13);
}

#[test]
fn values_of_compressed_columns_and_long_decimals_come_out() {
    let (changes, unread) = read(&mariadb("columns.000001"));
    assert_eq!(unread, [] as [&str; 0]);
    let shown: Vec<_> = changes.iter().map(shown).take(10).collect();
    assert_eq!(
        shown,
        [
            "c.z 1 'short' w*2000 b*5000 l*100000 11",
            "c.z 2 '' Null '' Null 12",
            "c.z 3 Null 'é' '\0\u{fffd}' 'text' 13",
            "c.z 4 v*100 w*300 b*300 l*300 14",
            "c.z 4 'changed' w*300 b*300 L*70000 14",
            "c.z 2 '' Null '' Null 12",
            "c.plain 1 'kept'",
            "c.e 1 0.12345678901234567890123456789012345678 \
             -123456789012345678901234567.99999999999999999999999999999999999999 \
             123456789.1234567890123456789012345678901",
            "c.e 2 0.00000000000000000000000000000000000000 0.00000000000000000000000000000000000000 \
             0.0000000000000000000000000000000",
            "c.e 3 -0.00000000000000000000000000000000000001 Null -1.0000000000000000000000000000000",
        ]
    );
    let verdict = verify(memory(&mariadb("columns.000001")), 2, &mut |_| {}).unwrap();
    assert_eq!((verdict.problems(), verdict.findings.rows), (&[][..], changes.len() as u64));
}

#[test]
fn damaged_compressed_rows_are_named_and_all_others_come_out() {
    let log = planted(&mariadb("compressed.000001"), 167, |event| event[40] ^= 0x55);
    let (changes, unread) = read(&log);
    assert_eq!(changes.len(), 12);
    let [line] = &unread[..] else { panic!("{unread:?}") };
    assert!(line.contains(": type 0xa7 event: zlib stream: content is "), "{line}");
    let verdict = verify(memory(&log), 2, &mut |_| {}).unwrap();
    assert_eq!((verdict.findings.problem_count, verdict.findings.rows), (1, 12));
}

#[test]
fn an_unknown_column_type_costs_only_its_own_table() {
    // The BLOB of c.z, the first table map.
    let log = planted(&mariadb("columns.000001"), 19, |event| {
        let types = HEADER_SIZE + 8 + 3 + 3 + 1;
        assert_eq!(event[types..types + 6], [3, 141, 141, 140, 140, 3]);
        event[types + 3] = 0x77;
    });
    let (changes, unread) = read(&log);
    // Only the first statement is mapped so: three rows of one event.
    assert_eq!(changes.len() + 3, read(&mariadb("columns.000001")).0.len());
    let [line] = &unread[..] else { panic!("{unread:?}") };
    assert!(line.contains(": WriteRowsV1 event of c.z: column 4: "), "{line}");
    assert!(line.ends_with("column type is 0x77, expected one that rows hold"), "{line}");
    let verdict = verify(memory(&log), 2, &mut |_| {}).unwrap();
    assert_eq!(verdict.findings.problem_count, 1);
    assert!(verdict.problems()[0].what.starts_with("the rows of c.z can't be decoded: column 4: "));
}

#[test]
fn no_row_comes_out_of_an_event_whose_last_row_does_not_fit() {
    let (changes, unread) = read(&mariadb("old-temporals.000001"));
    let tables: Vec<_> = changes.iter().map(RowChange::table_name).collect();
    assert_eq!(tables, ["o.o0", "o.o0", "o.plain"]);
    assert!(unread.iter().any(|line| line.contains(" event of o.o2: ")), "{unread:?}");
    assert!(unread.iter().any(|line| line.contains(" event of o.o6: ")), "{unread:?}");
}

#[test]
fn unknown_events_and_incidents_are_named_in_payloads_too() {
    let incident =
        IncidentEvent { incident: Incident::LOST_EVENTS, message: b"no disk", inner_checksum: None };
    let incident = incident.encode().unwrap();
    let mut builder = LogBuilder::new(Release { types: 120, ..Release::MYSQL_9_7 });
    builder.transaction(&[b"one"]);
    builder.event(EventType(99), b"tomorrow");
    builder.event(EventType::INCIDENT, &incident);
    let inside = [inner_transaction(&[b"two"]), inner_event(EventType(99), b"tomorrow")].concat();
    builder.payload(&PayloadBody::zstd(&inside));
    builder.transaction(&[b"three"]);
    let log = builder.take();
    let (changes, unread) = read(&log);
    assert_eq!(changes.len(), 3);
    let [first, second] = &unread[..] else { panic!("{unread:?}") };
    assert!(first.contains(": type 0x63 event: its type may hold changes"), "{first}");
    assert!(first.ends_with(" (and 1 more like it)"), "the one in the payload: {first}");
    assert!(second.ends_with(": Incident event: the server lost changes here (LOST_EVENTS: no disk)"));
    let verdict = verify(memory(&log), 2, &mut |_| {}).unwrap();
    let whats: Vec<_> = verdict.problems().iter().map(|problem| problem.what.as_str()).collect();
    assert!(whats.contains(&"the server lost changes here (LOST_EVENTS: no disk)"), "{whats:?}");
    assert_eq!(
        whats.iter().filter(|what| **what == "an event of unknown type may not be ignored").count(),
        2
    );
}

#[test]
fn real_logs_of_mysql_leave_nothing_unread() {
    for file in corpus::binlogs() {
        assert_eq!(read(&file.read()).1, [] as [&str; 0], "{}", file.name);
    }
}
