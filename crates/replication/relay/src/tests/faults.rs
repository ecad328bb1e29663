//! The relay's whole storing path on a simulated disk whose calls fail, once or until it is cured: no crash, no restart.
//!
//! After each error everything durable is served, and everything acknowledged is durable. The relay mends itself and goes
//! on; in the end the log is the source's, in every form. Then the power fails, and everything acknowledged is still
//! there. `make test` runs a part of all calls, another one each time; BINLOGZ_FAULTS=1 runs all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_relay_log::{Form, FormFile};
use binlogz_store::FileNumber;
use binlogz_testkit::disk::{DiskFault, SimulatedDisk};
use binlogz_testkit::random::Random;
use binlogz_testkit::{mutate, setting};

use super::crashes::{Known, OneDisk, compare, open, options, put_all_back, receive, tail};
use super::heard::Heard;
use super::open_source;
use super::simulated::{SourceLog, gtids};
use crate::error::Error;
use crate::receive::control::Phase;
use crate::source::RelaySource;

const FAULTS: [DiskFault; 4] = [DiskFault::Eio, DiskFault::Enospc, DiskFault::Emfile, DiskFault::ShortWrite];
/// One call in this many is tried, of each fault.
const STRIDE: u64 = 32;
/// Errors that one fault may cause before everything works again.
const ERRORS_MAX: usize = 8;

