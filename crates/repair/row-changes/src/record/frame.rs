//! Records in a spool, one after the other.
//!
//! ```text
//! size field
//!    1 kind
//!    4 size      of the content
//!    n content
//!    4 size      once more, of records that are also read from the last to the first
//! ```

use std::io::{self, BufRead, BufReader, Read, Take};

use binlogz_payload::Spool;

use super::fields::broken;

/// Bytes before and after the content.
const FRONT: u64 = 5;
const BACK: u64 = 4;
/// Bytes read at a time, from either end.
const WINDOW_SIZE: u64 = 256 << 10;

/// Appends a record.
pub(crate) fn put(spool: &mut Spool, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    append(spool, kind, parts).map(drop)
}

/// Appends a record that is also read from the last to the first.
pub(super) fn put_for_both_ends(spool: &mut Spool, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let size = append(spool, kind, parts)?;
    spool.append(&size)
}

/// Appends kind, size and content; returns the size as it is written.
fn append(spool: &mut Spool, kind: u8, parts: &[&[u8]]) -> io::Result<[u8; 4]> {
    let count: usize = parts.iter().map(|part| part.len()).sum();
    let size = u32::try_from(count).map_err(|_| io::Error::other("a row takes more than 4 GiB"))?;
    spool.append(&[kind])?;
    spool.append(&size.to_le_bytes())?;
    parts.iter().try_for_each(|part| spool.append(part))?;
    Ok(size.to_le_bytes())
}

/// Gives the records of a spool to `take`, from the first to the last; those in memory without copying them.
pub(crate) fn each_record<E: From<io::Error>>(
    spool: &Spool,
    mut take: impl FnMut(u8, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let Some(mut rest) = spool.memory(0..spool.size()) else {
        let mut reader = RecordReader::new(spool.reader(0..spool.size()));
        while let Some((kind, content)) = reader.next()? {
            take(kind, content)?;
        }
        return Ok(());
    };
    while !rest.is_empty() {
        let (front, after) = rest.split_first_chunk::<{ FRONT as usize }>().ok_or_else(broken)?;
        let [kind, size @ ..] = *front;
        let size = u32::from_le_bytes(size) as usize;
        let (content, after) = after.split_at_checked(size).ok_or_else(broken)?;
        take(kind, content)?;
        rest = after;
    }
    Ok(())
}

/// Reads records from the first to the last.
#[derive(Debug)]
pub(crate) struct RecordReader<R> {
    reader: BufReader<R>,
    content: Vec<u8>,
}

impl<R: Read> RecordReader<R> {
    pub(crate) fn new(bytes: R) -> Self {
        RecordReader { reader: BufReader::new(bytes), content: Vec::new() }
    }

    /// The kind and the content of the next record.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u8, &[u8])>> {
        let Some((kind, size)) = self.front()? else { return Ok(None) };
        self.content.resize(size as usize, 0);
        self.reader.read_exact(&mut self.content)?;
        Ok(Some((kind, &self.content)))
    }

    /// The content of the next record, which isn't held: the caller has to read it to its end.
    pub(crate) fn next_content(&mut self) -> io::Result<Option<Take<&mut BufReader<R>>>> {
        let front = self.front()?;
        Ok(front.map(|(_, size)| (&mut self.reader).take(size.into())))
    }

    pub(crate) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    fn front(&mut self) -> io::Result<Option<(u8, u32)>> {
        if self.is_at_end()? {
            return Ok(None);
        }
        let mut front = [0; FRONT as usize];
        self.reader.read_exact(&mut front)?;
        let [kind, size @ ..] = front;
        Ok(Some((kind, u32::from_le_bytes(size))))
    }
}

/// Reads records for both ends, from the first or from the last.
pub(super) struct EitherEndReader<'s> {
    spool: &'s Spool,
    backwards: bool,
    /// Where the next record begins; backwards, where it ends.
    at: u64,
    window: Vec<u8>,
    window_start: u64,
}

impl<'s> EitherEndReader<'s> {
    pub(super) fn new(spool: &'s Spool, backwards: bool) -> Self {
        let at = if backwards { spool.size() } else { 0 };
        EitherEndReader { spool, backwards, at, window: Vec::new(), window_start: 0 }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<(u8, &[u8])>> {
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
        let kind = *self.bytes(start, 1)?.first().ok_or_else(broken)?;
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

    const SIZES: [usize; 9] = [0, 1, 100, 300_000, 5, 262_144, 7, 1_000_000, 3];

    fn spool(memory: usize, put: fn(&mut Spool, u8, &[&[u8]]) -> io::Result<()>) -> Spool {
        let mut spool = Spool::new(&SpoolMemory::new(memory), Vec::new());
        for (number, size) in SIZES.into_iter().enumerate() {
            let kind = number as u8;
            put(&mut spool, kind, &[&vec![kind; size / 2], &vec![kind; size - size / 2]]).unwrap();
        }
        spool
    }

    #[test]
    fn records_are_read_from_either_end() {
        for memory in [0, 1 << 20, 64 << 20] {
            let spool = spool(memory, put_for_both_ends);
            for backwards in [false, true] {
                let mut reader = EitherEndReader::new(&spool, backwards);
                let mut numbers: Vec<usize> = (0..SIZES.len()).collect();
                if backwards {
                    numbers.reverse();
                }
                for number in numbers {
                    let (kind, content) = reader.next().unwrap().unwrap();
                    assert_eq!(kind, number as u8);
                    assert_eq!(content, vec![kind; SIZES[number]]);
                }
                assert!(reader.next().unwrap().is_none());
            }
        }
    }

    #[test]
    fn records_are_read_whole_or_as_they_come() {
        let spool = spool(1 << 20, put);
        let mut reader = RecordReader::new(spool.reader(0..spool.size()));
        for (number, size) in SIZES.into_iter().enumerate() {
            assert!(!reader.is_at_end().unwrap());
            if number % 2 == 0 {
                let (kind, content) = reader.next().unwrap().unwrap();
                assert_eq!((kind, content), (number as u8, &*vec![number as u8; size]));
            } else {
                let mut content = Vec::new();
                reader.next_content().unwrap().unwrap().read_to_end(&mut content).unwrap();
                assert_eq!(content, vec![number as u8; size]);
            }
        }
        assert!(reader.is_at_end().unwrap());
        assert!(reader.next().unwrap().is_none());
        let mut cut = RecordReader::new(&[1, 2, 0, 0, 0, 9][..]);
        cut.next().unwrap_err();
    }
}
