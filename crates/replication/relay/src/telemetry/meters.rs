//! The relay's counters.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use serde::Serialize;

use crate::time::now;

/// How many errors are remembered.
const ERRORS_KEPT: usize = 20;
/// The upper bound of the first sync-time bucket, in seconds; each further one is twice as large.
const SYNC_FIRST: f64 = 0.000_1;
const SYNC_BUCKETS: u16 = 16;

#[derive(Debug)]
pub(crate) struct Meters {
    /// Bytes of events of the source's files.
    pub(crate) received_bytes: AtomicU64,
    pub(crate) stored_bytes: AtomicU64,
    pub(crate) transactions: AtomicU64,
    /// How many of them were handed to the syncing thread.
    pub(crate) unsynced_from: AtomicU64,
    /// Batches received but not written yet.
    pub(crate) unwritten: AtomicU64,
    /// Whether everything the source has sent was processed.
    pub(crate) drained: AtomicBool,
    pub(crate) syncs: Histogram,
    syncing: Mutex<SyncsUnderWay>,
    errors: Mutex<Errors>,
}

#[derive(Debug, Default)]
struct Errors {
    by_kind: BTreeMap<&'static str, u64>,
    last: VecDeque<RememberedError>,
}

/// Syncs under way.
#[derive(Debug, Default)]
struct SyncsUnderWay {
    count: usize,
    /// When one last began alone, or ended.
    since: Option<Instant>,
}

/// A remembered error.
#[derive(Debug, Clone, Serialize)]
pub struct RememberedError {
    /// When the error occurred, in seconds since 1970.
    pub time: u64,
    /// The error's category.
    pub kind: &'static str,
    /// The line that was logged.
    pub text: String,
}

impl Default for Meters {
    fn default() -> Self {
        Meters {
            received_bytes: AtomicU64::new(0),
            stored_bytes: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            unsynced_from: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
            drained: AtomicBool::new(false),
            syncs: Histogram::new(exponential_buckets(SYNC_FIRST, 2.0, SYNC_BUCKETS)),
            syncing: Mutex::default(),
            errors: Mutex::default(),
        }
    }
}

impl Meters {
    pub(crate) fn received(&self, count: usize, drained: bool) {
        self.received_bytes.fetch_add(count as u64, Ordering::Relaxed);
        self.drained.store(drained, Ordering::Relaxed);
    }

    pub(crate) fn stored(&self, count: u64) {
        self.stored_bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Measures a sync. One that panics also counts as ended.
    pub(crate) fn sync<T, E>(&self, sync: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        struct SyncEnding<'a>(&'a Mutex<SyncsUnderWay>);
        impl Drop for SyncEnding<'_> {
            fn drop(&mut self) {
                let mut syncing = self.0.lock();
                syncing.count -= 1;
                syncing.since = (syncing.count > 0).then(Instant::now);
            }
        }
        let began = Instant::now();
        let mut syncing = self.syncing.lock();
        syncing.count += 1;
        syncing.since.get_or_insert(began);
        drop(syncing);
        let ending = SyncEnding(&self.syncing);
        let synced = sync()?;
        drop(ending);
        self.syncs.observe(began.elapsed().as_secs_f64());
        Ok(synced)
    }

    /// How long no sync has ended while one is running.
    pub(crate) fn syncing(&self) -> Option<Duration> {
        self.syncing.lock().since.map(|since| since.elapsed())
    }

    pub(crate) fn failed(&self, kind: &'static str, text: &str) {
        let mut errors = self.errors.lock();
        *errors.by_kind.entry(kind).or_default() += 1;
        if errors.last.len() >= ERRORS_KEPT {
            errors.last.pop_front();
        }
        errors.last.push_back(RememberedError { time: now(), kind, text: text.to_owned() });
    }

    /// Errors by kind, and the last ones, the newest first.
    pub(crate) fn errors(&self) -> (BTreeMap<&'static str, u64>, Vec<RememberedError>) {
        let errors = self.errors.lock();
        (errors.by_kind.clone(), errors.last.iter().rev().cloned().collect())
    }
}
