//! Every event of every real log in the corpus, those inside payloads too: decodes, encodes back
//! into the same bytes, and cut anywhere gives an error or a shorter event, never a panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use binlogz_binlog::event::{
    AnyEvent, CompressionType, FormatDescription, MetadataField, PostHeaderLengths, ServerFamily,
    StatusVariable,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventReader, EventType, MAGIC};
use binlogz_binlog::{EventFrame, Framing};

/// Bodies are cut at each byte up to here, and in their last bytes. In between are rows, statements and
/// payloads, which no decoder here reads.
const FRONT_CUTS: usize = 512;
const BACK_CUTS: usize = 16;
/// More than any payload of the corpus holds.
const PAYLOAD_SIZE_MAX: u64 = 256 << 20;

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/testkit/corpus");
    let mut folders = vec![folder];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the corpus is part of the tree") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read(&path).expect("a readable file").starts_with(&MAGIC) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Hands every event of the corpus to `look`, payloads opened.
fn each_event(mut look: impl FnMut(&EventFrame<'_>, &PostHeaderLengths, &str)) {
    for path in corpus() {
        let bytes = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut reader = EventReader::new(bytes.as_slice());
        let mut lengths = PostHeaderLengths::default();
        loop {
            let framing = reader.framing();
            let (offset, frame) = match reader.next_event() {
                Ok(Some(found)) => found,
                Ok(None) => break,
                // A log cut by a crash is part of the corpus; what comes before the cut counts.
                Err(error) if error.is_truncation() => break,
                Err(error) => panic!("{name}: {error}"),
            };
            let place = format!("{name} at {offset}");
            if frame.event_type() == EventType::FORMAT_DESCRIPTION {
                lengths = PostHeaderLengths::from(&FormatDescription::decode_frame(&frame).unwrap());
            }
            look(&frame, &lengths, &place);
            if frame.event_type() == EventType::TRANSACTION_PAYLOAD {
                each_inner_event(&frame, framing, &lengths, |inner| look(inner, &lengths, &place));
            }
        }
    }
}

fn each_inner_event(
    frame: &EventFrame<'_>,
    framing: Framing,
    lengths: &PostHeaderLengths,
    mut look: impl FnMut(&EventFrame<'_>),
) {
    let AnyEvent::TransactionPayload(event) = AnyEvent::decode(frame, lengths).unwrap() else {
        panic!("a payload decodes as such")
    };
    assert_eq!(event.header.compression_type(), CompressionType::ZSTD);
    let size = event.header.uncompressed_size().unwrap();
    assert!(size < PAYLOAD_SIZE_MAX, "a payload of {size} bytes does not belong into the corpus");
    let mut events = vec![0; size as usize];
    let written = zstd_safe::decompress(events.as_mut_slice(), event.payload).expect("real zstd");
    assert_eq!(written as u64, size);
    let mut rest = events.as_slice();
    while !rest.is_empty() {
        let inner =
            framing.inside_payload().next_frame(rest).unwrap().expect("whole events").verify().unwrap();
        look(&inner);
        rest = &rest[inner.bytes().len()..];
    }
}

#[test]
fn every_event_encodes_back_into_its_bytes() {
    let mut counts = BTreeMap::new();
    each_event(|frame, lengths, place| {
        let event = AnyEvent::decode(frame, lengths).unwrap_or_else(|error| panic!("{place}: {error}"));
        // MariaDB's own events are kept as they are.
        let is_mariadbs = frame.event_type() >= EventType::MARIADB_ANNOTATE_ROWS;
        assert!(is_mariadbs || !matches!(event, AnyEvent::Unknown(..)), "{place}: {:?}", frame.event_type());
        let body = event.encode(lengths).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(body, frame.body(), "{place}: {event:?}");
        *counts.entry(frame.event_type()).or_insert(0) += 1;
    });
    for event_type in [
        EventType::FORMAT_DESCRIPTION,
        EventType::QUERY,
        EventType::TABLE_MAP,
        EventType::WRITE_ROWS,
        EventType::UPDATE_ROWS,
        EventType::DELETE_ROWS,
        EventType::TRANSACTION_PAYLOAD,
        EventType::XID,
    ] {
        assert!(counts.contains_key(&event_type), "the corpus has no {event_type} event");
    }
}

#[test]
fn every_part_of_an_event_that_is_read_late_encodes_back_into_its_bytes() {
    let (mut variables, mut fields, mut columns, mut chunks) = (0, 0, 0, 0);
    each_event(|frame, lengths, place| match AnyEvent::decode(frame, lengths).unwrap() {
        AnyEvent::Query(event) => {
            let mut bytes = Vec::new();
            for variable in event.status_variables.iter() {
                let variable = variable.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert!(!matches!(variable, StatusVariable::Unknown(_)), "{place}: {variable:?}");
                variable.encode(&mut bytes).unwrap();
                variables += 1;
            }
            assert_eq!(bytes, event.status_variables.0, "{place}");
        }
        AnyEvent::TableMap(event) => {
            let mut bytes = Vec::new();
            for field in event.optional_metadata.iter() {
                let field = field.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert!(!matches!(field, MetadataField::Unknown { .. }), "{place}: {field:?}");
                field.encode(&mut bytes);
                fields += 1;
            }
            assert_eq!(bytes, event.optional_metadata.0, "{place}");
            let definitions = event
                .column_definitions(ServerFamily::Unknown)
                .unwrap_or_else(|error| panic!("{place}: {error}"));
            let metadata: Vec<u8> =
                definitions.iter().flat_map(|column| column.column.metadata).copied().collect();
            assert_eq!(metadata, event.column_metadata, "{place}: all metadata are dealt out");
            columns += definitions.len();
        }
        AnyEvent::Rows(event) => {
            let mut bytes = Vec::new();
            for chunk in event.extra_row_info() {
                chunk.unwrap().encode(&mut bytes).unwrap();
                chunks += 1;
            }
            assert_eq!(bytes, event.extra_data, "{place}");
        }
        _ => {}
    });
    assert!(variables > 0 && fields > 0 && columns > 0, "{variables} {fields} {columns} {chunks}");
}

#[test]
fn every_event_cut_anywhere_is_an_error_or_a_shorter_event() {
    each_event(|frame, lengths, place| {
        let body = frame.body();
        let front = 0..body.len().min(FRONT_CUTS);
        let back = body.len().saturating_sub(BACK_CUTS).max(front.end)..body.len();
        for cut in front.chain(back) {
            let header = EventHeader { event_type: frame.event_type(), ..*frame.header() };
            let bytes = encode_event(header, &body[..cut], ChecksumAlgorithm::NONE);
            let Ok(Some(found)) = Framing::new().next_frame(&bytes) else { continue };
            let Ok(found) = found.verify() else { continue };
            if let Ok(event) = AnyEvent::decode(&found, lengths) {
                read_late_parts(&event);
                assert!(event.encode(lengths).is_ok(), "{place} cut at {cut}: {event:?}");
            }
        }
    });
}

/// Reads what decoding defers; errors are fine, panics are not.
fn read_late_parts(event: &AnyEvent<'_>) {
    match event {
        AnyEvent::Query(event) => event.status_variables.iter().for_each(drop),
        AnyEvent::TableMap(event) => drop(event.column_definitions(ServerFamily::Unknown)),
        AnyEvent::Rows(event) => event.extra_row_info().for_each(drop),
        _ => {}
    }
}
