//! The new form of a piece of a log after compressing or expanding, before its place in the output is known.
//!
//! Workers make these in any order; [`super::position_writer`] writes them one after the other and fills in
//! what depends on the place: `end_log_pos` and the checksum over it.

use std::ops::Range;

use binlogz_binlog::VerifiedChecksum;
use binlogz_binlog::gtid::Gtid;

use crate::error::Result;
use crate::rewritten::spool::Spool;
use crate::transaction::context::{LogContext, PositionRule};
use crate::transaction::eligibility::Tally;

/// Whole events, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewrittenSpan {
    /// Events of the input, counted from its first byte. They are written unchanged, except those whose
    /// position is their own place; their checksums are derived from the old ones, right or wrong.
    Plain(Range<u64>),
    /// Newly made events: positions and checksums are missing.
    New {
        /// The events' range in [`RewrittenPiece::spool`].
        range: Range<u64>,
        /// The positions they get.
        positions: PositionRule,
        /// Proof that the events they were made from were not damaged.
        verified: VerifiedChecksum,
    },
}

/// A transaction in the input, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionMark {
    /// GTID of the transaction; `None` for anonymous ones.
    pub gtid: Option<Gtid>,
    /// The transaction's range in the input's log, in bytes.
    pub old: Range<u64>,
    /// The transaction's spans in [`RewrittenPiece::spans`].
    pub spans: Range<usize>,
    /// The payload it became; `None` if it stays as it is.
    pub payload: Option<PayloadMark>,
}

/// The size of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadMark {
    /// Without the fields before it.
    pub payload_size: u64,
    /// Size of the payload event, without the checksum.
    pub event_size: u64,
}

/// The new form of a piece of a log.
#[derive(Debug)]
pub struct RewrittenPiece {
    /// Where the piece begins in the input's log.
    pub offset: u64,
    /// How the events are framed, in the input as in the output.
    pub context: LogContext,
    /// Newly made events.
    pub spool: Spool,
    /// The output, in order.
    pub spans: Vec<RewrittenSpan>,
    /// Counts of the transactions changed and left alone.
    pub tally: Tally,
    /// The transactions, if they were asked for.
    pub marks: Option<Vec<TransactionMark>>,
}

impl RewrittenPiece {
    /// Empty.
    pub fn new(offset: u64, context: LogContext, spool: Spool, marks: bool) -> Self {
        let marks = marks.then(Vec::new);
        RewrittenPiece { offset, context, spool, spans: Vec::new(), tally: Tally::default(), marks }
    }

    /// Events that stay as they are, by their place in the log.
    #[inline]
    pub(crate) fn plain(&mut self, log: Range<u64>) {
        let range = log.start - self.offset..log.end - self.offset;
        match self.spans.last_mut() {
            Some(RewrittenSpan::Plain(last)) if self.marks.is_none() && last.end == range.start => {
                last.end = range.end
            }
            _ if range.is_empty() => {}
            _ => self.spans.push(RewrittenSpan::Plain(range)),
        }
    }

    /// Events in the spool.
    #[inline]
    pub(crate) fn made(&mut self, range: Range<u64>, positions: PositionRule, verified: VerifiedChecksum) {
        if !range.is_empty() {
            self.spans.push(RewrittenSpan::New { range, positions, verified });
        }
    }

    /// Records the transaction whose spans begin at `first_span`, if requested.
    pub(crate) fn mark(
        &mut self,
        old: Range<u64>,
        first_span: usize,
        payload: Option<PayloadMark>,
        gtid: impl FnOnce() -> Result<Option<Gtid>>,
    ) -> Result<()> {
        if let Some(marks) = &mut self.marks {
            let spans = first_span..self.spans.len();
            marks.push(TransactionMark { gtid: gtid()?, old, spans, payload });
        }
        Ok(())
    }
}
