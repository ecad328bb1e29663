//! The folder of temporary files: gone with the run, also if a signal ends it.

use std::fs;
use std::path::Path;
use std::thread;

use binlogz_query::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// How often removing the folder is tried before a signal ends the run.
const REMOVALS_MAX: usize = 10;

/// A folder for temporary files.
pub(crate) struct Temporary(tempfile::TempDir);

impl Temporary {
    /// One whose run ends with a signal.
    pub(crate) fn new() -> Result<Self, Error> {
        Self::with(|_| false)
    }

    /// The same, unless `takes` takes the signal.
    pub(crate) fn with(takes: impl Fn(i32) -> bool + Send + 'static) -> Result<Self, Error> {
        // A signal is noted from here on, and acted on once the folder is there.
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
        let mut signals = signals.map_err(|error| Error::Log(format!("handle signals: {error}")))?;
        let folder = tempfile::Builder::new().prefix("binlogz-sql-").tempdir();
        let folder = folder.map_err(|error| Error::Log(format!("make a temporary folder: {error}")))?;
        let path = folder.path().to_owned();
        thread::spawn(move || {
            for signal in signals.forever() {
                if takes(signal) {
                    continue;
                }
                // A query that still runs may add a file meanwhile.
                for _ in 0..REMOVALS_MAX {
                    if fs::remove_dir_all(&path).is_ok() {
                        break;
                    }
                }
                let _ = emulate_default_handler(signal);
            }
        });
        Ok(Temporary(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}
