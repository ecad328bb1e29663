//! Expands each payload event into a transaction: the other direction of [`crate::compress`].
//!
//! ```text
//! in   GTID | Transaction_payload( zstd( BEGIN | table map | rows | ... | XID ) )
//! out  GTID'| BEGIN | table map | rows | ... | XID          each with its checksum
//! ```
//!
//! Works as a stream (see [`super::payload_stream`]). No payload may hold another: such a file could
//! hold itself.

use std::io::Read;
use std::ops::Range;

use binlogz_binlog::checksum::CHECKSUM_SIZE;
use binlogz_binlog::{
    EVENT_SIZE_MAX, Error as BinlogError, EventHeader, EventParser, EventType, EventVisitor, StoredChecksum,
    VerifiedChecksum,
};

use crate::codec::expander::Expander;
use crate::compress::feed::{STAGE_SIZE, push_all};
use crate::compress::transaction_compressor::CompressOptions;
use crate::error::{Error, Result};
use crate::expand::expanded_part::{PASSED_ON_FROM, PartSender, PartSink};
use crate::expand::payload_stream::PayloadStream;
use crate::expand::reproduction::Reproduction;
use crate::rewritten::piece::RewrittenPiece;
use crate::rewritten::spool::Spool;
use crate::transaction::candidate::{HeldGtid, OpenGtid, inner_positions};
use crate::transaction::context::{LogContext, PieceContext};

/// Expands payloads, one piece of a log after the other, with one context.
#[derive(Debug)]
pub struct TransactionExpander {
    expander: Expander,
    scratch: Vec<u8>,
    /// Set if only reproducible payloads are expanded.
    reproduction: Option<Reproduction>,
}

impl TransactionExpander {
    /// An expander; use one for each thread.
    pub fn new() -> Result<Self> {
        Ok(TransactionExpander { expander: Expander::new()?, scratch: Vec::new(), reproduction: None })
    }

    /// Makes an expander that leaves a payload as it is if compressing its events this way would give other bytes.
    pub fn of_reproducible(options: CompressOptions) -> Result<Self> {
        Ok(TransactionExpander {
            reproduction: Some(Reproduction::new(options)?),
            ..TransactionExpander::new()?
        })
    }

    /// Expands the payloads of a batch, into `spool`.
    ///
    /// # Errors
    ///
    /// Bad bytes, with their offset; payloads that are damaged, nested, or not where they belong; a
    /// spool that can't spill.
    pub fn batch(&mut self, batch: &[u8], place: PieceContext, spool: Spool) -> Result<RewrittenPiece> {
        let (mut visitor, mut parser) = self.visitor(place, spool, None);
        parser.push(batch, &mut visitor)?;
        parser.finish()?;
        visitor.finish(parser.offset())
    }

    /// Expands the payloads of a piece that is not held in memory.
    ///
    /// # Errors
    ///
    /// As for [`TransactionExpander::batch`], and a reader that fails.
    pub fn large(&mut self, reader: impl Read, place: PieceContext, spool: Spool) -> Result<RewrittenPiece> {
        let (visitor, parser) = self.visitor(place, spool, None);
        visitor.read(reader, parser)
    }

    /// Expands the payloads of a piece that is not held in memory, and passes what gets large on in parts: all that
    /// comes before the piece returned. `pass_on` may fail to end this.
    ///
    /// # Errors
    ///
    /// As for [`TransactionExpander::large`]; those of `pass_on`. After an error the parts are worth nothing.
    pub fn large_in_parts(
        &mut self,
        reader: impl Read,
        place: PieceContext,
        spool: Spool,
        pass_on: &mut PartSink<'_>,
    ) -> Result<RewrittenPiece> {
        // Whether a payload comes back from its events is known when all of them are.
        let parts = self.reproduction.is_none().then(|| PartSender::new(pass_on));
        let (visitor, parser) = self.visitor(place, spool, parts);
        visitor.read(reader, parser)
    }

    fn visitor<'a>(
        &'a mut self,
        place: PieceContext,
        spool: Spool,
        parts: Option<PartSender<'a>>,
    ) -> (Visitor<'a>, EventParser) {
        let PieceContext { offset, context, .. } = place;
        let out = RewrittenPiece::new(offset, context, spool, false);
        let visitor = Visitor {
            expander: &mut self.expander,
            scratch: &mut self.scratch,
            reproduction: self.reproduction.as_mut(),
            parts,
            out,
            plain_from: offset,
            gtid: None,
            open: None,
        };
        (visitor, EventParser::new(context.framing, offset))
    }
}

