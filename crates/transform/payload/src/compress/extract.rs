//! Transactions as the server's compressor gets them, without compressing anything: for [`crate::compress`],
//! and for measuring.
//!
//! The contents of a payload are passed on byte for byte, with the size it would take in the log once
//! compressed ([`TransactionSize::compressed`]); a transaction that stays plain comes with the reason.

use std::io::Read;
use std::ops::Range;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::event::transaction_payload::PAYLOAD_SIZE_MAX;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::transaction::TransactionContent;
use binlogz_binlog::{EventHeader, EventParser, Framing, VerifiedChecksum};

use crate::compress::feed::{STAGE_SIZE, feed, push_all};
use crate::compress::payload_event::{InnerEvents, compressed_size};
use crate::error::Result;
use crate::transaction::candidate::{Candidate, HeldGtid};
use crate::transaction::context::{LogContext, PieceContext, PositionRule};
use crate::transaction::eligibility::Ineligible;
use crate::transaction::scan::{ScanHandler, Scanner};

const MICROSECONDS: u64 = 1_000_000;

/// Transactions up to this size are passed on in memory, even if their piece is not held.
const HELD_MAX: u64 = 1 << 20;

/// Receives the transactions that a [`TransactionExtractor`] finds.
pub trait Extraction {
    /// A transaction that began with a GTID event.
    ///
    /// # Errors
    ///
    /// An error of the extraction's own, which ends it.
    fn transaction(&mut self, transaction: ExtractedTransaction<'_>) -> Result<()>;

    /// Events outside of such transactions, by their place in the log.
    fn outside(&mut self, log: Range<u64>);

    /// Tells that an event ended a transaction that has no GTID event.
    fn without_gtid(&mut self);
}

/// A transaction.
pub struct ExtractedTransaction<'a> {
    /// Where the transaction begins in its log, in bytes; in an expanded piece, where it would begin if only that piece
    /// were expanded.
    pub offset: u64,
    pub(crate) candidate: &'a Candidate,
    /// The positions of the new events if it is to be compressed, otherwise the reason why not.
    pub(crate) checked: Result<[PositionRule; 2], Ineligible>,
    framing: Framing,
    pub(crate) events: EventBytes<'a>,
    pub(crate) scratch: &'a mut Vec<u8>,
}

/// Passes bytes on, piece by piece.
type Sink<'s> = &'s mut dyn FnMut(&[u8]) -> Result<()>;

/// The bytes of a transaction's events, as they are in a payload, without checksums: damage would be hidden.
pub(crate) enum EventBytes<'a> {
    Held(&'a [u8], VerifiedChecksum),
    Read(&'a mut dyn FnMut(Sink<'_>) -> Result<VerifiedChecksum>),
}

impl std::fmt::Debug for ExtractedTransaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extracted")
            .field("offset", &self.offset)
            .field("left", &self.left())
            .finish_non_exhaustive()
    }
}

