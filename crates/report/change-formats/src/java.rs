//! Numbers, strings and JSON documents as Java and its JSON libraries write them.

use std::fmt::LowerExp;
use std::io::Write as _;

use binlogz_binlog::row::json::{JsonDocument, JsonValue};
use binlogz_binlog::{Error, Result};

use base64_simd::STANDARD;

/// Levels that a document may have.
const DEPTH_MAX: usize = 100;

/// How a library escapes strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// Jackson's: characters beyond the first 65,536 as two escapes.
    Jackson,
    /// fastjson2's.
    Fastjson,
}

/// Appends a string in quotes.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str, escapes: Escapes) {
    out.push(b'"');
    let mut plain = 0;
    let bytes = text.as_bytes();
    let is_special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\' || byte >= 0xf0;
    while let Some(found) = bytes.get(plain..).and_then(|rest| rest.iter().position(|&byte| is_special(byte)))
    {
        let at = plain + found;
        out.extend_from_slice(bytes.get(plain..at).unwrap_or_default());
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        push_escaped(out, character, escapes);
        plain = at + character.len_utf8();
    }
    out.extend_from_slice(bytes.get(plain..).unwrap_or_default());
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, character: char, escapes: Escapes) {
    let short = match character {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{c}' => b'f',
        '\r' => b'r',
        _ => 0,
    };
    let mut units = [0; 2];
    match (short, escapes) {
        (1.., _) => out.extend_from_slice(&[b'\\', short]),
        (_, Escapes::Jackson) => character.encode_utf16(&mut units).iter().for_each(|unit| {
            let _ = write!(out, "\\u{unit:04X}");
        }),
        (_, Escapes::Fastjson) if character < ' ' => {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        }
        (_, Escapes::Fastjson) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Appends bytes in base64, in quotes.
pub(crate) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    STANDARD.encode_append(bytes, out);
    out.push(b'"');
}

/// Appends a float or double as `toString` of Java 19 and later does: the shortest that is read back the same.
pub(crate) fn push_float(out: &mut Vec<u8>, number: impl LowerExp) {
    let mut text = format!("{number:e}");
    // Of one digit, the nearest of two: that matters for the least numbers.
    if text.split('e').next().is_some_and(|mantissa| mantissa.trim_start_matches('-').len() == 1) {
        text = format!("{number:.1e}").replace(".0e", "e");
    }
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", &*text),
    };
    out.extend_from_slice(sign.as_bytes());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let whole = usize::try_from(exponent + 1).unwrap_or(0);
    // Java writes numbers from a thousandth up to ten million without an exponent.
    if (0..7).contains(&exponent) {
        let zeros = whole.saturating_sub(digits.len());
        out.extend_from_slice(digits.get(..whole).unwrap_or(&digits));
        out.extend(std::iter::repeat_n(b'0', zeros));
        out.push(b'.');
        push_or_zero(out, digits.get(whole..).unwrap_or_default());
    } else if (-3..0).contains(&exponent) {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
        out.extend_from_slice(&digits);
    } else {
        let (first, rest) = digits.split_at(digits.len().min(1));
        out.extend_from_slice(first);
        out.push(b'.');
        push_or_zero(out, rest);
        let _ = write!(out, "E{exponent}");
    }
}

/// Appends a number as `BigDecimal.toString` does: one that is less than a millionth, zeros among them, with an exponent.
pub(crate) fn push_decimal(out: &mut Vec<u8>, plain: &[u8]) {
    let (sign, digits) = match plain.strip_prefix(b"-") {
        Some(digits) => (b"-".as_slice(), digits),
        None => (b"".as_slice(), plain),
    };
    let point = digits.iter().position(|&byte| byte == b'.').unwrap_or(digits.len());
    let is_leading = |&byte: &u8| byte == b'0' || byte == b'.';
    // A zero has one digit.
    let first = digits.iter().position(|byte| !is_leading(byte)).unwrap_or(digits.len().saturating_sub(1));
    if first <= point + 6 {
        out.extend_from_slice(plain);
        return;
    }
    out.extend_from_slice(sign);
    let (front, back) = digits.get(first..).unwrap_or_default().split_at(1);
    out.extend_from_slice(front);
    if !back.is_empty() {
        out.push(b'.');
        out.extend_from_slice(back);
    }
    // Writing to a vector can't fail.
    let _ = write!(out, "E-{}", first - point);
}

fn push_or_zero(out: &mut Vec<u8>, digits: &[u8]) {
    out.extend_from_slice(if digits.is_empty() { b"0" } else { digits });
}

/// Appends a document as mysql-binlog-connector-java writes it, which Debezium and Maxwell use: without spaces, doubles
/// without exponents.
pub(crate) fn push_document(out: &mut Vec<u8>, document: &JsonDocument<'_>) -> Result<()> {
    let mut writer = DocumentWriter { out, budget: document.as_bytes().len(), depth: 0 };
    writer.value(&document.value()?)
}

/// Parts of a damaged document may overlap: each byte read is taken from a budget of the document's own size.
struct DocumentWriter<'o> {
    out: &'o mut Vec<u8>,
    budget: usize,
    depth: usize,
}

