//! A buffer for any number of bytes: the first ones in memory, the rest in an unnamed, encrypted temporary file.
//!
//! The new form of a transaction must be known to the last byte before its GTID event can be written, and a
//! payload of a few kilobytes may become many gigabytes. A spool holds those bytes meanwhile.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use binlogz_scratch_file::Scratch;

/// Memory shared by several spools: each takes as much as it needs, until it is used up.
#[derive(Debug, Clone)]
pub struct SpoolMemory(Arc<AtomicUsize>);

impl SpoolMemory {
    /// Makes a budget of so many bytes for all spools together.
    pub fn new(bytes: usize) -> Self {
        SpoolMemory(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes bytes, if they are there.
    fn take(&self, bytes: usize) -> bool {
        // The count publishes no other memory: it is only a count.
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

/// Memory is taken from the shared budget in steps of this size, so that appending stays cheap.
const TAKE_SIZE: usize = 64 << 10;

/// The most bytes that wait to be written to the file together: each append may have only a few bytes.
const TAIL_SIZE: usize = 16 << 10;

/// Append-only at first, then readable at any place.
#[derive(Debug)]
pub struct Spool {
    memory: Vec<u8>,
    /// Bytes taken from the shared memory.
    taken: usize,
    common: SpoolMemory,
    /// Bytes appended once the memory was full, in the file from its beginning.
    file: Option<Scratch>,
    file_size: u64,
    /// Bytes after those of the file, not written yet.
    tail: Vec<u8>,
}

impl Spool {
    /// An empty spool that takes its memory from `common`; `buffer` is used again.
    pub fn new(common: &SpoolMemory, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Spool { memory: buffer, taken: 0, common: common.clone(), file: None, file_size: 0, tail: Vec::new() }
    }

    /// A spool without memory: everything goes to the file.
    pub fn on_disk() -> Self {
        Spool::new(&SpoolMemory::new(0), Vec::new())
    }

    /// Gives the buffer back for another spool.
    pub fn into_buffer(mut self) -> Vec<u8> {
        std::mem::take(&mut self.memory)
    }

    /// Bytes written.
    #[inline]
    pub fn size(&self) -> u64 {
        self.tail_start() + self.tail.len() as u64
    }

    /// Where the bytes begin that are not written yet.
    #[inline]
    fn tail_start(&self) -> u64 {
        self.memory.len() as u64 + self.file_size
    }

    /// Appends bytes.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && (self.memory.len() + bytes.len() <= self.taken || self.take(bytes.len())) {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        self.append_to_file(bytes)
    }

    /// Makes room for this many more bytes in memory, if there is any left.
    #[cold]
    fn take(&mut self, more: usize) -> bool {
        let missing = (self.memory.len() + more).saturating_sub(self.taken).next_multiple_of(TAKE_SIZE);
        let taken = self.common.take(missing);
        if taken {
            self.taken += missing;
        }
        taken
    }

    #[cold]
    fn append_to_file(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Scratch::new().map_err(spill_error)?),
        };
        if self.tail.len() + bytes.len() > TAIL_SIZE {
            file.write_all_at(&self.tail, self.file_size).map_err(spill_error)?;
            self.file_size += self.tail.len() as u64;
            self.tail.clear();
        }
        if bytes.len() > TAIL_SIZE {
            file.write_all_at(bytes, self.file_size).map_err(spill_error)?;
            self.file_size += bytes.len() as u64;
            return Ok(());
        }
        self.tail.extend_from_slice(bytes);
        Ok(())
    }

    /// Removes everything appended from `size` on. Bytes in the file stay there, and are never read.
    pub(crate) fn take_back(&mut self, size: u64) {
        if self.file.is_none() {
            self.memory.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        }
    }

    /// Replaces bytes that were written before: lengths and positions, never rows (see [`Scratch`]).
    pub fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file_start = self.memory.len() as u64;
        let (front, rest) = split(bytes, file_start.saturating_sub(offset));
        let (middle, back) = split(rest, self.tail_start().saturating_sub(offset.max(file_start)));
        if !front.is_empty() {
            replace(&mut self.memory, offset, front);
        }
        if let (Some(file), false) = (&self.file, middle.is_empty()) {
            let place = offset.max(file_start) - file_start;
            file.write_all_at(middle, place).map_err(spill_error)?;
        }
        if !back.is_empty() {
            let start = self.tail_start();
            replace(&mut self.tail, offset.max(start) - start, back);
        }
        Ok(())
    }

    /// A range of the bytes, if all of it is in memory.
    #[inline]
    pub fn in_memory(&mut self, range: Range<u64>) -> Option<&mut [u8]> {
        let start = usize::try_from(range.start).ok()?;
        let end = usize::try_from(range.end).ok()?;
        self.memory.get_mut(start..end)
    }

