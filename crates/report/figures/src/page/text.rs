//! Text and numbers as HTML.

use std::fmt::{self, Display};

use binlogz_binlog::printable;

/// Text that is nothing but text, in an element and in an attribute in double quotes. Control characters, and letters
/// that turn the direction of writing, are shown as escapes.
pub(super) struct EscapedText<'a>(pub(super) &'a str);

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printable(self.0).chars().try_for_each(|letter| write_letter(letter, f))
    }
}

/// Text in an element, such as a path or an address: a line that is too short for it ends after a slash, if it has one.
pub(super) struct WrappableText<'a>(pub(super) &'a str);

impl Display for WrappableText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = printable(self.0);
        let mut letters = text.chars().peekable();
        let mut before = ' ';
        while let Some(letter) = letters.next() {
            write_letter(letter, f)?;
            let ends_name = letter == '/' && (is_of_path(before) || before == '/');
            if ends_name && letters.peek().is_some_and(|next| is_of_path(*next)) {
                f.write_str("<wbr>")?;
            }
            before = letter;
        }
        Ok(())
    }
}

/// Whether a letter may stand beside a slash in a path. In tags it doesn't.
fn is_of_path(letter: char) -> bool {
    letter.is_alphanumeric() || "._-:~@%+=".contains(letter)
}

fn write_letter(letter: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match letter {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        letter if turns_direction(letter) => write!(f, "\\u{{{:x}}}", u32::from(letter)),
        letter => write!(f, "{letter}"),
    }
}

/// A name with one of these could show the rest of its line backwards.
fn turns_direction(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON for a script element; no name in it may end the element.
pub(super) fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// A share of a width, as in `41.25%`, between nothing and all of it.
pub(super) struct Share(pub(super) f64);

impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = if self.0.is_finite() { self.0.clamp(0.0, 1.0) } else { 0.0 };
        write!(f, "{:.2}%", share * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let escaped = EscapedText("<b a='1' c=\"2\">&\u{1b}[0m\u{202e}ü").to_string();
        assert_eq!(escaped, "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\u{1b}[0m\\u{202e}ü");
    }

    #[test]
    fn a_path_can_end_a_line_after_each_slash() {
        for (text, html) in [
            ("s3://backup/eu/db1", "s3://<wbr>backup/<wbr>eu/<wbr>db1"),
            ("/var/lib/mysql/", "/var/<wbr>lib/<wbr>mysql/"),
            ("</b> a / b", "&lt;/b&gt; a / b"),
        ] {
            assert_eq!(WrappableText(text).to_string(), html);
        }
    }

    #[test]
    fn shares_stay_within_their_width() {
        for (share, text) in [(0.4125, "41.25%"), (7.0, "100.00%"), (-1.0, "0.00%"), (f64::NAN, "0.00%")] {
            assert_eq!(Share(share).to_string(), text);
        }
    }
}
