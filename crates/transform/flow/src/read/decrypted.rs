//! Decrypts an input, so that everything after it sees plaintext at plaintext's offsets.
//!
//! `binlogz-encryption` handles the header and the cipher.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use binlogz_binlog::MAGIC_ENCRYPTED;
use binlogz_encryption::{DecryptingReader, Error, FileCipher, HEADER_SIZE, Keyring};

use crate::read::input::{Input, PlacesReader, ReadAt};

/// An encrypted log that can be read at any place.
struct DecryptedLog {
    places: Arc<dyn ReadAt>,
    cipher: FileCipher,
}

impl ReadAt for DecryptedLog {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(behind_header) = offset.checked_add(HEADER_SIZE as u64) else { return Ok(0) };
        let count = self.places.read_at(buffer, behind_header)?;
        self.cipher.apply(buffer.get_mut(..count).unwrap_or_default(), offset);
        Ok(count)
    }
}

impl Input {
    /// The plain log if this one is encrypted; otherwise the input unchanged.
    ///
    /// # Errors
    ///
    /// A header that can't be read, a key that the keyring lacks or has wrong, an input that fails.
    pub fn decrypted(self, keyring: &Keyring) -> Result<Input, Error> {
        match self {
            Input::Places(places) | Input::Seek { places, .. } => {
                let mut start = Vec::new();
                let left = FileCipher::START_SIZE as u64;
                PlacesReader { places: places.as_ref(), offset: 0, left }.read_to_end(&mut start)?;
                if !start.starts_with(&MAGIC_ENCRYPTED) {
                    return Ok(Input::Places(places));
                }
                let cipher = FileCipher::open(&start, keyring)?;
                Ok(Input::Places(Arc::new(DecryptedLog { places, cipher })))
            }
            // Parts are only told apart of what is readable.
            sparse @ Input::Sparse { .. } => Ok(sparse),
            Input::Stream(stream) => Ok(Input::Stream(decrypted_stream(stream, keyring)?)),
            Input::Live(stream) => Ok(Input::Stream(decrypted_stream(stream, keyring)?)),
            Input::Pipe(mut pipe) => {
                pipe.bytes = decrypted_stream(pipe.bytes, keyring)?;
                Ok(Input::Pipe(pipe))
            }
        }
    }
}

fn decrypted_stream(
    mut stream: Box<dyn Read + Send>,
    keyring: &Keyring,
) -> Result<Box<dyn Read + Send>, Error> {
    let mut magic = Vec::new();
    stream.by_ref().take(MAGIC_ENCRYPTED.len() as u64).read_to_end(&mut magic)?;
    let encrypted = magic == MAGIC_ENCRYPTED;
    let stream = Cursor::new(magic).chain(stream);
    Ok(if encrypted { Box::new(DecryptingReader::new(stream, keyring)?) } else { Box::new(stream) })
}

#[cfg(test)]
mod tests {
    use std::io::{PipeWriter, Write};
    use std::os::fd::OwnedFd;

    use binlogz_testkit::corpus;

    use super::*;
    use crate::read::batcher::Batcher;
    use crate::read::input::Pipe;
    use crate::read::{BatchSize, BatchUnit, LogPiece};

    fn read(path: &std::path::Path) -> Vec<u8> {
        std::fs::read(path).unwrap()
    }

    /// All bytes of an input, from `offset` on, in reads of `size` bytes.
    fn all_of(input: &mut Input, mut offset: u64, size: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = vec![0; size];
        loop {
            let count = input.read(&mut buffer, offset).unwrap();
            if count == 0 {
                return all;
            }
            all.extend_from_slice(&buffer[..count]);
            offset += count as u64;
        }
    }

    /// A pipe with these bytes in it, and the end that keeps it open.
    fn pipe(bytes: &[u8]) -> (Input, PipeWriter) {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        (Input::Pipe(Pipe::new(OwnedFd::from(reader).into()).unwrap()), writer)
    }

    fn each_kind(bytes: &[u8]) -> [Input; 3] {
        let stream = Cursor::new(bytes.to_vec());
        [Input::Places(Arc::new(bytes.to_vec())), Input::Stream(Box::new(stream)), pipe(bytes).0]
    }

    #[test]
    fn an_encrypted_log_reads_as_its_plaintext_at_every_place() {
        let files = corpus::encrypted();
        let keyring = Keyring::open(&files.keyring).unwrap();
        let encrypted = read(&files.encrypted);
        let plain = read(&files.plain);
        for input in each_kind(&encrypted) {
            assert_eq!(all_of(&mut input.decrypted(&keyring).unwrap(), 0, 100), plain);
        }
        let mut file = Input::open(&files.encrypted).unwrap().decrypted(&keyring).unwrap();
        for offset in [1, 15, 16, 17, 31, 700] {
            assert_eq!(all_of(&mut file, offset, 33), plain[offset as usize..], "from {offset} on");
        }
        for offset in [plain.len() as u64, u64::MAX - 511, u64::MAX] {
            assert_eq!(file.read(&mut [0; 10], offset).unwrap(), 0);
        }
    }

    #[test]
    fn other_inputs_stay_as_they_are() {
        let plain = read(&corpus::encrypted().plain);
        for bytes in [&plain, &plain[..4], &plain[..3], &[]] {
            for input in each_kind(bytes) {
                assert_eq!(all_of(&mut input.decrypted(&Keyring::default()).unwrap(), 0, 1000), bytes);
            }
        }
    }

    #[test]
    fn a_pipe_can_be_stopped_still() {
        let files = corpus::encrypted();
        let encrypted = read(&files.encrypted);
        let plain = read(&files.plain);
        let (input, writer) = pipe(&encrypted);
        let mut input = input.decrypted(&Keyring::open(&files.keyring).unwrap()).unwrap();
        let stop = input.stop();
        let mut begin = vec![0; plain.len()];
        let mut have = 0;
        while have < plain.len() {
            have += input.read(&mut begin[have..], have as u64).unwrap();
        }
        assert_eq!(begin, plain);
        drop(stop);
        assert_eq!(input.read(&mut [0; 10], have as u64).unwrap_err().to_string(), "the run is over");
        drop(writer);
    }

    #[test]
    fn without_a_keyring_or_with_another_one_it_is_an_error() {
        let encrypted = read(&corpus::encrypted().encrypted);
        for input in each_kind(&encrypted) {
            let size = BatchSize { target: 1 << 20, max: 1 << 20 };
            let piece = Batcher::new(input, BatchUnit::Transaction, size).next_piece();
            let Some(Err(binlogz_binlog::Error::Encrypted)) = piece else {
                panic!("{:?}", piece.map(|piece| piece.map(|piece: LogPiece| format!("{piece:?}"))))
            };
        }
        for input in each_kind(&encrypted) {
            assert!(matches!(input.decrypted(&Keyring::default()), Err(Error::NoKey { .. })));
        }
    }
}
