//! Serves a dump: the durable log from a position on, in one form, until the client leaves.
//!
//! ```text
//! for each file   fake rotate · format description · what follows, from translate.rs
//! in GTID mode    what the client has is left out; a heartbeat tells how far
//! at the end      heartbeats, or the end of a dump that does not wait
//! XA              for a client that doesn't know it: plain transactions where XA COMMIT stands, from xa.rs
//! ```
//!
//! For a client that begins in the middle of a file, we read from the nearest checkpoint before that
//! (`checkpoints.rs`).

mod ahead;
mod asking;
mod domains;
mod silence;
mod xa;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::{ChecksumAlgorithm, EventType, MAGIC};
use binlogz_relay_forms::{
    Block, Forms, OpenedFile, PlacedTransaction, Translator, artificial_events, behind_damage,
};
use binlogz_relay_log::{Error as LogError, EventGroup, FileLease, Form, FormFile, LineageLog, Lineages};
use binlogz_store::{FileNumber, Position};

use crate::error::{Error, Result};
use crate::housekeeping::{Housekeeping, archiving};
use crate::receive::intake::Intake;
use crate::replicas::dumps::DumpProgress;
use crate::serve::SourceServer;
use crate::serve::connections::departures::DepartureWatch;
use crate::serve::events::xa::PreparedTransactions;
use crate::serve::mariadb_source::start::PendingDomains;
use crate::serve::sending::semi_sync::SemiSync;
use crate::serve::sending::sink::EventSink;
use crate::telemetry::Telemetry;
use ahead::AheadPosition;
pub(crate) use xa::XaFilePosition;

/// How often a dump checks that its client is still connected, until it is idle.
pub(crate) const TICK: Duration = Duration::from_millis(500);
/// How long a client that is ahead of the relay may wait: it was switched here from the source itself.
pub(crate) const AHEAD_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct DumpStream {
    pub(crate) form: Form,
    pub(crate) file: FormFile,
    /// The offset in that file, as the form counts.
    pub(crate) from: u64,
    /// Set if it asked for the file that the transaction which begins at `from` has of its own: the position in that.
    pub(crate) inside: Option<XaFilePosition>,
    /// The GTIDs that the client has; `None` if it uses positions.
    pub(crate) has: Option<GtidSet>,
    /// The domains of MariaDB in which the client's GTID was not seen yet; `None` if it doesn't use MariaDB's GTIDs.
    pub(crate) domains: Option<PendingDomains>,
    pub(crate) non_blocking: bool,
    pub(crate) heartbeat_period: Option<Duration>,
    pub(crate) heartbeat_v2: bool,
    /// The checksum that the client announced; `None` if it announced none.
    pub(crate) checksum: Option<ChecksumAlgorithm>,
    /// Keeps the file in place if it was brought back.
    pub(crate) lease: Option<FileLease>,
    /// Set when another dump of the same replica begins.
    pub(crate) superseded: Arc<AtomicBool>,
    /// The dump's progress, for others to read.
    pub(crate) progress: Arc<DumpProgress>,
    /// Present if the client acknowledges transactions.
    pub(crate) semi_sync: Option<SemiSync>,
    /// Tells when the client has left; `None`: the dump has to look for itself.
    pub(crate) watch: Option<DepartureWatch>,
}

/// How a file ended.
enum FileEnd {
    /// Another file follows.
    File,
    /// Another file follows, from the same stored file.
    Part,
    /// The end of the log, in a dump that does not wait.
    Log,
}

/// How far the transactions of a file were sent.
enum SendStep {
    /// One was sent, or several, and more may be there.
    Sent,
    /// The part of the file that is sent under this name is over.
    PartEnd,
    /// No more is there as yet.
    NothingLeft,
}

pub(crate) struct Sender<'a> {
    housekeeping: &'a Housekeeping,
    intake: &'a Intake,
    telemetry: &'a Telemetry,
    lineages: &'a Lineages,
    forms: Forms<'a>,
    kept: &'a LineageLog,
    dump: DumpStream,
    log: Translator<'a, EventSink>,
    /// The end of the transactions left out since something was last sent.
    left_out_to: Option<u64>,
    /// Whether the sink was last told to leave events out.
    sink_leaves_out: bool,
    /// Whether incidents between transactions are left out.
    over_incidents: bool,
    /// Whether the next transactions come in blocks shared by all readers.
    in_blocks: bool,
    /// Whether the client gets XA transactions as plain ones.
    translates_xa: bool,
    /// Transactions that were prepared and aren't decided, if so.
    prepared: PreparedTransactions,
}

