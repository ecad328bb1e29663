//! A snapshot of the state of receiving.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde::Serialize;

use crate::receive::control::Phase;
use crate::receive::intake::Intake;
use crate::time::now;

/// The state of receiving.
#[derive(Debug, Clone, Serialize)]
pub struct SourceStatus {
    /// Host and port.
    pub server: String,
    /// The phase of receiving.
    pub phase: Phase,
    /// Seconds since the phase began.
    pub phase_seconds: u64,
    /// Seconds since something was last received, or since it was first tried; none while receiving, and if a user stopped it.
    pub down_seconds: Option<u64>,
    /// Why it has failed, or why it can't continue at present.
    pub error: Option<String>,
    /// How far the stored log lags behind the source, by the source's clock; unknown until something was received.
    pub lag_seconds: Option<u64>,
    /// How many replicas must acknowledge at present before the relay acknowledges to the source.
    pub replicas_waited_for: usize,
}

impl Intake {
    pub(crate) fn status(&self) -> SourceStatus {
        let seen = self.control.seen();
        let ends = self.lineages.last().and_then(|kept| kept.store.positions());
        let is_kept = self.telemetry.meters.unwritten.load(Ordering::Relaxed) == 0
            && ends.is_none_or(|now| now.written == now.durable);
        SourceStatus {
            server: seen.server,
            phase: seen.phase,
            down_seconds: match seen.phase {
                Phase::Connecting | Phase::Waiting | Phase::Failed => Some(seen.without.as_secs()),
                Phase::Receiving | Phase::Stopped => None,
            },
            error: seen.failure.or_else(|| seen.hindrance.map(|(_, why)| why)),
            lag_seconds: self.telemetry.lag.lag(Instant::now(), now(), is_kept),
            phase_seconds: seen.since.as_secs(),
            replicas_waited_for: match self.acknowledgements.are_waited_for() {
                true => self.wait_for_replicas.count,
                false => 0,
            },
        }
    }
}
