//! The tag of a GTID (since MySQL 8.3): at most 32 letters, digits and underscores.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The longest tag, in bytes.
pub(crate) const TAG_SIZE_MAX: usize = 32;

const EXPECTED: &str = "1 to 32 of a-z, 0-9 and _, no digit first";

/// A tag that is not empty, in the server's normal form: lower case. Kept inline, so that a
/// [`crate::gtid::Gtid`] is copied without allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// NUL padded, so that the derived order is that of the texts.
    bytes: [u8; TAG_SIZE_MAX],
    length: u8,
}

impl Tag {
    /// A tag from its bytes on the wire, which are in normal form already.
    pub(crate) fn from_wire(bytes: &[u8]) -> Result<Self> {
        if bytes.iter().any(u8::is_ascii_uppercase) {
            return Err(malformed(bytes));
        }
        Self::normalise(bytes)
    }

    fn normalise(text: &[u8]) -> Result<Self> {
        let letter_first = text.first().is_some_and(|byte| !byte.is_ascii_digit());
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let mut bytes = [0; TAG_SIZE_MAX];
        match bytes.get_mut(..text.len()) {
            Some(place) if letter_first && text.iter().all(allowed) => place.copy_from_slice(text),
            _ => return Err(malformed(text)),
        }
        bytes.make_ascii_lowercase();
        Ok(Tag { bytes, length: text.len() as u8 })
    }

    /// The tag as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The tag as it is on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl FromStr for Tag {
    type Err = Error;

    /// Takes a tag in either case.
    fn from_str(text: &str) -> Result<Self> {
        Self::normalise(text.as_bytes())
    }
}

#[cold]
fn malformed(text: &[u8]) -> Error {
    let shown = text.get(..TAG_SIZE_MAX + 1).unwrap_or(text);
    Error::invalid("GTID", "tag", format!("{:?}", String::from_utf8_lossy(shown)), EXPECTED)
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_normalised_and_ordered_as_texts() {
        assert_eq!("Tag_1".parse::<Tag>().unwrap().as_str(), "tag_1");
        assert_eq!("_".parse::<Tag>().unwrap().as_bytes(), b"_");
        let longest = "x".repeat(TAG_SIZE_MAX);
        assert_eq!(longest.parse::<Tag>().unwrap().as_str(), longest);
        let tag = |text: &str| text.parse::<Tag>().unwrap();
        assert!(tag("a") < tag("a1") && tag("a1") < tag("aa") && tag("aa") < tag("b"));
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in ["", "1a", "a-b", "a b", "é", &"x".repeat(TAG_SIZE_MAX + 1)] {
            assert!(bad.parse::<Tag>().is_err(), "{bad:?}");
        }
        assert!(Tag::from_wire(b"tag").is_ok());
        let error = Tag::from_wire(b"Tag").unwrap_err();
        assert_eq!(
            error.to_string(),
            "GTID: tag is \"Tag\", expected 1 to 32 of a-z, 0-9 and _, no digit first"
        );
    }
}
