//! Makes text chosen by others (names of tables, users and files, messages of servers) safe to show on a
//! terminal or in a log. A control character in it could move the cursor, change colours or fake a line of
//! ours.

use std::borrow::Cow;

/// Text on one line: control characters become escapes (`\n`, `\u{1b}`), as do those that reverse the writing direction.
/// Everything else is unchanged.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match acts(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal does anything other than show the character.
fn acts(letter: char) -> bool {
    const LINE_ENDS: [char; 2] = ['\u{2028}', '\u{2029}'];
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns || LINE_ENDS.contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for text in ["", "shop.item", "größe \\ 'x' 漢字 🙂", "\u{fffd}"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
        for (text, shown) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\u{0}"),
            ("\u{7f}\u{85}\u{9b}31m", "\\u{7f}\\u{85}\\u{9b}31m"),
            ("x\u{202e}y\u{2066}z\u{2028}", "x\\u{202e}y\\u{2066}z\\u{2028}"),
        ] {
            assert_eq!(printable(text), shown);
        }
        let all: String = ('\0'..='\u{ffff}').collect();
        assert!(!printable(&all).contains(acts));
    }
}
