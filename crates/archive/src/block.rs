//! Packs a run of whole events and unpacks it again. A block stands alone: nothing in it refers to another.
//!
//! ```text
//! method  1       0 bytes | 1 columns
//! bytes:          zstd's frame of the log's bytes
//! columns:
//! maps    varint  count of the table maps that the transaction cut by the block's begin has seen
//!         bytes   each: length, body of the event
//! magic   1       1: the log's magic stands in front
//! count   varint  events
//! columns         see streams.rs; each event's fields, see layout.rs
//! tail    bytes   length, then what stands behind the last whole event
//! ```
//!
//! What can't be taken apart, or would not come back as it was, is packed as bytes.

use binlogz_binlog::MAGIC;
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, HEADER_SIZE};

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::streams::Streams;
use crate::varint::{self, Taker};
use crate::walk::{Dealer, Gatherer, Walk};
use crate::zstd;

const BYTES: u8 = 0;
const COLUMNS: u8 = 1;

/// The most plain bytes of a block.
pub const BLOCK_SIZE_MAX: usize = 32 << 20;

/// The most table maps that a block is told of.
pub const MAPS_MAX: usize = 256;

/// How a block was packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// As bytes, whatever they mean.
    Bytes,
    /// By columns.
    Columns,
}

/// Packs the part of a log that begins at `offset` of its file. `maps`: the bodies of the table maps that
/// stand before it in the same transaction.
pub fn pack(log: &[u8], offset: u64, maps: &[Vec<u8>]) -> Result<(Vec<u8>, Method)> {
    let mut packed = vec![COLUMNS];
    let taken_apart = pack_columns(log, offset, maps, &mut packed);
    if taken_apart.is_ok() && unpack(&packed, log.len(), offset).is_ok_and(|back| back == log) {
        return Ok((packed, Method::Columns));
    }
    let mut packed = vec![BYTES];
    packed.extend_from_slice(&zstd::pack(log, zstd::Effort::Full)?);
    match unpack(&packed, log.len(), offset)? == log {
        true => Ok((packed, Method::Bytes)),
        false => Err(Error::damaged("block", "does not come back as it was")),
    }
}

fn pack_columns(log: &[u8], offset: u64, maps: &[Vec<u8>], packed: &mut Vec<u8>) -> Result<()> {
    let mut dealer = Dealer::new(log);
    let mut layout = Layout::new(offset);
    varint::put(packed, maps.len() as u64);
    for map in maps {
        varint::put_bytes(packed, map);
        layout.remember_table(map);
    }
    let magic = log.starts_with(&MAGIC);
    packed.push(u8::from(magic));
    let mut count = 0;
    let mut at = 0;
    if magic {
        at = MAGIC.len();
        dealer.begin(at);
        dealer.known(&MAGIC)?;
    }
    while let Some(end) = event_end(log, at) {
        dealer.begin(end);
        if layout.event(&mut dealer, true).is_err() {
            dealer.undo();
            dealer.begin(end);
            layout.event(&mut dealer, false)?;
        }
        count += 1;
        at = end;
    }
    varint::put(packed, count);
    let streams = dealer.streams;
    streams.pack(packed)?;
    varint::put_bytes(packed, log.get(at..).unwrap_or_default());
    Ok(())
}

/// Where the event at `at` ends, if it is there whole.
pub(crate) fn event_end(log: &[u8], at: usize) -> Option<usize> {
    let size = log.get(at..)?.get(EVENT_SIZE_OFFSET..HEADER_SIZE)?.first_chunk::<4>()?;
    let size = u32::from_le_bytes(*size) as usize;
    let end = at.checked_add(size)?;
    (size >= HEADER_SIZE && end <= log.len()).then_some(end)
}

/// Unpacks a block of `size` bytes that begins at `offset` of its file.
pub fn unpack(packed: &[u8], size: usize, offset: u64) -> Result<Vec<u8>> {
    if size > BLOCK_SIZE_MAX {
        return Err(Error::damaged("block", "is larger than blocks can be"));
    }
    let mut from = Taker::new(packed);
    match from.byte()? {
        BYTES => zstd::unpack(from.take(from.left())?, size),
        COLUMNS => unpack_columns(&mut from, size, offset),
        _ => Err(Error::damaged("block", "was packed by an unknown method")),
    }
}

fn unpack_columns(from: &mut Taker<'_>, size: usize, offset: u64) -> Result<Vec<u8>> {
    let mut layout = Layout::new(offset);
    for _ in 0..from.at_most(MAPS_MAX as u64, "count of table maps")? {
        layout.remember_table(from.bytes()?);
    }
    let magic = from.byte()? == 1;
    let count = from.at_most((size / HEADER_SIZE) as u64, "count of events")?;
    let mut gatherer = Gatherer::new(Streams::unpack(from, size)?, size);
    if magic {
        gatherer.known(&MAGIC)?;
    }
    for _ in 0..count {
        layout.event(&mut gatherer, false)?;
    }
    let mut log = gatherer.log;
    log.extend_from_slice(from.bytes()?);
    if log.len() != size || from.left() != 0 {
        return Err(Error::damaged("block", "has another size than it says"));
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::corpus;

    use super::*;

    /// A shipped log.
    fn events(name: &str) -> Vec<u8> {
        std::fs::read(corpus::path(name)).unwrap()
    }

    #[test]
    fn logs_come_back_from_columns_and_small() {
        for name in ["binlog.000006", "levels.000001", "binlog.000001", "relay.000012"] {
            let log = events(name);
            let (packed, method) = pack(&log, 0, &[]).unwrap();
            assert_eq!(method, Method::Columns, "{name}");
            assert!(unpack(&packed, log.len(), 0).unwrap() == log, "{name}");
            println!("{name}: {} of {}", packed.len(), log.len());
        }
    }

    #[test]
    fn what_is_no_log_comes_back_too() {
        for log in [&b""[..], b"x", &[0; 100], &[0xff; 1000]] {
            let (packed, _) = pack(log, 0, &[]).unwrap();
            assert_eq!(unpack(&packed, log.len(), 0).unwrap(), log);
        }
    }

    #[test]
    fn cut_or_changed_a_block_is_an_error_or_other_bytes_and_never_a_panic() {
        let log = events("binlog.000006");
        let (packed, _) = pack(&log, 0, &[]).unwrap();
        for length in (0..packed.len()).step_by(packed.len() / 60 + 1) {
            assert!(unpack(&packed[..length], log.len(), 0).is_err(), "{length}");
        }
        for at in (0..packed.len()).step_by(packed.len() / 60 + 1) {
            let mut bad = packed.clone();
            bad[at] ^= 0x55;
            let _ = unpack(&bad, log.len(), 0);
        }
        assert!(unpack(&packed, log.len() - 1, 0).is_err());
        assert!(unpack(&packed, usize::MAX, 0).is_err());
    }
}
