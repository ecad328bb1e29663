//! The relay's permanent tasks, each in its own thread, and whether each is still working: no thread ends unnoticed.
//!
//! ```text
//! Duties::start ─ thread ─ work ┬ returns ─┐
//!                               └ panics ──┴ ended, with why ─ health is red, for good
//! attempt ─ work ┬ Ok, Err
//!                └ panics ─ Err(Panicked)     the thread lives: a later attempt may succeed
//! rounds ─ attempt ─ sleep ─ attempt …        failing after a panic, well again after a round that ends
//! ```
//!
//! This file records and reports. `relay` decides how a failure affects receiving; `status` decides how it affects
//! health.

use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use binlogz_binlog::printable;

use crate::error::{Error, Result};
use crate::telemetry::{Telemetry, complain, spans};

/// Makes written data durable.
pub(crate) const SYNC: &str = "sync";
/// Follows the source.
pub(crate) const RECEIVE: &str = "receive";
/// Compresses received data, in several threads, and writes it; runs while a connection lasts.
pub(crate) const STORE: &str = "store";
/// Removes files that need not be kept.
pub(crate) const RETAIN: &str = "retain";
/// Archives closed files.
pub(crate) const ARCHIVE: &str = "archive";
/// Checks archives.
pub(crate) const CHECK: &str = "check";
/// Reads closed files to find damage.
pub(crate) const SCRUB: &str = "scrub";
/// Repairs damaged files.
pub(crate) const REPAIR: &str = "repair";
/// Takes samples for the page.
pub(crate) const WATCH: &str = "watch";
/// Answers over HTTP.
pub(crate) const HTTP: &str = "http";
/// Opens sources that could not be opened.
pub(crate) const OPEN: &str = "open";
/// Notices replicas that leave.
pub(crate) const DEPARTURES: &str = "departures";
/// Accepts replicas.
pub(crate) const ACCEPT: &str = "accept";

/// The duties that were started, by name: the relay's permanent tasks, each in a thread of its own.
#[derive(Debug, Default)]
pub(crate) struct Duties(Mutex<BTreeMap<&'static str, Duty>>);

#[derive(Debug)]
struct Duty {
    /// When the current state began.
    since: Instant,
    /// Why it is failing; `None` if it isn't.
    failure: Option<String>,
}

/// A snapshot of a duty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DutyStatus {
    /// The duty's name: `receive`, `sync`, `store`, `accept`, …
    pub name: &'static str,
    /// Whether it is working.
    pub up: bool,
    /// Seconds since the current state began.
    pub seconds: u64,
    /// Why it is failing.
    pub failure: Option<String>,
}

impl DutyStatus {
    /// The complaint about it, if it is not working.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.failure.as_ref().map(|why| format!("the duty {} is not done: {why}", self.name))
    }
}

impl Duties {
    /// Marks a duty as working.
    pub(crate) fn well(&self, name: &'static str) {
        let mut duties = self.0.lock();
        match duties.get(name) {
            Some(Duty { failure: None, .. }) => {}
            _ => drop(duties.insert(name, Duty { since: Instant::now(), failure: None })),
        }
    }

    /// Marks a duty as failing.
    pub(crate) fn failing(&self, name: &'static str, why: impl Into<String>) {
        let mut duties = self.0.lock();
        let since = match duties.get(name) {
            Some(Duty { since, failure: Some(_) }) => *since,
            _ => Instant::now(),
        };
        duties.insert(name, Duty { since, failure: Some(why.into()) });
    }

    /// Ends a duty that is no longer needed. One that has failed stays visible.
    pub(crate) fn over(&self, name: &'static str) {
        let mut duties = self.0.lock();
        if duties.get(name).is_some_and(|duty| duty.failure.is_none()) {
            duties.remove(name);
        }
    }

    pub(crate) fn seen(&self) -> Vec<DutyStatus> {
        let duties = self.0.lock();
        let status = |(name, duty): (&&'static str, &Duty)| DutyStatus {
            name,
            up: duty.failure.is_none(),
            seconds: duty.since.elapsed().as_secs(),
            failure: duty.failure.as_deref().map(|why| printable(why).into_owned()),
        };
        duties.iter().map(status).collect()
    }
}

/// Starts a duty in its own thread, which should never end. If it does, `ended` is called with the reason.
///
/// # Errors
///
/// The thread can't be started.
pub(crate) fn start(
    telemetry: &Telemetry,
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
    ended: impl FnOnce(&Error) + Send + 'static,
) -> Result<thread::JoinHandle<()>> {
    let run = move || {
        let done = attempt(name, || {
            work();
            Ok(())
        });
        ended(&done.err().unwrap_or(Error::Ended(name)));
    };
    telemetry.duties.well(name);
    let span = spans::duty(telemetry, name);
    let run = move || span.in_scope(run);
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|error| {
        let error = Error::thread(name)(error);
        telemetry.duties.failing(name, error.to_string());
        error
    })
}

/// Repeats a task until its source is no longer wanted.
pub(crate) fn rounds(
    telemetry: &Telemetry,
    name: &'static str,
    interval: Duration,
    consequence: &str,
    mut round: impl FnMut() -> Result<()>,
) {
    let mut told = String::new();
    loop {
        once(telemetry, name, consequence, &mut told, &mut round);
        if !telemetry.ending.sleep(interval) {
            return;
        }
    }
}

/// Runs it once. An error is logged once, until it changes or goes away.
pub(crate) fn once(
    telemetry: &Telemetry,
    name: &'static str,
    consequence: &str,
    told: &mut String,
    round: impl FnOnce() -> Result<()>,
) {
    let Err(error) = attempt(name, round) else {
        telemetry.duties.well(name);
        return told.clear();
    };
    let line = error.to_string();
    match error {
        Error::Panicked { .. } => telemetry.duties.failing(name, line.clone()),
        _ => telemetry.duties.well(name),
    }
    if *told != line {
        complain!(telemetry, &error, &format!("{line}; {consequence}"));
        *told = line;
    }
}

/// Does something whose panic must not end the thread: it becomes an error with the panic's message.
///
/// Everything that `work` changes is guarded by locks that bear a panic, or dropped with it: the store latches by itself.
pub(crate) fn attempt<T>(name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(Error::Panicked { name, message: message(panic.as_ref()) }))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
