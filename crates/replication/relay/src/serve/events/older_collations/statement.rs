//! Finds what older servers don't know in a statement: the collations that it names, after COLLATE, outside of string
//! literals and comments; and the option START TRANSACTION of a CREATE TABLE.
//!
//! Text in a version comment (`/*!80016 … */`) counts, since some servers execute it. Names in string literals don't:
//! they are data, or a statement that a routine builds, whose effect is logged separately.

use std::ops::Range;

/// `sql_mode` as bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct SqlMode(pub(super) u64);

impl SqlMode {
    const ANSI_QUOTES: u64 = 1 << 2;
    const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

    fn has_escapes(self, quote: u8) -> bool {
        match quote {
            b'`' => false,
            b'"' if self.0 & Self::ANSI_QUOTES != 0 => false,
            _ => self.0 & Self::NO_BACKSLASH_ESCAPES == 0,
        }
    }
}

/// A collation's name in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedCollation {
    pub(super) name: Range<usize>,
    /// The quote after it.
    quote: Option<u8>,
}

impl NamedCollation {
    /// Replaces it with another name, padded with spaces; `None` if there is no room.
    pub(super) fn write(&self, statement: &mut [u8], name: &str) -> Option<()> {
        let end = self.name.end + usize::from(self.quote.is_some());
        let place = statement.get_mut(self.name.start..end)?;
        let new = name.bytes().chain(self.quote);
        if name.len() > self.name.len() {
            return None;
        }
        place.iter_mut().zip(new.chain(std::iter::repeat(b' '))).for_each(|(old, new)| *old = new);
        Some(())
    }
}

/// A token of a statement.
enum StatementToken {
    Word(Range<usize>),
    /// Text between quotes.
    Quoted(Range<usize>, u8),
    Symbol(u8),
}

/// The collations that a statement names; `None` if a string or comment in it is unterminated.
pub(super) fn named_collations(statement: &[u8], mode: SqlMode) -> Option<Vec<NamedCollation>> {
    let mut scanner = Scanner { statement, at: 0, mode };
    let mut found = Vec::new();
    // Whether a name comes next, and whether a word would be part of a name.
    let mut expected = false;
    let mut in_name = false;
    while let Some(piece) = scanner.next()? {
        match piece {
            StatementToken::Word(name) if expected => found.push(NamedCollation { name, quote: None }),
            StatementToken::Quoted(name, quote) if expected => {
                found.push(NamedCollation { name, quote: Some(quote) })
            }
            StatementToken::Symbol(b'=') if expected => continue,
            StatementToken::Word(word) if !in_name => {
                let word = statement.get(word).unwrap_or_default();
                if word.eq_ignore_ascii_case(b"COLLATE") {
                    expected = true;
                    continue;
                }
            }
            StatementToken::Symbol(b'.' | b'@') => {
                (expected, in_name) = (false, true);
                continue;
            }
            _ => {}
        }
        (expected, in_name) = (false, false);
    }
    Some(found)
}

