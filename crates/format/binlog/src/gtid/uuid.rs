//! A server's uuid: 16 bytes, printed as the server prints them.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Bytes of a uuid.
pub const UUID_SIZE: usize = 16;

/// Offsets of the dashes in the canonical text.
const DASHES: [usize; 4] = [8, 13, 18, 23];
const TEXT_SIZE: usize = 2 * UUID_SIZE + DASHES.len();

/// A server's uuid. Ordered as the server orders it: byte by byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ServerUuid(pub [u8; UUID_SIZE]);

impl FromStr for ServerUuid {
    type Err = Error;

    /// Takes the server's three spellings, in either case: with dashes, with dashes and braces,
    /// and bare hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        let spelled = text.as_bytes();
        let digits = match spelled {
            [b'{', inner @ .., b'}'] if inner.len() == TEXT_SIZE => inner,
            _ => spelled,
        };
        let dashed = digits.len() == TEXT_SIZE;
        if !dashed && spelled.len() != 2 * UUID_SIZE {
            return Err(malformed(text));
        }
        let mut uuid = [0; UUID_SIZE];
        let mut nibbles = 0;
        for (offset, &byte) in digits.iter().enumerate() {
            if dashed && DASHES.contains(&offset) {
                if byte != b'-' {
                    return Err(malformed(text));
                }
                continue;
            }
            let nibble = char::from(byte).to_digit(16).ok_or_else(|| malformed(text))? as u8;
            if let Some(byte) = uuid.get_mut(nibbles / 2) {
                *byte = *byte << 4 | nibble;
            }
            nibbles += 1;
        }
        Ok(ServerUuid(uuid))
    }
}

#[cold]
fn malformed(text: &str) -> Error {
    let shown: String = text.chars().take(TEXT_SIZE + 2).collect();
    Error::invalid("GTID", "server uuid", format!("{shown:?}"), "a uuid of 32 hexadecimal digits")
}

impl fmt::Display for ServerUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; TEXT_SIZE];
        let places = text.iter_mut().enumerate().filter(|(offset, _)| !DASHES.contains(offset));
        let nibbles = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        for ((_, place), nibble) in places.zip(nibbles) {
            *place = DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for ServerUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "1410447f-e54d-11f1-848d-02fc00000001";

    #[test]
    fn every_spelling_gives_the_canonical_text() {
        for spelled in [
            TEXT.to_owned(),
            TEXT.to_uppercase(),
            format!("{{{TEXT}}}"),
            TEXT.replace('-', ""),
            TEXT.replace('-', "").to_uppercase(),
        ] {
            let uuid: ServerUuid = spelled.parse().unwrap();
            assert_eq!(uuid.to_string(), TEXT, "{spelled}");
        }
        let uuid: ServerUuid = TEXT.parse().unwrap();
        assert_eq!(uuid.0, *b"\x14\x10\x44\x7f\xe5\x4d\x11\xf1\x84\x8d\x02\xfc\x00\x00\x00\x01");
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "",
            "-",
            "1410447f-e54d-11f1-848d-02fc0000000",
            "1410447f-e54d-11f1-848d-02fc000000011",
            "1410447fe-54d-11f1-848d-02fc00000001",
            "1410447f_e54d_11f1_848d_02fc00000001",
            "1410447f-e54d-11f1-848d-02fc0000000g",
            "{1410447fe54d11f1848d02fc00000001}",
            "{1410447fe54d11f1848d02fc000000}",
            "{1410447f-e54d-11f1-848d-02fc00000001",
            "1410447f-e54d-11f1-848d02fc0000000é",
            "ー1410447fe54d11f1848d02fc0000001",
        ] {
            assert!(bad.parse::<ServerUuid>().is_err(), "{bad:?}");
        }
        assert_eq!(
            "1410447f".parse::<ServerUuid>().unwrap_err().to_string(),
            "GTID: server uuid is \"1410447f\", expected a uuid of 32 hexadecimal digits"
        );
    }
}
