//! Where a log's bytes come from: a file that can be read at any place, or a stream that can't.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes that can be read at any offset, from several threads at once.
pub trait ReadAt: Send + Sync {
    /// Reads from `offset` on; 0 at or beyond the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let mut from = from.unwrap_or_default();
        from.read(buffer)
    }
}

/// The bytes of a log.
pub enum Input {
    /// A file, or bytes in memory: what is too large to keep is read a second time.
    Places(Arc<dyn ReadAt>),
    /// A pipe: what is too large to keep is spilled to a temporary file.
    Stream(Box<dyn Read + Send>),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Input::Places(_) => "Input::Places",
            Input::Stream(_) => "Input::Stream",
        })
    }
}

impl Input {
    /// Opens a file; a FIFO or device becomes a stream.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory, expected a binary log"));
        }
        if kind.is_file() { Ok(Input::Places(Arc::new(file))) } else { Ok(Input::Stream(Box::new(file))) }
    }

    /// Standard input: a file where the shell redirected one, else a stream.
    pub fn stdin() -> Self {
        Input::Stream(Box::new(io::stdin()))
    }

    /// Reads the bytes at `offset`, which a stream can do only in order.
    pub(crate) fn read(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            let result = match self {
                Input::Places(places) => places.read_at(buffer, offset),
                Input::Stream(stream) => stream.read(buffer),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// A part of an input, read in order.
pub(crate) struct PlacesReader<'a> {
    pub(crate) places: &'a dyn ReadAt,
    pub(crate) offset: u64,
    pub(crate) left: u64,
}

impl Read for PlacesReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.places.read_at(buffer.get_mut(..wanted).unwrap_or_default(), self.offset)?;
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
