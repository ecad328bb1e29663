//! The GTIDs of all files before this one: the second event of each file.
//!
//! The body is a GTID set in binary form, tagged or untagged; see `gtid/encoding.rs` for its table.

use crate::error::{Error, Result};
use crate::frame::EventFrame;
use crate::gtid::{GtidSet, GtidSetFormat};

const WHAT: &str = "previous GTIDs event";

/// A decoded previous-GTIDs event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousGtidsEvent {
    /// The GTIDs of the files before.
    pub gtid_set: GtidSet,
    /// The form it was written in: a set without tags may be in the tagged form.
    pub format: GtidSetFormat,
}

impl PreviousGtidsEvent {
    /// Reads the event.
    pub fn decode_frame(frame: &EventFrame<'_>) -> Result<Self> {
        Self::decode(frame.body())
    }

    /// Reads a body without its checksum. Accepts only a set as servers write it, sorted and without empty entries, so
    /// that the event is written back unchanged.
    pub fn decode(body: &[u8]) -> Result<Self> {
        let (gtid_set, format) = GtidSet::decode(body)?;
        let event = PreviousGtidsEvent { gtid_set, format };
        if event.encode() != body {
            return Err(Error::invalid(WHAT, "GTID set", "unsorted or padded", "the order of the server"));
        }
        Ok(event)
    }

    /// The body as it stands in a log, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.gtid_set.encode(self.format, &mut body);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set with tags from a 9.7.4 log; a line for each entry.
    const TAGGED: &[u8; 95] = b"\
        \x01\x02\0\0\0\0\0\x01\
        \x14\x10\x44\x7f\xe5\x4d\x11\xf1\x84\x8d\x02\xfc\0\0\0\x01\x00\
        \x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x0e\0\0\0\0\0\0\0\
        \x14\x10\x44\x7f\xe5\x4d\x11\xf1\x84\x8d\x02\xfc\0\0\0\x01\x0atag_1\
        \x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0";

    #[test]
    fn both_directions_agree_with_the_server() {
        let event = PreviousGtidsEvent::decode(TAGGED).unwrap();
        assert_eq!(event.format, GtidSetFormat::Tagged);
        assert_eq!(event.gtid_set.to_string(), "1410447f-e54d-11f1-848d-02fc00000001:1-13:tag_1:1");
        assert_eq!(event.encode(), TAGGED);
        for length in 0..TAGGED.len() {
            assert!(PreviousGtidsEvent::decode(&TAGGED[..length]).is_err(), "{length}");
        }
        let error = PreviousGtidsEvent::decode(&[&TAGGED[..], b"x"].concat()).unwrap_err();
        assert_eq!(error.to_string(), "GTID set: 1 bytes left over after the last field");
    }

    #[test]
    fn the_empty_set_comes_back_in_its_form() {
        for (body, format) in
            [(b"\0\0\0\0\0\0\0\0", GtidSetFormat::Untagged), (b"\x01\0\0\0\0\0\0\x01", GtidSetFormat::Tagged)]
        {
            let event = PreviousGtidsEvent::decode(body).unwrap();
            assert!(event.gtid_set.is_empty());
            assert_eq!((event.format, &event.encode()[..]), (format, &body[..]));
        }
    }

    #[test]
    fn what_would_not_come_back_is_refused() {
        let first = &TAGGED[8..49];
        let second = &TAGGED[49..];
        let swapped = [&TAGGED[..8], second, first].concat();
        assert!(GtidSet::decode(&swapped).is_ok());
        let error = PreviousGtidsEvent::decode(&swapped).unwrap_err();
        assert_eq!(
            error.to_string(),
            "previous GTIDs event: GTID set is unsorted or padded, expected the order of the server"
        );
        let empty_entry = [b"\x01\0\0\0\0\0\0\0", &TAGGED[8..24], &[0; 8]].concat();
        assert!(GtidSet::decode(&empty_entry).is_ok());
        assert!(PreviousGtidsEvent::decode(&empty_entry).is_err());
    }
}
