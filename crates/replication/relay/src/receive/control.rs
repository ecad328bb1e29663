//! Controls receiving from other threads: its present state, since when, and whether it should continue.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use binlogz_source::HangUp;
use serde::Serialize;

use binlogz_binlog::printable;

use crate::error::Hindrance;

/// The state of receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Connecting to the source.
    Connecting,
    /// Receiving, or waiting for events.
    Receiving,
    /// The connection broke; it will be retried.
    Waiting,
    /// Stopped by a statement.
    Stopped,
    /// Failed: someone must decide or repair something first.
    Failed,
}

impl Phase {
    /// The phase's name, as in `receiving`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connecting => "connecting",
            Phase::Receiving => "receiving",
            Phase::Waiting => "waiting",
            Phase::Stopped => "stopped",
            Phase::Failed => "failed",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Control {
    inner: Mutex<ReceiverState>,
    changed: Condvar,
}

#[derive(Debug)]
struct ReceiverState {
    phase: Phase,
    since: Instant,
    server: String,
    wanted: bool,
    /// Receiving will not start again.
    is_over: bool,
    /// Why receiving ended, if something failed, here or while syncing the log.
    failure: Option<String>,
    /// Why receiving can't continue, while it is retried.
    hindrance: Option<(Hindrance, String)>,
    /// When it last received something, or began to try.
    received: Instant,
    /// Closes the open connection.
    hang_up: Option<HangUp>,
    /// The disk failed, and nothing has been made durable since. Reported whatever is tried meanwhile.
    ailing: Option<String>,
}

/// The state of receiving, and the server it receives from.
#[derive(Debug, Clone)]
pub(crate) struct ControlState {
    pub(crate) phase: Phase,
    pub(crate) since: Duration,
    pub(crate) server: String,
    /// Why it has failed.
    pub(crate) failure: Option<String>,
    /// Why it can't continue.
    pub(crate) hindrance: Option<(Hindrance, String)>,
    /// For how long it has not been receiving: since the first failure, whatever was tried since.
    pub(crate) without: Duration,
}

impl Default for Control {
    fn default() -> Self {
        let inner = ReceiverState {
            phase: Phase::Connecting,
            since: Instant::now(),
            server: String::new(),
            wanted: true,
            is_over: false,
            failure: None,
            hindrance: None,
            received: Instant::now(),
            hang_up: None,
            ailing: None,
        };
        Control { inner: Mutex::new(inner), changed: Condvar::new() }
    }
}

impl ReceiverState {
    fn enter(&mut self, phase: Phase) {
        if self.phase == Phase::Receiving || phase == Phase::Receiving {
            self.received = Instant::now();
        }
        if self.phase != phase {
            (self.phase, self.since) = (phase, Instant::now());
        }
        if phase == Phase::Receiving {
            self.hindrance = None;
        }
    }
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, ReceiverState> {
        self.inner.lock()
    }

    pub(crate) fn seen(&self) -> ControlState {
        let inner = self.lock();
        let phase = match inner.phase {
            Phase::Stopped => Phase::Stopped,
            _ if inner.ailing.is_some() => Phase::Failed,
            phase => phase,
        };
        ControlState {
            phase,
            since: inner.since.elapsed(),
            server: inner.server.clone(),
            failure: inner.failure.clone().or_else(|| inner.ailing.clone()),
            hindrance: inner.hindrance.clone(),
            without: match inner.phase {
                Phase::Receiving => Duration::ZERO,
                _ => inner.received.elapsed(),
            },
        }
    }

    /// Moves to another phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.lock().enter(phase);
    }

    /// Ends receiving until someone repairs or decides something and starts it again.
    pub(crate) fn fail(&self, why: &str) {
        let mut inner = self.lock();
        inner.enter(Phase::Failed);
        inner.wanted = false;
        // Later failures follow from the first, and explain less.
        inner.failure.get_or_insert_with(|| printable(why).into_owned());
        // Close the connection even if it isn't to blame: nothing from it is stored any more.
        if let Some(hang_up) = inner.hang_up.take() {
            hang_up.now();
        }
        self.changed.notify_all();
    }

    /// Receiving can't continue; it is retried.
    pub(crate) fn hinder(&self, hindrance: Hindrance, why: &str) {
        let mut inner = self.lock();
        inner.enter(Phase::Waiting);
        inner.hindrance = Some((hindrance, printable(why).into_owned()));
    }

