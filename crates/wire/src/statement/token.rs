//! Cuts a statement into tokens.

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword or a name; whether it was quoted by backticks.
    Word(String, bool),
    /// A text in quotes, or a number.
    Literal(String),
    /// `@name`.
    UserVariable(String),
    /// `@@`.
    SystemMark,
    /// Anything else, as in `=`.
    Symbol(char),
}

/// A token and where it stands in the text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// More than any statement has that a source answers; each takes many times the memory of a letter.
const TOKENS_MAX: usize = 10_000;

/// All tokens; `None` where a text or comment does not end, or where there are too many.
pub(super) fn tokens(text: &str) -> Option<Vec<Placed>> {
    let mut rest = text;
    let mut found = Vec::new();
    loop {
        rest = skip_blank(rest)?;
        if rest.is_empty() {
            return Some(found);
        }
        let begin = text.len() - rest.len();
        let (token, behind) = token(rest)?;
        rest = behind;
        if found.len() == TOKENS_MAX {
            return None;
        }
        found.push(Placed { token, begin, end: text.len() - rest.len() });
    }
}

/// Behind white space and comments.
fn skip_blank(mut rest: &str) -> Option<&str> {
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
        } else if rest.starts_with("-- ") || rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, behind)| behind);
        } else {
            return Some(rest);
        }
    }
}

fn token(rest: &str) -> Option<(Token, &str)> {
    if let Some(behind) = rest.strip_prefix("@@") {
        return Some((Token::SystemMark, behind));
    }
    if let Some(behind) = rest.strip_prefix('@') {
        let (name, behind) = match behind.chars().next()? {
            quote @ ('\'' | '"' | '`') => quoted(behind, quote)?,
            _ => word(behind),
        };
        return (!name.is_empty()).then(|| (Token::UserVariable(name.to_ascii_lowercase()), behind));
    }
    match rest.chars().next()? {
        '`' => quoted(rest, '`').map(|(name, behind)| (Token::Word(name, true), behind)),
        quote @ ('\'' | '"') => quoted(rest, quote).map(|(text, behind)| (Token::Literal(text), behind)),
        digit if digit.is_ascii_digit() => {
            let (number, behind) = word(rest);
            Some((Token::Literal(number), behind))
        }
        letter if is_word(letter) => {
            let (name, behind) = word(rest);
            Some((Token::Word(name, false), behind))
        }
        symbol => Some((Token::Symbol(symbol), rest.strip_prefix(symbol)?)),
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

fn word(rest: &str) -> (String, &str) {
    let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
    let (word, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    (word.to_owned(), behind)
}

/// A text in quotes: a doubled quote and what stands behind a backslash are meant as themselves.
fn quoted(rest: &str, quote: char) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut letters = rest.strip_prefix(quote)?.chars();
    loop {
        match letters.next()? {
            '\\' if quote != '`' => text.push(letters.next()?),
            letter if letter == quote => match letters.as_str().strip_prefix(quote) {
                Some(behind) => {
                    text.push(quote);
                    letters = behind.chars();
                }
                None => return Some((text, letters.as_str())),
            },
            letter => text.push(letter),
        }
    }
}
