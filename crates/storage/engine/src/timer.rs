//! Measures how long the two stages of compression take: the server's `Compressing transaction changes.` and
//! `Decompressing transaction changes.`

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A stage that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStage {
    /// A transaction is compressed, in its session.
    Compressing,
    /// A payload is expanded, in the session that applies it.
    Decompressing,
}

impl CommitStage {
    /// The stage's name in `performance_schema`, without `stage/sql/`.
    pub fn name(self) -> &'static str {
        match self {
            CommitStage::Compressing => "Compressing transaction changes.",
            CommitStage::Decompressing => "Decompressing transaction changes.",
        }
    }
}

/// The columns of `events_stages_summary_global_by_event_name` for a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageFigures {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub sum: Duration,
    /// The longest.
    pub max: Duration,
}

/// Counts from any thread, without a lock.
#[derive(Debug, Default)]
pub(crate) struct StageTimer {
    count: AtomicU64,
    sum_nanos: AtomicU64,
    max_nanos: AtomicU64,
}

impl StageTimer {
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.max_nanos.fetch_max(nanos, Ordering::Relaxed);
        done
    }

    pub(crate) fn figures(&self) -> StageFigures {
        StageFigures {
            count: self.count.load(Ordering::Relaxed),
            sum: Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed)),
            max: Duration::from_nanos(self.max_nanos.load(Ordering::Relaxed)),
        }
    }

    pub(crate) fn truncate(&self) {
        for counter in [&self.count, &self.sum_nanos, &self.max_nanos] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}
