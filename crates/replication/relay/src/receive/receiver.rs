//! Receives the source's log and stores it under the same file names, byte for byte.
//!
//! ```text
//! piece of an event ─ spool ─ at the end of a transaction ─ storing.rs ─ (sync thread) ─ durable
//!                                                                      └ semi-sync: sync, then acknowledge
//! ```
//!
//! `receiving.rs` puts the pieces together. A connection that breaks inside a transaction leaves nothing in the store:
//! the next connection begins after the last whole transaction. All positions here are the source's.

pub(crate) mod receiving;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::ServerUuid;
use binlogz_binlog::{EventType, MAGIC};
use binlogz_relay_forms::go_to_end;
use binlogz_relay_log::{Form, FormFile, GtidCollector, LineageLog, StoredHead};
use binlogz_source::{
    self as source, ConnectOptions, Connection, ConnectionCompression, DumpOptions, RemoteLog,
};
use binlogz_store::Position;
use binlogz_wire::session::{ClientProfile, DumpStart, EventPiece, ReplicaProfile};

use crate::error::{Error, Hindrance, Result};
use crate::receive::continuity::LogTail;
use crate::receive::control::Phase;
use crate::receive::group_member;
use crate::receive::identity::server_id_of;
use crate::receive::intake::Intake;
use crate::receive::mariadb;
use crate::receive::product;
use crate::receive::repair::repair;
use crate::receive::start::{StartAt, check_server, first_file};
use crate::receive::storing;
use crate::telemetry::{complain, duties, say, spans};
use crate::time::now;
use receiving::{COLLECT_SIZE, ReceivedBytes};

/// The delay after a connection that failed at once. It doubles each time, up to the second constant.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// The delay after a server that can't be followed: only another server in its place would help.
const RETRY_UNFOLLOWABLE: Duration = Duration::from_secs(300);
/// How long we retry a server before switching to another one.
const FAILOVER_AFTER: Duration = Duration::from_secs(5);
/// A connection that lasted this long counts as good; so does one that brought a transaction.
const GOOD_AFTER: Duration = Duration::from_secs(60);
/// The source's heartbeat period: an idle source that lives says so within the time that counts as no lag
/// ([`crate::telemetry::lag`]).
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(1);
/// After a heartbeat we check that the source's log is still the same, once in this time.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// While more input is ready, progress is recorded once per this many pieces: some arrive within a microsecond.
const PIECES_PER_LOOK: u64 = 256;

/// Receives for ever, unless someone must decide or repair something first.
pub(crate) fn run(intake: &Intake) {
    let mut retries = Retries { wait: RETRY_FIRST, followed: None };
    loop {
        intake.control.wait_until_wanted();
        if intake.telemetry.ending.has_begun() {
            return;
        }
        let began = Instant::now();
        let before = intake.telemetry.meters.transactions.load(Ordering::Relaxed);
        let durable_before = durable(intake);
        let mut received = duties::attempt(duties::RECEIVE, || receive(intake));
        if let Some(first) = intake.lineages.last().and_then(|kept| kept.store.refuses_since()) {
            // Checked first, whatever ended the connection: the source is not to blame.
            if received.as_ref().err().is_none_or(|error| !error.is_local() && !error.is_bug()) {
                received = Err(binlogz_store::Error::Latched { first }.into());
            }
        }
        if intake.control.seen().phase == Phase::Receiving {
            retries.followed = Some(Instant::now());
        }
        intake.control.disconnected();
        intake.telemetry.lag.disconnected(Instant::now());
        if !intake.control.is_wanted() {
            if intake.control.was_stopped() && !intake.telemetry.ending.has_begun() {
                say!(intake.telemetry, "receiving was stopped");
            }
            continue;
        }
        let error = match received {
            Ok(()) => Error::OfSource("the source ended its log".into()),
            Err(error) if error.is_final() => {
                intake.fail(&error);
                continue;
            }
            Err(error) => error,
        };
        let got_on = match error.is_local() {
            true => durable(intake) > durable_before,
            false => intake.telemetry.meters.transactions.load(Ordering::Relaxed) > before,
        };
        if got_on || began.elapsed() > GOOD_AFTER {
            retries.wait = RETRY_FIRST;
        }
        match error.is_local() {
            true => retries.after_own_failure(intake, &error),
            false => retries.after_failure_of_source(intake, &error),
        }
    }
}

