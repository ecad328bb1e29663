//! Collects the entries that a walk through a file in one form adds to the index.

use std::ops::Range;

use binlogz_binlog::gtid::{Gtid, GtidSet};

use super::{Checkpoints, is_place};
use crate::form::Form;

/// A transaction that a walk has passed.
#[derive(Debug)]
pub(crate) struct SeenTransaction {
    pub(crate) stored: Range<u64>,
    pub(crate) gtid: Option<Gtid>,
    pub(crate) committed: u64,
}

/// Collects GTIDs between checkpoints, for a walk through a file in one form.
#[derive(Debug, Default)]
pub(crate) struct GtidCollector {
    gtids: GtidSet,
    since: CollectionStart,
}

/// Where the collected GTIDs start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CollectionStart {
    /// The file's beginning.
    #[default]
    Beginning,
    /// A checkpoint, by its stored offset.
    Place(u64),
    /// Elsewhere: some GTIDs since the previous checkpoint are missing.
    Unknown,
}

impl GtidCollector {
    pub(crate) fn at_place(stored: u64) -> Self {
        GtidCollector { since: CollectionStart::Place(stored), ..GtidCollector::default() }
    }

    pub(crate) fn between_places() -> Self {
        GtidCollector { since: CollectionStart::Unknown, ..GtidCollector::default() }
    }

    /// Some transactions were not seen: the collected GTIDs are incomplete until the next checkpoint.
    pub(crate) fn missed(&mut self) {
        *self = GtidCollector::between_places();
    }

    /// A transaction that began with a GTID event ends here.
    pub(crate) fn transaction(&mut self, places: &Checkpoints, form: Form, seen: &SeenTransaction, at: u64) {
        if let Some(gtid) = seen.gtid {
            self.gtids.add(gtid);
        }
        if is_place(seen.stored.start, seen.stored.end) {
            self.note(places, form, seen.stored.end, at, seen.committed);
        }
    }

    /// The file, which is closed, ends here.
    pub(crate) fn end(&mut self, places: &Checkpoints, form: Form, stored: u64, at: u64) {
        self.note(places, form, stored, at, 0);
    }

    fn note(&mut self, places: &Checkpoints, form: Form, stored: u64, at: u64, committed: u64) {
        let GtidCollector { gtids, since } = std::mem::replace(self, GtidCollector::at_place(stored));
        places.note(form, stored, at, committed, since, gtids);
    }
}
