//! Makes a payload event: its contents, and the event around them.
//!
//! ```text
//! event header (19) | fields: compression type, uncompressed size, payload size, end | payload | checksum
//! ```
//!
//! The length of the fields is only known when the payload is complete. So the event grows in a spool after
//! room for the largest header, which is then filled from its end.

use binlogz_binlog::checksum::CHECKSUM_SIZE;
use binlogz_binlog::event::transaction_payload::HEADER_SIZE_MAX;
use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType, Framing, HeaderFlags, VerifiedChecksum};

use crate::error::Result;
use crate::rewritten::piece::{PayloadMark, RewrittenPiece};
use crate::rewritten::spool::Spool;
use crate::transaction::candidate::{Candidate, HeldGtid};
use crate::transaction::context::{LogContext, PositionRule};

/// Events as they are inside a payload: no checksum, position 0.
pub(crate) struct InnerEvents<'a> {
    pub(crate) bytes: &'a mut Vec<u8>,
    checksum_size: u32,
}

impl<'a> InnerEvents<'a> {
    pub(crate) fn new(bytes: &'a mut Vec<u8>, context: LogContext) -> Self {
        bytes.clear();
        InnerEvents { bytes, checksum_size: context.framing.checksum().size() as u32 }
    }

    #[inline]
    pub(crate) fn event(&mut self, header: &EventHeader) {
        let event_size = header.event_size - self.checksum_size;
        self.bytes.extend_from_slice(&EventHeader { event_size, end_log_pos: 0, ..*header }.encode());
    }
}

/// Writes the fields before a payload into `scratch`; returns the payload event's size including them.
fn event_size(uncompressed_size: u64, payload_size: u64, framing: Framing, scratch: &mut Vec<u8>) -> u64 {
    scratch.clear();
    TransactionPayloadHeader::new(CompressionType::ZSTD, payload_size, Some(uncompressed_size))
        .encode(scratch);
    // PAYLOAD_SIZE_MAX leaves room for the headers below 1 GiB.
    (HEADER_SIZE + scratch.len() + framing.checksum().size()) as u64 + payload_size
}

/// Bytes that a transaction takes in the log with a payload of this size: GTID event and payload
/// event.
pub(crate) fn compressed_size(
    gtid: &HeldGtid,
    inner_size: u64,
    payload_size: u64,
    framing: Framing,
    scratch: &mut Vec<u8>,
) -> Result<u64> {
    let event_size = event_size(inner_size, payload_size, framing, scratch);
    scratch.clear();
    gtid.rewrite(framing, event_size, scratch)?;
    Ok(scratch.len() as u64 + event_size)
}

/// A payload event that grows in a spool: room for its header, the payload, room for its checksum.
pub(crate) struct PayloadEvent {
    /// Where the room for the header begins.
    start: u64,
}

/// Room for an event header and the largest payload fields that we write.
const HEADER_ROOM: usize = HEADER_SIZE + HEADER_SIZE_MAX;

impl PayloadEvent {
    pub(crate) fn begin(spool: &mut Spool) -> Result<Self> {
        let start = spool.size();
        spool.append(&[0; HEADER_ROOM])?;
        Ok(PayloadEvent { start })
    }

    /// The payload is in the spool: puts the header before it, the GTID event after it, and both into the
    /// order of the log. `verified` covers the events that were compressed.
    pub(crate) fn finish(
        self,
        candidate: &Candidate,
        [gtid_positions, payload_positions]: [PositionRule; 2],
        payload_size: u64,
        verified: VerifiedChecksum,
        scratch: &mut Vec<u8>,
        out: &mut RewrittenPiece,
    ) -> Result<()> {
        let framing = out.context.framing;
        let checksum_size = framing.checksum().size();
        let first_span = out.spans.len();
        let uncompressed_size = candidate.inner_size;
        let event_size = event_size(uncompressed_size, payload_size, framing, scratch);
        let header = EventHeader {
            timestamp: candidate.last.timestamp,
            event_type: EventType::TRANSACTION_PAYLOAD,
            server_id: candidate.last.server_id,
            event_size: event_size as u32,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        scratch.splice(..0, header.encode());
        let event_start = self.start + (HEADER_ROOM - scratch.len()) as u64;
        out.spool.overwrite(event_start, scratch)?;
        out.spool.append([0; CHECKSUM_SIZE].get(..checksum_size).unwrap_or_default())?;
        let gtid_start = out.spool.size();
        scratch.clear();
        candidate.gtid.rewrite(framing, event_size, scratch)?;
        out.spool.append(scratch)?;
        out.made(gtid_start..out.spool.size(), gtid_positions, verified);
        out.made(event_start..gtid_start, payload_positions, verified);
        out.tally.count_changed(uncompressed_size, payload_size);
        let mark = PayloadMark { payload_size, event_size: event_size - checksum_size as u64 };
        out.mark(candidate.range(), first_span, Some(mark), || candidate.gtid.gtid(framing))
    }
}
