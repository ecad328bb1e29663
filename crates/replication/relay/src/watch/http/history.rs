//! The last hour, for the page's charts: lag, traffic, and each replica's lag.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::telemetry::duties;
use crate::time::now;
use crate::watch::WatchedRelay;
use crate::watch::status::SourceReport;

const INTERVAL: Duration = Duration::from_secs(10);
/// An hour of them.
const SAMPLES_MAX: usize = 360;
/// Samples that become one where only the lag is shown.
const SAMPLES_OF_A_LAG: usize = 4;
/// Replicas whose lag is remembered: 5 KiB each.
const REPLICAS_MAX: usize = 100;

/// The state of a source at a time: lag, traffic, each replica's lag.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sample {
    /// In seconds since 1970.
    pub(crate) time: u64,
    /// Behind the source.
    pub(crate) lag_seconds: Option<u64>,
    /// The traffic since the sample before.
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

/// A source's last hour.
#[derive(Debug, Default)]
pub(crate) struct HourHistory(Mutex<KeptSamples>);

#[derive(Debug, Default)]
struct KeptSamples {
    samples: VecDeque<Sample>,
    /// The status at the last sample, and when that was.
    last: Option<(SourceReport, Instant)>,
}

impl Sample {
    /// A sample of a status, with the traffic since another moment.
    pub(super) fn of(status: &SourceReport, before: Option<(&SourceReport, Duration)>) -> Sample {
        let traffic = before.map(|(before, elapsed)| {
            let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
            let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / seconds;
            let now = status.bytes;
            let before = before.bytes;
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

impl HourHistory {
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.0.lock().samples.iter().cloned().collect()
    }

    /// The lag of the last hour, the newest last: of several samples the largest, since a page of many sources is to be small.
    pub(super) fn lags(&self) -> Vec<Option<u64>> {
        let kept = self.0.lock();
        let samples: Vec<_> = kept.samples.iter().map(|sample| sample.lag_seconds).collect();
        let mut lags: Vec<_> =
            samples.rchunks(SAMPLES_OF_A_LAG).map(|few| few.iter().copied().max().flatten()).collect();
        lags.reverse();
        lags
    }

    /// Adds how it is now, if that is known.
    fn note(&self, current: Option<SourceReport>) {
        let mut kept = self.0.lock();
        let current = current.map(|status| (status, Instant::now()));
        let sample = match (&current, &kept.last) {
            (Some((status, at)), Some((before, since))) => {
                Sample::of(status, Some((before, at.saturating_duration_since(*since))))
            }
            (Some((status, _)), None) => Sample::of(status, None),
            (None, _) => Sample { time: now(), ..Sample::default() },
        };
        // There is nothing before the first to compare it with.
        if kept.last.is_some() || current.is_none() {
            kept.add(sample);
        }
        kept.last = current;
    }
}

/// Takes samples of all sources for ever.
pub(crate) fn watch(watch: &WatchedRelay) {
    loop {
        let shared = watch.shared();
        for source in watch.sources().into_iter().filter_map(|watched| watched.source.ok()) {
            // A value that is unknown now may be known at the next moment.
            source.history.note(duties::attempt(duties::WATCH, || source.status(&shared)).ok());
        }
        std::thread::sleep(INTERVAL);
    }
}

impl KeptSamples {
    fn add(&mut self, sample: Sample) {
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept() {
        let history = HourHistory::default();
        for time in 0..1000 {
            history.0.lock().add(Sample { time, ..Sample::default() });
        }
        let samples = history.samples();
        assert_eq!((samples.len(), samples[0].time, samples[359].time), (SAMPLES_MAX, 640, 999));
        assert_eq!(history.lags(), [None; 90]);
        for lag in [9, 5] {
            history.0.lock().add(Sample { lag_seconds: Some(lag), ..Sample::default() });
        }
        assert_eq!((history.lags().len(), history.lags().pop()), (90, Some(Some(9))));
    }
}