impl<'a> Sender<'a> {
    /// `opened`: the beginning of the requested file.
    pub(crate) fn new(
        server: &'a SourceServer,
        forms: Forms<'a>,
        dump: DumpStream,
        opened: OpenedFile,
        sink: EventSink,
    ) -> Self {
        let translates_xa = sink.translates_xa();
        let log = Translator::from(forms, opened, sink);
        Sender {
            housekeeping: &server.housekeeping,
            intake: &server.statements.intake,
            telemetry: &server.telemetry,
            lineages: &server.lineages,
            forms,
            kept: forms.kept,
            dump,
            log,
            left_out_to: None,
            sink_leaves_out: false,
            over_incidents: server.over_incidents,
            in_blocks: false,
            translates_xa,
            prepared: PreparedTransactions::default(),
        }
    }

    /// The sink to send to.
    pub(crate) fn sink(&mut self) -> Result<&mut EventSink> {
        Ok(self.log.sink()?)
    }

    /// Sends until the client leaves, or until the log ends in a dump that does not wait.
    pub(crate) fn run(&mut self) -> Result<()> {
        let first = MAGIC.len() as u64;
        let mut announced = self.dump.checksum.unwrap_or(ChecksumAlgorithm::NONE);
        loop {
            self.begin_file(announced)?;
            let ended = self.send_file();
            let store = &self.kept.store;
            let file = self.log.file();
            let ended = ended.map_err(|error| error.in_stored(|| store.names().log(file)));
            self.log.finish_file();
            match ended? {
                FileEnd::Log => return self.sink()?.flush().map_err(broken),
                FileEnd::Part => {
                    announced = self.log.head().checksum();
                    self.log.turn_to_next_part()?;
                    self.dump.from = first;
                    continue;
                }
                FileEnd::File => {}
            }
            announced = self.log.head().checksum();
            self.turn_to_next()?;
            self.dump.from = first;
        }
    }

    /// Continues in the next file, which is brought back if it was purged.
    fn turn_to_next(&mut self) -> Result<()> {
        let file = self.log.file();
        // The next file may need its room.
        self.dump.lease = None;
        loop {
            let numbers: Vec<_> = self.kept.store.logs()?.iter().map(|log| log.number).collect();
            let next = match numbers.first() {
                // A log that was purged completely has no files.
                None => Some(file.next()),
                Some(first) if *first > file => Some(file.next()),
                Some(_) => numbers.iter().copied().find(|number| *number > file),
            };
            let next = next.ok_or_else(|| Error::Refused("could not find next log".into()))?;
            // From here on it can't be purged, unless it is already.
            self.dump.progress.passed(next, 0, 0);
            self.dump.lease = archiving::lease(self.housekeeping, self.kept, next)?;
            match self.log.turn_to(next) {
                Err(LogError::Store(_)) if self.dump.lease.is_none() && !self.is_there(next)? => {}
                turned => return Ok(turned?),
            }
        }
    }

    fn is_there(&self, file: FileNumber) -> Result<bool> {
        Ok(self.kept.store.logs()?.iter().any(|log| log.number == file))
    }

    fn name(&self) -> String {
        self.log.name()
    }

    /// Sends rotate and format description. The first rotate has a checksum if the client announced one, the others
    /// if the last file's events have one.
    fn begin_file(&mut self, rotate_checksum: ChecksumAlgorithm) -> Result<()> {
        let head = self.log.head().clone();
        let from = self.dump.from;
        let first = MAGIC.len() as u64;
        let (name, position) = match self.dump.inside {
            Some(XaFilePosition(position)) => (self.xa_file_name(from)?, position),
            None => (self.name(), from),
        };
        let rotate = artificial_events::fake_rotate(head.header.server_id, &name, position, rotate_checksum);
        self.sink()?.say(&rotate).map_err(broken)?;
        if head.checksum() != ChecksumAlgorithm::NONE && self.dump.checksum.is_none() {
            return Err(Error::Refused(
                "Replica can not handle replication events with the checksum that source is configured to log"
                    .into(),
            ));
        }
        let behind = from > first;
        // A replica that has some of it must not drop its temporary tables.
        let is_new = self.dump.domains.is_none() && self.dump.has.as_ref().is_none_or(GtidSet::is_empty);
        let created_counts = !behind && is_new;
        let description =
            artificial_events::format_description(&head, behind && self.dump.has.is_none(), created_counts);
        let end = head.end();
        self.dump.progress.passed(self.log.file(), self.log.part().stored, 0);
        if from > first && from < end {
            return Err(Error::Refused("the requested position is inside the format description".into()));
        }
        let start = match &self.dump.has {
            Some(has) if !behind => match behind_damage(self.forms, self.dump.form, self.log.part(), has)? {
                Some(start) => Some(start),
                None => self.log.behind_gtids(has),
            },
            _ => self.log.before(from),
        };
        if let Some(start) = start {
            self.log.begin_at(&start)?;
            // The client has everything before that.
            let had = Position { file: self.log.file(), offset: self.log.walker().offset() };
            self.dump.semi_sync.iter_mut().for_each(|semi_sync| semi_sync.had(had));
        }
        let position = self.log.offset();
        if position > end && !behind {
            self.left_out_to = Some(position);
        }
        let sink = self.sink()?;
        sink.begin_file(position, from.max(end), head.checksum(), head.description.server_version_number());
        sink.say(&description).map_err(broken)
    }

