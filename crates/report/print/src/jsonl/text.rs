//! Strings, numbers and bytes as JSON.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

use base64_simd::STANDARD;

use crate::number::{push_front, push_unsigned};
use crate::plain::plain_length;

/// Appends `,"name":`, or without the comma after an opening brace.
#[inline]
pub(super) fn push_name(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a field with a number.
#[inline]
pub(super) fn push_number(out: &mut Vec<u8>, name: &str, number: u64) {
    push_name(out, name);
    push_unsigned(out, number);
}

/// Appends a field with a text.
#[inline]
pub(super) fn push_text(out: &mut Vec<u8>, name: &str, text: &str) {
    push_name(out, name);
    push_string(out, text);
}

/// Appends a field with a server's name for something: UTF-8, unless it was damaged.
#[inline]
pub(super) fn push_bytes_as_text(out: &mut Vec<u8>, name: &str, text: &[u8]) {
    push_name(out, name);
    push_lossy(out, text);
}

/// Appends bytes that should be UTF-8 as a string in quotes.
pub(super) fn push_lossy(out: &mut Vec<u8>, bytes: &[u8]) {
    // Checking first is several times as fast as replacing what is damaged.
    match std::str::from_utf8(bytes) {
        Ok(text) => push_string(out, text),
        Err(_) => push_string(out, &String::from_utf8_lossy(bytes)),
    }
}

/// Appends a value whose display form is a JSON number. Integers have a faster writer in [`crate::number`].
#[inline]
pub(super) fn push_shown(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a vector can't fail.
    let _ = write!(out, "{value}");
}

/// Appends a text in quotes that has nothing to escape, such as a date.
#[inline]
pub(super) fn push_plain(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

/// Appends a string in quotes.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends a string without its quotes.
#[inline]
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    // Documents have a quote every few bytes: eight bytes at a time, until there are none for long.
    let mut plain_for = PLAIN_LONG;
    loop {
        if plain_for >= PLAIN_LONG {
            let (plain, special) = rest.split_at(plain_length(rest, is_special));
            out.extend_from_slice(plain);
            rest = special;
        } else if let Some((eight, behind)) = rest.split_first_chunk::<8>() {
            let plain = plain_of_eight(*eight);
            push_front(out, eight, plain);
            if plain == eight.len() {
                (rest, plain_for) = (behind, plain_for + eight.len());
                continue;
            }
            rest = rest.get(plain..).unwrap_or_default();
        } else {
            plain_for = PLAIN_LONG;
            continue;
        }
        let Some((&special, behind)) = rest.split_first() else { break };
        (rest, plain_for) = (behind, 0);
        match special {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', special]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
    }
}

/// After this many bytes without a special one, more are looked at together.
const PLAIN_LONG: usize = 32;

/// How many of eight bytes come before the first special one.
#[inline]
fn plain_of_eight(eight: [u8; 8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(eight);
    // The highest bit of a byte is set if it is below the limit; above the first such byte, perhaps of others, too.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = below(word, b' '.into()) | is(b'"') | is(b'\\');
    special.trailing_zeros() as usize / 8
}

#[inline]
fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

/// Appends text as a string, and anything else as `{"base64":"…"}`.
pub(super) fn push_text_or_bytes(out: &mut Vec<u8>, text: Option<Cow<'_, str>>, bytes: &[u8]) {
    match text {
        Some(text) => push_string(out, &text),
        None => push_base64(out, bytes),
    }
}

/// Appends `{"base64":"…"}`, in one line.
pub(super) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(BASE64_BEGIN);
    push_base64_digits(out, bytes);
    out.extend_from_slice(BASE64_END);
}

/// What stands around the digits of bytes.
pub(super) const BASE64_BEGIN: &[u8] = b"{\"base64\":\"";
pub(super) const BASE64_END: &[u8] = b"\"}";

/// Appends bytes as base64, without anything around it.
pub(super) fn push_base64_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    STANDARD.encode_append(bytes, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_come_back_whatever_is_in_them() {
        let all: String = (0..0x110000).filter_map(char::from_u32).take(3000).collect();
        for text in ["", "tea", "a\"b\\c\n\r\t\u{0}\u{1f}", "Grüße 😀", &all] {
            let json = written(|out| push_string(out, text));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            assert!(!json.contains('\n'));
        }
    }

    #[test]
    fn strings_are_escaped_as_before() {
        for (text, json) in [
            ("", r#""""#),
            ("\"", r#""\"""#),
            ("\\\\", r#""\\\\""#),
            ("\0\u{8}\t\n\u{b}\u{c}\r\u{1f}", r#""\u0000\u0008\t\n\u000b\u000c\r\u001f""#),
            (" !#[]\u{7f}'/", "\" !#[]\u{7f}'/\""),
            ("é\u{80}\u{2028}😀", "\"é\u{80}\u{2028}😀\""),
        ] {
            assert_eq!(written(|out| push_string(out, text)), json);
        }
        // At every place of the blocks that are checked together, beside bytes with the high bit set.
        for length in 0..80 {
            for special in ['"', '\\', '\n', '\u{1}', 'é'] {
                let text = format!("{}{special}{}", "x".repeat(length), "é".repeat(length % 40));
                assert_eq!(written(|out| push_string(out, &text)), serde_json::to_string(&text).unwrap());
            }
        }
        let damaged = written(|out| push_bytes_as_text(out, "a", b"x\xff\"y"));
        assert_eq!(damaged, ",\"a\":\"x\u{fffd}\\\"y\"");
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        for number in [0, 9, 10, 99_999_999, 100_000_000, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            assert_eq!(written(|out| push_number(out, "n", number)), format!(",\"n\":{number}"));
        }
    }

    #[test]
    fn bytes_are_one_line() {
        let bytes: Vec<u8> = (0..=255).cycle().take(300).collect();
        let json = written(|out| push_base64(out, &bytes));
        assert!(!json.contains('\n') && json.len() == 400 + r#"{"base64":""}"#.len(), "{json}");
        for length in 0..200 {
            let bytes = bytes.get(..length).unwrap();
            let mut lines = Vec::new();
            binlogz_binlog::base64::write_lines(bytes, &mut lines);
            lines.retain(|&byte| byte != b'\n');
            let expected = format!(r#"{{"base64":"{}"}}"#, String::from_utf8(lines).unwrap());
            assert_eq!(written(|out| push_base64(out, bytes)), expected);
        }
    }

    #[test]
    fn fields_are_divided_by_commas() {
        let json = written(|out| {
            out.push(b'{');
            push_number(out, "a", 1);
            push_text(out, "b", "x");
            out.push(b'}');
        });
        assert_eq!(json, r#"{"a":1,"b":"x"}"#);
    }
}
