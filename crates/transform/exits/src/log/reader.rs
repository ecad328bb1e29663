//! The gate: an input that reads as the masked form of another.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use binlogz_flow::{Input, Live, WalkEnd, walk};
use binlogz_schema::TablesOfLogs;
use crossbeam_channel::{Receiver, bounded};
use parking_lot::Mutex;

use super::run::{ExitProgress, ExitRun};
use super::sink::{LogSink, MaskedChunk};
use super::walker::LogMasker;
use crate::counts::ExitCounts;
use crate::policy::ExitPolicy;

/// Chunks that wait to be read.
const QUEUED_MAX: usize = 4;

/// Logs that leave by one policy, one after the other.
///
/// Each is masked by a thread of its own while it is read, with bounded memory: a transaction beyond 8 MiB waits in an encrypted temporary
/// file until its length is known. Positions are those of the masked log.
#[derive(Debug, Clone)]
pub struct MaskedLogs(Arc<ExitRun>);

impl MaskedLogs {
    /// Logs that leave by this policy. `tables` tells columns' names where the log doesn't.
    pub fn new(policy: ExitPolicy, tables: TablesOfLogs) -> Self {
        let progress = Mutex::new(ExitProgress::default());
        MaskedLogs(Arc::new(ExitRun { policy, tables: tables.for_masks(), completes: false, progress }))
    }

    /// As [`MaskedLogs::new`], for readers that have to know the columns: table maps get the names, members and keys that `tables` tells.
    pub fn completing(policy: ExitPolicy, tables: TablesOfLogs) -> Self {
        let progress = Mutex::new(ExitProgress::default());
        MaskedLogs(Arc::new(ExitRun { policy, tables: tables.for_masks(), completes: true, progress }))
    }

    /// The masked form of the next log, which has this name. Reading it fails where the log can't be read, or where the policy doesn't
    /// say what may leave.
    ///
    /// # Errors
    ///
    /// The system has no room for a thread.
    pub fn log(&self, name: &str, input: Input) -> io::Result<Input> {
        let is_live = matches!(input, Input::Live(_));
        let (to, from) = bounded(QUEUED_MAX);
        let run = Arc::clone(&self.0);
        let name = name.to_owned();
        let sink = LogSink::new(to, is_live);
        thread::Builder::new().name("exits".to_owned()).spawn(move || mask(&run, &name, input, sink))?;
        let reader = MaskedReader { from, chunk: Vec::new(), read: 0, has_ended: false };
        Ok(if is_live { Input::Live(Box::new(reader)) } else { Input::Stream(Box::new(reader)) })
    }

    /// What was masked and left out in the logs that were read to their end.
    pub fn counts(&self) -> ExitCounts {
        let progress = self.0.progress.lock();
        let mut counts = progress.counts.clone();
        let tables = self.0.policy.exact_tables().filter(|(number, _)| !progress.met_tables.contains(number));
        counts.unmet_tables = tables.map(|(_, shown)| shown).collect();
        counts
    }
}

fn mask(run: &ExitRun, name: &str, input: Input, sink: LogSink) {
    run.tables.begin_log(name);
    let mut masker = LogMasker::new(run, name, sink);
    let failed = match walk(input, &mut masker) {
        Ok(WalkEnd::Cut(cut)) => {
            run.progress.lock().counts.cuts.push((name.to_owned(), cut));
            None
        }
        Ok(WalkEnd::Whole | WalkEnd::Stopped) => None,
        Err(error) => Some(error.to_string()),
    };
    masker.finish(failed);
}

/// Reads the masked log.
struct MaskedReader {
    from: Receiver<MaskedChunk>,
    chunk: Vec<u8>,
    /// Bytes of the chunk that were read.
    read: usize,
    has_ended: bool,
}

impl Read for MaskedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read >= self.chunk.len() && !self.has_ended {
            match self.from.recv() {
                Ok(MaskedChunk::Bytes(chunk)) => (self.chunk, self.read) = (chunk, 0),
                Ok(MaskedChunk::End) => self.has_ended = true,
                Ok(MaskedChunk::Failed(why)) => {
                    self.has_ended = true;
                    return Err(io::Error::other(why));
                }
                Err(_) => return Err(io::Error::other("the masking of the log broke off")),
            }
        }
        let count = self.chunk.get(self.read..).unwrap_or_default().read(buffer)?;
        self.read += count;
        Ok(count)
    }
}

impl Live for MaskedReader {
    fn is_drained(&self) -> bool {
        self.read >= self.chunk.len() && self.from.is_empty()
    }
}
