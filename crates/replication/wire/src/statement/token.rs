//! Cuts a statement into tokens.

/// A token of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword or a name, and whether it was quoted with backticks.
    Word(String, bool),
    /// A text in quotes, or a number.
    Literal(String),
    /// `@name`.
    UserVariable(String),
    /// `@@`.
    SystemMark,
    /// Any other character, such as `=`.
    Symbol(char),
}

/// A token and its offset in the text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlacedToken {
    pub(super) token: Token,
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// More than any statement that a source answers; each token takes many times the memory of a character.
const TOKENS_MAX: usize = 10_000;

/// All tokens; `None` if a text or comment does not end, or if there are too many.
pub(super) fn tokens(text: &str) -> Option<Vec<PlacedToken>> {
    let mut rest = text;
    let mut found = Vec::new();
    let mut in_version_comment = false;
    loop {
        rest = skip_blank(rest, &mut in_version_comment)?;
        if rest.is_empty() {
            return (!in_version_comment).then_some(found);
        }
        let begin = text.len() - rest.len();
        let (token, behind) = token(rest)?;
        rest = behind;
        if found.len() == TOKENS_MAX {
            return None;
        }
        found.push(PlacedToken { token, begin, end: text.len() - rest.len() });
    }
}

/// The rest after white space and comments. The text in `/*!40101 … */` counts, as on a server of that version.
fn skip_blank<'a>(mut rest: &'a str, in_version_comment: &mut bool) -> Option<&'a str> {
    loop {
        rest = rest.trim_start();
        if let Some(versioned) = rest.strip_prefix("/*!").filter(|_| !*in_version_comment) {
            rest = versioned.trim_start_matches(|letter: char| letter.is_ascii_digit());
            *in_version_comment = true;
        } else if let Some(behind) = rest.strip_prefix("*/").filter(|_| *in_version_comment) {
            rest = behind;
            *in_version_comment = false;
        } else if let Some(comment) = rest.strip_prefix("/*") {
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

/// What a letter after a backslash stands for (MySQL's manual, "String Literals").
fn escaped(letter: char) -> char {
    match letter {
        '0' => '\0',
        'b' => '\u{8}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'Z' => '\u{1a}',
        other => other,
    }
}

/// A quoted text: a doubled quote stands for one, and so do most characters after a backslash.
fn quoted(rest: &str, quote: char) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut letters = rest.strip_prefix(quote)?.chars();
    loop {
        match letters.next()? {
            '\\' if quote != '`' => text.push(escaped(letters.next()?)),
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
