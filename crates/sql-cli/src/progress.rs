//! A sign of life on standard error while nothing is printed, and what a run took: `--quiet` and `--verbose`, as in binlogz.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

/// How often it moves.
const TICK: Duration = Duration::from_millis(200);

/// What is shown: lines of trouble go above it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints something above the sign of life, if there is one.
pub(crate) fn above<R>(print: impl FnOnce() -> R) -> R {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ProgressArgs {
    /// Show no progress; there is none where standard error is no terminal
    #[arg(long)]
    quiet: bool,
    /// Say on standard error how long it took
    #[arg(long, short)]
    verbose: bool,
}

/// Gone when dropped, or told to be.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    name: &'static str,
    is_verbose: bool,
    begun: Instant,
}

impl ProgressArgs {
    /// Begins work of this name.
    pub(crate) fn begin(&self, name: &'static str) -> Progress {
        let bar = if self.quiet { ProgressBar::hidden() } else { ProgressBar::no_length() };
        let style = ProgressStyle::with_template("{prefix} {spinner} {elapsed}");
        let bar =
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_prefix(name);
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        }
        Progress { bar, name, is_verbose: self.verbose, begun: Instant::now() }
    }
}

impl Progress {
    /// Before anything else is printed: both may be one terminal.
    pub(crate) fn make_way(&self) {
        if !self.bar.is_finished() {
            self.bar.finish_and_clear();
        }
    }

    /// Output that it makes way for.
    pub(crate) fn before<W: Write>(&self, out: W) -> After<W> {
        After { bar: self.bar.clone(), out }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.make_way();
        if self.is_verbose {
            // If even that is closed, there is nobody to tell.
            let _ = writeln!(
                io::stderr(),
                "binlogz-sql: {}: {:.1} s",
                self.name,
                self.begun.elapsed().as_secs_f64()
            );
        }
    }
}

/// A writer that ends the sign of life first.
#[derive(Debug)]
pub(crate) struct After<W> {
    bar: ProgressBar,
    out: W,
}

impl<W: Write> Write for After<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.bar.is_finished() {
            self.bar.finish_and_clear();
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
