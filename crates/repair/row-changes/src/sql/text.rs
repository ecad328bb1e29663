//! Texts and bytes as SQL literals, whatever column or document they come from.

/// Appends what `shown` shows.
pub(crate) fn push(out: &mut Vec<u8>, shown: impl std::fmt::Display) {
    // Nothing fails that writes to memory.
    let _ = std::io::Write::write_fmt(out, format_args!("{shown}"));
}

/// Appends a text as it is: a row's statement has dozens.
pub(crate) fn push_str(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text between quotes, in which it has none.
pub(crate) fn push_between_quotes(out: &mut Vec<u8>, text: &str) {
    out.push(b'\'');
    push_str(out, text);
    out.push(b'\'');
}

/// Appends a string literal. (mysqlbinlog's own quotes show control characters in a way that no server reads back.)
///
/// A client may take a byte beyond ASCII for the first half of a character of gbk, sjis or big5, and a backslash after it
/// for the second half. So a literal with such bytes has no backslash, and no quote is ever preceded by one.
pub(crate) fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    let needs_escape = |byte: &u8| matches!(byte, b'\\' | b'\0' | b'\n' | b'\r' | b'\x1a');
    if !text.is_ascii() && text.iter().any(needs_escape) {
        out.extend_from_slice(b"_utf8mb4 ");
        return push_hex(out, text);
    }
    push_shown(out, text);
}

/// Appends a string literal for people, without hexadecimal digits.
pub(crate) fn push_shown(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\'');
    push_shown_characters(out, text);
    out.push(b'\'');
}

/// Appends the characters of a string literal for people, without its quotes.
pub(crate) fn push_shown_characters(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        let escaped: &[u8] = match byte {
            b'\'' => b"''",
            b'\\' => br"\\",
            b'\0' => br"\0",
            b'\n' => br"\n",
            b'\r' => br"\r",
            b'\x1a' => br"\Z",
            _ => std::slice::from_ref(&byte),
        };
        out.extend_from_slice(escaped);
    }
}

/// Appends a hexadecimal literal.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(HEX_BEGIN);
    push_hex_digits(out, bytes);
    out.push(b'\'');
}

/// The beginning of a hexadecimal literal, before its digits; a quote ends it.
pub(crate) const HEX_BEGIN: &[u8] = b"X'";

pub(crate) fn push_hex_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or_default();
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_backslash_stands_beside_bytes_that_a_client_may_misread() {
        let quoted = |text: &str| {
            let mut out = Vec::new();
            push_quoted(&mut out, text.as_bytes());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(quoted("it's \\ a\nb\0"), r"'it''s \\ a\nb\0'");
        assert_eq!(quoted("日本's"), "'日本''s'");
        assert_eq!(quoted("、\\"), "_utf8mb4 X'e380815c'");
        assert_eq!(quoted("é\n'; DROP"), "_utf8mb4 X'c3a90a273b2044524f50'");
    }
}
