//! Character sets by collation: converts the bytes of a string column to UTF-8 on request.
//!
//! A table map names a collation for each string column by its number
//! (`information_schema.COLLATIONS.ID`, MySQL 9.7.4); [`Charset::of_collation`] knows its character
//! set. Rows hold the bytes as they are; nothing is converted until [`Charset::decode`] is called.
//!
//! The single-byte character sets are the server's own tables (`single_byte.rs`). The East Asian multi-byte ones are
//! `encoding_rs`'s (`multi_byte.rs`), which has the web's tables; `differences.rs` lists the codes that the server maps
//! differently. `tests/charsets.rs` compares every code with a server.

mod collation;
mod differences;
mod multi_byte;
mod single_byte;

use std::borrow::Cow;

pub use collation::collation_name;

use multi_byte::MultiByte;
use single_byte::{SWE7, UpperHalf};

/// Consecutive codes: the first and the last code, and the character of the first. The characters of the others are
/// consecutive, too. 0: the server has no character for any of them.
type CodeRun = (u32, u32, u32);

macro_rules! charsets {
    ($($(#[$doc:meta])* $charset:ident = $name:literal, $collation:pat,)*) => {
        /// A character set of the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Charset {
            $($(#[$doc])* $charset,)*
        }

        impl Charset {
            /// The character set of a collation; `None` for numbers that MySQL 9.7 doesn't know.
            pub fn of_collation(id: u64) -> Option<Charset> {
                match id {
                    $($collation => Some(Charset::$charset),)*
                    _ => None,
                }
            }

            /// The server's name of the character set.
            pub fn name(self) -> &'static str {
                match self {
                    $(Charset::$charset => $name,)*
                }
            }
        }
    };
}

charsets! {
    /// Armenian.
    Armscii8 = "armscii8", 32 | 64,
    /// Seven bits.
    Ascii = "ascii", 11 | 65,
    /// Traditional Chinese.
    Big5 = "big5", 1 | 84,
    /// No characters: bytes.
    Binary = "binary", 63,
    /// Central European, Windows.
    Cp1250 = "cp1250", 26 | 34 | 44 | 66 | 99,
    /// Cyrillic, Windows.
    Cp1251 = "cp1251", 14 | 23 | 50..=52,
    /// Arabic, Windows.
    Cp1256 = "cp1256", 57 | 67,
    /// Baltic, Windows.
    Cp1257 = "cp1257", 29 | 58 | 59,
    /// Western European, DOS.
    Cp850 = "cp850", 4 | 80,
    /// Central European, DOS.
    Cp852 = "cp852", 40 | 81,
    /// Russian, DOS.
    Cp866 = "cp866", 36 | 68,
    /// Japanese, Windows.
    Cp932 = "cp932", 95 | 96,
    /// Western European, DEC.
    Dec8 = "dec8", 3 | 69,
    /// Japanese, Unix, with the vendors' characters.
    Eucjpms = "eucjpms", 97 | 98,
    /// Korean.
    Euckr = "euckr", 19 | 85,
    /// Chinese.
    Gb18030 = "gb18030", 248..=250,
    /// Simplified Chinese, 1980.
    Gb2312 = "gb2312", 24 | 86,
    /// Simplified Chinese.
    Gbk = "gbk", 28 | 87,
    /// Georgian.
    Geostd8 = "geostd8", 92 | 93,
    /// ISO 8859-7.
    Greek = "greek", 25 | 70,
    /// ISO 8859-8.
    Hebrew = "hebrew", 16 | 71,
    /// Western European, HP.
    Hp8 = "hp8", 6 | 72,
    /// Czech, DOS.
    Keybcs2 = "keybcs2", 37 | 73,
    /// Russian.
    Koi8r = "koi8r", 7 | 74,
    /// Ukrainian.
    Koi8u = "koi8u", 22 | 75,
    /// Western European: Windows 1252, not ISO 8859-1.
    Latin1 = "latin1", 5 | 8 | 15 | 31 | 47..=49 | 94,
    /// ISO 8859-2.
    Latin2 = "latin2", 2 | 9 | 21 | 27 | 77,
    /// ISO 8859-9.
    Latin5 = "latin5", 30 | 78,
    /// ISO 8859-13.
    Latin7 = "latin7", 20 | 41 | 42 | 79,
    /// Central European, Macintosh.
    Macce = "macce", 38 | 43,
    /// Western European, Macintosh.
    Macroman = "macroman", 39 | 53,
    /// Japanese.
    Sjis = "sjis", 13 | 88,
    /// Swedish, seven bits.
    Swe7 = "swe7", 10 | 82,
    /// Thai.
    Tis620 = "tis620", 18 | 89,
    /// UTF-16, big-endian, without surrogates.
    Ucs2 = "ucs2", 35 | 90 | 128..=151 | 159,
    /// Japanese, Unix.
    Ujis = "ujis", 12 | 91,
    /// UTF-16, big-endian.
    Utf16 = "utf16", 54 | 55 | 101..=124,
    /// UTF-16, little-endian.
    Utf16le = "utf16le", 56 | 62,
    /// UTF-32, big-endian.
    Utf32 = "utf32", 60 | 61 | 160..=183,
    /// UTF-8 of at most three bytes a character; `utf8` before 8.0.
    Utf8mb3 = "utf8mb3", 33 | 76 | 83 | 192..=215 | 223,
    /// UTF-8.
    Utf8mb4 = "utf8mb4", 45 | 46 | 224..=247 | 255..=323,
}

/// How a character set's bytes become characters.
enum Scheme {
    Binary,
    Ascii,
    Swe7,
    SingleByte(&'static UpperHalf),
    MultiByte(&'static MultiByte),
    Utf8,
    Utf16 { big_endian: bool },
    Utf32,
}

impl Charset {
    /// The bytes as text, borrowed if they are UTF-8 already. `None`: the bytes are not text in this
    /// character set (binary strings never are) and are best shown as bytes.
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self.scheme() {
            Scheme::Binary => None,
            Scheme::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Scheme::Utf16 { big_endian } => utf16(bytes, big_endian),
            Scheme::Utf32 => utf32(bytes),
            Scheme::Swe7 => bytes.iter().map(|&byte| swe7(byte)).collect::<Option<_>>().map(Cow::Owned),
            // The remaining character sets are ASCII-compatible.
            _ if bytes.is_ascii() => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Scheme::Ascii => None,
            Scheme::SingleByte(upper) => {
                bytes.iter().map(|&byte| single_byte(upper, byte)).collect::<Option<_>>().map(Cow::Owned)
            }
            Scheme::MultiByte(table) => table.decode(bytes),
        }
    }

    fn scheme(self) -> Scheme {
        use single_byte as table;
        match self {
            Charset::Binary => Scheme::Binary,
            Charset::Ascii => Scheme::Ascii,
            Charset::Swe7 => Scheme::Swe7,
            Charset::Utf8mb3 | Charset::Utf8mb4 => Scheme::Utf8,
            Charset::Ucs2 | Charset::Utf16 => Scheme::Utf16 { big_endian: true },
            Charset::Utf16le => Scheme::Utf16 { big_endian: false },
            Charset::Utf32 => Scheme::Utf32,
            Charset::Big5 => Scheme::MultiByte(&multi_byte::BIG5),
            Charset::Sjis => Scheme::MultiByte(&multi_byte::SJIS),
            Charset::Cp932 => Scheme::MultiByte(&multi_byte::CP932),
            Charset::Ujis => Scheme::MultiByte(&multi_byte::UJIS),
            Charset::Eucjpms => Scheme::MultiByte(&multi_byte::EUCJPMS),
            Charset::Euckr => Scheme::MultiByte(&multi_byte::EUCKR),
            Charset::Gb2312 => Scheme::MultiByte(&multi_byte::GB2312),
            Charset::Gbk => Scheme::MultiByte(&multi_byte::GBK),
            Charset::Gb18030 => Scheme::MultiByte(&multi_byte::GB18030),
            Charset::Armscii8 => Scheme::SingleByte(&table::ARMSCII8),
            Charset::Cp1250 => Scheme::SingleByte(&table::CP1250),
            Charset::Cp1251 => Scheme::SingleByte(&table::CP1251),
            Charset::Cp1256 => Scheme::SingleByte(&table::CP1256),
            Charset::Cp1257 => Scheme::SingleByte(&table::CP1257),
            Charset::Cp850 => Scheme::SingleByte(&table::CP850),
            Charset::Cp852 => Scheme::SingleByte(&table::CP852),
            Charset::Cp866 => Scheme::SingleByte(&table::CP866),
            Charset::Dec8 => Scheme::SingleByte(&table::DEC8),
            Charset::Geostd8 => Scheme::SingleByte(&table::GEOSTD8),
            Charset::Greek => Scheme::SingleByte(&table::GREEK),
            Charset::Hebrew => Scheme::SingleByte(&table::HEBREW),
            Charset::Hp8 => Scheme::SingleByte(&table::HP8),
            Charset::Keybcs2 => Scheme::SingleByte(&table::KEYBCS2),
            Charset::Koi8r => Scheme::SingleByte(&table::KOI8R),
            Charset::Koi8u => Scheme::SingleByte(&table::KOI8U),
            Charset::Latin1 => Scheme::SingleByte(&table::LATIN1),
            Charset::Latin2 => Scheme::SingleByte(&table::LATIN2),
            Charset::Latin5 => Scheme::SingleByte(&table::LATIN5),
            Charset::Latin7 => Scheme::SingleByte(&table::LATIN7),
            Charset::Macce => Scheme::SingleByte(&table::MACCE),
            Charset::Macroman => Scheme::SingleByte(&table::MACROMAN),
            Charset::Tis620 => Scheme::SingleByte(&table::TIS620),
        }
    }
}

fn single_byte(upper: &UpperHalf, byte: u8) -> Option<char> {
    match byte.checked_sub(0x80) {
        None => Some(char::from(byte)),
        Some(index) => upper.get(usize::from(index)).copied().and_then(assigned),
    }
}

fn swe7(byte: u8) -> Option<char> {
    match SWE7.iter().find(|(own, _)| *own == byte) {
        Some((_, unit)) => assigned(*unit),
        None => byte.is_ascii().then_some(char::from(byte)),
    }
}

/// A unit of the tables as a character; 0 means there is none.
fn assigned(unit: u16) -> Option<char> {
    if unit == 0 { None } else { char::from_u32(u32::from(unit)) }
}

fn utf16(bytes: &[u8], big_endian: bool) -> Option<Cow<'_, str>> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    let units = units.iter().map(|&[first, second]| {
        let (high, low) = if big_endian { (first, second) } else { (second, first) };
        u16::from(high) << 8 | u16::from(low)
    });
    char::decode_utf16(units).collect::<Result<String, _>>().ok().map(Cow::Owned)
}

