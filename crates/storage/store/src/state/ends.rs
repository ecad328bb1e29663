//! How far the log is written, and how far it is durable.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::files::Position;

/// Both ends of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnds {
    /// Handed to the operating system: survives a crash of this process.
    pub written: Position,
    /// Synced: survives a crash of the system. Never beyond `written`; readers see nothing after it.
    pub durable: Position,
}

/// The positions, shared between threads that wait on them.
#[derive(Debug, Default)]
pub(crate) struct SharedPositions {
    state: Mutex<EndsState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct EndsState {
    /// `None` until there is a file.
    ends: Option<LogEnds>,
    /// How often the waiting threads were woken for another reason.
    wakes: u64,
}

impl SharedPositions {
    fn lock(&self) -> MutexGuard<'_, EndsState> {
        self.state.lock()
    }

    pub(crate) fn get(&self) -> Option<LogEnds> {
        self.lock().ends
    }

    /// Moves both here: a file was begun or recovered.
    pub(crate) fn set_both(&self, position: Position) {
        self.lock().ends = Some(LogEnds { written: position, durable: position });
        self.changed.notify_all();
    }

    /// How often waiting threads were woken.
    pub(crate) fn wakes(&self) -> u64 {
        self.lock().wakes
    }

    /// Wakes all threads that wait for something else, too.
    pub(crate) fn wake(&self) {
        self.lock().wakes += 1;
        self.changed.notify_all();
    }

    /// More was written, in the same file.
    pub(crate) fn set_written(&self, position: Position) {
        if let Some(positions) = self.lock().ends.as_mut() {
            assert!(positions.written <= position, "the written position went back");
            positions.written = position;
        }
    }

    /// Everything written up to here is durable. A sync that was overtaken by a rotation changes nothing.
    pub(crate) fn set_durable(&self, position: Position) -> Option<Position> {
        let mut guard = self.lock();
        let positions = guard.ends.as_mut()?;
        positions.durable = positions.durable.max(position);
        assert!(positions.durable <= positions.written, "durable is beyond what was written");
        let durable = positions.durable;
        drop(guard);
        self.changed.notify_all();
        Some(durable)
    }

    /// Waits until the log is durable beyond `position`, or until there were more wakes than `wakes`, at most for the given time.
    pub(crate) fn wait_durable_beyond(
        &self,
        position: Option<Position>,
        wakes: Option<u64>,
        patience: Duration,
    ) -> Option<LogEnds> {
        let deadline = Instant::now() + patience;
        let mut guard = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let is_woken = wakes.is_some_and(|wakes| wakes != guard.wakes);
            if guard.ends.is_some_and(|now| Some(now.durable) > position) || is_woken || left.is_zero() {
                return guard.ends;
            }
            self.changed.wait_for(&mut guard, left);
        }
    }
}
