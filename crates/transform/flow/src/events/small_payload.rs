//! Payloads that a worker expands whole, and the events inside; MariaDB's compressed events.

use std::ops::Range;

use binlogz_binlog::event::{CompressedEvent, CompressionType, PostHeaderLengths, TransactionPayloadEvent};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EVENT_SIZE_MAX, Error as BinlogError, EventFrame, EventHeader, EventType};
use binlogz_payload::{Error as PayloadError, Expander, PayloadSizes, expanded_size_max};

use super::event::PayloadEnd;
use super::large_payload::{cut_event, no_events, whole_event};
use super::log::InputLog;
use super::queued::QueuedBatch;
use super::step::ItemStep;
use crate::error::Error;
use crate::position::InsidePayload;

/// Bytes of expanded events that a worker's buffer keeps from batch to batch.
const KEPT_MAX: usize = 8 << 20;

/// A worker's buffers for expanding payloads, reused for each.
#[derive(Debug, Default)]
pub(super) struct PayloadBuffer {
    expander: Option<Expander>,
    /// The payload that is handed out, or, for an `EventList`, all those of the list.
    pub(super) expanded: Vec<u8>,
}

/// A payload whose events are being returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct PayloadEvents {
    /// Where the payload event begins in the log.
    pub(super) payload_offset: u64,
    pub(super) end_log_pos: u32,
    /// Whether the events are in the worker's buffer; otherwise they are in the batch's bytes.
    pub(super) small: bool,
    /// Where the next event begins in those bytes, and where the first one began.
    pub(super) next: usize,
    pub(super) start: usize,
    /// Which event of the payload that is.
    pub(super) index: u64,
    /// The offset in the payload of the first of those bytes.
    pub(super) base: u64,
    /// The error at the end of the payload, if it ends with one.
    pub(super) end: Option<PayloadEnd>,
}

impl PayloadEvents {
    /// The next event of the payload, of which `bytes` are at hand.
    #[inline]
    pub(super) fn event(&mut self, bytes: &[u8], log: &InputLog) -> Result<Option<ItemStep>, Error> {
        let rest = bytes.get(self.next..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let offset = self.base + (self.next - self.start) as u64;
        let damaged =
            |error: BinlogError| PayloadError::from(error.at(offset, None)).in_payload(self.payload_offset);
        let found = whole_event(log.context.framing.inside_payload(), rest).map_err(damaged)?;
        let (size, event_type) = found.ok_or_else(|| damaged(cut_event(rest)))?;
        let range = self.next..self.next + size;
        let inside = InsidePayload { index: self.index, offset, end_log_pos: self.end_log_pos };
        self.next += size;
        self.index += 1;
        let small = self.small;
        let payload_offset = self.payload_offset;
        Ok(Some(ItemStep::Inside { range, small, event_type, payload_offset, inside }))
    }
}

impl PayloadBuffer {
    /// Expands a compressed event of MariaDB, which then has the plain event's header and no checksum: its place in
    /// the buffer, and its type.
    pub(super) fn expand_event(
        &mut self,
        event: EventFrame<'_>,
        lengths: &PostHeaderLengths,
        keeps: bool,
    ) -> Result<(Range<usize>, EventType), BinlogError> {
        let compressed = CompressedEvent::decode(event.event_type(), event.body(), lengths)?;
        let out = &mut self.expanded;
        if !keeps {
            out.clear();
        }
        let begin = out.len();
        out.extend_from_slice(&[0; HEADER_SIZE]);
        let event_size = compressed.expand(out).and_then(|()| {
            let size = out.len() - begin;
            let fits = u32::try_from(size).ok().filter(|&size| size <= EVENT_SIZE_MAX);
            fits.ok_or_else(|| BinlogError::invalid("compressed event", "size", size, "at most 1 GiB"))
        });
        let event_size = match event_size {
            Ok(event_size) => event_size,
            Err(error) => {
                out.truncate(begin);
                return Err(error);
            }
        };
        let event_type = compressed.expanded_type;
        let header = EventHeader { event_type, event_size, ..*event.header() }.encode();
        if let Some(front) = out.get_mut(begin..begin + HEADER_SIZE) {
            front.copy_from_slice(&header);
        }
        Ok((begin..out.len(), event_type))
    }

    /// Gives back the memory of an event that was larger than a worker may keep.
    pub(super) fn shrink(&mut self) {
        if self.expanded.capacity() > KEPT_MAX {
            self.expanded = Vec::new();
        }
    }

    /// Expands a whole payload. The source has checked how large it can become.
    pub(super) fn expand(
        &mut self,
        event: &[u8],
        offset: u64,
        end_log_pos: u32,
        batch: &QueuedBatch,
        keeps: bool,
    ) -> Result<PayloadEvents, Error> {
        let covered = event.len().saturating_sub(batch.log.context.framing.checksum().size());
        let body = event.get(HEADER_SIZE..covered).unwrap_or_default();
        let at = |error: BinlogError| error.at(offset, Some(EventType::TRANSACTION_PAYLOAD));
        let TransactionPayloadEvent { header, payload, .. } =
            TransactionPayloadEvent::decode(body).map_err(at)?;
        let out = &mut self.expanded;
        if !keeps {
            out.clear();
        }
        let start = out.len();
        if header.compression_type() == CompressionType::NONE {
            out.extend_from_slice(payload);
        } else {
            let damaged = |error: PayloadError| error.in_payload(offset);
            let unsound = PayloadError::Zstd("the payload is no row of zstd frames");
            let size = expanded_size_max(payload).ok_or_else(|| damaged(unsound))?;
            out.reserve(usize::try_from(size).unwrap_or(usize::MAX));
            let expander = match &mut self.expander {
                Some(expander) => expander,
                none => none.insert(Expander::new()?),
            };
            expander.expand_whole(payload, out).map_err(damaged)?;
        }
        if out.len() == start {
            return Err(PayloadError::from(no_events()).in_payload(offset).into());
        }
        let uncompressed = (out.len() - start) as u64;
        let sizes = PayloadSizes { compressed: header.payload_size(), uncompressed };
        Ok(PayloadEvents {
            payload_offset: offset,
            end_log_pos,
            small: true,
            next: start,
            start,
            index: 0,
            base: 0,
            end: Some(PayloadEnd { offset, sizes }),
        })
    }
}