impl DocumentWriter<'_> {
    fn value(&mut self, value: &JsonValue<'_>) -> Result<()> {
        match value {
            JsonValue::Null => self.out.extend_from_slice(b"null"),
            JsonValue::Bool(true) => self.out.extend_from_slice(b"true"),
            JsonValue::Bool(false) => self.out.extend_from_slice(b"false"),
            JsonValue::Int(number) => self.shown(number),
            JsonValue::Uint(number) => self.shown(number),
            JsonValue::Double(number) => self.double(*number),
            JsonValue::Decimal(decimal) => self.out.extend_from_slice(decimal.text().as_bytes()),
            JsonValue::String(string) => self.string(string)?,
            JsonValue::Date(date) => self.shown_quoted(date.text().as_bytes()),
            JsonValue::Time(time) => self.shown_quoted(time.text().as_bytes()),
            JsonValue::DateTime(datetime) => self.shown_quoted(datetime.text().as_bytes()),
            JsonValue::Opaque { bytes, .. } => {
                self.spend(bytes.len())?;
                push_base64(self.out, bytes);
            }
            JsonValue::Array(array) => {
                self.enter()?;
                self.out.push(b'[');
                for (index, value) in array.iter().enumerate() {
                    self.between(index)?;
                    self.value(&value?)?;
                }
                self.out.push(b']');
                self.depth -= 1;
            }
            JsonValue::Object(object) => {
                self.enter()?;
                self.out.push(b'{');
                for (index, member) in object.iter().enumerate() {
                    self.between(index)?;
                    let (key, value) = member?;
                    self.string(key)?;
                    self.out.push(b':');
                    self.value(&value)?;
                }
                self.out.push(b'}');
                self.depth -= 1;
            }
        }
        Ok(())
    }

    fn between(&mut self, index: usize) -> Result<()> {
        if index > 0 {
            self.out.push(b',');
        }
        // Each has at least a byte of its own in the container.
        self.spend(1)
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(Error::invalid("json document", "nesting", self.depth, "at most 100 levels")),
            false => Ok(()),
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<()> {
        let shared =
            || Error::invalid("json document", "offsets", "shared by several values", "one value each");
        self.budget = self.budget.checked_sub(bytes).ok_or_else(shared)?;
        Ok(())
    }

    fn string(&mut self, string: &[u8]) -> Result<()> {
        self.spend(string.len())?;
        // That library writes no character in two escapes.
        push_string(self.out, &String::from_utf8_lossy(string), Escapes::Fastjson);
        Ok(())
    }

    fn shown(&mut self, number: impl std::fmt::Display) {
        let _ = write!(self.out, "{number}");
    }

    /// Times, without zeros at the end of a fraction.
    fn shown_quoted(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut shown = text;
        if shown.contains(&b'.') {
            while let [rest @ .., b'0'] = shown {
                shown = rest;
            }
            shown = shown.strip_suffix(b".").unwrap_or(shown);
        }
        self.out.extend_from_slice(shown);
        self.out.push(b'"');
    }

    fn double(&mut self, number: f64) {
        let start = self.out.len();
        push_float(self.out, number);
        if self.out.get(start..).is_some_and(|text| text.contains(&b'E')) {
            self.out.truncate(start);
            push_exact(self.out, number);
        }
    }
}

/// Digits after the point of the least double.
const FRACTION_MAX: usize = 1074;

/// Appends all digits of a double (`new BigDecimal(number).toPlainString()`).
fn push_exact(out: &mut Vec<u8>, number: f64) {
    let text = format!("{number:.FRACTION_MAX$}");
    let text = text.trim_end_matches('0');
    out.extend_from_slice(text.strip_suffix('.').unwrap_or(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(number: f64) -> String {
        let mut out = Vec::new();
        push_float(&mut out, number);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_are_javas() {
        // Read off BigDecimal.toString of OpenJDK 17.
        for (plain, expected) in [
            ("0", "0"),
            ("-12.50", "-12.50"),
            ("0.00", "0.00"),
            ("0.000001", "0.000001"),
            ("0.000000", "0.000000"),
            ("0.0000000", "0E-7"),
            ("0.0000001", "1E-7"),
            ("-0.00000128", "-0.00000128"),
            ("-0.000000128", "-1.28E-7"),
            ("0.00000001200", "1.200E-8"),
            ("0.000000000000000000000000000000", "0E-30"),
        ] {
            let mut out = Vec::new();
            push_decimal(&mut out, plain.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn doubles_are_javas() {
        // Read off Double.toString of OpenJDK 21.
        for (number, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.001, "0.001"),
            (9.99e-4, "9.99E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12345678.9, "1.23456789E7"),
            (123456.789, "123456.789"),
            (100.0, "100.0"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "4.9E-324"),
            (2e-3, "0.002"),
        ] {
            assert_eq!(float(number), expected);
        }
        let mut out = Vec::new();
        push_float(&mut out, 0.1_f32);
        assert_eq!(out, b"0.1");
    }

    #[test]
    fn all_digits_of_a_double() {
        let exact = |number| {
            let mut out = Vec::new();
            push_exact(&mut out, number);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(exact(1e21), "1000000000000000000000");
        assert_eq!(exact(-2f64.powi(-20)), "-0.00000095367431640625");
        assert_eq!(exact(5e-324).len(), FRACTION_MAX + 2);
    }

    #[test]
    fn strings_are_escaped_as_each_library_does() {
        let text = "a\"\\\u{8}\t\n\u{c}\r\u{1f}é/😀\u{7f}";
        let written = |escapes| {
            let mut out = Vec::new();
            push_string(&mut out, text, escapes);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Escapes::Jackson), "\"a\\\"\\\\\\b\\t\\n\\f\\r\\u001Fé/\\uD83D\\uDE00\u{7f}\"");
        assert_eq!(written(Escapes::Fastjson), "\"a\\\"\\\\\\b\\t\\n\\f\\r\\u001fé/😀\u{7f}\"");
    }
}
