//! Temporary files: without a name, and encrypted with a key that only this process has. After a run that packed,
//! restored or ran out of memory, nobody can read from the disk what these files held.
//!
//! One that other processes of the program are to read has a name; they are told its key ([`ScratchKey`]).
//!
//! A place that is written twice is encrypted with the same bytes of the key stream both times. A reader of both contents
//! of the disk then sees how the two differ, so write twice only what is no secret, such as lengths and positions.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use aes::Aes256;
use ctr::Ctr64BE;
use ctr::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};

/// Bytes that are encrypted at once.
const PIECE: usize = 64 << 10;
/// Bytes of a cipher's key.
const KEY_SIZE: usize = 32;
/// Bytes of the place at which its key stream begins.
const IV_SIZE: usize = 16;

/// The key of a temporary file that has a name.
#[derive(Clone)]
pub struct ScratchKey {
    key: [u8; KEY_SIZE],
    iv: [u8; IV_SIZE],
}

impl fmt::Debug for ScratchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScratchKey")
    }
}

impl ScratchKey {
    fn new() -> io::Result<Self> {
        let mut key = [0; KEY_SIZE];
        let mut iv = [0; IV_SIZE];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        // The counter is the iv's second half, and begins at 0.
        getrandom::fill(iv.split_at_mut(IV_SIZE / 2).0).map_err(io::Error::other)?;
        Ok(ScratchKey { key, iv })
    }

    /// The key as hexadecimal digits, for [`ScratchKey::from_hex`].
    pub fn to_hex(&self) -> String {
        self.key.iter().chain(&self.iv).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The key of these digits; `None`: they are none.
    pub fn from_hex(digits: &str) -> Option<Self> {
        if digits.len() != 2 * (KEY_SIZE + IV_SIZE) {
            return None;
        }
        let pairs = digits.as_bytes().chunks_exact(2);
        let bytes: Option<Vec<u8>> =
            pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
        let bytes = bytes?;
        let (key, iv) = bytes.split_first_chunk()?;
        Some(ScratchKey { key: *key, iv: iv.try_into().ok()? })
    }
}

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
        Ok(Scratch::over(tempfile::tempfile()?, &ScratchKey::new()?))
    }

    /// An empty temporary file in `folder` instead of the system's folder for temporary files.
    ///
    /// # Errors
    ///
    /// As [`Scratch::new`].
    pub fn new_in(folder: &Path) -> io::Result<Scratch> {
        Ok(Scratch::over(tempfile::tempfile_in(folder)?, &ScratchKey::new()?))
    }

    /// A new file of this name, for the owner alone, and the key by which others open it. Whoever made it removes it.
    ///
    /// # Errors
    ///
    /// There is one of this name, or it can't be made.
    pub fn with_name(path: &Path) -> io::Result<(Scratch, ScratchKey)> {
        let key = ScratchKey::new()?;
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        Ok((Scratch::over(file, &key), key))
    }

    /// A file that another process made by [`Scratch::with_name`], to be read.
    ///
    /// # Errors
    ///
    /// A file that can't be opened.
    pub fn open(path: &Path, key: &ScratchKey) -> io::Result<Scratch> {
        Ok(Scratch::over(File::open(path)?, key))
    }

    fn over(file: File, ScratchKey { key, iv }: &ScratchKey) -> Scratch {
        Scratch { file, cipher: Box::new(Ctr64BE::new(&(*key).into(), &(*iv).into())), at: 0 }
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

    fn read(path: &Path, digits: &str) -> Vec<u8> {
        let key = ScratchKey::from_hex(digits).unwrap();
        let mut text = Vec::new();
        Scratch::open(path, &key).unwrap().read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn one_with_a_name_is_read_with_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scratch");
        let (mut scratch, key) = Scratch::with_name(&path).unwrap();
        scratch.write_all(b"a row that nobody else should read").unwrap();
        assert!(!std::fs::read(&path).unwrap().windows(5).any(|bytes| bytes == b"a row"));
        assert!(Scratch::with_name(&path).is_err());
        let digits = key.to_hex();
        assert_eq!(read(&path, &digits), b"a row that nobody else should read");
        assert_ne!(read(&path, &digits.replace('0', "1")), b"a row that nobody else should read");
        for digits in ["", "0", &digits[1..], &format!("{digits}0"), &digits.replace('0', "g")] {
            assert!(ScratchKey::from_hex(digits).is_none(), "{digits}");
        }
    }

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
