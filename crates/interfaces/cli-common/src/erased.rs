//! What is said of logs in archives from which values were erased: they aren't byte for byte their servers', and lack what was erased.

use std::path::Path;

use binlogz_archive::format::{ErasedLogs, FileEntry};
use binlogz_archive::input;

use crate::failure::warn;
use crate::time::shown;

/// The note on these logs; `None`: nothing was erased from any.
pub fn note_on<'f>(files: impl IntoIterator<Item = &'f FileEntry>) -> Option<String> {
    ErasedLogs::among(files).map(|erased| erased.in_words(shown))
}

/// Warns of those among these logs that are in an archive and from which values were erased.
pub fn warn_of<'p>(logs: impl IntoIterator<Item = &'p Path>) {
    if let Some(erased) = input::erased(logs) {
        warn(&erased.in_words(shown));
    }
}