/// The option that servers from 8.0.21 on append to the CREATE TABLE of a CREATE TABLE … SELECT, whose rows follow it in its
/// transaction; `None` if a string or comment is unterminated.
#[allow(clippy::option_option)] // as above
pub(super) fn transaction_option(statement: &[u8], mode: SqlMode) -> Option<Option<Range<usize>>> {
    const OPTION: [&[u8]; 2] = [b"START", b"TRANSACTION"];
    // As the server writes it: few statements are read further.
    if !statement.windows(17).any(|window| window == b"START TRANSACTION") {
        return Some(None);
    }
    let mut scanner = Scanner { statement, at: 0, mode };
    let mut words_before = 0;
    let mut depth = 0_u32;
    let mut start = None;
    while let Some(piece) = scanner.next()? {
        let StatementToken::Word(range) = piece else {
            match piece {
                StatementToken::Symbol(b'(') => depth += 1,
                StatementToken::Symbol(b')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            start = None;
            continue;
        };
        let is =
            |word: &[u8]| statement.get(range.clone()).is_some_and(|found| found.eq_ignore_ascii_case(word));
        // A procedure or an event has statements of its own.
        match words_before {
            0 if !is(b"CREATE") => return Some(None),
            1 if !is(b"TABLE") => return Some(None),
            _ => words_before += 1,
        }
        // The name of a table may follow.
        if depth == 0 && is(b"SELECT") {
            return Some(None);
        }
        match start {
            Some(start) if is(OPTION[1]) => return Some(Some(start..range.end)),
            _ => start = (depth == 0 && is(OPTION[0])).then_some(range.start),
        }
    }
    Some(None)
}

/// The first words of a statement in capitals, at most three, outside of comments; fewer if something else comes first.
pub(in crate::serve) fn first_words(statement: &[u8]) -> Vec<String> {
    let mut scanner = Scanner { statement, at: 0, mode: SqlMode(0) };
    let mut words = Vec::new();
    while words.len() < 3
        && let Some(Some(StatementToken::Word(range))) = scanner.next()
    {
        let word = String::from_utf8_lossy(statement.get(range).unwrap_or_default()).to_ascii_uppercase();
        // The version of a version comment.
        if !word.bytes().all(|letter| letter.is_ascii_digit()) {
            words.push(word);
        }
    }
    words
}

struct Scanner<'a> {
    statement: &'a [u8],
    at: usize,
    mode: SqlMode,
}

impl Scanner<'_> {
    fn rest(&self) -> &[u8] {
        self.statement.get(self.at..).unwrap_or_default()
    }

    /// Moves past the next occurrence of this; `None` if there is none.
    fn behind(&mut self, end: &[u8]) -> Option<()> {
        let count = self.rest().windows(end.len()).position(|window| window == end)?;
        self.at += count + end.len();
        Some(())
    }

    /// The next token, or the statement's end; `None` if something is unterminated.
    #[allow(clippy::option_option)] // an error without words, and an end
    fn next(&mut self) -> Option<Option<StatementToken>> {
        loop {
            let rest = self.rest();
            let Some(&first) = rest.first() else { return Some(None) };
            let begin = self.at;
            match first {
                // The digits of a version become a word without meaning.
                b'/' if rest.starts_with(b"/*!") => self.at += 3,
                b'*' if rest.starts_with(b"*/") => self.at += 2,
                b'/' if rest.starts_with(b"/*") => {
                    self.at += 2;
                    self.behind(b"*/")?;
                }
                b'#' => self.line(),
                b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(|byte| *byte <= b' ') => {
                    self.line()
                }
                b'\'' | b'"' | b'`' => {
                    self.at += 1;
                    self.quoted(first)?;
                    return Some(Some(StatementToken::Quoted(begin + 1..self.at - 1, first)));
                }
                _ if is_word(first) => {
                    self.at += rest.iter().take_while(|byte| is_word(**byte)).count();
                    return Some(Some(StatementToken::Word(begin..self.at)));
                }
                _ => {
                    self.at += 1;
                    if first > b' ' {
                        return Some(Some(StatementToken::Symbol(first)));
                    }
                }
            }
        }
    }

    fn line(&mut self) {
        self.at += self.rest().iter().take_while(|byte| **byte != b'\n').count();
    }

    /// Moves past the quote that ends a string; a doubled quote does not end it.
    fn quoted(&mut self, quote: u8) -> Option<()> {
        let has_escapes = self.mode.has_escapes(quote);
        loop {
            let rest = self.rest();
            let step = match rest.first()? {
                b'\\' if has_escapes => 2,
                byte if *byte == quote && rest.get(1) == Some(&quote) => 2,
                byte if *byte == quote => {
                    self.at += 1;
                    return Some(());
                }
                _ => 1,
            };
            self.at += step;
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names_in(statement: &str, mode: u64) -> Option<Vec<&str>> {
        let found = named_collations(statement.as_bytes(), SqlMode(mode))?;
        Some(found.into_iter().map(|named| statement.get(named.name).unwrap()).collect())
    }

    #[test]
    fn names_stand_after_collate() {
        for (statement, names) in [
            ("CREATE TABLE t (a TEXT COLLATE x, b TEXT collate 'y') COLLATE=`z`", vec!["x", "y", "z"]),
            ("ALTER DATABASE d COLLATE = \"x\"", vec!["x"]),
            ("SELECT a COLLATE/* c */x, b COLLATE -- c\n y", vec!["x", "y"]),
            ("CREATE TABLE t (a INT) /*!80016 COLLATE x */ /* COLLATE y */ # COLLATE z", vec!["x"]),
            ("INSERT INTO t VALUES ('COLLATE x', 'it''s COLLATE y', 'a\\' COLLATE z')", vec![]),
            ("SELECT `COLLATE` x, t.collate y, @collate z", vec![]),
            ("SELECT a--1 COLLATE x", vec!["x"]),
            ("SELECT a COLLATE (x)", vec![]),
            ("COLLATE", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(names_in(statement, 0), Some(names), "{statement}");
        }
    }

    #[test]
    fn the_mode_decides_what_a_backslash_is() {
        let statement = "SELECT 'a\\', b COLLATE x, 'c'";
        assert_eq!(names_in(statement, SqlMode::NO_BACKSLASH_ESCAPES), Some(vec!["x"]));
        assert_eq!(names_in(statement, 0), None, "the last text has no end");
        let statement = "SELECT \"a\\\", b COLLATE x";
        assert_eq!(names_in(statement, SqlMode::ANSI_QUOTES), Some(vec!["x"]));
        assert_eq!(names_in(statement, 0), None);
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        for statement in ["SELECT 'a", "SELECT `a", "SELECT /* a", "SELECT 'a\\"] {
            assert_eq!(names_in(statement, 0), None, "{statement}");
        }
    }

    #[test]
    fn a_table_may_be_created_in_a_transaction() {
        let option = "START TRANSACTION";
        for (statement, has) in [
            ("CREATE TABLE `a`.`u` (\n  `start` int NOT NULL\n) START TRANSACTION", true),
            (
                "CREATE TABLE `u` (`id` int) ENGINE=InnoDB START TRANSACTION\n/*!50100 PARTITION BY HASH (`id`) */",
                true,
            ),
            ("create table u (a int comment 'START TRANSACTION')", false),
            ("CREATE TABLE u (a INT) COMMENT='START TRANSACTION'", false),
            ("CREATE TABLE u (a INT) /* START TRANSACTION */", false),
            ("CREATE TABLE u SELECT 1 FROM START TRANSACTION", false),
            ("CREATE PROCEDURE p() BEGIN START TRANSACTION; END", false),
            ("START TRANSACTION", false),
        ] {
            let found = transaction_option(statement.as_bytes(), SqlMode(0)).unwrap();
            assert_eq!(found.map(|range| &statement[range]), has.then_some(option), "{statement}");
        }
        assert_eq!(
            transaction_option(b"CREATE TABLE u (a INT) START TRANSACTION 'x", SqlMode(0)),
            Some(Some(23..40))
        );
        assert_eq!(
            transaction_option(b"CREATE TABLE u (a INT COMMENT 'x) START TRANSACTION", SqlMode(0)),
            None
        );
    }

    #[test]
    fn another_name_fills_the_place() {
        let mut statement = b"COLLATE 'abcdef', x".to_vec();
        let named = named_collations(&statement, SqlMode(0)).unwrap().remove(0);
        named.write(&mut statement, "xyz").unwrap();
        assert_eq!(statement, b"COLLATE 'xyz'   , x");
        assert!(named.write(&mut statement, "abcdefg").is_none());
    }
}
