//! Progress on standard error while nothing is printed, and the cost of a run: `--quiet` and `--verbose`, as in binlogz.
//!
//! While logs are read it is a bar with the bytes of this pass through them; at other times, such as while rows are
//! sorted, it is a sign of life.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_cli_common::companions::sql_inputs::SqlProgressArgs;
use binlogz_cli_common::progress;
use binlogz_figures::progress::{OF_SIZE, OF_UNKNOWN_TIME, TICK};
use binlogz_query::ReadMeter;
use indicatif::ProgressBar;

/// Gone when dropped, or told to be.
#[derive(Debug)]
pub(crate) struct SqlProgress {
    bar: ProgressBar,
    meter: Arc<ReadMeter>,
    name: &'static str,
    begun: Instant,
    /// Bytes that were read before.
    bytes_before: u64,
}

/// Draws the state of the meter, until the bar is finished.
fn follow(bar: &ProgressBar, meter: &ReadMeter) {
    let mut shown = None;
    while !bar.is_finished() {
        // Logs whose sizes can't be told have none.
        let passed = meter.passed().filter(|(_, all)| *all > 0);
        match passed {
            Some((done, all)) => {
                if shown.is_none_or(|before| done < before) {
                    bar.set_style(progress::style(OF_SIZE));
                    bar.set_position(done);
                    bar.reset_eta();
                }
                bar.set_length(all);
                bar.set_position(done.min(all));
            }
            None if shown.is_some() => bar.set_style(progress::style(OF_UNKNOWN_TIME)),
            None => {}
        }
        shown = passed.map(|(done, _)| done);
        bar.tick();
        thread::sleep(TICK);
    }
}

impl SqlProgress {
    /// Begins work of this name.
    pub(crate) fn begin(args: &SqlProgressArgs, name: &'static str) -> SqlProgress {
        SqlProgress::begin_again(args, name, Arc::default(), Duration::ZERO)
    }

    /// Begins one work of several that this meter follows. A work that takes less than `unseen` shows nothing.
    pub(crate) fn begin_again(
        args: &SqlProgressArgs,
        name: &'static str,
        meter: Arc<ReadMeter>,
        unseen: Duration,
    ) -> SqlProgress {
        if args.quiet {
            progress::be_quiet();
        }
        if args.verbose {
            progress::be_verbose();
        }
        let bar = progress::shown(ProgressBar::no_length(), OF_UNKNOWN_TIME).with_prefix(name);
        if !bar.is_hidden() {
            let bar = bar.clone();
            let meter = Arc::clone(&meter);
            thread::spawn(move || {
                thread::sleep(unseen);
                follow(&bar, &meter);
            });
        }
        let bytes_before = meter.sum();
        SqlProgress { bar, meter, name, begun: Instant::now(), bytes_before }
    }

    /// The meter that the progress shows.
    pub(crate) fn meter(&self) -> Arc<ReadMeter> {
        Arc::clone(&self.meter)
    }

    /// Before anything else is printed: both may be one terminal.
    pub(crate) fn make_way(&self) {
        if !self.bar.is_finished() {
            self.bar.finish_and_clear();
        }
    }

    /// Output that it makes way for.
    pub(crate) fn before<W: Write>(&self, out: W) -> ProgressEnd<W> {
        ProgressEnd { bar: self.bar.clone(), out }
    }
}

impl Drop for SqlProgress {
    fn drop(&mut self) {
        self.make_way();
        progress::tell_cost(self.name, self.meter.sum() - self.bytes_before, self.begun);
    }
}

/// A writer that ends the bar first.
#[derive(Debug)]
pub(crate) struct ProgressEnd<W> {
    bar: ProgressBar,
    out: W,
}

impl<W: Write> Write for ProgressEnd<W> {
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
