//! The state of an open store, shared by its writer, its readers and threads that sync.

pub(crate) mod ends;
pub(crate) mod latch;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::files::log_file::LogFile;
use crate::files::names::FileNumber;
use crate::files::watermark::Watermark;
use crate::files::{Position, StorePlace};
use crate::recovery::damage::{Damage, Damages};
use crate::storage::Storage;
use ends::SharedPositions;
use latch::Latch;

/// Shared by writers, readers and threads that sync.
#[derive(Debug)]
pub(crate) struct StoreShared {
    pub(crate) place: StorePlace,
    pub(crate) positions: SharedPositions,
    pub(crate) files: Mutex<Vec<FileNumber>>,
    /// Files outside the log that readers can still read, and where they are: see `open::lending`.
    pub(crate) lent: Mutex<BTreeMap<FileNumber, LentFile>>,
    /// The file that a sync would sync, and up to where.
    pub(crate) unsynced: Mutex<Option<(Arc<LogFile>, Position)>>,
    pub(crate) watermark: Watermark,
    pub(crate) damages: Mutex<Damages>,
    /// Held during a sync: if two syncs run at once, the system reports a failure to only one of them.
    pub(crate) syncing: Mutex<()>,
    pub(crate) latch: Latch,
}

impl StoreShared {
    /// The damage of the last file.
    pub(crate) fn damage(&self) -> Option<Arc<Damage>> {
        self.damages.lock().last.clone()
    }

    /// The known damage of a file.
    pub(crate) fn damage_of(&self, file: FileNumber) -> Option<Arc<Damage>> {
        self.damages.lock().of(file).cloned()
    }

    /// The log is durable up to here, but this has not been announced yet.
    pub(crate) fn note_durable(&self, position: Position, now: bool) -> Result<()> {
        self.watermark.note(self.place.storage.as_ref(), position, now)
    }
}

/// Where a lent file is.
#[derive(Debug, Clone)]
pub(crate) struct LentFile {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) name: String,
}
