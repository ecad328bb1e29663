//! A large transaction that is passed on while it is expanded.
//!
//! ```text
//! Begin     the room for the GTID event, which tells the length of its transaction and so is known last
//! Events…   events of the payload, without positions and checksums: whole ones, or the next bytes of one that is larger than a part
//! End       the GTID event
//! ```
//!
//! From 2^24 bytes on a length takes nine bytes whatever it is, so that the event's size is known before its
//! contents (an integer as in MySQL's protocol; that of a tagged GTID event has other sizes, and isn't passed on so).
//! What is smaller goes into the spool as a whole.

use std::io::Read;
use std::ops::Range;

use binlogz_binlog::{EventHeader, VerifiedChecksum};

use crate::error::Result;
use crate::rewritten::spool::Spool;
use crate::transaction::context::PositionRule;

/// Lengths from here on have the same size.
pub(crate) const PASSED_ON_FROM: u64 = 1 << 24;

/// Bytes passed on at once.
const PART_SIZE: usize = 256 << 10;

/// What a large transaction becomes, in the order in which it is found.
#[derive(Debug)]
pub enum ExpandedPart {
    /// A transaction begins.
    Begin {
        /// Events of the input before it, counted from the first byte of the piece, that stay as they are.
        before: Range<u64>,
        /// Size of its GTID event.
        gtid_size: usize,
    },
    /// The next of the events after its GTID event: their positions are their own places.
    Events(EventsPart),
    /// The transaction is whole.
    End {
        /// The GTID event.
        gtid: Vec<u8>,
        /// The position that the GTID event gets.
        positions: PositionRule,
        /// Proof that the payload was not damaged.
        verified: VerifiedChecksum,
    },
}

/// Events of a transaction, one after the other.
#[derive(Debug)]
pub struct EventsPart {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// Whether they begin and end with events. Otherwise they are bytes of one event.
    pub is_whole: bool,
}

/// Takes the parts; returns a buffer for the next, if it has one.
pub type PartSink<'a> = dyn FnMut(ExpandedPart) -> Result<Vec<u8>> + 'a;

/// Passes on what was expanded.
pub(crate) struct PartSender<'a> {
    pass_on: &'a mut PartSink<'a>,
    buffer: Vec<u8>,
    /// Bytes of whole events at the begin of the buffer.
    whole: usize,
    /// Whether the buffer begins inside an event.
    is_inside: bool,
    /// Bytes of the transaction's events so far; `None` between transactions, and while all of it is in the spool.
    passed: Option<u64>,
}

impl<'a> PartSender<'a> {
    pub(crate) fn new(pass_on: &'a mut PartSink<'a>) -> Self {
        PartSender { pass_on, buffer: Vec::new(), whole: 0, is_inside: false, passed: None }
    }

    /// Whether the events of the transaction are passed on.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.passed.is_some()
    }

    /// Begins a transaction with what is in the spool from `start` on.
    pub(crate) fn begin(
        &mut self,
        before: Range<u64>,
        gtid_size: usize,
        spool: &mut Spool,
        start: u64,
    ) -> Result<()> {
        self.buffer = (self.pass_on)(ExpandedPart::Begin { before, gtid_size })?;
        self.buffer.clear();
        (self.whole, self.is_inside) = (0, false);
        self.passed = Some(0);
        let events = start..spool.size();
        if let Some(mut events) = spool.in_memory(events.clone()) {
            while !events.is_empty() {
                let size = EventHeader::decode(events)?.event_size as usize;
                let (event, rest) = events.split_at_mut(size.clamp(1, events.len()));
                event.chunks(PART_SIZE).try_for_each(|bytes| self.append(bytes))?;
                self.end_event()?;
                events = rest;
            }
            spool.take_back(start);
            return Ok(());
        }
        let mut reader = spool.reader(events);
        let mut piece = vec![0; PART_SIZE];
        loop {
            let count = reader.read(&mut piece)?;
            if count == 0 {
                break;
            }
            self.append(piece.get(..count).unwrap_or_default())?;
        }
        spool.take_back(start);
        Ok(())
    }

    /// Appends bytes of an event.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > PART_SIZE {
            self.make_room(bytes.len())?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The event whose bytes were appended is whole.
    #[inline]
    pub(crate) fn end_event(&mut self) -> Result<()> {
        if self.is_inside {
            self.is_inside = false;
            return self.flush(self.buffer.len(), false);
        }
        self.whole = self.buffer.len();
        Ok(())
    }

    /// Passes on the whole events there are, and if then there is no room, the bytes of the one begun.
    #[cold]
    fn make_room(&mut self, size: usize) -> Result<()> {
        if self.whole > 0 {
            self.flush(self.whole, true)?;
        }
        if self.buffer.len() + size > PART_SIZE && !self.buffer.is_empty() {
            self.is_inside = true;
            self.flush(self.buffer.len(), false)?;
        }
        Ok(())
    }

    /// Passes on the first bytes of the buffer.
    fn flush(&mut self, size: usize, is_whole: bool) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.buffer);
        let rest = bytes.get(size..).unwrap_or_default().to_vec();
        bytes.truncate(size);
        if let Some(passed) = &mut self.passed {
            *passed += bytes.len() as u64;
        }
        self.buffer = (self.pass_on)(ExpandedPart::Events(EventsPart { bytes, is_whole }))?;
        self.buffer.clear();
        self.buffer.reserve(PART_SIZE);
        self.buffer.extend_from_slice(&rest);
        self.whole = 0;
        Ok(())
    }

    /// The last event was appended; returns the bytes of all events. `None`: the transaction is in the spool.
    pub(crate) fn finish_events(&mut self) -> Result<Option<u64>> {
        if self.is_open() {
            self.flush(self.buffer.len(), true)?;
        }
        Ok(self.passed)
    }

    /// Ends the transaction.
    pub(crate) fn end(
        &mut self,
        gtid: Vec<u8>,
        positions: PositionRule,
        verified: VerifiedChecksum,
    ) -> Result<()> {
        self.passed = None;
        (self.pass_on)(ExpandedPart::End { gtid, positions, verified }).map(drop)
    }
}
