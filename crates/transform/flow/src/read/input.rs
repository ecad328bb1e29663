//! Where a log's bytes come from: a file that can be read at any place, or a stream that can't.
//!
//! The bytes of a pipe may never come. If a run fails meanwhile, its [`PipeStop`] ends the wait.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use binlogz_scratch_file::Scratch;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::pread;

/// Bytes that can be read at any offset, from several threads at once.
pub trait ReadAt: Send + Sync {
    /// Reads from `offset` on; 0 at or beyond the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Appends the bytes at `offset`, at most as many as the buffer has room for; returns how many.
    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        let begin = buffer.len();
        buffer.resize(buffer.capacity(), 0);
        let read = self.read_at(buffer.get_mut(begin..).unwrap_or_default(), offset);
        buffer.truncate(begin + read.as_ref().map_or(0, |count| *count));
        read
    }

    /// Fills the buffer with the bytes at `offset`; returns how many there are, fewer only at the end.
    fn fill_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(free) = buffer.get_mut(filled..).filter(|free| !free.is_empty()) {
            match uninterrupted(|| self.read_at(free, offset + filled as u64))? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    /// Without writing zeros to the room first.
    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        Ok(pread(self, spare_capacity(buffer), offset)?)
    }
}

impl ReadAt for Scratch {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Scratch::read_at(self, buffer, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        from_offset(self, offset).read(buffer)
    }

    /// Without writing zeros to the room first.
    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        let from = from_offset(self, offset);
        let count = from.len().min(buffer.capacity() - buffer.len());
        buffer.extend_from_slice(from.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// The bytes from `offset` on; none beyond the end.
fn from_offset(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}

/// Bytes that arrive while the reader waits, as from a server: the bytes at hand are processed before waiting for more.
pub trait Live: Read + Send {
    /// Whether everything that arrived was read: the next read waits.
    fn is_drained(&self) -> bool;
}

/// The bytes of a log.
pub enum Input {
    /// A file, or bytes in memory: anything too large to keep is read a second time.
    Places(Arc<dyn ReadAt>),
    /// A file of which a part is skipped: see [`Input::starting_at`].
    Seek {
        /// The file.
        places: Arc<dyn ReadAt>,
        /// The part skipped: from the end of an event to the beginning of another.
        passed: Range<u64>,
    },
    /// Bytes in order: anything too large to keep is spilled to a temporary file.
    Stream(Box<dyn Read + Send>),
    /// Bytes in order, without some parts of the log, which are not in the stream.
    Sparse {
        /// The other bytes, one after the other.
        stream: Box<dyn Read + Send>,
        /// The missing parts, in order, by their offsets in the input, which may be several logs: each from the end of an
        /// event to the beginning of another, or to the log's end.
        gaps: Vec<Range<u64>>,
    },
    /// Bytes in order, of which each event is passed on as soon as it arrives.
    Live(Box<dyn Live>),
    /// Bytes in order, from a file descriptor that may keep a reader waiting.
    Pipe(Pipe),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Input::Places(_) => "Input::Places",
            Input::Seek { .. } => "Input::Seek",
            Input::Stream(_) => "Input::Stream",
            Input::Sparse { .. } => "Input::Sparse",
            Input::Live(_) => "Input::Live",
            Input::Pipe(_) => "Input::Pipe",
        })
    }
}

