//! Progress through files, shown on stderr while that is a terminal: which file of how many, how far, how fast, how much
//! longer.
//!
//! A command tells how many bytes it has finished. That number stands still inside a transaction that is too large to
//! hold. So the file is watched as well: bytes that are read a second time are being worked on.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use binlogz_binlog::printable;
use binlogz_figures::human_size;
use binlogz_figures::progress::{OF_SIZE, OF_UNKNOWN_TIME, TICK};
use binlogz_flow::{Input, ReadAt};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::program::name as name_of_program;

/// Whether progress is not shown on a terminal either.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether a line is printed when a piece of work has ended.
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// The bar on the terminal: whatever is printed meanwhile goes above it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// From now on no progress is shown.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Prints a line for each piece of work from now on, with its bytes and its time.
pub fn be_verbose() {
    VERBOSE.store(true, Ordering::Relaxed);
}

/// Whether none is shown.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints something above the bar, if there is one.
pub fn above<R>(print: impl FnOnce() -> R) -> R {
    let shown = SHOWN.lock().clone();
    match shown {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// This bar with a template, unless no progress is to be shown. Lines of trouble go above it until it is finished.
pub fn shown(bar: ProgressBar, template: &str) -> ProgressBar {
    let bar = if is_quiet() { ProgressBar::hidden() } else { bar };
    let bar = bar.with_style(style(template));
    if !bar.is_hidden() {
        *SHOWN.lock() = Some(bar.clone());
    }
    bar
}

/// The style of a template.
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Says what a piece of work took, with its bytes if it counted any, for a user who asked for that.
pub fn tell_cost(name: &str, bytes: u64, started: Instant) {
    if !VERBOSE.load(Ordering::Relaxed) {
        return;
    }
    let seconds = started.elapsed().as_secs_f64();
    let rate = (bytes as f64 / seconds.max(0.001)) as u64;
    let size = match bytes {
        0 => String::new(),
        bytes => format!("{}, {}/s, ", human_size(bytes), human_size(rate)),
    };
    // If even that is closed, there is nobody to tell.
    let _ = writeln!(io::stderr(), "{}: {name}: {size}{seconds:.1} s", name_of_program());
}

/// The bar of one file, or of another piece of work. Gone when dropped.
#[derive(Debug)]
pub struct WorkProgress {
    bar: ProgressBar,
    done: Arc<AtomicU64>,
    /// When work began that ends in time.
    begun: Option<Instant>,
    started: Instant,
}

const OF_ANY_SIZE: &str = "{prefix} {spinner} {bytes} {bytes_per_sec}";
const OF_TIME: &str = "{prefix} {wide_bar} {msg}, at most {eta} left";

impl WorkProgress {
    /// A bar for `size` bytes; a spinner where the size is not known.
    pub fn new(name: &dyn Display, size: Option<u64>) -> Self {
        Self::of(name, size, (1, 1))
    }

    /// A bar for the file with this number, of this many files; a spinner where `size` is not known.
    pub fn of(name: &dyn Display, size: Option<u64>, (number, all): (usize, usize)) -> Self {
        let (bar, template) = match size {
            Some(size) => (ProgressBar::new(size), OF_SIZE),
            None => (ProgressBar::no_length(), OF_ANY_SIZE),
        };
        // The folder would leave no room for the bar.
        let name = name.to_string();
        let name = printable(name.rsplit('/').next().unwrap_or_default()).into_owned();
        let name = if all > 1 { format!("{number}/{all} {name}") } else { name };
        Self::shown(bar, template, name, None)
    }

    /// A bar of work that ends at this time, or before it.
    pub fn until(name: &str, deadline: Instant) -> Self {
        let begin = Instant::now();
        let time = deadline.saturating_duration_since(begin).as_millis() as u64;
        Self::shown(ProgressBar::new(time), OF_TIME, name.to_owned(), Some(begin))
    }

    /// A bar of work that is counted.
    pub fn counting(name: &str, what: &str, all: u64) -> Self {
        let template = format!("{{prefix}} {{wide_bar}} {{pos}}/{{len}} {what}, {{per_sec}}, {{eta}} left");
        Self::shown(ProgressBar::new(all), &template, name.to_owned(), None)
    }

    /// A sign of life of work that tells nothing.
    pub fn waiting(name: &str) -> Self {
        let progress = Self::shown(ProgressBar::no_length(), OF_UNKNOWN_TIME, name.to_owned(), None);
        progress.bar.enable_steady_tick(TICK);
        progress
    }

    fn shown(bar: ProgressBar, template: &str, name: String, begun: Option<Instant>) -> Self {
        let bar = shown(bar, template).with_prefix(name);
        WorkProgress { bar, done: Arc::default(), begun, started: Instant::now() }
    }

    /// Sets the number of bytes that are done.
    pub fn at(&self, bytes: u64) {
        match self.begun {
            Some(begin) => {
                self.bar.set_message(human_size(bytes));
                self.bar.set_position(begin.elapsed().as_millis() as u64);
            }
            None => {
                self.done.store(bytes, Ordering::Relaxed);
                self.bar.set_position(bytes);
            }
        }
    }

    /// Adds to the number of bytes that are done.
    pub fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// The input, watched for bytes that are read a second time.
    pub fn watch(&self, input: Input) -> Input {
        match input {
            Input::Places(log) => Input::Places(self.watched(log, false)),
            input => input,
        }
    }

    /// A file, watched for all that is read: of work that goes through it several times.
    pub fn watch_all(&self, log: Arc<dyn ReadAt>) -> Arc<dyn ReadAt> {
        self.watched(log, true)
    }

    fn watched(&self, log: Arc<dyn ReadAt>, from_the_first: bool) -> Arc<dyn ReadAt> {
        if self.bar.is_hidden() {
            return log;
        }
        let bar = self.bar.clone();
        let done = Arc::clone(&self.done);
        Arc::new(WatchedFile { log, bar, done, read: AtomicU64::new(0), from_the_first })
    }

    /// A writer, watched for the bytes written.
    pub fn watch_writer<'w>(&self, out: impl Write + 'w) -> Box<dyn Write + 'w> {
        match self.bar.is_hidden() {
            true => Box::new(out),
            false => Box::new(WatchedWriter { out, bar: self.bar.clone() }),
        }
    }
}

