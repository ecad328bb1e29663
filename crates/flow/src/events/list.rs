//! Events of a batch that were read ahead, to be looked at more than once.

use super::batch::Step;

/// See [`EventBatch::read_ahead`](super::EventBatch::read_ahead). One for all batches of a worker.
#[derive(Debug, Default)]
pub struct EventList {
    pub(super) steps: Vec<Step>,
}
