//! Notes in a file which transactions were handed over, so that the next run goes on after them.
//!
//! ```text
//! {"gtid_set":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77"}
//! ```
//!
//! A transaction is in the file only after all of its lines were written. If they go to a pipe, the reader must have
//! taken them out of it; if they go to a file, it must be synced. A delay waits longer, for readers that hold lines in
//! memory. So a transaction may come twice, and none is lost. The file is replaced as a whole.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use binlogz_atomic_file::ExistingFile;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use serde::{Deserialize, Serialize};

use super::output::LineOutput;
use crate::line_printer::FinishedTransactions;

/// How often the file is written at most: a sync takes milliseconds, and a restart repeats the transactions since the
/// last write.
const INTERVAL: Duration = Duration::from_millis(200);
/// Like a log's positions, the set is no secret.
const MODE: u32 = 0o644;

/// Why transactions can't be noted.
#[derive(Debug)]
#[non_exhaustive]
pub enum OffsetsError {
    /// The file of the offsets can't be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The output can't be asked how much of it was read, or not be synced.
    Output(io::Error),
    /// A transaction that can't be named.
    NoGtid,
}

impl fmt::Display for OffsetsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OffsetsError::File { path, what } => write!(f, "{}: {what}", path.display()),
            OffsetsError::Output(error) => write!(f, "output: {error}"),
            OffsetsError::NoGtid => f.write_str(
                "a transaction has no GTID, by which a later run would go on; gtid_mode=ON gives them",
            ),
        }
    }
}

impl std::error::Error for OffsetsError {}

/// Hears of trouble at once: [`Offsets::written`] and [`Offsets::finish`] return it, too, but only when they are called.
pub type OffsetsTrouble = fn(&OffsetsError);

#[derive(Serialize, Deserialize)]
struct Content {
    gtid_set: String,
}

/// Notes in a file which transactions were handed over, so that the next run goes on after them.
#[derive(Debug)]
pub struct Offsets {
    shared: Arc<Mutex<SharedOffsets>>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SharedOffsets {
    path: PathBuf,
    /// Where the run began.
    begun: GtidSet,
    set: GtidSet,
    is_written: bool,
    /// Transactions with the number of bytes that were written up to their end, and when.
    waiting: VecDeque<(u64, Instant, Vec<Gtid>)>,
    delay: Duration,
    output: NotedOutput,
    told: OffsetsTrouble,
    failed: Option<OffsetsError>,
}

/// Where the lines go.
#[derive(Debug)]
struct NotedOutput {
    file: File,
    kind: OutputKind,
    /// Bytes that were written.
    written: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    Pipe,
    File,
    Other,
}

impl Offsets {
    /// Reads the file, if it is there. A transaction is noted once its lines were handed over to `out` and this much time has passed.
    ///
    /// # Errors
    ///
    /// A file that can't be read or written, or that is no file of offsets; an output that can't be asked what it is.
    pub fn open(
        path: &Path,
        delay: Duration,
        out: &LineOutput,
        told: OffsetsTrouble,
    ) -> Result<Self, OffsetsError> {
        let trouble = |error: &dyn fmt::Display| in_file(path, error);
        let begun = match fs::read_to_string(path) {
            Ok(text) => {
                let content: Content = serde_json::from_str(&text)
                    .map_err(|error| trouble(&format!("not an offsets file: {error}")))?;
                content.gtid_set.parse::<GtidSet>().map_err(|error| trouble(&error))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => GtidSet::default(),
            Err(error) => return Err(trouble(&error)),
        };
        let output = NotedOutput::of(out).map_err(OffsetsError::Output)?;
        let shared = SharedOffsets {
            path: path.to_owned(),
            set: begun.clone(),
            begun,
            is_written: true,
            waiting: VecDeque::new(),
            delay,
            output,
            told,
            failed: None,
        };
        // A path that can't be written is told before anything is handed over.
        shared.write()?;
        let shared = Arc::new(Mutex::new(shared));
        let (stop, stopped) = channel();
        let in_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            // Lines that were taken are noted also while no more come.
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                in_thread.lock().tick();
            }
        });
        Ok(Offsets { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The transactions that were handed over before this run.
    pub fn begun(&self) -> GtidSet {
        self.shared.lock().begun.clone()
    }

    /// Notes transactions whose lines were written, up to this number of bytes.
    ///
    /// # Errors
    ///
    /// A transaction without a GTID; trouble with the file since the last call.
    pub fn written(&self, finished: FinishedTransactions, bytes: u64) -> Result<(), OffsetsError> {
        let mut shared = self.shared.lock();
        if finished.has_anonymous {
            return Err(OffsetsError::NoGtid);
        }
        if !finished.gtids.is_empty() {
            shared.waiting.push_back((bytes, Instant::now(), finished.gtids));
        }
        shared.failed.take().map_or(Ok(()), Err)
    }

    /// Waits until everything was handed over, and notes it.
    ///
    /// # Errors
    ///
    /// A file that can't be written, an output that can't be synced.
    pub fn finish(mut self) -> Result<(), OffsetsError> {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It does nothing that can panic.
            let _ = thread.join();
        }
        let mut shared = self.shared.lock();
        while shared.output.unread() > 0 && shared.output.has_reader() {
            thread::sleep(INTERVAL / 20);
        }
        shared.tick();
        shared.failed.take().map_or(Ok(()), Err)
    }
}

impl SharedOffsets {
    /// Notes the transactions that were handed over by now.
    fn tick(&mut self) {
        let handed_over = self.output.handed_over();
        while let Some((bytes, at, _)) = self.waiting.front()
            && *bytes <= handed_over
            && at.elapsed() >= self.delay
        {
            let Some((_, _, gtids)) = self.waiting.pop_front() else { break };
            gtids.into_iter().for_each(|gtid| self.set.add(gtid));
            self.is_written = false;
        }
        if !self.is_written {
            match self.output.sync().map_err(OffsetsError::Output).and_then(|()| self.write()) {
                Ok(()) => self.is_written = true,
                Err(error) => {
                    (self.told)(&error);
                    self.failed = Some(error);
                }
            }
        }
    }

