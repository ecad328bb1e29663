//! What a worker finds next in a batch, as ranges: the items that borrow from the batch are made of it, as often as they are
//! asked for.

use std::ops::Range;

use binlogz_binlog::event::TransactionPayloadHeader;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventFrame, EventType};

use super::event::{BatchItem, Event, INSIDE, PayloadEnd, StoredEvent};
use super::queued::{BatchContent, QueuedBatch};
use crate::position::{EventPosition, InsidePayload};

/// An item to return, as ranges instead of borrows.
#[derive(Debug, Clone)]
pub(super) enum ItemStep {
    Event {
        range: Range<usize>,
        checksum_size: usize,
        event_type: EventType,
    },
    /// A compressed event of MariaDB, expanded into the worker's buffer. `stored`: where it is in the batch's bytes.
    Expanded {
        range: Range<usize>,
        stored: Range<usize>,
        event_type: EventType,
    },
    LargePayload,
    Inside {
        range: Range<usize>,
        small: bool,
        event_type: EventType,
        payload_offset: u64,
        inside: InsidePayload,
    },
    PayloadEnd(PayloadEnd),
}

/// A step's finding, as borrows. The caller fills in its boundary in the transaction.
#[inline]
pub(super) fn item_of<'a>(
    batch: &'a QueuedBatch,
    expanded: &'a [u8],
    step: &ItemStep,
) -> Option<BatchItem<'a>> {
    let log = &*batch.log;
    let event = match step {
        ItemStep::PayloadEnd(end) => return Some(BatchItem::PayloadEnd(*end)),
        ItemStep::Event { range, checksum_size, .. } => {
            let position = EventPosition { offset: batch.offset_of(range.start), inside: None };
            let frame = EventFrame::from_bytes(batch.bytes.get(range.clone())?, *checksum_size).ok()?;
            let mut event = Event::whole(log, position, frame);
            if event.header.event_type == EventType::TRANSACTION_PAYLOAD {
                event.body = payload_fields(event.body)?;
            }
            event
        }
        ItemStep::Expanded { range, stored, .. } => {
            let position = EventPosition { offset: batch.offset_of(stored.start), inside: None };
            let frame = EventFrame::from_bytes(expanded.get(range.clone())?, 0).ok()?;
            let event = batch.bytes.get(stored.clone())?;
            Event::expanded(log, position, frame, StoredEvent::of(event, log))
        }
        ItemStep::LargePayload => {
            let BatchContent::Payload { place, .. } = &batch.content else { return None };
            let header = place.header;
            let body = place.front.get(HEADER_SIZE..)?;
            let position = EventPosition { offset: place.offset, inside: None };
            let placement = INSIDE;
            let unread = None;
            Event {
                log,
                position,
                placement,
                header,
                body,
                frame: None,
                large: Some(place),
                stored: None,
                unread,
            }
        }
        ItemStep::Inside { range, small, payload_offset, inside, .. } => {
            let bytes = if *small { expanded } else { batch.bytes() };
            let frame = EventFrame::from_bytes(bytes.get(range.clone())?, 0).ok()?;
            Event::whole(log, EventPosition { offset: *payload_offset, inside: Some(*inside) }, frame)
        }
    };
    Some(BatchItem::Event(Event { unread: Some(&batch.unread), ..event }))
}

/// The fields before the payload in an event's body.
fn payload_fields(body: &[u8]) -> Option<&[u8]> {
    let (_, size) = TransactionPayloadHeader::decode_front(body, body.len() as u64).ok()??;
    body.get(..size)
}