impl Drop for WorkProgress {
    fn drop(&mut self) {
        if !self.bar.is_hidden() {
            *SHOWN.lock() = None;
        }
        self.bar.finish_and_clear();
        let bytes = if self.begun.is_some() { 0 } else { self.bar.position() };
        tell_cost(&self.bar.prefix(), bytes, self.started);
    }
}

/// A file that shows where it is read.
struct WatchedFile {
    log: Arc<dyn ReadAt>,
    bar: ProgressBar,
    done: Arc<AtomicU64>,
    /// Where the bytes end that were read.
    read: AtomicU64,
    from_the_first: bool,
}

impl WatchedFile {
    fn show(&self, offset: u64, count: &io::Result<usize>) {
        let Ok(count @ 1..) = count else { return };
        let end = offset.saturating_add(*count as u64);
        if end <= self.read.fetch_max(end, Ordering::Relaxed) || self.from_the_first {
            self.bar.set_position(end.max(self.done.load(Ordering::Relaxed)));
        }
    }
}

impl ReadAt for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.log.read_at(buffer, offset);
        self.show(offset, &count);
        count
    }

    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        let count = self.log.append_at(buffer, offset);
        self.show(offset, &count);
        count
    }
}

/// A writer that shows how much was written.
struct WatchedWriter<W> {
    out: W,
    bar: ProgressBar,
}

impl<W: Write> Write for WatchedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bar.inc(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
