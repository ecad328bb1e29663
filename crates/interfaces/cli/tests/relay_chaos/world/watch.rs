//! Compares the relay's own status with the source all the time: health must be red whenever receiving stands still.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_testkit::MysqlSandbox;
use serde_json::Value;

use super::hostile::http_get;
use super::stored;

/// Receiving that has not got on for so long stands still: longer than the relay itself waits before it says so.
const STILL: Duration = Duration::from_secs(75);
const INTERVAL: Duration = Duration::from_millis(500);
/// An answer that takes longer is none.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The observations.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Health was green, and receiving stood still for too long.
    pub(crate) green_and_still: Option<String>,
    /// The last answer that was red.
    pub(crate) red: Option<String>,
    /// Answers of health: green, red, none.
    pub(crate) answers: [u64; 3],
}

/// Watches until it is told to stop.
pub(crate) struct Watch<'a> {
    source: &'a MysqlSandbox,
    http: u16,
    stop: AtomicBool,
    seen: Mutex<Seen>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(source: &'a MysqlSandbox, http: u16) -> Watch<'a> {
        Watch { source, http, stop: AtomicBool::new(false), seen: Mutex::default() }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// All since it was last asked.
    pub(crate) fn take(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn run(&self) {
        let mut last = None;
        let mut still_since = None;
        while !self.stop.load(Ordering::Relaxed) {
            let health = http_get(self.http, "/healthz", PATIENCE);
            let durable = durable(self.http);
            let is_green = health.as_ref().is_some_and(|(code, _)| *code == 200);
            let is_still = is_green
                && durable.is_some()
                && durable == last
                && durable.as_ref().is_some_and(|durable| !written(self.source).is_subset(durable));
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let kind = match &health {
                Some((200, _)) => 0,
                Some((_, why)) => {
                    seen.red = Some(why.trim().to_owned());
                    1
                }
                None => 2,
            };
            seen.answers[kind] += 1;
            match still_since {
                _ if !is_still => still_since = None,
                None => still_since = Some(Instant::now()),
                Some(since) if Instant::now() - since >= STILL => {
                    let (durable, source) = (durable.as_ref().map(GtidSet::to_string), written(self.source));
                    let still = format!("receiving has stood still at {durable:?} for {STILL:?}");
                    seen.green_and_still = Some(format!("{still}, the source has {source}; health says ok"));
                }
                Some(_) => {}
            }
            drop(seen);
            last = durable;
            sleep(INTERVAL);
        }
    }
}

/// The transactions that the relay calls durable; `None`: it says nothing.
pub(crate) fn durable(http: u16) -> Option<GtidSet> {
    let (_, body) = http_get(http, "/status.json", PATIENCE)?;
    let status: Value = serde_json::from_str(&body).ok()?;
    status["log"]["gtid_executed"].as_str()?.parse().ok()
}

/// The last transactions that the source has written to its log. Transactions that wait for an acknowledgement are among
/// them; no variable of the source tells them.
pub(crate) fn written(source: &MysqlSandbox) -> GtidSet {
    let files = source.binlogs().unwrap();
    stored::gtids(&files[files.len().saturating_sub(2)..])
}
