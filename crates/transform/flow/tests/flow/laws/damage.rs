//! Law 4: a checksum is never computed over bytes whose old one was not compared in the same pass. Each byte of a small
//! log is damaged in turn: at once, or only from its second, third or fourth reading on, as a disk may do it to bytes
//! that are too large to be held.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use binlogz_binlog::event::PostHeaderLengths;
use binlogz_binlog::{ChecksumAlgorithm, Framing, MAGIC};
use binlogz_flow::{BatchSize, Error, Input, Memory, ReadAt, Rewrite, Rewriter};
use binlogz_payload::{
    CompressOptions, LogContext, PositionWriter, RewrittenPiece, RewrittenSpan, Spool, SpoolMemory,
};
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};

use super::support::{append_from, compression, events, options, places, rewritten, run};

/// Batches as usual, and such that every transaction is too large to be held.
const BATCHES: [BatchSize; 2] =
    [BatchSize { target: 1 << 20, max: 1 << 20 }, BatchSize { target: 64, max: 64 }];

/// Plain transactions, a server's payloads, and with `ours` payloads of our own instead of the plain ones.
fn log(ours: bool) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    log.transaction(&[&[1; 40], b"more"]).payload(&PayloadBody::zstd(&inner_transaction(&[&[2; 60]])));
    log.transaction(&[&[3; 20]]).payload(&PayloadBody::none(&inner_transaction(&[b"four"])));
    let log = log.take();
    match ours {
        true => rewritten(&log, Rewrite::Compress(CompressOptions { mark_frames: true, ..options(3) })),
        false => log,
    }
}

/// A log of which one byte is another one from some reading on.
struct Decaying {
    bytes: Vec<u8>,
    at: usize,
    /// How often it was read.
    readings: AtomicU32,
    good: u32,
}

impl ReadAt for Decaying {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.bytes.read_at(buffer, offset)?;
        let byte = self.at.checked_sub(offset as usize).and_then(|at| buffer[..count].get_mut(at));
        if let Some(byte) = byte
            && self.readings.fetch_add(1, Ordering::Relaxed) >= self.good
        {
            *byte = flipped(*byte, self.at);
        }
        Ok(count)
    }

    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        append_from(self, buffer, offset)
    }
}

/// The in-use flag is no part of any checksum: closing a file rewrites it.
fn flipped(byte: u8, at: usize) -> u8 {
    byte ^ if at == 4 + 17 { 2 } else { 1 << (at % 8) }
}

fn run_within(input: Input, how: Rewrite, batch: BatchSize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    // Nothing of what is made is held either where batches are small.
    let spools = if batch.max > 64 { 1 << 20 } else { 0 };
    let memory = Memory::new(1, batch, spools);
    Rewriter::new(how).memory(&memory).run(input, &mut out)?;
    Ok(out)
}

/// Every event with a valid checksum is the one that stood there; whether they all are.
#[track_caller]
fn check(what: &str, got: &[u8], whole: &[u8]) -> bool {
    let begin = events(whole)[0].end();
    let framing = Framing::with_checksum(ChecksumAlgorithm::CRC32);
    assert_eq!(got[..begin], whole[..begin], "{what}: the format description");
    let mut at = begin;
    while let Ok(Some(frame)) = framing.next_frame(&got[at..]) {
        let size = frame.header().event_size as usize;
        if let Ok(frame) = frame.verify() {
            let same = whole[at..].starts_with(frame.bytes());
            assert!(same, "{what}: at {at} a changed event with a valid checksum: {:?}", frame.header());
        }
        at += size;
    }
    got == whole
}

#[test]
fn no_damaged_byte_is_given_a_valid_checksum() {
    let rewrites = [Rewrite::Expand, compression(1), Rewrite::Recompress(options(1))];
    for ours in [false, true] {
        let log = log(ours);
        for how in rewrites {
            for batch in BATCHES {
                let whole = run_within(places(&log), how, batch).unwrap();
                let (mut noticed, mut missed) = (0, 0);
                for at in 0..log.len() {
                    // Held batches are read once; of the others every fifth byte will do.
                    let goods = if batch.max > 64 || at % 5 > 0 { 0..1 } else { 0..4 };
                    for good in goods {
                        let readings = AtomicU32::new(0);
                        let bytes = Arc::new(Decaying { bytes: log.clone(), at, readings, good });
                        let what =
                            format!("{how:?} of {} {batch:?}, byte {at}, {good} good readings", log.len());
                        match run_within(Input::Places(bytes), how, batch) {
                            Ok(got) if check(&what, &got, &whole) => missed += u32::from(good == 0),
                            Ok(_) | Err(_) => noticed += 1,
                        }
                    }
                }
                assert_eq!(missed, 0, "{how:?} {batch:?}: bytes changed and not noticed");
                assert!(noticed >= log.len(), "{how:?} {batch:?}");
            }
        }
    }
}

#[test]
fn a_pipe_that_brings_damage_is_refused() {
    let log = log(false);
    for how in [Rewrite::Expand, compression(1)] {
        for at in 0..log.len() {
            let mut bad = log.clone();
            bad[at] = flipped(bad[at], at);
            let input = Input::Stream(Box::new(io::Cursor::new(bad)));
            assert!(run(input, how, 1).is_err(), "{how:?}, byte {at}");
        }
    }
}

#[test]
fn an_event_that_only_moves_keeps_a_wrong_checksum_wrong() {
    let log = log(false);
    let first = events(&log)[1].offset;
    let context = LogContext {
        framing: Framing::with_checksum(ChecksumAlgorithm::CRC32),
        post_header_lengths: PostHeaderLengths::default(),
        relay_log: false,
    };
    let moved = |bytes: &[u8], in_memory: bool| {
        let memory = SpoolMemory::new(if in_memory { 1 << 20 } else { 0 });
        let none = Spool::new(&memory, Vec::new());
        let mut rewritten = RewrittenPiece::new(first as u64, context, none, false);
        rewritten.spans.push(RewrittenSpan::Plain(0..bytes.len() as u64));
        let mut out = Vec::new();
        let mut writer = PositionWriter::resume(&mut out, first as u64 + 1000, false);
        let written = match in_memory {
            true => writer.write(&mut rewritten, &mut bytes.to_vec(), |_, _| {}),
            false => writer.write(&mut rewritten, &mut Unheld(bytes), |_, _| {}),
        };
        let written = written.and_then(|()| writer.finish());
        written.map(|()| [&log[..first], &out].concat())
    };
    for in_memory in [true, false] {
        let whole = moved(&log[first..], in_memory).unwrap();
        assert!(
            events(&whole)
                .iter()
                .skip(1)
                .all(|event| event.header.end_log_pos as usize == event.end() + 1000)
        );
        for at in first..log.len() {
            let mut bad = log.clone();
            bad[at] = flipped(bad[at], at);
            let what = format!("byte {at}, in memory: {in_memory}");
            if let Ok(got) = moved(&bad[first..], in_memory) {
                assert!(!check(&what, &got, &whole), "{what}: not to be seen");
            }
        }
    }
    assert!(log.starts_with(&MAGIC));
}

/// Bytes that are read again when they are written.
struct Unheld<'a>(&'a [u8]);

impl binlogz_payload::PieceBytes for Unheld<'_> {
    fn in_memory(&mut self, _: std::ops::Range<u64>) -> Option<&mut [u8]> {
        None
    }

    fn reader(&mut self, range: std::ops::Range<u64>) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(&self.0[range.start as usize..range.end as usize]))
    }
}
