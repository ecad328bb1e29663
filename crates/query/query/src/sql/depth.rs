//! Limits how deep and how large a statement may be. It looks at the statement's tokens, before anything makes a tree of
//! them: parsing, planning, copying and dropping recurse as deep as the tree, on a stack that has an end.
//!
//! A tree can't be deeper than the depth counted here, because each of its levels has a token of its own that isn't a
//! name, a number or a text:
//!
//! ```text
//! depth of a level of brackets    what goes on over commas, and the deepest of the parts between commas
//! a part                          its operators, keywords and brackets, and the deepest level of brackets in it
//! over commas                     set operations, joins, tables after FROM, types of STRUCT<…>, and all levels of a WITH list,
//!                                 whose queries may be one in the other
//! ```
//!
//! So a list of 20,000 values is not deep, and `1 + 1 + …` is as deep as it is long. Texts may name types, as in
//! `arrow_cast(x, 'List(List(Int8))')`: they count as the types that they name.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};

/// Bytes of the text of statements that clients send; longer values are parameters.
pub const STATEMENT_SIZE_MAX: usize = 1 << 20;
/// Levels of a tree: planning takes some 100 KiB of stack for each without optimization, of the 256 MiB there are.
const DEPTH_MAX: usize = 1000;
/// Queries, joins and windows of a statement: each is a level of its plan.
const STEPS_MAX: usize = 200;
/// Tokens of a statement, each of which becomes about a kilobyte.
const TOKENS_MAX: usize = 100_000;
/// Levels of brackets in a text: types in types. A document may have more.
const TYPES_MAX: usize = 100;
/// Expressions one in the other that the parser reads a second time where there is an error in them: each doubles the time. A statement of
/// a kilobyte would take it years.
const RETRIED_MAX: usize = 16;
/// How a type begins whose levels of brackets count.
const TYPES: [&str; 10] = [
    "list",
    "largelist",
    "listview",
    "fixedsizelist",
    "struct",
    "map",
    "dictionary",
    "union",
    "runendencoded",
    "timestamp",
];

/// Refuses a statement that is too deep or too large.
///
/// # Errors
///
/// Such a statement.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    if retried_in(tokens) > RETRIED_MAX {
        return refused(format!(
            "more than {RETRIED_MAX} of CASE, CAST, INTERVAL, SUBSTR and the like one in the other"
        ));
    }
    let mut size = StatementSize { levels: vec![Level::default()], steps: 0 };
    let mut count = 0;
    let mut before: Option<&Token> = None;
    for TokenWithSpan { token, .. } in tokens {
        if matches!(token, Token::Whitespace(_) | Token::EOF) {
            continue;
        }
        count += 1;
        size.take(token, before)?;
        size.check()?;
        if count > TOKENS_MAX {
            return refused(format!("more than {TOKENS_MAX} words, values and operators"));
        }
        before = Some(token);
    }
    Ok(())
}

/// The depth and the number of steps of a statement, up to one of its tokens.
struct StatementSize {
    /// A level for each open bracket, the outermost first; there is always one.
    levels: Vec<Level>,
    /// Queries, joins and windows.
    steps: usize,
}

impl StatementSize {
    /// Takes a token, and the one before it.
    fn take(&mut self, token: &Token, before: Option<&Token>) -> Result<()> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                level.part += 1;
                let below = level.so_far();
                self.levels.push(Level { below, ..Level::default() });
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                level.part += 1;
                self.close();
            }
            Token::Comma => {
                level.deepest = level.deepest.max(level.part + level.inner);
                (level.part, level.inner) = (0, 0);
                if level.has_tables {
                    level.over_commas += 1;
                    self.steps += 1;
                }
            }
            Token::Word(word) if word.quote_style.is_none() && word.keyword != Keyword::NoKeyword => {
                level.part += 1;
                if is_step(word.keyword) {
                    level.over_commas += 1;
                    self.steps += 1;
                }
                level.take(word.keyword);
            }
            Token::Word(_) | Token::Number(..) => {}
            Token::SingleQuotedString(text)
            | Token::DoubleQuotedString(text)
            | Token::TripleSingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text)
            | Token::NationalStringLiteral(text) => {
                if types_in(text) > TYPES_MAX {
                    return refused(format!("a type with more than {TYPES_MAX} types one in the other"));
                }
            }
            Token::Lt => {
                let is_type = matches!(before, Some(Token::Word(word)) if word.keyword != Keyword::NoKeyword);
                level.part += 1;
                level.over_commas += usize::from(is_type);
            }
            _ => level.part += 1,
        }
        Ok(())
    }

    /// Closes a bracket. One too many is the parser's to tell.
    fn close(&mut self) {
        if self.levels.len() > 1 {
            let depth = self.levels.pop().unwrap_or_default().depth();
            if let Some(outer) = self.levels.last_mut() {
                outer.has_inner(depth);
            }
        }
    }

    fn check(&self) -> Result<()> {
        if self.levels.last().is_some_and(|level| level.so_far().max(level.depth()) > DEPTH_MAX) {
            return refused(format!(
                "more than {DEPTH_MAX} operators, keywords and brackets one in the other"
            ));
        }
        if self.steps > STEPS_MAX {
            return refused(format!("more than {STEPS_MAX} queries, joins and windows"));
        }
        Ok(())
    }
}

