//! Compresses each transaction into a payload event.
//!
//! ```text
//! in   GTID | BEGIN | table map | rows | ... | XID          each with its checksum
//! out  GTID'| Transaction_payload( zstd( BEGIN | table map | rows | ... | XID ) )
//! ```
//!
//! Inside, events have no checksum and position 0. The payload event has timestamp and server id of the
//! transaction's last event, and no flags; the GTID event gets the new length of the transaction. A
//! transaction that does not qualify is written unchanged.

use std::io::Read;
use std::ops::Range;

use binlogz_binlog::event::transaction_payload::PAYLOAD_SIZE_MAX;

use crate::codec::compressor::Compressor;
use crate::codec::level::CompressionLevel;
use crate::codec::library::Library;
use crate::codec::recipe::Recipe;
use crate::compress::extract::{EventBytes, ExtractedTransaction, Extraction, TransactionExtractor};
use crate::compress::payload_event::PayloadEvent;
use crate::error::Result;
use crate::rewritten::piece::RewrittenPiece;
use crate::rewritten::spool::Spool;
use crate::transaction::candidate::Candidate;
use crate::transaction::context::PieceContext;
use crate::transaction::eligibility::Ineligible;

/// How to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompressOptions {
    /// zstd's level.
    pub level: CompressionLevel,
    /// Which libzstd compresses.
    pub library: Library,
    /// How libzstd is driven.
    pub recipe: Recipe,
    /// Whether frames are marked as made by binlogz, with zstd's content checksum. The server never marks its
    /// own frames.
    pub mark_frames: bool,
    /// Whether to record where each transaction was and where it goes.
    pub marks: bool,
}

impl CompressOptions {
    /// A context with these settings.
    ///
    /// # Errors
    ///
    /// No memory; a library that is not there.
    pub fn compressor(self) -> Result<Compressor> {
        let mut compressor = Compressor::new(self.level)?;
        compressor.use_library(self.library)?;
        compressor.use_recipe(self.recipe);
        compressor.mark_frames(self.mark_frames)?;
        Ok(compressor)
    }
}

/// Compresses transactions, one piece of a log after the other, with one context.
#[derive(Debug)]
pub struct TransactionCompressor {
    options: CompressOptions,
    extractor: TransactionExtractor,
    compressor: Compressor,
    /// A buffer reused for each transaction.
    payload: Vec<u8>,
}

impl TransactionCompressor {
    /// A compressor; use one for each thread.
    pub fn new(options: CompressOptions) -> Result<Self> {
        let compressor = options.compressor()?;
        let extractor = TransactionExtractor::new();
        Ok(TransactionCompressor { options, extractor, compressor, payload: Vec::new() })
    }

    /// Compresses the transactions of a batch. The output goes into `spool`.
    ///
    /// # Errors
    ///
    /// Bad bytes, with their offset; a spool that can't spill.
    pub fn batch(&mut self, batch: &[u8], place: PieceContext, spool: Spool) -> Result<RewrittenPiece> {
        self.compress(place, spool, |extractor, compression| extractor.batch(batch, place, compression))
    }

    /// Compresses transactions that are not held in memory. `reader` returns any range of the piece, counted
    /// from its first byte; the piece has `size` bytes.
    ///
    /// # Errors
    ///
    /// As for [`TransactionCompressor::batch`], and a reader that fails.
    pub fn large<R: Read>(
        &mut self,
        reader: impl FnMut(Range<u64>) -> std::io::Result<R>,
        size: u64,
        place: PieceContext,
        spool: Spool,
    ) -> Result<RewrittenPiece> {
        self.compress(place, spool, |extractor, compression| {
            extractor.large(reader, size, place, compression)
        })
    }

    fn compress(
        &mut self,
        PieceContext { offset, context, .. }: PieceContext,
        spool: Spool,
        extract: impl FnOnce(&mut TransactionExtractor, &mut Compression<'_>) -> Result<()>,
    ) -> Result<RewrittenPiece> {
        let mut compression = Compression {
            compressor: &mut self.compressor,
            payload: &mut self.payload,
            out: RewrittenPiece::new(offset, context, spool, self.options.marks),
        };
        extract(&mut self.extractor, &mut compression)?;
        Ok(compression.out)
    }
}

/// Compresses transactions as they are found.
struct Compression<'a> {
    compressor: &'a mut Compressor,
    payload: &'a mut Vec<u8>,
    out: RewrittenPiece,
}

impl Extraction for Compression<'_> {
    fn transaction(&mut self, transaction: ExtractedTransaction<'_>) -> Result<()> {
        let ExtractedTransaction { candidate, checked, events, scratch, .. } = transaction;
        let positions = match checked {
            Ok(positions) => positions,
            Err(reason) => return self.out.leave(candidate, reason),
        };
        let event = PayloadEvent::begin(&mut self.out.spool)?;
        let (payload_size, verified) = match events {
            EventBytes::Held(bytes, verified) => {
                self.payload.clear();
                self.compressor.compress(bytes, self.payload)?;
                self.out.spool.append(self.payload)?;
                (self.payload.len() as u64, verified)
            }
            EventBytes::Read(read) => {
                let compressor = &mut *self.compressor;
                let spool = &mut self.out.spool;
                compressor.begin(candidate.inner_size)?;
                let verified = read(&mut |bytes| compressor.write(bytes, spool))?;
                (compressor.finish(spool)?, verified)
            }
        };
        // A transaction that we hold is far below that.
        if payload_size > PAYLOAD_SIZE_MAX {
            return self.out.leave(candidate, Ineligible::TooLarge);
        }
        event.finish(candidate, positions, payload_size, verified, scratch, &mut self.out)
    }

    fn without_gtid(&mut self) {
        self.out.tally.count_left(Ineligible::NoGtid);
    }

    fn outside(&mut self, log: Range<u64>) {
        self.out.plain(log);
    }
}

impl RewrittenPiece {
    /// A transaction stays as it is.
    fn leave(&mut self, candidate: &Candidate, reason: Ineligible) -> Result<()> {
        let first_span = self.spans.len();
        let framing = self.context.framing;
        self.tally.count_left(reason);
        self.plain(candidate.range());
        self.mark(candidate.range(), first_span, None, || candidate.gtid.gtid(framing))
    }
}
