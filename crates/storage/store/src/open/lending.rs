//! Files outside the log that readers can use: purged files fetched back from where they are kept. The index
//! does not list them, and recovery does not know them: a caller that lends a file made it, whole, and
//! removes it.

use std::sync::Arc;

use crate::files::Position;
use crate::files::names::FileNumber;
use crate::open::store::BinlogStore;
use crate::state::LentFile;
use crate::storage::Storage;

impl BinlogStore {
    /// Readers find a file that is not in the log here until it is taken back.
    pub fn lend(&self, number: FileNumber, storage: Arc<dyn Storage>, name: &str) {
        // It is another copy.
        self.shared.damages.lock().closed.remove(&number);
        self.shared.lent.lock().insert(number, LentFile { storage, name: name.to_owned() });
    }

    /// Readers no longer find the file; those that have it open can keep reading.
    pub fn take_back(&self, number: FileNumber) {
        self.shared.lent.lock().remove(&number);
        self.shared.damages.lock().closed.remove(&number);
    }

    /// Says where a log that has no files left ended: a lent file of that log is read up to there.
    pub fn ended_at(&self, end: Position) {
        self.shared.positions.set_both(end);
    }
}
