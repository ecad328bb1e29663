//! Cuts a log into blocks of whole transactions; of whole events, if a transaction is larger than a block; of
//! bytes, if an event is larger than a block or no events can be found.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use binlogz_binlog::event::TableMapEvent;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{Boundary, EventHeader, EventType, MAGIC, TransactionBoundaryParser};

use crate::error::{Error, Result};
use crate::log::directory::{BlockDirectory, DirectoryWalk};
use crate::log::events::{self, TABLE_MAP_POST_HEADER, event_end};

/// The most plain bytes of a block.
pub(crate) const BLOCK_SIZE_MAX: usize = 32 << 20;

/// The most table maps that are passed to a block.
pub(crate) const MAPS_MAX: usize = 256;

/// A part of a log.
#[derive(Debug, Default)]
pub struct CutPiece {
    /// Where the part begins in the log, in bytes.
    pub offset: u64,
    /// Bytes of the part.
    pub log: Vec<u8>,
    /// Bodies of the earlier table maps of the transaction that it begins in.
    pub maps: Vec<Vec<u8>>,
    /// Whether it begins inside a transaction.
    pub continues: bool,
    /// Where the part begins in the log with its payloads, in bytes; `None`: unknown, or it had none.
    pub origin: Option<u64>,
    /// The part's transactions; `None`: they aren't told.
    pub directory: Option<BlockDirectory>,
    /// The block that it is what is left of; `None`: it is none, or not known.
    pub former: Option<FormerBlock>,
}

/// A block as it is packed in an object.
#[derive(Debug)]
pub struct FormerBlock {
    /// The packed bytes, of which the checksum was compared.
    pub packed: Vec<u8>,
    /// Size of the block in its log, in bytes.
    pub size: usize,
    /// Where it is, and which blocks it refers to; `None`: others may be better now.
    pub references: Option<FormerReferences>,
    /// What is taken over from it.
    pub reuse: BlockReuse,
}

/// How much of a packed block is taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockReuse {
    /// The code of columns that are as they were.
    #[default]
    Columns,
    /// All of it, if it gives the bytes of the piece: only positions moved.
    Whole,
    /// All of it. Later blocks may refer to its rows, so these have to be known.
    WholeReferred,
}

/// The blocks that a packed block refers to.
#[derive(Debug, Clone)]
pub struct FormerReferences {
    /// The name of its object.
    pub object: Arc<str>,
    /// The block's number there.
    pub number: u32,
    /// The numbers there of the blocks that it refers to.
    pub blocks: Vec<u32>,
}

/// Cuts the log that a reader gives.
#[derive(Debug)]
pub struct Cutter<R> {
    reader: R,
    size_max: usize,
    buffer: Vec<u8>,
    ended: bool,
    offset: u64,
    /// Bytes left of an event that began in an earlier piece.
    left_of_event: usize,
    lost: bool,
    assembler: TransactionBoundaryParser,
    maps: Vec<Vec<u8>>,
    /// Finds the transactions; `None` before the first part, which has the log's head.
    walk: Option<DirectoryWalk>,
    /// Where parts begin, the next one last, between two events.
    begins: Vec<u64>,
}

impl<R: Read> Cutter<R> {
    /// At the start of a log.
    pub fn new(reader: R) -> Self {
        Cutter::with_size(reader, BLOCK_SIZE_MAX)
    }

    /// A cutter at the start of a log, with blocks of at most `size_max` bytes.
    pub fn with_size(reader: R, size_max: usize) -> Self {
        Cutter {
            reader,
            size_max: size_max.clamp(HEADER_SIZE, BLOCK_SIZE_MAX),
            buffer: Vec::new(),
            ended: false,
            offset: 0,
            left_of_event: 0,
            lost: false,
            assembler: TransactionBoundaryParser::new(),
            maps: Vec::new(),
            walk: None,
            begins: Vec::new(),
        }
    }

    /// Parts begin at these offsets, in order and between two events, unless they would be larger than blocks may be.
    #[must_use]
    pub fn beginning_at(self, mut begins: Vec<u64>) -> Self {
        begins.reverse();
        Cutter { begins, ..self }
    }

