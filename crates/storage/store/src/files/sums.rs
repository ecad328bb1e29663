//! Checksums of a closed file whose events have none (`binlog_checksum=NONE`), so that changed bytes in it are found.
//!
//! ```text
//! sums-BASE.NNNNNN
//! binlogz-sums 1
//! size 700000                            bytes of the closed file, without an encryption header
//! block 262144                           bytes of a block; the last one may be shorter
//! 89abcdef                               the CRC-32 of each block, as it is on disk
//! …
//! crc32 01234567                         over the lines before
//! ```
//!
//! The sums are made while the file is written, or of what is read back if the program was started meanwhile. They are
//! written after the file was closed. [`crate::BinlogStore::examine`] compares them, and writes those of a closed file that has
//! none, such as one that an earlier version closed.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use binlogz_binlog::checksum::{Crc32, crc32};

use crate::error::{Error, Result};
use crate::files::log_file::LogFile;
use crate::files::meta::FORMAT_VERSION;
use crate::files::names::SUMS;
use crate::storage::{self, Storage};

/// A hole is at least as large: small beside a file, and 4,096 sums for a file of 1 GiB.
const BLOCK_SIZE: u64 = 256 << 10;
/// Enough for a file of a TiB.
const SIZE_MAX: u64 = 64 << 20;
const TITLE: &str = "binlogz-sums";

/// The name of the file with the sums of a log.
pub(crate) fn sums_of(log: &str) -> String {
    format!("{SUMS}{log}")
}

/// The sums of a file that is being written, from its first byte on.
#[derive(Debug, Default)]
pub(crate) struct BlockSummer {
    size: u64,
    sums: Vec<u32>,
    open: Crc32,
}

impl BlockSummer {
    /// Takes the next bytes.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(BLOCK_SIZE - self.size % BLOCK_SIZE).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.open.update(now);
            self.size += now.len() as u64;
            if self.size.is_multiple_of(BLOCK_SIZE) {
                self.sums.push(std::mem::take(&mut self.open).finish());
            }
            bytes = later;
        }
    }

    pub(crate) fn finish(mut self) -> BlockSums {
        if !self.size.is_multiple_of(BLOCK_SIZE) {
            self.sums.push(self.open.finish());
        }
        BlockSums { size: self.size, sums: self.sums }
    }
}

/// The sums of a closed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockSums {
    size: u64,
    sums: Vec<u32>,
}

/// A stretch of a file that is not what it was when the file was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedBlock {
    pub(crate) bytes: Range<u64>,
    /// The sums that were found and expected.
    pub(crate) reason: String,
}

impl BlockSums {
    /// The sums of what is on disk. `pace` is called with the number of bytes that are read next.
    pub(crate) fn of(
        log: &LogFile,
        size: u64,
        pace: &mut dyn FnMut(usize) -> io::Result<()>,
    ) -> Result<BlockSums> {
        let mut chunk = vec![0; BLOCK_SIZE as usize];
        let mut summer = BlockSummer::default();
        while summer.size < size {
            let room = (size - summer.size).min(BLOCK_SIZE) as usize;
            pace(room).map_err(Error::io("read", &log.name))?;
            let count = log.read_on_disk_at(summer.size, chunk.get_mut(..room).unwrap_or_default())?;
            if count == 0 {
                break;
            }
            summer.add(chunk.get(..count).unwrap_or_default());
        }
        Ok(summer.finish())
    }

    /// The blocks whose sums are not these.
    ///
    /// # Errors
    ///
    /// The file has another size.
    pub(crate) fn changed_in(&self, log: &str, found: &BlockSums) -> Result<Vec<ChangedBlock>> {
        if self.size != found.size {
            let found = format!("{} bytes and not {}, as when it was closed", found.size, self.size);
            return Err(Error::unfit(log, found, "a closed file that stays as it is"));
        }
        let pairs = found.sums.iter().zip(&self.sums).zip(0_u64..);
        let changed = pairs.filter(|((found, expected), _)| found != expected);
        let block = |((found, expected), number): ((&u32, &u32), u64)| {
            let from = number * BLOCK_SIZE;
            let to = self.size.min(from + BLOCK_SIZE);
            let reason =
                format!("the bytes from {from} to {to} give {found:#010x}, expected {expected:#010x}");
            ChangedBlock { bytes: from..to, reason }
        };
        Ok(changed.map(block).collect())
    }

