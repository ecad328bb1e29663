//! The last hour, for the page's charts.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::time::now;
use crate::watch::Watch;

const INTERVAL: Duration = Duration::from_secs(60);
const SAMPLES_MAX: usize = 60;

/// What happened in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Its end, in seconds since 1970.
    pub(crate) time: u64,
    pub(crate) received: u64,
    pub(crate) stored: u64,
    pub(crate) served: u64,
}

#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Sample>>);

impl History {
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    pub(crate) fn watch(watch: &Watch) {
        let mut before = totals(watch);
        loop {
            std::thread::sleep(INTERVAL);
            let totals = totals(watch);
            let sample = Sample {
                time: now(),
                received: totals.received - before.received,
                stored: totals.stored - before.stored,
                served: totals.served - before.served,
            };
            before = totals;
            let mut samples = watch.history.0.lock().unwrap_or_else(PoisonError::into_inner);
            if samples.len() >= SAMPLES_MAX {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
    }
}

fn totals(watch: &Watch) -> Sample {
    Sample {
        time: 0,
        received: watch.telemetry.meters.received_bytes.load(Ordering::Relaxed),
        stored: watch.telemetry.meters.stored_bytes.load(Ordering::Relaxed),
        served: watch.server.dumps.bytes(),
    }
}
