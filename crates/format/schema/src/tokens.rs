//! SQL text as tokens, without whitespace and comments. Statements are walked token by token, so that what isn't needed is
//! skipped in the syntax of any version.

use sqlparser::dialect::MySqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer, TokenizerError, Word};

/// Removes the marks of `/*!80023 … */`, so that the text inside counts, as it does for a server. Texts in quotes and other comments
/// stay as they are.
pub fn without_version_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_inside = false;
    while let Some(place) = rest.find(['\'', '"', '`', '#', '-', '/', '*']) {
        let (before, found) = rest.split_at(place);
        plain.push_str(before);
        if let Some(inside) = found.strip_prefix("/*!") {
            rest = inside.trim_start_matches(|c: char| c.is_ascii_digit());
            is_inside = true;
            plain.push(' ');
        } else if let Some(after) = found.strip_prefix("*/").filter(|_| is_inside) {
            rest = after;
            is_inside = false;
            plain.push(' ');
        } else {
            let (kept, after) = found.split_at(opaque_size(found));
            plain.push_str(kept);
            rest = after;
        }
    }
    plain.push_str(rest);
    plain
}

/// The bytes of the quoted text or comment with which a text begins; 1 if it begins with neither.
fn opaque_size(text: &str) -> usize {
    let is_line = text.strip_prefix("--").is_some_and(|after| after.starts_with(|c: char| c <= ' '));
    let end = match text.as_bytes() {
        [quote @ (b'\'' | b'"' | b'`'), ..] => quoted_size(text, *quote),
        [b'/', b'*', inside @ ..] => inside.windows(2).position(|end| end == b"*/").map(|place| place + 4),
        [b'#', ..] => text.find('\n'),
        [b'-', ..] if is_line => text.find('\n'),
        _ => Some(1),
    };
    end.unwrap_or(text.len())
}

/// The bytes of the text in quotes with which a text begins; `None`: it doesn't end. Two quotes in it make two texts of one.
fn quoted_size(text: &str, quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    let mut inside = text.bytes().enumerate().skip(1);
    let (last, _) = inside.find(|(_, byte)| {
        let ends = *byte == quote && !is_escaped;
        is_escaped = *byte == b'\\' && quote != b'`' && !is_escaped;
        ends
    })?;
    Some(last + 1)
}

/// The words and signs of SQL text, with those of version comments.
///
/// # Errors
///
/// Text in quotes, or a comment, that doesn't end.
pub fn statement_tokens(text: &str) -> Result<Vec<Token>, TokenizerError> {
    let mut tokens = Tokenizer::new(&MySqlDialect {}, &without_version_comments(text)).tokenize()?;
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    Ok(tokens)
}

/// Walks tokens.
pub(crate) struct TokenReader {
    pub(crate) tokens: Vec<Token>,
    pub(crate) next: usize,
}

impl TokenReader {
    /// Splits a text.
    pub(crate) fn of(text: &str) -> Result<Self, TokenizerError> {
        Ok(TokenReader { tokens: statement_tokens(text)?, next: 0 })
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
        let mut depth = 0_usize;
        let mut item = Vec::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_comments_count_and_what_looks_like_one_in_a_text_or_a_comment_stays() {
        for (text, plain) in [
            ("CREATE /*!40000 TEMPORARY */ TABLE t", "CREATE   TEMPORARY   TABLE t"),
            ("COMMENT 'a /*!40000 b */ c' d", "COMMENT 'a /*!40000 b */ c' d"),
            ("a /*! b /* c */ d */ e", "a   b /* c */ d   e"),
            ("a /*!50000 DEFAULT 'x */ y' */ b", "a   DEFAULT 'x */ y'   b"),
            ("a /*!80000 b", "a   b"),
            (r"'it''s /*! a */' 'b\'/*! c */'", r"'it''s /*! a */' 'b\'/*! c */'"),
            (r#"`a\` /*!1 b */ "/*! c */""#, r#"`a\`   b   "/*! c */""#),
            ("/* /*! a */ b", "/* /*! a */ b"),
            ("a -- /*! b\n/*! c */", "a -- /*! b\n  c  "),
            ("a # /*! b\n/*! c */", "a # /*! b\n  c  "),
            ("1--/*! 2 */", "1--  2  "),
            ("'é /*! a", "'é /*! a"),
        ] {
            assert_eq!(without_version_comments(text), plain, "{text}");
        }
    }
}
