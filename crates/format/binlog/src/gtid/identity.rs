//! The server that committed a transaction ([`Tsid`]) and the transaction's identifier ([`Gtid`]).

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::gtid::{GNO_END, GNO_MIN, ServerUuid, Tag};

/// A server's uuid with or without a tag. Sorted as the server sorts them: by uuid, then by tag,
/// the one without tag first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tsid {
    /// The server that committed first.
    pub uuid: ServerUuid,
    /// The tag given to the transaction, if any.
    pub tag: Option<Tag>,
}

impl From<ServerUuid> for Tsid {
    fn from(uuid: ServerUuid) -> Self {
        Tsid { uuid, tag: None }
    }
}

impl FromStr for Tsid {
    type Err = Error;

    /// Takes `UUID` or `UUID:TAG`.
    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None => Ok(Tsid { uuid: text.parse()?, tag: None }),
            Some((uuid, tag)) => Ok(Tsid { uuid: uuid.parse()?, tag: Some(tag.parse()?) }),
        }
    }
}

impl fmt::Display for Tsid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            None => write!(f, "{}", self.uuid),
            Some(tag) => write!(f, "{}:{tag}", self.uuid),
        }
    }
}

impl fmt::Debug for Tsid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The identifier of one transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    tsid: Tsid,
    gno: u64,
}

impl Gtid {
    /// An identifier; the number must lie between 1 and 2^63 - 2.
    pub fn new(tsid: Tsid, gno: u64) -> Result<Self> {
        if (GNO_MIN..GNO_END).contains(&gno) {
            return Ok(Gtid { tsid, gno });
        }
        Err(Error::invalid("GTID", "gno", gno, "1 to 2^63 - 2"))
    }

    /// The server that committed the transaction first.
    pub fn tsid(&self) -> Tsid {
        self.tsid
    }

    /// The transaction's number there, from 1.
    pub fn gno(&self) -> u64 {
        self.gno
    }
}

impl FromStr for Gtid {
    type Err = Error;

    /// Takes `UUID:GNO` or `UUID:TAG:GNO`.
    fn from_str(text: &str) -> Result<Self> {
        let malformed = || Error::invalid("GTID", "text", format!("{text:?}"), "UUID:[TAG:]NUMBER");
        let (tsid, gno) = text.trim().rsplit_once(':').ok_or_else(malformed)?;
        Gtid::new(tsid.parse()?, gno.parse().map_err(|_| malformed())?)
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tsid, self.gno)
    }
}

impl fmt::Debug for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "1410447f-e54d-11f1-848d-02fc00000001";

    #[test]
    fn both_directions_agree() {
        for text in [format!("{UUID}:1"), format!("{UUID}:tag_1:9223372036854775806")] {
            assert_eq!(text.parse::<Gtid>().unwrap().to_string(), text);
        }
        for text in [UUID.to_owned(), format!("{UUID}:tag")] {
            assert_eq!(text.parse::<Tsid>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn numbers_outside_the_bounds_are_refused() {
        for gno in ["0", "9223372036854775807", "18446744073709551616", "-1", "x", ""] {
            assert!(format!("{UUID}:{gno}").parse::<Gtid>().is_err(), "{gno}");
        }
        assert_eq!(
            Gtid::new(UUID.parse().unwrap(), 0).unwrap_err().to_string(),
            "GTID: gno is 0, expected 1 to 2^63 - 2"
        );
    }

    #[test]
    fn untagged_sorts_before_tagged() {
        let tsid = |text: &str| text.parse::<Tsid>().unwrap();
        assert!(tsid(UUID) < tsid(&format!("{UUID}:a")));
        assert!(tsid(&format!("{UUID}:z")) < tsid("1410447f-e54d-11f1-848d-02fc00000002"));
    }
}
