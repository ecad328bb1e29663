//! Law 4: false claims in a log stop the job where they are found; merely unusual content does not.

use binlogz_binlog::event::CompressionType;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{ChecksumAlgorithm, EventType, HeaderFlags};
use binlogz_flow::{Rewrite, verify};
use binlogz_payload::Ineligible;
use binlogz_testkit::builder::{
    ContentSize, LogBuilder, PayloadBody, Release, inner_event, inner_transaction, query, zstd_frame,
};
use binlogz_testkit::corpus;

use super::support::{compress, compression, error_of, events, expand, is_soak, places, run, same};

const VALUES: [&[u8]; 2] = [&[7; 500], b"another value"];

fn inner() -> Vec<u8> {
    inner_transaction(&VALUES)
}

/// The payload between two plain transactions.
fn log_with(payload: &PayloadBody) -> LogBuilder {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.event(EventType::PREVIOUS_GTIDS, &[0; 8]);
    log.transaction(&[b"before"]).payload(payload).transaction(&[b"behind"]);
    log
}

/// Expand and verify stop at the payload with this message; compress does not open it.
#[track_caller]
fn refused(payload: &PayloadBody, words: &str) {
    let log = log_with(payload);
    let event = events(log.bytes()).into_iter().find(|event| event.is(EventType::TRANSACTION_PAYLOAD));
    let place = format!("at {}: ", event.expect("it was just written").offset);
    let error = error_of(log.bytes(), Rewrite::Expand);
    assert!(error.starts_with(&place) && error.contains(words), "{error:?} lacks {words:?} or {place:?}");
    let of_verify = match verify(places(log.bytes()), 2, &mut |_| {}) {
        Ok(verdict) => verdict.problems().first().map(ToString::to_string),
        Err(error) => Some(error.to_string()),
    };
    assert!(of_verify.as_ref().is_some_and(|error| error.contains(words)), "verify says {of_verify:?}");
    let (compressed, summary) = run(places(log.bytes()), compression(3), 2).expect("nothing to stop at");
    assert_eq!(summary.tally.changed, 2);
    assert_eq!(summary.tally.left().collect::<Vec<_>>(), [(Ineligible::AlreadyCompressed, 1)]);
    assert!(error_of(&compressed, Rewrite::Expand).contains(words));
}

/// Expand gives the transaction that the payload holds.
#[track_caller]
fn accepted(payload: &PayloadBody) {
    let mut plain = LogBuilder::new(Release::MYSQL_9_7);
    plain.event(EventType::PREVIOUS_GTIDS, &[0; 8]);
    plain.transaction(&[b"before"]).transaction(&VALUES).transaction(&[b"behind"]);
    let log = log_with(payload);
    same("payload", "expand", &expand(log.bytes()), plain.bytes());
    same("payload", "compress and expand", &expand(&compress(log.bytes(), 3)), plain.bytes());
}

#[test]
fn sizes_beside_the_payload_are_not_believed() {
    for uncompressed_size in [None, Some(0), Some(1), Some(1 << 40), Some(u64::MAX)] {
        accepted(&PayloadBody { uncompressed_size, ..PayloadBody::zstd(&inner()) });
    }
    let honest = PayloadBody::zstd(&inner());
    let size = honest.payload.len() as u64;
    refused(&PayloadBody { payload_size: Some(size + 1), ..honest.clone() }, "payload needs");
    refused(&PayloadBody { payload_size: Some(u64::MAX), ..honest.clone() }, "payload needs");
    refused(&PayloadBody { payload_size: Some(size - 1), ..honest.clone() }, "ends inside a zstd frame");
    refused(&PayloadBody { payload_size: Some(0), ..honest.clone() }, "number of events is 0");
    refused(&PayloadBody { payload_size: None, ..honest.clone() }, "payload size is absent");
    refused(&PayloadBody { compression_type: None, ..honest }, "compression type is absent");
}

#[test]
fn fields_that_never_end_are_refused() {
    let mut endless = Vec::new();
    for _ in 0..70_000 {
        endless.put(&[99, 0]);
    }
    refused(
        &PayloadBody {
            compression_type: None,
            payload_size: None,
            uncompressed_size: None,
            payload: endless,
            trailing: Vec::new(),
        },
        "absent",
    );
}

#[test]
fn bytes_behind_the_payload_are_passed_over() {
    accepted(&PayloadBody { trailing: vec![0xff; 1000], ..PayloadBody::zstd(&inner()) });
}

