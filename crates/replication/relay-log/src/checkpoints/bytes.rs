//! The file format of the position index.
//!
//! ```text
//! BASE.NNNNNN.places
//! size field
//!    8 magic            "binlogz\x02"; 1 claimed to know GTIDs that some walks did not see
//!    4 head             CRC-32 of the stored file's format description, not in use
//!    4 count
//!      of each:
//!    8 stored           offset in the stored file
//!    8 committed        of the transaction that ends there, microseconds since 1970
//! 3x 8 positions        received, compressed, uncompressed; all ones: not known. In the upper 24 bits which file of the
//!                       form it is, of those that the stored file is cut into
//!    4 size             of the GTIDs; all ones: not known
//!    n gtids            of the transactions since the place before, as in a previous GTIDs event
//!    4 checksum         CRC-32 of all before
//! ```

use std::collections::BTreeMap;

use binlogz_binlog::checksum::crc32;
use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::put::PutFields;

use super::{Checkpoint, SIZE_MAX};

const MAGIC: &[u8; 8] = b"binlogz\x02";
const WHAT: &str = "index of positions";
const UNKNOWN: u64 = u64::MAX;
const UNKNOWN_GTIDS: u32 = u32::MAX;
/// Bytes before and after the checkpoints.
const AROUND_SIZE: usize = MAGIC.len() + 4 + 4 + 4;

/// Encodes the checkpoints in the durable part, at most as many as can be read again.
pub(crate) fn encode(places: &BTreeMap<u64, Checkpoint>, head: u32, durable: u64) -> Vec<u8> {
    let mut listed = Vec::new();
    let mut count: u32 = 0;
    for (stored, place) in places.range(..=durable) {
        let before = listed.len();
        listed.put_u64(*stored);
        listed.put_u64(place.committed);
        for at in place.at {
            listed.put_u64(at.unwrap_or(UNKNOWN));
        }
        match &place.gtids {
            None => listed.put_u32(UNKNOWN_GTIDS),
            Some(set) => {
                let mut gtids = Vec::new();
                set.encode(set.format(), &mut gtids);
                listed.put_u32(gtids.len() as u32);
                listed.put(&gtids);
            }
        }
        if listed.len() + AROUND_SIZE > SIZE_MAX as usize {
            // Nor any later one: a checkpoint's GTIDs are those since the previous checkpoint.
            listed.truncate(before);
            break;
        }
        count += 1;
    }
    let mut out = MAGIC.to_vec();
    out.put_u32(head);
    out.put_u32(count);
    out.put(&listed);
    let checksum = crc32(&out);
    out.put_u32(checksum);
    out
}

/// `None` if damaged, or if it belongs to another stored file.
pub(crate) fn decode(bytes: &[u8], head: u32) -> Option<BTreeMap<u64, Checkpoint>> {
    let (covered, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32(covered) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut cursor = Cursor::new(covered, WHAT);
    let known = cursor.array::<8>("magic").ok()? == *MAGIC && cursor.u32("head").ok()? == head;
    let count = known.then(|| cursor.u32("count").ok())??;
    let mut places = BTreeMap::new();
    let mut last = [0; 4];
    for _ in 0..count {
        let stored = cursor.u64("stored").ok()?;
        let committed = cursor.u64("committed").ok()?;
        let mut at = [None; 3];
        for (place, last) in at.iter_mut().zip(last.iter_mut()) {
            let position = cursor.u64("position").ok()?;
            *place = (position != UNKNOWN).then_some(position);
            if place.is_some_and(|at| at <= *last) {
                return None;
            }
            *last = place.unwrap_or(*last);
        }
        let gtids = match cursor.u32("size").ok()? {
            UNKNOWN_GTIDS => None,
            size => Some(GtidSet::decode(cursor.bytes(size as usize, "gtids").ok()?).ok()?.0),
        };
        if places.last_key_value().is_some_and(|(before, _)| *before >= stored) {
            return None;
        }
        places.insert(stored, Checkpoint { committed, at, gtids });
    }
    cursor.finish().ok()?;
    Some(places)
}
