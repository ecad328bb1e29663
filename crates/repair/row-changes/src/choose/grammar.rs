//! Reads a condition in MySQL's order of operators, as its grammar (sql_yacc.yy) has it. Other SQL ranks some of them otherwise.
//!
//! ```text
//! condition   OR ||, then XOR, then AND &&, then NOT: each binds more than those before it
//! test        comparison [IS [NOT] TRUE | FALSE]
//! comparison  predicate { = <=> <> < <= > >= predicate | IS [NOT] NULL }, from the left
//! predicate   value [NOT] IN (condition, …) | value [NOT] BETWEEN value AND predicate | value [NOT] LIKE value [ESCAPE 'c']
//! value       literal | column | - value | + value | ! value | (condition)
//! ```
//!
//! Anything else is no condition. Which values can be compared is decided in `condition`.

use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, Value as Literal, ValueWithSpan};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Word};

/// Containers of conditions in each other that are followed.
const DEPTH_MAX: usize = 64;
/// Words that are no columns unless they stand in backticks.
const OPERATORS: [Keyword; 9] = [
    Keyword::AND,
    Keyword::OR,
    Keyword::XOR,
    Keyword::NOT,
    Keyword::IN,
    Keyword::BETWEEN,
    Keyword::LIKE,
    Keyword::IS,
    Keyword::ESCAPE,
];

/// The condition that these words are; `None`: they are none that MySQL reads, or have more than comparisons of values.
pub(super) fn read(tokens: &[Token]) -> Option<Expr> {
    let words: Vec<&Token> =
        tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)).collect();
    let mut words = ConditionWords { words: &words, depth: 0 };
    words.or().filter(|_| words.words.is_empty())
}

/// The words that are left.
struct ConditionWords<'t> {
    words: &'t [&'t Token],
    depth: usize,
}

