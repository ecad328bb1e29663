//! The threads that gather events, and the short queue in which batches wait for the interpreter. A thread ends with its
//! logs, or when nobody reads the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_schema::ArrowError;
use binlogz_archive::input;
use binlogz_binlog::EventType;
use binlogz_binlog::event::{FormatDescription, PostHeaderLengths};
use binlogz_binlog::gtid::GtidSet;
use binlogz_flow::error::in_log;
use binlogz_flow::{Error as FlowError, EventSpan, Input, walk};
use binlogz_payload::{Expander, PayloadStream};
use binlogz_source::wire::session::DumpStart;
use binlogz_source::{ConnectOptions, DumpOptions, Error as SourceError, HangUp, RemoteEvent, RemoteLog};

use crate::gather::{EventGatherer, GatheredEvent, InPayload};
use crate::parts::LogPart;
use crate::selection::{BlockSelection, GtidSelection};

/// Batches that wait.
const BATCHES_WAITING: usize = 2;

/// Why there are no more events.
pub(crate) enum FeedTrouble {
    /// Bytes that are no log.
    Bad(String),
    /// All events were handed over, but some may hold changes that could not be read: a line for each.
    Unread(String),
    /// A file, or a server.
    Broken(String),
    /// The connection to a server, once there was one.
    Lost(String),
    /// A panic of ours.
    Bug,
}

/// The message for a panic of ours.
pub(crate) const BUG: &str = "a bug in binlogz: the thread that reads the log panicked";
/// The message for a process that was forked after the log was opened.
pub(crate) const FORKED: &str =
    "the log was opened in another process, whose threads are not in this one; open it anew here";

type Batch = Result<Vec<GatheredEvent>, FeedTrouble>;

/// Events that a thread gathers.
pub(crate) struct Feed {
    batches: Mutex<Receiver<Batch>>,
    hang_up: Option<HangUp>,
    /// The feed was closed: readers that wait for a batch get none.
    is_closed: AtomicBool,
    /// The process that has the thread. One that is forked from it has a copy of the queue, which nobody fills, and of the connection.
    process: u32,
}

/// The next batch.
pub(crate) enum NextBatch {
    Batch(Batch),
    /// There is none yet.
    NotYet,
    End,
}

impl Feed {
    /// The events of logs, one after the other.
    pub(crate) fn of_logs(paths: Vec<PathBuf>, left_out: GtidSet) -> Self {
        let parts = paths.into_iter().map(LogPart::whole).collect();
        Self::of_parts(parts, None, GtidSelection::without(left_out), true)
    }

    /// The events of parts of logs, one after the other. `is_ordered`: statements of all logs are among them.
    pub(crate) fn of_parts(
        parts: Vec<LogPart>,
        blocks: Option<BlockSelection>,
        selection: GtidSelection,
        is_ordered: bool,
    ) -> Self {
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        fill(sender.clone(), move || {
            let mut gatherer = gatherer(selection, &sender);
            if !is_ordered {
                gatherer = gatherer.with_gaps();
            }
            let mut lacking = Vec::new();
            for part in &parts {
                gatherer.take_offsets(part.offsets.clone());
                let read = read_part(part, blocks.as_ref(), &mut gatherer);
                let unread = std::mem::take(&mut gatherer.lacking);
                lacking.extend(unread.iter().map(|unread| format!("{} {unread}", part.path.display())));
                if gatherer.is_over {
                    return;
                }
                if let Err(trouble) = read {
                    let _ = gatherer.flush();
                    // If this fails, nobody reads it.
                    let _ = sender.send(Err(trouble));
                    return;
                }
            }
            let _ = gatherer.flush();
            if !lacking.is_empty() {
                let _ = sender.send(Err(FeedTrouble::Unread(lacking.join("\n"))));
            }
        });
        Feed::new(batches, None)
    }

    fn new(batches: Receiver<Batch>, hang_up: Option<HangUp>) -> Self {
        let batches = Mutex::new(batches);
        let is_closed = AtomicBool::new(false);
        Feed { batches, hang_up, is_closed, process: std::process::id() }
    }

    /// The events that a server sends, but for those of types that nobody looks at.
    pub(crate) fn of_server(
        options: &ConnectOptions,
        dump: DumpOptions,
        unread: Vec<EventType>,
        selection: GtidSelection,
    ) -> binlogz_source::Result<Self> {
        let leaves_out = matches!(&dump.start, DumpStart::GtidSet { gtid_set, .. } if !gtid_set.is_empty());
        let mut remote = RemoteLog::open(options, dump)?;
        let hang_up = remote.hang_up().ok();
        let server = options.server();
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        fill(sender.clone(), move || {
            let mut gatherer = gatherer(selection, &sender).without(unread);
            if leaves_out {
                gatherer = gatherer.with_gaps();
            }
            let received = receive(&mut remote, &server, &mut gatherer);
            if gatherer.is_over {
                return;
            }
            let _ = gatherer.flush();
            if let Err(trouble) = received {
                let _ = sender.send(Err(trouble));
            }
        });
        Ok(Feed::new(batches, hang_up))
    }

    /// The next batch, if there is one within this time.
    pub(crate) fn next(&self, within: Duration) -> NextBatch {
        if self.is_of_another_process() {
            return NextBatch::Batch(Err(FeedTrouble::Broken(FORKED.to_owned())));
        }
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let next = batches.recv_timeout(within);
        if self.is_closed.load(Ordering::Relaxed) {
            return NextBatch::End;
        }
        match next {
            Ok(batch) => NextBatch::Batch(batch),
            Err(RecvTimeoutError::Timeout) => NextBatch::NotYet,
            Err(RecvTimeoutError::Disconnected) => NextBatch::End,
        }
    }

