//! Rows that a REPLACE deleted and inserted.
//!
//! Since 9.6 a REPLACE leaves the rows alone that refer to the one it replaces, though the log has a delete and an insert. A DELETE of that row
//! would fail on account of them, or take them along. So it is made unchecked:
//!
//! ```text
//! same values in all keys    nothing can be left alone: the INSERT right after the DELETE gives it back, or the run ends
//! other ones, or not known   rows without those that they refer to are counted before and after, as after a cascade
//! ```

use crate::record::{RowFlags, ScriptRow};

/// The most rows that one row can replace: as many as a table may have keys.
const ROWS_MAX: usize = 64;

/// Rows that a REPLACE may have deleted, until the row comes that it inserted.
#[derive(Default)]
pub(super) struct ReplacedRows {
    /// The table of the last of them, and the digest of its values in all keys.
    last: Option<(usize, u128)>,
    /// The rows that are to be deleted again.
    waiting: Vec<ScriptRow<'static>>,
}

impl ReplacedRows {
    /// A row passes, of this table and with this digest. Returns that of the row before it, if that may have been deleted by a REPLACE in the
    /// same table.
    pub(super) fn pass(&mut self, (table, keys): (usize, u128), may_be_replaced: bool) -> Option<u128> {
        let last = std::mem::replace(&mut self.last, may_be_replaced.then_some((table, keys)));
        last.filter(|(of, _)| *of == table).map(|(_, keys)| keys)
    }

    /// Another transaction begins.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// A row waits to be kept. Returns one that waits no longer.
    pub(super) fn wait(&mut self, row: ScriptRow<'static>) -> Option<ScriptRow<'static>> {
        self.waiting.push(row);
        (self.waiting.len() > ROWS_MAX).then(|| self.waiting.remove(0))
    }

    /// Changes the flags of the rows that wait.
    pub(super) fn change_flags(&mut self, change: impl Fn(RowFlags) -> RowFlags) {
        self.waiting.iter_mut().for_each(|row| row.flags = change(row.flags));
    }

    /// The rows that wait: none does any more.
    pub(super) fn take(&mut self) -> Vec<ScriptRow<'static>> {
        std::mem::take(&mut self.waiting)
    }
}
