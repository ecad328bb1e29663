//! Events of a batch that were read ahead, to be looked at more than once.

use super::batch::{Batch, Event, Item, Step, item_of};
use super::kept::KeptEvents;

/// See [`EventBatch::read_ahead`](super::EventBatch::read_ahead). One for all batches of a worker.
#[derive(Debug, Default)]
pub struct EventList {
    pub(super) steps: Vec<Step>,
}

/// The events of a list, with the bytes they stand in. Of their transactions nothing is known.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'l> {
    pub(super) batch: &'l Batch,
    /// What small payloads were expanded into.
    pub(super) expanded: &'l [u8],
    pub(super) steps: &'l [Step],
}

impl<'l> Listed<'l> {
    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = Item<'l>> + use<'l> {
        self.steps.iter().filter_map(move |step| item_of(self.batch, self.expanded, step))
    }

    /// All of them, each with its place in the list.
    pub fn places(self) -> impl Iterator<Item = (usize, Item<'l>)> + use<'l> {
        let steps = self.steps.iter().enumerate();
        steps.filter_map(move |(place, step)| Some((place, item_of(self.batch, self.expanded, step)?)))
    }

    /// The event at a place; `None` if that is no event.
    pub fn event(self, place: usize) -> Option<Event<'l>> {
        match item_of(self.batch, self.expanded, self.steps.get(place)?)? {
            Item::Event(event) => Some(event),
            Item::PayloadEnd(_) => None,
        }
    }

    /// Keeps the events at these places beyond the batch.
    pub fn keep(self, places: impl Iterator<Item = usize> + Clone) -> KeptEvents {
        KeptEvents::new(self.batch, self.expanded, places.filter_map(|place| self.steps.get(place)))
    }
}