/// Expands payloads as events are read.
struct Visitor<'a> {
    expander: &'a mut Expander,
    scratch: &'a mut Vec<u8>,
    reproduction: Option<&'a mut Reproduction>,
    /// Set if what gets large is passed on.
    parts: Option<PartSender<'a>>,
    out: RewrittenPiece,
    /// Where the events begin that stay as they are and are not in `out` yet.
    plain_from: u64,
    /// The event before this one, if it was a GTID event.
    gtid: Option<HeldGtid>,
    open: Option<Open>,
}

/// The current event.
enum Open {
    Gtid(OpenGtid),
    Payload(OpenPayload),
    Other,
}

/// A payload event of which some bytes have arrived.
struct OpenPayload {
    offset: u64,
    header: EventHeader,
    gtid: HeldGtid,
    stream: PayloadStream,
    /// Where in the spool its events begin.
    start: u64,
}

impl OpenPayload {
    /// Whether the event's position is its own place in the log.
    fn has_own_position(&self, context: LogContext) -> bool {
        context.has_own_position(&self.header, self.offset + u64::from(self.header.event_size))
    }

    /// Whether its events can be written before all of them are known: they get their own positions, and the size of
    /// their GTID event is known.
    fn can_be_passed_on(&self, context: LogContext) -> bool {
        self.has_own_position(context) && self.gtid.header.event_type != EventType::GTID_TAGGED
    }
}

impl Visitor<'_> {
    fn read(mut self, reader: impl Read, mut parser: EventParser) -> Result<RewrittenPiece> {
        push_all(reader, &mut vec![0; STAGE_SIZE], &mut parser, &mut self)?;
        parser.finish()?;
        self.finish(parser.offset())
    }

    fn finish(mut self, end: u64) -> Result<RewrittenPiece> {
        self.drop_gtid();
        self.out.plain(self.plain_from..end);
        Ok(self.out)
    }

    /// The transaction of the GTID event held is not compressed.
    fn drop_gtid(&mut self) {
        if self.gtid.take().is_some() {
            self.out.tally.untouched += 1;
        }
    }

    /// The open payload is whole and not damaged: its events replace it.
    fn payload_end(&mut self, open: OpenPayload, verified: VerifiedChecksum) -> Result<()> {
        let sizes = open.stream.end(self.expander)?;
        if let Some(reproduction) = &mut self.reproduction
            && !reproduction.end()?
        {
            self.out.spool.take_back(open.start);
            self.out.tally.untouched += 1;
            return Ok(());
        }
        let context = self.out.context;
        self.out.tally.count_changed(sizes.uncompressed, sizes.compressed);
        let payload_end = open.offset + u64::from(open.header.event_size);
        if let Some(parts) = &mut self.parts
            && let Some(size) = parts.finish_events()?
        {
            self.scratch.clear();
            open.gtid.rewrite(context.framing, size, self.scratch)?;
            self.plain_from = payload_end;
            return parts.end(self.scratch.clone(), open.gtid.positions(context), verified);
        }
        let events = open.start..self.out.spool.size();
        let size = events.end - events.start;
        let own = open.has_own_position(context);
        let positions = inner_positions(own, open.gtid.header.end_log_pos, open.header.end_log_pos, size);
        self.scratch.clear();
        open.gtid.rewrite(context.framing, size, self.scratch)?;
        self.out.spool.append(self.scratch)?;
        let gtid = events.end..self.out.spool.size();
        self.out.plain(self.plain_from..open.gtid.offset);
        self.out.made(gtid, open.gtid.positions(context), verified);
        self.out.made(events, positions, verified);
        self.plain_from = payload_end;
        Ok(())
    }
}

