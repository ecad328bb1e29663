//! Events of a batch that were read ahead, to be looked at more than once.

use binlogz_binlog::header::{EVENT_TYPE_OFFSET, FLAGS_OFFSET, HEADER_SIZE};
use binlogz_binlog::{EventType, HeaderFlags};

use super::event::{BatchItem, Event};
use super::kept::KeptEvents;
use super::log::InputLog;
use super::queued::QueuedBatch;
use super::step::{ItemStep, item_of};

/// The events of a batch, read before they are processed ([`EventBatch::read_ahead`](super::EventBatch::read_ahead)).
/// A worker uses one list for all its batches.
#[derive(Debug, Default)]
pub struct EventList {
    pub(super) steps: Vec<ItemStep>,
}

/// The events of a list, with the bytes that contain them. Their transactions are not known.
#[derive(Debug, Clone, Copy)]
pub struct ListedEvents<'l> {
    pub(super) batch: &'l QueuedBatch,
    /// The events of small payloads, expanded.
    pub(super) expanded: &'l [u8],
    pub(super) steps: &'l [ItemStep],
}

/// The outline of an event: nothing is decoded or looked up.
#[derive(Debug, Clone, Copy)]
pub struct Outline<'l> {
    /// Type of the event.
    pub event_type: EventType,
    /// The flags of its header.
    pub flags: HeaderFlags,
    /// The bytes between header and checksum.
    pub body: &'l [u8],
    /// Where the event ends in its log, in bytes; `None` for one inside a payload.
    pub end: Option<u64>,
}

impl<'l> Outline<'l> {
    #[inline]
    fn new(event: &'l [u8], checksum_size: usize, end: Option<u64>) -> Option<Self> {
        let (header, body) = event.split_first_chunk::<HEADER_SIZE>()?;
        let [low, high] = *header.get(FLAGS_OFFSET..)?.first_chunk()?;
        Some(Outline {
            event_type: EventType(*header.get(EVENT_TYPE_OFFSET)?),
            flags: HeaderFlags(u16::from_le_bytes([low, high])),
            body: body.get(..body.len().checked_sub(checksum_size)?)?,
            end,
        })
    }
}

impl<'l> ListedEvents<'l> {
    /// The log that they stand in.
    pub fn log(self) -> &'l InputLog {
        &self.batch.log
    }

    /// How many items there are.
    pub fn len(self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.steps.is_empty()
    }

    /// The type of each event from an index on, without reading its bytes; `None` if it is not an event in
    /// memory. Ends of payloads are skipped.
    #[inline]
    pub fn types(self, from: usize) -> impl Iterator<Item = (usize, Option<EventType>)> + use<'l> {
        let steps = self.steps.iter().enumerate().skip(from);
        steps.filter_map(|(place, step)| match step {
            ItemStep::Event { event_type, .. }
            | ItemStep::Expanded { event_type, .. }
            | ItemStep::Inside { event_type, .. } => Some((place, Some(*event_type))),
            ItemStep::LargePayload => Some((place, None)),
            ItemStep::PayloadEnd(_) => None,
        })
    }

    /// An event in outline; `None` if it is not an event in memory.
    #[inline]
    pub fn outline(self, place: usize) -> Option<Outline<'l>> {
        match self.steps.get(place)? {
            ItemStep::Event { range, checksum_size, .. } => {
                let end = self.batch.offset_of(range.end);
                Outline::new(self.batch.bytes.get(range.clone())?, *checksum_size, Some(end))
            }
            ItemStep::Expanded { range, stored, .. } => {
                let end = self.batch.offset_of(stored.end);
                Outline::new(self.expanded.get(range.clone())?, 0, Some(end))
            }
            ItemStep::Inside { range, small, .. } => {
                let bytes = if *small { self.expanded } else { self.batch.bytes() };
                Outline::new(bytes.get(range.clone())?, 0, None)
            }
            ItemStep::LargePayload | ItemStep::PayloadEnd(_) => None,
        }
    }

    /// The item at an index.
    pub fn item(self, place: usize) -> Option<BatchItem<'l>> {
        item_of(self.batch, self.expanded, self.steps.get(place)?)
    }

    /// All events, in order.
    pub fn iter(self) -> impl Iterator<Item = BatchItem<'l>> + use<'l> {
        self.steps.iter().filter_map(move |step| item_of(self.batch, self.expanded, step))
    }

    /// All events, each with its place in the list.
    pub fn places(self) -> impl Iterator<Item = (usize, BatchItem<'l>)> + use<'l> {
        self.places_from(0)
    }

    /// The events from a place in the list on, each with its place.
    pub fn places_from(self, place: usize) -> impl Iterator<Item = (usize, BatchItem<'l>)> + use<'l> {
        let steps = self.steps.iter().enumerate().skip(place);
        steps.filter_map(move |(place, step)| Some((place, item_of(self.batch, self.expanded, step)?)))
    }

    /// The event at an index; `None` if that is not an event.
    pub fn event(self, place: usize) -> Option<Event<'l>> {
        match self.item(place)? {
            BatchItem::Event(event) => Some(event),
            BatchItem::PayloadEnd(_) => None,
        }
    }

    /// Keeps the events at these places beyond the batch.
    pub fn keep(self, places: impl Iterator<Item = usize> + Clone) -> KeptEvents {
        KeptEvents::new(self.batch, self.expanded, places.filter_map(|place| self.steps.get(place)))
    }
}
