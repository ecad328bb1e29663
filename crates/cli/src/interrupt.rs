//! An interrupted run leaves nothing behind: the unfinished files are known here, and removed when
//! a signal, or a reader that went away, ends the process.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::failure::{Failure, Result};

/// Temporary files that are being written, and temporary directories.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What is done before a signal ends the process.
static BEFORE_THE_END: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

/// Does this before a signal ends the process, as putting back what was changed elsewhere.
pub(crate) fn before_the_end(act: impl FnOnce() + Send + 'static) {
    BEFORE_THE_END.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(act));
}

/// The unfinished files. While they are held no signal ends the process: what happens to a file and
/// what is known of it change together.
pub(crate) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals from now on. The process still dies of them, as whoever sent them expects.
pub(crate) fn watch() -> Result<()> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|error| Failure::Line(format!("handle signals: {error}")))?;
    let watcher = move || {
        for signal in signals.forever() {
            let acts = std::mem::take(&mut *BEFORE_THE_END.lock().unwrap_or_else(PoisonError::into_inner));
            acts.into_iter().for_each(|act| act());
            let unfinished = remove_unfinished();
            let _ = emulate_default_handler(signal);
            drop(unfinished);
        }
    };
    let spawned = thread::Builder::new().name("signals".into()).spawn(watcher);
    spawned.map(drop).map_err(|error: io::Error| Failure::Line(format!("start a thread: {error}")))
}

/// Removes the unfinished files and lets nobody begin another one.
fn remove_unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    let mut unfinished = unfinished();
    for path in unfinished.drain(..) {
        // Nothing more can be done about one that can't be removed.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    unfinished
}
