//! Events kept beyond their batch, because their result depends on much later events.
//!
//! They stay in the bytes that the batch came in. When there are too many, those of a file are dropped and
//! read from it a second time; those of payloads and pipes go to a temporary file, one after the other.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::{EventFrame, EventHeader};
use binlogz_payload::Spool;
use parking_lot::Mutex;

use super::event::{Event, StoredEvent};
use super::log::InputLog;
use super::queued::{QueuedBatch, ReadAgain};
use super::step::ItemStep;
use crate::position::EventPosition;
use crate::read::buffers::LentBuffer;
use crate::read::input::PlacesReader;

/// Events of one batch, see [`super::ListedEvents::keep`].
#[derive(Debug, Clone)]
pub struct KeptEvents {
    pub(super) log: Arc<InputLog>,
    /// The table maps that were in force where the batch began.
    pub(super) table_maps: Vec<Arc<[u8]>>,
    /// Where the batch began.
    pub(super) offset: u64,
    bytes: Bytes,
    /// Where the first of the bytes can be read again.
    again: Option<ReadAgain>,
    events: Vec<KeptEvent>,
}

/// Where the bytes of events are.
#[derive(Debug, Clone)]
enum Bytes {
    Memory(Arc<LentBuffer>),
    /// So many bytes of the log's file, which are read again.
    Log(ReadAgain, usize),
    /// A range of a temporary file.
    File(SpilledEvents, Range<u64>),
}

/// An event, by its place in the bytes.
#[derive(Debug, Clone)]
struct KeptEvent {
    range: Range<usize>,
    checksum_size: usize,
    position: EventPosition,
    /// How an event that was compressed in its log is stored there.
    stored: Option<StoredEvent>,
}

/// A temporary file for the kept events of several batches.
#[derive(Debug, Clone)]
pub struct SpilledEvents(Arc<Mutex<Spool>>);

impl Default for SpilledEvents {
    fn default() -> Self {
        SpilledEvents(Arc::new(Mutex::new(Spool::on_disk())))
    }
}

