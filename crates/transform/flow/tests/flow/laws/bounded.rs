//! Law 5: memory does not grow with what a log holds or claims to hold.
//!
//! Each case runs in its own process (this test, re-executed), whose peak memory the kernel reports. `make
//! soak` does the same for longer, and with the release binary and a transaction of 1 GiB.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags};
use binlogz_flow::{InOrder, Input, ReadAt, Rewrite, Rewriter, verify};
use binlogz_testkit::builder::{LogBuilder, Release, bomb, transaction_events};
use binlogz_testkit::memory::peak_memory;

use super::support::{append_from, compression, is_soak};

/// Memory that a process may take beside zstd's.
const MEMORY_MAX: u64 = 64 << 20;
/// Memory that zstd needs for each worker: level 3, windows of 2 MiB.
const ZSTD_MEMORY: u64 = 4 << 20;
const WORKERS: usize = 2;
/// Bytes in each log, several times what a process may take; 512 MiB in `make soak`.
fn zeros() -> u32 {
    if is_soak() { 512 << 20 } else { 192 << 20 }
}

/// Environment of a process that runs a case: the verb, its input, and where it reports.
const VERB: &str = "BINLOGZ_TEST_VERB";
const SOURCE: &str = "BINLOGZ_TEST_SOURCE";
const REPORT: &str = "BINLOGZ_TEST_REPORT";

const VERBS: [&str; 3] = ["compress", "expand", "verify"];

#[test]
fn memory_does_not_grow_with_the_log() {
    if let Ok(verb) = std::env::var(VERB) {
        return play(&verb);
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("bomb");
    fs::write(&path, bomb(zeros())).expect("room for some kilobytes");
    let size = fs::metadata(&path).expect("it was just written").len();
    assert!(size < 25_000, "{} MiB in {size} bytes", zeros() >> 20);
    for verb in VERBS {
        bounded(verb, Source::File(&path), dir.path());
        bounded(verb, Source::Pipe(&path), dir.path());
        for event_type in
            [EventType::WRITE_ROWS, EventType::GTID, EventType::PREVIOUS_GTIDS, EventType::QUERY]
        {
            bounded(verb, Source::Places(event_type), dir.path());
            bounded(verb, Source::Stream(event_type), dir.path());
        }
    }
}

/// The input of a case.
#[derive(Debug)]
enum Source<'a> {
    /// A file.
    File(&'a Path),
    /// A file, read through a pipe.
    Pipe(&'a Path),
    /// [`log_with_zeros`], at any place.
    Places(EventType),
    /// [`log_with_zeros`], read in order.
    Stream(EventType),
}

#[track_caller]
fn bounded(verb: &str, source: Source<'_>, dir: &Path) {
    let report = dir.join("report");
    let (source_named, stdin) = match source {
        Source::File(path) => (path.display().to_string(), None),
        Source::Pipe(path) => ("-".to_owned(), Some(path)),
        Source::Places(event_type) => (format!("places {}", event_type.0), None),
        Source::Stream(event_type) => (format!("stream {}", event_type.0), None),
    };
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "laws::bounded::memory_does_not_grow_with_the_log"])
        .envs([(VERB, verb), (SOURCE, &source_named)])
        .env(REPORT, &report)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("this test again");
    let mut pipe = child.stdin.take().expect("piped");
    if let Some(path) = stdin {
        pipe.write_all(&fs::read(path).expect("some kilobytes")).expect("it is read");
    }
    drop(pipe);
    let status = child.wait().expect("a child");
    assert!(status.success(), "{verb} {source:?}: {status}");
    let said = fs::read_to_string(&report).expect("it reports");
    let (outcome, peak) = said.split_once('\n').expect("two lines");
    let peak: u64 = peak.trim().parse().expect("a number");
    let most = MEMORY_MAX + WORKERS as u64 * ZSTD_MEMORY;
    assert!(peak <= most, "{verb} {source:?} took {} MiB: {outcome}", peak >> 20);
    println!("{verb} {source:?}: {} MiB: {outcome}", peak >> 20);
}

fn play(verb: &str) {
    let source = std::env::var(SOURCE).expect("set beside the verb");
    let zeros = |number: &str| log_with_zeros(EventType(number.parse().expect("a type")));
    let input = match source.split_once(' ') {
        Some(("places", number)) => Input::Places(Arc::new(zeros(number))),
        Some((_, number)) => Input::Stream(Box::new(InOrder::new(Arc::new(zeros(number))))),
        None if source == "-" => Input::stdin().expect("a pipe"),
        None => Input::Places(Arc::new(File::open(&source).expect("a file"))),
    };
    let mut out = Counting(0);
    let result = match verb {
        "compress" => Rewriter::new(compression(3)).workers(WORKERS).run(input, &mut out).map(drop),
        "expand" => Rewriter::new(Rewrite::Expand).workers(WORKERS).run(input, &mut out).map(drop),
        _ => verify(input, WORKERS, &mut |_| {}).map(drop),
    };
    let outcome = match result {
        Ok(()) => format!("{} bytes written", out.0),
        Err(error) => error.to_string(),
    };
    let report = std::env::var_os(REPORT).expect("set beside the verb");
    let memory = peak_memory(std::process::id()).expect("of this process") << 10;
    fs::write(report, format!("{outcome}\n{memory}\n")).expect("a report");
}

/// Takes everything and keeps nothing.
struct Counting(u64);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes, this many zeros, bytes.
struct WithZeros {
    front: Vec<u8>,
    zeros: u64,
    back: Vec<u8>,
}

/// A log without checksums that holds an event of this type with so many zeros at its end: between transactions, or as the rows of
/// one.
fn log_with_zeros(event_type: EventType) -> WithZeros {
    let mut log = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::NONE, HeaderFlags::default());
    log.transaction(&[b"before"]);
    let events = transaction_events(&[b"a value"]);
    let rows = event_type == EventType::WRITE_ROWS;
    let zeros = zeros();
    if rows {
        let following: usize = events.iter().map(|(_, body)| 19 + body.len()).sum();
        log.gtid(following as u64 + u64::from(zeros));
        log.event(events[0].0, &events[0].1).event(events[1].0, &events[1].1);
    }
    let begin = log.bytes().len();
    log.skip(zeros.into()).event(event_type, if rows { &events[2].1 } else { &[1; 42] });
    let mut front = log.take();
    let event_size = (front.len() - begin) as u32 + zeros;
    let header = EventHeader::decode(&front[begin..]).expect("it was just written");
    front[begin..begin + 19].copy_from_slice(&EventHeader { event_size, ..header }.encode());
    if rows {
        log.event(events[3].0, &events[3].1);
    }
    log.transaction(&[b"behind"]);
    WithZeros { front, zeros: zeros.into(), back: log.take() }
}

impl ReadAt for WithZeros {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let back = self.front.len() as u64 + self.zeros;
        if let Some(mut front) = self.front.get(offset as usize..).filter(|front| !front.is_empty()) {
            return front.read(buffer);
        }
        if offset < back {
            let count = buffer.len().min((back - offset) as usize);
            buffer[..count].fill(0);
            return Ok(count);
        }
        let mut rest = self.back.get((offset - back) as usize..).unwrap_or_default();
        rest.read(buffer)
    }

    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        append_from(self, buffer, offset)
    }
}
