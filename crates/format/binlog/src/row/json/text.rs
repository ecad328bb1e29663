//! Writes documents as the server's text: a space after commas and colons, numbers so that their type is
//! recognisable, dates and opaque values as strings. (`wrapper_to_string` in the server's `json_dom.cc`.)
//!
//! A document with overlapping offsets could write far more than it holds. So each byte read is taken from a
//! budget of the document's own size; valid documents, whose parts don't overlap, never exceed it.

use std::fmt;
use std::io::Write as _;

use super::JSON_DEPTH_MAX;
use super::binary::{Container, JsonArray, JsonDocument, JsonObject, JsonValue};
use super::double::double_text;
use crate::base64;
use crate::error::{Error, Result};
use crate::event::ColumnType;

const WHAT: &str = "json document";

impl JsonDocument<'_> {
    /// Appends the document as the server prints it.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the document; half of its text may have been appended then.
    pub fn write_text(&self, out: &mut Vec<u8>) -> Result<()> {
        TextWriter::new(out, self.as_bytes().len()).value(&self.value()?, true)
    }

    /// As [`JsonDocument::write_text`], but a document that is a string, a date or an opaque value is written
    /// without quotes and escapes, as `JSON_UNQUOTE` and mysqlbinlog do.
    pub fn write_text_unquoted(&self, out: &mut Vec<u8>) -> Result<()> {
        TextWriter::new(out, self.as_bytes().len()).value(&self.value()?, false)
    }
}

/// Writes values one after the other, within a budget.
pub(super) struct TextWriter<'o> {
    out: &'o mut Vec<u8>,
    budget: u64,
    depth: usize,
}

impl<'o> TextWriter<'o> {
    /// `size`: bytes of all documents whose values are to be written.
    pub(super) fn new(out: &'o mut Vec<u8>, size: usize) -> Self {
        TextWriter { out, budget: size as u64, depth: 0 }
    }

    pub(super) fn value(&mut self, value: &JsonValue<'_>, quoted: bool) -> Result<()> {
        match value {
            JsonValue::Null => self.put(b"null"),
            JsonValue::Bool(true) => self.put(b"true"),
            JsonValue::Bool(false) => self.put(b"false"),
            JsonValue::Int(number) => self.put_shown(number)?,
            JsonValue::Uint(number) => self.put_shown(number)?,
            JsonValue::Double(number) => self.put(double_text(*number).as_bytes()),
            JsonValue::Decimal(decimal) => self.put(decimal.text().as_bytes()),
            JsonValue::String(string) => {
                self.spend(string.len())?;
                self.string(string, quoted);
            }
            JsonValue::Date(date) => self.string(date.text().as_bytes(), quoted),
            JsonValue::Time(time) => self.string(time.text().as_bytes(), quoted),
            JsonValue::DateTime(datetime) => self.string(datetime.text().as_bytes(), quoted),
            JsonValue::Opaque { column_type, bytes } => {
                self.spend(bytes.len())?;
                self.opaque(*column_type, bytes, quoted);
            }
            JsonValue::Array(array) => self.array(array)?,
            JsonValue::Object(object) => self.object(object)?,
        }
        Ok(())
    }

    fn array(&mut self, array: &JsonArray<'_>) -> Result<()> {
        self.enter(array.container())?;
        self.elements(b'[', array.iter(), b']', |writer, value| writer.value(&value?, true))?;
        self.leave();
        Ok(())
    }

    fn object(&mut self, object: &JsonObject<'_>) -> Result<()> {
        self.enter(object.container())?;
        self.elements(b'{', object.iter(), b'}', |writer, member| {
            let (key, value) = member?;
            writer.spend(key.len())?;
            writer.key(key);
            writer.value(&value, true)
        })?;
        self.leave();
        Ok(())
    }

    /// Writes brackets and commas around what `write` does with each element.
    pub(super) fn elements<T>(
        &mut self,
        open: u8,
        elements: impl Iterator<Item = T>,
        close: u8,
        mut write: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.out.push(open);
        for (index, element) in elements.enumerate() {
            if index > 0 {
                self.put(b", ");
            }
            write(self, element)?;
        }
        self.out.push(close);
        Ok(())
    }

    pub(super) fn key(&mut self, key: &[u8]) {
        self.string(key, true);
        self.put(b": ");
    }

    /// Goes one level down; more than [`JSON_DEPTH_MAX`] levels are an error.
    pub(super) fn descend(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > JSON_DEPTH_MAX {
            return Err(Error::invalid(WHAT, "nesting", self.depth, "at most 100 levels"));
        }
        Ok(())
    }

