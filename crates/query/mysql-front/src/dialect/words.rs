//! A statement's tokens: stepping through their words, and where they stand in the text.

use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

/// Words with which statements begin that write, or change the server.
const WRITES: [&str; 34] = [
    "ALTER",
    "ANALYZE",
    "BINLOG",
    "CACHE",
    "CALL",
    "CHANGE",
    "CHECK",
    "CHECKSUM",
    "CLONE",
    "CREATE",
    "DELETE",
    "DROP",
    "FLUSH",
    "GRANT",
    "HANDLER",
    "IMPORT",
    "INSERT",
    "INSTALL",
    "LOAD",
    "LOCK",
    "OPTIMIZE",
    "PURGE",
    "RENAME",
    "REPAIR",
    "REPLACE",
    "RESET",
    "RESTART",
    "REVOKE",
    "SHUTDOWN",
    "START",
    "STOP",
    "TRUNCATE",
    "UNINSTALL",
    "UPDATE",
];

/// Whether a statement that begins with this word would change something.
pub(crate) fn is_write(word: &str) -> bool {
    WRITES.iter().any(|write| write.eq_ignore_ascii_case(word))
}

/// Makes `||` OR and `&&` AND, which they are in MySQL.
pub(super) fn read_operators(tokens: &mut [TokenWithSpan]) {
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::StringConcat => *token = Token::make_keyword("OR"),
            Token::Overlap => *token = Token::make_keyword("AND"),
            _ => {}
        }
    }
}

/// The offset of a place in the text, in bytes; the text's end if it has no such place.
pub(super) fn offset(text: &str, place: Location) -> usize {
    offsets(text, std::iter::once(place)).first().copied().unwrap_or(text.len())
}

/// The offsets of places that are in their order, as far as they are.
pub(super) fn offsets(text: &str, places: impl IntoIterator<Item = Location>) -> Vec<usize> {
    let mut letters = text.char_indices().peekable();
    let (mut line, mut column) = (1, 1);
    let mut found = Vec::new();
    for place in places {
        while (line, column) < (place.line, place.column) {
            match letters.next() {
                Some((_, '\n')) => (line, column) = (line + 1, 1),
                Some(_) => column += 1,
                None => break,
            }
        }
        found.push(letters.peek().map_or(text.len(), |(offset, _)| *offset));
    }
    found
}

/// The place that an error of the parser tells at its end.
pub(super) fn told_place(line: &str) -> Option<Location> {
    let (_, place) = line.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    let digits = column.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(column.len());
    Some(Location { line: line.trim().parse().ok()?, column: column.get(..digits)?.parse().ok()? })
}

/// The words of a statement, from the first one on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'t> {
    text: &'t str,
    tokens: &'t [TokenWithSpan],
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t str, tokens: &'t [TokenWithSpan]) -> Self {
        Words { text, tokens }
    }

    fn next(self) -> Option<(&'t TokenWithSpan, Self)> {
        let place = self.tokens.iter().position(|token| !matches!(token.token, Token::Whitespace(_)))?;
        let (found, rest) = self.tokens.get(place..)?.split_first()?;
        Some((found, Words { tokens: rest, ..self }))
    }

    /// Takes the next token if it is one of these words; which one.
    pub(super) fn take(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let (found, rest) = self.next()?;
        let Token::Word(word) = &found.token else { return None };
        let taken =
            words.iter().find(|known| word.quote_style.is_none() && known.eq_ignore_ascii_case(&word.value));
        let taken = *taken?;
        *self = rest;
        Some(taken)
    }

    /// Takes these words if they are next, one after the other.
    pub(super) fn take_all(&mut self, words: &[&'static str]) -> bool {
        let before = *self;
        let all = words.iter().all(|word| self.take(&[word]).is_some());
        if !all {
            *self = before;
        }
        all
    }

    /// Takes a name.
    pub(super) fn name(&mut self) -> Option<String> {
        let (found, rest) = self.next()?;
        let Token::Word(word) = &found.token else { return None };
        *self = rest;
        Some(word.value.clone())
    }

    /// Takes `[database.]table`.
    pub(super) fn table(&mut self) -> Option<(Option<String>, String)> {
        let first = self.name()?;
        match self.next() {
            Some((TokenWithSpan { token: Token::Period, .. }, rest)) => {
                *self = rest;
                Some((Some(first), self.name()?))
            }
            _ => Some((None, first)),
        }
    }

    /// Takes a text in quotes.
    pub(super) fn quoted(&mut self) -> Option<String> {
        let (found, rest) = self.next()?;
        let (Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) = &found.token else {
            return None;
        };
        *self = rest;
        Some(text.clone())
    }

    /// Whether nothing follows but semicolons.
    pub(super) fn is_end(&self) -> bool {
        self.tokens.iter().all(|token| super::is_blank(&token.token))
    }

    /// The text from the next token on, without semicolons at the end.
    pub(super) fn rest(&self) -> &'t str {
        let offset = self.offset();
        self.text.get(offset..).unwrap_or_default().trim_end_matches([';', ' ', '\n', '\r', '\t'])
    }

    /// The offset of the next token.
    pub(super) fn offset(&self) -> usize {
        let place = self.next().map(|(found, _)| found.span);
        place
            .filter(|span| *span != Span::empty())
            .map_or(self.text.len(), |span| offset(self.text, span.start))
    }
}
