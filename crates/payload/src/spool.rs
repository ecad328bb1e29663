//! Bytes of unknown number: the first in memory, the rest in a temporary file without a name.
//!
//! What a transaction becomes must be known to the last byte before its GTID event can be written;
//! a payload of a few kilobytes may become many gigabytes. A spool holds them meanwhile.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Is appended to, then read at any place.
#[derive(Debug)]
pub struct Spool {
    memory: Vec<u8>,
    memory_max: usize,
    /// What came when the memory was full, in the file from its beginning.
    file: Option<File>,
    file_size: u64,
}

impl Spool {
    /// An empty spool that keeps up to `memory_max` bytes in memory.
    pub fn new(memory_max: usize) -> Self {
        Spool { memory: Vec::new(), memory_max, file: None, file_size: 0 }
    }

    /// The same, with memory that was used before.
    pub fn with_memory(mut memory: Vec<u8>, memory_max: usize) -> Self {
        memory.clear();
        Spool { memory, memory_max, file: None, file_size: 0 }
    }

    /// Gives the memory back for another spool.
    pub fn into_memory(self) -> Vec<u8> {
        self.memory
    }

    /// Bytes written.
    #[inline]
    pub fn size(&self) -> u64 {
        self.memory.len() as u64 + self.file_size
    }

    /// Appends bytes.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && bytes.len() <= self.memory_max.saturating_sub(self.memory.len()) {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        self.append_to_file(bytes)
    }

    #[cold]
    fn append_to_file(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile().map_err(spill_error)?),
        };
        file.write_all(bytes).map_err(spill_error)?;
        self.file_size += bytes.len() as u64;
        Ok(())
    }

    /// Replaces bytes that were written before.
    pub fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let in_memory = (self.memory.len() as u64).saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (front, back) = bytes.split_at_checked(in_memory).unwrap_or((bytes, &[]));
        if let Some(place) =
            usize::try_from(offset).ok().and_then(|start| self.memory.get_mut(start..start + front.len()))
        {
            place.copy_from_slice(front);
        }
        match &self.file {
            Some(file) if !back.is_empty() => {
                let place = offset + front.len() as u64 - self.memory.len() as u64;
                file.write_all_at(back, place).map_err(spill_error)
            }
            _ => Ok(()),
        }
    }

    /// A range of the bytes, if all of it is in memory.
    #[inline]
    pub fn in_memory(&mut self, range: Range<u64>) -> Option<&mut [u8]> {
        let start = usize::try_from(range.start).ok()?;
        let end = usize::try_from(range.end).ok()?;
        self.memory.get_mut(start..end)
    }

    /// Reads a range of the bytes.
    pub fn reader(&self, range: Range<u64>) -> SpoolReader<'_> {
        SpoolReader { spool: self, offset: range.start, end: range.end.min(self.size()) }
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
        let memory = usize::try_from(self.offset).ok().and_then(|start| self.spool.memory.get(start..));
        let count = match (memory, &self.spool.file) {
            (Some(mut memory), _) if !memory.is_empty() => memory.read(buffer)?,
            (_, Some(file)) => file.read_at(buffer, self.offset - self.spool.memory.len() as u64)?,
            (_, None) => 0,
        };
        self.offset += count as u64;
        Ok(count)
    }
}

/// Says which disk was full: the temporary directory's, not the output's.
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

    fn read(spool: &Spool, range: Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        spool.reader(range).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_read_wherever_it_lies() {
        let all: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        for memory_max in [0, 1, 1000, 1 << 20] {
            let mut spool = Spool::new(memory_max);
            for piece in all.chunks(777) {
                spool.write_all(piece).unwrap();
            }
            assert_eq!(spool.size(), all.len() as u64);
            assert!(spool.memory.len() <= memory_max);
            assert!(read(&spool, 0..u64::MAX) == all, "memory of {memory_max}");
            assert_eq!(read(&spool, 500..1600), all[500..1600]);
        }
    }

    #[test]
    fn bytes_are_replaced_wherever_they_lie() {
        for memory_max in 0..=10 {
            let mut spool = Spool::new(memory_max);
            for byte in 0..10 {
                spool.append(&[byte]).unwrap();
            }
            spool.overwrite(3, b"abcd").unwrap();
            assert_eq!(read(&spool, 0..10), b"\x00\x01\x02abcd\x07\x08\x09", "memory of {memory_max}");
        }
    }
}
