//! Sentences on a terminal, broken between words.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The words of a text in lines no wider than this: `first` before the first line, `next` before the others. A word that
/// is wider has a line of its own.
pub fn wrapped(text: &str, first: &str, next: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.width() + 1 + word.width() > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            next.clone_into(&mut line);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines + line.trim_end()
}

/// The front of a text that is no wider than this.
pub(crate) fn front(text: &str, width: usize) -> &str {
    let mut used = 0;
    let fitting = text.char_indices().take_while(|(_, letter)| {
        used += letter.width().unwrap_or(0);
        used <= width
    });
    let end = fitting.last().map_or(0, |(at, letter)| at + letter.len_utf8());
    text.get(..end).unwrap_or_default().trim_end()
}

/// A text in lines no wider than this: broken between words, or inside one that is wider.
pub(crate) fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.width() > width {
        let mut used = 0;
        let fitting = rest.char_indices().take_while(|(_, letter)| {
            used += letter.width().unwrap_or(0);
            used <= width
        });
        // One letter at the least, though it may not fit.
        let end = fitting.last().map_or(0, |(at, letter)| at + letter.len_utf8());
        let end = end.max(rest.chars().next().map_or(0, char::len_utf8));
        let (line, after) = rest.split_at(end);
        let space = match after.starts_with(' ') {
            true => Some(end),
            false => line.rfind(' ').filter(|space| *space > 0),
        };
        let (line, after) = rest.split_at(space.unwrap_or(end));
        lines.push(line.trim_end().to_owned());
        rest = if space.is_some() { after.trim_start() } else { after };
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest.to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = "level 1 saves 56.9 % of the log";
        assert_eq!(wrapped(text, "- ", "  ", None), format!("- {text}"));
        assert_eq!(wrapped(text, "- ", "  ", Some(16)), "- level 1 saves\n  56.9 % of the\n  log");
        assert_eq!(wrapped("long words", "", "", Some(2)), "long\nwords");
    }

    #[test]
    fn words_that_are_too_wide_are_broken() {
        assert_eq!(folded("long words", 4), ["long", "word", "s"]);
        assert_eq!(folded("a longer text", 8), ["a longer", "text"]);
        assert_eq!(folded("日本語", 4), ["日本", "語"]);
        assert_eq!(folded("", 4), [""]);
        assert_eq!(folded("日本", 1), ["日", "本"]);
    }
}
