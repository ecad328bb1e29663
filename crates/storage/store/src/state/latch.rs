//! The latch: after a failed write or sync we don't know which bytes are on disk until recovery has looked. Until then
//! the store refuses writes, and readers still get the bytes that were durable before.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Closes at the first error; only recovery calls [`Latch::open`].
#[derive(Debug, Default)]
pub(crate) struct Latch {
    closed: AtomicBool,
    /// The error that closed it.
    first: Mutex<Option<String>>,
    /// Counts how often recovery opened the log: work that began before an opening does not know the changes that
    /// recovery made.
    openings: AtomicU64,
}

impl Latch {
    fn first(&self) -> parking_lot::MutexGuard<'_, Option<String>> {
        self.first.lock()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.is_closed() {
            true => Err(Error::Latched { first: self.reason() }),
            false => Ok(()),
        }
    }

    pub(crate) fn reason(&self) -> String {
        self.first().clone().unwrap_or_else(|| "an operation did not end".to_owned())
    }

    pub(crate) fn openings(&self) -> u64 {
        self.openings.load(Ordering::Acquire)
    }

    /// Refuses writes from now on.
    pub(crate) fn close(&self, reason: impl FnOnce() -> String) {
        self.first().get_or_insert_with(reason);
        self.closed.store(true, Ordering::Release);
    }

    /// Called once recovery has looked at everything.
    pub(crate) fn open(&self) {
        *self.first() = None;
        self.openings.fetch_add(1, Ordering::AcqRel);
        self.closed.store(false, Ordering::Release);
    }

    /// Runs work that leaves the disk in an unknown state if it fails or panics.
    pub(crate) fn guard<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        struct ClosingLatch<'a>(&'a Latch, bool);
        impl Drop for ClosingLatch<'_> {
            fn drop(&mut self) {
                if self.1 {
                    self.0.closed.store(true, Ordering::Release);
                }
            }
        }
        self.check()?;
        let mut closing = ClosingLatch(self, true);
        let done = work();
        match &done {
            Ok(_) => closing.1 = false,
            Err(error) => self.close(|| error.to_string()),
        }
        done
    }
}
