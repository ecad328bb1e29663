//! The last hour, for the page's charts.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::meters::now;
use crate::relay::Relay;

/// A sample so often.
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

/// Samples of the last hour.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Sample>>);

impl History {
    /// The oldest first.
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Takes samples for ever.
    pub(crate) fn watch(relay: &Relay) {
        let mut before = totals(relay);
        loop {
            std::thread::sleep(INTERVAL);
            let totals = totals(relay);
            let sample = Sample {
                time: now(),
                received: totals.received - before.received,
                stored: totals.stored - before.stored,
                served: totals.served - before.served,
            };
            before = totals;
            let mut samples = relay.history.0.lock().unwrap_or_else(PoisonError::into_inner);
            if samples.len() >= SAMPLES_MAX {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
    }
}

fn totals(relay: &Relay) -> Sample {
    Sample {
        time: 0,
        received: relay.meters.received_bytes.load(Ordering::Relaxed),
        stored: relay.meters.stored_bytes.load(Ordering::Relaxed),
        served: relay.dumps.bytes(),
    }
}
