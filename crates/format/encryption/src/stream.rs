//! An encrypted log read and written sequentially, as from a pipe.
//!
//! [`DecryptingReader`] returns the plain log, [`EncryptingWriter`] takes it. A log that can be read at any
//! place needs neither: see [`FileCipher::apply`].

use std::io::{self, Read, Write};

use crate::cipher::FileCipher;
use crate::error::Result;
use crate::header::HEADER_SIZE;
use crate::keyring::{Keyring, MasterKey};

/// Bytes encrypted at a time: few enough to stay in the processor's cache on their way out.
const CHUNK_SIZE: usize = 64 << 10;

/// Reads the plain log out of an encrypted one.
#[derive(Debug)]
pub struct DecryptingReader<R> {
    cipher: FileCipher,
    /// The bytes read after the header to see whether the key is right, still encrypted.
    body: io::Chain<io::Cursor<Vec<u8>>, R>,
    offset: u64,
}

impl<R: Read> DecryptingReader<R> {
    /// Reads the header and finds its key.
    ///
    /// # Errors
    ///
    /// The errors of [`FileCipher::open`]; a reader that fails.
    pub fn new(mut input: R, keyring: &Keyring) -> Result<Self> {
        let mut start = Vec::with_capacity(FileCipher::START_SIZE);
        input.by_ref().take(FileCipher::START_SIZE as u64).read_to_end(&mut start)?;
        let cipher = FileCipher::open(&start, keyring)?;
        let body = io::Cursor::new(start.split_off(HEADER_SIZE)).chain(input);
        Ok(DecryptingReader { cipher, body, offset: 0 })
    }
}

impl<R: Read> Read for DecryptingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(buffer)?;
        self.cipher.apply(buffer.get_mut(..count).unwrap_or_default(), self.offset);
        self.offset += count as u64;
        Ok(count)
    }
}

/// Writes an encrypted log from the plain one.
///
/// After a failed write it refuses all others, because the state after it is unknown.
#[derive(Debug)]
pub struct EncryptingWriter<W> {
    out: W,
    cipher: FileCipher,
    chunk: Vec<u8>,
    offset: u64,
    failed: bool,
}

impl<W: Write> EncryptingWriter<W> {
    /// Writes the header of a log that `key` will open, with a new password.
    ///
    /// # Errors
    ///
    /// The errors of [`FileCipher::create`]; a writer that fails.
    pub fn new(mut out: W, key: &MasterKey) -> Result<Self> {
        let (cipher, header) = FileCipher::create(key)?;
        out.write_all(&header.encode()?)?;
        Ok(EncryptingWriter { out, cipher, chunk: Vec::new(), offset: 0, failed: false })
    }

    /// The underlying writer; nothing is buffered.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for EncryptingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other("an earlier write of the encrypted log failed"));
        }
        self.chunk.clear();
        self.chunk.extend_from_slice(bytes.get(..CHUNK_SIZE).unwrap_or(bytes));
        self.cipher.apply(&mut self.chunk, self.offset);
        let written = self.out.write_all(&self.chunk);
        self.failed = written.is_err();
        self.offset += self.chunk.len() as u64;
        written.map(|()| self.chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::corpus;

    use super::*;

    struct OneByteAtATime<'a>(&'a [u8]);

    impl Read for OneByteAtATime<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = buffer.len().min(1);
            self.0.read(&mut buffer[..size])
        }
    }

    /// Takes this many bytes, then fails.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let size = bytes.len().min(self.0);
            self.0 -= size;
            if size == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(size) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn fixture() -> (Vec<u8>, Vec<u8>, Keyring) {
        let files = corpus::encrypted();
        let read = |path| std::fs::read(path).unwrap();
        (read(files.encrypted), read(files.plain), Keyring::open(&files.keyring).unwrap())
    }

    fn decrypt(log: &[u8], keyring: &Keyring) -> Vec<u8> {
        let mut plain = Vec::new();
        DecryptingReader::new(log, keyring).unwrap().read_to_end(&mut plain).unwrap();
        plain
    }

    #[test]
    fn the_servers_log_is_read_whole_and_byte_by_byte() {
        let (encrypted, plain, keyring) = fixture();
        assert_eq!(decrypt(&encrypted, &keyring), plain);
        let mut slowly = Vec::new();
        let reader = DecryptingReader::new(OneByteAtATime(&encrypted), &keyring);
        reader.unwrap().read_to_end(&mut slowly).unwrap();
        assert_eq!(slowly, plain);
    }

    #[test]
    fn a_log_cut_behind_its_header_gives_what_is_there() {
        let (encrypted, plain, keyring) = fixture();
        for size in [0, 1, 3, 4, 5, 100] {
            assert_eq!(decrypt(&encrypted[..HEADER_SIZE + size], &keyring), plain[..size]);
        }
    }

    #[test]
    fn what_is_written_in_pieces_of_any_size_is_read_again() {
        let (_, plain, keyring) = fixture();
        let key = keyring.current_key(None).unwrap();
        let plain: Vec<u8> = plain.iter().copied().cycle().take(3 * CHUNK_SIZE + 17).collect();
        for piece in [1, 15, 16, 17, 4096, CHUNK_SIZE, plain.len()] {
            let mut writer = EncryptingWriter::new(Vec::new(), &key).unwrap();
            for piece in plain.chunks(piece) {
                writer.write_all(piece).unwrap();
            }
            let encrypted = writer.into_inner();
            assert_eq!(encrypted.len(), HEADER_SIZE + plain.len());
            assert!(decrypt(&encrypted, &keyring) == plain, "pieces of {piece}");
        }
    }

    #[test]
    fn after_a_failed_write_nothing_is_written() {
        let (_, plain, keyring) = fixture();
        let key = keyring.current_key(None).unwrap();
        let mut writer = EncryptingWriter::new(Full(HEADER_SIZE + 10), &key).unwrap();
        assert_eq!(writer.write(&plain).unwrap_err().kind(), io::ErrorKind::StorageFull);
        let error = writer.write(&plain).unwrap_err();
        assert_eq!(error.to_string(), "an earlier write of the encrypted log failed");
    }
}
