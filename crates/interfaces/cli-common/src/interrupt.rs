//! An interrupted run leaves no files: unfinished ones are removed before a signal ends the process.

use std::io;
use std::thread;

use binlogz_atomic_file::remove_unfinished;
use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::failure::{CommandFailure, Result};
use crate::pager;

/// To be called before a signal ends the process.
static BEFORE_THE_END: Mutex<Vec<Box<dyn FnOnce() + Send>>> = Mutex::new(Vec::new());

/// Calls `act` before a signal ends the process, for example to restore a server's settings.
pub fn before_the_end(act: impl FnOnce() + Send + 'static) {
    BEFORE_THE_END.lock().push(Box::new(act));
}

/// The action that SIGHUP asks for instead of the end.
static ON_HANG_UP: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// From now on SIGHUP does this, and ends the process no longer.
pub fn on_hang_up(act: impl Fn() + Send + 'static) {
    *ON_HANG_UP.lock() = Some(Box::new(act));
}

/// Waits for signals from now on. The process still dies of them, as their sender expects,
/// unless SIGHUP means something else.
pub fn watch() -> Result<()> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|error| CommandFailure::Line(format!("handle signals: {error}")))?;
    let watcher = move || {
        for signal in signals.forever() {
            // Ctrl-C in a pager is for the pager.
            if signal == SIGINT && pager::is_open() {
                continue;
            }
            let hang_up = ON_HANG_UP.lock();
            if let Some(act) = hang_up.as_ref().filter(|_| signal == SIGHUP) {
                act();
                continue;
            }
            drop(hang_up);
            let acts = std::mem::take(&mut *BEFORE_THE_END.lock());
            acts.into_iter().for_each(|act| act());
            let none_begins = remove_unfinished();
            let _ = emulate_default_handler(signal);
            drop(none_begins);
        }
    };
    let spawned = thread::Builder::new().name("signals".into()).spawn(watcher);
    spawned.map(drop).map_err(|error: io::Error| CommandFailure::Line(format!("start a thread: {error}")))
}