impl KeptEvents {
    /// `expanded` is the worker's buffer with the expanded small payloads.
    pub(super) fn new<'s>(
        batch: &QueuedBatch,
        expanded: &[u8],
        steps: impl Iterator<Item = &'s ItemStep> + Clone,
    ) -> Self {
        let is_copied =
            |step| matches!(step, &ItemStep::Inside { small: true, .. } | ItemStep::Expanded { .. });
        let copies = steps.clone().any(is_copied);
        let mut copied = Vec::new();
        let mut events = Vec::new();
        for step in steps {
            let mut stored = None;
            let (mut range, bytes, checksum_size, position) = match step {
                ItemStep::Event { range, checksum_size, .. } => {
                    let position = EventPosition { offset: batch.offset_of(range.start), inside: None };
                    (range.clone(), &***batch.bytes, *checksum_size, position)
                }
                ItemStep::Expanded { range, stored: place, .. } => {
                    let position = EventPosition { offset: batch.offset_of(place.start), inside: None };
                    stored = batch.bytes.get(place.clone()).map(|event| StoredEvent::of(event, &batch.log));
                    (range.clone(), expanded, 0, position)
                }
                ItemStep::Inside { range, small, payload_offset, inside, .. } => {
                    let position = EventPosition { offset: *payload_offset, inside: Some(*inside) };
                    let begin = batch.range.start;
                    match small {
                        true => (range.clone(), expanded, 0, position),
                        false => (begin + range.start..begin + range.end, &***batch.bytes, 0, position),
                    }
                }
                ItemStep::LargePayload | ItemStep::PayloadEnd(_) => continue,
            };
            if copies {
                let begin = copied.len();
                copied.extend_from_slice(bytes.get(range).unwrap_or_default());
                range = begin..copied.len();
            }
            events.push(KeptEvent { range, checksum_size, position, stored });
        }
        let bytes = if copies { Arc::new(copied.into()) } else { Arc::clone(&batch.bytes) };
        let again = batch.again.clone().filter(|_| !copies);
        KeptEvents {
            log: Arc::clone(&batch.log),
            table_maps: batch.carried.table_maps.clone(),
            offset: batch.start(),
            bytes: Bytes::Memory(bytes),
            again: again.map(|mut again| {
                // The batch may begin after the first byte.
                again.offset = again.offset.saturating_sub(batch.range.start as u64);
                again
            }),
            events,
        }
    }

    /// Bytes of memory that they take.
    pub fn memory(&self) -> usize {
        match &self.bytes {
            Bytes::Memory(bytes) => bytes.len(),
            Bytes::Log(..) | Bytes::File(..) => 0,
        }
    }

    /// The largest event's size.
    pub fn event_size_max(&self) -> usize {
        self.events.iter().map(|event| event.range.len()).max().unwrap_or(0)
    }

    /// Whether they can be read from their log a second time.
    pub fn can_be_read_again(&self) -> bool {
        self.again.is_some()
    }

    /// Frees their memory; those that can't be read again go to `file`.
    ///
    /// # Errors
    ///
    /// A file that can't be written.
    pub fn spill(&mut self, file: &SpilledEvents) -> io::Result<()> {
        let Bytes::Memory(bytes) = &self.bytes else { return Ok(()) };
        if let Some(mut again) = self.again.take() {
            let begin = self.events.first().map_or(0, |event| event.range.start);
            let end = self.events.last().map_or(0, |event| event.range.end);
            for event in &mut self.events {
                event.range = event.range.start - begin..event.range.end - begin;
            }
            again.offset += begin as u64;
            self.bytes = Bytes::Log(again, end - begin);
            return Ok(());
        }
        let mut spool = file.0.lock();
        let begin = spool.size();
        let mut end = 0;
        let mut written: Range<usize> = 0..0;
        for event in &mut self.events {
            // Neighbours are written together.
            if written.end != event.range.start {
                spool.append(bytes.get(written).unwrap_or_default())?;
                written = event.range.start..event.range.start;
            }
            written.end = event.range.end;
            event.range = end..end + event.range.len();
            end = event.range.end;
        }
        spool.append(bytes.get(written).unwrap_or_default())?;
        drop(spool);
        self.bytes = Bytes::File(file.clone(), begin..begin + end as u64);
        Ok(())
    }

    /// Whether the events are still available: the file belongs to others.
    fn check(&self, bytes: &[u8]) -> io::Result<()> {
        let header_of = |event: &KeptEvent| EventHeader::decode(bytes.get(event.range.clone())?).ok();
        let is_there = |event: &KeptEvent| {
            header_of(event).is_some_and(|header| header.event_size as usize == event.range.len())
        };
        if self.events.iter().all(is_there) {
            return Ok(());
        }
        Err(changed())
    }

    /// The events, read into `buffer` where they are in a file.
    ///
    /// # Errors
    ///
    /// A file that can't be read.
    pub fn read<'k>(
        &'k self,
        buffer: &'k mut Vec<u8>,
    ) -> io::Result<impl Iterator<Item = Event<'k>> + Clone + use<'k>> {
        let bytes: &'k [u8] = match &self.bytes {
            Bytes::Memory(bytes) => bytes,
            Bytes::Log(again, size) => {
                let reader =
                    PlacesReader { places: again.places.as_ref(), offset: again.offset, left: *size as u64 };
                fill(buffer, *size, reader).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => changed(),
                    _ => error,
                })?;
                self.check(buffer)?;
                buffer
            }
            Bytes::File(file, range) => {
                let spool = file.0.lock();
                fill(buffer, (range.end - range.start) as usize, spool.reader(range.clone()))?;
                buffer
            }
        };
        Ok(self.events.iter().filter_map(move |kept| {
            let frame = EventFrame::from_bytes(bytes.get(kept.range.clone())?, kept.checksum_size).ok()?;
            let event = match kept.stored {
                Some(stored) => Event::expanded(&self.log, kept.position, frame, stored),
                None => Event::whole(&self.log, kept.position, frame),
            };
            Some(Event { unread: Some(&self.log.unread), ..event })
        }))
    }
}

/// Reads this many bytes, replacing the buffer's contents. The old contents are overwritten without being
/// cleared.
fn fill(buffer: &mut Vec<u8>, size: usize, mut from: impl Read) -> io::Result<()> {
    buffer.resize(size, 0);
    from.read_exact(buffer)
}

#[cold]
fn changed() -> io::Error {
    io::Error::other("the log changed while it was read")
}
