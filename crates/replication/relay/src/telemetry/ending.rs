//! Tells the threads of a source that the source is no longer wanted: it was removed, or starts again with other
//! settings. They look here between their rounds.

use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct RelayEnding {
    has_begun: Mutex<bool>,
    begun: Condvar,
}

impl RelayEnding {
    /// From now on every thread ends as soon as it can.
    pub(crate) fn begin(&self) {
        *self.has_begun.lock() = true;
        self.begun.notify_all();
    }

    pub(crate) fn has_begun(&self) -> bool {
        *self.has_begun.lock()
    }

    /// Sleeps. Returns whether the thread should go on.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut has_begun = self.has_begun.lock();
        while !*has_begun {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.begun.wait_for(&mut has_begun, left);
        }
        !*has_begun
    }
}
