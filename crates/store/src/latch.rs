//! The latch: after a write or a sync that failed, what is on disk is not known until recovery has looked at it.
//! Until then the store refuses writes; readers go on with what was durable before.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Closes at the first error; [`Latch::open`] is for recovery alone.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    closed: AtomicBool,
    /// The error that closed it.
    first: Mutex<Option<String>>,
    /// How often it was opened again: what began before that knows nothing of what recovery did.
    openings: AtomicU64,
}

impl Latch {
    fn first(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The error that closed it.
    pub(crate) fn reason(&self) -> String {
        self.first().clone().unwrap_or_else(|| "an operation did not end".to_owned())
    }

    pub(crate) fn openings(&self) -> u64 {
        self.openings.load(Ordering::Acquire)
    }

    /// Refuses from now on.
    pub(crate) fn close(&self, reason: impl FnOnce() -> String) {
        self.first().get_or_insert_with(reason);
        self.closed.store(true, Ordering::Release);
    }

    /// Recovery has looked at everything.
    pub(crate) fn open(&self) {
        *self.first() = None;
        self.openings.fetch_add(1, Ordering::AcqRel);
        self.closed.store(false, Ordering::Release);
    }

    /// Does what leaves the disk in an unknown state if it fails, or panics.
    pub(crate) fn guard<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        struct Closing<'a>(&'a Latch, bool);
        impl Drop for Closing<'_> {
            fn drop(&mut self) {
                if self.1 {
                    self.0.closed.store(true, Ordering::Release);
                }
            }
        }
        self.check()?;
        let mut closing = Closing(self, true);
        let done = work();
        match &done {
            Ok(_) => closing.1 = false,
            Err(error) => self.close(|| error.to_string()),
        }
        done
    }
}
