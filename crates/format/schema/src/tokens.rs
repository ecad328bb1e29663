//! SQL text as tokens, without whitespace and comments. Statements are walked token by token, so that what isn't needed is
//! skipped in the syntax of any version.

use sqlparser::dialect::MySqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer, TokenizerError, Word};

/// Removes the marks of `/*!80023 … */`, so that the text inside counts, as it does for a server.
pub fn without_version_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*!") {
        plain.push_str(before);
        let comment = comment.trim_start_matches(|c: char| c.is_ascii_digit());
        let (inside, after) = comment.split_once("*/").unwrap_or((comment, ""));
        plain.push(' ');
        plain.push_str(inside);
        plain.push(' ');
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Walks tokens.
pub(crate) struct TokenReader {
    pub(crate) tokens: Vec<Token>,
    pub(crate) next: usize,
}

impl TokenReader {
    /// Splits a text.
    pub(crate) fn of(text: &str) -> Result<Self, TokenizerError> {
        let dialect = MySqlDialect {};
        let tokens = Tokenizer::new(&dialect, &without_version_comments(text)).tokenize()?;
        let tokens = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        Ok(TokenReader { tokens, next: 0 })
    }

    /// Takes texts in double quotes for names, as the SQL mode ANSI_QUOTES does.
    pub(crate) fn quoting_names(mut self) -> Self {
        for token in &mut self.tokens {
            if let Token::DoubleQuotedString(name) = token {
                *token = Token::make_word(name, Some('"'));
            }
        }
        self
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    pub(crate) fn is(&self, keyword: Keyword) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.quote_style.is_none() && word.keyword == keyword)
    }

    pub(crate) fn takes(&mut self, keyword: Keyword) -> bool {
        let is = self.is(keyword);
        self.next += usize::from(is);
        is
    }

    /// As [`takes`](Self::takes), for words that sqlparser has no keyword for.
    pub(crate) fn takes_word(&mut self, word: &str) -> bool {
        let is = self.peek().is_some_and(|token| is_word(token, word));
        self.next += usize::from(is);
        is
    }

    /// Whether nothing more of the statement comes.
    pub(crate) fn is_at_end(&self) -> bool {
        self.peek().is_none_or(|token| *token == Token::SemiColon)
    }

    pub(crate) fn name(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        let name = word.value.clone();
        self.next += 1;
        Some(name)
    }

    pub(crate) fn skip_statement(&mut self) {
        while let Some(token) = self.peek() {
            let ends = *token == Token::SemiColon;
            self.next += 1;
            if ends {
                return;
            }
        }
    }

    /// The tokens of one item of a list in parentheses, without the comma or parenthesis that ends it.
    pub(crate) fn item(&mut self) -> Vec<Token> {
        let (mut depth, mut item) = (0_usize, Vec::new());
        while let Some(token) = self.peek() {
            match token {
                Token::LParen => depth += 1,
                Token::Comma | Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                Token::SemiColon => break,
                _ => {}
            }
            item.push(token.clone());
            self.next += 1;
        }
        item
    }

    pub(crate) fn peek_after(&self) -> Option<&Token> {
        self.tokens.get(self.next + 1)
    }

    /// A table's name, with its database where it is named.
    pub(crate) fn table_name(&mut self) -> Option<(Option<String>, String)> {
        let mut name = self.name()?;
        let mut database = None;
        if self.peek() == Some(&Token::Period) {
            self.next += 1;
            database = Some(std::mem::replace(&mut name, self.name()?));
        }
        Some((database, name))
    }
}

/// The tokens after an optional word.
pub(crate) fn without<'t>(tokens: &'t [Token], words: &[&str]) -> &'t [Token] {
    match tokens {
        [first, rest @ ..] if words.iter().any(|word| is_word(first, word)) => rest,
        _ => tokens,
    }
}

pub(crate) fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(text))
}

pub(crate) fn name_of(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    }
}

/// Whether two columns' names are one, which the server compares in any case.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}