    /// A range of the bytes, read-only, if all of it is in memory.
    #[inline]
    pub fn memory(&self, range: Range<u64>) -> Option<&[u8]> {
        self.memory.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    /// Whether some of it is in the file.
    pub fn is_on_disk(&self) -> bool {
        self.file.is_some()
    }

    /// Nothing more will be appended: frees spare room.
    pub fn settle(&mut self) {
        self.memory.shrink_to_fit();
        self.tail.shrink_to_fit();
    }

    /// Reads a range of the bytes.
    pub fn reader(&self, range: Range<u64>) -> SpoolReader<'_> {
        SpoolReader { spool: self, offset: range.start, end: range.end.min(self.size()) }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.common.give_back(self.taken);
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a range of a [`Spool`].
#[derive(Debug)]
pub struct SpoolReader<'a> {
    spool: &'a Spool,
    offset: u64,
    end: u64,
}

impl Read for SpoolReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = buffer.get_mut(..wanted).unwrap_or_default();
        let Spool { memory, file, tail, .. } = self.spool;
        let file_start = memory.len() as u64;
        let tail_start = self.spool.tail_start();
        let count = match file {
            _ if self.offset < file_start => from(memory, self.offset).read(buffer)?,
            Some(file) if self.offset < tail_start => {
                let most = usize::try_from(tail_start - self.offset).unwrap_or(usize::MAX).min(buffer.len());
                file.read_at(buffer.get_mut(..most).unwrap_or_default(), self.offset - file_start)?
            }
            _ => from(tail, self.offset - tail_start).read(buffer)?,
        };
        self.offset += count as u64;
        Ok(count)
    }
}

fn from(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|start| bytes.get(start..)).unwrap_or_default()
}

/// The first this many bytes, and the others.
fn split(bytes: &[u8], count: u64) -> (&[u8], &[u8]) {
    bytes.split_at(usize::try_from(count).unwrap_or(usize::MAX).min(bytes.len()))
}

fn replace(all: &mut [u8], offset: u64, bytes: &[u8]) {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let place = start.checked_add(bytes.len()).and_then(|end| all.get_mut(start..end));
    if let Some(place) = place {
        place.copy_from_slice(bytes);
    }
}

/// Names the disk that was full: the temporary directory's, not the output's.
fn spill_error(error: io::Error) -> io::Error {
    let place = std::env::temp_dir();
    io::Error::new(
        error.kind(),
        format!("spill to a temporary file in {} (TMPDIR names another place): {error}", place.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory for nothing, a little and everything of what the tests write.
    const MEMORIES: [usize; 4] = [0, TAKE_SIZE, 3 * TAKE_SIZE, 1 << 20];

    fn read(spool: &Spool, range: Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        spool.reader(range).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_read_wherever_it_lies() {
        let all: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        for bytes in MEMORIES {
            let mut spool = Spool::new(&SpoolMemory::new(bytes), Vec::new());
            for piece in all.chunks(777) {
                spool.write_all(piece).unwrap();
            }
            assert_eq!(spool.size(), all.len() as u64);
            assert!(spool.memory.len() <= bytes);
            assert!(read(&spool, 0..u64::MAX) == all, "memory of {bytes}");
            assert_eq!(read(&spool, 65_000..67_000), all[65_000..67_000]);
        }
    }

    #[test]
    fn bytes_are_replaced_wherever_they_lie() {
        for bytes in MEMORIES {
            let mut spool = Spool::new(&SpoolMemory::new(bytes), Vec::new());
            let mut all = vec![7; TAKE_SIZE + 100];
            for piece in all.chunks(10) {
                spool.append(piece).unwrap();
            }
            // Between memory and file, within the file, between the file and what isn't written yet, and there alone.
            let written = usize::try_from(spool.tail_start()).unwrap().max(10);
            for place in [TAKE_SIZE - 3, 2 * TAIL_SIZE, written.min(all.len() - 6) - 3, all.len() - 6] {
                spool.overwrite(place as u64, b"abcdef").unwrap();
                all[place..place + 6].copy_from_slice(b"abcdef");
                assert!(read(&spool, 0..u64::MAX) == all, "memory of {bytes}, at {place}");
            }
        }
    }

    #[test]
    fn spools_share_their_memory_and_give_it_back() {
        let common = SpoolMemory::new(TAKE_SIZE);
        let mut first = Spool::new(&common, Vec::new());
        first.append(&[1; 100]).unwrap();
        let mut second = Spool::new(&common, Vec::new());
        second.append(&[2; 100]).unwrap();
        assert_eq!((first.memory.len(), second.memory.len()), (100, 0));
        drop(first);
        let mut third = Spool::new(&common, Vec::new());
        third.append(&[3; 100]).unwrap();
        assert_eq!(third.memory.len(), 100);
    }
}
