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
//! t  they are these, as Arrow's IPC stream           P  planned
//! x  they can't be told: a line                      D  rows
//!                                                    E  there are no more rows
//!                                                    X  failed: a byte of blame, 2 of the protocol's number, then a line
//!
//! request:  8 bytes of memory; 1 of the protocol; after its size of 4 bytes each: what the protocol says of the session, and the
//!           statement; values of its parameters, or nothing
//!
//! What P, D, the session and the values have is the protocol's: see where `WorkerProtocol` is implemented.
//! ```

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
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
pub struct AskedStatement {
    /// Bytes of memory for its sorts, joins and groups; those who ask leave it at 0.
    pub memory: u64,
    /// The protocol that it came by: [`crate::WorkerProtocol::code`].
    pub protocol: u8,
    /// The session, as the protocol tells it.
    pub session: Bytes,
    /// The statement's text.
    pub statement: String,
    /// The values of the statement's parameters, as the protocol writes them; empty: none.
    pub values: Bytes,
}

impl AskedStatement {
    pub(crate) fn frame(&self, kind: FrameKind) -> io::Result<Vec<u8>> {
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).map(u32::to_le_bytes).map_err(io::Error::other);
        let statement = self.statement.as_bytes();
        let parts: [&[u8]; 7] = [
            &self.memory.to_le_bytes(),
            &[self.protocol],
            &size(&self.session)?,
            &self.session,
            &size(statement)?,
            statement,
            &self.values,
        ];
        frame(kind, &parts)
    }

    pub(crate) fn of(mut frame: Bytes) -> Option<Self> {
        let memory = frame.try_get_u64_le().ok()?;
        let protocol = frame.try_get_u8().ok()?;
        let session = sized(&mut frame)?;
        let statement = sized(&mut frame)?;
        let statement = String::from_utf8(statement.to_vec()).ok()?;
        Some(AskedStatement { memory, protocol, session, statement, values: frame })
    }
}

/// Bytes after their size of 4 bytes; `None`: there are fewer.
pub fn sized(frame: &mut Bytes) -> Option<Bytes> {
    let size = frame.try_get_u32_le().ok()? as usize;
    (size <= frame.len()).then(|| frame.split_to(size))
}
