//! Masks text and bytes, in the column's character set and within its length.
//!
//! A hash of text is 26 letters and digits (130 bits), or as many as the column has characters: the shorter the column, the more
//! often two values get the same one. A hash of bytes is 16 bytes.

use std::borrow::Cow;

use binlogz_binlog::charset::{Charset, collation_name};
use binlogz_binlog::row::{ColumnKind, ColumnSchema};

use crate::secret::MaskKey;

/// Characters of a hash: five bits each. No collation takes one for another.
const ALPHABET: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz234567";
/// Characters of a whole hash.
const LETTERS: usize = 26;
/// Bytes of a whole hash of bytes.
const BYTES: usize = 16;
/// Fewer letters, 65 bits, don't keep the values of a large table apart; of a hundred million, two then have one hash once in thousands
/// of tables.
const LETTERS_ENOUGH: usize = 13;
/// The same of bytes.
const BYTES_ENOUGH: usize = 8;
/// The character that hides others.
const HIDDEN: u8 = b'x';

/// Whether values are bytes, not text. Where the log doesn't tell, they count as text.
pub(super) fn is_binary(column: &ColumnSchema) -> bool {
    column.charset() == Some(Charset::Binary)
}

/// The most bytes that a value of a string column has.
pub(super) fn size_max(column: &ColumnSchema) -> usize {
    match column.kind {
        ColumnKind::Char { length_max } | ColumnKind::Varchar { length_max } => length_max.into(),
        ColumnKind::Blob { length_size } => match length_size {
            1 => 0xff,
            2 => 0xffff,
            3 => 0xff_ffff,
            _ => 0xffff_ffff,
        },
        _ => 0,
    }
}

/// The most bytes of a character (`Maxlen` of SHOW CHARACTER SET).
fn character_size_max(charset: Option<Charset>) -> usize {
    match charset {
        None
        | Some(Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 | Charset::Gb18030) => 4,
        Some(Charset::Utf8mb3 | Charset::Ujis | Charset::Eucjpms) => 3,
        Some(
            Charset::Ucs2
            | Charset::Big5
            | Charset::Cp932
            | Charset::Euckr
            | Charset::Gb2312
            | Charset::Gbk
            | Charset::Sjis,
        ) => 2,
        Some(_) => 1,
    }
}

/// The most letters that a value has.
pub(super) fn letters_max(column: &ColumnSchema) -> usize {
    let charset = column.charset();
    let size = match column.kind {
        // They are limited in characters.
        ColumnKind::Char { .. } | ColumnKind::Varchar { .. } => character_size_max(charset),
        _ => letter_size(charset),
    };
    size_max(column) / size
}

/// Whether the column is too short for hashes that differ wherever its values do.
pub(super) fn has_short_hash(column: &ColumnSchema) -> bool {
    match is_binary(column) {
        true => size_max(column) < BYTES_ENOUGH,
        false => letters_max(column) < LETTERS_ENOUGH,
    }
}

/// Whether texts that differ only in case may be different ones in the column: by its collation, if that is known.
pub(super) fn may_tell_case(column: &ColumnSchema) -> bool {
    let name = column.collation.and_then(collation_name);
    !is_binary(column) && name.is_none_or(|name| name.split('_').any(|part| part == "bin" || part == "cs"))
}

fn letter_size(charset: Option<Charset>) -> usize {
    let mut one = Vec::new();
    put_letter(charset, HIDDEN, &mut one);
    one.len()
}

/// Appends an ASCII letter in a character set.
fn put_letter(charset: Option<Charset>, letter: u8, out: &mut Vec<u8>) {
    match charset {
        Some(Charset::Ucs2 | Charset::Utf16) => out.extend([0, letter]),
        Some(Charset::Utf16le) => out.extend([letter, 0]),
        Some(Charset::Utf32) => out.extend([0, 0, 0, letter]),
        _ => out.push(letter),
    }
}

/// ASCII text in a character set.
pub(super) fn in_charset(charset: Option<Charset>, ascii: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ascii.len());
    ascii.iter().for_each(|&letter| put_letter(charset, letter, &mut bytes));
    bytes
}

/// The letters of a hash.
pub(super) fn letters(digest: &[u8; 32]) -> [u8; LETTERS] {
    let mut letters = [0; LETTERS];
    let bits = digest.iter().take(17).flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    let (groups, _) = bits.as_chunks::<5>();
    for (letter, group) in letters.iter_mut().zip(groups) {
        let number = group.iter().fold(0_usize, |number, bit| number << 1 | usize::from(*bit));
        *letter = ALPHABET.get(number).copied().unwrap_or(HIDDEN);
    }
    letters
}

/// The hash of text: the same for the same text in any character set.
pub(super) fn digest_of_text(key: &MaskKey, text: &[u8]) -> [u8; 32] {
    key.digest(&[b"text", text])
}

pub(super) fn hashed(key: &MaskKey, column: &ColumnSchema, bytes: &[u8], ignores_case: bool) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let charset = column.charset();
    if is_binary(column) {
        let digest = key.digest(&[b"bytes", &column.padded(bytes)]);
        let mut hash: Vec<u8> = digest.into_iter().take(BYTES.min(size_max(column))).collect();
        // As the log has a BINARY(n): without the zeros at its end.
        while matches!(column.kind, ColumnKind::Char { .. }) && hash.last() == Some(&0) {
            hash.pop();
        }
        return hash;
    }
    let text: Cow<'_, [u8]> = match charset.and_then(|charset| charset.decode(bytes)) {
        Some(text) if ignores_case => Cow::Owned(text.to_lowercase().into_bytes()),
        Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        None if ignores_case => Cow::Owned(String::from_utf8_lossy(bytes).to_lowercase().into_bytes()),
        None => Cow::Borrowed(bytes),
    };
    let letters = letters(&digest_of_text(key, &text));
    let count = letters_max(column).min(LETTERS);
    // In a character set that isn't known, pairs of letters are characters of two bytes as well.
    let count = if charset.is_none() && count > 1 { count & !1 } else { count };
    in_charset(charset, letters.get(..count).unwrap_or(&letters))
}

