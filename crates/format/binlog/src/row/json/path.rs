//! The paths that differences use to name a place in a document.
//!
//! ```text
//! $                the document
//! .name ."na me"   a member; the quoted form has JSON's escapes
//! [0]              an element, counted from 0
//! ```
//!
//! Wildcards, ranges and `last` never appear in a log. (`Json_path::to_string` in the server.)

use std::borrow::Cow;

use crate::error::{Error, Result};

const WHAT: &str = "json path";

/// A path, leg by leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath<'a>(Vec<JsonPathLeg<'a>>);

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonPathLeg<'a> {
    /// To a member, by its key.
    Member(Cow<'a, [u8]>),
    /// To an element, counted from 0.
    Element(usize),
}

impl<'a> JsonPath<'a> {
    /// Reads a path.
    pub fn parse(text: &'a [u8]) -> Result<Self> {
        let Some(mut rest) = text.strip_prefix(b"$") else {
            return Err(invalid(text, "one that begins with $"));
        };
        let mut legs = Vec::new();
        while let Some((&sign, behind)) = rest.split_first() {
            let (leg, after) = match sign {
                b'.' => member(behind)?,
                b'[' => element(behind)?,
                _ => return Err(invalid(rest, "a leg that begins with a point or a bracket")),
            };
            legs.push(leg);
            rest = after;
        }
        Ok(JsonPath(legs))
    }

    /// The legs in order; none for the document itself.
    pub fn legs(&self) -> &[JsonPathLeg<'a>] {
        &self.0
    }
}

fn member(text: &[u8]) -> Result<(JsonPathLeg<'_>, &[u8])> {
    let (key, rest) = match text.strip_prefix(b"\"") {
        Some(quoted) => quoted_key(quoted)?,
        None => {
            let end = text.iter().position(|&byte| matches!(byte, b'.' | b'[')).unwrap_or(text.len());
            let (key, rest) = text.split_at(end);
            if key.is_empty() {
                return Err(invalid(text, "a key after the point"));
            }
            (Cow::Borrowed(key), rest)
        }
    };
    Ok((JsonPathLeg::Member(key), rest))
}

/// Reads a key up to its closing quote.
fn quoted_key(text: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8])> {
    let unclosed = || invalid(text, "a closing quote");
    let plain = text.iter().position(|&byte| matches!(byte, b'"' | b'\\')).ok_or_else(unclosed)?;
    let (key, mut rest) = text.split_at(plain);
    if let Some(behind) = rest.strip_prefix(b"\"") {
        return Ok((Cow::Borrowed(key), behind));
    }
    let mut key = key.to_vec();
    loop {
        let (&byte, behind) = rest.split_first().ok_or_else(unclosed)?;
        rest = behind;
        match byte {
            b'"' => return Ok((Cow::Owned(key), rest)),
            b'\\' => rest = escape(rest, &mut key)?,
            _ => key.push(byte),
        }
    }
}

/// Reads the rest of an escape, after its backslash.
fn escape<'a>(text: &'a [u8], key: &mut Vec<u8>) -> Result<&'a [u8]> {
    let Some((&byte, rest)) = text.split_first() else {
        return Err(invalid(text, "an escape after the backslash"));
    };
    key.push(match byte {
        b'"' | b'\\' | b'/' => byte,
        b'b' => b'\x08',
        b'f' => b'\x0c',
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        // The server escapes single control characters this way; everything else is UTF-8.
        b'u' => {
            let (digits, rest) = rest.split_at_checked(4).ok_or_else(|| invalid(text, "four digits"))?;
            let code =
                std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let character = code.and_then(char::from_u32).ok_or_else(|| invalid(text, "a character"))?;
            key.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(rest);
        }
        _ => return Err(invalid(text, "an escape of JSON")),
    });
    Ok(rest)
}

fn element(text: &[u8]) -> Result<(JsonPathLeg<'_>, &[u8])> {
    let end = text.iter().position(|&byte| byte == b']').ok_or_else(|| invalid(text, "a closing bracket"))?;
    let (digits, rest) = text.split_at(end);
    let digits =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let index =
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| invalid(text, "an element's number"))?;
    Ok((JsonPathLeg::Element(index), rest.strip_prefix(b"]").unwrap_or(rest)))
}

#[cold]
fn invalid(text: &[u8], expected: &'static str) -> Error {
    const SHOWN_MAX: usize = 40;
    let shown = text.get(..SHOWN_MAX).unwrap_or(text);
    Error::invalid(WHAT, "text", format!("\"{}\"", shown.escape_ascii()), expected)
}

#[cfg(test)]
mod tests {
    use super::JsonPathLeg::{Element, Member};
    use super::*;

    #[test]
    fn legs_of_both_kinds() {
        let path = JsonPath::parse(br#"$.a[0]."b c"[12].d"#).unwrap();
        let key = |text: &'static str| Member(Cow::Borrowed(text.as_bytes()));
        assert_eq!(path.legs(), [key("a"), Element(0), key("b c"), Element(12), key("d")]);
        assert_eq!(JsonPath::parse(b"$").unwrap().legs(), []);
        assert_eq!(JsonPath::parse("$.größe".as_bytes()).unwrap().legs(), [key("größe")]);
        assert_eq!(JsonPath::parse(br#"$."""#).unwrap().legs(), [key("")]);
    }

    #[test]
    fn escapes_are_resolved() {
        let path = JsonPath::parse(r#"$."a\"b\\\/\n\u0001.[é""#.as_bytes()).unwrap();
        assert_eq!(path.legs(), [Member("a\"b\\/\n\u{1}.[é".as_bytes().into())]);
    }

    #[test]
    fn other_text_is_refused() {
        for text in
            ["", "a", "$a", "$.", "$..a", "$[", "$[]", "$[a]", "$[-1]", "$[1", "$.\"a", "$.\"\\", "$.\"\\x\""]
        {
            assert!(JsonPath::parse(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["$.\"\\u12\"", "$.\"\\ud800\"", "$[99999999999999999999]", "$[*]", "$**.a", "$[last]"] {
            assert!(JsonPath::parse(text.as_bytes()).is_err(), "{text}");
        }
        let error = JsonPath::parse(b"$[1\n").unwrap_err();
        assert_eq!(error.to_string(), "json path: text is \"1\\n\", expected a closing bracket");
    }
}