/// When and where the relay connects again.
struct Retries {
    /// The delay before the next attempt.
    wait: Duration,
    /// When the source was last followed.
    followed: Option<Instant>,
}

impl Retries {
    /// Waits after a failure of this machine: its disk, its memory.
    fn after_own_failure(&mut self, intake: &Intake, error: &Error) {
        let millis = self.wait.as_millis();
        let line = format!("{error}; what is durable is served, trying again in {millis} ms");
        complain!(intake.telemetry, error, &line);
        intake.control.fail_for_now(&error.to_string());
        self.pause(intake);
    }

    /// Turns to another server of the source, or waits.
    fn after_failure_of_source(&mut self, intake: &Intake, error: &Error) {
        let hindrance = error.hindrance();
        // Another server of the source may be available at once.
        let is_its_turn = self.followed.is_none_or(|then| then.elapsed() > FAILOVER_AFTER);
        // Something that is missing here would be missing with every server.
        if hindrance != Hindrance::Here && is_its_turn && !intake.servers.next() {
            let instead = intake.servers.current().map_or(String::new(), ConnectOptions::server);
            intake.control.hinder(hindrance, &error.to_string());
            complain!(intake.telemetry, error, &format!("{error}; trying {instead} instead"));
            return;
        }
        intake.control.hinder(hindrance, &error.to_string());
        if matches!(error, Error::Unfollowable(_)) && !intake.servers.are_several() {
            let line = format!("{error}; trying again in {} s", RETRY_UNFOLLOWABLE.as_secs());
            complain!(intake.telemetry, error, &line);
            intake.control.pause(RETRY_UNFOLLOWABLE);
            return;
        }
        complain!(intake.telemetry, error, &format!("{error}; trying again in {} ms", self.wait.as_millis()));
        self.pause(intake);
    }

    fn pause(&mut self, intake: &Intake) {
        intake.control.pause(self.wait);
        self.wait = (self.wait * 2).min(RETRY_MAX);
    }
}

/// The durable end of the current log.
fn durable(intake: &Intake) -> Option<(u64, Position)> {
    let kept = intake.lineages.last()?;
    Some((kept.number, kept.store.positions()?.durable))
}

/// Connects, and receives until the connection ends.
fn receive(intake: &Intake) -> Result<()> {
    intake.mend()?;
    let server = intake.servers.current()?;
    intake.control.connect(server.server());
    let (source, mut connection) = ask(server)?;
    mariadb::check(&connection, &server.server(), (&intake.servers, &intake.start))?;
    if let Some(warning) = intake.servers.warning(server, &connection) {
        say!(intake.telemetry, &warning);
    }
    // A source that doesn't say has ours.
    let time = source_time(&mut connection)?.unwrap_or_else(now);
    intake.telemetry.lag.clocks(time, now(), Instant::now());
    intake.set_source_has_gtids(source.has_gtids);
    intake.ask_variables(&mut connection)?;
    let may_change = source.has_gtids && intake.servers.are_several();
    let is_of_group = may_change && group_member::check(&intake.servers, server, &mut connection)?;
    let has_all = may_change && check_server(&intake.written_gtids(), &mut connection)?;
    let mut kept = intake.keep(&source.base, source.uuid, has_all)?;
    intake.sync()?;
    if let Some(change) = repair(intake, &kept, server)? {
        kept = intake.begin_anew(&kept, &change)?;
    }
    let mut end = LogEnd::of(intake, &kept)?;
    if let Some(LogEnd { position, .. }) = &end
        && let Some(change) =
            LogTail::of(intake.conversions.of(&kept), position.file)?.change(&kept, server)?
    {
        (kept, end) = (intake.begin_anew(&kept, &change)?, None);
    }
    let kept = &*kept;
    let first = match end {
        Some(_) => String::new(),
        None => match intake.lineages.one_before() {
            Some(before) => first_file(&mut connection, &StartAt::Gtids(before.written_gtids()))?,
            None if kept.number > 1 => String::new(),
            None => first_file(&mut connection, &intake.start)?,
        },
    };
    drop(connection);
    let start = start(kept, source.has_gtids, end.as_ref(), first);
    let profile = ReplicaProfile {
        server_uuid: intake.uuid,
        heartbeat_period: HEARTBEAT_PERIOD,
        semi_sync: intake.semi_sync,
        host: String::new(),
        port: 0,
    };
    let dump = DumpOptions {
        profile: ClientProfile::Replica(profile),
        server_id: intake.server_id.unwrap_or_else(|| server_id_of(intake.uuid)),
        start,
        non_blocking: false,
        verify_checksums: true,
    };
    let log = RemoteLog::open(server, dump)?;
    let span = spans::receive(&intake.telemetry);
    span.record("server", server.server());
    let _receiving = span.entered();
    if !intake.control.connected(log.hang_up().ok()) {
        return Ok(());
    }
    storing::run(intake, kept, |batches| {
        let followed = FollowedServer { server, is_of_group };
        receive_all(ReceivedBytes::new(intake, kept, batches, end)?, log, source.uuid, Some(followed))
    })
}

