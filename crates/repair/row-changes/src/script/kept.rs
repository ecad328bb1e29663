//! Rows that are kept until the script is written, in a spool that is read from either end.
//!
//! ```text
//! size field
//!    1 kind
//!    4 size       of the content
//!    n content    header: number u64, time u64 (microseconds since 1970), text
//!                 row: table u32, epoch u32, table map u32, number of the change u32 (see repeated.rs), flags u8, what the
//!                 renderer wrote; others: text
//!    4 size       once more, for reading backwards
//! ```

use std::io::{self, Read};

use binlogz_payload::Spool;

use crate::pass::broken;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// A transaction: read before its other records.
    Header = 1,
    Row,
    /// A row without a statement.
    Missing,
    /// The original statement of the rows read after it.
    Statement,
    /// A statement without rows.
    Border,
}

/// Bytes before and after the content.
const FRONT: u64 = 5;
const BACK: u64 = 4;
/// Bytes read at a time.
const WINDOW_SIZE: u64 = 256 << 10;

pub(super) fn put(spool: &mut Spool, kind: ChangeKind, parts: &[&[u8]]) -> io::Result<()> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let size = u32::try_from(size).map_err(|_| io::Error::other("a statement of more than 4 GiB"))?;
    spool.append(&[kind as u8])?;
    spool.append(&size.to_le_bytes())?;
    parts.iter().try_for_each(|part| spool.append(part))?;
    spool.append(&size.to_le_bytes())
}

/// Reads records from the first or from the last.
pub(super) struct ChangeReader<'s> {
    spool: &'s Spool,
    backwards: bool,
    /// Where the next record begins; backwards, where it ends.
    at: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl<'s> ChangeReader<'s> {
    pub(super) fn new(spool: &'s Spool, backwards: bool) -> Self {
        let at = if backwards { spool.size() } else { 0 };
        ChangeReader { spool, backwards, at, window: Vec::new(), window_start: 0 }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<(ChangeKind, &[u8])>> {
        let start = match self.backwards {
            true if self.at == 0 => return Ok(None),
            true => {
                let size = u64::from(self.number(self.at - BACK)?);
                self.at.checked_sub(FRONT + size + BACK).ok_or_else(broken)?
            }
            false if self.at == self.spool.size() => return Ok(None),
            false => self.at,
        };
        let size = u64::from(self.number(start + 1)?);
        self.at = if self.backwards { start } else { start + FRONT + size + BACK };
        let code = *self.bytes(start, 1)?.first().ok_or_else(broken)?;
        let kinds = [
            ChangeKind::Header,
            ChangeKind::Row,
            ChangeKind::Missing,
            ChangeKind::Statement,
            ChangeKind::Border,
        ];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == code).ok_or_else(broken)?;
        Ok(Some((kind, self.bytes(start + FRONT, size)?)))
    }

    fn number(&mut self, offset: u64) -> io::Result<u32> {
        let bytes = self.bytes(offset, 4)?.first_chunk().ok_or_else(broken)?;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// Bytes of the spool, with their neighbours in the direction of reading.
    fn bytes(&mut self, offset: u64, size: u64) -> io::Result<&[u8]> {
        let end = offset + size;
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || end > window_end {
            let range = match self.backwards {
                true => end.saturating_sub(WINDOW_SIZE).min(offset)..end,
                false => offset..end.max(offset + WINDOW_SIZE).min(self.spool.size()),
            };
            self.window.clear();
            self.window.shrink_to(WINDOW_SIZE as usize);
            self.window_start = range.start;
            self.spool.reader(range).read_to_end(&mut self.window)?;
        }
        let from = usize::try_from(offset - self.window_start).map_err(io::Error::other)?;
        let size = usize::try_from(size).map_err(io::Error::other)?;
        self.window.get(from..from + size).ok_or_else(broken)
    }
}

#[cfg(test)]
mod tests {
    use binlogz_payload::SpoolMemory;

    use super::*;

    #[test]
    fn records_are_read_from_either_end() {
        for memory in [0, 1 << 20, 64 << 20] {
            let mut spool = Spool::new(&SpoolMemory::new(memory), Vec::new());
            let sizes = [0, 1, 100, 300_000, 5, 262_144, 7, 1_000_000, 3];
            for (number, size) in sizes.into_iter().enumerate() {
                let kind = if number % 2 == 0 { ChangeKind::Row } else { ChangeKind::Header };
                put(&mut spool, kind, &[&vec![number as u8; size / 2], &vec![number as u8; size - size / 2]])
                    .unwrap();
            }
            for backwards in [false, true] {
                let mut reader = ChangeReader::new(&spool, backwards);
                let mut numbers: Vec<usize> = (0..sizes.len()).collect();
                if backwards {
                    numbers.reverse();
                }
                for number in numbers {
                    let (kind, content) = reader.next().unwrap().unwrap();
                    assert_eq!(kind == ChangeKind::Row, number % 2 == 0);
                    assert_eq!(content, vec![number as u8; sizes[number]]);
                }
                assert!(reader.next().unwrap().is_none());
            }
        }
    }
}
