//! Where what is typed ends: at `;`, or at `\G`, which has a line for each column as in the mysql client.

use binlogz_query::statements::is_whole;

use super::commands::PromptCommand;

/// `\G` shows the rows of the last statement in lines; `\g` is `;`.
const TALL: &str = "\\G";
const USUAL: &str = "\\g";

/// Whether a text is to be run: a command, or whole statements.
pub(super) fn is_over(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || PromptCommand::of(text).is_some() || is_whole(text) || ended(text).is_some()
}

/// The statements of a text, and whether the last one's rows are shown in lines.
pub(super) fn statements_of(text: &str) -> (&str, bool) {
    ended(text).unwrap_or((text, false))
}

/// A text without the `\G` or `\g` at its end; `None`: it has none there, or one within a string or a comment.
fn ended(text: &str) -> Option<(&str, bool)> {
    let tall = text.strip_suffix(TALL).map(|statements| (statements, true));
    let ended = tall.or_else(|| Some((text.strip_suffix(USUAL)?, false)));
    ended.filter(|(statements, _)| is_whole(&format!("{statements};")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_as_in_the_mysql_client() {
        for (text, over) in [
            ("SELECT 1", false),
            ("SELECT 1;", true),
            ("SELECT 1\\G", true),
            ("SELECT 1 \\g ", true),
            ("SELECT 'a\\G", false),
            ("SELECT 1 -- a\\G", false),
            ("SELECT 1 /* a\\G", false),
            (".mode line", true),
            ("\\d", true),
            ("", true),
        ] {
            assert_eq!(is_over(text), over, "{text}");
        }
        assert_eq!(statements_of("SELECT 1\\G"), ("SELECT 1", true));
        assert_eq!(statements_of("SELECT 1\\g"), ("SELECT 1", false));
        assert_eq!(statements_of("SELECT 1;"), ("SELECT 1;", false));
    }
}