/// A log that is being received.
pub(crate) trait IncomingLog {
    /// See [`RemoteLog::next_piece`].
    fn next_piece(&mut self) -> source::Result<Option<EventPiece<'_>>>;
    /// Whether more input is ready.
    fn has_input(&self) -> bool;
    /// The connection's compression.
    fn compression(&self) -> Option<ConnectionCompression>;
    /// Tells the source that everything up to this position is durable.
    fn acknowledge(&mut self, name: &[u8], position: u64) -> source::Result<()>;
}

impl IncomingLog for RemoteLog {
    fn next_piece(&mut self) -> source::Result<Option<EventPiece<'_>>> {
        self.next_piece()
    }

    fn has_input(&self) -> bool {
        self.has_input()
    }

    fn compression(&self) -> Option<ConnectionCompression> {
        self.compression()
    }

    fn acknowledge(&mut self, name: &[u8], position: u64) -> source::Result<()> {
        self.acknowledge(name, position)
    }
}

/// The server that is followed.
#[derive(Clone, Copy)]
pub(crate) struct FollowedServer<'a> {
    server: &'a ConnectOptions,
    /// Whether it belongs to a group, which it can leave.
    is_of_group: bool,
}

impl FollowedServer<'_> {
    /// Asks the server whether its log is still the one that is received, and whether it is still a member of its group. A change, in words.
    fn change(
        &self,
        receiving: &ReceivedBytes<'_>,
        tail: &mut Option<(Position, LogTail)>,
    ) -> Result<Option<String>> {
        let change = receiving.change(tail, self.server)?;
        if change.is_none() && self.is_of_group {
            let servers = &receiving.intake.servers;
            group_member::check(servers, self.server, &mut Connection::open(self.server)?)?;
        }
        Ok(change)
    }
}