    /// The disk failed. It is retried automatically; until something is durable again, the phase is
    /// [`Phase::Failed`]. Closes the open connection.
    pub(crate) fn fail_for_now(&self, why: &str) {
        let mut inner = self.lock();
        if inner.ailing.is_none() {
            inner.since = Instant::now();
            inner.ailing = Some(printable(why).into_owned());
        }
        if let Some(hang_up) = inner.hang_up.take() {
            hang_up.now();
        }
    }

    /// Whether the disk failed and nothing has been made durable since.
    pub(crate) fn is_ailing(&self) -> bool {
        self.lock().ailing.is_some()
    }

    /// Data becomes durable again.
    pub(crate) fn mended(&self) {
        let mut inner = self.lock();
        if inner.ailing.take().is_some() {
            inner.since = Instant::now();
        }
    }

    /// Receiving has ended as requested. Returns whether it was stopped; otherwise it failed.
    pub(crate) fn was_stopped(&self) -> bool {
        let mut inner = self.lock();
        let failed = inner.failure.is_some();
        inner.enter(if failed { Phase::Failed } else { Phase::Stopped });
        !failed
    }

    /// A connection to this server is being made.
    pub(crate) fn connect(&self, server: String) {
        self.enter(Phase::Connecting);
        self.lock().server = server;
    }

    /// The connection is open. Returns `false` if it is no longer wanted.
    pub(crate) fn connected(&self, hang_up: Option<HangUp>) -> bool {
        let mut inner = self.lock();
        inner.hang_up = hang_up;
        inner.wanted
    }

    /// The connection is closed.
    pub(crate) fn disconnected(&self) {
        self.lock().hang_up = None;
    }

    /// Whether receiving should continue.
    pub(crate) fn is_wanted(&self) -> bool {
        self.lock().wanted
    }

    /// Waits before the next attempt, at most this long.
    pub(crate) fn pause(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut inner = self.lock();
        while inner.wanted {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.changed.wait_for(&mut inner, left);
        }
    }

    /// Waits until receiving is wanted, or never will be.
    pub(crate) fn wait_until_wanted(&self) {
        let mut inner = self.lock();
        while !inner.wanted && !inner.is_over {
            self.changed.wait(&mut inner);
        }
    }

    /// Starts receiving again.
    pub(crate) fn start(&self) {
        let mut inner = self.lock();
        (inner.wanted, inner.failure) = (!inner.is_over, None);
        if inner.phase == Phase::Failed || inner.phase == Phase::Stopped {
            inner.received = Instant::now();
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Stops receiving for good.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.stop();
    }

    /// Stops receiving; durable data is still served.
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        inner.wanted = false;
        if let Some(hang_up) = inner.hang_up.take() {
            hang_up.now();
        }
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_elsewhere_is_not_taken_for_a_stop() {
        let control = Control::default();
        // The log can't be synced while the receiver makes a connection.
        control.fail("disk full");
        control.fail("the store refuses");
        control.connect("db1".into());
        assert!(!control.connected(None));
        assert!(!control.was_stopped());
        assert_eq!(control.seen().phase, Phase::Failed);
        assert_eq!(control.seen().failure.as_deref(), Some("disk full"));
        control.start();
        assert_eq!(control.seen().failure, None);
        assert!(control.connected(None));
        control.stop();
        assert!(control.was_stopped());
        assert_eq!(control.seen().phase, Phase::Stopped);
    }

    #[test]
    fn what_hinders_stays_to_be_seen_until_something_is_received() {
        let control = Control::default();
        control.hinder(Hindrance::Here, "no\nthreads");
        control.connect("db1".into());
        let seen = control.seen();
        assert_eq!(seen.phase, Phase::Connecting);
        assert_eq!(seen.hindrance, Some((Hindrance::Here, "no\\nthreads".into())));
        control.enter(Phase::Receiving);
        let seen = control.seen();
        assert_eq!((seen.hindrance, seen.without), (None, Duration::ZERO));
    }

    #[test]
    fn a_disk_that_failed_is_told_until_something_is_durable_again() {
        let control = Control::default();
        control.fail_for_now("the disk");
        assert!(control.is_wanted(), "it is tried again");
        control.connect("db1".into());
        control.enter(Phase::Receiving);
        assert_eq!(control.seen().phase, Phase::Failed);
        control.mended();
        assert_eq!(control.seen().phase, Phase::Receiving);
    }
}
