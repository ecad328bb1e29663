//! Serves a dump: the durable log from a place on, in one form, until the client leaves.
//!
//! ```text
//! for each file   fake rotate · format description · what follows
//! transaction     received: its bytes          uncompressed: expanded, its positions those of its file
//! in GTID mode    what the client has is left out; a heartbeat tells how far
//! at the end      heartbeats, or the end of a dump that does not wait
//! ```
//!
//! Uncompressed positions are functions of the stored bytes: a file is gone through from its beginning, wherever
//! the client begins.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{ChecksumAlgorithm, EventType, MAGIC};
use binlogz_payload::{PieceBytes, Place, PositionWriter, Spool, SpoolMemory, TransactionExpander};
use binlogz_store::{FileNumber, LogReader, Position};

use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::{Group, GroupWalker};
use crate::head::Head;
use crate::relay::Kept;
use crate::sink::EventSink;
use crate::steering;

/// How often an idle dump looks whether its client is still there.
const TICK: Duration = Duration::from_millis(500);
/// How long a client waits that is ahead of the relay: it was pointed here from the source itself.
const AHEAD_MAX: Duration = Duration::from_secs(10);
/// Transactions up to this size are held in memory to be expanded.
const HELD_SIZE_MAX: u64 = 4 << 20;
/// Expanded bytes held in memory; the rest goes to a temporary file.
const SPOOL_SIZE: usize = 8 << 20;
/// Bytes copied at a time.
const COPY_SIZE: usize = 256 << 10;

/// What a client asked for.
#[derive(Debug)]
pub(crate) struct Dump {
    pub(crate) form: Form,
    pub(crate) file: FileNumber,
    /// Where in that file, as the form counts.
    pub(crate) from: u64,
    /// What the client has; `None`: it goes by position.
    pub(crate) has: Option<GtidSet>,
    pub(crate) non_blocking: bool,
    pub(crate) heartbeat_period: Option<Duration>,
    pub(crate) heartbeat_v2: bool,
    /// What the client announced to know; `None`: nothing.
    pub(crate) checksum: Option<ChecksumAlgorithm>,
    /// Rises when another dump of the same replica began.
    pub(crate) superseded: Arc<AtomicBool>,
}

/// How a file ended.
enum Ended {
    /// There is another one behind it.
    File,
    /// The end of the log, in a dump that does not wait.
    Log,
}

/// A dump at work.
pub(crate) struct Sender<'a> {
    kept: &'a Kept,
    dump: Dump,
    /// Counts positions and fills them in; writes to the client.
    out: PositionWriter<EventSink>,
    expander: TransactionExpander,
    memory: SpoolMemory,
    /// Used again and again.
    buffer: Vec<u8>,
    /// What was left out since something was sent ends here.
    left_out_to: Option<u64>,
    /// What the sink was last told.
    sink_leaves_out: bool,
    /// Which file, and how to read it.
    file: FileNumber,
    head: Head,
}

impl<'a> Sender<'a> {
    pub(crate) fn new(kept: &'a Kept, dump: Dump, sink: EventSink) -> Result<Self> {
        let head = Head::read(&kept.store, dump.file)?;
        Ok(Sender {
            kept,
            file: dump.file,
            dump,
            out: PositionWriter::resume(sink, 0, false),
            expander: TransactionExpander::new()?,
            memory: SpoolMemory::new(SPOOL_SIZE),
            buffer: Vec::new(),
            left_out_to: None,
            sink_leaves_out: false,
            head,
        })
    }

    /// Whom it is sent to.
    pub(crate) fn sink(&mut self) -> Result<&mut EventSink> {
        Ok(self.out.inner()?)
    }

    /// Sends until the client leaves, or the log ends in a dump that does not wait.
    pub(crate) fn run(&mut self) -> Result<()> {
        let mut from = self.dump.from;
        let mut announced = self.dump.checksum.unwrap_or(ChecksumAlgorithm::NONE);
        loop {
            self.begin_file(from, announced)?;
            match self.send_file()? {
                Ended::Log => {
                    self.sink()?.flush().map_err(broken)?;
                    return Ok(());
                }
                Ended::File => {}
            }
            let files = self.kept.store.logs()?;
            let next = files.iter().map(|log| log.number).find(|number| *number > self.file);
            self.file = next.ok_or_else(|| Error::Refused("could not find next log".into()))?;
            announced = self.head.checksum();
            self.head = Head::read(&self.kept.store, self.file)?;
            from = MAGIC.len() as u64;
            self.dump.from = from;
        }
    }

