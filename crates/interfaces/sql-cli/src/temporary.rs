//! The folder of temporary files. It is removed at the end of the run, also if a signal ends it; the next run removes
//! that of a run which was killed.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use binlogz_query::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// How often removing the folder is tried before a signal ends the run.
const REMOVALS_MAX: usize = 10;

/// How the names of such folders begin.
const PREFIX: &str = "binlogz-sql-";
/// A folder that is younger may not be locked yet.
const SWEPT_AFTER: Duration = Duration::from_secs(60);

/// A folder for temporary files. It is locked as long as its process lives, whatever ends that.
pub(crate) struct Temporary {
    folder: tempfile::TempDir,
    _lock: File,
}

/// Removes folders of runs that were killed. A folder that can't be examined or removed is left as it is.
fn sweep(all: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // Of a link, this is the link's.
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
        if metadata.is_dir()
            && age.is_some_and(|age| age > SWEPT_AFTER)
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Temporary {
    /// One whose run ends with a signal.
    pub(crate) fn new() -> Result<Self, Error> {
        Self::with(|_| false)
    }

    /// A folder whose run ends with a signal, unless `takes` takes the signal.
    pub(crate) fn with(takes: impl Fn(i32) -> bool + Send + 'static) -> Result<Self, Error> {
        // A signal is noted from here on, and acted on once the folder is there.
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
        let mut signals = signals.map_err(|error| Error::Log(format!("handle signals: {error}")))?;
        let failed = |error: io::Error| Error::Log(format!("make a temporary folder: {error}"));
        sweep(&env::temp_dir());
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().map_err(failed)?;
        let lock = File::open(folder.path()).map_err(failed)?;
        // Without locks there, nobody else will take it for left behind: it isn't swept.
        let _ = lock.try_lock();
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
        Ok(Temporary { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}