/// Receives until the connection ends.
pub(crate) fn receive_all(
    mut receiving: ReceivedBytes<'_>,
    mut log: impl IncomingLog,
    source: ServerUuid,
    followed: Option<FollowedServer<'_>>,
) -> Result<()> {
    let intake = receiving.intake;
    let mut tail = None;
    let mut told = false;
    let mut pieces = 0_u64;
    let mut drained = true;
    let mut checked = Instant::now();
    let ended = loop {
        let piece = match log.next_piece() {
            Ok(Some(piece)) => piece,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        let first = (!std::mem::replace(&mut told, true))
            .then(|| format!("{} from {}", String::from_utf8_lossy(piece.name), piece.offset));
        let is_heartbeat = is_heartbeat(&piece);
        let is_check_due = is_heartbeat && checked.elapsed() >= CHECK_INTERVAL;
        if is_check_due {
            checked = Instant::now();
            receiving.check_disk()?;
            if let Some(followed) = followed
                && let Some(change) = followed.change(&receiving, &mut tail)?
            {
                break Err(Error::OfSource(format!("the source's log was reset or put back: {change}")));
            }
        }
        if drained {
            intake.telemetry.lag.begins(Instant::now());
        }
        let acknowledge = receiving.piece(&piece)?;
        let (size, timestamp) =
            if piece.is_stored() { (piece.bytes.len(), piece.header.timestamp) } else { (0, 0) };
        let name = piece.name.to_vec();
        intake.telemetry.meters.received(size, !log.has_input());
        if let Some(place) = first {
            let compressed = log.compression().map_or(String::new(), |how| format!(", over {}", how.name()));
            say!(intake.telemetry, &format!("receiving {place} of {source}{compressed}"));
            intake.control.enter(Phase::Receiving);
        }
        if let Some(position) = acknowledge {
            receiving.flush()?;
            receiving.batches.drain()?;
            intake.sync()?;
            intake.wait_for_replicas();
            log.acknowledge(&name, position)?;
        } else if receiving.whole && (receiving.spool.size() >= COLLECT_SIZE || !log.has_input()) {
            receiving.flush()?;
        }
        if let Some(tickets) = intake.throttles.receive.take(size) {
            // What is whole need not wait with it.
            if receiving.whole {
                receiving.flush()?;
            }
            intake.wait_for_rate(&tickets);
        }
        if !log.has_input() {
            receiving.check_damage()?;
        }
        pieces += 1;
        drained = receiving.whole && !log.has_input();
        if !log.has_input() || is_heartbeat || pieces.is_multiple_of(PIECES_PER_LOOK) {
            intake.telemetry.lag.ends((Instant::now(), now()), timestamp, drained, is_heartbeat);
        }
    };
    if receiving.whole {
        receiving.flush()?;
    }
    receiving.batches.drain()?;
    ended
}

fn is_heartbeat(piece: &EventPiece<'_>) -> bool {
    matches!(piece.header.event_type, EventType::HEARTBEAT | EventType::HEARTBEAT_V2)
}

/// The source's clock, in seconds since 1970; `None` if it does not say.
fn source_time(connection: &mut Connection) -> Result<Option<u64>> {
    let rows = match connection.query("SELECT UNIX_TIMESTAMP()") {
        Ok(rows) => rows,
        Err(error) if error.server_error().is_some() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let text = rows.into_iter().flatten().flatten().next();
    Ok(text.and_then(|text| String::from_utf8_lossy(&text).parse().ok()))
}

/// The source's account of itself.
struct Source {
    uuid: ServerUuid,
    has_gtids: bool,
    /// The prefix of its files' names.
    base: String,
}

fn ask(server: &ConnectOptions) -> Result<(Source, Connection)> {
    let mut connection = product::connect(server)?;
    let uuid = mariadb::uuid_of(&mut connection)?;
    let modes = match mariadb::is_mariadb(uuid) {
        true => "SELECT '', @@GLOBAL.log_bin_basename",
        false => "SELECT @@GLOBAL.gtid_mode, @@GLOBAL.log_bin_basename",
    };
    let mut row = connection
        .query(modes)?
        .into_iter()
        .flatten()
        .map(|text| text.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default());
    let mut next = || row.next().unwrap_or_default();
    let gtid_mode = next();
    let basename = next();
    let base = basename.rsplit('/').next().unwrap_or_default().to_owned();
    if base.is_empty() {
        return Err(Error::OfSource("the source has no binary log (log_bin is OFF)".into()));
    }
    Ok((Source { uuid, has_gtids: gtid_mode == "ON", base }, connection))
}

/// The end of the stored log, as the source counts.
pub(crate) struct LogEnd {
    pub(crate) position: Position,
    pub(crate) head: StoredHead,
    pub(crate) noting: GtidCollector,
}

impl LogEnd {
    pub(crate) fn of(intake: &Intake, kept: &LineageLog) -> Result<Option<LogEnd>> {
        let Some(now) = kept.store.positions() else { return Ok(None) };
        let file = now.durable.file;
        let (offset, noting) =
            go_to_end(intake.conversions.of(kept), Form::Received, FormFile::first_of(file))?;
        Ok(Some(LogEnd {
            position: Position { file, offset },
            head: StoredHead::read(&kept.store, file)?,
            noting,
        }))
    }
}

/// Starts after the last whole transaction; an empty log starts with the file it should begin with.
pub(crate) fn start(kept: &LineageLog, has_gtids: bool, end: Option<&LogEnd>, first: String) -> DumpStart {
    let Some(LogEnd { position: Position { file, offset }, .. }) = end else {
        return DumpStart::Position { name: first, position: MAGIC.len() as u64 };
    };
    let name = kept.store.names().log(*file);
    let position = *offset;
    match has_gtids {
        // File and position say where to resume, the set says which transactions must not be sent again.
        true => DumpStart::GtidSet { gtid_set: kept.written_gtids(), name, position },
        false => DumpStart::Position { name, position },
    }
}