    fn name(&self) -> String {
        self.kept.names.name(self.dump.form, self.file)
    }

    /// Rotate and format description. The first rotate has a checksum if the client said so, the others if the
    /// last file's events have.
    fn begin_file(&mut self, from: u64, rotate_checksum: ChecksumAlgorithm) -> Result<()> {
        let server_id = self.head.header.server_id;
        let first = MAGIC.len() as u64;
        let rotate = steering::fake_rotate(server_id, &self.name(), from, rotate_checksum);
        self.sink()?.say(&rotate).map_err(broken)?;
        if self.head.checksum() != ChecksumAlgorithm::NONE && self.dump.checksum.is_none() {
            return Err(Error::Refused(
                "Replica can not handle replication events with the checksum that source is configured to log"
                    .into(),
            ));
        }
        let behind = from > first;
        // A replica that has some of it must not drop its temporary tables.
        let created_counts = !behind && self.dump.has.as_ref().is_none_or(GtidSet::is_empty);
        let description =
            steering::format_description(&self.head, behind && self.dump.has.is_none(), created_counts);
        let end = self.head.end();
        self.out.move_to(end)?;
        let sink = self.sink()?;
        sink.begin_file(end, from.max(end));
        sink.say(&description).map_err(broken)?;
        if from > first && from < end {
            return Err(Error::Refused("the requested position is inside the format description".into()));
        }
        Ok(())
    }

    fn send_file(&mut self) -> Result<Ended> {
        let store = &self.kept.store;
        let begin = self.head.end();
        let mut walker = GroupWalker::new(store.reader(self.file, begin)?, self.head.framing(), begin);
        let mut bodies = store.reader(self.file, begin)?;
        let ahead_until = Instant::now() + AHEAD_MAX;
        loop {
            self.check_superseded()?;
            // Looked at first: what is durable by now, the walker will see.
            let durable = store.positions().map(|now| now.durable);
            if let Some(group) = walker.next()? {
                self.group(&group, &mut bodies)?;
                continue;
            }
            if durable.is_some_and(|durable| durable.file > self.file) {
                if let Some(left) = walker.left() {
                    self.group(&left, &mut bodies)?;
                }
                if walker.offset() != walker.end()? {
                    return Err(Error::Refused("binlog truncated in the middle of event".into()));
                }
                self.tell_left_out()?;
                let sink = self.sink()?;
                if sink.position() < sink.from() {
                    return Err(behind_the_end());
                }
                return Ok(Ended::File);
            }
            self.tell_left_out()?;
            let non_blocking = self.dump.non_blocking;
            let sink = self.sink()?;
            sink.flush().map_err(broken)?;
            if sink.position() < sink.from() && (non_blocking || Instant::now() > ahead_until) {
                return Err(behind_the_end());
            }
            if non_blocking {
                return Ok(Ended::Log);
            }
            self.wait(durable)?;
        }
    }

    /// Waits until more is durable, or until it is time to look around.
    fn wait(&mut self, durable: Option<Position>) -> Result<()> {
        let now = self.kept.store.wait_durable_beyond(durable, TICK);
        if now.map(|now| now.durable) > durable {
            return Ok(());
        }
        let sink = self.sink()?;
        if has_left(sink).map_err(broken)? {
            return Err(broken(io::ErrorKind::UnexpectedEof.into()));
        }
        self.heartbeat_if_due()
    }

    fn heartbeat_if_due(&mut self) -> Result<()> {
        let Some(period) = self.dump.heartbeat_period else { return Ok(()) };
        let sink = self.sink()?;
        let (position, silent) = (sink.position(), sink.sent.elapsed());
        if silent < period || position < sink.from() {
            return Ok(());
        }
        self.heartbeat(position)
    }

    fn heartbeat(&mut self, position: u64) -> Result<()> {
        let event = steering::heartbeat(
            self.head.header.server_id,
            self.dump.heartbeat_v2,
            &self.name(),
            position,
            self.head.checksum(),
        );
        self.sink()?.say(&event).map_err(broken)
    }

    /// A client that has some of the log is told how far it has it.
    fn tell_left_out(&mut self) -> Result<()> {
        match self.left_out_to.take() {
            Some(position) => self.heartbeat(position),
            None => Ok(()),
        }
    }