#[test]
fn frames_may_be_many_and_say_nothing_of_their_size() {
    let inner = inner();
    let of = |frames: &[Vec<u8>]| PayloadBody::of(CompressionType::ZSTD, None, frames.concat());
    accepted(&of(&[zstd_frame(&inner, ContentSize::Unknown)]));
    for cut in [1, 19, 30, inner.len() - 1] {
        // An event may begin in one frame and end in the next.
        let (front, back) = inner.split_at(cut);
        accepted(&of(&[zstd_frame(front, ContentSize::Told), zstd_frame(back, ContentSize::Unknown)]));
    }
    let empty = zstd_frame(&[], ContentSize::Told);
    accepted(&of(&[empty.clone(), zstd_frame(&inner, ContentSize::Told), empty.clone()]));
    // One that readers have to skip.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    accepted(&of(&[skippable, zstd_frame(&inner, ContentSize::Told)]));
    refused(&of(&[empty]), "number of events is 0");
    refused(&of(&[]), "number of events is 0");
}

#[test]
fn payloads_that_are_not_compressed_are_opened() {
    accepted(&PayloadBody::none(&inner()));
    let cut = inner().len() - 1;
    refused(&PayloadBody::none(&inner()[..cut]), "ends inside an event");
    refused(&PayloadBody::none(&[]), "number of events is 0");
}

#[test]
fn unknown_compression_types_are_refused() {
    for compression_type in [1, 77, 254, 256, u64::MAX] {
        let payload = PayloadBody { compression_type: Some(compression_type), ..PayloadBody::zstd(&inner()) };
        refused(
            &payload,
            &format!("compression type is {compression_type:#x}, expected 0 (ZSTD) or 255 (NONE)"),
        );
    }
}

#[test]
fn damaged_frames_are_refused() {
    let honest = PayloadBody::zstd(&inner());
    for cut in [1, 3, 5, honest.payload.len() / 2, honest.payload.len() - 1] {
        let payload = honest.payload[..cut].to_vec();
        refused(&PayloadBody::of(CompressionType::ZSTD, None, payload), "zstd: ");
    }
    refused(&PayloadBody::of(CompressionType::ZSTD, None, b"no frame at all".to_vec()), "zstd: ");
    let garbage = [&honest.payload[..], b"no second frame"].concat();
    refused(&PayloadBody::of(CompressionType::ZSTD, None, garbage), "zstd: ");
    // A frame with its own checksum, which is wrong.
    let mut frame = zstd_frame(&inner(), ContentSize::Told);
    frame[4] |= 4;
    frame.extend([1, 2, 3, 4]);
    refused(&PayloadBody::of(CompressionType::ZSTD, None, frame), "zstd: ");
}

/// A frame of a single empty block that asks for a window of `2^log` bytes.
fn frame_with_window(log: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 1, 0, 0]
}

#[test]
fn windows_of_the_servers_largest_level_are_the_largest() {
    let with = |log| [frame_with_window(log), zstd_frame(&inner(), ContentSize::Told)].concat();
    accepted(&PayloadBody::of(CompressionType::ZSTD, None, with(27)));
    refused(&PayloadBody::of(CompressionType::ZSTD, None, with(28)), "zstd: ");
    refused(&PayloadBody::of(CompressionType::ZSTD, None, with(41)), "zstd: ");
}

#[test]
fn what_stands_inside_is_looked_at() {
    let begin = inner_event(EventType::QUERY, &query("BEGIN"));
    let nested = inner_event(EventType::TRANSACTION_PAYLOAD, &PayloadBody::zstd(&inner()).encode());
    let gtid = inner_event(EventType::GTID, &[1; 42]);
    let description = inner_event(EventType::FORMAT_DESCRIPTION, &[4; 100]);
    let unannounced = inner_event(EventType(43), b"of tomorrow");
    let cases = [
        (nested, "event inside is TransactionPayload, expected no nested payload"),
        (gtid, "event inside is Gtid, expected no GTID event"),
        (description, "event type is FormatDescription"),
        (unannounced, "event type is 43"),
    ];
    for (event, words) in cases {
        refused(&PayloadBody::zstd(&event), words);
        refused(&PayloadBody::zstd(&[begin.clone(), event.clone()].concat()), words);
        refused(&PayloadBody::none(&[begin.clone(), event].concat()), words);
    }
}

#[test]
fn sizes_of_events_inside_are_held_against_what_is_there() {
    for size in [0u32, 18, 1 << 30 | 1, u32::MAX] {
        let mut events = inner();
        events[9..13].copy_from_slice(&size.to_le_bytes());
        refused(&PayloadBody::zstd(&events), "event size is");
    }
    // With room for a header, not for what it says.
    let mut events = inner();
    events[9..13].copy_from_slice(&(1u32 << 30).to_le_bytes());
    let error = error_of(log_with(&PayloadBody::zstd(&events)).bytes(), Rewrite::Expand);
    assert!(error.contains("event size is 1073741828, expected at most 1 GiB"), "{error}");
    events[9..13].copy_from_slice(&(100_000u32).to_le_bytes());
    refused(&PayloadBody::zstd(&events), "ends inside an event");
    let cut = inner();
    for length in [1, 18, 19, cut.len() - 1] {
        refused(&PayloadBody::zstd(&cut[..length]), "ends inside an event");
    }
}