/// Hides all characters but the first and the last ones; all of them if there are no more than those.
pub(super) fn partial(column: &ColumnSchema, bytes: &[u8], (first, last): (usize, usize)) -> Vec<u8> {
    let charset = column.charset();
    let (sizes, may_keep) = character_sizes(charset, bytes);
    let shown = first.saturating_add(last);
    let keeps = may_keep && sizes.len() > shown;
    let (first, last) = if keeps { (first, last) } else { (0, 0) };
    let size_of = |sizes: &[usize]| sizes.iter().sum::<usize>();
    let front = size_of(sizes.get(..first).unwrap_or_default());
    let back = size_of(sizes.get(sizes.len() - last..).unwrap_or_default());
    let mut masked = bytes.get(..front).unwrap_or_default().to_vec();
    masked.extend(in_charset(charset, &vec![HIDDEN; sizes.len() - first - last]));
    masked.extend_from_slice(bytes.get(bytes.len() - back..).unwrap_or_default());
    masked
}

/// The bytes of each character, and whether the text may be cut between them.
fn character_sizes(charset: Option<Charset>, bytes: &[u8]) -> (Vec<usize>, bool) {
    let same = |size: usize| (vec![size; bytes.len() / size], bytes.len().is_multiple_of(size));
    match charset {
        None | Some(Charset::Utf8mb3 | Charset::Utf8mb4) => match std::str::from_utf8(bytes) {
            Ok(text) => (text.chars().map(char::len_utf8).collect(), true),
            Err(_) => (vec![1; bytes.len()], false),
        },
        Some(Charset::Ucs2) => same(2),
        Some(Charset::Utf32) => same(4),
        Some(charset @ (Charset::Utf16 | Charset::Utf16le)) => match charset.decode(bytes) {
            Some(text) => (text.chars().map(|character| 2 * character.len_utf16()).collect(), true),
            None => (vec![2; bytes.len() / 2], false),
        },
        Some(charset) if character_size_max(Some(charset)) == 1 => same(1),
        // Characters of East Asia's older sets have no marks at their borders.
        Some(charset) => {
            let count = charset.decode(bytes).map_or(bytes.len() / 2, |text| text.chars().count());
            (vec![1; count], false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::column;

    fn key() -> MaskKey {
        MaskKey::new(b"a key of sixteen")
    }

    /// VARCHAR of so many bytes in a collation.
    fn text(size: u16, collation: u8) -> ColumnSchema {
        column(15, &size.to_le_bytes(), &[2, 1, collation])
    }

    #[test]
    fn a_hash_is_the_same_in_every_character_set_and_fits() {
        let utf8 = hashed(&key(), &text(400, 45), "Müller".as_bytes(), false);
        assert_eq!(utf8.len(), LETTERS);
        assert_eq!(hashed(&key(), &text(100, 8), b"M\xfcller", false), utf8);
        assert_eq!(hashed(&key(), &text(40, 45), "Müller".as_bytes(), false), utf8[..10]);
        let wide = hashed(&key(), &text(40, 35), b"\0M\0\xfc\0l\0l\0e\0r", false);
        assert_eq!(wide, utf8[..20].iter().flat_map(|letter| [0, *letter]).collect::<Vec<_>>());
        let lower = hashed(&key(), &text(400, 45), "MÜLLER".as_bytes(), true);
        assert_eq!(lower, hashed(&key(), &text(400, 45), "müller".as_bytes(), true));
        assert_ne!(lower, hashed(&key(), &text(400, 45), "MÜLLER".as_bytes(), false));
        assert_eq!(hashed(&key(), &text(400, 45), b"", false), b"");
    }

    #[test]
    fn a_hash_of_bytes_fits_and_has_no_zero_at_its_end() {
        let binary = column(254, &[254, 4], &[2, 1, 63]);
        for number in 0..2000_u32 {
            let hash = hashed(&key(), &binary, &(1 + number).to_le_bytes(), false);
            assert!(hash.len() <= 4 && hash.last() != Some(&0));
        }
        let varying = text(10, 63);
        assert_eq!(hashed(&key(), &varying, b"abc", false).len(), 10);
        assert_ne!(hashed(&key(), &varying, b"abc", false), hashed(&key(), &varying, b"abc\0", false));
    }

    #[test]
    fn partial_keeps_the_length() {
        for (collation, bytes, kept, masked) in [
            (45, "0171 555 42".as_bytes(), (0, 2), "xxxxxxxxx42".as_bytes()),
            (45, "né".as_bytes(), (1, 0), b"nx"),
            (45, "né".as_bytes(), (1, 1), b"xx"),
            (8, b"\xfcber", (1, 1), b"\xfcxxr"),
            (35, b"\0a\0b\0c", (1, 0), b"\0a\0x\0x"),
            (54, b"\xd8\x3d\xde\0\0b", (1, 0), b"\xd8\x3d\xde\0\0x"),
            (28, b"\xc4\xe3\xba\xc3", (1, 0), b"xx"),
            (45, b"\xff\xfe", (1, 0), b"xx"),
            (45, b"", (1, 0), b""),
        ] {
            assert_eq!(partial(&text(100, collation), bytes, kept), masked, "{collation} {bytes:?}");
        }
    }
}