    fn write(&self) -> Result<(), OffsetsError> {
        let trouble = |error: &dyn fmt::Display| in_file(&self.path, error);
        let content = Content { gtid_set: self.set.to_string().replace('\n', "") };
        let mut text = serde_json::to_vec(&content).map_err(|error| trouble(&error))?;
        text.push(b'\n');
        binlogz_atomic_file::write(&self.path, MODE, ExistingFile::Replace, &text)
            .map_err(|error| trouble(&error))
    }
}

fn in_file(path: &Path, error: &dyn fmt::Display) -> OffsetsError {
    OffsetsError::File { path: path.to_owned(), what: error.to_string() }
}

impl NotedOutput {
    fn of(out: &LineOutput) -> io::Result<Self> {
        let file = out.file.file.try_clone()?;
        let kind = file.metadata()?.file_type();
        let kind = match kind {
            kind if kind.is_file() => OutputKind::File,
            kind if std::os::unix::fs::FileTypeExt::is_fifo(&kind) => OutputKind::Pipe,
            _ => OutputKind::Other,
        };
        Ok(NotedOutput { file, kind, written: Arc::clone(&out.file.written) })
    }

    /// How many of the bytes the reader has taken.
    fn handed_over(&self) -> u64 {
        let written = self.written.load(Ordering::Acquire);
        // Bytes that are written between these two only make it less.
        written.saturating_sub(self.unread())
    }

    /// Bytes that wait in the pipe.
    fn unread(&self) -> u64 {
        match self.kind {
            OutputKind::Pipe => ioctl_fionread(self.file.as_fd()).unwrap_or(u64::MAX),
            OutputKind::File | OutputKind::Other => 0,
        }
    }

    fn has_reader(&self) -> bool {
        let mut polled = [PollFd::new(&self.file, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut polled, Some(&now)) {
            Ok(_) => polled.iter().all(|polled| !polled.revents().intersects(PollFlags::ERR)),
            Err(_) => false,
        }
    }

    fn sync(&self) -> io::Result<()> {
        if self.kind == OutputKind::File { self.file.sync_data() } else { Ok(()) }
    }
}