fn utf32(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let (units, []) = bytes.as_chunks::<4>() else { return None };
    let code_points =
        units.iter().map(|unit| unit.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)));
    code_points.map(char::from_u32).collect::<Option<String>>().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(charset: Charset, bytes: &[u8]) -> Option<String> {
        charset.decode(bytes).map(Cow::into_owned)
    }

    #[test]
    fn collations_name_their_character_sets() {
        assert_eq!(Charset::of_collation(8), Some(Charset::Latin1));
        assert_eq!(Charset::of_collation(255), Some(Charset::Utf8mb4));
        assert_eq!(Charset::of_collation(63).unwrap().name(), "binary");
        assert_eq!(Charset::of_collation(0), None);
        assert_eq!(Charset::of_collation(324), None);
        assert_eq!(Charset::of_collation(u64::MAX), None);
    }

    #[test]
    fn each_scheme_decodes() {
        assert_eq!(decode(Charset::Latin1, b"caf\xe9 \x80"), Some("café €".into()));
        assert_eq!(decode(Charset::Cp866, b"\x8f\xe0\xa8"), Some("При".into()));
        assert_eq!(decode(Charset::Swe7, b"{}|["), Some("äåöÄ".into()));
        assert_eq!(decode(Charset::Sjis, b"\x93\xfa\x96\x7b"), Some("日本".into()));
        assert_eq!(decode(Charset::Euckr, b"\xc7\xd1"), Some("한".into()));
        assert_eq!(decode(Charset::Utf16, b"\x00h\xd8\x3d\xde\x00"), Some("h😀".into()));
        assert_eq!(decode(Charset::Utf16le, b"h\x00\x3d\xd8\x00\xde"), Some("h😀".into()));
        assert_eq!(decode(Charset::Utf32, b"\x00\x01\xf6\x00"), Some("😀".into()));
        assert_eq!(decode(Charset::Utf8mb4, "é".as_bytes()), Some("é".into()));
    }

    #[test]
    fn bytes_that_are_no_text_are_not_decoded() {
        for (charset, bytes) in [
            (Charset::Binary, &b"plain"[..]),
            (Charset::Ascii, b"\x80"),
            (Charset::Cp1250, b"\x81"),
            (Charset::Swe7, b"\x7f"),
            (Charset::Utf8mb4, b"\xff"),
            (Charset::Utf16, b"\x00"),
            (Charset::Utf16, b"\xd8\x00"),
            (Charset::Utf32, b"\x00\x11\x00\x00"),
            (Charset::Utf32, b"\x00\x00\x41"),
            (Charset::Sjis, b"\x93"),
        ] {
            assert_eq!(decode(charset, bytes), None, "{}", charset.name());
        }
    }

    #[test]
    fn text_that_is_utf8_already_is_borrowed() {
        for charset in [Charset::Latin1, Charset::Utf8mb4, Charset::Gbk, Charset::Ascii] {
            assert!(matches!(charset.decode(b"plain"), Some(Cow::Borrowed("plain"))));
        }
    }
}
