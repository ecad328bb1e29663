//! Writes events with their positions and checksums, in chunks, to whoever reads the masked log.

use binlogz_binlog::frame::{encode_event, set_end_log_pos};
use binlogz_binlog::header::{END_LOG_POS_OFFSET, HEADER_SIZE};
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, HeaderFlags, MAGIC};
use crossbeam_channel::Sender;

use crate::error::ExitError;

/// Bytes that are passed on together.
const CHUNK_SIZE: usize = 256 << 10;

/// What the reader of a masked log gets.
pub(super) enum MaskedChunk {
    Bytes(Vec<u8>),
    /// The log is whole.
    End,
    Failed(String),
}

/// The reader is gone.
pub(super) struct ReaderGone;

/// The masked log as it is written.
pub(super) struct LogSink {
    to: Sender<MaskedChunk>,
    chunk: Vec<u8>,
    offset: u64,
    checksum: ChecksumAlgorithm,
    /// Each transaction is passed on at once.
    is_live: bool,
}

impl LogSink {
    pub(super) fn new(to: Sender<MaskedChunk>, is_live: bool) -> Self {
        LogSink { to, chunk: Vec::new(), offset: 0, checksum: ChecksumAlgorithm::NONE, is_live }
    }

    /// Bytes of an event with such a body.
    pub(super) fn size_of(&self, body: &[u8]) -> u64 {
        (HEADER_SIZE + body.len() + self.checksum.size()) as u64
    }

    pub(super) fn checksum(&self) -> ChecksumAlgorithm {
        self.checksum
    }

    /// Begins a log, or goes on with another format description.
    pub(super) fn start(
        &mut self,
        begins: bool,
        mut event: Vec<u8>,
        checksum: ChecksumAlgorithm,
        own_checksum: ChecksumAlgorithm,
    ) -> Result<(), ExitError> {
        if begins {
            self.chunk.extend(MAGIC);
            self.offset = MAGIC.len() as u64;
        }
        self.checksum = checksum;
        self.offset += event.len() as u64;
        let position = event.get(END_LOG_POS_OFFSET..END_LOG_POS_OFFSET + 4);
        if position.is_some_and(|position| position != [0; 4]) {
            set_end_log_pos(&mut event, self.offset as u32, own_checksum)?;
        }
        self.chunk.append(&mut event);
        Ok(())
    }

    /// Writes an event; its header's size and position are made anew.
    pub(super) fn event(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), ReaderGone> {
        self.offset += self.size_of(body);
        let is_artificial = header.flags.contains(HeaderFlags::ARTIFICIAL) && header.end_log_pos == 0;
        // As servers write positions beyond 4 GiB.
        let end_log_pos = if is_artificial { 0 } else { self.offset as u32 };
        self.chunk.extend(encode_event(EventHeader { end_log_pos, ..*header }, body, self.checksum));
        if self.chunk.len() >= CHUNK_SIZE { self.pass_on() } else { Ok(()) }
    }

    /// A transaction, or an event between two, is whole.
    pub(super) fn settle(&mut self) -> Result<(), ReaderGone> {
        if self.is_live { self.pass_on() } else { Ok(()) }
    }

    fn pass_on(&mut self) -> Result<(), ReaderGone> {
        let chunk = std::mem::take(&mut self.chunk);
        if chunk.is_empty() {
            return Ok(());
        }
        self.to.send(MaskedChunk::Bytes(chunk)).map_err(|_| ReaderGone)
    }

    /// Ends the log. Of one that failed nothing more is passed on.
    pub(super) fn finish(mut self, failed: Option<String>) {
        let ended = match failed {
            None => self.pass_on().map(|()| MaskedChunk::End),
            Some(why) => Ok(MaskedChunk::Failed(why)),
        };
        if let Ok(end) = ended {
            // A reader that is gone needs no end.
            let _ = self.to.send(end);
        }
    }
}
