//! Golden files: what a test made, compared with what it made when somebody last looked.

use std::path::Path;
use std::{env, fs};

/// Compares `text` with the file at `path`, line by line; writes the file anew instead where `UPDATE_GOLDEN` is set.
///
/// # Panics
/// Names the first line that differs. A file that is not there is empty.
pub fn assert_golden(path: &Path, text: &str) {
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, text).unwrap();
    }
    let name = path.display();
    let expected = fs::read_to_string(path).unwrap_or_default();
    for (number, (line, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "{name}, line {}", number + 1);
    }
    assert_eq!(text.len(), expected.len(), "{name}: lines were added or removed");
}
