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
//! A server writes the tsids sorted. It reads them in any order, also one twice, but takes the
//! intervals of one tsid only sorted and with gaps between them. We do the same.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::gtid::{GtidInterval, GtidSet, ServerUuid, Tag, Tsid};
use crate::put::Put;

const WHAT: &str = "GTID set";

/// Which of the two binary forms a GTID set has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GtidSetFormat {
    /// Without tags: all that servers before 8.3 can read.
    Untagged,
    /// With a tag behind each uuid. A server writes it as soon as it knows a tag, even where the
    /// set has none.
    Tagged,
}

impl GtidSet {
    /// Reads the binary form; all bytes must belong to it.
    ///
    /// # Errors
    ///
    /// Names the field that is cut, unknown, unsorted or out of bounds. No more is allocated than
    /// the bytes really hold, whatever their counts claim.
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
        let mut set = GtidSet::new();
        for _ in 0..count {
            let uuid = ServerUuid(cursor.array("uuid")?);
            let tag = match format {
                GtidSetFormat::Untagged => None,
                GtidSetFormat::Tagged => decode_tag(&mut cursor)?,
            };
            decode_intervals(&mut cursor, Tsid { uuid, tag }, &mut set)?;
        }
        cursor.finish()?;
        Ok((set, format))
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

fn decode_intervals(cursor: &mut Cursor<'_>, tsid: Tsid, set: &mut GtidSet) -> Result<()> {
    let mut previous_end = 0;
    for _ in 0..cursor.u64("number of intervals")? {
        let (start, end) = (cursor.u64("interval start")?, cursor.u64("interval end")?);
        if start <= previous_end {
            return Err(Error::invalid(
                WHAT,
                "interval start",
                format!("{start} behind an interval that ends without {previous_end}"),
                "sorted intervals with gaps between them",
            ));
        }
        set.add_interval(tsid, GtidInterval::new(start, end)?);
        previous_end = end;
    }
    Ok(())
}

/// Reads a tag behind its length; an empty one is none.
pub(crate) fn decode_tag(cursor: &mut Cursor<'_>) -> Result<Option<Tag>> {
    match cursor.vli("tag length")? {
        0 => Ok(None),
        length => Tag::from_wire(cursor.bytes_u64(length, "tag")?).map(Some),
    }
}

/// Appends a tag behind its length.
pub(crate) fn encode_tag(tag: Option<Tag>, out: &mut Vec<u8>) {
    let bytes = tag.as_ref().map(Tag::as_bytes).unwrap_or_default();
    out.put_vli(bytes.len() as u64);
    out.put(bytes);
}