    fn send_file(&mut self) -> Result<FileEnd> {
        let mut ahead = AheadPosition::new();
        let mut durable = None;
        if self.log.is_in_front() {
            self.leave_out_what_is_had(EventType::PREVIOUS_GTIDS, None)?;
        }
        self.log.put_front()?;
        loop {
            // A change of what we look at from here on comes with a wake.
            let wakes = self.kept.store.wakes();
            self.check_superseded()?;
            if self.kept.is_abandoned() {
                // When the client reconnects, we find out what it may have of the other log.
                self.sink()?.flush().map_err(broken)?;
                return Ok(FileEnd::Log);
            }
            match self.send_next()? {
                SendStep::Sent => continue,
                SendStep::PartEnd => return self.end_file(FileEnd::Part),
                SendStep::NothingLeft => {}
            }
            let retired = self.kept.is_retired();
            // The walker has seen everything that was durable before it ran out of transactions.
            let now = self.kept.store.positions().map(|now| now.durable);
            if now != durable {
                durable = now;
                continue;
            }
            if durable.is_some_and(|durable| durable.file > self.log.file()) {
                self.check_whole()?;
                if let Some(left) = self.log.left() {
                    self.group(&left)?;
                }
                self.tell_left_out()?;
                return self.end_file(FileEnd::File);
            }
            self.tell_left_out()?;
            let non_blocking = self.dump.non_blocking;
            let sink = self.sink()?;
            sink.flush().map_err(broken)?;
            if sink.position() < sink.from() {
                self.check_ahead(&mut ahead)?;
            }
            if let Some(domains) = &mut self.dump.domains {
                domains.at_end(Instant::now(), AHEAD_MAX)?;
            }
            if non_blocking || retired {
                return Ok(FileEnd::Log);
            }
            self.wait(durable, wakes)?;
        }
    }

    /// Sends what comes next in the file, if it is there.
    fn send_next(&mut self) -> Result<SendStep> {
        if self.in_blocks {
            match self.log.block()? {
                Some(shared) => shared.block().map_or(Ok(()), |block| self.block(block))?,
                None => self.in_blocks = false,
            }
            return Ok(SendStep::Sent);
        }
        let next = self.log.walker().next_group();
        if next.is_err() {
            self.log.check_open()?;
        }
        let Some(group) = next? else { return Ok(SendStep::NothingLeft) };
        if self.log.is_cut(&group)? {
            self.leave_out_what_is_had(EventType::ROTATE, None)?;
            self.log.put_end(&group)?;
            return Ok(SendStep::PartEnd);
        }
        match self.log.is_converted(&group) {
            true => {
                self.log.walker().move_to(group.begin);
                self.in_blocks = true;
            }
            false => self.group(&group)?,
        }
        Ok(SendStep::Sent)
    }

    /// Refuses a file that ended within an event.
    fn check_whole(&mut self) -> Result<()> {
        let walker = self.log.walker();
        let offset = walker.offset();
        let end = walker.end()?;
        if offset == end {
            return Ok(());
        }
        self.log.check_open()?;
        let left = end.saturating_sub(offset);
        Err(Error::Log(LogError::Stored {
            file: self.kept.store.names().log(self.log.file()),
            source: Box::new(LogError::DamagedLog(format!(
                "at {offset}: binlog truncated in the middle of event, {left} bytes are left"
            ))),
        }))
    }

