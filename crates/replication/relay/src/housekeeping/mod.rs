//! Archives closed files, and removes them by the retention rules.
//!
//! The input is the closed files of each log (`binlogz_relay_log`) and the progress of the dumps that read them (`replicas`). The
//! results are archived files, removals, and files restored from the archive for a reader that needs them.
//! `log::brought_back` makes a restored file readable.
//!
//! * `archiving` puts closed files into the archive, and finds purged ones there;
//! * `checking` checks archives log by log, over days;
//! * `scrub` reads closed files to find damage, and repairs it;
//! * `retention` removes files, by the rules of the configuration or when a statement asks for it;
//! * `ages` tells how old files are, whatever clocks say.

pub(crate) mod ages;
pub(crate) mod archiving;
pub(crate) mod checking;
pub(crate) mod retention;
pub(crate) mod scrub;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

use binlogz_encryption::Keyring;
use binlogz_relay_log::{BroughtBack, ClosedLogs, Lineages};

use crate::rates::Throttles;
use crate::replicas::dumps::Dumps;
use crate::telemetry::Telemetry;
use ages::Ages;
use archiving::ArchiveOptions;
use checking::ArchiveChecks;
use retention::Retention;
use scrub::Scrub;

#[derive(Debug)]
pub(crate) struct Housekeeping {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) lineages: Arc<Lineages>,
    pub(crate) dumps: Arc<Dumps>,
    pub(crate) brought_back: Arc<BroughtBack>,
    pub(crate) archive: Option<ArchiveOptions>,
    pub(crate) checks: ArchiveChecks,
    /// The logs that are served without a source.
    pub(crate) closed: Option<Arc<ClosedLogs>>,
    pub(crate) retention: Retention,
    /// The directory of the log.
    pub(crate) directory: PathBuf,
    pub(crate) keyring: Option<Arc<Keyring>>,
    pub(crate) throttles: Arc<Throttles>,
    pub(crate) scrub: Scrub,
    /// `None` until retention first needs them.
    pub(crate) ages: Mutex<Option<Ages>>,
}