#[test]
fn a_payload_belongs_behind_a_gtid_event() {
    let body = PayloadBody::zstd(&inner()).encode();
    let misplaced: [fn(&mut LogBuilder); 3] = [
        |_| {},
        |log| {
            log.transaction(&[b"whole"]);
        },
        |log| {
            log.gtid(10).event(EventType::QUERY, &query("BEGIN"));
        },
    ];
    for before in misplaced {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        before(&mut log);
        let offset = log.offset();
        log.event(EventType::TRANSACTION_PAYLOAD, &body);
        let error = error_of(log.bytes(), Rewrite::Expand);
        assert!(error.starts_with(&format!("at {offset}: ")), "{error}");
        assert!(error.contains("not after a GTID event"), "{error}");
        run(places(log.bytes()), compression(3), 2).expect("it is not opened");
    }
}

#[test]
fn a_payload_that_the_format_description_does_not_announce_is_refused() {
    let mut log = LogBuilder::new(Release::MYSQL_5_7);
    log.payload(&PayloadBody::zstd(&inner()));
    for how in [Rewrite::Expand, compression(3)] {
        let error = error_of(log.bytes(), how);
        assert!(
            error.contains("event type is 40, expected a type that the format description announces"),
            "{error}"
        );
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let file = corpus::binlogs().into_iter().find(|file| file.name == "corpus/binlog.000004");
    let log = file.expect("a fixture").read();
    let all = events(&log);
    for byte in 0..log.len() {
        // The in-use flag is no part of any checksum: closing a file rewrites it.
        let in_use = byte == 4 + 17;
        let mut bad = log.clone();
        bad[byte] ^= if in_use { 2 } else { 1 << (byte % 8) };
        let begin = all.iter().rev().find(|event| event.offset <= byte).map_or(0, |event| event.offset);
        let mut rewrites = [Rewrite::Expand, compression(1)];
        // In turn; both in `make soak`.
        rewrites.rotate_left(byte % 2);
        let count = if is_soak() { 2 } else { 1 };
        for how in rewrites.into_iter().take(count) {
            let Err(error) = run(places(&bad), how, 2) else { panic!("byte {byte} changed and not noticed") };
            let error = error.to_string();
            let place = format!("at {begin}: ");
            assert!(error.starts_with(&place) || byte < 4, "byte {byte}, event at {begin}: {error}");
        }
    }
}

#[test]
fn a_format_description_that_can_not_be_is_refused() {
    let fields: [(usize, &[u8], &str); 4] = [
        (0, &[3, 0], "binlog version is 3, expected 4"),
        (56, &[20], "header length is 20, expected 19"),
        (57 + 42, &[2], "checksum algorithm is 2"),
        (57 + 42, &[77], "checksum algorithm is 77"),
    ];
    for (offset, bytes, words) in fields {
        let mut log = LogBuilder::new(Release::MYSQL_9_7).bytes().to_vec();
        let size = log.len();
        log[4 + 19 + offset..][..bytes.len()].copy_from_slice(bytes);
        let crc = binlogz_binlog::checksum::crc32(&log[4..size - 4]);
        log[size - 4..].copy_from_slice(&crc.to_le_bytes());
        let error = error_of(&log, Rewrite::Expand);
        assert!(error.starts_with("at 4: ") && error.contains(words), "{error:?} lacks {words:?}");
    }
}

#[test]
fn what_is_no_binary_log_is_said_to_be_none() {
    for (bytes, words) in [
        (&b""[..], "is empty, expected a binary log"),
        (b"\xfe", "ends inside an event: 4 bytes expected, 1 are there"),
        (b"#!/bin/sh", "not a binary log: it begins with 23 21 2f 62"),
        (b"\xfdbin and more", "encrypted"),
        (b"\xfebin", "ends inside an event"),
    ] {
        for how in [Rewrite::Expand, compression(3)] {
            let error = error_of(bytes, how);
            assert!(error.contains(words), "{error:?} lacks {words:?}");
        }
    }
}

#[test]
fn events_without_checksums_are_still_held_against_their_sizes() {
    let mut log = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::NONE, HeaderFlags::default());
    log.transaction(&[b"a value"]);
    let first = events(log.bytes())[1].offset;
    for size in [0u32, 18, 1 << 31] {
        let mut bad = log.bytes().to_vec();
        bad[first + 9..first + 13].copy_from_slice(&size.to_le_bytes());
        let error = error_of(&bad, compression(3));
        assert!(error.starts_with(&format!("at {first}: event header: event size is {size}")), "{error}");
    }
}