/// The relay serves the source's bytes, up to the durable end; everything acknowledged is among them.
fn check(relay: &RelaySource, source: &SourceLog, known: &Known, what: &str) {
    let Some(kept) = relay.intake.lineages.served() else {
        assert_eq!(known.promised(), 0, "{what}");
        return;
    };
    let logs = kept.store.logs().unwrap_or_else(|error| panic!("{what}: {error}"));
    let Some(now) = kept.store.positions() else { return };
    assert_eq!(logs.last().map(|log| log.number), Some(now.durable.file), "{what}: a file too many");
    let mut last = 0;
    for log in &logs {
        let original = source.files.iter().find(|file| file.name == log.name).unwrap();
        let (head, served) =
            tail(relay.intake.conversions.of(&kept), Form::Received, FormFile::first_of(log.number), None);
        let same = original.bytes[head as usize..].starts_with(&served);
        assert!(same, "{what}: {} is served with other bytes", log.name);
        let all = original.bytes.len() - head as usize;
        assert!(log.number == now.durable.file || served.len() == all, "{what}: {}", log.name);
        last = last.max(source.last_before(&log.name, head as usize + served.len()));
    }
    assert!(last >= known.promised(), "{what}: served up to {last}, {} was promised", known.promised());
    assert!(kept.durable_gtids().is_subset(&gtids(last)), "{what}: GTIDs that are not served");
    // What a dump by GTID asks.
    for log in logs {
        kept.store.previous_gtids(log.number).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// The cases that a run came across.
struct Met {
    errors: usize,
    /// Until everything was received.
    calls: u64,
}

/// Receives everything of the source that `random` made.
fn run(disk: &SimulatedDisk, seed: u64, (source, random): (&SourceLog, &Random), what: &str) -> Met {
    let random = &mut random.clone();
    let mut known = Known::default();
    let mut errors = 0;
    let mut troubled = false;
    let mut again = |error: &Error, what: &str| {
        errors += 1;
        assert!(!error.is_final() && errors < ERRORS_MAX, "{what}: {error}");
    };
    let start = || {
        let options = options(&mut Random::new(seed));
        open_source(options, Arc::new(OneDisk(disk.clone())))
    };
    let relay = match start() {
        Ok(relay) => relay,
        Err(error) => {
            troubled = disk.is_troubled();
            assert!(troubled, "{what}: {error}");
            disk.cure();
            start().unwrap_or_else(|error| panic!("{what}: {error}"))
        }
    };
    loop {
        let received =
            relay.intake.mend().and_then(|()| receive(&relay, source, random, &mut known, usize::MAX));
        match received.and_then(|()| relay.intake.sync()) {
            Ok(()) if relay.intake.written_gtids() == gtids(source.last()) => break,
            Ok(()) => {}
            Err(error) => {
                let what = format!("{what}: {error}");
                again(&error, &what);
                troubled = true;
                // Once more while it lasts, which mends nothing and breaks nothing.
                if let Err(error) = relay.intake.mend() {
                    assert!(!error.is_final(), "{what}: {error}");
                }
                disk.cure();
                check(&relay, source, &known, &what);
            }
        }
    }
    let calls = disk.calls();
    if !disk.is_troubled() && !troubled && disk.has_plan() {
        return Met { errors, calls };
    }
    disk.cure();
    relay.intake.mend().unwrap();
    let kept = relay.intake.lineages.served().unwrap();
    put_all_back(&relay, &kept, &mut known);
    compare(&relay, source, random, &mut known, what);
    assert_eq!(kept.store.logs().unwrap().first().map(|log| log.number), Some(FileNumber(1)));
    drop(relay);
    disk.crash(random);
    open(disk, random, &mut known, what).unwrap();
    Met { errors, calls }
}

#[test]
fn any_error_of_the_disk_is_over_when_its_cause_is() {
    try_calls(false);
}

// A test of its own, so that both go on at once.
#[test]
fn any_error_amid_large_transactions_is_over_when_its_cause_is() {
    try_calls(true);
}

/// Small transactions, written at once; or large ones, in many writes.
fn try_calls(large: bool) {
    let seed = mutate::seed();
    let stride = setting("BINLOGZ_FAULTS", STRIDE);
    let mut met = [0; FAULTS.len()];
    let mut random = Random::new(seed);
    let source = SourceLog::new(&mut random, large);
    let made = (&source, &random);
    let Met { errors, calls } = run(&SimulatedDisk::new(), seed, made, "nothing");
    assert_eq!(errors, 0);
    for (place, (fault, met)) in FAULTS.into_iter().zip(&mut met).enumerate() {
        for at in ((seed + place as u64) % stride..calls).step_by(stride as usize) {
            for lasts in [false, true] {
                let disk = SimulatedDisk::new();
                disk.trouble_at(at, fault, lasts);
                let what = format!("SEED={seed} {fault:?} at call {at}, lasts: {lasts}, large: {large}");
                *met += run(&disk, seed, made, &what).errors;
            }
        }
    }
    println!("{calls} calls, errors met: {met:?}");
    assert!(met.iter().all(|met| *met > 0), "{met:?}");
}

/// Waits for what another thread does.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_sync_that_failed_is_told_until_something_is_durable_again() {
    let written_beyond = |relay: &RelaySource| {
        let now = relay.intake.lineages.served().and_then(|kept| kept.store.positions());
        now.is_some_and(|now| now.written > now.durable)
    };
    let mut seed = mutate::seed();
    // Some of what came is not synced, and more is to come.
    let (disk, relay, source, mut known) = loop {
        let random = &mut Random::new(seed);
        let source = SourceLog::new(random, false);
        let disk = SimulatedDisk::new();
        let mut known = Known::default();
        let disk_of_it = Arc::new(OneDisk(disk.clone()));
        let relay = open_source(options(random), disk_of_it).unwrap();
        let pieces = 1 + random.below(60);
        receive(&relay, &source, random, &mut known, pieces).unwrap();
        if written_beyond(&relay) && relay.intake.written_gtids() != gtids(source.last()) {
            break (disk, Arc::new(relay), source, known);
        }
        seed += 1;
    };
    println!("SEED={seed}");
    let random = &mut Random::new(seed);
    disk.trouble_at(disk.calls(), DiskFault::Eio, false);
    let its = Arc::clone(&relay);
    let heard = Heard::default();
    let listens = heard.clone();
    std::thread::spawn(move || listens.during(|| its.intake.sync_for_ever()));
    wait_for("failure", || relay.intake.control.seen().phase == Phase::Failed);
    // The line comes before the phase, and is counted with it.
    let (errors, last) = relay.telemetry.meters.errors();
    assert!(errors.get("store").is_some_and(|count| *count > 0), "a sync that failed is counted: {errors:?}");
    let lines = heard.lines();
    let first = &last.last().unwrap().text;
    assert!(first.ends_with("; what is durable is served"), "{first}");
    assert!(lines.contains(&format!("ERROR {first}")), "{lines:?} {first}");
    assert!(relay.intake.control.is_wanted(), "it is tried again");
    assert!(relay.intake.lineages.last().unwrap().store.refuses_since().is_some());
    check(&relay, &source, &known, "after a failed sync");
    // What the receiver does next: the thread that syncs is still there, and goes on.
    relay.intake.mend().unwrap();
    assert_eq!(relay.intake.control.seen().phase, Phase::Failed, "nothing was stored yet");
    while relay.intake.control.is_ailing() {
        let pieces = 1 + random.below(40);
        receive(&relay, &source, random, &mut known, pieces).unwrap();
        if relay.intake.written_gtids() == gtids(source.last()) {
            wait_for("sync", || !relay.intake.control.is_ailing());
        }
    }
    receive(&relay, &source, random, &mut known, usize::MAX).unwrap();
    wait_for("end", || !written_beyond(&relay));
    check(&relay, &source, &known, "at last");
}
