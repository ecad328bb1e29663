//! Temporary files: without a name, and encrypted with a key that only this process has. After a run that packed,
//! restored or ran out of memory, nobody can read from the disk what these files held.
//!
//! A place that is written twice is encrypted with the same bytes of the key stream both times. A reader of both contents
//! of the disk then sees how the two differ, so write twice only what is no secret, such as lengths and positions.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use aes::Aes256;
use ctr::Ctr64BE;
use ctr::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};

/// Bytes that are encrypted at once.
const PIECE: usize = 64 << 10;

/// A temporary file. It is read and written from its start, or at any offset.
pub struct Scratch {
    file: File,
    /// A kilobyte of keys.
    cipher: Box<Ctr64BE<Aes256>>,
    /// Where the next read or write is.
    at: u64,
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Scratch {
    /// An empty file.
    ///
    /// # Errors
    ///
    /// The system gives no file.
    pub fn new() -> io::Result<Scratch> {
        Scratch::over(tempfile::tempfile()?)
    }

    /// An empty temporary file in `folder` instead of the system's folder for temporary files.
    ///
    /// # Errors
    ///
    /// As [`Scratch::new`].
    pub fn new_in(folder: &Path) -> io::Result<Scratch> {
        Scratch::over(tempfile::tempfile_in(folder)?)
    }

    fn over(file: File) -> io::Result<Scratch> {
        let mut key = [0; 32];
        let mut iv = [0; 16];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        // The counter is the iv's second half, and begins at 0.
        getrandom::fill(iv.split_at_mut(8).0).map_err(io::Error::other)?;
        Ok(Scratch { file, cipher: Box::new(Ctr64BE::new(&key.into(), &iv.into())), at: 0 })
    }

    /// Reads bytes written at an offset.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is shorter.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)?;
        self.crypt(buffer, offset);
        Ok(())
    }

    /// Reads from an offset on; 0 at or beyond the end.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.file.read_at(buffer, offset)?;
        self.crypt(buffer.get_mut(..count).unwrap_or_default(), offset);
        Ok(count)
    }

    /// Writes at an offset.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut piece = Vec::with_capacity(PIECE.min(bytes.len()));
        for (plain, offset) in bytes.chunks(PIECE).zip((offset..).step_by(PIECE)) {
            piece.clear();
            piece.extend_from_slice(plain);
            self.crypt(&mut piece, offset);
            self.file.write_all_at(&piece, offset)?;
        }
        Ok(())
    }

    /// Encrypts, or decrypts.
    fn crypt(&self, bytes: &mut [u8], offset: u64) {
        let mut cipher = Ctr64BE::clone(&self.cipher);
        cipher.seek(offset);
        cipher.apply_keystream(bytes);
    }
}

impl Read for Scratch {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Scratch {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(offset) => offset,
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().saturating_add_signed(by),
        };
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use super::*;

    #[test]
    fn what_is_written_comes_back_and_is_not_on_the_disk() {
        let mut scratch = Scratch::new().unwrap();
        let row = b"a row that nobody else should read ".repeat(5000);
        scratch.write_all(&row).unwrap();
        scratch.write_all_at(b"behind", row.len() as u64).unwrap();
        let mut stored = vec![0; row.len() + 6];
        FileExt::read_exact_at(&scratch.file, &mut stored, 0).unwrap();
        assert!(!stored.windows(8).any(|bytes| bytes == b"a row th"));
        let mut end = [0; 10];
        assert_eq!(scratch.read_at(&mut end, row.len() as u64 - 4).unwrap(), 10);
        assert_eq!(&end, b"ead behind");
        scratch.rewind().unwrap();
        let mut read = Vec::new();
        scratch.read_to_end(&mut read).unwrap();
        assert_eq!(read, [row.as_slice(), b"behind"].concat());
    }
}
