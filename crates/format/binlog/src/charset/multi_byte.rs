//! The East Asian character sets. `encoding_rs` has nearly all of their characters; `differences.rs` has the codes that
//! the server maps differently, and those that it has no character for.
//!
//! ```text
//! big5             a1-f9, then 40-7e or a1-fe
//! sjis, cp932      a1-df | 81-9f or e0-fc, then 40-7e or 80-fc
//! ujis, eucjpms    8e, then a1-df | a1-fe twice | 8f, then a1-fe twice
//! euckr            81-fe, then 41-5a, 61-7a or 81-fe
//! gb2312           a1-f7, then a1-fe
//! gbk              81-fe, then 40-7e or 80-fe
//! gb18030          as gbk | 81-fe, then 30-39, then 81-fe, then 30-39
//! ```
//!
//! Other bytes above 7f are in no string that the server stores in such a column. (MySQL 9.7.4 converts each of these
//! codes, and no other, to something else than NULL.)

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::{CodeRun, differences};

/// An East Asian character set.
#[derive(Debug)]
pub(super) struct MultiByte {
    web: &'static Encoding,
    codes: CodeForm,
    differences: &'static [CodeRun],
}

/// The rule by which bytes make a code of a character set.
#[derive(Debug, Clone, Copy)]
enum CodeForm {
    Big5,
    Sjis,
    Ujis,
    Euckr,
    Gb2312,
    Gbk,
    Gb18030,
}

pub(super) static BIG5: MultiByte =
    MultiByte { web: encoding_rs::BIG5, codes: CodeForm::Big5, differences: differences::BIG5 };
pub(super) static SJIS: MultiByte =
    MultiByte { web: encoding_rs::SHIFT_JIS, codes: CodeForm::Sjis, differences: differences::SJIS };
pub(super) static CP932: MultiByte =
    MultiByte { web: encoding_rs::SHIFT_JIS, codes: CodeForm::Sjis, differences: differences::CP932 };
pub(super) static UJIS: MultiByte =
    MultiByte { web: encoding_rs::EUC_JP, codes: CodeForm::Ujis, differences: differences::UJIS };
pub(super) static EUCJPMS: MultiByte =
    MultiByte { web: encoding_rs::EUC_JP, codes: CodeForm::Ujis, differences: differences::EUCJPMS };
pub(super) static EUCKR: MultiByte =
    MultiByte { web: encoding_rs::EUC_KR, codes: CodeForm::Euckr, differences: differences::EUCKR };
pub(super) static GB2312: MultiByte =
    MultiByte { web: encoding_rs::GBK, codes: CodeForm::Gb2312, differences: differences::GB2312 };
pub(super) static GBK: MultiByte =
    MultiByte { web: encoding_rs::GBK, codes: CodeForm::Gbk, differences: differences::GBK };
pub(super) static GB18030: MultiByte =
    MultiByte { web: encoding_rs::GB18030, codes: CodeForm::Gb18030, differences: differences::GB18030 };

impl MultiByte {
    /// The bytes as the server converts them; `None` if they are no text, or have a code without a character.
    pub(super) fn decode(&self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let mut text = String::new();
        // Stretches in which encoding_rs and the server agree are converted in one piece.
        let mut common = bytes;
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = self.codes.size(rest)?;
            let (code, after) = rest.split_at_checked(size)?;
            if size > 1
                && let Some(character) = self.difference(code)
            {
                let before = common.get(..common.len() - rest.len())?;
                text.push_str(&self.of_the_web(before)?);
                text.push(char::from_u32(character).filter(|&character| character != '\0')?);
                common = after;
            }
            rest = after;
        }
        text.push_str(&self.of_the_web(common)?);
        Some(Cow::Owned(text))
    }

    fn of_the_web<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        self.web.decode_without_bom_handling_and_without_replacement(bytes)
    }

    /// The character of a code, where the web has another; 0 if the server has none.
    fn difference(&self, code: &[u8]) -> Option<u32> {
        let code = code.iter().fold(0, |code, &byte| code << 8 | u32::from(byte));
        let index = self.differences.partition_point(|&(_, last, _)| last < code);
        let &(first, _, character) = self.differences.get(index)?;
        let nth = code.checked_sub(first)?;
        Some(if character == 0 { 0 } else { character + nth })
    }
}

