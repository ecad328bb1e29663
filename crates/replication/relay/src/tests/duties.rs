//! A relay's status, when threads have ended or panicked.

use std::sync::Arc;

use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{OneDisk, options};
use super::open_source;
use crate::error::{Error, Result};
use crate::receive::control::Phase;
use crate::source::RelaySource;
use crate::telemetry::duties::{ACCEPT, RECEIVE, RETAIN, SYNC, attempt, once};
use crate::watch::status::SharedStatus;

fn relay() -> Arc<RelaySource> {
    let disk = Arc::new(OneDisk(SimulatedDisk::new()));
    Arc::new(open_source(options(&mut Random::new(1)), disk).unwrap())
}

#[test]
fn a_thread_that_panics_is_seen() {
    let relay = relay();
    relay.intake.control.enter(Phase::Receiving);
    assert!(relay.watch.status(&SharedStatus::default()).unwrap().is_healthy());
    relay.take_up(RECEIVE, |_| panic!("lost {}", "count")).unwrap();
    relay.join();
    let status = relay.watch.status(&SharedStatus::default()).unwrap();
    assert_eq!(status.source.phase, Phase::Failed);
    let why = "receive panicked: lost count";
    assert_eq!(
        status.troubles,
        [
            format!("receiving has failed: {why}; nothing more is received, what is durable is served"),
            format!("the duty receive is not done: {why}")
        ]
    );
    assert_eq!(status.errors.get("panic"), Some(&1));
    // Somebody starts the receiving again: nobody does it.
    relay.intake.control.start();
    assert!(!relay.watch.status(&SharedStatus::default()).unwrap().is_healthy());
}

#[test]
fn a_thread_that_ends_is_seen() {
    let relay = relay();
    relay.intake.control.enter(Phase::Receiving);
    relay.take_up(SYNC, |_| {}).unwrap();
    relay.join();
    assert_eq!(relay.intake.control.seen().phase, Phase::Failed, "nothing would become durable");
    relay.take_up(ACCEPT, |_| {}).unwrap();
    relay.join();
    let unready = relay.watch.status(&SharedStatus::default()).unwrap().unreadiness();
    assert!(unready.iter().any(|why| why.contains("accept ended by itself")), "{unready:?}");
}

#[test]
fn an_attempt_that_panics_fails_alone() {
    let failed = attempt(RECEIVE, || -> Result<()> { std::panic::panic_any(7) }).unwrap_err();
    assert!(failed.is_final());
    assert_eq!(failed.to_string(), "receive panicked: without a message");
    assert_eq!(attempt(RECEIVE, || Ok(1)).unwrap(), 1);
}

#[test]
fn rounds_go_on_after_errors_and_panics() {
    let relay = relay();
    let told = &mut String::new();
    let mut is_healthy_after = |round: fn() -> Result<()>| {
        once(&relay.telemetry, RETAIN, "nothing is purged", told, round);
        relay.watch.status(&SharedStatus::default()).unwrap().is_healthy()
    };
    assert!(is_healthy_after(|| Ok(())));
    assert!(!is_healthy_after(|| panic!("no")));
    assert!(is_healthy_after(|| Err(Error::Refused("not now".into()))));
    assert!(is_healthy_after(|| Err(Error::Refused("not now".into()))));
    assert!(is_healthy_after(|| Ok(())));
    // The same error again and again is told once.
    let errors = relay.watch.status(&SharedStatus::default()).unwrap().errors;
    assert_eq!((errors.get("panic"), errors.get("refused")), (Some(&1), Some(&1)));
}
