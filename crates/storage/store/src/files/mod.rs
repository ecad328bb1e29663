//! The files of a log and beside it: their names, and how each is read and written.

pub(crate) mod copies;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod log_file;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod sums;
pub(crate) mod watermark;

use std::sync::Arc;

use binlogz_encryption::Keyring;

use crate::storage::Storage;
use names::{FileNumber, LogNames};

/// A place in the log: its offset is that of the plain log, even if the file is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The file.
    pub file: FileNumber,
    /// The offset in that file.
    pub offset: u64,
}

/// Where a store is, and how its files are named and opened.
#[derive(Debug)]
pub(crate) struct StorePlace {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) names: LogNames,
    pub(crate) keyring: Option<Arc<Keyring>>,
}
