//! Acknowledgements of semi-synchronous replicas, and waiting for enough of them.
//!
//! ```text
//! sender     asks with the last event of what is durable · reads acknowledgements · notes them here
//! receiver   synced here, it may wait until N replicas have it too, before it acknowledges to the source
//! ```
//!
//! As with `rpl_semi_sync_source_timeout`, after one timeout we don't wait again until enough replicas have caught
//! up. Positions are those of the stored bytes.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use binlogz_store::Position;

/// How often a wait checks whether it should continue.
const TICK: Duration = Duration::from_millis(500);

/// How many replicas the relay waits for before it acknowledges to the source itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitForReplicas {
    /// The number of replicas; 0 means no waiting.
    pub count: usize,
    /// How long to wait.
    pub timeout: Duration,
}

impl Default for WaitForReplicas {
    fn default() -> Self {
        WaitForReplicas { count: 0, timeout: Duration::from_secs(10) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitResult {
    Enough,
    /// The first timeout: from now on we don't wait.
    InVain,
    /// We are not waiting at present.
    NotNow,
}

#[derive(Debug, Default)]
pub(crate) struct Acknowledgements {
    inner: Mutex<AcknowledgedPositions>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct AcknowledgedPositions {
    /// By connection: the stored log's number, and the acknowledged position in it.
    replicas: BTreeMap<u32, (u64, Position)>,
    /// After a timeout: how many replicas were needed, and for which position. Until they have it, we don't wait.
    missed: Option<(usize, (u64, Position))>,
}

impl AcknowledgedPositions {
    /// How many replicas have everything up to there.
    fn count(&self, place: (u64, Position)) -> usize {
        self.replicas.values().filter(|acknowledged| **acknowledged >= place).count()
    }
}

impl Acknowledgements {
    /// A replica has everything up to there.
    pub(crate) fn note(&self, connection: u32, lineage: u64, position: Position) {
        let mut inner = self.inner.lock();
        inner.replicas.insert(connection, (lineage, position));
        if inner.missed.is_some_and(|(wanted, place)| inner.count(place) >= wanted) {
            inner.missed = None;
        }
        drop(inner);
        self.changed.notify_all();
    }

    pub(crate) fn leave(&self, connection: u32) {
        self.inner.lock().replicas.remove(&connection);
    }

    /// Waits until enough replicas have everything up to there, unless the wait is cancelled.
    pub(crate) fn wait(
        &self,
        wait: WaitForReplicas,
        lineage: u64,
        position: Position,
        is_wanted: impl Fn() -> bool,
    ) -> WaitResult {
        let place = (lineage, position);
        let began = Instant::now();
        let mut inner = self.inner.lock();
        loop {
            if inner.count(place) >= wait.count {
                inner.missed = None;
                return WaitResult::Enough;
            }
            let left = wait.timeout.saturating_sub(began.elapsed());
            if let Some(missed) = &mut inner.missed {
                *missed = (wait.count, place);
                return WaitResult::NotNow;
            }
            if !is_wanted() {
                return WaitResult::NotNow;
            }
            if left.is_zero() {
                inner.missed = Some((wait.count, place));
                return WaitResult::InVain;
            }
            self.changed.wait_for(&mut inner, left.min(TICK));
        }
    }

    /// Whether we wait for replicas at present, if configured.
    pub(crate) fn are_waited_for(&self) -> bool {
        self.inner.lock().missed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::FileNumber;

    use super::*;

    fn at(file: u64, offset: u64) -> Position {
        Position { file: FileNumber(file), offset }
    }

    #[test]
    fn enough_replicas_are_waited_for_and_too_few_only_once() {
        let acknowledgements = Acknowledgements::default();
        let short = WaitForReplicas { count: 2, timeout: Duration::from_millis(10) };
        let wait = |position| acknowledgements.wait(short, 1, position, || true);
        acknowledgements.note(1, 1, at(2, 500));
        assert_eq!([wait(at(2, 500)), wait(at(2, 500))], [WaitResult::InVain, WaitResult::NotNow]);
        assert!(!acknowledgements.are_waited_for());
        acknowledgements.note(2, 1, at(3, 4));
        assert!(acknowledgements.are_waited_for(), "they have caught up");
        assert_eq!([wait(at(2, 500)), wait(at(2, 501))], [WaitResult::Enough, WaitResult::InVain]);
        acknowledgements.leave(1);
        assert_eq!(wait(at(1, 4)), WaitResult::NotNow);
        let none = WaitForReplicas { count: 0, ..short };
        assert_eq!(acknowledgements.wait(none, 1, at(9, 9), || true), WaitResult::Enough);
        // Of another log nothing is older than what this one has.
        acknowledgements.note(3, 2, at(1, 4));
        assert_eq!(wait(at(3, 4)), WaitResult::Enough);

        let long = WaitForReplicas { count: 2, timeout: Duration::from_secs(600) };
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| acknowledgements.wait(long, 2, at(1, 100), || true));
            acknowledgements.note(2, 2, at(1, 100));
            acknowledgements.note(3, 2, at(1, 200));
            assert_eq!(waits.join().ok(), Some(WaitResult::Enough));
        });
    }
}
