//! A statement as tokens, comments left out: what is read of it, and the text that leaves.

use binlogz_schema::without_version_comments;
use sqlparser::dialect::MySqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};

/// The name of a table in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableWord {
    pub(super) database: Option<String>,
    pub(super) name: String,
}

impl TableWord {
    /// The name as a statement spells it.
    pub(super) fn quoted(&self) -> String {
        let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
        match &self.database {
            Some(database) => format!("{}.{}", quoted(database), quoted(&self.name)),
            None => quoted(&self.name),
        }
    }
}

/// A statement that is read word by word.
#[derive(Debug, Clone)]
pub(super) struct LoggedWords {
    tokens: Vec<Token>,
    /// The tokens that aren't whitespace.
    code: Vec<usize>,
    next: usize,
}

impl LoggedWords {
    /// `None`: it can't be split into words for certain.
    pub(super) fn of(text: &str) -> Option<Self> {
        // What only MariaDB executes looks like a comment.
        if text.contains("/*M!") {
            return None;
        }
        let plain = without_version_comments(text);
        let mut tokens = Tokenizer::new(&MySqlDialect {}, &plain).with_unescape(false).tokenize().ok()?;
        for token in &mut tokens {
            if matches!(token, Token::Whitespace(_)) {
                *token = Token::Whitespace(Whitespace::Space);
            }
        }
        while matches!(tokens.last(), Some(Token::Whitespace(_) | Token::SemiColon)) {
            tokens.pop();
        }
        // Two statements in one are none that a server logs.
        if tokens.contains(&Token::SemiColon) {
            return None;
        }
        let code = tokens.iter().enumerate();
        let code = code.filter(|(_, token)| !matches!(token, Token::Whitespace(_))).map(|(place, _)| place);
        Some(LoggedWords { code: code.collect(), tokens, next: 0 })
    }

    /// Takes texts in double quotes for names, as the SQL mode ANSI_QUOTES does.
    /// `None`: a backslash, which ends no name, may have hidden the end of one.
    pub(super) fn quoting_names(mut self) -> Option<Self> {
        for token in &mut self.tokens {
            if let Token::DoubleQuotedString(name) = token {
                if name.contains('\\') {
                    return None;
                }
                *token = Token::make_word(name, Some('"'));
            }
        }
        Some(self)
    }

    /// The statement's text, without comments.
    pub(super) fn text(&self) -> String {
        self.tokens.iter().map(Token::to_string).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.code.len()
    }

    /// Where the reading is.
    pub(super) fn place(&self) -> usize {
        self.next
    }

    pub(super) fn at(&self, place: usize) -> Option<&Token> {
        self.code.get(place).and_then(|&index| self.tokens.get(index))
    }

    /// Puts another token into a place.
    pub(super) fn replace(&mut self, place: usize, token: Token) {
        if let Some(own) = self.code.get(place).and_then(|&index| self.tokens.get_mut(index)) {
            *own = token;
        }
    }

    /// The word at a place in capitals, if it isn't quoted.
    pub(super) fn word_at(&self, place: usize) -> Option<String> {
        match self.at(place) {
            Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        }
    }

    /// The value at a place: a number, a text, TRUE or FALSE, or anything else that is neither a name nor a sign.
    pub(super) fn value_at(&self, place: usize) -> Option<&Token> {
        let is_truth = matches!(self.word_at(place).as_deref(), Some("TRUE" | "FALSE"));
        self.at(place).filter(|token| is_truth || is_value(token))
    }

    /// The name at a place, quoted or not.
    pub(super) fn name_at(&self, place: usize) -> Option<String> {
        match self.at(place) {
            Some(Token::Word(word)) => match word.quote_style {
                Some(quote) => Some(word.value.replace(&format!("{quote}{quote}"), &quote.to_string())),
                None => Some(word.value.clone()),
            },
            _ => None,
        }
    }

