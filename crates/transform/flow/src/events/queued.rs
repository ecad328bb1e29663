//! A batch of events on its way from the reading thread to a worker.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::carried::CarriedState;
use super::event::PayloadEnd;
use super::log::InputLog;
use super::payload_place::PayloadPlace;
use super::permit::Permit;
use crate::read::buffers::LentBuffer;
use crate::read::input::ReadAt;
use crate::unread::UnreadNotes;

/// Events on their way to a worker.
#[derive(Debug)]
pub(super) struct QueuedBatch {
    pub(super) log: Arc<InputLog>,
    pub(super) bytes: Arc<LentBuffer>,
    /// The range of the batch in the bytes.
    pub(super) range: Range<usize>,
    /// Where the range can be read again, if it is in a file.
    pub(super) again: Option<ReadAgain>,
    pub(super) content: BatchContent,
    pub(super) carried: CarriedState,
    /// Bytes of the log that have been read when this batch is done.
    pub(super) bytes_read: u64,
    /// Held while the batch is larger than the usual limit.
    pub(super) permit: Option<Permit>,
    /// Whether checksums are checked.
    pub(super) verify: bool,
    /// Changes that could not be read.
    pub(super) unread: UnreadNotes,
}

/// Where the events of a batch are.
#[derive(Debug)]
pub(super) enum BatchContent {
    /// Events of the log, from this offset on.
    Log { offset: u64 },
    /// Events of a payload that was too large for a worker.
    Payload {
        place: Arc<PayloadPlace>,
        /// Whether the payload event itself comes first.
        opens: bool,
        /// The index of the batch's first event in the payload, and its offset there.
        first_index: u64,
        first_offset: u64,
        /// Set if the payload ends after the last event.
        end: Option<PayloadEnd>,
    },
}

/// A place in a file that can be read a second time.
#[derive(Clone)]
pub(super) struct ReadAgain {
    pub(super) places: Arc<dyn ReadAt>,
    pub(super) offset: u64,
}

impl ReadAgain {
    pub(super) fn new(places: &Arc<dyn ReadAt>, offset: u64) -> Self {
        ReadAgain { places: Arc::clone(places), offset }
    }
}

impl fmt::Debug for ReadAgain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAgain").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl QueuedBatch {
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }

    /// Where it begins in the log; of one inside a payload, where the payload event begins.
    pub(super) fn start(&self) -> u64 {
        match &self.content {
            BatchContent::Log { offset } => *offset,
            BatchContent::Payload { place, .. } => place.offset,
        }
    }

    /// Offset in the log of a place in the bytes.
    pub(super) fn offset_of(&self, place: usize) -> u64 {
        match &self.content {
            BatchContent::Log { offset } => offset + (place - self.range.start) as u64,
            BatchContent::Payload { place, .. } => place.offset,
        }
    }
}
