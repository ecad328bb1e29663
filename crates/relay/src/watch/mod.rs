//! The relay's status: for people, for Prometheus, and for process supervisors.
//!
//! In come the figures of every part (`telemetry`, `receive`, `replicas`, `log`). Out go pages and numbers over HTTP.
//! It is read-only.
//!
//! * `status` is a snapshot of all of it; `status/health` says what is wrong in it;
//! * `http` answers with a page, JSON, OpenMetrics, or whether the relay is healthy.

pub(crate) mod http;
pub(crate) mod status;

use std::sync::Arc;
use std::time::Instant;

use crate::receive::intake::Intake;
use crate::serve::Server;
use crate::telemetry::Telemetry;
use http::{History, HttpOptions};

pub(crate) struct Watch {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) server: Arc<Server>,
    pub(crate) history: History,
    pub(crate) started: Instant,
    pub(crate) http: Option<HttpOptions>,
}
