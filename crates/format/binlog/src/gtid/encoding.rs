//! The binary form of a GTID set, in previous-GTIDs events and in `COM_BINLOG_DUMP_GTID`.
//!
//! ```text
//! untagged                              tagged, since 8.3
//! size field                            size field
//!    7 number of tsids                     1 format, 1
//!    1 format, 0                           6 number of tsids
//!                                          1 format, 1
//! then for each tsid
//!   16 uuid                               16 uuid
//!                                       VLI+ tag, 0 bytes for none
//!    8 number of intervals                 8 number of intervals
//! then for each interval
//!    8 start                               8 start
//!    8 end, without                        8 end, without
//! ```
//!
//! A server writes the tsids sorted. It accepts them in any order, even repeated, but requires the intervals
//! of one tsid to be sorted with gaps between them. We do the same.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::gtid::set::GtidSetCollector;
use crate::gtid::{GtidInterval, GtidSet, ServerUuid, Tag, Tsid};
use crate::put::PutFields;

const WHAT: &str = "GTID set";

/// Which of the two binary forms a GTID set has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GtidSetFormat {
    /// Without tags: all that servers before 8.3 can read.
    Untagged,
    /// With a tag after each uuid. A server writes it as soon as it knows a tag, even where the
    /// set has none.
    Tagged,
}

impl GtidSet {
    /// Reads the binary form; all bytes must belong to it.
    ///
    /// # Errors
    ///
    /// Names the field that is cut, unknown, unsorted or out of bounds. Never allocates more than the bytes
    /// really hold, whatever their counts claim.
    pub fn decode(bytes: &[u8]) -> Result<(GtidSet, GtidSetFormat)> {
        let mut cursor = Cursor::new(bytes, WHAT);
        let head = cursor.u64("number of tsids")?;
        let [low, .., high] = head.to_le_bytes();
        let (format, count) = match (high, low) {
            (0, _) => (GtidSetFormat::Untagged, head),
            (1, 1) => (GtidSetFormat::Tagged, head << 8 >> 16),
            _ => {
                return Err(Error::invalid(
                    WHAT,
                    "format",
                    format!("{high:#04x}"),
                    "0 (untagged), or 1 in the first and last byte (tagged)",
                ));
            }
        };
        let mut set = GtidSetCollector::default();
        for _ in 0..count {
            let uuid = ServerUuid(cursor.array("uuid")?);
            let tag = match format {
                GtidSetFormat::Untagged => None,
                GtidSetFormat::Tagged => decode_tag(&mut cursor)?,
            };
            decode_intervals(&mut cursor, Tsid { uuid, tag }, &mut set)?;
        }
        cursor.finish()?;
        Ok((set.finish(), format))
    }

    /// The form that a server chooses for this set: tagged if any GTID has a tag.
    pub fn format(&self) -> GtidSetFormat {
        if self.has_tags() { GtidSetFormat::Tagged } else { GtidSetFormat::Untagged }
    }

    /// Appends the binary form. The untagged form leaves out GTIDs with a tag, as a server does for
    /// clients that do not know tags.
    pub fn encode(&self, format: GtidSetFormat, out: &mut Vec<u8>) {
        let written = |tsid: &Tsid| format == GtidSetFormat::Tagged || tsid.tag.is_none();
        let count = self.iter().filter(|(tsid, _)| written(tsid)).count() as u64;
        out.put_u64(match format {
            GtidSetFormat::Untagged => count,
            GtidSetFormat::Tagged => 1 << 56 | count << 8 | 1,
        });
        for (tsid, intervals) in self.iter().filter(|(tsid, _)| written(tsid)) {
            out.put(&tsid.uuid.0);
            if format == GtidSetFormat::Tagged {
                encode_tag(tsid.tag, out);
            }
            out.put_u64(intervals.len() as u64);
            for interval in intervals {
                out.put_u64(interval.start());
                out.put_u64(interval.end());
            }
        }
    }
}