    fn check_superseded(&self) -> Result<()> {
        if self.dump.superseded.load(Ordering::Acquire) {
            return Err(Error::Refused(
                "A replica with the same server_uuid/server_id as this replica has connected to the source"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Sends a transaction, or an event between transactions, or leaves it out.
    fn group(&mut self, group: &Group, bodies: &mut LogReader) -> Result<()> {
        let mut left_out = false;
        if let Some(has) = &self.dump.has {
            if group.first.event_type == EventType::ANONYMOUS_GTID {
                return Err(Error::Refused(format!(
                    "Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file {}, position {}.",
                    self.name(),
                    group.begin
                )));
            }
            left_out = group.gtid.is_some_and(|gtid| has.contains(&gtid));
        }
        if !left_out {
            self.tell_left_out()?;
        }
        match self.dump.form {
            Form::Received => self.received(group, left_out, bodies)?,
            Form::Uncompressed => self.uncompressed(group, left_out, bodies)?,
        }
        if left_out {
            let position = self.out.offset();
            self.left_out_to = Some(position);
            self.heartbeat_if_due()?;
        }
        Ok(())
    }

    fn received(&mut self, group: &Group, left_out: bool, bodies: &mut LogReader) -> Result<()> {
        if left_out || group.end <= self.dump.from {
            self.out.move_to(group.end)?;
            self.sink()?.skip_to(group.end);
            return Ok(());
        }
        bodies.seek_to(group.begin);
        let mut left = group.end - group.begin;
        self.buffer.resize(COPY_SIZE, 0);
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(COPY_SIZE).min(COPY_SIZE);
            let chunk = self.buffer.get_mut(..room).unwrap_or_default();
            bodies.read_exact(chunk).map_err(Error::io("read a stored log"))?;
            self.out.as_is(chunk)?;
            left -= room as u64;
        }
        Ok(())
    }

    fn uncompressed(&mut self, group: &Group, left_out: bool, bodies: &mut LogReader) -> Result<()> {
        if self.sink_leaves_out != left_out {
            self.sink()?.leave_out = left_out;
            self.sink_leaves_out = left_out;
        }
        if group.first.event_type == EventType::ROTATE && !group.is_transaction {
            let next = self.kept.names.name(Form::Uncompressed, self.file.next());
            let event = steering::rotate(&group.first, self.out.offset(), &next, self.head.checksum());
            return Ok(self.out.as_is(&event)?);
        }
        let place = Place { offset: group.begin, context: self.head.context(), announced: true };
        let size = group.end - group.begin;
        bodies.seek_to(group.begin);
        let spool = Spool::new(&self.memory, Vec::new());
        if size <= HELD_SIZE_MAX {
            self.buffer.resize(size as usize, 0);
            bodies.read_exact(&mut self.buffer).map_err(Error::io("read a stored log"))?;
            let mut expanded = self.expander.batch(&self.buffer, place, spool)?;
            self.out.write(&mut expanded, &mut self.buffer, |_, _| {})?;
        } else {
            let mut expanded = self.expander.large(bodies.take(size), place, spool)?;
            let mut piece = StoredPiece { reader: bodies, begin: group.begin };
            self.out.write(&mut expanded, &mut piece, |_, _| {})?;
        }
        Ok(())
    }
}

/// A transaction that is not held in memory.
struct StoredPiece<'a> {
    reader: &'a mut LogReader,
    begin: u64,
}

impl PieceBytes for StoredPiece<'_> {
    fn in_memory(&mut self, _: std::ops::Range<u64>) -> Option<&mut [u8]> {
        None
    }

    fn reader(&mut self, range: std::ops::Range<u64>) -> io::Result<Box<dyn Read + '_>> {
        self.reader.seek_to(self.begin + range.start);
        Ok(Box::new(self.reader.by_ref().take(range.end - range.start)))
    }
}

fn behind_the_end() -> Error {
    Error::Refused("Client requested source to start replication from position > file size".into())
}

/// The client went away, or does not read.
pub(crate) fn broken(source: io::Error) -> Error {
    Error::Io { doing: "send to a replica".into(), source }
}

/// Whether the client ended the connection. What else it says, such as acknowledgements, is not looked at.
fn has_left(sink: &mut EventSink) -> io::Result<bool> {
    let stream = sink.transport();
    stream.socket().set_read_timeout(Some(Duration::from_millis(1)))?;
    let mut said = [0; 1024];
    loop {
        match stream.read(&mut said) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(false);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
