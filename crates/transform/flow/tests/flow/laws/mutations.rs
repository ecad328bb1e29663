//! Laws 1, 4 and 7 over damaged logs: whatever is done to a log, it is refused or it obeys them; and soon.
//!
//! `SEED=N` repeats a run, `MUTATIONS=N` sets how many there are: `make soak` makes 100,000 of them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use binlogz_binlog::{ChecksumAlgorithm, EventType, HeaderFlags};
use binlogz_flow::{Rewrite, RewriteSummary, verify};
use binlogz_testkit::builder::{EndPositions, LogBuilder, PayloadBody, Release, inner_transaction};
use binlogz_testkit::{corpus, mutate, setting};

use super::disorder::disorder;
use super::support::{Pieces, compression, options, places, run, same, stream};

const MUTATIONS: u64 = 1000;
/// Far above what any of them needs on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(120);
/// Logs above this size, or whose payloads expand to more, would be most of the time.
const LOG_SIZE_MAX: usize = 20_000;

fn originals() -> Vec<(String, Vec<u8>)> {
    let mut logs: Vec<_> = corpus::binlogs().iter().map(|file| (file.name.clone(), file.read())).collect();
    logs.retain(|(_, log)| log.len() <= LOG_SIZE_MAX);
    assert!(logs.len() > 8);

    let inner = inner_transaction(&[&[7; 300], b"another value"]);
    for release in [Release::MYSQL_5_6, Release::MYSQL_5_7, Release::MYSQL_8_0_19, Release::MYSQL_8_0_20] {
        for checksum in [ChecksumAlgorithm::NONE, ChecksumAlgorithm::CRC32] {
            let mut log = LogBuilder::with(release, checksum, HeaderFlags::default());
            log.event(EventType::PREVIOUS_GTIDS, &[0; 8]).transaction(&[b"one"]).transaction(&[&[9; 700]]);
            if release == Release::MYSQL_8_0_20 {
                log.payload(&PayloadBody::zstd(&inner)).payload(&PayloadBody::none(&inner));
            }
            logs.push((format!("{} {checksum:?}", release.version), log.take()));
        }
    }
    let mut relay = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::CRC32, HeaderFlags::RELAY_LOG);
    relay.flags(HeaderFlags::default()).positions(EndPositions::Source(u32::MAX - 2000));
    relay.format_description(Release::MYSQL_8_0_19);
    relay.transaction(&[b"one"]).transaction(&[&[9; 700]]).transaction(&[b"three"]);
    logs.push(("relay log".into(), relay.take()));
    logs
}

#[test]
fn a_mutated_log_is_refused_or_obeys_the_laws() {
    let seed = mutate::seed();
    let count = setting("MUTATIONS", MUTATIONS);
    let originals = originals();
    let (tell, progress) = channel();
    // On a thread of its own, so that one that never ends is told of.
    let tries = std::thread::spawn(move || {
        let mut outcomes = Outcomes::default();
        for index in 0..count {
            let (name, original) = &originals[index as usize % originals.len()];
            let damaged = if index / 2 % 2 == 0 { mutate::mutate } else { disorder };
            let (log, damage) = damaged(original, seed, index);
            let what = format!("{name}: {damage}");
            tell.send(what.clone()).expect("the test waits");
            match catch_unwind(AssertUnwindSafe(|| obeys(&log))) {
                Ok(outcome) => outcomes.count(outcome),
                Err(panic) => {
                    eprintln!("{what}");
                    resume_unwind(panic);
                }
            }
        }
        outcomes
    });
    let mut last = String::new();
    loop {
        match progress.recv_timeout(TIME_MAX) {
            Ok(what) => last = what,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("no end after {TIME_MAX:?}: {last}"),
        }
    }
    let outcomes = tries.join().unwrap_or_else(|panic| resume_unwind(panic));
    println!("{count} mutated logs: {outcomes:?}");
    // Enough of both, or the mutations try little.
    assert!(outcomes.refused > count / 10 && outcomes.compressed > count / 10, "{outcomes:?}");
    assert!(outcomes.changed > 0, "{outcomes:?}");
}

#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    /// Compress found an error.
    refused: u64,
    compressed: u64,
    /// Compress made payloads.
    changed: u64,
    /// Expand went through too.
    expanded: u64,
}

impl Outcomes {
    fn count(&mut self, outcome: Outcomes) {
        self.refused += outcome.refused;
        self.compressed += outcome.compressed;
        self.changed += outcome.changed;
        self.expanded += outcome.expanded;
    }
}

fn obeys(log: &[u8]) -> Outcomes {
    let compressed = rewritten_any_way(log, compression(1));
    let expanded = rewritten_any_way(log, Rewrite::Expand);
    let recompressed = rewritten_any_way(log, Rewrite::Recompress(options(2)));
    // Says that it is fine, that it isn't, or that it can't be read; no more is asked here.
    let _ = verify(places(log), 2, &mut |_| {});

    if let Some((compressed, _)) = &compressed {
        let back = run(places(compressed), Rewrite::Expand, 1);
        match (&expanded, back) {
            (Some((expanded, _)), Ok((back, _))) => {
                same("mutated log", "compressed and back", &back, expanded)
            }
            (None, Err(_)) => {}
            (None, Ok(_)) => panic!("compressed and back is well, what it came from is not"),
            (Some(_), Err(error)) => panic!("compressed, it can't be expanded: {error}"),
        }
    }
    if let Some((plain, _)) = &expanded {
        let again = run(places(plain), Rewrite::Expand, 1).expect("it was just written").0;
        same("mutated log", "expanded twice", &again, plain);
        // A foreign position may become an event's own place: that is refused, and nothing else.
        if let Ok((compressed, _)) = run(places(plain), compression(1), 1) {
            let back = run(places(&compressed), Rewrite::Expand, 1).expect("it was just written").0;
            same("mutated log", "plain, compressed and back", &back, plain);
        }
        if let (Some((recompressed, _)), Ok((expected, _))) =
            (&recompressed, run(places(plain), compression(2), 1))
        {
            same("mutated log", "recompressed", recompressed, &expected);
        }
    }
    Outcomes {
        refused: u64::from(compressed.is_none()),
        compressed: u64::from(compressed.is_some()),
        changed: u64::from(compressed.is_some_and(|(_, summary)| summary.tally.changed > 0)),
        expanded: u64::from(expanded.is_some()),
    }
}

/// The log rewritten, the same with one thread and with several, from a file and through a pipe; `None` for an error.
fn rewritten_any_way(log: &[u8], how: Rewrite) -> Option<(Vec<u8>, RewriteSummary)> {
    let one = run(places(log), how, 1);
    let several = run(stream(Pieces::new(log, 777)), how, 3);
    match (&one, &several) {
        (Ok((one, summary)), Ok((several, of_several))) => {
            same("mutated log", "three threads", several, one);
            assert_eq!(summary.tally, of_several.tally);
            let cut = summary.cut.map_or(0, |cut| cut.size);
            assert_eq!(summary.bytes_read + cut, log.len() as u64, "{how:?} skipped something");
        }
        (Err(_), Err(_)) => {}
        _ => panic!("{how:?}: {:?} with one thread, {:?} with three", one.err(), several.err()),
    }
    one.ok()
}