impl Input {
    /// Opens a file; a FIFO or device becomes a pipe.
    ///
    /// # Errors
    ///
    /// A file that can't be opened, a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory, expected a binary log"));
        }
        if kind.is_file() { Ok(Input::Places(Arc::new(file))) } else { Pipe::new(file).map(Input::Pipe) }
    }

    /// Standard input: a file if the shell redirected one that nothing has read from yet, else a pipe.
    ///
    /// # Errors
    ///
    /// A standard input that is closed.
    pub fn stdin() -> io::Result<Self> {
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let unread = file.metadata()?.is_file() && file.stream_position()? == 0;
        if unread { Ok(Input::Places(Arc::new(file))) } else { Pipe::new(file).map(Input::Pipe) }
    }

    /// Ends the wait for bytes. Once it is dropped, reading from a pipe is an error.
    pub(crate) fn stop(&mut self) -> PipeStop {
        match self {
            Input::Pipe(pipe) => PipeStop(pipe.stop.take()),
            Input::Places(_)
            | Input::Seek { .. }
            | Input::Stream(_)
            | Input::Sparse { .. }
            | Input::Live(_) => PipeStop(None),
        }
    }

    /// Whether the next read waits for bytes that are still to come.
    pub(crate) fn is_drained(&self) -> bool {
        matches!(self, Input::Live(stream) if stream.is_drained())
    }

    /// Reads the bytes at `offset`, which a stream can do only in order.
    pub(crate) fn read(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        uninterrupted(|| match self {
            Input::Places(places) | Input::Seek { places, .. } => places.read_at(buffer, offset),
            Input::Stream(stream) | Input::Sparse { stream, .. } => stream.read(buffer),
            Input::Live(stream) => stream.read(buffer),
            Input::Pipe(pipe) => pipe.bytes.read(buffer),
        })
    }
}

/// Retries a read that a signal interrupted.
pub(crate) fn uninterrupted(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The bytes of a file descriptor, which may arrive at any time.
pub struct Pipe {
    pub(crate) bytes: Box<dyn Read + Send>,
    /// Ends the wait, until a run takes it.
    stop: Option<PipeWriter>,
}

/// Ends the wait for the bytes of a [`Pipe`] when it is dropped.
#[derive(Debug)]
pub(crate) struct PipeStop(
    #[expect(dead_code, reason = "to be dropped is all it is for")] Option<PipeWriter>,
);

impl Pipe {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        Ok(Pipe { bytes: Box::new(PipeWait { file, stopped }), stop: Some(stop) })
    }
}

/// Waits for the bytes of a file descriptor, or for the [`PipeStop`].
struct PipeWait {
    file: File,
    /// Ends when the other end is dropped.
    stopped: PipeReader,
}

impl Read for PipeWait {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut waited_for =
            [PollFd::new(&self.file, PollFlags::IN), PollFd::new(&self.stopped, PollFlags::IN)];
        poll(&mut waited_for, None)?;
        let [_, stopped] = waited_for;
        if !stopped.revents().is_empty() {
            return Err(io::Error::other("the run is over"));
        }
        self.file.read(buffer)
    }
}

/// Reads from the beginning on.
pub struct InOrder {
    places: Arc<dyn ReadAt>,
    offset: u64,
}

impl InOrder {
    /// A reader of all these bytes.
    pub fn new(places: Arc<dyn ReadAt>) -> Self {
        InOrder { places, offset: 0 }
    }
}

impl Read for InOrder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.places.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
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

/// The bytes at `offset`, fewer at the end of the file.
pub(crate) fn bytes_at(places: &dyn ReadAt, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    PlacesReader { places, offset, left: size as u64 }.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::thread;

    use super::*;

    #[test]
    fn a_pipe_gives_its_bytes_and_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut pipe = Pipe::new(OwnedFd::from(reader).into()).unwrap();
        writer.write_all(b"bytes").unwrap();
        drop(writer);
        let mut got = Vec::new();
        pipe.bytes.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"bytes");
    }

    #[test]
    fn a_pipe_without_bytes_waits_until_it_is_stopped() {
        let (reader, writer) = io::pipe().unwrap();
        let mut input = Input::Pipe(Pipe::new(OwnedFd::from(reader).into()).unwrap());
        let stop = input.stop();
        let waiting = thread::spawn(move || input.read(&mut [0; 10], 0));
        drop(stop);
        assert_eq!(waiting.join().unwrap().unwrap_err().to_string(), "the run is over");
        drop(writer);
    }
}
