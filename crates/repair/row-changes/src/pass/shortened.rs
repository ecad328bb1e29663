//! A statement, or what else is as long, in one line of a comment or message.

use binlogz_binlog::printable;

/// The most characters of a statement in a comment.
const COMMENT_LENGTH_MAX: usize = 1000;

/// A statement as a comment shows it.
pub(crate) fn shortened(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = one_line.chars().take(COMMENT_LENGTH_MAX).collect();
    let dots = if short.len() < one_line.len() { " …" } else { "" };
    format!("{}{dots}", printable(&short))
}
