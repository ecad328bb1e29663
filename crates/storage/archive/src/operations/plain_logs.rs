//! Logs as they are packed, one after the other: while one is gone through, the next is taken from its blocks.

use std::collections::BTreeSet;
use std::io::BufWriter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use binlogz_scratch_file::Scratch;

use crate::error::{Error, Result};
use crate::format::FileEntry;
use crate::operations::part::{LogParts, ObjectContents};
use crate::operations::restore::{self, LastObject};
use crate::storage::{ArchiveStorage, ObjectName};

/// A log as it is packed, or parts of it.
#[derive(Debug)]
pub struct PlainLog {
    /// The log's bytes, without those of the gaps.
    pub bytes: Arc<Scratch>,
    /// The parts left out, in order, each between two events.
    pub gaps: Vec<Range<u64>>,
}

/// Logs as they are packed, in their order.
#[derive(Debug)]
pub struct PlainLogs(Receiver<Result<PlainLog>>);

impl PlainLogs {
    /// The next log.
    ///
    /// # Errors
    ///
    /// As [`plain`](super::erase::plain), for this log alone; a log beyond the last.
    pub fn next_log(&mut self) -> Result<PlainLog> {
        let beyond = |_| Err(Error::damaged("logs", "one more", "as many as there are"));
        self.0.recv().unwrap_or_else(beyond)
    }
}

/// Gives these logs to `taker`, which may leave the last ones. Of a log for which `starts` has some, only the runs that begin there are given,
/// its head and its end: the checksums of their blocks are compared, instead of the SHA-256 of the log.
pub(super) fn read_ahead<T>(
    storage: &dyn ArchiveStorage,
    logs: &[FileEntry],
    starts: &(dyn Fn(&FileEntry) -> Option<BTreeSet<u64>> + Sync),
    workers: usize,
    taker: impl FnOnce(&mut PlainLogs) -> T,
) -> T {
    thread::scope(|scope| {
        // One waits while the one before it is used: there are two temporary files.
        let (sender, receiver) = mpsc::sync_channel(0);
        scope.spawn(move || {
            for log in logs {
                let read = match starts(log) {
                    Some(starts) => parts(storage, log, &starts, workers),
                    None => whole(storage, log, workers),
                };
                if sender.send(read).is_err() {
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

fn whole(storage: &dyn ArchiveStorage, log: &FileEntry, workers: usize) -> Result<PlainLog> {
    Ok(PlainLog { bytes: restore::plain(storage, log, workers)?, gaps: Vec::new() })
}

fn parts(
    storage: &dyn ArchiveStorage,
    log: &FileEntry,
    starts: &BTreeSet<u64>,
    workers: usize,
) -> Result<PlainLog> {
    let last = LastObject::default();
    let open = |name: &ObjectName| ObjectContents::open(storage, &last, name).map(Arc::new);
    let objects = log.objects.iter().map(open).collect::<Result<Vec<_>>>()?;
    let chosen = LogParts::choose(log, objects, &mut |run| starts.contains(&run.start()))?;
    let Some(chosen) = chosen else { return whole(storage, log, workers) };
    let scratch = Scratch::new().map_err(Error::io("make a temporary file"))?;
    let mut out = BufWriter::with_capacity(1 << 18, scratch);
    chosen.write(&mut out, workers)?;
    let scratch =
        out.into_inner().map_err(|error| Error::io("write a temporary file")(error.into_error()))?;
    Ok(PlainLog { bytes: Arc::new(scratch), gaps: chosen.gaps })
}
