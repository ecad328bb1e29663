//! Text that others chose (names of tables, users and files, messages of servers) as a terminal or a log may show it. A
//! control character in it would move the cursor, change colours or begin a line that looks like one of ours.

use std::borrow::Cow;

/// The same text on one line: control characters are shown as escapes (`\n`, `\u{1b}`), those that reverse the direction
/// of writing too. Anything else stays as it is.
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

/// Whether a terminal does something else than to show the character.
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
