//! State shared by the workers: earlier blocks that others refer to, each picked by one worker while the others wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::block::picked::PickedChanges;

/// Memory for the contents of blocks that others refer to.
const KEPT_MAX: usize = 64 << 20;

/// Picked blocks that later blocks refer to, up to a bound of memory.
#[derive(Debug, Default)]
struct EarlierPicks {
    blocks: BTreeMap<u32, (u64, Arc<PickedChanges>)>,
    memory: usize,
    clock: u64,
}

impl EarlierPicks {
    fn get(&mut self, number: u32) -> Option<Arc<PickedChanges>> {
        self.clock += 1;
        let (used, picked) = self.blocks.get_mut(&number)?;
        *used = self.clock;
        Some(Arc::clone(picked))
    }

    fn put(&mut self, number: u32, picked: &Arc<PickedChanges>) {
        self.clock += 1;
        self.memory += picked.memory();
        if let Some((_, before)) = self.blocks.insert(number, (self.clock, Arc::clone(picked))) {
            self.memory -= before.memory();
        }
        while self.memory > KEPT_MAX {
            let oldest = self.blocks.iter().min_by_key(|(_, (used, _))| *used).map(|(number, _)| *number);
            let Some(oldest) = oldest.filter(|&oldest| oldest != number) else { return };
            if let Some((_, picked)) = self.blocks.remove(&oldest) {
                self.memory -= picked.memory();
            }
        }
    }
}

/// State shared by the workers: earlier blocks, and which of them are being picked.
#[derive(Debug, Default)]
pub(super) struct PickerShared {
    state: Mutex<PickerState>,
    /// A block was picked, or given up.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct PickerState {
    kept: EarlierPicks,
    /// The blocks that are being picked, with the turn of the job that does it.
    under_way: BTreeMap<u32, u64>,
    /// The caller needs nothing more, so it will not gather the rest in order.
    is_over: bool,
}

/// Ends all waiting when it is dropped.
pub(super) struct End<'s>(pub(super) &'s PickerShared);

/// A block that is being picked, until this is dropped: also by an error, or if its result isn't wanted any more.
pub(super) struct UnderWay<'s> {
    shared: &'s PickerShared,
    number: u32,
}

impl PickerShared {
    pub(super) fn begin(&self, number: u32, turn: u64) -> UnderWay<'_> {
        self.state.lock().under_way.insert(number, turn);
        UnderWay { shared: self, number }
    }

    /// The picked contents of an earlier block, by the job of this turn or by another. `None`: nobody has it. A job waits
    /// only for those whose turn was before, and these have begun: so no two wait for each other.
    pub(super) fn earlier(&self, number: u32, turn: u64) -> Option<Arc<PickedChanges>> {
        let mut state = self.state.lock();
        loop {
            if let Some(picked) = state.kept.get(number) {
                return Some(picked);
            }
            if state.is_over || state.under_way.get(&number).is_none_or(|&other| other >= turn) {
                return None;
            }
            self.ended.wait(&mut state);
        }
    }

    pub(super) fn keep(&self, number: u32, picked: &Arc<PickedChanges>) {
        self.state.lock().kept.put(number, picked);
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.ended.notify_all();
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.shared.state.lock().under_way.remove(&self.number);
        self.shared.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Has a job of turn 5 ask for block 7, and does something while it waits.
    fn waits_until(shared: &PickerShared, done: impl FnOnce()) {
        thread::scope(|scope| {
            let asking = scope.spawn(|| shared.earlier(7, 5));
            thread::sleep(Duration::from_millis(50));
            assert!(!asking.is_finished());
            done();
            assert!(asking.join().unwrap().is_none());
        });
    }

    #[test]
    fn a_job_waits_for_those_before_it_until_they_give_up_or_nothing_is_wanted() {
        let shared = PickerShared::default();
        assert!(shared.earlier(7, 5).is_none(), "nobody picks it");
        let later = shared.begin(7, 9);
        assert!(shared.earlier(7, 5).is_none(), "that one might wait for this");
        drop(later);
        let before = shared.begin(7, 1);
        waits_until(&shared, || drop(before));
        // A result that nobody takes is never dropped while workers wait.
        let _untaken = shared.begin(7, 1);
        waits_until(&shared, || drop(End(&shared)));
    }
}
