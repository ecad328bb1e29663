//! How far a file is, on stderr while that is a terminal.

use std::fmt::Display;

use binlogz_binlog::printable;
use indicatif::{ProgressBar, ProgressStyle};

/// The bar of one file. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for `size` bytes; a spinner where the size is not known.
    pub(crate) fn new(name: &dyn Display, size: Option<u64>) -> Self {
        let (bar, template) = match size {
            Some(size) => {
                (ProgressBar::new(size), "{prefix} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
            }
            None => (ProgressBar::no_length(), "{prefix} {spinner} {bytes} {bytes_per_sec}"),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress { bar: bar.with_style(style).with_prefix(printable(&name.to_string()).into_owned()) }
    }

    /// So many bytes are done.
    pub(crate) fn at(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
