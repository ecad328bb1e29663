//! A transaction as it is read, with the facts that decide whether it can be compressed.

use std::ops::Range;

use binlogz_binlog::event::{self, AnyGtidEvent};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::transaction::TransactionContent;
use binlogz_binlog::{
    Error as BinlogError, EventClass, EventFrame, EventHeader, EventType, Framing, VerifiedChecksum,
    VerifiedFrame,
};

use crate::error::Result;
use crate::transaction::context::{LogContext, PositionRule};
use crate::transaction::eligibility::{self, Ineligible};

/// The largest GTID event that is held, in bytes. 9.7 writes at most 150; this leaves room for fields to come.
const GTID_EVENT_SIZE_MAX: u32 = 64 << 10;

/// A GTID event of which some bytes have arrived.
#[derive(Debug)]
pub(crate) struct OpenGtid {
    offset: u64,
    header: EventHeader,
    event: Vec<u8>,
}

/// The GTID event that a transaction begins with, kept until the rest is known.
#[derive(Debug, Clone)]
pub(crate) struct HeldGtid {
    /// Where the event begins in the log.
    pub(crate) offset: u64,
    pub(crate) header: EventHeader,
    /// The whole event; its checksum, if it has one, is not filled in.
    pub(crate) event: Vec<u8>,
    verified: VerifiedChecksum,
}

impl OpenGtid {
    /// The event begins at `offset` of its log.
    ///
    /// # Errors
    ///
    /// An event too large to hold, and not one that a server wrote.
    pub(crate) fn begin(offset: u64, header: &EventHeader) -> Result<Self> {
        if header.event_size > GTID_EVENT_SIZE_MAX {
            let error =
                BinlogError::invalid("event header", "event size", header.event_size, "at most 64 KiB");
            return Err(error.at(offset, Some(header.event_type)).into());
        }
        Ok(OpenGtid { offset, header: *header, event: header.encode().to_vec() })
    }

    pub(crate) fn body(&mut self, bytes: &[u8]) {
        self.event.extend_from_slice(bytes);
    }

    /// The event is whole, and not damaged.
    pub(crate) fn end(self, verified: VerifiedChecksum) -> HeldGtid {
        let OpenGtid { offset, header, mut event } = self;
        event.resize(header.event_size as usize, 0);
        HeldGtid { offset, header, event, verified }
    }
}

impl HeldGtid {
    /// Whether the event's position is its own place in the log.
    pub(crate) fn has_own_position(&self, context: LogContext) -> bool {
        context.has_own_position(&self.header, self.offset + u64::from(self.header.event_size))
    }

    /// The position that the event gets when it is rewritten.
    pub(crate) fn positions(&self, context: LogContext) -> PositionRule {
        if self.has_own_position(context) {
            PositionRule::Own
        } else {
            PositionRule::Fixed(self.header.end_log_pos)
        }
    }

    /// Appends the event with the length of a transaction in which `following` bytes come after it.
    pub(crate) fn rewrite(&self, framing: Framing, following: u64, out: &mut Vec<u8>) -> Result<()> {
        Ok(event::rewrite_transaction_length(&self.frame(framing)?, following, out)?)
    }

    pub(crate) fn gtid(&self, framing: Framing) -> Result<Option<Gtid>> {
        let frame = self.frame(framing)?;
        Ok(AnyGtidEvent::decode_frame(&frame)?.and_then(|event| event.gtid()))
    }

    /// The event as a frame; its checksum is not filled in.
    pub(crate) fn frame(&self, framing: Framing) -> Result<VerifiedFrame<'_>> {
        let short = BinlogError::Truncated {
            needed: u64::from(self.header.event_size),
            left: self.event.len() as u64,
        };
        let frame: EventFrame<'_> = framing.next_frame(&self.event)?.ok_or(short)?.unchecked()?;
        Ok(frame.proven(self.verified))
    }
}

/// A transaction that began with a GTID event.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) gtid: HeldGtid,
    /// Where the event after the last one begins in the log.
    pub(crate) end: u64,
    /// The last event's header.
    pub(crate) last: EventHeader,
    /// Proof that none of its events so far is damaged.
    pub(crate) verified: VerifiedChecksum,
    /// Bytes of all events after the GTID event, without checksums.
    pub(crate) inner_size: u64,
    own: bool,
    all_own: bool,
    consecutive: bool,
    all_equal: bool,
}

impl Candidate {
    pub(crate) fn begin(gtid: HeldGtid, context: LogContext) -> Self {
        Candidate {
            end: gtid.offset + u64::from(gtid.header.event_size),
            last: gtid.header,
            verified: gtid.verified,
            inner_size: 0,
            own: gtid.has_own_position(context),
            all_own: true,
            consecutive: true,
            all_equal: true,
            gtid,
        }
    }

