//! Permission to hold an event that is larger than a batch: only one holder at a time.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Hands out the one [`Permit`].
#[derive(Debug, Clone, Default)]
pub(super) struct Permits(Arc<(Mutex<bool>, Condvar)>);

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Permits);

impl Permits {
    /// Waits until the permit is free.
    ///
    /// Only the reading thread may wait: the permit is then with a worker, which can finish without it.
    pub(super) fn take(&self) -> Permit {
        let (taken, freed) = &*self.0;
        let mut guard = taken.lock();
        freed.wait_while(&mut guard, |taken| *taken);
        *guard = true;
        Permit(self.clone())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (taken, freed) = &*self.0.0;
        *taken.lock() = false;
        freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_at_a_time() {
        let permits = Permits::default();
        let first = permits.take();
        let waiting = thread::spawn({
            let permits = permits.clone();
            move || drop(permits.take())
        });
        thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished());
        drop(first);
        waiting.join().unwrap();
    }
}
