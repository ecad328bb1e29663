//! Runs work that may take long, while Python looks for signals: Ctrl-C ends it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often Python looks for signals.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// How long interrupted work may take to end: it removes the files it began to write.
const END_MAX: Duration = Duration::from_secs(2);

/// Whether nobody waits for the work any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterruptFlag(Arc<AtomicBool>);

impl InterruptFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error if nobody waits for the work.
    pub(crate) fn check(&self) -> std::io::Result<()> {
        if self.is_set() { Err(std::io::Error::other("interrupted")) } else { Ok(()) }
    }
}

/// Works in a thread of its own, without the interpreter's lock.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&InterruptFlag) -> T + Send + 'static,
) -> PyResult<T> {
    let interrupted = InterruptFlag::default();
    let (sender, done) = channel();
    let done = Mutex::new(done);
    let told = interrupted.clone();
    thread::spawn(move || {
        let worked = catch_unwind(AssertUnwindSafe(|| work(&told)));
        // If this fails, nobody waits for it.
        let _ = sender.send(worked);
    });
    let mut is_ending: Option<(Instant, PyErr)> = None;
    loop {
        let wait = || done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK_PERIOD);
        match py.detach(wait) {
            Ok(worked) => {
                if let Some((_, error)) = is_ending {
                    return Err(error);
                }
                return worked.map_err(|_| PyRuntimeError::new_err("a bug in binlogz: a thread panicked"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("a bug in binlogz: a thread ended"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        match is_ending.take() {
            Some((begun, error)) if begun.elapsed() > END_MAX => return Err(error),
            Some(ending) => is_ending = Some(ending),
            None => {
                if let Err(error) = py.check_signals() {
                    interrupted.0.store(true, Ordering::Relaxed);
                    is_ending = Some((Instant::now(), error));
                }
            }
        }
    }
}
