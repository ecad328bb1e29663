//! Logs as they are packed, one after the other: while one is gone through, the next is taken from its blocks.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use binlogz_scratch_file::Scratch;

use crate::error::{Error, Result};
use crate::format::FileEntry;
use crate::operations::restore;
use crate::storage::ArchiveStorage;

/// Logs as they are packed, in their order.
#[derive(Debug)]
pub struct PlainLogs(Receiver<Result<Arc<Scratch>>>);

impl PlainLogs {
    /// The next log.
    ///
    /// # Errors
    ///
    /// As [`plain`](super::erase::plain), for this log alone; a log beyond the last.
    pub fn next_log(&mut self) -> Result<Arc<Scratch>> {
        let beyond = |_| Err(Error::damaged("logs", "one more", "as many as there are"));
        self.0.recv().unwrap_or_else(beyond)
    }
}

/// Gives these logs to `taker`, which may leave the last ones.
pub fn read_ahead<T>(
    storage: &dyn ArchiveStorage,
    logs: &[FileEntry],
    workers: usize,
    taker: impl FnOnce(&mut PlainLogs) -> T,
) -> T {
    thread::scope(|scope| {
        // One waits while the one before it is used: there are two temporary files.
        let (sender, receiver) = mpsc::sync_channel(0);
        scope.spawn(move || {
            for log in logs {
                if sender.send(restore::plain(storage, log, workers)).is_err() {
                    return;
                }
            }
        });
        let mut logs = PlainLogs(receiver);
        let taken = taker(&mut logs);
        drop(logs);
        taken
    })
}
