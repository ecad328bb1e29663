//! A column's default as its definition says it: the value in a row of an INSERT that doesn't name the column.

use sqlparser::tokenizer::Token;

use crate::tokens::is_word;

/// The default of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnDefault {
    /// Not known, or no constant: an expression, the time, the next number.
    Unknown,
    /// The definition has none. The server takes NULL, or 0, an empty text, the first member where the column can't be NULL.
    Absent,
    /// NULL.
    Null,
    /// A text between quotes, as a server writes all defaults but bits and bytes.
    Text(String),
    /// A number without quotes.
    Number(String),
    /// `b'101'`: its digits.
    Bits(String),
    /// `0x41` or `X'41'`: its digits.
    Hex(String),
}

/// Words that may stand behind a default. Behind others it is the beginning of an expression.
const BEHIND: [&str; 17] = [
    "NOT",
    "NULL",
    "COMMENT",
    "UNIQUE",
    "PRIMARY",
    "KEY",
    "ON",
    "COLLATE",
    "VISIBLE",
    "INVISIBLE",
    "COLUMN_FORMAT",
    "STORAGE",
    "ENGINE_ATTRIBUTE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "CONSTRAINT",
    "CHECK",
    "REFERENCES",
];

impl ColumnDefault {
    /// The default in the words behind a column's type.
    pub(crate) fn in_definition(rest: &[Token]) -> ColumnDefault {
        let mut depth = 0_usize;
        let mut before: Option<&Token> = None;
        let mut found = ColumnDefault::Absent;
        for (number, token) in rest.iter().enumerate() {
            let is_own = depth == 0;
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            if is_own && ["AUTO_INCREMENT", "SERIAL", "AS"].iter().any(|word| is_word(token, word)) {
                return ColumnDefault::Unknown;
            }
            // ON DELETE SET DEFAULT, COLUMN_FORMAT DEFAULT.
            let is_other = before.is_some_and(|before| {
                ["SET", "COLUMN_FORMAT", "STORAGE"].iter().any(|word| is_word(before, word))
            });
            if is_own && is_word(token, "DEFAULT") && !is_other {
                found = ColumnDefault::of(rest.get(number + 1..).unwrap_or_default());
            }
            before = Some(token);
        }
        found
    }

    /// The default that these words begin with.
    pub(crate) fn of(words: &[Token]) -> ColumnDefault {
        let (is_negative, words) = match words {
            [Token::Minus, rest @ ..] => (true, rest),
            [Token::Plus, rest @ ..] => (false, rest),
            _ => (false, words),
        };
        let Some((first, behind)) = words.split_first() else { return ColumnDefault::Unknown };
        let ends = behind.first().is_none_or(|next| BEHIND.iter().any(|word| is_word(next, word)));
        if !ends {
            return ColumnDefault::Unknown;
        }
        let sign = if is_negative { "-" } else { "" };
        match first {
            Token::Number(number, _) => ColumnDefault::Number(format!("{sign}{number}")),
            _ if is_negative => ColumnDefault::Unknown,
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                // An escape that MySQL reads otherwise, and what wasn't UTF-8.
                let is_certain = !text.chars().any(|character| "\u{7}\u{b}\u{c}\u{fffd}".contains(character));
                if is_certain { ColumnDefault::Text(text.clone()) } else { ColumnDefault::Unknown }
            }
            Token::SingleQuotedByteStringLiteral(digits) => ColumnDefault::Bits(digits.clone()),
            Token::HexStringLiteral(digits) => ColumnDefault::Hex(digits.clone()),
            token if is_word(token, "NULL") => ColumnDefault::Null,
            token if is_word(token, "TRUE") => ColumnDefault::Number("1".to_owned()),
            token if is_word(token, "FALSE") => ColumnDefault::Number("0".to_owned()),
            _ => ColumnDefault::Unknown,
        }
    }

    /// Whether the value stands for the same in any character set.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            ColumnDefault::Text(text) => text.is_ascii(),
            ColumnDefault::Unknown
            | ColumnDefault::Absent
            | ColumnDefault::Null
            | ColumnDefault::Number(_)
            | ColumnDefault::Bits(_)
            | ColumnDefault::Hex(_) => true,
        }
    }

    /// Whether both can't be the default of one column. Servers write a default otherwise than the statement did that made it: `0` as
    /// `'0.00'`, `'2026-1-2'` as `'2026-01-02'`.
    pub(crate) fn contradicts(&self, other: &ColumnDefault) -> bool {
        use ColumnDefault::{Absent, Bits, Hex, Null, Number, Text, Unknown};
        match (self, other) {
            (Unknown, _) | (_, Unknown) | (Absent | Null, Absent | Null) => false,
            (Absent | Null, _) | (_, Absent | Null) => true,
            (Text(one) | Number(one), Text(other) | Number(other)) => !is_same_value(one, other),
            (Bits(one), Bits(other)) => one.trim_start_matches('0') != other.trim_start_matches('0'),
            (Hex(one), Hex(other)) => {
                // Servers write the zeros at the end of a BINARY.
                !one.trim_end_matches('0').eq_ignore_ascii_case(other.trim_end_matches('0'))
            }
            // 0x41 and 'A', 5 and b'101'.
            (Bits(_) | Hex(_), _) | (_, Bits(_) | Hex(_)) => false,
        }
    }
}

