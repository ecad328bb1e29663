//! Transactions into payloads.
//!
//! ```text
//! in   GTID | BEGIN | table map | rows | ... | XID          each with its checksum
//! out  GTID'| Transaction_payload( zstd( BEGIN | table map | rows | ... | XID ) )
//! ```
//!
//! Inside, events have no checksum and position 0. The payload event has timestamp and server id of
//! the transaction's last event, no flags; the GTID event gets the new length of the transaction.
//! What does not qualify goes out as it came.

use std::io::Read;
use std::ops::Range;

use binlogz_binlog::event::transaction_payload::PAYLOAD_SIZE_MAX;
use binlogz_binlog::transaction::TransactionContent;
use binlogz_binlog::{EventHeader, EventParser, EventVisitor};

use crate::candidate::Candidate;
use crate::compressor::Compressor;
use crate::eligibility::Ineligible;
use crate::error::{Error, Result};
use crate::level::CompressionLevel;
use crate::payload_event::{Inner, PayloadEvent};
use crate::rewritten::{LogContext, Place, Positions, Rewritten};
use crate::scan::{Scanner, Transactions};
use crate::spool::Spool;

/// Bytes of events collected before they go to the compressor.
pub(crate) const STAGE_SIZE: usize = 128 << 10;

/// How to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompressOptions {
    /// zstd's level.
    pub level: CompressionLevel,
    /// Whether frames are marked as made by binlogz, with zstd's content checksum. The server's
    /// own frames never are.
    pub mark_frames: bool,
    /// Whether to note where each transaction was and where it goes.
    pub marks: bool,
}

/// Compresses transactions, one piece of a log after the other, with one context.
#[derive(Debug)]
pub struct TransactionCompressor {
    options: CompressOptions,
    compressor: Compressor,
    /// Buffers that are used again for each transaction.
    inner: Vec<u8>,
    payload: Vec<u8>,
    scratch: Vec<u8>,
}

