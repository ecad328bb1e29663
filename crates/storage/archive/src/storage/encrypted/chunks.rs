//! Encrypted bytes, readable at any offset: AES-256-GCM in chunks, each with its own tag.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 65,552 each | the chunks: 64 KiB of plaintext, encrypted, then the tag of 16 bytes. The last chunk may be shorter; it is empty only if there is no plaintext |
//! | size − 48 | 32 | salt: the key of these bytes is HKDF-SHA-256 of the archive's data key with it |
//! | size − 16 | 16 | `binlogz sealed 1` |
//!
//! A chunk's nonce is its number (8 bytes, little-endian), three zero bytes, and 1 for the last chunk, otherwise 0: so
//! chunks can't be left out, swapped or cut off at the end. The name of the object is authenticated with each chunk, so
//! objects can't be swapped either.

use std::io::{self, Write};
use std::ops::Range;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::keys::{DataKey, KEY_SIZE, random};
use crate::error::{Error, Result};
use crate::storage::ReadRange;

/// Plain bytes of a chunk.
const CHUNK: usize = 64 << 10;
/// Bytes of a tag.
const TAG: usize = 16;
/// Bytes of an encrypted chunk.
const SEALED: usize = CHUNK + TAG;
/// Bytes of a salt.
const SALT: usize = 32;
/// The last bytes of an encrypted object.
const MAGIC: &[u8; 16] = b"binlogz sealed 1";
/// Bytes after the last chunk.
const END: usize = SALT + MAGIC.len();

/// The purpose that keys of objects are derived for.
const PURPOSE: &[u8] = b"binlogz archive object";

/// The number of plain bytes in this many encrypted ones. Files that a killed run left may be shorter than any that is
/// whole.
pub(super) fn plain_size(size: u64) -> u64 {
    let body = size.saturating_sub(END as u64);
    body.saturating_sub(chunks(body) * TAG as u64)
}

fn chunks(body: u64) -> u64 {
    body.div_ceil(SEALED as u64).max(1)
}

/// Encrypts and decrypts the chunks of one object.
struct Cipher {
    key: LessSafeKey,
    name: String,
}

impl Cipher {
    fn new(data_key: &DataKey, salt: &[u8], name: &str) -> Result<Cipher> {
        let key = data_key.derived::<KEY_SIZE>(salt, PURPOSE)?;
        let key = UnboundKey::new(&AES_256_GCM, &key).map_err(|_| refused("key"))?;
        Ok(Cipher { key: LessSafeKey::new(key), name: name.to_owned() })
    }

    fn seal(&self, number: u64, last: bool, chunk: &mut Vec<u8>) -> Result<()> {
        let sealed = self.key.seal_in_place_append_tag(nonce(number, last), Aad::from(&self.name), chunk);
        sealed.map_err(|_| refused("encrypting"))
    }

    fn open<'a>(&self, number: u64, last: bool, chunk: &'a mut [u8]) -> Result<&'a [u8]> {
        let opened = self.key.open_in_place(nonce(number, last), Aad::from(&self.name), chunk);
        let offset = number * SEALED as u64;
        opened.map(|plain| &*plain).map_err(|_| {
            let found = format!("{}: the chunk at {offset} is not what was encrypted", self.name);
            Error::damaged("encrypted object", found, "whole chunks, under the name that they were stored as")
        })
    }
}

fn nonce(number: u64, last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce[11] = u8::from(last);
    Nonce::assume_unique_for_key(nonce)
}

fn refused(what: &'static str) -> Error {
    Error::damaged("cipher", format!("{what} refused"), "AES-256-GCM")
}

/// Encrypts the bytes written to it; [`Sealer::finish`] ends it.
pub(super) struct Sealer<'a> {
    out: &'a mut dyn Write,
    cipher: Cipher,
    salt: [u8; SALT],
    number: u64,
    chunk: Vec<u8>,
}

impl<'a> Sealer<'a> {
    pub(super) fn new(data_key: &DataKey, name: &str, out: &'a mut dyn Write) -> Result<Self> {
        let salt = random()?;
        let cipher = Cipher::new(data_key, &salt, name)?;
        Ok(Sealer { out, cipher, salt, number: 0, chunk: Vec::with_capacity(SEALED) })
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.put(true)?;
        let end = [self.salt.as_slice(), MAGIC].concat();
        self.out.write_all(&end).map_err(Error::writing)
    }

    fn put(&mut self, last: bool) -> Result<()> {
        self.cipher.seal(self.number, last, &mut self.chunk)?;
        self.out.write_all(&self.chunk).map_err(Error::writing)?;
        self.chunk.clear();
        self.number += 1;
        Ok(())
    }
}

impl Write for Sealer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk is written once more bytes come: the last one is marked.
        if self.chunk.len() == CHUNK {
            self.put(false).map_err(io::Error::other)?;
        }
        let count = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// An encrypted object, read as its plaintext.
pub(super) struct DecryptedObject {
    sealed: Box<dyn ReadRange>,
    cipher: Cipher,
    /// Bytes of all chunks.
    body: u64,
}

impl DecryptedObject {
    pub(super) fn new(data_key: &DataKey, name: &str, sealed: Box<dyn ReadRange>) -> Result<DecryptedObject> {
        let size = sealed.size()?;
        let body = size.checked_sub(END as u64).filter(|body| *body >= TAG as u64);
        let Some(body) = body else {
            return Err(Error::damaged("encrypted object", format!("{name}: {size} bytes"), "more bytes"));
        };
        let end = sealed.read(body, END)?;
        let salt = end.strip_suffix(MAGIC).ok_or_else(|| {
            let found = format!("{name}: an end without the mark of encrypted bytes");
            Error::damaged("encrypted object", found, "binlogz sealed 1")
        })?;
        let cipher = Cipher::new(data_key, salt, name)?;
        Ok(DecryptedObject { sealed, cipher, body })
    }

    /// Bytes of the plaintext.
    pub(super) fn plain_bytes(&self) -> u64 {
        self.body - chunks(self.body) * TAG as u64
    }

    /// The chunks that a range of the plaintext is in, which is no longer than that.
    fn sealed(&self, plain: &Range<u64>) -> Range<u64> {
        let first = plain.start / CHUNK as u64;
        let end = plain.end.div_ceil(CHUNK as u64);
        first * SEALED as u64..(end * SEALED as u64).min(self.body)
    }
}

impl ReadRange for DecryptedObject {
    fn size(&self) -> Result<u64> {
        Ok(self.plain_bytes())
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        let left = self.size()?.saturating_sub(offset);
        if size as u64 > left {
            let found = format!("{left} bytes long from there");
            return Err(Error::unexpected("object", found, format!("{size} bytes")));
        }
        if size == 0 {
            return Ok(Vec::new());
        }
        let first = offset / CHUNK as u64;
        let range = self.sealed(&(offset..offset + size as u64));
        let mut sealed = self.sealed.read(range.start, (range.end - range.start) as usize)?;
        let mut plain = Vec::with_capacity(sealed.len());
        let last = chunks(self.body) - 1;
        for (number, chunk) in (first..).zip(sealed.chunks_mut(SEALED)) {
            plain.extend_from_slice(self.cipher.open(number, number == last, chunk)?);
        }
        plain.drain(..(offset - first * CHUNK as u64) as usize);
        plain.truncate(size);
        Ok(plain)
    }

    fn forget(&self) {
        self.sealed.forget();
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        let size = self.size().unwrap_or_default();
        let within = ranges.iter().filter(|range| range.end <= size);
        self.sealed.expect(&within.map(|range| self.sealed(range)).collect::<Vec<_>>());
    }
}