impl CodeForm {
    /// Bytes of the first code of a string; `None` if none begins with these bytes.
    fn size(self, bytes: &[u8]) -> Option<usize> {
        let [lead, rest @ ..] = bytes else { return None };
        if *lead < 0x80 {
            return Some(1);
        }
        let size = match (self, lead, rest) {
            (CodeForm::Big5, 0xa1..=0xf9, [0x40..=0x7e | 0xa1..=0xfe, ..]) => 2,
            (CodeForm::Sjis, 0xa1..=0xdf, _) => 1,
            (CodeForm::Sjis, 0x81..=0x9f | 0xe0..=0xfc, [0x40..=0x7e | 0x80..=0xfc, ..]) => 2,
            (CodeForm::Ujis, 0x8e, [0xa1..=0xdf, ..]) => 2,
            (CodeForm::Ujis, 0xa1..=0xfe, [0xa1..=0xfe, ..]) => 2,
            (CodeForm::Ujis, 0x8f, [0xa1..=0xfe, 0xa1..=0xfe, ..]) => 3,
            (CodeForm::Euckr, 0x81..=0xfe, [0x41..=0x5a | 0x61..=0x7a | 0x81..=0xfe, ..]) => 2,
            (CodeForm::Gb2312, 0xa1..=0xf7, [0xa1..=0xfe, ..]) => 2,
            (CodeForm::Gbk | CodeForm::Gb18030, 0x81..=0xfe, [0x40..=0x7e | 0x80..=0xfe, ..]) => 2,
            (CodeForm::Gb18030, 0x81..=0xfe, [0x30..=0x39, 0x81..=0xfe, 0x30..=0x39, ..]) => 4,
            (
                CodeForm::Big5
                | CodeForm::Sjis
                | CodeForm::Ujis
                | CodeForm::Euckr
                | CodeForm::Gb2312
                | CodeForm::Gbk
                | CodeForm::Gb18030,
                ..,
            ) => return None,
        };
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charset::Charset;
    use crate::checksum::crc32;

    /// Every code that may have a character.
    fn codes(charset: &str) -> Vec<Vec<u8>> {
        let mut codes: Vec<Vec<u8>> = (0x80..=0xff).map(|byte| vec![byte]).collect();
        codes.extend((0x80..=0xff).flat_map(|lead| (0..=0xff).map(move |trail| vec![lead, trail])));
        let third = 0x80..=0xff;
        let fourth = 0x30..=0x39;
        match charset {
            "ujis" | "eucjpms" => codes
                .extend(third.flat_map(|second| (0x80..=0xff).map(move |third| vec![0x8f, second, third]))),
            "gb18030" => codes.extend((0x80..=0xff).flat_map(|first| {
                let third = third.clone();
                let fourth = fourth.clone();
                fourth.clone().flat_map(move |second| {
                    let fourth = fourth.clone();
                    third.clone().flat_map(move |third| {
                        fourth.clone().map(move |fourth| vec![first, second, third, fourth])
                    })
                })
            })),
            _ => {}
        }
        codes
    }

    #[test]
    fn every_code_is_what_the_server_made_of_it() {
        for &(name, collation, count, digest) in differences::DIGESTS {
            let charset = Charset::of_collation(collation).unwrap();
            assert_eq!(charset.name(), name);
            let mut characters = Vec::new();
            for code in codes(name) {
                if let Some(text) = charset.decode(&code) {
                    let mut text = text.chars();
                    if let (Some(character), None) = (text.next(), text.next()) {
                        let code = code.iter().fold(0, |code, &byte| code << 8 | u32::from(byte));
                        characters.extend([u32::to_le_bytes(code), u32::to_le_bytes(u32::from(character))]);
                    }
                }
            }
            assert_eq!((characters.len() / 2, crc32(characters.as_flattened())), (count, digest), "{name}");
        }
    }

    #[test]
    fn differences_are_in_order() {
        for table in [&BIG5, &SJIS, &CP932, &UJIS, &EUCJPMS, &EUCKR, &GB2312, &GBK, &GB18030] {
            assert!(table.differences.is_sorted_by(|a, b| a.0 <= a.1 && a.1 < b.0), "{table:?}");
        }
    }

    #[test]
    fn text_with_differences_keeps_its_order() {
        let decode = |charset: Charset, bytes: &[u8]| charset.decode(bytes).map(Cow::into_owned);
        // Wave dash and yen, where the web has the full-width tilde of Windows.
        let text = b"a\x81\x60\x93\xfa\x81\x60b\x81\x7c";
        assert_eq!(decode(Charset::Sjis, text), Some("a\u{301c}日\u{301c}b\u{2212}".into()));
        assert_eq!(decode(Charset::Cp932, text), Some("a\u{ff5e}日\u{ff5e}b\u{ff0d}".into()));
        // The first character for users to define.
        assert_eq!(decode(Charset::Ujis, b"\xf5\xa1"), Some("\u{e000}".into()));
        // A circled digit of NEC, which sjis has no character for.
        assert_eq!(decode(Charset::Sjis, b"a\x87\x40"), None);
        assert_eq!(decode(Charset::Cp932, b"a\x87\x40"), Some("a①".into()));
        // Half a code at the end; a byte that begins none.
        for bytes in [&b"\x93"[..], b"a\x80", b"\x93\xfa\xff"] {
            assert_eq!(decode(Charset::Sjis, bytes), None);
        }
    }
}
