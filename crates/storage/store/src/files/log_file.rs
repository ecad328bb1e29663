//! One log file: its plain bytes, whether or not they are encrypted on disk.
//!
//! All offsets are those of the plain log; on disk an encrypted file has a 512-byte header before it.

use std::sync::Arc;

use binlogz_binlog::MAGIC_ENCRYPTED;
use binlogz_encryption::{FileCipher, HEADER_SIZE, Keyring, MasterKey};

use crate::error::{Error, Result};
use crate::storage::{Storage, StorageFile};

/// Bytes copied at once.
const COPY_SIZE: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) name: String,
    file: Arc<dyn StorageFile>,
    cipher: Option<FileCipher>,
}

/// A new, empty file: it is open, and not yet part of a log.
#[derive(Debug)]
pub(crate) struct NewLogFile {
    log: LogFile,
    /// The encryption header, if the file gets a key.
    header: Vec<u8>,
}

impl NewLogFile {
    pub(crate) fn create(storage: &dyn Storage, name: &str, key: Option<&MasterKey>) -> Result<Self> {
        let in_file = |source| Error::Encryption { file: name.to_owned(), source };
        let (cipher, header) = match key {
            None => (None, Vec::new()),
            Some(key) => {
                let (cipher, header) = FileCipher::create(key).map_err(in_file)?;
                (Some(cipher), header.encode().map_err(in_file)?)
            }
        };
        let file = storage.open(name, true).map_err(Error::io("create", name))?;
        Ok(NewLogFile { log: LogFile { name: name.to_owned(), file, cipher }, header })
    }

    /// Writes the file's head, durably.
    pub(crate) fn begin(self, head: &[u8], scratch: &mut Vec<u8>) -> Result<LogFile> {
        let NewLogFile { log, header } = self;
        if !header.is_empty() {
            log.file.write_at(0, &header).map_err(Error::io("write", &log.name))?;
        }
        log.write_at(0, head, scratch)?;
        log.sync()?;
        Ok(log)
    }
}

impl LogFile {
    pub(crate) fn open(storage: &dyn Storage, name: &str, keyring: Option<&Keyring>) -> Result<Self> {
        let file = storage.open(name, false).map_err(Error::io("open", name))?;
        let mut start = [0; FileCipher::START_SIZE];
        let mut held = 0;
        while let Some(rest) = start.get_mut(held..).filter(|rest| !rest.is_empty()) {
            match file.read_at(held as u64, rest).map_err(Error::io("read", name))? {
                0 => break,
                count => held += count,
            }
        }
        let start = start.get(..held).unwrap_or_default();
        let cipher = match (start.starts_with(&MAGIC_ENCRYPTED), keyring) {
            (false, _) => None,
            (true, Some(keyring)) => Some(
                FileCipher::open(start, keyring)
                    .map_err(|source| Error::Encryption { file: name.to_owned(), source })?,
            ),
            (true, None) => {
                return Err(Error::unfit(
                    name,
                    "the log is encrypted",
                    "a plain log where no keyring is given",
                ));
            }
        };
        Ok(LogFile { name: name.to_owned(), file, cipher })
    }

    fn header_size(&self) -> u64 {
        self.cipher.as_ref().map_or(0, |_| HEADER_SIZE as u64)
    }

    pub(crate) fn size(&self) -> Result<u64> {
        let size = self.file.size().map_err(Error::io("size", &self.name))?;
        Ok(size.saturating_sub(self.header_size()))
    }

    pub(crate) fn size_on_disk(&self) -> Result<u64> {
        self.file.size().map_err(Error::io("size", &self.name))
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.cipher.is_some()
    }

    pub(crate) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let count =
            self.file.read_at(offset + self.header_size(), bytes).map_err(Error::io("read", &self.name))?;
        if let Some(cipher) = &self.cipher {
            cipher.apply(bytes.get_mut(..count).unwrap_or_default(), offset);
        }
        Ok(count)
    }

    /// Reads bytes as they are on disk.
    pub(crate) fn read_on_disk_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset + self.header_size(), bytes).map_err(Error::io("read", &self.name))
    }

    /// The form on disk of what was just written with this scratch.
    pub(crate) fn on_disk<'a>(&self, bytes: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        if self.is_encrypted() { scratch } else { bytes }
    }

    /// `scratch` holds the encrypted form.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8], scratch: &mut Vec<u8>) -> Result<()> {
        let written = match &self.cipher {
            None => self.file.write_at(offset, bytes),
            Some(cipher) => {
                scratch.clear();
                scratch.extend_from_slice(bytes);
                cipher.apply(scratch, offset);
                self.file.write_at(offset + self.header_size(), scratch)
            }
        };
        written.map_err(Error::io("write", &self.name))
    }

    pub(crate) fn set_size(&self, size: u64) -> Result<()> {
        self.file.set_size(size + self.header_size()).map_err(Error::io("cut", &self.name))
    }

    /// Copies the bytes as they are on disk, from an offset on, into another file, and syncs it. The copy of
    /// an encrypted file keeps its header and the offset of every byte, so the same key opens it.
    pub(crate) fn copy_from(&self, from: u64, to: &dyn StorageFile) -> std::io::Result<()> {
        let mut chunk = vec![0; COPY_SIZE];
        let mut copy = |mut at: u64, end: u64, shift: u64| {
            while at < end {
                let room = usize::try_from(end - at).unwrap_or(COPY_SIZE).min(COPY_SIZE);
                let count = self.file.read_at(at, chunk.get_mut(..room).unwrap_or_default())?;
                if count == 0 {
                    break;
                }
                to.write_at(at - shift, chunk.get(..count).unwrap_or_default())?;
                at += count as u64;
            }
            Ok::<_, std::io::Error>(())
        };
        let header = self.header_size();
        copy(0, header, 0)?;
        copy(from + header, self.file.size()?, if header == 0 { from } else { 0 })?;
        to.sync()
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(Error::io("sync", &self.name))
    }
}