fn is_same_value(one: &str, other: &str) -> bool {
    // Servers write the zeros at the end of a BINARY, and no spaces at the end of a CHAR.
    let [one, other] = [one, other].map(|text| text.trim_end_matches([' ', '\0']));
    if one == other {
        return true;
    }
    if let (Ok(one), Ok(other)) = (one.parse::<f64>(), other.parse::<f64>()) {
        return one == other;
    }
    matches!((MomentText::of(one), MomentText::of(other)), (Some(one), Some(other)) if one == other)
}

/// A date, a time or both, as far as other spellings of it have the same: without zeros that say nothing.
#[derive(PartialEq, Eq)]
struct MomentText<'t> {
    is_negative: bool,
    parts: Vec<&'t str>,
    fraction: &'t str,
}

impl<'t> MomentText<'t> {
    /// `None`: the text is no moment.
    fn of(text: &'t str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let is_moment = whole.starts_with(|first: char| first.is_ascii_digit())
            && whole.chars().all(|character| character.is_ascii_digit() || "-: ".contains(character))
            && fraction.chars().all(|character| character.is_ascii_digit());
        if !is_moment {
            return None;
        }
        let parts = whole.split(|character: char| !character.is_ascii_digit());
        let mut parts: Vec<&str> = parts.map(|part| part.trim_start_matches('0')).collect();
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        let fraction = fraction.trim_end_matches('0');
        let is_zero = parts.is_empty() && fraction.is_empty();
        Some(MomentText { is_negative: text.starts_with('-') && !is_zero, parts, fraction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ColumnClause;
    use crate::tokens::TokenReader;

    fn default_of(definition: &str) -> ColumnDefault {
        let tokens = TokenReader::of(definition).unwrap().tokens;
        ColumnClause::of(&tokens).unwrap().column.facts.unwrap().default
    }

    #[test]
    fn defaults_are_read_from_definitions() {
        use ColumnDefault::{Absent, Bits, Hex, Null, Number, Text, Unknown};
        for (definition, default) in [
            ("a INT", Absent),
            ("a INT NOT NULL COMMENT 'DEFAULT 7'", Absent),
            ("a INT REFERENCES p (id) ON DELETE SET DEFAULT", Absent),
            ("a INT COLUMN_FORMAT DEFAULT", Absent),
            ("a INT DEFAULT NULL", Null),
            ("`a` int DEFAULT '5'", Text("5".into())),
            ("a INT NOT NULL DEFAULT -5 COMMENT 'x'", Number("-5".into())),
            ("a BOOL DEFAULT TRUE", Number("1".into())),
            ("a VARCHAR(9) DEFAULT 'it''s\\n' COLLATE utf8mb4_bin", Text("it's\n".into())),
            ("`default` bit(4) DEFAULT b'101'", Bits("101".into())),
            ("a VARBINARY(4) DEFAULT 0x00FF00", Hex("00FF00".into())),
            (
                "a TIMESTAMP DEFAULT '2026-01-02 03:04:05' ON UPDATE CURRENT_TIMESTAMP",
                Text("2026-01-02 03:04:05".into()),
            ),
            ("a INT DEFAULT '3' /*!80023 INVISIBLE */", Text("3".into())),
            ("a INT DEFAULT (1 + 1)", Unknown),
            ("a INT DEFAULT 1 + 1", Unknown),
            ("a TEXT DEFAULT (_utf8mb4'xx')", Unknown),
            ("a CHAR(3) DEFAULT _latin1'x'", Unknown),
            ("a CHAR(3) DEFAULT 'x' 'y'", Unknown),
            ("a TIMESTAMP DEFAULT CURRENT_TIMESTAMP", Unknown),
            ("a TIMESTAMP DEFAULT NOW()", Unknown),
            ("a INT AUTO_INCREMENT", Unknown),
            ("a INT AS (b + 1)", Unknown),
            ("a SERIAL DEFAULT VALUE", Unknown),
            ("a CHAR(3) DEFAULT '\\a'", Unknown),
        ] {
            assert_eq!(default_of(definition), default, "{definition}");
        }
    }

    #[test]
    fn other_spellings_of_a_value_are_no_contradiction() {
        for (one, other, contradicts) in [
            ("a DECIMAL(5,2) DEFAULT 0", "a decimal(5,2) DEFAULT '0.00'", false),
            ("a DECIMAL(5,2) DEFAULT 1.5", "a decimal(5,2) DEFAULT '1.50'", false),
            ("a INT DEFAULT -5", "a int DEFAULT '5'", true),
            ("a DATE DEFAULT '2026-1-2'", "a date DEFAULT '2026-01-02'", false),
            ("a DATETIME(2) DEFAULT '2026-01-02'", "a datetime(2) DEFAULT '2026-01-02 00:00:00.00'", false),
            ("a DATE DEFAULT '2026-1-2'", "a date DEFAULT '2026-01-03'", true),
            ("a TIME(4) DEFAULT '-00:00:00.5'", "a time(4) DEFAULT '-00:00:00.5000'", false),
            ("a TIME(4) DEFAULT '1:00:00.5'", "a time(4) DEFAULT '01:00:00.5000'", false),
            ("a TIME(4) DEFAULT '-00:00:00.5'", "a time(4) DEFAULT '00:00:00.5000'", true),
            ("a TIME(2) DEFAULT '00:00:00.05'", "a time(2) DEFAULT '00:00:00.50'", true),
            ("a TIME DEFAULT '-0:0:0'", "a time DEFAULT '00:00:00'", false),
            ("a INT", "a int DEFAULT NULL", false),
            ("a INT", "a int DEFAULT '0'", true),
            ("a CHAR(3) DEFAULT 'x '", "a char(3) DEFAULT 'x'", false),
            ("a CHAR(3) DEFAULT 'x'", "a char(3) DEFAULT 'X'", true),
            ("a BINARY(4) DEFAULT ''", "a binary(4) DEFAULT '\\0\\0\\0\\0'", false),
            ("a BINARY(4) DEFAULT 'ab'", "a binary(4) DEFAULT 'ab\\0\\0'", false),
            ("a BINARY(4) DEFAULT 0x00FF", "a binary(4) DEFAULT 0x00FF0000", false),
            ("a BINARY(4) DEFAULT 0x00FF", "a binary(4) DEFAULT 0x00FE0000", true),
            ("a BIT(4) DEFAULT 5", "a bit(4) DEFAULT b'101'", false),
            ("a BIT(4) DEFAULT b'0101'", "a bit(4) DEFAULT b'100'", true),
            ("a INT DEFAULT (1)", "a int DEFAULT '7'", false),
        ] {
            assert_eq!(default_of(one).contradicts(&default_of(other)), contradicts, "{one}: {other}");
        }
    }
}
