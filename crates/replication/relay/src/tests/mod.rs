//! Tests of the relay as a whole, on a simulated disk and against a simulated source.

mod archiving;
mod checking;
pub(crate) mod crashes;
mod damage;
mod dumps;
mod duties;
mod faults;
mod heard;
mod in_use;
mod logins;
mod named_files;
mod renewed;
mod retained;
mod simulated;
mod storing;

use std::sync::Arc;

use binlogz_relay_forms::Conversions;
use binlogz_relay_log::Disk;

use crate::error::Result;
use crate::options::SourceOptions;
use crate::rates::SharedRates;
use crate::source::{Common, RelaySource};
use crate::telemetry::Telemetry;

/// The only source of a relay, without the relay.
pub(crate) fn open_source(options: SourceOptions, disk: Arc<dyn Disk>) -> Result<RelaySource> {
    let common = Common {
        conversions: Arc::new(Conversions::new()),
        listen_semi_sync: false,
        requires_tls: false,
        forward: None,
        hostname: "localhost".into(),
        rates: SharedRates::default(),
    };
    RelaySource::open(options, disk, Arc::new(Telemetry::new("")), common)
}
