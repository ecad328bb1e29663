//! The messages between a server and its workers, over the worker's standard input and output.
//!
//! ```text
//! offset  size  field
//!      0     4  size of what follows, little-endian
//!      4     1  kind
//!      5     …  payload
//!
//! to a worker                                        from it
//! p  plan: a request                                 H  it is ready
//! r  run: a request                                  T  which user tables are there?
//! t  they are these, as Arrow's IPC stream           P  planned: the columns, then the parameters, as schemas of Arrow's IPC,
//! x  they can't be told: a line                         each after its size of 4 bytes
//!                                                    D  rows, as FlightData
//!                                                    E  there are no more rows
//!                                                    X  failed: a byte of blame, then a line
//!
//! request:  8 bytes of memory; 4 of the statement's size; the statement; values of its parameters as Arrow's IPC stream, or nothing
//! ```

use std::io;

use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a frame. The rows of a batch are cut into messages of some megabytes, but a row is not.
const FRAME_SIZE_MAX: usize = 1 << 30;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Plan,
    Run,
    Tables,
    NoTables,
    AskTables,
    Ready,
    Planned,
    Rows,
    End,
    Failed,
}

impl FrameKind {
    const ALL: [(u8, FrameKind); 10] = [
        (b'p', FrameKind::Plan),
        (b'r', FrameKind::Run),
        (b't', FrameKind::Tables),
        (b'x', FrameKind::NoTables),
        (b'T', FrameKind::AskTables),
        (b'H', FrameKind::Ready),
        (b'P', FrameKind::Planned),
        (b'D', FrameKind::Rows),
        (b'E', FrameKind::End),
        (b'X', FrameKind::Failed),
    ];

    fn byte(self) -> u8 {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or(0, |(byte, _)| *byte)
    }

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == byte).map(|(_, kind)| *kind)
    }
}

/// A frame as bytes.
pub(crate) fn frame(kind: FrameKind, parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    let size = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    if size > FRAME_SIZE_MAX {
        return Err(io::Error::other(format!("{size} bytes at once, expected at most {FRAME_SIZE_MAX}")));
    }
    let mut bytes = Vec::with_capacity(4 + size);
    // It is not above FRAME_SIZE_MAX.
    bytes.put_u32_le(size as u32);
    bytes.put_u8(kind.byte());
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    Ok(bytes)
}

/// Reads frames. A read that is given up loses nothing.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    input: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(input: R) -> Self {
        Frames { input, buffer: BytesMut::new() }
    }

    /// The next frame; `None`: the other side has ended.
    pub(crate) async fn next(&mut self) -> io::Result<Option<(FrameKind, Bytes)>> {
        loop {
            if let Some(size) = self.buffer.first_chunk::<4>() {
                let size = u32::from_le_bytes(*size) as usize;
                if size == 0 || size > FRAME_SIZE_MAX {
                    return Err(io::Error::other(format!("a frame of {size} bytes")));
                }
                if self.buffer.len() >= 4 + size {
                    let mut frame = self.buffer.split_to(4 + size).freeze();
                    frame.advance(4);
                    let kind = frame.get_u8();
                    let kind = FrameKind::of(kind).ok_or_else(|| io::Error::other("an unknown frame"))?;
                    return Ok(Some((kind, frame)));
                }
                self.buffer.reserve(4 + size - self.buffer.len());
            }
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }
}

/// A statement that a worker plans or runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct AskedStatement {
    /// Bytes of memory.
    pub(crate) memory: u64,
    pub(crate) statement: String,
    /// The values of the statement's parameters: one row, as Arrow's IPC stream; empty: none.
    pub(crate) values: Bytes,
}

impl AskedStatement {
    pub(crate) fn frame(&self, kind: FrameKind) -> io::Result<Vec<u8>> {
        let size = u32::try_from(self.statement.len()).map_err(io::Error::other)?;
        let parts: [&[u8]; 4] =
            [&self.memory.to_le_bytes(), &size.to_le_bytes(), self.statement.as_bytes(), &self.values];
        frame(kind, &parts)
    }

    pub(crate) fn of(mut frame: Bytes) -> Option<Self> {
        let memory = frame.try_get_u64_le().ok()?;
        let statement = sized(&mut frame)?;
        let statement = String::from_utf8(statement.to_vec()).ok()?;
        Some(AskedStatement { memory, statement, values: frame })
    }
}

/// Bytes after their size.
pub(crate) fn sized(frame: &mut Bytes) -> Option<Bytes> {
    let size = frame.try_get_u32_le().ok()? as usize;
    (size <= frame.len()).then(|| frame.split_to(size))
}
