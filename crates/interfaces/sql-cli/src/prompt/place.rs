//! Where in a text an error is: the line with a caret below that place, as psql and DuckDB show it.
//!
//! The parser tells line and column. The planner tells the name of what it doesn't know: if the text has that name once, there.

use binlogz_query::StatementTokens;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Token;

/// What the planner says before a name that it doesn't know.
const UNKNOWN: [&str; 4] =
    ["No field named ", "there is no column ", "there is no table ", "Invalid function "];

/// Shown where a long line is cut.
const CUT: char = '…';

/// A place in a text: both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ErrorPlace {
    line: usize,
    column: usize,
}

impl ErrorPlace {
    /// The place that an error of this text is about; `None`: it doesn't tell.
    pub(super) fn of(error: &str, text: &str) -> Option<ErrorPlace> {
        told(error).or_else(|| end(error, text)).or_else(|| named(error, text))
    }

    /// The line and the caret, in at most `width` columns.
    pub(super) fn drawn(self, text: &str, width: usize) -> Option<String> {
        let head = format!("LINE {}: ", self.line);
        let room = width.saturating_sub(head.chars().count()).max(1);
        let line: Vec<char> = text.lines().nth(self.line.checked_sub(1)?)?.chars().map(shown).collect();
        let at = self.column.checked_sub(1)?.min(line.len());
        // The last column that can be shown is that after the line: something is missing there.
        let start = if at < room { 0 } else { at + 1 - room / 2 - room % 2 };
        let mut part: Vec<char> = line.iter().skip(start).take(room).copied().collect();
        if let Some(first) = part.first_mut().filter(|_| start > 0) {
            *first = CUT;
        }
        if let Some(last) = part.last_mut().filter(|_| start + room < line.len()) {
            *last = CUT;
        }
        let part: String = part.into_iter().collect();
        let space = " ".repeat(head.chars().count() + at - start);
        Some(format!("{head}{}\n{space}^", part.trim_end()))
    }
}

/// A character that doesn't move the cursor elsewhere.
fn shown(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// `… at Line: 2, Column: 8`
fn told(error: &str) -> Option<ErrorPlace> {
    let (_, place) = error.rsplit_once("at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    let column = column.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(ErrorPlace { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The end of a text that is one statement and ends too early.
fn end(error: &str, text: &str) -> Option<ErrorPlace> {
    let statement = text.trim_end().trim_end_matches(';').trim_end();
    if !error.contains("found: EOF") || statement.contains(';') {
        return None;
    }
    let last = statement.lines().last()?;
    Some(ErrorPlace { line: statement.lines().count(), column: last.chars().count() + 1 })
}

/// The one place of a name that isn't known.
fn named(error: &str, text: &str) -> Option<ErrorPlace> {
    let name = UNKNOWN.iter().find_map(|before| Some(unknown_name(error.split_once(before)?.1)))?;
    let tokens = StatementTokens::of(text, &GenericDialect {}).ok()?.tokens;
    let mut places = tokens.iter().filter_map(|token| match &token.token {
        Token::Word(word) if word.value.eq_ignore_ascii_case(&name) => Some(token.span.start),
        _ => None,
    });
    let place = places.next().filter(|_| places.next().is_none())?;
    Some(ErrorPlace { line: usize::try_from(place.line).ok()?, column: usize::try_from(place.column).ok()? })
}

/// The last part of the name that a text begins with: `total` of `o."total". Valid fields are …`.
fn unknown_name(text: &str) -> String {
    let mut name = String::new();
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('.', None) => name.push('\0'),
            (c, None) if c.is_whitespace() || c == ',' => break,
            (c, _) => name.push(c),
        }
    }
    let last = name.trim_end_matches('\0').rsplit('\0').next();
    last.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(error: &str, text: &str) -> Option<(usize, usize)> {
        ErrorPlace::of(error, text).map(|place| (place.line, place.column))
    }

    #[test]
    fn an_error_tells_its_place() {
        let text = "SELECT 1\nFORM \"T\" t;";
        let parser = "sql parser error: Expected: end of statement, found: \"T\" at Line: 2, Column: 6";
        assert_eq!(place(parser, text), Some((2, 6)));
        assert_eq!(
            place("sql parser error: Expected: an expression, found: EOF", "SELECT 1,\n  ;"),
            Some((1, 10))
        );
        assert_eq!(place("sql parser error: found: EOF", "SELECT; SELECT"), None);
    }

    #[test]
    fn a_name_is_found_where_it_stands_once() {
        let text = "SELECT o.Total, 'total' -- total\nFROM orders o";
        let unknown = "Schema error: No field named o.total. Valid fields are o.a, o.b.";
        assert_eq!(place(unknown, text), Some((1, 10)));
        assert_eq!(place("there is no table shop.orders, expected transactions", text), Some((2, 6)));
        assert_eq!(
            place("there is no column total in after, expected one of a", "SELECT after.total"),
            Some((1, 14))
        );
        assert_eq!(place("Invalid function 'coun'. Did you mean 'count'?", "SELECT coun(*)"), Some((1, 8)));
        assert_eq!(place("No field named total.", "SELECT total, total"), None);
        assert_eq!(place("Divide by zero error", text), None);
    }

    #[test]
    fn the_caret_stands_below_the_place() {
        let text = format!("SELECT 1,\n\t{} x", "a, ".repeat(60));
        let drawn = |line, column, width| ErrorPlace { line, column }.drawn(&text, width);
        assert_eq!(drawn(1, 8, 80).unwrap(), "LINE 1: SELECT 1,\n               ^");
        assert_eq!(drawn(1, 10, 80).unwrap(), "LINE 1: SELECT 1,\n                 ^");
        for column in [1, 2, 30, 90, 183, 184] {
            let drawn = drawn(2, column, 40).unwrap();
            let lines: Vec<_> = drawn.lines().map(|line| line.chars().collect::<Vec<_>>()).collect();
            assert!(lines.iter().all(|line| line.len() <= 40), "{drawn}");
            let below = lines[0].get(lines[1].len() - 1).copied();
            let all: Vec<_> = text.lines().nth(1).unwrap().chars().map(shown).collect();
            assert!(below == all.get(column - 1).copied() || below == Some(CUT), "{column}: {drawn}");
        }
        assert_eq!(drawn(3, 1, 80), None);
        assert_eq!(drawn(0, 0, 80), None);
    }
}
