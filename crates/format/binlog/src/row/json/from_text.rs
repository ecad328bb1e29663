//! A document's binary form from its text, as the server makes it: members sorted, each number in the smallest type that holds it.
//!
//! ```text
//! text                             type
//! {…} […] "…" true false null     object, array, string, literal
//! whole number below 0             int16, int32, int64
//! whole number below 2³²           int16, int32, int64
//! whole number below 2⁶⁴           uint64
//! any other number                 double
//! ```
//!
//! (Seen on MySQL 9.7.4.) Texts don't tell types that only SQL gives: a DECIMAL is a double here, a date a string.

use super::binary::{JsonDocument, StoredMembers, put_container, put_scalar};
use super::{JSON_DEPTH_MAX, JsonValue};
use crate::error::{Error, Result};

const WHAT: &str = "json text";

impl JsonDocument<'_> {
    /// Appends the binary document of a JSON text (RFC 8259, UTF-8).
    ///
    /// # Errors
    ///
    /// Text that is no JSON, is nested more than 100 deep, or whose document has 4 GiB; a number beyond those of DOUBLE.
    pub fn put_text(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut reader = JsonTextReader { text, at: 0 };
        let (value_type, bytes) = reader.value(0)?;
        reader.skip_spaces();
        if reader.at < text.len() {
            return Err(reader.unexpected("the end"));
        }
        out.push(value_type);
        out.extend_from_slice(&bytes);
        Ok(())
    }
}

/// Reads a text from its beginning to its end.
struct JsonTextReader<'t> {
    text: &'t [u8],
    at: usize,
}

/// A value's type and its bytes.
type TypedBytes = (u8, Vec<u8>);

impl<'t> JsonTextReader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, expected: &'static str) -> Error {
        let found = match self.peek() {
            Some(byte) => format!("'{}' at byte {}", [byte].escape_ascii(), self.at),
            None => "the end".to_owned(),
        };
        Error::invalid(WHAT, "value", found, expected)
    }

    /// Whether the next byte that is no space is this one; then it is passed.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<TypedBytes> {
        if depth > JSON_DEPTH_MAX {
            return Err(Error::invalid(WHAT, "depth", depth, "at most 100"));
        }
        self.skip_spaces();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => scalar(&JsonValue::String(&self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.literal(),
            None => Err(self.unexpected("a value")),
        }
    }

    fn literal(&mut self) -> Result<TypedBytes> {
        let literals =
            [("true", JsonValue::Bool(true)), ("false", JsonValue::Bool(false)), ("null", JsonValue::Null)];
        let rest = self.rest();
        let Some((word, value)) = literals.iter().find(|(word, _)| rest.starts_with(word.as_bytes())) else {
            return Err(self.unexpected("a value"));
        };
        self.at += word.len();
        scalar(value)
    }

    fn number(&mut self) -> Result<TypedBytes> {
        let is_part = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let size = self.rest().iter().take_while(is_part).count();
        let digits = self.rest().get(..size).unwrap_or_default();
        let text = std::str::from_utf8(digits).unwrap_or_default();
        // The server's reader counts numbers of more than 32 bits as unsigned.
        let value = match (text.parse::<i64>(), text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(number), ..) if number <= i64::from(u32::MAX) && text != "-0" => JsonValue::Int(number),
            (_, Ok(number), _) => JsonValue::Uint(number),
            (_, _, Ok(number)) if number.is_finite() => JsonValue::Double(number),
            _ => return Err(self.unexpected("a number of DOUBLE")),
        };
        self.at += size;
        scalar(&value)
    }

    fn array(&mut self, depth: usize) -> Result<TypedBytes> {
        self.at += 1;
        let mut elements = Vec::new();
        if !self.takes(b']') {
            loop {
                let (value_type, bytes) = self.value(depth + 1)?;
                elements.push((None, value_type, bytes));
                if self.takes(b']') {
                    break;
                }
                self.comma("a comma or ]")?;
            }
        }
        container(false, &elements)
    }

    fn object(&mut self, depth: usize) -> Result<TypedBytes> {
        self.at += 1;
        let mut members: Vec<(Vec<u8>, TypedBytes)> = Vec::new();
        if !self.takes(b'}') {
            loop {
                self.skip_spaces();
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected("a member's name"));
                }
                let key = self.string()?;
                if !self.takes(b':') {
                    return Err(self.unexpected("a colon"));
                }
                members.push((key, self.value(depth + 1)?));
                if self.takes(b'}') {
                    break;
                }
                self.comma("a comma or }")?;
            }
        }
        // A stable sort: of members with one name the last counts, as on the server.
        members.sort_by(|(one, _), (other, _)| (one.len(), one).cmp(&(other.len(), other)));
        let runs = members.chunk_by(|(one, _), (other, _)| one == other);
        let last = runs.filter_map(<[_]>::last);
        let stored: Vec<_> =
            last.map(|(key, (value_type, bytes))| (Some(&**key), *value_type, bytes.clone())).collect();
        container(true, &stored)
    }

    fn comma(&mut self, expected: &'static str) -> Result<()> {
        if self.takes(b',') { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// A string in quotes, without them and without its escapes.
    fn string(&mut self) -> Result<Vec<u8>> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let plain = self.rest().iter().take_while(|byte| !matches!(byte, b'"' | b'\\')).count();
            bytes.extend_from_slice(self.rest().get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(bytes);
                }
                Some(_) => self.escape(&mut bytes)?,
                None => return Err(self.unexpected("a closing quote")),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        self.at += 1;
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(bytes),
            _ => return Err(self.unexpected("an escape of JSON")),
        };
        self.at += 1;
        bytes.push(byte);
        Ok(())
    }

    /// `uXXXX`, and the second half of a pair.
    fn unicode(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let first = self.code_unit()?;
        let is_pair = (0xd800..0xdc00).contains(&first) && self.rest().starts_with(b"\\u");
        let units = if is_pair {
            self.at += 1;
            [first, self.code_unit()?]
        } else {
            [first, 0]
        };
        let used = units.get(..1 + usize::from(is_pair)).unwrap_or_default();
        let letter = char::decode_utf16(used.iter().copied()).next();
        let Some(Ok(letter)) = letter else { return Err(self.unexpected("a character of Unicode")) };
        bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn code_unit(&mut self) -> Result<u16> {
        let digits = self
            .rest()
            .get(1..5)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = digits
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.unexpected("four hexadecimal digits"))?;
        self.at += 5;
        Ok(unit)
    }
}