    /// An event after the GTID event.
    #[inline]
    pub(crate) fn event(&mut self, offset: u64, header: &EventHeader, context: LogContext) {
        self.end = offset + u64::from(header.event_size);
        self.inner_size += u64::from(header.event_size) - context.framing.checksum().size() as u64;
        let since_gtid = (self.end - self.gtid.offset) as u32;
        let gtid_begin = self.gtid.header.end_log_pos.wrapping_sub(self.gtid.header.event_size);
        self.all_own &= context.has_own_position(header, self.end);
        self.consecutive &= header.end_log_pos == gtid_begin.wrapping_add(since_gtid);
        self.all_equal &= self.last.event_type.is_gtid() || self.last.end_log_pos == header.end_log_pos;
        self.last = *header;
    }

    /// The event that was last added is whole, and not damaged.
    #[inline]
    pub(crate) fn event_end(&mut self, verified: VerifiedChecksum) {
        self.verified = verified;
    }

    /// The transaction's range in the log.
    pub(crate) fn range(&self) -> Range<u64> {
        self.gtid.offset..self.end
    }

    /// Whether to compress it, and which positions the new events then get: GTID event and payload event.
    pub(crate) fn check(
        &self,
        content: &TransactionContent,
        whole: bool,
        announced: bool,
        context: LogContext,
        scratch: &mut Vec<u8>,
    ) -> Result<Result<[PositionRule; 2], Ineligible>> {
        if !whole {
            return Ok(Err(Ineligible::Incomplete));
        }
        if let Err(reason) = eligibility::check(content, self.last.event_type) {
            return Ok(Err(reason));
        }
        if !announced {
            return Ok(Err(Ineligible::FormatDescription));
        }
        scratch.clear();
        self.gtid.rewrite(context.framing, self.following(), scratch)?;
        if !same_without_checksum(scratch, &self.gtid.event, context.framing) {
            return Ok(Err(Ineligible::TransactionLength));
        }
        Ok(self.positions().ok_or(Ineligible::Positions))
    }

    /// The positions of the new events, if those of the old ones can be derived from them again; see
    /// [`inner_positions`].
    fn positions(&self) -> Option<[PositionRule; 2]> {
        if self.own {
            return self.all_own.then_some([PositionRule::Own; 2]);
        }
        let gtid_end = self.gtid.header.end_log_pos;
        let end = self.last.end_log_pos;
        let come_back = match inner_positions(false, gtid_end, end, self.following()) {
            PositionRule::ConsecutiveFrom(_) => self.consecutive,
            PositionRule::Own | PositionRule::Fixed(_) => self.all_equal,
        };
        come_back.then_some([PositionRule::Fixed(gtid_end), PositionRule::Fixed(end)])
    }

    /// Bytes of the events after the GTID event, as they are in the log.
    fn following(&self) -> u64 {
        self.end - self.gtid.offset - u64::from(self.gtid.header.event_size)
    }
}

fn same_without_checksum(a: &[u8], b: &[u8], framing: Framing) -> bool {
    let covered = |event: &[u8]| event.len().saturating_sub(framing.checksum().size());
    a.get(..covered(a)) == b.get(..covered(b))
}

/// The positions of the events of a payload.
///
/// If the payload's position is its own place, so will the events' positions be. Otherwise it is the source's coordinate.
/// If the events fill the space between the GTID event and that coordinate, they were there one after the other. If not,
/// the source sent them as a payload, and all of them have its position, as the server's applier sees it.
pub(crate) fn inner_positions(own: bool, gtid_end: u32, payload_end: u32, size: u64) -> PositionRule {
    if own {
        PositionRule::Own
    } else if gtid_end.wrapping_add(size as u32) == payload_end {
        PositionRule::ConsecutiveFrom(gtid_end)
    } else {
        PositionRule::Fixed(payload_end)
    }
}

/// Collects as much of a body as [`binlogz_binlog::transaction::TransactionBoundaryParser`] reads.
#[derive(Debug, Default)]
pub(crate) struct BodyPrefix {
    bytes: Vec<u8>,
    wanted: bool,
}

impl BodyPrefix {
    #[inline]
    pub(crate) fn begin(&mut self, event_type: EventType) {
        self.wanted = matches!(
            event_type.class(),
            EventClass::Statement | EventClass::CompressedStatement | EventClass::MariadbGtid
        );
        self.bytes.clear();
    }

    #[inline]
    pub(crate) fn body(&mut self, bytes: &[u8]) {
        if self.wanted {
            let room = binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX - self.bytes.len();
            self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
