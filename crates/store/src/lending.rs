//! Files outside the log, for its readers: files that were purged and brought back from where they are kept. The index does not
//! list them, and recovery doesn't know them: a caller that lends a file has made it, whole, and removes it.

use std::sync::Arc;

use crate::log_name::FileNumber;
use crate::positions::Position;
use crate::storage::Storage;
use crate::store::{BinlogStore, lock};

/// Where a lent file is.
#[derive(Debug, Clone)]
pub(crate) struct Lent {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) name: String,
}

impl BinlogStore {
    /// Readers find a file that is not in the log here, until it is taken back.
    pub fn lend(&self, number: FileNumber, storage: Arc<dyn Storage>, name: &str) {
        lock(&self.shared.lent).insert(number, Lent { storage, name: name.to_owned() });
    }

    /// Readers find it no more; those that have it open go on reading.
    pub fn take_back(&self, number: FileNumber) {
        lock(&self.shared.lent).remove(&number);
    }

    /// Says where a log ended that has no file any more: what is lent of it is read up to there.
    pub fn ended_at(&self, end: Position) {
        self.shared.positions.set_both(end);
    }
}
