//! Walks over all 256 type codes: what the table of event types says of each, and what code that asks the table answers.
//!
//! `event_types.txt` has a line for each type that isn't unknown. Run with `UPDATE_GOLDEN=1` to write it anew.

use std::fmt::Write;
use std::path::Path;

use binlogz_binlog::event::{CompressedEvent, PostHeaderLengths, RowsEvent};
use binlogz_binlog::show_events::event_type_name;
use binlogz_binlog::transaction::TransactionBoundaryParser;
use binlogz_binlog::{ChangeContent, EventClass, EventHeader, EventType, HeaderFlags};
use binlogz_testkit::assert_golden;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/binlog/event_types.txt");

#[test]
fn the_table_says_of_each_type_what_it_said() {
    let mut text = String::new();
    for event_type in all().filter(|event_type| event_type.class() != EventClass::Unknown) {
        writeln!(
            text,
            "{:>3} {:<18} {:<24} {:<19} {:<7} {}",
            event_type.0,
            event_type.name().unwrap_or("-"),
            event_type_name(event_type),
            format!("{:?}", event_type.class()),
            format!("{:?}", event_type.changes()),
            in_transaction(event_type),
        )
        .unwrap();
    }
    assert_golden(Path::new(GOLDEN), &text);
}

#[test]
fn a_code_that_no_server_has_may_hold_anything() {
    for event_type in all().filter(|event_type| event_type.class() == EventClass::Unknown) {
        assert_eq!(event_type.name(), None, "{}", event_type.0);
        assert_eq!(event_type_name(event_type), "Unknown", "{}", event_type.0);
        assert_eq!(event_type.changes(), ChangeContent::Unread, "{}", event_type.0);
        assert_eq!(in_transaction(event_type), "Inside, foreign, UnknownEvent", "{}", event_type.0);
    }
}

#[test]
fn what_reads_rows_and_compressed_events_knows_the_types_that_the_table_names() {
    let lengths = PostHeaderLengths::default();
    for event_type in all() {
        let class = event_type.class();
        let refused = |error: String| error.contains("event type is ");
        let rows = RowsEvent::decode(event_type, b"", lengths.of(event_type)).unwrap_err().to_string();
        assert_eq!(!refused(rows), class == EventClass::Rows, "{event_type}");
        let is_compressed = matches!(class, EventClass::CompressedStatement | EventClass::CompressedRows);
        assert_eq!(event_type.mariadb_expanded().is_some(), is_compressed, "{event_type}");
        if let Some(expanded) = event_type.mariadb_expanded() {
            let expected =
                if class == EventClass::CompressedRows { EventClass::Rows } else { EventClass::Statement };
            assert_eq!(expanded.class(), expected, "{event_type}");
        }
        let compressed = CompressedEvent::decode(event_type, b"", &lengths).unwrap_err().to_string();
        assert_eq!(!refused(compressed), is_compressed, "{event_type}");
    }
}

fn all() -> impl Iterator<Item = EventType> {
    (0..=u8::MAX).map(EventType)
}

/// The meaning of a type after a GTID event, without a body.
fn in_transaction(event_type: EventType) -> String {
    let mut parser = TransactionBoundaryParser::new();
    parser.feed(&header(EventType::GTID), b"");
    let placement = parser.feed(&header(event_type), b"");
    let content = parser.content();
    let mut text = format!("{:?}", placement.boundary);
    for (is, name) in [
        (content.with_rbr, "rows"),
        (content.with_sbr, "statements"),
        (content.with_payload, "payload"),
        (content.with_incident, "incident"),
        (content.with_foreign, "foreign"),
    ] {
        if is {
            write!(text, ", {name}").unwrap();
        }
    }
    if let Some(malformed) = placement.malformed {
        write!(text, ", {malformed:?}").unwrap();
    }
    text
}

fn header(event_type: EventType) -> EventHeader {
    EventHeader {
        timestamp: 0,
        event_type,
        server_id: 1,
        event_size: 19,
        end_log_pos: 0,
        flags: HeaderFlags::default(),
    }
}
