//! Where a rewritten log goes: forward only, or also back to what was written.

use std::io::{self, Seek, SeekFrom, Write};

/// An output of which bytes that were written can perhaps be changed.
pub(crate) trait LogOutput: Write {
    /// Whether they can.
    fn is_changeable(&self) -> bool;

    /// Changes bytes, the first of which has so many before it.
    fn change(&mut self, written_before: u64, bytes: &[u8]) -> io::Result<()>;
}

/// A pipe, or whatever takes bytes in order.
pub(crate) struct ForwardOutput<W>(pub(crate) W);

impl<W: Write> Write for ForwardOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> LogOutput for ForwardOutput<W> {
    fn is_changeable(&self) -> bool {
        false
    }

    fn change(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}

/// A file, or whatever can be changed at any place.
pub(crate) struct SeekableOutput<W> {
    out: W,
    start: u64,
}

impl<W: Seek> SeekableOutput<W> {
    /// The log begins where `out` is.
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        let start = out.stream_position()?;
        Ok(SeekableOutput { out, start })
    }
}

impl<W: Write> Write for SeekableOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write + Seek> LogOutput for SeekableOutput<W> {
    fn is_changeable(&self) -> bool {
        true
    }

    fn change(&mut self, written_before: u64, bytes: &[u8]) -> io::Result<()> {
        let end = self.out.stream_position()?;
        self.out.seek(SeekFrom::Start(self.start + written_before))?;
        self.out.write_all(bytes)?;
        self.out.seek(SeekFrom::Start(end)).map(drop)
    }
}