    /// Goes one level up.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn enter(&mut self, container: &Container<'_>) -> Result<()> {
        self.spend(container.header_size() as usize)?;
        self.descend()
    }

    fn spend(&mut self, bytes: usize) -> Result<()> {
        match self.budget.checked_sub(bytes as u64) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(Error::invalid(WHAT, "offsets", "shared by several values", "one value each")),
        }
    }

    fn string(&mut self, string: &[u8], quoted: bool) {
        if quoted {
            self.out.push(b'"');
            write_escaped(string, self.out);
            self.out.push(b'"');
        } else {
            self.put(string);
        }
    }

    fn opaque(&mut self, column_type: ColumnType, bytes: &[u8], quoted: bool) {
        let mut encoded = format!("base64:type{}:", column_type.0).into_bytes();
        base64::write_lines(bytes, &mut encoded);
        self.string(&encoded, quoted);
    }

    fn put(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    fn put_shown(&mut self, number: &impl fmt::Display) -> Result<()> {
        Ok(write!(self.out, "{number}")?)
    }
}

/// Appends a string with the server's escapes: the five short ones, quotes and backslashes, other
/// characters below a space in hexadecimal.
fn write_escaped(string: &[u8], out: &mut Vec<u8>) {
    let mut rest = string;
    while let Some(at) = rest.iter().position(|&byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = special.split_first() else { break };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\x08' => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\x0c' => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = behind;
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String> {
        let mut out = Vec::new();
        JsonDocument::new(bytes).write_text(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn unquoted(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        JsonDocument::new(bytes).write_text_unquoted(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn containers_and_scalars() {
        // {"a": 1, "b": [true, "x"]}
        let object = b"\x00\x02\x00\x20\x00\x12\x00\x01\x00\x13\x00\x01\x00\x05\x01\x00\x02\x14\x00ab\
            \x02\x00\x0c\x00\x04\x01\x00\x0c\x0a\x00\x01x";
        assert_eq!(text(object).unwrap(), r#"{"a": 1, "b": [true, "x"]}"#);
        assert_eq!(text(b"\x02\x00\x00\x04\x00").unwrap(), "[]");
        assert_eq!(text(b"\x00\x00\x00\x04\x00").unwrap(), "{}");
        assert_eq!(text(b"").unwrap(), "null");
        assert_eq!(text(b"\x0b\0\0\0\0\0\0\xf0\x3f").unwrap(), "1.0");
    }

    #[test]
    fn strings_are_escaped_within_quotes_only() {
        let string = b"\x0c\x0ba\"b\\/\n\x01\x1f\x7f\x08\x0c";
        assert_eq!(text(string).unwrap(), "\"a\\\"b\\\\/\\n\\u0001\\u001f\x7f\\b\\f\"");
        assert_eq!(unquoted(string), "a\"b\\/\n\x01\x1f\x7f\x08\x0c");
    }

    #[test]
    fn opaque_values_are_base64() {
        assert_eq!(text(b"\x0f\x0f\x02\xff\x00").unwrap(), "\"base64:type15:/wA=\"");
        assert_eq!(unquoted(b"\x0f\x0f\x02\xff\x00"), "base64:type15:/wA=");
    }

    #[test]
    fn dates_and_times_have_six_digits() {
        let packed: i64 = -(((12 << 12 | 34 << 6 | 56) << 24) + 789_000);
        let bytes = [&b"\x0f\x0b\x08"[..], &packed.to_le_bytes()].concat();
        assert_eq!(text(&bytes).unwrap(), "\"-12:34:56.789000\"");
        let packed: i64 = (((2020 * 13 + 1) << 5) | 2) << 41;
        let bytes = [&b"\x0f\x0a\x08"[..], &packed.to_le_bytes()].concat();
        assert_eq!(unquoted(&bytes), "2020-01-02");
    }

    #[test]
    fn documents_that_multiply_are_refused() {
        // An array of 100 elements which are all the same string of 100 bytes.
        let count = 100u16;
        let string = [b'x'; 100];
        let mut body = Vec::new();
        let header = 4 + 3 * count;
        body.extend_from_slice(&count.to_le_bytes());
        body.extend_from_slice(&(header + 101).to_le_bytes());
        for _ in 0..count {
            body.push(0x0c);
            body.extend_from_slice(&header.to_le_bytes());
        }
        body.push(100);
        body.extend_from_slice(&string);
        let error = text(&[&[2u8][..], &body].concat()).unwrap_err().to_string();
        assert_eq!(error, "json document: offsets is shared by several values, expected one value each");
    }

    #[test]
    fn nesting_ends_at_the_servers_limit() {
        let nested = |levels: usize| {
            let mut bytes = b"\x02\x00\x00\x04\x00".to_vec();
            for _ in 1..levels {
                let size = (bytes.len() + 6) as u16;
                let header = [2, 1, 0, size.to_le_bytes()[0], size.to_le_bytes()[1], 2, 7, 0];
                bytes = [&header[..], &bytes[1..]].concat();
            }
            bytes
        };
        assert_eq!(text(&nested(100)).unwrap(), format!("{}{}", "[".repeat(100), "]".repeat(100)));
        assert!(text(&nested(101)).unwrap_err().to_string().contains("nesting is 101"));
    }
}
