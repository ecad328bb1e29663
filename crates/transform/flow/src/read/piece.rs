//! The pieces that the [batcher](super::batcher) cuts a log into.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::{Error, Framing, Result, VerifiedFrame};
use binlogz_payload::{LogContext, Spool};

use super::input::{PlacesReader, ReadAt};

/// Where a batch may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchUnit {
    /// Transactions: each begins with its GTID event.
    Transaction,
    /// Events.
    Event,
}

/// How large batches are, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize {
    /// A batch ends with the first unit that brings it to this size.
    pub target: usize,
    /// A unit above this size is not held in memory.
    pub max: usize,
}

/// A piece of a log.
#[derive(Debug)]
pub enum LogPiece {
    /// A log, or another format description in it, begins.
    Start(LogStart),
    /// Whole events, one after the other.
    Batch(Batch),
    /// A transaction (or event) too large to hold.
    Large(LargeUnit),
    /// The log is in use and ends inside an event.
    Cut(CutEvent),
}

/// A format description.
#[derive(Debug)]
pub struct LogStart {
    /// Where the event begins: 4, or later in relay logs.
    pub offset: u64,
    /// Whether the magic precedes it.
    pub magic: bool,
    /// The whole event, verified.
    pub event: Vec<u8>,
    /// The event decoded.
    pub description: FormatDescription,
    /// The context that it sets for the events that follow.
    pub context: LogContext,
}

impl LogStart {
    /// The event as a frame.
    ///
    /// # Errors
    ///
    /// None: it was read before.
    pub fn frame(&self) -> Result<VerifiedFrame<'_>> {
        let cut = Error::Truncated { needed: self.event.len() as u64, left: 0 };
        Framing::new().next_frame(&self.event)?.ok_or(cut)?.verify()
    }
}

/// Whole events in memory.
#[derive(Debug)]
pub struct Batch {
    /// The events.
    pub bytes: Vec<u8>,
    /// Offset of the first one in its log.
    pub offset: u64,
    /// How to read them.
    pub context: LogContext,
    /// Where each event begins in the bytes, if the log is cut between events ([`BatchUnit::Event`]).
    pub(crate) starts: Vec<u32>,
    /// Whether a payload, or a compressed event of MariaDB, is among them.
    pub(crate) has_payloads: bool,
}

/// A unit too large to hold in memory.
#[derive(Debug)]
pub struct LargeUnit {
    /// Offset of its first event in its log.
    pub offset: u64,
    /// Bytes of all its events.
    pub size: u64,
    /// How to read them.
    pub context: LogContext,
    pub(super) source: LargeSource,
}

pub(super) enum LargeSource {
    Places { places: Arc<dyn ReadAt>, offset: u64 },
    Spool(Spool),
}

impl std::fmt::Debug for LargeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LargeSource::Places { .. } => "LargeSource::Places",
            LargeSource::Spool(_) => "LargeSource::Spool",
        })
    }
}

impl LargeSource {
    /// Keeps bytes that can't be read again.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            LargeSource::Places { .. } => Ok(()),
            LargeSource::Spool(spool) => spool.write_all(bytes),
        }
    }
}

impl LargeUnit {
    /// Reads a range of its bytes, counted from its first one.
    pub fn reader(&self, range: Range<u64>) -> Box<dyn Read + '_> {
        let end = range.end.min(self.size);
        match &self.source {
            LargeSource::Places { places, offset } => Box::new(PlacesReader {
                places: places.as_ref(),
                offset: offset + range.start,
                left: end.saturating_sub(range.start),
            }),
            LargeSource::Spool(spool) => Box::new(spool.reader(range.start..end)),
        }
    }
}

/// The end of a log that is still being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutEvent {
    /// Where the incomplete event begins.
    pub offset: u64,
    /// How many bytes of it are there; they are not in the output.
    pub size: u64,
}