    /// Ends it, also for threads that wait for the next batch, and the connection to a server.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // The connection of a forked process is its parent's, too.
        if let Some(hang_up) = self.hang_up.as_ref().filter(|_| !self.is_of_another_process()) {
            hang_up.now();
        }
    }

    fn is_of_another_process(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.close();
    }
}

/// Fills a queue in a thread of its own. The reader of the queue gets a panic as an error: it is not the end of the log.
fn fill(sender: SyncSender<Batch>, work: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            let _ = sender.send(Err(FeedTrouble::Bug));
        }
    });
}

fn gatherer(selection: GtidSelection, sender: &SyncSender<Batch>) -> EventGatherer<'static> {
    let sender = sender.clone();
    EventGatherer::new(selection, Box::new(move |batch| sender.send(Ok(batch)).is_ok()))
}

/// The logs that these paths name: files, archives, logs in archives.
pub(crate) fn expand(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    input::expand(paths).map_err(|error| error.to_string())
}

/// Opens a log: a file, or one in an archive.
pub(crate) fn open(path: &Path) -> std::io::Result<Input> {
    match input::find(path)? {
        Some(archived) => Ok(archived.input()),
        None => Input::open(path),
    }
}

fn read_part(
    part: &LogPart,
    blocks: Option<&BlockSelection>,
    gatherer: &mut EventGatherer<'_>,
) -> Result<(), FeedTrouble> {
    let shown = part.path.display();
    let name = part.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    gatherer.begin_log(&name);
    let input = part.open(blocks).map_err(|error| FeedTrouble::Broken(format!("{shown}: {error}")))?;
    let walked = walk(input, gatherer);
    gatherer.payload_end();
    if let Some(error) = gatherer.failed.take() {
        return Err(FeedTrouble::Bad(format!("{shown} {error}")));
    }
    walked.map(drop).map_err(|error| log_trouble(&part.path, error))
}

/// The error of a log.
pub(crate) fn log_trouble(path: &Path, error: FlowError) -> FeedTrouble {
    let shown = path.display();
    match error {
        FlowError::Input(error) | FlowError::Output(error) => FeedTrouble::Bad(in_log(&shown, &error)),
        error => FeedTrouble::Bad(format!("{shown}: {error}")),
    }
}

/// Trouble as Arrow's readers are told of it.
pub(crate) fn told(trouble: FeedTrouble) -> ArrowError {
    match trouble {
        FeedTrouble::Bad(error) | FeedTrouble::Unread(error) => ArrowError::ParseError(error),
        FeedTrouble::Broken(error) | FeedTrouble::Lost(error) => {
            ArrowError::IoError(error.clone(), std::io::Error::other(error))
        }
        FeedTrouble::Bug => ArrowError::ExternalError(BUG.into()),
    }
}

fn receive(
    remote: &mut RemoteLog,
    server: &str,
    gatherer: &mut EventGatherer<'_>,
) -> Result<(), FeedTrouble> {
    let mut expander = Expander::new().map_err(|error| FeedTrouble::Broken(error.to_string()))?;
    loop {
        // Pass on the events that have arrived before waiting for more.
        if remote.is_drained() && gatherer.flush().is_break() {
            return Ok(());
        }
        let event = remote.next_event().map_err(|error| trouble(&error))?;
        let Some(event) = event else { return Ok(()) };
        let taken = take(&event, &mut expander, gatherer);
        let name = String::from_utf8_lossy(event.name).into_owned();
        let offset = event.offset;
        if let Some(error) = gatherer.failed.take() {
            return Err(FeedTrouble::Bad(format!("{server}: {name} {error}")));
        }
        if gatherer.is_over {
            return Ok(());
        }
        // A server's log has no end at which it could be told.
        if let Some(unread) = std::mem::take(&mut gatherer.lacking).iter().next() {
            return Err(FeedTrouble::Unread(format!("{server}: {name} {unread}")));
        }
        taken.map_err(|error| FeedTrouble::Bad(format!("{server}: {name} at {offset}: {error}")))?;
    }
}

fn trouble(error: &SourceError) -> FeedTrouble {
    use binlogz_source::wire::Error as WireError;
    match error {
        SourceError::Io { .. }
        | SourceError::Wire { source: WireError::Closed { .. } | WireError::Timeout { .. }, .. } => {
            FeedTrouble::Lost(error.to_string())
        }
        error => FeedTrouble::Broken(error.to_string()),
    }
}

/// Takes an event that a server sent, or those in it.
fn take(
    event: &RemoteEvent<'_>,
    expander: &mut Expander,
    gatherer: &mut EventGatherer<'_>,
) -> Result<(), binlogz_payload::Error> {
    let header = event.header;
    let framing = event.framing();
    gatherer.take_log(&String::from_utf8_lossy(event.name));
    let frame = event.frame()?.unchecked()?;
    if header.event_type == EventType::FORMAT_DESCRIPTION {
        gatherer.take_lengths(PostHeaderLengths::from(&FormatDescription::decode_frame(&frame)?));
    }
    let end = u64::from(header.end_log_pos);
    let place = EventSpan { offset: event.offset, end, payload_end_log_pos: None };
    if header.event_type != EventType::TRANSACTION_PAYLOAD {
        // The gatherer keeps the error that ends it early.
        let _ = gatherer.event(place, &header, frame.body());
        return Ok(());
    }
    let mut stream = PayloadStream::begin(event.offset, &header, framing);
    let payload = stream.front(frame.body(), expander)?;
    let place = EventSpan { payload_end_log_pos: Some(header.end_log_pos), ..place };
    stream.body(payload, expander, &mut InPayload { gatherer, place })?;
    gatherer.payload_end();
    stream.end(expander).map(drop)
}
