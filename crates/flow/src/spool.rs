//! Bytes of unknown number: the first in memory, the rest in a temporary file without a name.
//!
//! What a transaction becomes must be known to the last byte before its GTID event can be written;
//! a payload of a few kilobytes may become many gigabytes. A spool holds them meanwhile.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Writes first, then reads, any number of times.
#[derive(Debug)]
pub struct Spool {
    memory: Vec<u8>,
    memory_max: usize,
    file: Option<File>,
    file_size: u64,
}

impl Spool {
    /// An empty spool that keeps up to `memory_max` bytes in memory.
    pub fn new(memory_max: usize) -> Self {
        Spool { memory: Vec::new(), memory_max, file: None, file_size: 0 }
    }

    /// Bytes written.
    pub fn size(&self) -> u64 {
        self.memory.len() as u64 + self.file_size
    }

    /// Reads all that was written, from the beginning.
    pub fn reader(&mut self) -> io::Result<impl Read + '_> {
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(0))?;
        }
        Ok(self.memory.as_slice().chain(self.file.as_ref().map_or(SpoolFile::None, SpoolFile::Some)))
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = if self.file.is_some() { 0 } else { self.memory_max.saturating_sub(self.memory.len()) };
        if bytes.len() <= room {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile().map_err(spill_error)?),
        };
        let count = file.write(bytes).map_err(spill_error)?;
        self.file_size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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

enum SpoolFile<'a> {
    None,
    Some(&'a File),
}

impl Read for SpoolFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            SpoolFile::None => Ok(0),
            SpoolFile::Some(file) => file.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_whatever_fits_in_memory() {
        let all: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        for memory_max in [0, 1, 1000, 1 << 20] {
            let mut spool = Spool::new(memory_max);
            for piece in all.chunks(777) {
                spool.write_all(piece).unwrap();
            }
            assert_eq!(spool.size(), all.len() as u64);
            assert!(spool.memory.len() <= memory_max);
            for _ in 0..2 {
                let mut read = Vec::new();
                spool.reader().unwrap().read_to_end(&mut read).unwrap();
                assert!(read == all, "memory of {memory_max}");
            }
        }
    }
}