impl ExtractedTransaction<'_> {
    /// Why it would stay as it is; `None` if it would be compressed.
    pub fn left(&self) -> Option<Ineligible> {
        self.checked.as_ref().err().copied()
    }

    /// The body of its GTID event: identifies it, wherever it is and in whatever form.
    pub fn gtid_event(&self) -> &[u8] {
        self.candidate.gtid.event.get(HEADER_SIZE..).unwrap_or_default()
    }

    /// Bytes that it takes in the log unchanged, including GTID event, headers and checksums.
    pub fn plain_size(&self) -> u64 {
        self.candidate.range().end - self.offset
    }

    /// Bytes that the compressor gets: all events after the GTID event, without checksums.
    pub fn inner_size(&self) -> u64 {
        self.candidate.inner_size
    }

    /// The bytes that the compressor gets, if they are held in memory: those of a transaction that would be compressed.
    pub fn held(&self) -> Option<&[u8]> {
        match self.events {
            EventBytes::Held(bytes, _) => Some(bytes),
            EventBytes::Read(_) => None,
        }
    }

    /// Passes those bytes on in pieces, whether they are held or not.
    ///
    /// # Errors
    ///
    /// A log that can't be read; what `sink` fails with.
    pub fn read(&mut self, sink: Sink<'_>) -> Result<()> {
        match &mut self.events {
            EventBytes::Held(bytes, _) => bytes.chunks(STAGE_SIZE).try_for_each(sink),
            EventBytes::Read(read) => read(sink).map(drop),
        }
    }

    /// Bytes that it takes in the log with a payload of this size; `None` if no event can hold it.
    ///
    /// # Errors
    ///
    /// A GTID event that can't be read.
    pub fn compressed_size(&mut self, payload_size: u64) -> Result<Option<u64>> {
        let Candidate { gtid, inner_size, .. } = self.candidate;
        size_with(gtid, *inner_size, payload_size, self.framing, self.scratch)
    }

    /// The sizes of this transaction, to compute its compressed size in a later call.
    pub fn size(&self) -> TransactionSize {
        TransactionSize {
            gtid: self.candidate.gtid.clone(),
            inner_size: self.candidate.inner_size,
            framing: self.framing,
        }
    }

    /// When it was committed or, if the log doesn't say, begun: microseconds since 1970.
    ///
    /// # Errors
    ///
    /// A GTID event that can't be read.
    pub fn timestamp(&self) -> Result<u64> {
        let frame = self.candidate.gtid.frame(self.framing)?;
        let gtid = AnyGtidEvent::decode_frame(&frame)?;
        let commit = gtid.and_then(|gtid| Some(gtid.commit_timestamps()?.immediate));
        Ok(commit.unwrap_or(u64::from(self.candidate.gtid.header.timestamp) * MICROSECONDS))
    }
}

/// A transaction's compressed size; see [`ExtractedTransaction::size`].
#[derive(Debug, Clone)]
pub struct TransactionSize {
    gtid: HeldGtid,
    inner_size: u64,
    framing: Framing,
}

impl TransactionSize {
    /// As [`ExtractedTransaction::compressed_size`].
    ///
    /// # Errors
    ///
    /// A GTID event that can't be read.
    pub fn compressed(&self, payload_size: u64) -> Result<Option<u64>> {
        size_with(&self.gtid, self.inner_size, payload_size, self.framing, &mut Vec::new())
    }
}

fn size_with(
    gtid: &HeldGtid,
    inner_size: u64,
    payload_size: u64,
    framing: Framing,
    scratch: &mut Vec<u8>,
) -> Result<Option<u64>> {
    if payload_size > PAYLOAD_SIZE_MAX {
        return Ok(None);
    }
    compressed_size(gtid, inner_size, payload_size, framing, scratch).map(Some)
}

/// Finds transactions, one piece of a log after the other.
#[derive(Debug, Default)]
pub struct TransactionExtractor {
    /// Buffers reused for each transaction.
    inner: Vec<u8>,
    held: Vec<u8>,
    scratch: Vec<u8>,
}

impl TransactionExtractor {
    /// Makes an extractor; each thread has one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes through the transactions of a batch.
    ///
    /// # Errors
    ///
    /// Bad bytes, with their offset; what `extraction` fails with.
    pub fn batch(
        &mut self,
        batch: &[u8],
        place: PieceContext,
        extraction: &mut impl Extraction,
    ) -> Result<()> {
        let PieceContext { offset, context, announced } = place;
        let handler = InMemory {
            inner: InnerEvents::new(&mut self.inner, context),
            scratch: &mut self.scratch,
            context,
            announced,
            extraction,
        };
        let mut scanner = Scanner::new(handler, context);
        let mut parser = EventParser::new(context.framing, offset);
        parser.push(batch, &mut scanner)?;
        parser.finish()?;
        scanner.finish().map(drop)
    }

