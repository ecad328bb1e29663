//! Decides when written data is made durable: `sync_binlog`, and an interval.
//!
//! ```text
//! sync_binlog = 1      as soon as it is written; what comes meanwhile is synced together
//! sync_binlog = N      when N transactions are written, or the oldest of them is as old as the interval
//! sync_binlog = 0      when the oldest is as old as the interval
//! ```
//!
//! In every mode, nothing is served before it is synced: fewer syncs delay replicas, but never lose them a byte. A
//! file is always synced at its end.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often the log is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncPolicy {
    /// Sync after this many transactions; 0 means only by the interval.
    pub sync_binlog: u32,
    /// Sync after this long at the latest, if not every transaction is synced.
    pub interval: Duration,
}

impl Default for SyncPolicy {
    fn default() -> Self {
        SyncPolicy { sync_binlog: 1, interval: Duration::from_secs(1) }
    }
}

impl SyncPolicy {
    /// Whether every transaction is made durable as soon as it is written.
    pub fn is_prompt(&self) -> bool {
        self.sync_binlog == 1
    }
}

/// The part that was written but isn't durable yet.
#[derive(Debug, Default)]
pub struct UnsyncedRange {
    state: Mutex<SyncState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SyncState {
    /// Since when anything is unsynced.
    since: Option<Instant>,
    transactions: u64,
    /// Nothing more will be written.
    is_over: bool,
}

impl UnsyncedRange {
    fn lock(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock()
    }

    /// Records more written transactions.
    pub fn add(&self, transactions: u64) {
        let mut state = self.lock();
        state.since.get_or_insert_with(Instant::now);
        state.transactions += transactions;
        self.changed.notify_one();
    }

    /// Waits until the next sync is due; everything written until then counts as synced.
    pub fn wait(&self, policy: SyncPolicy) {
        let mut state = self.lock();
        loop {
            let patience = match state.since {
                _ if state.is_over => break,
                None => None,
                Some(_) if policy.is_prompt() => break,
                Some(_) if policy.sync_binlog > 0 && state.transactions >= u64::from(policy.sync_binlog) => {
                    break;
                }
                Some(since) => Some(policy.interval.saturating_sub(since.elapsed())),
            };
            match patience {
                None => self.changed.wait(&mut state),
                Some(Duration::ZERO) => break,
                Some(left) => drop(self.changed.wait_for(&mut state, left)),
            }
        }
        *state = SyncState { is_over: state.is_over, ..SyncState::default() };
    }

    /// Nothing more will be written: no further wait lasts.
    pub fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_its_time() {
        let long = Duration::from_secs(3600);
        let unsynced = UnsyncedRange::default();
        unsynced.add(0);
        unsynced.wait(SyncPolicy::default());
        unsynced.add(2);
        unsynced.add(1);
        unsynced.wait(SyncPolicy { sync_binlog: 3, interval: long });
        // Nothing is left by then: only the interval ends this.
        unsynced.add(2);
        let short = Duration::from_millis(20);
        let began = Instant::now();
        unsynced.wait(SyncPolicy { sync_binlog: 3, interval: short });
        unsynced.add(1_000_000);
        unsynced.wait(SyncPolicy { sync_binlog: 0, interval: short });
        assert!(began.elapsed() >= 2 * short - Duration::from_millis(2));
    }
}