    /// The file ended: the client must not have asked for a position past its end.
    fn end_file(&mut self, ended: FileEnd) -> Result<FileEnd> {
        let sink = self.sink()?;
        match sink.position() < sink.from() {
            true => Err(behind_the_end()),
            false => Ok(ended),
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

    /// Sends or leaves out a transaction, or an event between transactions.
    fn group(&mut self, group: &EventGroup) -> Result<()> {
        let left_out = match self.is_had_in_its_domain(group)? {
            true => self.leave_out(true)?,
            false => self.leave_out_what_is_had(group.first.event_type, group.gtid)?,
        };
        let end = self.log.offset() + group.size();
        let unseen = left_out || end <= self.dump.from;
        // Transactions whose size changes come in blocks.
        let asked = self.ask(group.end, end, !unseen && group.is_transaction)?;
        let step = self.xa_step_of_group(group)?;
        let placed = PlacedTransaction::new(group, self.log.offset()..end);
        let brings_rows = !left_out && self.brings_rows(step.as_ref(), &placed)?;
        if let Some(step) = step.as_ref().filter(|_| brings_rows) {
            self.bring_rows(step, &placed, asked.is_some())?;
        }
        self.render_xa(step.as_ref())?;
        match (unseen || brings_rows) && self.log.keeps_size(group) {
            true => self.log.pass(group)?,
            false => self.log.put(group)?,
        }
        self.render_xa(None)?;
        self.pass_xa(step, group.begin);
        if group.is_transaction {
            self.note_sent(group.end, unseen, asked);
        }
        self.passed(group.end, group.first.timestamp, left_out)
    }

    /// Sends or leaves out converted transactions.
    fn block(&mut self, block: &Block) -> Result<()> {
        for placed in block.transactions() {
            let left_out = self.leave_out_what_is_had(placed.event_type, placed.gtid)?;
            if let Some(why) = placed.refused.as_ref().filter(|_| !left_out) {
                return Err(Error::Refused(why.to_string()));
            }
            let unseen = left_out || placed.at.end <= self.dump.from;
            let asked = self.ask(placed.stored.end, placed.at.end, !unseen && placed.event_type.is_gtid())?;
            let step = self.xa_step_of_placed(block, placed)?;
            let brings_rows = !left_out && self.brings_rows(step.as_ref(), placed)?;
            if let Some(step) = step.as_ref().filter(|_| brings_rows) {
                self.bring_rows(step, placed, asked.is_some())?;
            }
            self.render_xa(step.as_ref())?;
            self.log.put_shared(block, placed, unseen || brings_rows)?;
            self.render_xa(None)?;
            self.pass_xa(step, placed.stored.start);
            self.note_sent(placed.stored.end, unseen, asked);
            self.passed(placed.stored.end, placed.timestamp, left_out)?;
        }
        self.log.behind(block);
        Ok(())
    }

    /// Returns whether the client has this transaction, or is to be kept from this incident. If not, first tells it how far
    /// transactions were left out.
    fn leave_out_what_is_had(&mut self, event_type: EventType, gtid: Option<Gtid>) -> Result<bool> {
        let mut left_out = false;
        if let Some(has) = &self.dump.has {
            if event_type == EventType::ANONYMOUS_GTID {
                return Err(Error::Refused(format!(
                    "Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file {}, position {}.",
                    self.name(),
                    self.log.offset()
                )));
            }
            left_out = gtid.is_some_and(|gtid| has.contains(&gtid))
                || (self.over_incidents && event_type == EventType::INCIDENT);
        }
        self.leave_out(left_out)
    }

    /// Leaves out the next events, or sends them.
    fn leave_out(&mut self, left_out: bool) -> Result<bool> {
        if !left_out {
            self.tell_left_out()?;
        }
        if self.sink_leaves_out != left_out {
            self.sink()?.leave_out = left_out;
            self.sink_leaves_out = left_out;
        }
        Ok(left_out)
    }

    fn passed(&mut self, stored_end: u64, timestamp: u32, left_out: bool) -> Result<()> {
        self.dump.progress.passed(self.log.file(), stored_end, timestamp);
        if left_out {
            self.left_out_to = Some(self.log.offset());
            self.heartbeat_if_due()?;
        }
        Ok(())
    }
}

fn behind_the_end() -> Error {
    Error::Refused("Client requested source to start replication from position > file size".into())
}

/// The client left, or does not read.
pub(crate) fn broken(source: io::Error) -> Error {
    Error::of_client("send to a replica", source)
}
