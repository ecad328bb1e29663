//! The fuzz targets as functions: each takes any bytes, must not panic, and asserts what must hold of what it accepts.
//!
//! `fuzz_targets/` hands them to cargo fuzz; `src/bin/smoke.rs` feeds them with mutations of real logs.

use std::str::FromStr;
use std::sync::Arc;

use binlogz_binlog::event::{Event, PostHeaderLengths, TableMapEvent};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventReader, EventType, Framing, HeaderFlags};
use binlogz_flow::{Input, Rewrite, rewrite};
use binlogz_testkit::builder::{LogBuilder, Release};

/// A target: its name and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 5] = [
    ("frame", frame),
    ("event", event),
    ("gtid_set", gtid_set),
    ("table_map", table_map),
    ("payload", payload),
];

/// A log, event by event: every frame is its own bytes.
pub fn frame(bytes: &[u8]) {
    let mut reader = EventReader::new(bytes);
    while let Ok(Some((offset, frame))) = reader.next_event() {
        let offset = offset as usize;
        assert_eq!(frame.bytes().len(), frame.header().event_size as usize);
        assert_eq!(bytes.get(offset..offset + frame.bytes().len()), Some(frame.bytes()));
    }
}

/// The first byte is a type, the rest a body: what decodes encodes into something that decodes to the same.
pub fn event(bytes: &[u8]) {
    let Some((event_type, body)) = bytes.split_first() else { return };
    if EventType(*event_type) == EventType::FORMAT_DESCRIPTION {
        return; // where its body ends depends on its version: `frame` reads whole ones
    }
    let lengths = PostHeaderLengths::default();
    let encoded = with_event(EventType(*event_type), body, &lengths, |event| event.encode(&lengths).ok());
    let Some(Some(encoded)) = encoded else { return };
    let again = with_event(EventType(*event_type), &encoded, &lengths, |event| event.encode(&lengths).ok());
    assert_eq!(again.flatten().as_deref(), Some(encoded.as_slice()), "{event_type}");
}

fn with_event<T>(
    event_type: EventType,
    body: &[u8],
    lengths: &PostHeaderLengths,
    then: impl FnOnce(&Event<'_>) -> T,
) -> Option<T> {
    let header = EventHeader {
        timestamp: 0,
        event_type,
        server_id: 0,
        event_size: 0,
        end_log_pos: 0,
        flags: HeaderFlags::default(),
    };
    let bytes = encode_event(header, body, ChecksumAlgorithm::NONE);
    let frame = Framing::new().next_frame(&bytes).ok()??.trust().ok()?;
    Event::decode(&frame, lengths).ok().map(|event| then(&event))
}

/// A GTID set as text and as bytes: both ways back, and the algebra agrees with itself.
pub fn gtid_set(bytes: &[u8]) {
    if let Ok((set, format)) = GtidSet::decode(bytes) {
        let mut encoded = Vec::new();
        set.encode(format, &mut encoded);
        assert_eq!(GtidSet::decode(&encoded).expect("it was just encoded").0, set);
        text(&set);
    }
    if let Some(set) = std::str::from_utf8(bytes).ok().and_then(|text| GtidSet::from_str(text).ok()) {
        text(&set);
    }
}

fn text(set: &GtidSet) {
    assert_eq!(&GtidSet::from_str(&set.to_string()).expect("it was just printed"), set);
}

/// The body of a table map: everything that is read late is read too.
pub fn table_map(bytes: &[u8]) {
    let Ok(event) = TableMapEvent::decode(bytes, 8) else { return };
    event.columns().for_each(drop);
    event.optional_metadata.iter().for_each(drop);
    let _ = event.column_definitions();
    let encoded = event.encode(8).expect("it was just decoded");
    assert_eq!(TableMapEvent::decode(&encoded, 8).expect("it was just encoded"), event);
}

/// The body of a payload event in a log: expanded, compressed and expanded, it is what it was.
pub fn payload(bytes: &[u8]) {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.gtid(100).event(EventType::TRANSACTION_PAYLOAD, bytes);
    let Some(plain) = rewritten(log.take(), Rewrite::Expand) else { return };
    let compressed =
        rewritten(plain.clone(), Rewrite::Compress(Default::default())).expect("it was just written");
    assert!(rewritten(compressed, Rewrite::Expand).as_deref() == Some(plain.as_slice()));
}

fn rewritten(log: Vec<u8>, how: Rewrite) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    rewrite(Input::Places(Arc::new(log)), &mut out, how, 1, None, &mut |_| {}).ok()?;
    Some(out)
}
