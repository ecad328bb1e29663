//! Tells the threads of a source that the source is no longer wanted: it was removed, or starts again with other
//! settings. They look here between their rounds.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::lock;

#[derive(Debug, Default)]
pub(crate) struct RelayEnding {
    has_begun: Mutex<bool>,
    begun: Condvar,
}

impl RelayEnding {
    /// From now on every thread ends as soon as it can.
    pub(crate) fn begin(&self) {
        *lock(&self.has_begun) = true;
        self.begun.notify_all();
    }

    pub(crate) fn has_begun(&self) -> bool {
        *lock(&self.has_begun)
    }

    /// Sleeps. Returns whether the thread should go on.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut has_begun = lock(&self.has_begun);
        while !*has_begun {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            has_begun = self.begun.wait_timeout(has_begun, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        !*has_begun
    }
}
