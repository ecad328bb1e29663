//! The reports of the relay's parts about their own work: log lines, counters, lag, and whether each thread is alive.
//!
//! In come events from every other part. Log lines go out at once; `watch` reads the rest and decides what is
//! healthy. Nothing here depends on the other parts.
//!
//! * `duties` starts threads and records which of them are working;
//! * `ending` tells a source's threads that they are no longer needed;
//! * `lag` measures how far the log lags behind the source, and whether receiving has stalled;
//! * `meters` counts bytes, transactions, syncs and errors.

pub(crate) mod duties;
pub(crate) mod ending;
pub(crate) mod lag;
pub(crate) mod meters;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use binlogz_binlog::printable;

use crate::error::Error;
use duties::Duties;
use ending::Ending;
use lag::Lag;
use meters::Meters;

/// Logs one line.
pub type Log = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// The audience of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A reader who wants to know what happened.
    Info,
    /// A reader who wants to know what went wrong.
    Error,
}

/// The telemetry of a source; also of the parts that all sources share.
pub(crate) struct Telemetry {
    /// The source's name; empty for the only source, and for what is shared.
    name: String,
    pub(crate) ending: Ending,
    pub(crate) duties: Duties,
    pub(crate) lag: Lag,
    pub(crate) meters: Meters,
    log: Log,
}

impl Telemetry {
    /// For a source of this name, which all its lines begin with unless it is empty.
    pub(crate) fn new(name: &str, log: Log) -> Self {
        Telemetry {
            name: name.to_owned(),
            ending: Ending::default(),
            duties: Duties::default(),
            lag: Lag::default(),
            meters: Meters::default(),
            log,
        }
    }

    /// Logs a line. Control characters are escaped, so that text from a peer can't forge lines.
    pub(crate) fn line(&self, level: Level, line: &str) {
        (self.log)(level, &self.named(&printable(line)));
    }

    pub(crate) fn say(&self, line: &str) {
        self.line(Level::Info, line);
    }

    /// Logs an error, counts it and remembers it.
    pub(crate) fn complain(&self, error: &Error, line: &str) {
        let line = printable(line);
        self.meters.failed(error.kind(), &line);
        (self.log)(Level::Error, &self.named(&line));
    }

    fn named<'l>(&self, line: &'l str) -> Cow<'l, str> {
        match self.name.as_str() {
            "" => line.into(),
            name => format!("source {name}: {line}").into(),
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}
