//! Strings and names between quotes.

use crate::plain::plain_length;

/// Appends a string in single quotes. Control characters, quotes and backslashes are escaped; other bytes,
/// UTF-8 or not, are copied unchanged.
pub fn push_quoted(out: &mut Vec<u8>, string: &[u8]) {
    out.push(b'\'');
    let mut rest = string;
    loop {
        let (plain, special) = rest.split_at(plain_length(rest, is_special));
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = special.split_first() else { break };
        push_escape(out, byte);
        rest = behind;
    }
    out.push(b'\'');
}

/// Appends a name in backticks, those in it doubled.
pub fn push_identifier(out: &mut Vec<u8>, name: &[u8]) {
    out.push(b'`');
    for &byte in name {
        if byte == b'`' {
            out.push(b'`');
        }
        out.push(byte);
    }
    out.push(b'`');
}

#[inline]
pub(crate) fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'\'') | (byte == b'\\')
}

#[cold]
fn push_escape(out: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'\'' | b'\\' => byte,
        b'\x08' => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        b'\x0c' => b'f',
        b'\r' => b'r',
        _ => {
            let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
            out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(string: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        push_quoted(&mut out, string);
        out
    }

    #[test]
    fn what_is_escaped_and_what_is_not() {
        assert_eq!(quoted(b""), b"''");
        assert_eq!(quoted(b"a'b\\c\"`%"), b"'a\\'b\\\\c\"`%'");
        assert_eq!(
            quoted(b"\x08\t\n\x0b\x0c\r\x1f\0\x7f\x80\xff"),
            b"'\\b\\t\\n\\x0b\\f\\r\\x1f\\x00\x7f\x80\xff'"
        );
    }

    #[test]
    fn specials_are_found_at_every_place() {
        for length in 0..100 {
            for at in 0..length {
                let mut string = vec![b'x'; length];
                string[at] = b'\'';
                let expected = format!("'{}\\'{}'", "x".repeat(at), "x".repeat(length - at - 1));
                assert_eq!(quoted(&string), expected.as_bytes());
            }
        }
    }

    #[test]
    fn names() {
        let mut out = Vec::new();
        push_identifier(&mut out, b"a`b");
        assert_eq!(out, b"`a``b`");
    }
}