    /// The next part; `None` at the end.
    pub fn next_piece(&mut self) -> Result<Option<CutPiece>> {
        let part_size = self.size_to_begin();
        self.fill(part_size.unwrap_or(self.size_max))?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let maps = self.maps.clone();
        let continues = self.assembler.is_open() || self.left_of_event > 0;
        let size = self.size_of_piece(part_size);
        let rest = self.buffer.split_off(size);
        let log = std::mem::replace(&mut self.buffer, rest);
        let offset = self.offset;
        self.offset += size as u64;
        let walk = self.walk.get_or_insert_with(|| DirectoryWalk::new(&events::head(&log)));
        let directory = walk.take(&log, offset, continues);
        Ok(Some(CutPiece { offset, log, maps, continues, origin: None, directory, former: None }))
    }

    /// How many bytes the next part has by where the one after it begins.
    fn size_to_begin(&mut self) -> Option<usize> {
        while self.begins.pop_if(|begin| *begin <= self.offset).is_some() {}
        let size = usize::try_from(self.begins.last()? - self.offset).ok()?;
        (size <= BLOCK_SIZE_MAX && !self.lost && self.left_of_event == 0).then_some(size)
    }

    fn fill(&mut self, size: usize) -> Result<()> {
        while !self.ended && self.buffer.len() < size {
            let have = self.buffer.len();
            self.buffer.resize(size, 0);
            match self.reader.read(self.buffer.get_mut(have..).unwrap_or_default()) {
                Ok(count) => {
                    self.ended = count == 0;
                    self.buffer.truncate(have + count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => self.buffer.truncate(have),
                Err(error) => return Err(Error::io("read the log")(error)),
            }
        }
        Ok(())
    }

    /// How much of the buffer is the next piece, which may be told.
    fn size_of_piece(&mut self, part_size: Option<usize>) -> usize {
        if self.lost {
            return self.buffer.len();
        }
        if self.left_of_event > 0 {
            let size = self.left_of_event.min(self.buffer.len());
            self.left_of_event -= size;
            return size;
        }
        let mut at = if self.offset == 0 && self.buffer.starts_with(&MAGIC) { MAGIC.len() } else { 0 };
        // After the last whole transaction, with what was known there.
        let mut whole: Option<(usize, TransactionBoundaryParser)> = None;
        while let Some(end) = event_end(&self.buffer, at) {
            self.feed(at, end);
            at = end;
            if part_size == Some(at) {
                if !self.assembler.is_open() {
                    self.maps.clear();
                }
                return at;
            }
            if !self.assembler.is_open() {
                whole = Some((at, self.assembler.clone()));
            }
        }
        if self.ended {
            // This is the rest of the log: whole or not, nothing follows.
            return self.buffer.len();
        }
        match whole {
            Some((size, assembler)) => {
                self.assembler = assembler;
                self.maps.clear();
                size
            }
            None if at > MAGIC.len() => at,
            None => {
                self.not_whole(at);
                self.buffer.len()
            }
        }
    }

    /// Handles an event that is larger than a block, or bytes that are not an event.
    fn not_whole(&mut self, at: usize) {
        let header = self.buffer.get(at..).and_then(|bytes| EventHeader::decode(bytes).ok());
        match header {
            Some(header) if header.event_size as usize >= HEADER_SIZE => {
                self.left_of_event = header.event_size as usize - (self.buffer.len() - at);
            }
            _ => self.lost = true,
        }
    }

    fn feed(&mut self, at: usize, end: usize) {
        let Some(event) = self.buffer.get(at..end) else { return };
        let Ok(header) = EventHeader::decode(event) else { return };
        let body = events::body(event);
        let placement = self.assembler.feed(&header, body);
        if placement.boundary != Boundary::Inside {
            self.maps.clear();
        }
        if header.event_type == EventType::TABLE_MAP && self.maps.len() < MAPS_MAX {
            let body = Some(body).filter(|body| TableMapEvent::decode(body, TABLE_MAP_POST_HEADER).is_ok());
            if let Some(body) = body.filter(|body| !self.maps.iter().any(|map| map == body)) {
                self.maps.push(body.to_vec());
            }
        }
    }
}