fn scalar(value: &JsonValue<'_>) -> Result<TypedBytes> {
    put_scalar(value).ok_or_else(|| Error::invalid(WHAT, "value", "a type of SQL", "a type of JSON"))
}

fn container(keyed: bool, members: &StoredMembers<'_>) -> Result<TypedBytes> {
    let mut bytes = Vec::new();
    let value_type = put_container(&mut bytes, keyed, members)?;
    Ok((value_type, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        JsonDocument::put_text(text.as_bytes(), &mut out)?;
        Ok(out)
    }

    #[test]
    fn documents_have_the_servers_bytes() {
        let object = b"\x00\x02\x00\x20\x00\x12\x00\x01\x00\x13\x00\x01\x00\x05\x01\x00\x02\x14\x00ab\
            \x02\x00\x0c\x00\x04\x01\x00\x0c\x0a\x00\x01x";
        assert_eq!(document("{\"b\": [true, \"x\"], \"a\": 0, \"a\": 1}").unwrap(), object);
        for (text, bytes) in [
            ("-32768", &b"\x05\0\x80"[..]),
            ("32768", b"\x07\0\x80\0\0"),
            ("4294967295", b"\x09\xff\xff\xff\xff\0\0\0\0"),
            ("4294967296", b"\x0a\0\0\0\0\x01\0\0\0"),
            ("-4294967296", b"\x09\0\0\0\0\xff\xff\xff\xff"),
            ("-0.0", b"\x0b\0\0\0\0\0\0\0\x80"),
            ("1e2", b"\x0b\0\0\0\0\0\0\x59\x40"),
            ("[]", b"\x02\0\0\x04\0"),
        ] {
            assert_eq!(document(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn texts_come_back_as_they_were() {
        let long = format!("[\"{}\", -7, 70000]", "x".repeat(70_000));
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for text in [
            "{\"a\": \"\\\"\\\\ \\n \\u0001 日😀\", \"bb\": {}, \"cc\": [null, false, -1.5]}",
            "18446744073709551615",
            "\"\"",
            &long,
            &deep,
        ] {
            let mut again = Vec::new();
            JsonDocument::new(&document(text).unwrap()).write_text(&mut again).unwrap();
            assert_eq!(String::from_utf8(again).unwrap(), text);
        }
        let pair = document("\"\\ud83d\\ude00\\u00e9\"").unwrap();
        assert_eq!(pair, document("\"😀é\"").unwrap());
    }

    #[test]
    fn other_texts_are_refused() {
        let deep = "[".repeat(200);
        for text in [
            "",
            "x",
            "tru",
            "[1",
            "[1 2]",
            "{1: 2}",
            "{\"a\" 1}",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "1e999",
            "-",
            "1 2",
            &deep,
        ] {
            assert!(document(text).is_err(), "{text}");
        }
    }
}
