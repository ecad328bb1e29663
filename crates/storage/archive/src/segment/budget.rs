//! The memory that blocks in progress may take together, so that it does not depend on the number of threads.

use parking_lot::{Condvar, Mutex};

/// How much of a limit is taken.
#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    taken: Mutex<BudgetUse>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BudgetUse {
    bytes: usize,
    /// Set when nothing will be given back any more.
    over: bool,
}

impl Budget {
    /// A budget of `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Budget { max, taken: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until `bytes` are left, or until nothing is taken: a request larger than the budget runs alone.
    /// `false` if the run is over.
    pub(crate) fn wait_for(&self, bytes: usize) -> bool {
        let full = |taken: &mut BudgetUse| {
            !taken.over && taken.bytes > 0 && taken.bytes.saturating_add(bytes) > self.max
        };
        let mut taken = self.taken.lock();
        self.changed.wait_while(&mut taken, full);
        !taken.over
    }

    /// Takes bytes, whether or not they are left.
    pub(crate) fn take(&self, bytes: usize) {
        self.taken.lock().bytes += bytes;
    }

    /// Gives bytes back.
    pub(crate) fn give_back(&self, bytes: usize) {
        let mut taken = self.taken.lock();
        taken.bytes = taken.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// Wakes all waiting threads when the result is dropped: a run that failed gives nothing back.
    pub(crate) fn until_dropped(&self) -> BudgetEnd<'_> {
        BudgetEnd(self)
    }
}

/// Ends the waiting for a budget.
pub(crate) struct BudgetEnd<'a>(&'a Budget);

impl Drop for BudgetEnd<'_> {
    fn drop(&mut self) {
        self.0.taken.lock().over = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn what_is_too_much_waits_and_what_is_larger_than_all_goes_alone() {
        let budget = Budget::new(10);
        assert!(budget.wait_for(100));
        budget.take(6);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let go = budget.wait_for(5);
                assert!(done.load(Ordering::SeqCst));
                go
            });
            assert!(budget.wait_for(4));
            done.store(true, Ordering::SeqCst);
            budget.give_back(6);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn a_run_that_is_over_lets_nobody_wait() {
        let budget = Budget::new(10);
        budget.take(10);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.wait_for(1));
            drop(budget.until_dropped());
            assert!(!waiting.join().unwrap());
        });
    }
}
