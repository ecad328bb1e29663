//! Sentences on a terminal, broken between words.

use unicode_width::UnicodeWidthStr;

/// The words of a text in lines no wider than this: `first` before the first line, `next` before the others. A word that
/// is wider has a line of its own.
pub fn wrapped(text: &str, first: &str, next: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let (mut lines, mut line, mut is_empty) = (String::new(), first.to_owned(), true);
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
}
