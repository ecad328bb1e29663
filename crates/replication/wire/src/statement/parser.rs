//! Steps through the tokens of a statement; the grammar says what they must be.

use super::token::{PlacedToken, Token};

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [PlacedToken],
}

impl Parser<'_> {
    /// The next word, in capitals.
    pub(super) fn keyword(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let Token::Word(word, false) = &first.token else { return None };
        self.tokens = rest;
        Some(word.to_ascii_uppercase())
    }

    /// Takes this word if it is next.
    pub(super) fn is_keyword(&mut self, keyword: &str) -> bool {
        let before = self.tokens;
        let found = self.keyword().is_some_and(|word| word == keyword);
        if !found {
            self.tokens = before;
        }
        found
    }

    /// Takes this character if it is next.
    pub(super) fn symbol(&mut self, symbol: char) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if first.token == Token::Symbol(symbol) => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    /// Whether this character is next; takes nothing.
    pub(super) fn is_next(&self, symbol: char) -> bool {
        self.tokens.first().is_some_and(|first| first.token == Token::Symbol(symbol))
    }

    /// A word or a text.
    pub(super) fn name(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let (Token::Word(name, _) | Token::Literal(name)) = &first.token else { return None };
        self.tokens = rest;
        Some(name.clone())
    }

    /// A text or a number.
    pub(super) fn literal(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let Token::Literal(text) = &first.token else { return None };
        self.tokens = rest;
        Some(text.clone())
    }

    /// A number.
    pub(super) fn number(&mut self) -> Option<u64> {
        self.literal()?.parse().ok()
    }
}
