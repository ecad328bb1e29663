//! The last hour, for the page's charts: lag, traffic, and each replica's lag.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::telemetry::duties;
use crate::time::now;
use crate::watch::Watch;
use crate::watch::status::Status;

const INTERVAL: Duration = Duration::from_secs(10);
/// An hour of them.
const SAMPLES_MAX: usize = 360;
/// Replicas whose lag is remembered: 5 KiB each.
const REPLICAS_MAX: usize = 100;

/// How it was at a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sample {
    /// In seconds since 1970.
    pub(crate) time: u64,
    /// Behind the source.
    pub(crate) lag_seconds: Option<u64>,
    /// What happened since the sample before.
    pub(crate) traffic: Option<Traffic>,
    /// By their connections.
    pub(crate) replicas: Vec<(u32, Option<u64>)>,
}

/// Bytes in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) received: f64,
    pub(crate) stored: f64,
    pub(crate) served: f64,
}

#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Sample>>);

impl Sample {
    /// How it is, with what happened since another moment.
    pub(super) fn of(status: &Status, before: Option<(&Status, Duration)>) -> Sample {
        let traffic = before.map(|(before, elapsed)| {
            let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
            let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / seconds;
            let (now, before) = (status.bytes, before.bytes);
            Traffic {
                received: rate(now.received, before.received),
                stored: rate(now.stored, before.stored),
                served: rate(now.served, before.served),
            }
        });
        let replicas = status.replicas.iter().take(REPLICAS_MAX);
        Sample {
            time: now(),
            lag_seconds: status.source.lag_seconds,
            traffic,
            replicas: replicas.map(|replica| (replica.connection, replica.lag_seconds)).collect(),
        }
    }
}

impl History {
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn watch(watch: &Watch) {
        // A value that is unknown now may be known at the next moment.
        let seen =
            || duties::attempt(duties::WATCH, || watch.status()).ok().map(|status| (status, Instant::now()));
        let mut before = seen();
        loop {
            std::thread::sleep(INTERVAL);
            let current = seen();
            let sample = match (&current, &before) {
                (Some((status, at)), Some((before, since))) => {
                    Sample::of(status, Some((before, at.saturating_duration_since(*since))))
                }
                (Some((status, _)), None) => Sample::of(status, None),
                (None, _) => Sample { time: now(), ..Sample::default() },
            };
            watch.history.add(sample);
            before = current;
        }
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() >= SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept() {
        let history = History::default();
        for time in 0..1000 {
            history.add(Sample { time, ..Sample::default() });
        }
        let samples = history.samples();
        assert_eq!((samples.len(), samples[0].time, samples[359].time), (SAMPLES_MAX, 640, 999));
    }
}