/// The number of levels of CASE, of INTERVAL after INTERVAL, and of brackets after words that may also be names of functions, where it is highest.
fn retried_in(tokens: &[TokenWithSpan]) -> usize {
    // Of each level of brackets: how many there are around it, and around what comes next.
    let mut levels = vec![(0, 0)];
    let mut deepest = 0;
    let mut before: Option<&Token> = None;
    for TokenWithSpan { token, .. } in tokens {
        if matches!(token, Token::Whitespace(_) | Token::EOF) {
            continue;
        }
        let is_only = levels.len() == 1;
        let Some((around, count)) = levels.last_mut() else { break };
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                let next = *count + usize::from(keyword(before).is_some_and(is_retried));
                deepest = deepest.max(next);
                levels.push((next, next));
            }
            Token::RParen | Token::RBracket | Token::RBrace if !is_only => {
                levels.pop();
            }
            Token::Comma => *count = *around,
            _ if keyword(before) == Some(Keyword::INTERVAL)
                && keyword(Some(token)) == Some(Keyword::INTERVAL) =>
            {
                *count += 1;
                deepest = deepest.max(*count);
            }
            _ if keyword(Some(token)) == Some(Keyword::CASE) => {
                *count += 1;
                deepest = deepest.max(*count);
            }
            _ if keyword(Some(token)) == Some(Keyword::END) && is_operand(before) => {
                *count = count.saturating_sub(1).max(*around);
            }
            _ => {}
        }
        before = Some(token);
    }
    deepest
}

/// The keyword that a token may be.
fn keyword(token: Option<&Token>) -> Option<Keyword> {
    match token {
        Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Whether the parser reads the brackets after this word a second time, as a function's arguments, if it finds an error in them.
fn is_retried(keyword: Keyword) -> bool {
    use Keyword::{
        ARRAY, CAST, CEIL, CONVERT, FLOOR, INTERVAL, OVERLAY, SAFE_CAST, SUBSTR, SUBSTRING, TRY_CAST,
        TRY_CONVERT,
    };
    matches!(
        keyword,
        ARRAY
            | CAST
            | CEIL
            | CONVERT
            | FLOOR
            | INTERVAL
            | OVERLAY
            | SAFE_CAST
            | SUBSTR
            | SUBSTRING
            | TRY_CAST
            | TRY_CONVERT
    )
}

/// Whether an operand may end with a token: END after anything else is a name.
fn is_operand(token: Option<&Token>) -> bool {
    use Keyword::{AND, BETWEEN, CASE, DIV, ELSE, ILIKE, IN, LIKE, NOT, OR, THEN, WHEN, XOR};
    match token {
        Some(Token::Word(word)) => {
            word.quote_style.is_some()
                || !matches!(
                    word.keyword,
                    AND | BETWEEN | CASE | DIV | ELSE | ILIKE | IN | LIKE | NOT | OR | THEN | WHEN | XOR
                )
        }
        Some(
            Token::RParen
            | Token::RBracket
            | Token::RBrace
            | Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_),
        ) => true,
        _ => false,
    }
}

fn refused<T>(what: String) -> Result<T> {
    Err(Error::Sql(format!("the statement has {what}")))
}

/// A level of brackets.
#[derive(Default)]
struct Level {
    /// Levels of the tree around it.
    below: usize,
    /// Levels of the tree that a comma does not end.
    over_commas: usize,
    /// Levels of the tree in the part since the last comma.
    part: usize,
    /// The deepest level of brackets in that part.
    inner: usize,
    /// The deepest part before that.
    deepest: usize,
    /// Whether commas divide tables.
    has_tables: bool,
    /// Whether queries have names here that those after them may use.
    has_names: bool,
}

impl Level {
    /// Levels of the tree around what comes next.
    fn so_far(&self) -> usize {
        self.below + self.over_commas + self.part
    }

    /// Levels of the tree that it is.
    fn depth(&self) -> usize {
        self.over_commas + self.deepest.max(self.part + self.inner)
    }

    fn has_inner(&mut self, depth: usize) {
        match self.has_names {
            true => self.over_commas += depth,
            false => self.inner = self.inner.max(depth),
        }
    }

    fn take(&mut self, keyword: Keyword) {
        use Keyword::{
            EXCEPT, FROM, GROUP, HAVING, INTERSECT, LIMIT, ORDER, QUALIFY, SELECT, UNION, WHERE, WINDOW, WITH,
        };
        match keyword {
            WITH => self.has_names = true,
            FROM => (self.has_tables, self.has_names) = (true, false),
            SELECT => (self.has_tables, self.has_names) = (false, false),
            WHERE | GROUP | HAVING | ORDER | LIMIT | WINDOW | QUALIFY | UNION | EXCEPT | INTERSECT => {
                self.has_tables = false;
            }
            _ => {}
        }
    }
}

/// Whether a plan has a level for it.
fn is_step(keyword: Keyword) -> bool {
    use Keyword::{EXCEPT, INTERSECT, JOIN, MINUS, OVER, SELECT, UNION, VALUES};
    matches!(keyword, SELECT | VALUES | UNION | EXCEPT | INTERSECT | MINUS | JOIN | OVER)
}

/// Levels of brackets in a text that is a type.
fn types_in(text: &str) -> usize {
    let name = text.trim_start().split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    if !TYPES.contains(&name.to_ascii_lowercase().as_str()) {
        return 0;
    }
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'(' | b'<' | b'[' => depth += 1,
            b')' | b'>' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