    /// Goes through transactions that are not held in memory. `reader` returns any range of the piece,
    /// counted from its first byte; the piece has `size` bytes.
    ///
    /// # Errors
    ///
    /// As for [`TransactionExtractor::batch`], and a reader that fails.
    pub fn large<R: Read>(
        &mut self,
        mut reader: impl FnMut(Range<u64>) -> std::io::Result<R>,
        size: u64,
        place: PieceContext,
        extraction: &mut impl Extraction,
    ) -> Result<()> {
        let PieceContext { offset, context, announced } = place;
        let mut buffer = vec![0; STAGE_SIZE];
        // The first pass: what is there, and is it to be compressed?
        let mut scanner = Scanner::new(Findings::default(), context);
        let mut parser = EventParser::new(context.framing, offset);
        push_all(reader(0..size)?, &mut buffer, &mut parser, &mut scanner)?;
        parser.finish()?;
        let findings = scanner.finish()?;
        for _ in 0..findings.without_gtid {
            extraction.without_gtid();
        }
        for found in findings.found {
            let (candidate, content, whole) = match found {
                ExtractedPart::Outside(log) => {
                    extraction.outside(log);
                    continue;
                }
                ExtractedPart::Transaction(candidate, content, whole) => (candidate, content, whole),
            };
            let checked = candidate.check(&content, whole, announced, context, &mut self.scratch)?;
            let log = candidate.range();
            let mut read = |sink: Sink<'_>| {
                let bytes = reader(log.start - offset..log.end - offset)?;
                feed(&candidate, bytes, context, &mut self.inner, &mut buffer, sink)
            };
            let events = if candidate.inner_size <= HELD_MAX {
                self.held.clear();
                let mut verified = candidate.verified;
                if checked.is_ok() {
                    verified = read(&mut |bytes| {
                        self.held.extend_from_slice(bytes);
                        Ok(())
                    })?;
                }
                EventBytes::Held(&self.held, verified)
            } else {
                EventBytes::Read(&mut read)
            };
            extraction.transaction(ExtractedTransaction {
                offset: log.start,
                candidate: &candidate,
                checked,
                framing: context.framing,
                events,
                scratch: &mut self.scratch,
            })?;
        }
        Ok(())
    }
}

/// Passes on transactions as they are read.
struct InMemory<'a, E> {
    inner: InnerEvents<'a>,
    scratch: &'a mut Vec<u8>,
    context: LogContext,
    announced: bool,
    extraction: &'a mut E,
}

impl<E: Extraction> ScanHandler for InMemory<'_, E> {
    #[inline]
    fn event(&mut self, header: &EventHeader) {
        self.inner.event(header);
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.inner.bytes.extend_from_slice(bytes);
    }

    fn transaction(&mut self, candidate: Candidate, content: &TransactionContent, whole: bool) -> Result<()> {
        let checked = candidate.check(content, whole, self.announced, self.context, self.scratch)?;
        self.extraction.transaction(ExtractedTransaction {
            offset: candidate.range().start,
            candidate: &candidate,
            checked,
            framing: self.context.framing,
            events: EventBytes::Held(self.inner.bytes, candidate.verified),
            scratch: self.scratch,
        })?;
        self.inner.bytes.clear();
        Ok(())
    }

    fn without_gtid(&mut self) {
        self.extraction.without_gtid();
    }

    fn outside(&mut self, log: Range<u64>) {
        self.extraction.outside(log);
    }
}

/// The transactions of a piece that can't be kept in memory.
#[derive(Default)]
struct Findings {
    found: Vec<ExtractedPart>,
    without_gtid: u64,
}

enum ExtractedPart {
    Outside(Range<u64>),
    Transaction(Candidate, TransactionContent, bool),
}

impl ScanHandler for Findings {
    fn event(&mut self, _: &EventHeader) {}

    fn body(&mut self, _: &[u8]) {}

    fn transaction(&mut self, candidate: Candidate, content: &TransactionContent, whole: bool) -> Result<()> {
        self.found.push(ExtractedPart::Transaction(candidate, *content, whole));
        Ok(())
    }

    fn without_gtid(&mut self) {
        self.without_gtid += 1;
    }

    fn outside(&mut self, log: Range<u64>) {
        match self.found.last_mut() {
            Some(ExtractedPart::Outside(last)) if last.end == log.start => last.end = log.end,
            _ => self.found.push(ExtractedPart::Outside(log)),
        }
    }
}
