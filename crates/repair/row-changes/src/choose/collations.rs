//! Collations in a condition: which columns a server compares, and which bytes are letters to it.

use std::cmp::Ordering;

use binlogz_binlog::charset::{Charset, collation_name};

use super::scalar::{Scalar, TextRule};

/// Whether bytes of ASCII are the same letters in a character set.
pub(super) fn is_of_ascii(charset: Charset) -> bool {
    [Charset::Ascii, Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4].contains(&charset)
}

/// Whether a text's letters are other bytes than those of a literal, which its collation may still call equal.
pub(super) fn is_hex_of_another_text(literal: &Scalar<'_>, text: &Scalar<'_>) -> bool {
    match (literal, text) {
        (Scalar::Bytes(bytes), Scalar::Text { .. }) => {
            !bytes.is_ascii() || bytes.iter().any(u8::is_ascii_alphabetic)
        }
        _ => false,
    }
}

/// Whether a server compares columns of two collations by the one whose [`TextRule`] counts more. It refuses two of one character set,
/// unless one of them is binary; of two sets that of Unicode counts.
pub(super) fn meet_by_rule(one: u64, two: u64) -> bool {
    let Some((one_name, two_name)) = collation_name(one).zip(collation_name(two)) else { return false };
    // Unicode's other encodings count as Unicode, too: which of two the server takes, if any, isn't known here.
    if [one_name, two_name].iter().any(|name| ["utf16", "utf16le", "ucs2", "utf32"].contains(&set_of(name))) {
        return false;
    }
    match (set_of(one_name), set_of(two_name)) {
        ("binary", two_set) => unicode_rank(two_set) > 0,
        (one_set, "binary") => unicode_rank(one_set) > 0,
        (one_set, two_set) if one_set == two_set => {
            [one_name, two_name].iter().any(|name| name.ends_with("_bin"))
        }
        (one_set, two_set) => {
            let one_rule = TextRule::of(Some(one));
            let two_rule = TextRule::of(Some(two));
            match unicode_rank(one_set).cmp(&unicode_rank(two_set)) {
                Ordering::Equal => false,
                Ordering::Greater => one_rule >= two_rule,
                Ordering::Less => two_rule >= one_rule,
            }
        }
    }
}

/// The character set in a collation's name.
fn set_of(collation: &str) -> &str {
    collation.split('_').next().unwrap_or_default()
}

/// Which of two character sets counts when columns of both are compared: the higher one.
fn unicode_rank(set: &str) -> u8 {
    match set {
        "utf8mb4" => 2,
        "utf8" | "utf8mb3" => 1,
        _ => 0,
    }
}
