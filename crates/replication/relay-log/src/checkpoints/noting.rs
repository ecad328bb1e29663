//! Collects the entries that a walk through a file in one form adds to the index.

use std::ops::Range;

use binlogz_binlog::gtid::{Gtid, GtidSet};

use super::{Checkpoints, is_place};
use crate::form::Form;

/// A transaction that a walk has passed.
#[derive(Debug)]
pub struct SeenTransaction {
    /// Its bytes in the stored file.
    pub stored: Range<u64>,
    /// Its GTID, if it has one.
    pub gtid: Option<Gtid>,
    /// When it was committed, in microseconds since 1970; 0 if unknown.
    pub committed: u64,
}

/// Collects GTIDs between checkpoints, for a walk through a file in one form.
#[derive(Debug, Default)]
pub struct GtidCollector {
    gtids: GtidSet,
    since: CollectionStart,
}

/// Where the collected GTIDs start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CollectionStart {
    /// The file's beginning.
    #[default]
    Beginning,
    /// A checkpoint, by its stored offset.
    Place(u64),
    /// Elsewhere: some GTIDs since the previous checkpoint are missing.
    Unknown,
}

impl GtidCollector {
    /// Begins at a checkpoint, at this offset of the stored file.
    pub fn at_place(stored: u64) -> Self {
        GtidCollector { since: CollectionStart::Place(stored), ..GtidCollector::default() }
    }

    /// Begins where earlier transactions of the stored file were not seen.
    pub fn between_places() -> Self {
        GtidCollector { since: CollectionStart::Unknown, ..GtidCollector::default() }
    }

    /// Some transactions were not seen: the collected GTIDs are incomplete until the next checkpoint.
    pub fn missed(&mut self) {
        *self = GtidCollector::between_places();
    }

    /// A transaction that began with a GTID event ends here.
    pub fn transaction(&mut self, places: &Checkpoints, form: Form, seen: &SeenTransaction, at: u64) {
        if let Some(gtid) = seen.gtid {
            self.gtids.add(gtid);
        }
        if is_place(seen.stored.start, seen.stored.end) {
            self.note(places, form, seen.stored.end, at, seen.committed);
        }
    }

    /// The file, which is closed, ends here.
    pub fn end(&mut self, places: &Checkpoints, form: Form, stored: u64, at: u64) {
        self.note(places, form, stored, at, 0);
    }

    fn note(&mut self, places: &Checkpoints, form: Form, stored: u64, at: u64, committed: u64) {
        let GtidCollector { gtids, since } = std::mem::replace(self, GtidCollector::at_place(stored));
        places.note(form, stored, at, committed, since, gtids);
    }
}
