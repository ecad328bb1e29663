//! Archives closed files, and removes them by the retention rules.
//!
//! In come the closed files of each log (`log`) and the progress of the dumps that read them (`replicas`). Out go
//! archived files, removals, and files restored from the archive for a reader that needs them. `log::brought_back`
//! makes a restored file readable.
//!
//! * `archiving` puts closed files into the archive, and finds there what was purged;
//! * `retention` removes files, by the rules of the configuration or when a statement asks for it.

pub(crate) mod archiving;
pub(crate) mod retention;

use std::path::PathBuf;
use std::sync::Arc;

use binlogz_encryption::Keyring;

use crate::closed::ClosedLogs;
use crate::log::brought_back::BroughtBack;
use crate::log::lineages::Lineages;
use crate::rates::Throttles;
use crate::replicas::dumps::Dumps;
use crate::telemetry::Telemetry;
use archiving::ArchiveOptions;
use retention::Retention;

#[derive(Debug)]
pub(crate) struct Housekeeping {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) lineages: Arc<Lineages>,
    pub(crate) dumps: Arc<Dumps>,
    pub(crate) brought_back: Arc<BroughtBack>,
    pub(crate) archive: Option<ArchiveOptions>,
    /// The logs that are served without a source.
    pub(crate) closed: Option<Arc<ClosedLogs>>,
    pub(crate) retention: Retention,
    /// The directory of the log.
    pub(crate) directory: PathBuf,
    pub(crate) keyring: Option<Arc<Keyring>>,
    pub(crate) throttles: Arc<Throttles>,
}
