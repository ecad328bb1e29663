//! Messages of a scheduler and of executors, as lines: all of our own; of Ballista's only warnings and errors, or
//! everything.

use std::io::Write;

use log::{Level, LevelFilter, Log, Metadata, Record};

struct Lines {
    is_verbose: bool,
}

/// Writes lines to standard error from now on; all of Ballista's too, if it is verbose.
pub fn to_stderr(is_verbose: bool) {
    // A program has one; it stays if there is one already.
    if log::set_boxed_logger(Box::new(Lines { is_verbose })).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.is_verbose || metadata.level() <= Level::Warn || metadata.target().starts_with("binlogz")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = match record.level() {
                Level::Error | Level::Warn => "warning: ",
                _ => "",
            };
            // If even standard error is closed, nobody reads it.
            let _ = writeln!(std::io::stderr(), "binlogz-sql: {level}{}", record.args());
        }
    }

    fn flush(&self) {}
}
