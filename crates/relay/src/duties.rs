//! What the relay must keep doing, each in a thread of its own, and whether each still does it: no thread ends unseen.
//!
//! ```text
//! Duties::start ─ thread ─ work ┬ returns ─┐
//!                               └ panics ──┴ ended, with why ─ health is red, for good
//! attempt ─ work ┬ Ok, Err
//!                └ panics ─ Err(Panicked)     the thread lives: a later attempt may succeed
//! rounds ─ attempt ─ sleep ─ attempt …        failing after a panic, well again after a round that ends
//! ```
//!
//! This file records and reports. What a failure means for the receiving decides `relay`; what health says, `status`.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use binlogz_binlog::printable;

use crate::error::{Error, Result};
use crate::relay::{Relay, lock};

/// Makes durable what was written.
pub(crate) const SYNC: &str = "sync";
/// Follows the source.
pub(crate) const RECEIVE: &str = "receive";
/// Compresses what is received, in several threads, and writes it: while a connection lasts.
pub(crate) const STORE: &str = "store";
/// Removes files that need not be kept.
pub(crate) const RETAIN: &str = "retain";
/// Archives closed files.
pub(crate) const ARCHIVE: &str = "archive";
/// Takes samples for the page.
pub(crate) const WATCH: &str = "watch";
/// Answers over HTTP.
pub(crate) const HTTP: &str = "http";
/// Accepts replicas.
pub(crate) const ACCEPT: &str = "accept";

/// The duties that were taken up. See the module.
#[derive(Debug, Default)]
pub(crate) struct Duties(Mutex<BTreeMap<&'static str, Duty>>);

#[derive(Debug)]
struct Duty {
    /// Since when it is as it is.
    since: Instant,
    /// Why it is not done; `None`: it is.
    failure: Option<String>,
}

/// A duty, as it is seen from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DutyStatus {
    /// What it is called: `receive`, `sync`, `store`, `accept`, …
    pub name: &'static str,
    /// Whether it is done.
    pub up: bool,
    /// Since when it is as it is.
    pub seconds: u64,
    /// Why it is not done.
    pub failure: Option<String>,
}

impl Duties {
    /// It is done from now on, or again.
    pub(crate) fn well(&self, name: &'static str) {
        let mut duties = lock(&self.0);
        match duties.get(name) {
            Some(Duty { failure: None, .. }) => {}
            _ => drop(duties.insert(name, Duty { since: Instant::now(), failure: None })),
        }
    }

    /// It is not done, though it should be.
    pub(crate) fn failing(&self, name: &'static str, why: impl Into<String>) {
        let mut duties = lock(&self.0);
        let since = match duties.get(name) {
            Some(Duty { since, failure: Some(_) }) => *since,
            _ => Instant::now(),
        };
        duties.insert(name, Duty { since, failure: Some(why.into()) });
    }

    /// It need not be done any more, unless it has failed: that stays to be seen.
    pub(crate) fn over(&self, name: &'static str) {
        let mut duties = lock(&self.0);
        if duties.get(name).is_some_and(|duty| duty.failure.is_none()) {
            duties.remove(name);
        }
    }

    /// All of them, by name.
    pub(crate) fn seen(&self) -> Vec<DutyStatus> {
        let duties = lock(&self.0);
        let status = |(name, duty): (&&'static str, &Duty)| DutyStatus {
            name,
            up: duty.failure.is_none(),
            seconds: duty.since.elapsed().as_secs(),
            failure: duty.failure.as_deref().map(|why| printable(why).into_owned()),
        };
        duties.iter().map(status).collect()
    }
}

/// Takes up a duty, in a thread of its own that never ends as long as all is well.
///
/// # Errors
///
/// The thread can't be started.
pub(crate) fn start(
    relay: &Arc<Relay>,
    name: &'static str,
    work: impl FnOnce(&Arc<Relay>) + Send + 'static,
) -> Result<thread::JoinHandle<()>> {
    let its = Arc::clone(relay);
    let run = move || {
        let ended = attempt(name, || {
            work(&its);
            Ok(())
        });
        its.duty_ended(name, &ended.err().unwrap_or(Error::Ended(name)));
    };
    relay.duties.well(name);
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|error| {
        let error = Error::thread(name)(error);
        relay.duties.failing(name, error.to_string());
        error
    })
}

/// Does what is done again and again, for ever.
pub(crate) fn rounds(
    relay: &Relay,
    name: &'static str,
    interval: Duration,
    consequence: &str,
    mut round: impl FnMut() -> Result<()>,
) {
    let mut told = String::new();
    loop {
        once(relay, name, consequence, &mut told, &mut round);
        thread::sleep(interval);
    }
}

/// Does it once. An error is told once, until it is another one or has gone.
fn once(
    relay: &Relay,
    name: &'static str,
    consequence: &str,
    told: &mut String,
    round: impl FnOnce() -> Result<()>,
) {
    let Err(error) = attempt(name, round) else {
        relay.duties.well(name);
        return told.clear();
    };
    let line = error.to_string();
    match error {
        Error::Panicked { .. } => relay.duties.failing(name, line.clone()),
        _ => relay.duties.well(name),
    }
    if *told != line {
        relay.complain(&error, &format!("{line}; {consequence}"));
        *told = line;
    }
}

/// Does something whose panic must not end the thread: it becomes an error with the panic's message.
///
/// Whatever `work` changes is behind locks that bear a panic, or dropped with it: the store latches by itself.
pub(crate) fn attempt<T>(name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(Error::Panicked { name, message: message(panic.as_ref()) }))
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use binlogz_testkit::disk::SimulatedDisk;
    use binlogz_testkit::random::Random;

    use super::*;
    use crate::control::Phase;
    use crate::receiver::crashes::{OneDisk, options};

    fn relay() -> Arc<Relay> {
        let disk = Arc::new(OneDisk(SimulatedDisk::new()));
        Arc::new(Relay::open(options(&mut Random::new(1)), disk, Box::new(|_, _| {})).unwrap())
    }

    #[test]
    fn a_thread_that_panics_is_seen() {
        let relay = relay();
        relay.control.enter(Phase::Receiving);
        assert!(relay.status().unwrap().is_healthy());
        start(&relay, RECEIVE, |_| panic!("lost {}", "count")).unwrap().join().unwrap();
        let status = relay.status().unwrap();
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
        relay.control.start();
        assert!(!relay.status().unwrap().is_healthy());
    }

    #[test]
    fn a_thread_that_ends_is_seen() {
        let relay = relay();
        relay.control.enter(Phase::Receiving);
        start(&relay, SYNC, |_| {}).unwrap().join().unwrap();
        assert_eq!(relay.control.seen().phase, Phase::Failed, "nothing would become durable");
        start(&relay, ACCEPT, |_| {}).unwrap().join().unwrap();
        let unready = relay.status().unwrap().unreadiness();
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
            once(&relay, RETAIN, "nothing is purged", told, round);
            relay.status().unwrap().is_healthy()
        };
        assert!(is_healthy_after(|| Ok(())));
        assert!(!is_healthy_after(|| panic!("no")));
        assert!(is_healthy_after(|| Err(Error::Refused("not now".into()))));
        assert!(is_healthy_after(|| Err(Error::Refused("not now".into()))));
        assert!(is_healthy_after(|| Ok(())));
        // The same error again and again is told once.
        let errors = relay.status().unwrap().errors;
        assert_eq!((errors.get("panic"), errors.get("refused")), (Some(&1), Some(&1)));
    }
}