fn decode_intervals(cursor: &mut Cursor<'_>, tsid: Tsid, set: &mut GtidSetCollector) -> Result<()> {
    let mut previous_end = 0;
    for _ in 0..cursor.u64("number of intervals")? {
        let start = cursor.u64("interval start")?;
        let end = cursor.u64("interval end")?;
        if start <= previous_end {
            return Err(Error::invalid(
                WHAT,
                "interval start",
                format!("{start} after an interval that ends before {previous_end}"),
                "sorted intervals with gaps between them",
            ));
        }
        set.add(tsid, GtidInterval::new(start, end)?);
        previous_end = end;
    }
    Ok(())
}

/// Reads a tag after its length; an empty one is none.
pub(crate) fn decode_tag(cursor: &mut Cursor<'_>) -> Result<Option<Tag>> {
    match cursor.vli("tag length")? {
        0 => Ok(None),
        length => Tag::from_wire(cursor.bytes_u64(length, "tag")?).map(Some),
    }
}

/// Appends a tag after its length.
pub(crate) fn encode_tag(tag: Option<Tag>, out: &mut Vec<u8>) {
    let bytes = tag.as_ref().map(Tag::as_bytes).unwrap_or_default();
    out.put_vli(bytes.len() as u64);
    out.put(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gtid::Gtid;

    fn encode(set: &GtidSet) -> Vec<u8> {
        let mut bytes = Vec::new();
        set.encode(set.format(), &mut bytes);
        bytes
    }

    #[test]
    fn both_directions_agree() {
        for (text, size) in [
            ("", 8),
            ("1410447f-e54d-11f1-848d-02fc00000001:1-5:7", 8 + 24 + 32),
            ("1410447f-e54d-11f1-848d-02fc00000001:9223372036854775806", 8 + 24 + 16),
            ("00000000-0000-0000-0000-000000000000:1,ffffffff-ffff-ffff-ffff-ffffffffffff:2", 8 + 2 * 40),
            ("1410447f-e54d-11f1-848d-02fc00000001:1-5:tag_1:1-3", 8 + 2 * 41 + 5),
        ] {
            let set: GtidSet = text.parse().unwrap();
            let bytes = encode(&set);
            assert_eq!(bytes.len(), size, "{text}");
            assert_eq!(GtidSet::decode(&bytes).unwrap(), (set.clone(), set.format()));
            for length in 0..bytes.len() {
                assert!(GtidSet::decode(&bytes[..length]).is_err(), "{text} {length}");
            }
            assert!(GtidSet::decode(&[&bytes[..], b"x"].concat()).is_err());
        }
    }

    #[test]
    fn the_untagged_form_leaves_tags_out() {
        let set: GtidSet =
            "1410447f-e54d-11f1-848d-02fc00000001:1-5:tag_1:1-3,2410447f-e54d-11f1-848d-02fc00000001:a:1"
                .parse()
                .unwrap();
        let mut bytes = Vec::new();
        set.encode(GtidSetFormat::Untagged, &mut bytes);
        let (untagged, format) = GtidSet::decode(&bytes).unwrap();
        assert_eq!(untagged.to_string(), "1410447f-e54d-11f1-848d-02fc00000001:1-5");
        assert_eq!(format, GtidSetFormat::Untagged);
    }

    #[test]
    fn unsorted_and_repeated_tsids_are_taken_as_the_server_does() {
        let one = encode(&"2410447f-e54d-11f1-848d-02fc00000001:1-5".parse().unwrap());
        let two = encode(&"1410447f-e54d-11f1-848d-02fc00000001:1".parse().unwrap());
        let three = encode(&"2410447f-e54d-11f1-848d-02fc00000001:5-7".parse().unwrap());
        let bytes = [b"\x03\0\0\0\0\0\0\0", &one[8..], &two[8..], &three[8..]].concat();
        assert_eq!(
            GtidSet::decode(&bytes).unwrap().0.to_string(),
            "1410447f-e54d-11f1-848d-02fc00000001:1,2410447f-e54d-11f1-848d-02fc00000001:1-7"
        );
    }

    #[test]
    fn intervals_are_sorted_apart_and_in_bounds() {
        let bytes = |first: (u64, u64), second: (u64, u64)| {
            let mut bytes = Vec::new();
            bytes.put_u64(1);
            bytes.put(&[0; 16]);
            bytes.put_u64(2);
            for number in [first.0, first.1, second.0, second.1] {
                bytes.put_u64(number);
            }
            bytes
        };
        assert!(GtidSet::decode(&bytes((1, 3), (4, 5))).is_ok());
        let end = i64::MAX as u64;
        assert!(GtidSet::decode(&bytes((1, 3), (4, end))).is_ok());
        for (first, second) in [
            ((1, 3), (3, 4)),
            ((1, 3), (2, 4)),
            ((4, 5), (1, 3)),
            ((0, 1), (2, 3)),
            ((1, 1), (2, 3)),
            ((2, 1), (4, 5)),
            ((1, 3), (4, end + 1)),
            ((1, 3), (u64::MAX, 0)),
        ] {
            assert!(GtidSet::decode(&bytes(first, second)).is_err(), "{first:?} {second:?}");
        }
        let error = GtidSet::decode(&bytes((1, 3), (3, 4))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "GTID set: interval start is 3 after an interval that ends before 3, expected sorted \
             intervals with gaps between them"
        );
    }

    /// Reads sets whose cost must stay linear in their size. Inserting each interval in its place would move
    /// all others each time and take half an hour or more for each of these.
    #[test]
    fn a_hostile_order_costs_no_more_than_sorting() {
        const COUNT: u64 = 1_600_000;
        let tsid = Tsid { uuid: ServerUuid([7; 16]), tag: None };
        let one = |bytes: &mut Vec<u8>, start: u64| {
            bytes.put(&tsid.uuid.0);
            bytes.put_u64(1);
            bytes.put_u64(start);
            bytes.put_u64(start + 1);
        };
        // A tsid again and again, each time before all others; then into the gaps, from both ends.
        let downwards: Vec<u64> = (1..=COUNT).rev().map(|n| 4 * n).collect();
        let zigzag: Vec<u64> =
            (0..COUNT).map(|n| if n % 2 == 0 { 4 * (n + 1) } else { 4 * (2 * COUNT - n) }).collect();
        for order in [downwards, zigzag] {
            let mut bytes = Vec::new();
            bytes.put_u64(COUNT);
            order.iter().for_each(|start| one(&mut bytes, *start));
            let set = GtidSet::decode(&bytes).unwrap().0;
            assert_eq!(set.intervals(&tsid).unwrap().len() as u64, COUNT);
            assert_eq!(set.count(), u128::from(COUNT));
            let mut text = tsid.to_string();
            order.iter().for_each(|start| text.push_str(&format!(":{start}")));
            assert!(text.parse::<GtidSet>().unwrap() == set);
            let gtids = order.iter().map(|start| Gtid::new(tsid, *start).unwrap());
            assert!(gtids.collect::<GtidSet>() == set);
            // Between those that are there already.
            let mut between = Vec::new();
            between.put_u64(COUNT);
            order.iter().for_each(|start| one(&mut between, start + 2));
            let mut both = GtidSet::decode(&between).unwrap().0;
            both.union(&set);
            assert_eq!(both.count(), u128::from(2 * COUNT));
            both.subtract(&set);
            assert_eq!(both.count(), u128::from(COUNT));
            assert!(both.is_disjoint(&set));
        }
    }

    #[test]
    fn counts_that_lie_end_with_the_bytes() {
        for head in [u64::MAX >> 8, 1 << 56 | (u64::MAX >> 16) << 8 | 1] {
            assert!(GtidSet::decode(&head.to_le_bytes()).is_err());
        }
        let mut bytes = [0; 32];
        bytes[0] = 1;
        bytes[24..].fill(0xff);
        assert!(GtidSet::decode(&bytes).is_err());
        for head in [2 << 56, 1 << 56, 1 << 56 | 2, u64::MAX] {
            let error = GtidSet::decode(&u64::to_le_bytes(head)).unwrap_err().to_string();
            assert!(error.starts_with("GTID set: format is "), "{error}");
        }
    }
}
