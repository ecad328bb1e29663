//! The reports of the relay's parts about their own work: log lines, counters, lag, and whether each thread is alive.
//!
//! All other parts report here. Log lines go out at once, to whatever listens to `tracing`; `watch` reads the rest and
//! decides what is healthy. Nothing here depends on the other parts.
//!
//! * `duties` starts threads and records which of them are working;
//! * `ending` tells a source's threads that they are no longer needed;
//! * `lag` measures how far the log lags behind the source, and whether receiving has stalled;
//! * `lines` logs, `spans` name the subject of the lines;
//! * `meters` counts bytes, transactions, syncs and errors.

pub(crate) mod duties;
pub(crate) mod ending;
pub(crate) mod lag;
pub(crate) mod lines;
pub(crate) mod meters;
pub(crate) mod spans;

use std::fmt;

use binlogz_binlog::printable;

use crate::error::Error;
use duties::Duties;
use ending::RelayEnding;
use lag::Lag;
use meters::Meters;

pub(crate) use lines::{complain, report, say};

/// The telemetry of a source; also of the parts that all sources share.
pub(crate) struct Telemetry {
    /// The source's name; empty for the only source, and for shared parts.
    name: String,
    pub(crate) ending: RelayEnding,
    pub(crate) duties: Duties,
    pub(crate) lag: Lag,
    pub(crate) meters: Meters,
}

impl Telemetry {
    /// For a source of this name.
    pub(crate) fn new(name: &str) -> Self {
        Telemetry {
            name: name.to_owned(),
            ending: RelayEnding::default(),
            duties: Duties::default(),
            lag: Lag::default(),
            meters: Meters::default(),
        }
    }

    /// The source's name; none for the only source, and for shared parts.
    pub(crate) fn source(&self) -> Option<&str> {
        Some(self.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Counts an error and remembers its line, which is returned with control characters escaped: text from a peer can't forge
    /// lines.
    pub(crate) fn remember(&self, error: &Error, line: &str) -> String {
        let line = printable(line).into_owned();
        self.meters.failed(error.kind(), &line);
        line
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}
