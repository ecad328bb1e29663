//! How far a log is archived: `housekeeping::archiving` notes it, retention asks.

use std::sync::Mutex;

use binlogz_store::FileNumber;

use crate::lock::lock;

#[derive(Debug, Default)]
pub(crate) struct Archived {
    last: Mutex<Option<FileNumber>>,
}

impl Archived {
    pub(crate) fn last(&self) -> Option<FileNumber> {
        *lock(&self.last)
    }

    pub(crate) fn advance(&self, number: FileNumber) {
        let mut last = lock(&self.last);
        *last = (*last).max(Some(number));
    }
}
