//! What somebody who goes through a file in one form notes for the index.

use std::ops::Range;

use binlogz_binlog::gtid::{Gtid, GtidSet};

use super::{Checkpoints, is_place};
use crate::form::Form;

/// A transaction that somebody went by.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) stored: Range<u64>,
    pub(crate) gtid: Option<Gtid>,
    pub(crate) committed: u64,
}

/// Collects GTIDs from place to place, for whoever goes through a file in one form.
#[derive(Debug, Default)]
pub(crate) struct Noting {
    gtids: GtidSet,
    /// It began between places: at the next one only positions are known.
    is_partial: bool,
}

impl Noting {
    /// Begins between places.
    pub(crate) fn between_places() -> Self {
        Noting { is_partial: true, ..Noting::default() }
    }

    /// A transaction that began with a GTID event ends here.
    pub(crate) fn transaction(&mut self, places: &Checkpoints, form: Form, seen: &Seen, at: u64) {
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
        let gtids = std::mem::take(&mut self.gtids);
        match std::mem::take(&mut self.is_partial) {
            true => places.note_known(form, stored, at),
            false => places.note(form, stored, at, committed, &gtids),
        }
    }
}
