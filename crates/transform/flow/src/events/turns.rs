//! A state that must see all events in order, handed from batch to batch.
//!
//! ```text
//! batch 1   [state] [ work .................. ]
//! batch 2           [state] [ work .................. ]
//! batch 3                   [state] ...
//! ```
//!
//! The result for a batch may depend on all events before it, though seldom on much of them. Each batch
//! therefore takes its [`BatchTurn`]: it waits for the state that the previous batch left, updates it with its own
//! events, which must be quick, and hands it on. Then it does its work while the next batch has its turn.

use crossbeam_channel::{Receiver, Sender, bounded};

/// The turn of a batch.
#[derive(Debug)]
pub struct BatchTurn<S> {
    before: Receiver<S>,
    after: Sender<S>,
}

/// Makes the turns of batches, one after the other.
#[derive(Debug)]
pub(super) struct BatchTurns<S> {
    next: Receiver<S>,
}

impl<S> BatchTurns<S> {
    pub(super) fn new(first: S) -> Self {
        let (sender, next) = bounded(1);
        // The receiver is there, and there is room for one.
        let _ = sender.send(first);
        BatchTurns { next }
    }

    pub(super) fn next(&mut self) -> BatchTurn<S> {
        let (after, next) = bounded(1);
        BatchTurn { before: std::mem::replace(&mut self.next, next), after }
    }

    /// The state that the last batch left, if all batches passed it on.
    pub(super) fn last(self) -> Option<S> {
        self.next.try_recv().ok()
    }
}

impl<S> BatchTurn<S> {
    /// Waits for the state after the previous batch. `None` if an earlier batch failed, so that this one's
    /// result will not be used.
    pub fn wait(&self) -> Option<S> {
        self.before.recv().ok()
    }

    /// Hands the state on to the next batch.
    pub fn pass(self, state: S) {
        // Nothing waits for it once the run has failed.
        let _ = self.after.send(state);
    }
}
