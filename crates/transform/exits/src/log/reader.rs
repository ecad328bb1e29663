//! The gate: an input that reads as the masked form of another.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use binlogz_flow::{Input, Live, WalkEnd, walk};
use binlogz_schema::TablesOfLogs;
use crossbeam_channel::{Receiver, bounded};
use parking_lot::Mutex;

use super::run::ExitRun;
use super::sink::{LogSink, MaskedChunk};
use super::walker::LogMasker;
use crate::counts::ExitCounts;
use crate::policy::ExitPolicy;

/// Chunks that wait to be read.
const QUEUED_MAX: usize = 4;

/// Readings whose state is remembered: one pass over logs may begin another one meanwhile.
const RUNS_MAX: usize = 16;

/// Logs that leave by one policy, read in their order, as often as a command needs.
///
/// Each is masked by a thread of its own while it is read, with bounded memory: a transaction beyond 8 MiB waits in an encrypted temporary
/// file until its length is known. Positions are those of the masked log.
#[derive(Debug)]
pub struct MaskedLogs {
    /// Of it nothing was read.
    blank: ExitRun,
    /// The readings that were begun, the last one at the end.
    runs: Mutex<Vec<Arc<ExitRun>>>,
    /// How many logs [`MaskedLogs::log`] gave.
    given: AtomicUsize,
}

impl MaskedLogs {
    /// Logs that leave by this policy. `tables` tells columns' names where the log doesn't.
    pub fn new(policy: ExitPolicy, tables: TablesOfLogs) -> Self {
        Self::of(ExitRun::new(Arc::new(policy), Arc::new(tables.for_masks()), false))
    }

    /// As [`MaskedLogs::new`], for readers that have to know the columns: table maps get the names, members and keys that `tables` tells.
    pub fn completing(policy: ExitPolicy, tables: TablesOfLogs) -> Self {
        Self::of(ExitRun::new(Arc::new(policy), Arc::new(tables.for_masks()), true))
    }

    fn of(blank: ExitRun) -> Self {
        MaskedLogs { blank, runs: Mutex::default(), given: AtomicUsize::new(0) }
    }

    /// Names the policy and its key: the same for the same ones.
    pub fn policy_digest(&self) -> String {
        self.blank.policy.digest()
    }

    /// The masked form of the next log, which has this name, for commands that read each log once.
    ///
    /// # Errors
    ///
    /// As [`MaskedLogs::log_at`].
    pub fn log(&self, name: &str, input: Input) -> io::Result<Input> {
        self.log_at(self.given.fetch_add(1, Ordering::Relaxed), name, input)
    }

    /// The masked form of the log that has this name, and this number among all, counted from 0. With number 0 a new reading begins.
    /// Reading it fails where the log can't be read, or where the policy doesn't say what may leave.
    ///
    /// # Errors
    ///
    /// No reading has masked exactly the logs before it to their end: their statements tell which column is which. The system has no
    /// room for a thread.
    pub fn log_at(&self, number: usize, name: &str, input: Input) -> io::Result<Input> {
        let run = self.run_at(number).ok_or_else(|| {
            io::Error::other("can't be masked, since the logs before it weren't read to their end")
        })?;
        let is_live = matches!(input, Input::Live(_));
        let (to, from) = bounded(QUEUED_MAX);
        let name = name.to_owned();
        let sink = LogSink::new(to, is_live);
        let reader_run = Arc::clone(&run);
        thread::Builder::new().name("exits".to_owned()).spawn(move || mask(run, &name, input, sink))?;
        let reader = MaskedReader { from, chunk: Vec::new(), read: 0, has_ended: false, run: reader_run };
        Ok(if is_live { Input::Live(Box::new(reader)) } else { Input::Stream(Box::new(reader)) })
    }

    fn run_at(&self, number: usize) -> Option<Arc<ExitRun>> {
        let mut runs = self.runs.lock();
        if number == 0 {
            if runs.len() >= RUNS_MAX {
                runs.remove(0);
            }
            runs.push(Arc::new(self.blank.again()));
        }
        // Those that are there have all seen the same.
        runs.iter().rev().find(|run| run.begins(number)).map(Arc::clone)
    }

    /// What was masked and left out in the logs that were read to their end, by the reading that came farthest.
    pub fn counts(&self) -> ExitCounts {
        let runs = self.runs.lock();
        let run = runs.iter().max_by_key(|run| run.progress.lock().ended).map_or(&self.blank, |run| &**run);
        let progress = run.progress.lock();
        let mut counts = progress.counts.clone();
        drop(progress);
        // Whoever stopped before the end didn't see all tables.
        let whole = runs.iter().max_by_key(|run| run.progress.lock().read_whole());
        if let Some(run) = whole {
            let progress = run.progress.lock();
            if progress.read_whole() > 0 {
                let unmet = progress.met.unmet(&run.policy);
                (counts.unmet_tables, counts.unmet_masks) = (unmet.kept, unmet.hidden);
            }
        }
        counts
    }
}

fn mask(run: Arc<ExitRun>, name: &str, input: Input, sink: LogSink) {
    run.tables.begin_log(name);
    run.progress.lock().so_far.begin_log(name.as_bytes());
    let mut masker = LogMasker::new(Arc::clone(&run), sink);
    let mut is_whole = false;
    let failed = match walk(input, &mut masker) {
        Ok(WalkEnd::Cut(cut)) => {
            is_whole = true;
            run.progress.lock().counts.cuts.push((name.to_owned(), cut));
            None
        }
        Ok(WalkEnd::Whole) => {
            is_whole = true;
            None
        }
        Ok(WalkEnd::Stopped) => None,
        Err(error) => Some(error.to_string()),
    };
    masker.finish(failed, is_whole);
}

/// Reads the masked log.
struct MaskedReader {
    from: Receiver<MaskedChunk>,
    chunk: Vec<u8>,
    /// Bytes of the chunk that were read.
    read: usize,
    has_ended: bool,
    run: Arc<ExitRun>,
}

impl Read for MaskedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read >= self.chunk.len() && !self.has_ended {
            match self.from.recv() {
                Ok(MaskedChunk::Bytes(chunk)) => (self.chunk, self.read) = (chunk, 0),
                Ok(MaskedChunk::End) => {
                    self.has_ended = true;
                    self.run.progress.lock().read += 1;
                }
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
