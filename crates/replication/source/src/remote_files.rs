//! A server's binary log as its files: each byte for byte as on the server's disk, one after the other.
//!
//! ```text
//! stream                                   files
//! rotate event the sender made             the file before it ends
//! format description                       magic, then this event
//! events                                   as they are
//! heartbeats, other made-up events         in no file
//! ```
//!
//! A stream that begins inside a file gives the file's format description and everything after the position,
//! as the server sends it. The file that the server is writing is sent without its in-use flag.

use std::io::{self, BufRead, Read};

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{Error as BinlogError, EventFrame, EventType, Framing, MAGIC};

use crate::connect_options::ConnectOptions;
use crate::error::Result;
use crate::remote_log::{DumpOptions, RemoteLog};

/// The files of a server's binary log, from where a dump begins.
#[derive(Debug)]
pub struct RemoteFiles {
    log: RemoteLog,
    state: RemoteState,
    /// Bytes of the current piece that were read.
    consumed: usize,
    /// The file's name, without directory.
    name: Vec<u8>,
    /// Whether the file was asked for already.
    given: bool,
    /// The rotate event before it, and how that is framed.
    rotate: Vec<u8>,
    rotate_framing: Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemoteState {
    /// Before a file's format description.
    Between,
    /// The format description came; the file's magic was not read yet.
    Magic,
    /// The current piece belongs to the file.
    Piece,
    /// The log ended.
    End,
}

/// A file of a server's binary log, as it is received.
#[derive(Debug)]
pub struct RemoteFile<'a> {
    files: &'a mut RemoteFiles,
}

/// The next bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePiece<'a> {
    /// Never empty.
    pub bytes: &'a [u8],
    /// Whether they end with an event: the part of the file read so far is then a log of its own.
    pub ends_event: bool,
}

impl RemoteFiles {
    /// Connects; the first file asked for also logs in and requests the dump.
    pub fn open(connect: &ConnectOptions, dump: DumpOptions) -> Result<Self> {
        Ok(RemoteFiles {
            log: RemoteLog::open(connect, dump)?,
            state: RemoteState::Between,
            consumed: 0,
            name: Vec::new(),
            given: false,
            rotate: Vec::new(),
            rotate_framing: Framing::new(),
        })
    }

    /// The connection's log: what it tells of the source.
    pub fn log(&self) -> &RemoteLog {
        &self.log
    }

    /// The next file, once its first event has arrived; `None` at the end of the log. The unread rest of the
    /// previous file is skipped.
    pub fn next_file(&mut self) -> Result<Option<RemoteFile<'_>>> {
        loop {
            match self.state {
                RemoteState::End => return Ok(None),
                RemoteState::Magic if !self.given => break,
                RemoteState::Between | RemoteState::Magic | RemoteState::Piece => self.advance()?,
            }
        }
        self.given = true;
        Ok(self.current_file())
    }

    /// The rotate event that the server sent before the file; it is in no file.
    ///
    /// # Errors
    ///
    /// Nothing was sent yet.
    pub fn rotate(&self) -> binlogz_binlog::Result<EventFrame<'_>> {
        let frame = self.rotate_framing.next_frame(&self.rotate)?;
        let missing =
            || BinlogError::Truncated { needed: HEADER_SIZE as u64, left: self.rotate.len() as u64 };
        frame.ok_or_else(missing)?.unchecked()
    }

    /// The file that [`RemoteFiles::next_file`] returned, until its end.
    pub fn current_file(&mut self) -> Option<RemoteFile<'_>> {
        let is_open = self.given && matches!(self.state, RemoteState::Magic | RemoteState::Piece);
        is_open.then_some(RemoteFile { files: self })
    }

    /// Goes on to the next piece of a file, or to its end.
    fn advance(&mut self) -> Result<()> {
        self.consumed = 0;
        self.state = loop {
            let Some(piece) = self.log.next_piece()? else { break RemoteState::End };
            match piece.header.event_type {
                EventType::FORMAT_DESCRIPTION if piece.begins => {
                    self.name.clear();
                    self.name.extend_from_slice(piece.name);
                    self.given = false;
                    break RemoteState::Magic;
                }
                EventType::ROTATE if !piece.is_stored() => {
                    self.rotate.clear();
                    self.rotate.extend_from_slice(piece.bytes);
                    self.rotate_framing = piece.framing;
                    break RemoteState::Between;
                }
                _ if !piece.is_stored() || self.state == RemoteState::Between => {}
                _ => break RemoteState::Piece,
            }
        };
        Ok(())
    }
}

impl RemoteFile<'_> {
    /// The file's name, without directory.
    pub fn name(&self) -> &[u8] {
        &self.files.name
    }

    /// The next bytes, until they are [taken](BufRead::consume); `None` at the end of the file.
    pub fn next_piece(&mut self) -> Result<Option<FilePiece<'_>>> {
        loop {
            match self.files.state {
                RemoteState::Magic if self.files.consumed < MAGIC.len() => {
                    let bytes = MAGIC.get(self.files.consumed..).unwrap_or_default();
                    return Ok(Some(FilePiece { bytes, ends_event: false }));
                }
                RemoteState::Magic => {
                    self.files.consumed = 0;
                    self.files.state = RemoteState::Piece;
                }
                RemoteState::Piece if self.left() > 0 => break,
                RemoteState::Piece => {
                    self.files.advance()?;
                    // The next file's, not this one's.
                    if self.files.state == RemoteState::Magic {
                        return Ok(None);
                    }
                }
                RemoteState::Between | RemoteState::End => return Ok(None),
            }
        }
        let Some(piece) = self.files.log.piece() else { return Ok(None) };
        let bytes = piece.bytes.get(self.files.consumed..).unwrap_or_default();
        Ok(Some(FilePiece { bytes, ends_event: piece.ends }))
    }

    /// Whether everything received was read: the next read waits.
    pub fn is_drained(&self) -> bool {
        self.left() == 0 && self.files.log.is_drained()
    }

    fn left(&self) -> usize {
        self.files.log.piece().map_or(0, |piece| piece.bytes.len()).saturating_sub(self.files.consumed)
    }
}

impl Read for RemoteFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for RemoteFile<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // The error stays what it is, inside the other one.
        Ok(self.next_piece().map_err(io::Error::other)?.map_or(&[], |piece| piece.bytes))
    }

    fn consume(&mut self, count: usize) {
        self.files.consumed += count;
    }
}
