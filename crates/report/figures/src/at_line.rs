//! Errors in the text of a configuration.

use std::ops::Range;

/// An error in a text, with the line in which its place begins, or else the first: `line 6: unknown field …`.
pub fn at_line(text: &str, place: Option<Range<usize>>, message: &str) -> String {
    let before = place.and_then(|place| text.get(..place.start)).unwrap_or_default();
    let line = 1 + before.matches('\n').count();
    format!("line {line}: {}", message.replace('\n', " "))
}