impl EventVisitor for Visitor<'_> {
    type Error = Error;

    #[inline]
    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
        self.open = Some(match header.event_type {
            EventType::TRANSACTION_PAYLOAD => {
                let Some(gtid) = self.gtid.take() else { return Err(misplaced(offset)) };
                Open::Payload(OpenPayload {
                    offset,
                    header: *header,
                    gtid,
                    stream: PayloadStream::begin(offset, header, self.out.context.framing),
                    start: self.out.spool.size(),
                })
            }
            event_type => {
                self.drop_gtid();
                if event_type.is_gtid() { Open::Gtid(OpenGtid::begin(offset, header)?) } else { Open::Other }
            }
        });
        Ok(())
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.open {
            Some(Open::Gtid(gtid)) => gtid.body(bytes),
            Some(Open::Payload(open)) => {
                let checksum_size = self.out.context.framing.checksum().size();
                let mut bytes = bytes;
                let mut reproduction = self.reproduction.as_deref_mut();
                if let Some(reproduction) = &mut reproduction {
                    let fields_came = open.stream.fields().is_some();
                    bytes = open.stream.front(bytes, self.expander)?;
                    if let Some(fields) = open.stream.fields().filter(|_| !fields_came) {
                        reproduction.begin(fields.uncompressed_size());
                    }
                    reproduction.payload(open.stream.compressed(bytes));
                }
                let parts = self.parts.as_mut().filter(|_| open.can_be_passed_on(self.out.context));
                let mut reframe = Reframe {
                    spool: &mut self.out.spool,
                    start: open.start,
                    checksum_size,
                    reproduction,
                    parts,
                    before: self.plain_from - self.out.offset..open.gtid.offset - self.out.offset,
                    gtid: (&open.gtid, self.out.context),
                };
                open.stream.body(bytes, self.expander, &mut reframe)?;
            }
            Some(Open::Other) | None => {}
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, verified: VerifiedChecksum) -> Result<()> {
        match self.open.take() {
            Some(Open::Gtid(gtid)) => {
                self.gtid = Some(gtid.end(verified));
                Ok(())
            }
            Some(Open::Payload(open)) => self.payload_end(open, verified),
            Some(Open::Other) | None => Ok(()),
        }
    }
}

/// Events of a payload become events of a log again.
struct Reframe<'a, 'p> {
    spool: &'a mut Spool,
    /// Where they begin in the spool.
    start: u64,
    checksum_size: usize,
    reproduction: Option<&'a mut Reproduction>,
    /// Set if they are passed on once they are large.
    parts: Option<&'a mut PartSender<'p>>,
    /// Events before the transaction that were not passed on yet, counted from the beginning of the piece.
    before: Range<u64>,
    gtid: (&'a HeldGtid, LogContext),
}

impl Reframe<'_, '_> {
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.parts {
            Some(parts) if parts.is_open() => parts.append(bytes),
            _ => Ok(self.spool.append(bytes)?),
        }
    }

    /// After an event: from now on they may be passed on.
    #[cold]
    fn begin_passing_on(&mut self) -> Result<()> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let (gtid, context) = self.gtid;
        let mut event = Vec::new();
        gtid.rewrite(context.framing, self.spool.size() - self.start, &mut event)?;
        parts.begin(self.before.clone(), event.len(), self.spool, self.start)
    }
}

impl EventVisitor<StoredChecksum> for Reframe<'_, '_> {
    type Error = Error;

    #[inline]
    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
        let event_size = header.event_size + self.checksum_size as u32;
        if event_size > EVENT_SIZE_MAX {
            let error = BinlogError::invalid("event header", "event size", event_size, "at most 1 GiB");
            return Err(error.at(offset, None).into());
        }
        if let Some(reproduction) = &mut self.reproduction {
            reproduction.events(&EventHeader { end_log_pos: 0, ..*header }.encode())?;
        }
        // Position and checksum are filled in once the place in the output is known.
        self.append(&EventHeader { event_size, end_log_pos: 0, ..*header }.encode())
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(reproduction) = &mut self.reproduction {
            reproduction.events(bytes)?;
        }
        self.append(bytes)
    }

    #[inline]
    fn end(&mut self, _: StoredChecksum) -> Result<()> {
        self.append([0; CHECKSUM_SIZE].get(..self.checksum_size).unwrap_or_default())?;
        match &mut self.parts {
            Some(parts) if parts.is_open() => parts.end_event(),
            Some(_) if self.spool.size() - self.start >= PASSED_ON_FROM => self.begin_passing_on(),
            _ => Ok(()),
        }
    }
}

#[cold]
fn misplaced(offset: u64) -> Error {
    let error = BinlogError::invalid(
        "transaction payload",
        "place",
        "not after a GTID event",
        "the GTID event of its transaction before it",
    );
    error.at(offset, Some(EventType::TRANSACTION_PAYLOAD)).into()
}
