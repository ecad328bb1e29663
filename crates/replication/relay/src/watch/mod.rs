//! The relay's status: for people, for Prometheus, and for process supervisors.
//!
//! Takes the figures of every part (`telemetry`, `receive`, `replicas`, the log), and gives pages and numbers over HTTP. It
//! is read-only.
//!
//! * `status` is a snapshot of a source and `relay_status` of all of them; `status/health` says what is wrong in it;
//! * `condition` sums a source up in a word and a colour;
//! * `http` answers with a page, JSON, OpenMetrics, or whether the relay is healthy.

pub(crate) mod condition;
pub(crate) mod http;
pub(crate) mod relay_status;
pub(crate) mod status;

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

use crate::receive::intake::Intake;
use crate::serve::SourceServer;
use crate::serve::connections::door::Door;
use crate::telemetry::Telemetry;
use binlogz_relay_forms::Conversions;
use http::{HourHistory, HttpOptions};

/// The watched parts of a relay.
pub(crate) struct WatchedRelay {
    /// The door that all clients pass.
    pub(crate) door: Arc<Door>,
    pub(crate) conversions: Arc<Conversions>,
    pub(crate) started: Instant,
    pub(crate) http: Option<HttpOptions>,
    sources: Mutex<Vec<WatchedSource>>,
}

/// A source of the relay.
#[derive(Clone)]
pub(crate) struct WatchedSource {
    /// Empty for the only one of a relay whose source has no name.
    pub(crate) name: String,
    /// The error says why it could not be opened.
    pub(crate) source: Result<Arc<SourceWatch>, String>,
}

/// The watched parts of a source.
pub(crate) struct SourceWatch {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) server: Arc<SourceServer>,
    pub(crate) history: HourHistory,
    pub(crate) started: Instant,
}

impl WatchedRelay {
    pub(crate) fn new(
        door: Arc<Door>,
        conversions: Arc<Conversions>,
        http: Option<HttpOptions>,
    ) -> WatchedRelay {
        WatchedRelay { door, conversions, started: Instant::now(), http, sources: Mutex::default() }
    }

    pub(crate) fn set(&self, sources: Vec<WatchedSource>) {
        *self.sources.lock() = sources;
    }

    pub(crate) fn sources(&self) -> Vec<WatchedSource> {
        self.sources.lock().clone()
    }
}