impl<'t> ConditionWords<'t> {
    fn peek(&self, place: usize) -> Option<&'t Token> {
        self.words.get(place).copied()
    }

    fn keyword(&self, place: usize) -> Option<Keyword> {
        match self.peek(place) {
            Some(Token::Word(Word { keyword, quote_style: None, .. })) => Some(*keyword),
            _ => None,
        }
    }

    fn skip(&mut self, count: usize) {
        self.words = self.words.get(count..).unwrap_or_default();
    }

    /// Whether the next word is this keyword, which is taken.
    fn takes(&mut self, keyword: Keyword) -> bool {
        let is_it = self.keyword(0) == Some(keyword);
        self.skip(usize::from(is_it));
        is_it
    }

    fn takes_sign(&mut self, sign: &Token) -> bool {
        let is_it = self.peek(0) == Some(sign);
        self.skip(usize::from(is_it));
        is_it
    }

    /// Reads one level deeper; `None` beyond [`DEPTH_MAX`].
    fn inside<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let found = if self.depth > DEPTH_MAX { None } else { read(self) };
        self.depth -= 1;
        found
    }

    fn or(&mut self) -> Option<Expr> {
        let mut left = self.xor()?;
        // In the default sql_mode; PIPES_AS_CONCAT would make it join texts.
        while self.takes(Keyword::OR) || self.takes_sign(&Token::StringConcat) {
            left = binary(left, BinaryOperator::Or, self.xor()?);
        }
        Some(left)
    }

    fn xor(&mut self) -> Option<Expr> {
        let mut left = self.and()?;
        while self.takes(Keyword::XOR) {
            left = binary(left, BinaryOperator::Xor, self.and()?);
        }
        Some(left)
    }

    fn and(&mut self) -> Option<Expr> {
        let mut left = self.not()?;
        while self.takes(Keyword::AND) || self.takes_sign(&Token::Overlap) {
            left = binary(left, BinaryOperator::And, self.not()?);
        }
        Some(left)
    }

    fn not(&mut self) -> Option<Expr> {
        if self.takes(Keyword::NOT) {
            let expr = Box::new(self.inside(Self::not)?);
            return Some(Expr::UnaryOp { op: UnaryOperator::Not, expr });
        }
        self.test()
    }

    fn test(&mut self) -> Option<Expr> {
        let tested = Box::new(self.comparison()?);
        if !self.takes(Keyword::IS) {
            return Some(*tested);
        }
        let is_negated = self.takes(Keyword::NOT);
        Some(match (self.takes(Keyword::TRUE), is_negated) {
            (true, false) => Expr::IsTrue(tested),
            (true, true) => Expr::IsNotTrue(tested),
            (false, _) if !self.takes(Keyword::FALSE) => return None,
            (false, false) => Expr::IsFalse(tested),
            (false, true) => Expr::IsNotFalse(tested),
        })
    }

    fn comparison(&mut self) -> Option<Expr> {
        let mut left = self.predicate()?;
        loop {
            let null_at = match (self.keyword(0), self.keyword(1)) {
                (Some(Keyword::IS), Some(Keyword::NOT)) => Some(2),
                (Some(Keyword::IS), _) => Some(1),
                _ => None,
            };
            if let Some(place) = null_at.filter(|place| self.keyword(*place) == Some(Keyword::NULL)) {
                self.skip(place + 1);
                left =
                    if place == 2 { Expr::IsNotNull(Box::new(left)) } else { Expr::IsNull(Box::new(left)) };
                continue;
            }
            let op = match self.peek(0) {
                Some(Token::Eq) => BinaryOperator::Eq,
                Some(Token::Neq) => BinaryOperator::NotEq,
                Some(Token::Lt) => BinaryOperator::Lt,
                Some(Token::LtEq) => BinaryOperator::LtEq,
                Some(Token::Gt) => BinaryOperator::Gt,
                Some(Token::GtEq) => BinaryOperator::GtEq,
                Some(Token::Spaceship) => BinaryOperator::Spaceship,
                _ => return Some(left),
            };
            self.skip(1);
            left = binary(left, op, self.predicate()?);
        }
    }

    fn predicate(&mut self) -> Option<Expr> {
        let expr = Box::new(self.value()?);
        let negated = self.keyword(0) == Some(Keyword::NOT);
        let place = usize::from(negated);
        match self.keyword(place) {
            Some(Keyword::IN) => {
                self.skip(place + 1);
                let list = self.list()?;
                Some(Expr::InList { expr, list, negated })
            }
            Some(Keyword::BETWEEN) => {
                self.skip(place + 1);
                let low = Box::new(self.value()?);
                if !self.takes(Keyword::AND) {
                    return None;
                }
                let high = Box::new(self.inside(Self::predicate)?);
                Some(Expr::Between { expr, negated, low, high })
            }
            Some(Keyword::LIKE) => {
                self.skip(place + 1);
                let pattern = Box::new(self.value()?);
                let escape_char = if self.takes(Keyword::ESCAPE) { Some(self.escape()?) } else { None };
                Some(Expr::Like { negated, any: false, expr, pattern, escape_char })
            }
            _ => Some(*expr),
        }
    }

    fn list(&mut self) -> Option<Vec<Expr>> {
        if !self.takes_sign(&Token::LParen) {
            return None;
        }
        let mut list = Vec::new();
        loop {
            list.push(self.inside(Self::or)?);
            if self.takes_sign(&Token::RParen) {
                return Some(list);
            }
            if !self.takes_sign(&Token::Comma) {
                return None;
            }
        }
    }

    /// Reads the literal after ESCAPE: one character, or an empty text for no escape character.
    fn escape(&mut self) -> Option<ValueWithSpan> {
        let literal = literal(self.peek(0)?)?;
        self.skip(1);
        match &literal {
            Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)
                if text.chars().count() <= 1 =>
            {
                Some(literal.with_empty_span())
            }
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Expr> {
        let first = self.peek(0)?;
        if let Some(literal) = literal(first) {
            self.skip(1);
            return Some(Expr::Value(literal.with_empty_span()));
        }
        match first {
            Token::LParen => {
                self.skip(1);
                let inner = self.inside(Self::or)?;
                self.takes_sign(&Token::RParen).then(|| Expr::Nested(Box::new(inner)))
            }
            Token::Minus => self.signed(UnaryOperator::Minus),
            Token::Plus => self.signed(UnaryOperator::Plus),
            Token::ExclamationMark => self.signed(UnaryOperator::Not),
            Token::Word(word) => self.column(word),
            _ => None,
        }
    }

    fn signed(&mut self, op: UnaryOperator) -> Option<Expr> {
        self.skip(1);
        let expr = Box::new(self.inside(Self::value)?);
        Some(Expr::UnaryOp { op, expr })
    }

    fn column(&mut self, word: &Word) -> Option<Expr> {
        if word.quote_style.is_none() && OPERATORS.contains(&word.keyword) {
            return None;
        }
        self.skip(1);
        if self.peek(0) != Some(&Token::Period) {
            // Before a parenthesis it is a function.
            let is_function = self.peek(0) == Some(&Token::LParen);
            return (!is_function).then(|| Expr::Identifier(ident(word)));
        }
        let Some(Token::Word(column)) = self.peek(1) else { return None };
        self.skip(2);
        Some(Expr::CompoundIdentifier(vec![ident(word), ident(column)]))
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn ident(word: &Word) -> Ident {
    match word.quote_style {
        Some(quote) => Ident::with_quote(quote, &word.value),
        None => Ident::new(&word.value),
    }
}

fn literal(token: &Token) -> Option<Literal> {
    Some(match token {
        Token::Number(text, is_long) => Literal::Number(text.clone(), *is_long),
        Token::SingleQuotedString(text) => Literal::SingleQuotedString(text.clone()),
        Token::DoubleQuotedString(text) => Literal::DoubleQuotedString(text.clone()),
        Token::HexStringLiteral(digits) => Literal::HexStringLiteral(digits.clone()),
        Token::Word(Word { keyword, quote_style: None, .. }) => match keyword {
            Keyword::NULL => Literal::Null,
            Keyword::TRUE => Literal::Boolean(true),
            Keyword::FALSE => Literal::Boolean(false),
            _ => return None,
        },
        _ => return None,
    })
}