    /// Reads the sums of a log; `None` if there are none.
    ///
    /// # Errors
    ///
    /// The disk fails; the file with the sums is damaged.
    pub(crate) fn read(storage: &dyn Storage, log: &str) -> Result<Option<BlockSums>> {
        let name = sums_of(log);
        let file = match storage.open(&name, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::io("open", &name))?,
        };
        let bytes = storage::read_all(file.as_ref(), SIZE_MAX).map_err(Error::io("read", &name))?;
        match decode(&bytes) {
            Some(sums) => Ok(Some(sums)),
            None => Err(Error::unfit(
                &name,
                "bytes that are no sums",
                "binlogz-sums 1, the sums and their own; without the file they are made anew of what the log is now",
            )),
        }
    }

    /// Writes them beside the log, whole or not at all.
    pub(crate) fn write(&self, storage: &dyn Storage, log: &str) -> Result<()> {
        let name = sums_of(log);
        storage::replace(storage, &name, self.encode().as_bytes()).map_err(Error::io("write", &name))
    }

    fn encode(&self) -> String {
        let mut text = format!("{TITLE} {FORMAT_VERSION}\nsize {}\nblock {BLOCK_SIZE}\n", self.size);
        // Writing to a string can't fail.
        for sum in &self.sums {
            let _ = writeln!(text, "{sum:08x}");
        }
        let own = crc32(text.as_bytes());
        let _ = writeln!(text, "crc32 {own:08x}");
        text
    }
}

fn decode(bytes: &[u8]) -> Option<BlockSums> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (before, own) = text.split_once("crc32 ")?;
    if format!("{:08x}\n", crc32(before.as_bytes())) != own {
        return None;
    }
    let mut lines = before.lines();
    if lines.next()? != format!("{TITLE} {FORMAT_VERSION}") {
        return None;
    }
    let size: u64 = lines.next()?.strip_prefix("size ")?.parse().ok()?;
    let block: u64 = lines.next()?.strip_prefix("block ")?.parse().ok()?;
    let sums: Vec<u32> = lines.map(|line| u32::from_str_radix(line, 16).ok()).collect::<Option<_>>()?;
    (block == BLOCK_SIZE && sums.len() as u64 == size.div_ceil(BLOCK_SIZE))
        .then_some(BlockSums { size, sums })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;

    #[test]
    fn sums_come_back_and_no_flipped_bit_makes_others_of_them() {
        let bytes: Vec<u8> = (0..2 * BLOCK_SIZE + 77).map(|at| (at * 7) as u8).collect();
        let storage = MemoryStorage::new();
        assert_eq!(BlockSums::read(&storage, "binlog.000001").unwrap(), None);
        for size in [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 2 * BLOCK_SIZE + 77] {
            let bytes = &bytes[..size as usize];
            let mut whole = BlockSummer::default();
            let mut pieces = BlockSummer::default();
            whole.add(bytes);
            bytes.chunks(1000).for_each(|piece| pieces.add(piece));
            let sums = whole.finish();
            assert_eq!(pieces.finish(), sums);
            assert_eq!(sums.sums.len() as u64, size.div_ceil(BLOCK_SIZE));
            sums.write(&storage, "binlog.000001").unwrap();
            assert_eq!(BlockSums::read(&storage, "binlog.000001").unwrap(), Some(sums.clone()));
            let text = sums.encode().into_bytes();
            for bit in 0..text.len() * 8 {
                let mut flipped = text.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&flipped).is_none(), "bit {bit}");
            }
        }
    }
}
