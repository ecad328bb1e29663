//! Writes events with their positions and checksums, in chunks, to whoever reads the masked log, or to a spool.

use std::io;

use binlogz_binlog::frame::{encode_event, set_end_log_pos};
use binlogz_binlog::header::{END_LOG_POS_OFFSET, HEADER_SIZE};
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, HeaderFlags, MAGIC};
use binlogz_payload::Spool;
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

/// Why a chunk isn't passed on.
pub(super) enum SinkFailure {
    /// The reader is gone.
    ReaderGone,
    /// The spool's temporary file.
    Spill(io::Error),
}

/// Where chunks go.
enum ChunkTarget {
    Reader(Sender<MaskedChunk>),
    Spool(Spool),
}

/// The masked log as it is written.
pub(super) struct LogSink {
    to: ChunkTarget,
    chunk: Vec<u8>,
    offset: u64,
    checksum: ChecksumAlgorithm,
    /// Each transaction is passed on at once.
    is_live: bool,
}

impl LogSink {
    pub(super) fn new(to: Sender<MaskedChunk>, is_live: bool) -> Self {
        let (to, chunk) = (ChunkTarget::Reader(to), Vec::new());
        LogSink { to, chunk, offset: 0, checksum: ChecksumAlgorithm::NONE, is_live }
    }

    /// Goes on at this offset of a masked log, in spools.
    pub(super) fn resume(checksum: ChecksumAlgorithm, offset: u64) -> Self {
        let to = ChunkTarget::Spool(Spool::on_disk());
        LogSink { to, chunk: Vec::new(), offset, checksum, is_live: false }
    }

    /// Writes to this spool from now on.
    pub(super) fn write_to(&mut self, spool: Spool) {
        self.chunk.clear();
        self.to = ChunkTarget::Spool(spool);
    }

    /// What was written to the spool.
    pub(super) fn take_spool(&mut self) -> Result<Spool, SinkFailure> {
        self.pass_on()?;
        match std::mem::replace(&mut self.to, ChunkTarget::Spool(Spool::on_disk())) {
            ChunkTarget::Spool(spool) => Ok(spool),
            ChunkTarget::Reader(_) => Err(SinkFailure::ReaderGone),
        }
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
    pub(super) fn event(&mut self, header: &EventHeader, body: &[u8]) -> Result<(), SinkFailure> {
        self.offset += self.size_of(body);
        let is_artificial = header.flags.contains(HeaderFlags::ARTIFICIAL) && header.end_log_pos == 0;
        // As servers write positions beyond 4 GiB.
        let end_log_pos = if is_artificial { 0 } else { self.offset as u32 };
        self.chunk.extend(encode_event(EventHeader { end_log_pos, ..*header }, body, self.checksum));
        if self.chunk.len() >= CHUNK_SIZE { self.pass_on() } else { Ok(()) }
    }

    /// A transaction, or an event between two, is whole.
    pub(super) fn settle(&mut self) -> Result<(), SinkFailure> {
        if self.is_live { self.pass_on() } else { Ok(()) }
    }

    fn pass_on(&mut self) -> Result<(), SinkFailure> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        match &mut self.to {
            ChunkTarget::Reader(to) => {
                let chunk = std::mem::take(&mut self.chunk);
                to.send(MaskedChunk::Bytes(chunk)).map_err(|_| SinkFailure::ReaderGone)
            }
            ChunkTarget::Spool(spool) => {
                spool.append(&self.chunk).map_err(SinkFailure::Spill)?;
                self.chunk.clear();
                Ok(())
            }
        }
    }

    /// Ends the log. Of one that failed nothing more is passed on.
    pub(super) fn finish(mut self, failed: Option<String>) {
        let ended = match failed {
            None => self.pass_on().map(|()| MaskedChunk::End),
            Some(why) => Ok(MaskedChunk::Failed(why)),
        };
        if let (Ok(end), ChunkTarget::Reader(to)) = (ended, &self.to) {
            // A reader that is gone needs no end.
            let _ = to.send(end);
        }
    }
}