    pub(super) fn take_word(&mut self) -> Option<String> {
        let word = self.word_at(self.next)?;
        self.next += 1;
        Some(word)
    }

    pub(super) fn takes(&mut self, word: &str) -> bool {
        let is = self.word_at(self.next).is_some_and(|own| own == word);
        self.next += usize::from(is);
        is
    }

    /// Takes these words, or none.
    pub(super) fn takes_all(&mut self, words: &[&str]) -> bool {
        let are = words
            .iter()
            .enumerate()
            .all(|(place, word)| self.word_at(self.next + place).is_some_and(|own| own == *word));
        self.next += if are { words.len() } else { 0 };
        are
    }

    pub(super) fn takes_comma(&mut self) -> bool {
        let is = self.at(self.next) == Some(&Token::Comma);
        self.next += usize::from(is);
        is
    }

    /// Goes on after this word.
    pub(super) fn skip_to(&mut self, word: &str) -> Option<()> {
        let place =
            (self.next..self.len()).find(|&place| self.word_at(place).is_some_and(|own| own == word))?;
        self.next = place + 1;
        Some(())
    }

    pub(super) fn take_table(&mut self) -> Option<TableWord> {
        let (table, next) = self.table_at(self.next)?;
        self.next = next;
        Some(table)
    }

    fn table_at(&self, place: usize) -> Option<(TableWord, usize)> {
        let name = self.name_at(place)?;
        if self.at(place + 1) != Some(&Token::Period) {
            return Some((TableWord { database: None, name }, place + 1));
        }
        Some((TableWord { database: Some(name), name: self.name_at(place + 2)? }, place + 3))
    }

    /// Whether the word stands anywhere, unquoted.
    pub(super) fn has_word(&self, word: &str) -> bool {
        (0..self.len()).any(|place| self.word_at(place).is_some_and(|own| own == word))
    }

    /// Whether rows are given: VALUES that aren't those of a partition.
    pub(super) fn gives_rows(&self) -> bool {
        let is_of_partition =
            |place: usize| self.word_at(place).is_some_and(|word| word == "IN" || word == "LESS");
        (0..self.len()).any(|place| {
            self.word_at(place).is_some_and(|word| word == "VALUES") && !is_of_partition(place + 1)
        })
    }

    /// Whether each text follows one of these words, perhaps with a sign between.
    pub(super) fn texts_follow(&self, words: &[&str]) -> bool {
        (0..self.len()).filter(|&place| self.value_at(place).is_some()).all(|place| {
            let before = match self.at(place.wrapping_sub(1)) {
                Some(Token::Eq) => place.wrapping_sub(2),
                _ => place.wrapping_sub(1),
            };
            self.word_at(before).is_some_and(|word| words.contains(&word.as_str()))
        })
    }

    /// The tables that take the name of this one, or rows of it: RENAME TO and EXCHANGE PARTITION … WITH TABLE in an ALTER.
    pub(super) fn tables_of_rename(&self) -> Vec<TableWord> {
        let mut tables = Vec::new();
        for place in self.next..self.len() {
            let [word, second] = [self.word_at(place), self.word_at(place + 1)];
            let begin = match (word.as_deref(), second.as_deref()) {
                (Some("RENAME"), Some("COLUMN" | "INDEX" | "KEY")) => continue,
                (Some("RENAME"), Some("TO" | "AS")) => place + 2,
                (Some("RENAME"), _) => place + 1,
                (Some("WITH"), Some("TABLE")) => place + 2,
                _ => continue,
            };
            tables.extend(self.table_at(begin).map(|(table, _)| table));
        }
        tables
    }
}

/// Whether a token is a value: neither a name nor a sign.
fn is_value(token: &Token) -> bool {
    match token {
        Token::Word(_)
        | Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::Period
        | Token::Eq
        | Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::Mod
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::Neq
        | Token::Whitespace(_) => false,
        // Whatever else there is may hold one.
        _ => true,
    }
}
