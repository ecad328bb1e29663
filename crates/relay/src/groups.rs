//! Finds the transactions in what is durable of a stored file.
//!
//! Reads headers, GTID events and the beginnings of statements; bodies are passed over. A transaction is told once
//! it is durable to its last byte.

use std::io::Read;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{EventFrame, EventHeader, EventType, Framing, TransactionAssembler};
use binlogz_store::LogReader;

use crate::error::{Error, Result};

/// Bytes read at a time.
const READ_SIZE: usize = 256 << 10;
/// More than any GTID event; 9.7 writes at most 150 bytes.
const GTID_EVENT_SIZE_MAX: u32 = 64 << 10;

/// A transaction, or an event between transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    /// Where it stands in the file.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Its GTID, if it has one.
    pub(crate) gtid: Option<Gtid>,
    /// The header of its first event.
    pub(crate) first: EventHeader,
    /// Whether it is a transaction.
    pub(crate) is_transaction: bool,
}

/// Goes through a file.
#[derive(Debug)]
pub(crate) struct GroupWalker {
    reader: LogReader,
    framing: Framing,
    /// What was read: `buffer` begins at `buffer_offset` of the file.
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// Where the next event begins.
    offset: u64,
    assembler: TransactionAssembler,
    open: Option<Group>,
}

impl GroupWalker {
    /// Begins at `offset`, behind the format description.
    pub(crate) fn new(reader: LogReader, framing: Framing, offset: u64) -> Self {
        GroupWalker {
            reader,
            framing,
            buffer: Vec::new(),
            buffer_offset: offset,
            offset,
            assembler: TransactionAssembler::new(),
            open: None,
        }
    }

    /// The next one; `None`: it is not durable, or the file ends.
    pub(crate) fn next(&mut self) -> Result<Option<Group>> {
        while let Some(header) = self.header()? {
            let end = self.offset + u64::from(header.event_size);
            let wanted = match header.event_type {
                EventType::QUERY => header.event_size.min((HEADER_SIZE + QUERY_PREFIX_SIZE_MAX) as u32),
                event_type if event_type.is_gtid() && header.event_size <= GTID_EVENT_SIZE_MAX => {
                    header.event_size
                }
                _ => HEADER_SIZE as u32,
            };
            if self.reader.end()? < end {
                return Ok(None);
            }
            let Some(event) = self.peek(wanted as usize)? else { return Ok(None) };
            let body = event.get(HEADER_SIZE..).unwrap_or_default().to_vec();
            let gtid = match header.event_type.is_gtid() {
                true => {
                    let event = event.to_vec();
                    let frame = EventFrame::from_checked(&event, self.framing.checksum().size())?;
                    AnyGtidEvent::decode_frame(&frame)?.and_then(|event| event.gtid())
                }
                false => None,
            };
            let was_open = self.assembler.is_open();
            self.assembler.feed(&header, &body);
            let begin = self.offset;
            self.offset = end;
            let group =
                self.open.get_or_insert(Group { begin, end, gtid, first: header, is_transaction: false });
            group.end = end;
            group.is_transaction |= was_open || self.assembler.is_open();
            if !self.assembler.is_open() {
                return Ok(self.open.take());
            }
        }
        Ok(None)
    }

    /// Where the next event begins; the file is whole if it ends there.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// A transaction that the source never ended: its file goes no further.
    pub(crate) fn left(&mut self) -> Option<Group> {
        self.assembler = TransactionAssembler::new();
        self.open.take()
    }

    /// How far the file can be read.
    pub(crate) fn end(&self) -> Result<u64> {
        Ok(self.reader.end()?)
    }

    fn header(&mut self) -> Result<Option<EventHeader>> {
        let (offset, framing) = (self.offset, self.framing);
        let Some(bytes) = self.peek(HEADER_SIZE)? else { return Ok(None) };
        let at = |error: binlogz_binlog::Error| error.at(offset, None);
        let header = EventHeader::decode(bytes).map_err(at)?;
        framing.check_header(&header).map_err(at)?;
        Ok(Some(header))
    }

    /// The next bytes; `None`: they are not there yet.
    fn peek(&mut self, size: usize) -> Result<Option<&[u8]>> {
        let held = |walker: &Self| {
            let skip = usize::try_from(walker.offset.checked_sub(walker.buffer_offset)?).ok()?;
            (walker.buffer.len() >= skip + size).then_some(skip)
        };
        if held(self).is_none() {
            self.fill()?;
        }
        Ok(held(self).and_then(|skip| self.buffer.get(skip..skip + size)))
    }

    /// Reads from the next event on.
    fn fill(&mut self) -> Result<()> {
        self.buffer.resize(READ_SIZE, 0);
        self.buffer_offset = self.offset;
        self.reader.seek_to(self.offset);
        let mut size = 0;
        while let Some(room) = self.buffer.get_mut(size..).filter(|room| !room.is_empty()) {
            match self.reader.read(room).map_err(Error::io("read a stored log"))? {
                0 => break,
                count => size += count,
            }
        }
        self.buffer.truncate(size);
        Ok(())
    }
}
