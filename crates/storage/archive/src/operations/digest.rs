//! SHA-256, CRC-32 and size of a log, by which two copies of it are compared.

use std::io::{self, Read, Write};

use binlogz_flow::ReadAt;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::storage::{ArchiveStorage, ReadRange};

/// SHA-256 in hexadecimal, size, and CRC-32.
pub(crate) fn digest(log: &mut impl Read) -> Result<(String, u64, u32)> {
    digest_to(log, &mut io::sink())
}

/// SHA-256 in hexadecimal, size, and CRC-32; every byte is passed on to `also`.
pub(crate) fn digest_to(log: &mut impl Read, also: &mut dyn Write) -> Result<(String, u64, u32)> {
    let mut hasher = Hasher::default();
    let mut crc32 = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let count = log.read(&mut buffer).map_err(Error::io("read the log"))?;
        let part = buffer.get(..count).unwrap_or_default();
        if part.is_empty() {
            break;
        }
        hasher.write_all(part).map_err(Error::writing)?;
        crc32.update(part);
        also.write_all(part).map_err(Error::writing)?;
    }
    let (sha256, size) = hasher.finish();
    Ok((sha256, size, crc32.finalize()))
}

/// Bytes of an object that are read at once.
pub(crate) const PART: usize = 8 << 20;

/// SHA-256 in hexadecimal, and size, of a stored object.
pub(crate) fn of_object(storage: &dyn ArchiveStorage, object: &str) -> Result<(String, u64)> {
    let stored = storage.get(object)?;
    let mut hasher = Hasher::default();
    each_part(stored.as_ref(), &mut |part| hasher.write_all(part).map_err(Error::writing))?;
    Ok(hasher.finish())
}

/// Reads an object from its begin to its end.
pub(crate) fn each_part(object: &dyn ReadRange, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let size = object.size()?;
    for offset in (0..size).step_by(PART) {
        sink(&object.read(offset, PART.min((size - offset) as usize))?)?;
    }
    Ok(())
}

/// A writer that keeps only a SHA-256.
#[derive(Default)]
pub(crate) struct Hasher {
    sha256: Sha256,
    size: u64,
}

impl Hasher {
    pub(crate) fn finish(self) -> (String, u64) {
        let hash = self.sha256.finalize();
        (hash.iter().map(|byte| format!("{byte:02x}")).collect(), self.size)
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sha256.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a log from its start.
pub(crate) struct DigestReader<'a> {
    log: &'a dyn ReadAt,
    offset: u64,
    end: u64,
}

impl<'a> DigestReader<'a> {
    pub(crate) fn new(log: &'a dyn ReadAt) -> Self {
        DigestReader { log, offset: 0, end: u64::MAX }
    }

    /// Reads only the first bytes.
    pub(crate) fn up_to(self, end: u64) -> Self {
        DigestReader { end, ..self }
    }
}

impl Read for DigestReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(usize::try_from(self.end - self.offset).unwrap_or(usize::MAX));
        let count = self.log.read_at(buffer.get_mut(..size).unwrap_or_default(), self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
