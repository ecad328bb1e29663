//! Strings, numbers and bytes as JSON.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

use binlogz_binlog::base64;

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
    push_shown(out, number);
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
    push_text(out, name, &String::from_utf8_lossy(text));
}

/// Appends a value whose display form is a JSON number or text that needs no quoting.
#[inline]
pub(super) fn push_shown(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a vector can't fail.
    let _ = write!(out, "{value}");
}

/// Appends a string in quotes.
#[inline]
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((&special, behind)) = special.split_first() else { break };
        rest = behind;
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
    out.extend_from_slice(rest);
    out.push(b'"');
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
    out.extend_from_slice(b"{\"base64\":\"");
    let start = out.len();
    base64::write_lines(bytes, out);
    let mut kept = start;
    for index in start..out.len() {
        if let Some(&byte) = out.get(index).filter(|&&byte| byte != b'\n') {
            if let Some(slot) = out.get_mut(kept) {
                *slot = byte;
            }
            kept += 1;
        }
    }
    out.truncate(kept);
    out.extend_from_slice(b"\"}");
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
    fn bytes_are_one_line() {
        let bytes: Vec<u8> = (0..=255).cycle().take(300).collect();
        let json = written(|out| push_base64(out, &bytes));
        assert!(!json.contains('\n') && json.len() == 400 + r#"{"base64":""}"#.len(), "{json}");
        assert_eq!(written(|out| push_base64(out, b"\xff")), r#"{"base64":"/w=="}"#);
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
