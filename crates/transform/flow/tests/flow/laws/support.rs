//! Helpers for the laws: both directions in memory, logs as events, comparisons that report the place.

use std::io::{self, Read};
use std::sync::Arc;

use binlogz_binlog::{EventHeader, EventReader, EventType};
use binlogz_flow::{Error, Input, ReadAt, Rewrite, RewriteSummary, Rewriter};
use binlogz_payload::{CompressOptions, CompressionLevel};

/// Threads where their number does not matter.
const WORKERS: usize = 2;

/// Whether this is the long form of `make soak`.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("BINLOGZ_SOAK").is_some()
}

pub(crate) fn compression(level: u32) -> Rewrite {
    Rewrite::Compress(options(level))
}

pub(crate) fn options(level: u32) -> CompressOptions {
    let level = CompressionLevel::new(level.into()).expect("1 to 22");
    CompressOptions { level, ..CompressOptions::default() }
}

pub(crate) fn places(bytes: &[u8]) -> Input {
    Input::Places(Arc::new(bytes.to_vec()))
}

pub(crate) fn stream(reader: impl Read + Send + 'static) -> Input {
    Input::Stream(Box::new(reader))
}

/// The new form of a log and the report on it.
pub(crate) fn run(input: Input, how: Rewrite, workers: usize) -> Result<(Vec<u8>, RewriteSummary), Error> {
    let mut out = Vec::new();
    let summary = Rewriter::new(how).workers(workers).run(input, &mut out)?;
    assert_eq!(summary.bytes_written, out.len() as u64);
    Ok((out, summary))
}

pub(crate) fn compress(bytes: &[u8], level: u32) -> Vec<u8> {
    rewritten(bytes, compression(level))
}

pub(crate) fn expand(bytes: &[u8]) -> Vec<u8> {
    rewritten(bytes, Rewrite::Expand)
}

/// The new form of a log without errors.
#[track_caller]
pub(crate) fn rewritten(bytes: &[u8], how: Rewrite) -> Vec<u8> {
    let (out, summary) = run(places(bytes), how, WORKERS).unwrap_or_else(|error| panic!("{how:?}: {error}"));
    let cut = summary.cut.map_or(0, |cut| cut.size);
    assert_eq!(summary.bytes_read + cut, bytes.len() as u64, "{how:?} skipped something");
    out
}

/// The error reported for a log.
#[track_caller]
pub(crate) fn error_of(bytes: &[u8], how: Rewrite) -> String {
    match run(places(bytes), how, WORKERS) {
        Ok((out, _)) => panic!("{how:?} made {} bytes of it", out.len()),
        Err(error) => error.to_string(),
    }
}

/// Fails with the place where two logs differ first.
#[track_caller]
pub(crate) fn same(name: &str, what: &str, got: &[u8], expected: &[u8]) {
    if got != expected {
        let at = got.iter().zip(expected).position(|(a, b)| a != b);
        let at = at.unwrap_or(got.len().min(expected.len()));
        let sizes = (got.len(), expected.len());
        panic!("{name}: {what}: {} bytes, expected {}; first difference at {at}", sizes.0, sizes.1);
    }
}

/// An event of a log.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) offset: usize,
    pub(crate) header: EventHeader,
    pub(crate) bytes: Vec<u8>,
    pub(crate) checksum_size: usize,
}

impl Event {
    pub(crate) fn end(&self) -> usize {
        self.offset + self.bytes.len()
    }

    pub(crate) fn is(&self, event_type: EventType) -> bool {
        self.header.event_type == event_type
    }
}

/// The whole events of one log.
pub(crate) fn events(log: &[u8]) -> Vec<Event> {
    let mut reader = EventReader::new(log);
    let mut events = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some((offset, frame))) => events.push(Event {
                offset: offset as usize,
                header: *frame.header(),
                bytes: frame.bytes().to_vec(),
                checksum_size: frame.checksum_size(),
            }),
            Ok(None) => return events,
            Err(error) if error.is_truncation() => return events,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The most bytes that [`append_from`] reads at a time.
const APPENDED_MAX: usize = 64 << 10;

/// What [`ReadAt::append_at`] does. Its own code for types without one fills all room with zeros first, byte by byte in an
/// unoptimised test: that took nearly all the time of tests over gigabytes.
pub(crate) fn append_from(places: &impl ReadAt, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
    let mut room = vec![0; (buffer.capacity() - buffer.len()).min(APPENDED_MAX)];
    let count = places.read_at(&mut room, offset)?;
    buffer.extend_from_slice(&room[..count]);
    Ok(count)
}

/// Returns bytes in pieces of at most `size`, as pipes do.
pub(crate) struct Pieces {
    pub(crate) bytes: std::io::Cursor<Vec<u8>>,
    pub(crate) size: usize,
}

impl Pieces {
    pub(crate) fn new(bytes: &[u8], size: usize) -> Pieces {
        Pieces { bytes: std::io::Cursor::new(bytes.to_vec()), size }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = self.size.min(buffer.len());
        self.bytes.read(&mut buffer[..size])
    }
}