impl TransactionCompressor {
    /// A compressor; one a thread.
    pub fn new(options: CompressOptions) -> Result<Self> {
        let mut compressor = Compressor::new(options.level)?;
        compressor.mark_frames(options.mark_frames)?;
        Ok(TransactionCompressor {
            options,
            compressor,
            inner: Vec::new(),
            payload: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Compresses the transactions of a batch. What is made goes into `spool`.
    ///
    /// # Errors
    ///
    /// Bad bytes, with their offset; a spool that can't spill.
    pub fn batch(&mut self, batch: &[u8], place: Place, spool: Spool) -> Result<Rewritten> {
        let Place { offset, context, announced } = place;
        let out = Rewritten::new(offset, context, spool, self.options.marks);
        let handler = InMemory {
            compressor: &mut self.compressor,
            inner: Inner::new(&mut self.inner, context),
            payload: &mut self.payload,
            scratch: &mut self.scratch,
            announced,
            out,
        };
        let mut scanner = Scanner::new(handler, context);
        let mut parser = EventParser::new(context.framing, offset);
        parser.push(batch, &mut scanner)?;
        parser.finish()?;
        Ok(scanner.finish()?.out)
    }

    /// Compresses transactions that are not held in memory. `reader` gives any range of the piece,
    /// counted from its first byte; it has `size` bytes.
    ///
    /// # Errors
    ///
    /// As for [`TransactionCompressor::batch`], and a reader that fails.
    pub fn large<R: Read>(
        &mut self,
        mut reader: impl FnMut(Range<u64>) -> std::io::Result<R>,
        size: u64,
        place: Place,
        spool: Spool,
    ) -> Result<Rewritten> {
        let Place { offset, context, announced } = place;
        let mut out = Rewritten::new(offset, context, spool, self.options.marks);
        let mut buffer = vec![0; STAGE_SIZE];
        // The first time through: what is there, and is it to be compressed?
        let mut scanner = Scanner::new(Findings::default(), context);
        let mut parser = EventParser::new(context.framing, offset);
        push_all(reader(0..size)?, &mut buffer, &mut parser, &mut scanner)?;
        parser.finish()?;
        let findings = scanner.finish()?;
        for _ in 0..findings.without_gtid {
            out.tally.count_left(Ineligible::NoGtid);
        }
        for found in findings.found {
            let (candidate, content, whole) = match found {
                Found::Outside(log) => {
                    out.plain(log);
                    continue;
                }
                Found::Transaction(candidate, content, whole) => (candidate, content, whole),
            };
            match candidate.check(&content, whole, announced, context, &mut self.scratch)? {
                Ok(positions) => {
                    // The second time: its events into the compressor.
                    let log = candidate.range();
                    let bytes = reader(log.start - offset..log.end - offset)?;
                    self.stream(&candidate, bytes, &mut buffer, positions, &mut out)?;
                }
                Err(reason) => out.leave(&candidate, reason)?,
            }
        }
        Ok(out)
    }

    fn stream(
        &mut self,
        candidate: &Candidate,
        bytes: impl Read,
        buffer: &mut [u8],
        positions: [Positions; 2],
        out: &mut Rewritten,
    ) -> Result<()> {
        let payload = PayloadEvent::begin(&mut out.spool)?;
        self.compressor.begin(candidate.inner_size)?;
        let sink = |bytes: &[u8]| self.compressor.write(bytes, &mut out.spool);
        feed(candidate, bytes, out.context, &mut self.inner, buffer, sink)?;
        let payload_size = self.compressor.finish(&mut out.spool)?;
        if payload_size > PAYLOAD_SIZE_MAX {
            return out.leave(candidate, Ineligible::TooLarge);
        }
        payload.finish(candidate, positions, payload_size, &mut self.scratch, out)
    }
}

/// Reads all of `reader` into a parser.
pub(crate) fn push_all<V: EventVisitor<Error = Error>>(
    mut reader: impl Read,
    buffer: &mut [u8],
    parser: &mut EventParser,
    visitor: &mut V,
) -> Result<()> {
    loop {
        match reader.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => parser.push(buffer.get(..count).unwrap_or_default(), visitor)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Compresses transactions as they go by.
struct InMemory<'a> {
    compressor: &'a mut Compressor,
    inner: Inner<'a>,
    payload: &'a mut Vec<u8>,
    scratch: &'a mut Vec<u8>,
    announced: bool,
    out: Rewritten,
}

impl Transactions for InMemory<'_> {
    #[inline]
    fn event(&mut self, header: &EventHeader) {
        self.inner.event(header);
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.inner.bytes.extend_from_slice(bytes);
    }

    fn transaction(&mut self, candidate: Candidate, content: &TransactionContent, whole: bool) -> Result<()> {
        match candidate.check(content, whole, self.announced, self.out.context, self.scratch)? {
            Ok(positions) => {
                self.payload.clear();
                self.compressor.compress(self.inner.bytes, self.payload)?;
                // A batch is far below the 1 GiB that a payload may have.
                let event = PayloadEvent::begin(&mut self.out.spool)?;
                self.out.spool.append(self.payload)?;
                event.finish(
                    &candidate,
                    positions,
                    self.payload.len() as u64,
                    self.scratch,
                    &mut self.out,
                )?;
            }
            Err(reason) => self.out.leave(&candidate, reason)?,
        }
        self.inner.bytes.clear();
        Ok(())
    }

    fn without_gtid(&mut self) {
        self.out.tally.count_left(Ineligible::NoGtid);
    }

    fn outside(&mut self, log: Range<u64>) {
        self.out.plain(log);
    }
}

/// What a piece holds that can't be kept in memory.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<Found>,
    pub(crate) without_gtid: u64,
}

pub(crate) enum Found {
    Outside(Range<u64>),
    Transaction(Candidate, TransactionContent, bool),
}

impl Transactions for Findings {
    fn event(&mut self, _: &EventHeader) {}

    fn body(&mut self, _: &[u8]) {}

    fn transaction(&mut self, candidate: Candidate, content: &TransactionContent, whole: bool) -> Result<()> {
        self.found.push(Found::Transaction(candidate, *content, whole));
        Ok(())
    }

    fn without_gtid(&mut self) {
        self.without_gtid += 1;
    }

    fn outside(&mut self, log: Range<u64>) {
        match self.found.last_mut() {
            Some(Found::Outside(last)) if last.end == log.start => last.end = log.end,
            _ => self.found.push(Found::Outside(log)),
        }
    }
}

/// Hands the events of a transaction to `sink` as they stand in a payload, in pieces. `bytes` reads
/// the transaction.
pub(crate) fn feed(
    candidate: &Candidate,
    bytes: impl Read,
    context: LogContext,
    stage: &mut Vec<u8>,
    buffer: &mut [u8],
    sink: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut feed = Feed { sink, stage: Inner::new(stage, context), behind_gtid: false };
    let mut parser = EventParser::unchecked(context.framing, candidate.range().start);
    push_all(bytes, buffer, &mut parser, &mut feed)?;
    feed.flush()
}

/// Collects the events behind a GTID event and hands them on.
struct Feed<'a, S> {
    sink: S,
    stage: Inner<'a>,
    behind_gtid: bool,
}

impl<S: FnMut(&[u8]) -> Result<()>> Feed<'_, S> {
    fn flush(&mut self) -> Result<()> {
        (self.sink)(self.stage.bytes)?;
        self.stage.bytes.clear();
        Ok(())
    }
}

impl<S: FnMut(&[u8]) -> Result<()>> EventVisitor for Feed<'_, S> {
    type Error = Error;

    fn begin(&mut self, _: u64, header: &EventHeader) -> Result<()> {
        if self.behind_gtid {
            self.stage.event(header);
        }
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.behind_gtid {
            return Ok(());
        }
        if self.stage.bytes.len() + bytes.len() > STAGE_SIZE {
            self.flush()?;
        }
        self.stage.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.behind_gtid = true;
        Ok(())
    }
}

impl Rewritten {
    /// A transaction stays as it is.
    fn leave(&mut self, candidate: &Candidate, reason: Ineligible) -> Result<()> {
        let first_span = self.spans.len();
        let framing = self.context.framing;
        self.tally.count_left(reason);
        self.plain(candidate.range());
        self.mark(candidate.range(), first_span, || candidate.gtid.gtid(framing))
    }
}
