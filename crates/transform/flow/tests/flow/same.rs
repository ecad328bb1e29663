//! Logs with the same meaning are the same; others differ at the first event that means something else.

use std::io::{self, Read};
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::checksum::crc32;
use binlogz_flow::same::{Comparison, UnreadableLog};
use binlogz_flow::{Input, Rewrite, Rewriter, same};
use binlogz_payload::CompressOptions;
use binlogz_testkit::corpus;

fn compare(a: &[&[u8]], b: &[&[u8]]) -> Result<Comparison, Box<UnreadableLog>> {
    same([a, b], |log| Ok(Input::Places(Arc::new(log.to_vec()))), &mut |_| {})
}

fn rewritten(log: &[u8], how: Rewrite) -> Vec<u8> {
    let mut out = Vec::new();
    Rewriter::new(how).workers(1).run(Input::Places(Arc::new(log.to_vec())), &mut out).unwrap();
    out
}

fn compressed(log: &[u8]) -> Vec<u8> {
    rewritten(log, Rewrite::Compress(CompressOptions::default()))
}

fn sample(name: &str) -> Vec<u8> {
    let samples = corpus::samples();
    samples.iter().find(|sample| sample.name == name).unwrap().read()
}

#[test]
fn compressed_and_expanded_logs_mean_the_same() {
    for log in corpus::binlogs() {
        let bytes = log.read();
        for other in [compressed(&bytes), rewritten(&bytes, Rewrite::Expand)] {
            let comparison = compare(&[&bytes], &[&other]).unwrap();
            assert!(comparison.difference.is_none(), "{}: {:?}", log.name, comparison.difference);
        }
    }
}

#[test]
fn it_does_not_matter_where_a_log_is_cut_into_files() {
    let (first, second) = (sample("samples/plain/binlog.000004"), sample("samples/plain/binlog.000005"));
    let joined = [compressed(&first), second.clone()].concat();
    let comparison = compare(&[&first, &second], &[&joined]).unwrap();
    assert!(comparison.difference.is_none(), "{:?}", comparison.difference);
    assert_eq!(comparison.transactions, 345);
}

#[test]
fn a_stream_that_comes_in_small_pieces_is_the_same() {
    struct Trickle(io::Cursor<Vec<u8>>);
    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..13])
        }
    }
    let log = sample("samples/compressed/binlog.000009");
    let open = |trickle: &bool| {
        let bytes = log.clone();
        Ok(if *trickle {
            Input::Stream(Box::new(Trickle(io::Cursor::new(bytes))))
        } else {
            Input::Places(Arc::new(bytes))
        })
    };
    let comparison = same([&[true], &[false]], open, &mut |_| {}).unwrap();
    assert!(comparison.difference.is_none(), "{:?}", comparison.difference);
}

/// The offsets and types of the events of a log without payloads.
fn events(log: &[u8]) -> Vec<(usize, EventType, usize)> {
    let mut events = Vec::new();
    let mut offset = 4;
    while offset < log.len() {
        let size = u32::from_le_bytes(log[offset + 9..offset + 13].try_into().unwrap()) as usize;
        events.push((offset, EventType(log[offset + 4]), size));
        offset += size;
    }
    events
}

fn mend_checksum(event: &mut [u8]) {
    let covered = event.len() - 4;
    let crc = crc32(&event[..covered]).to_le_bytes();
    event[covered..].copy_from_slice(&crc);
}

#[test]
fn every_changed_event_is_found_at_its_place() {
    let log = sample("samples/plain/binlog.000009");
    let packed = compressed(&log);
    let mut found_in_payload = 0;
    for (offset, event_type, size) in events(&log) {
        if binlogz_flow::same::belongs_to_file(event_type) || event_type.is_gtid() {
            continue;
        }
        // timestamp, server id, flags, the last byte of the body.
        for (byte, what) in [
            (0, "the timestamps differ"),
            (5, "the server ids differ"),
            (17, "the flags differ"),
            (size - 5, "the bodies differ"),
        ] {
            let mut changed = log.clone();
            changed[offset + byte] ^= 4;
            mend_checksum(&mut changed[offset..offset + size]);
            let comparison = compare(&[&packed], &[&changed]).unwrap();
            let difference = comparison.difference.expect("a difference");
            assert_eq!(difference.what(), what);
            let [Some(a), Some(b)] = difference.found else { panic!("one side ended") };
            assert_eq!(b.place.offset, offset as u64);
            assert_eq!(a.header.event_type, event_type);
            assert_eq!((a.gtid, a.body_size), (b.gtid, b.body_size));
            found_in_payload += u32::from(a.place.payload_end_log_pos.is_some());
        }
    }
    assert!(found_in_payload > 50);
}

#[test]
fn a_missing_transaction_is_a_difference() {
    let log = sample("samples/plain/binlog.000005");
    let events = events(&log);
    let gtids: Vec<_> = events.iter().filter(|(_, event_type, _)| event_type.is_gtid()).collect();
    let (last, _, _) = **gtids.last().unwrap();
    let comparison = compare(&[&log], &[&log[..last]]).unwrap();
    assert_eq!(comparison.transactions, 299);
    let [Some(found), None] = comparison.difference.unwrap().found else { panic!("both have it") };
    assert_eq!(found.place.offset, last as u64);
    let (second, third) = (gtids[1].0, gtids[2].0);
    let without_second = [&log[..second], &log[third..]].concat();
    let difference = compare(&[&log], &[&without_second]).unwrap().difference.unwrap();
    let [Some(a), Some(b)] = &difference.found else { panic!("one side ended") };
    assert_eq!(difference.what(), "the GTIDs differ");
    assert_eq!((a.place.offset, b.place.offset), (second as u64, second as u64));
    assert_ne!(a.gtid, b.gtid);
}

#[test]
fn a_damaged_log_is_an_error_of_its_side() {
    let log = sample("samples/plain/binlog.000004");
    let mut damaged = log.clone();
    damaged[20_000] ^= 1;
    let trouble = compare(&[&log, &log], &[&log, &damaged]).unwrap_err();
    assert_eq!((trouble.side, trouble.log), (1, 1));
    assert!(trouble.error.to_string().contains("checksum is"), "{}", trouble.error);
}
