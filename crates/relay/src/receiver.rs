//! Receives the source's log and stores it: its own file names, its own bytes.
//!
//! ```text
//! piece of an event ─ spool ─ at the end of a transaction ─ storing.rs ─ (sync thread) ─ durable
//!                                                                      └ semi-sync: sync, then acknowledge
//! ```
//!
//! `receiving.rs` puts the pieces together. A connection that breaks inside a transaction leaves nothing behind: the
//! next one asks for what follows the last whole one. All positions here are the source's.

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
pub(crate) mod crashes;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod damage;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod faults;
mod receiving;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod renewed;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod retained;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod simulated;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::ServerUuid;
use binlogz_binlog::{EventType, MAGIC};
use binlogz_source::{self as source, Compression, ConnectOptions, Connection, DumpOptions, RemoteLog};
use binlogz_store::Position;
use binlogz_wire::session::{DumpStart, EventPiece, Profile, ReplicaProfile};

use crate::checkpoints::Noting;
use crate::continuity::Tail;
use crate::control::Phase;
use crate::duties;
use crate::error::{Error, Hindrance, Result};
use crate::form::Form;
use crate::head::Head;
use crate::identity::server_id_of;
use crate::lineages::Kept;
use crate::meters::now;
use crate::parts::FormFile;
use crate::relay::Relay;
use crate::repair::repair;
use crate::start::{StartAt, check_server, first_file};
use crate::storing;
use crate::whole::go_to_end;
use receiving::{COLLECT_SIZE, Receiving};

/// After a connection that failed at once; then twice as long each time, up to the second.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// A server that was followed is tried so long before another one takes its place.
const FAILOVER_AFTER: Duration = Duration::from_secs(5);
/// A connection that lasted so long was a good one; so was one that brought a transaction.
const GOOD_AFTER: Duration = Duration::from_secs(60);
/// The source says that it is there, well within the silence that [`binlogz_wire::session::Timeouts`] bears.
/// It is then asked whether its log still is the same.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(10);

/// While more is at hand it is noted after so many pieces how far the receiving is: some come within a microsecond.
const PIECES_PER_LOOK: u64 = 256;

/// Receives for ever, unless something must be decided or repaired first.
pub(crate) fn run(relay: &Relay) {
    let mut wait = RETRY_FIRST;
    let mut followed: Option<Instant> = None;
    loop {
        relay.control.wait_until_wanted();
        let began = Instant::now();
        let before = relay.meters.transactions.load(Ordering::Relaxed);
        let durable_before = durable(relay);
        let mut received = duties::attempt(duties::RECEIVE, || receive(relay));
        if let Some(first) = relay.lineages.last().and_then(|kept| kept.store.refuses_since()) {
            // Whatever the connection ended with, this comes first: the source is not to blame.
            if received.as_ref().err().is_none_or(|error| !error.is_local() && !error.is_bug()) {
                received = Err(binlogz_store::Error::Latched { first }.into());
            }
        }
        if relay.control.seen().phase == Phase::Receiving {
            followed = Some(Instant::now());
        }
        relay.control.disconnected();
        relay.lag.disconnected(Instant::now());
        if !relay.control.is_wanted() {
            if relay.control.was_stopped() {
                relay.say("receiving was stopped");
            }
            continue;
        }
        let error = match received {
            Ok(()) => Error::Refused("the source ended its log".into()),
            Err(error) if error.is_final() => {
                relay.fail(&error);
                continue;
            }
            Err(error) => error,
        };
        let hindrance = error.hindrance();
        let got_on = match error.is_local() {
            true => durable(relay) > durable_before,
            false => relay.meters.transactions.load(Ordering::Relaxed) > before,
        };
        if got_on || began.elapsed() > GOOD_AFTER {
            wait = RETRY_FIRST;
        }
        if error.is_local() {
            relay.complain(
                &error,
                &format!("{error}; what is durable is served, trying again in {} ms", wait.as_millis()),
            );
            relay.control.fail_for_now(&error.to_string());
            relay.control.pause(wait);
            wait = (wait * 2).min(RETRY_MAX);
            continue;
        }
        // Another server of the source may be there at once.
        let is_its_turn = followed.is_none_or(|then| then.elapsed() > FAILOVER_AFTER);
        // What is missing here would be missing with any server.
        if hindrance != Hindrance::Here && is_its_turn && !relay.sources.next() {
            let instead = relay.sources.current().map_or(String::new(), ConnectOptions::server);
            relay.control.hinder(hindrance, &error.to_string());
            relay.complain(&error, &format!("{error}; trying {instead} instead"));
            continue;
        }
        relay.complain(&error, &format!("{error}; trying again in {} ms", wait.as_millis()));
        relay.control.hinder(hindrance, &error.to_string());
        relay.control.pause(wait);
        wait = (wait * 2).min(RETRY_MAX);
    }
}

/// Up to where the log that is received is durable.
fn durable(relay: &Relay) -> Option<(u64, Position)> {
    let kept = relay.lineages.last()?;
    Some((kept.number, kept.store.positions()?.durable))
}

/// Connects, and receives until that ends.
fn receive(relay: &Relay) -> Result<()> {
    relay.mend()?;
    let server = relay.sources.current()?;
    relay.control.connect(server.server());
    let (source, mut connection) = ask(server)?;
    if let Some(warning) = relay.sources.warning(server, &connection) {
        relay.say(&warning);
    }
    if let Some(time) = source_time(&mut connection)? {
        relay.lag.clocks(time, now());
    }
    relay.set_source_has_gtids(source.has_gtids);
    let may_change = source.has_gtids && relay.options.sources.len() > 1;
    let has_all = may_change && check_server(relay, &mut connection)?;
    let mut kept = relay.keep(&source.base, source.uuid, has_all)?;
    relay.sync()?;
    if let Some(change) = repair(relay, &kept, server)? {
        kept = relay.begin_anew(&kept, &change)?;
    }
    let mut end = End::of(&kept)?;
    if let Some(End { position, .. }) = &end
        && let Some(change) = Tail::of(&kept, position.file)?.change(&kept, server)?
    {
        (kept, end) = (relay.begin_anew(&kept, &change)?, None);
    }
    let kept = &*kept;
    let first = match end {
        Some(_) => String::new(),
        None => match relay.lineages.one_before() {
            Some(before) => first_file(&mut connection, &StartAt::Gtids(before.written_gtids()))?,
            None if kept.number > 1 => String::new(),
            None => first_file(&mut connection, &relay.options.start)?,
        },
    };
    drop(connection);
    let start = start(kept, source.has_gtids, end.as_ref(), first);
    let profile = ReplicaProfile {
        server_uuid: relay.uuid,
        heartbeat_period: HEARTBEAT_PERIOD,
        semi_sync: relay.options.semi_sync,
        host: String::new(),
        port: 0,
    };
    let dump = DumpOptions {
        profile: Profile::Replica(profile),
        server_id: relay.options.server_id.unwrap_or_else(|| server_id_of(relay.uuid)),
        start,
        non_blocking: false,
        verify_checksums: true,
    };
    let log = RemoteLog::open(server, dump)?;
    if !relay.control.connected(log.hang_up().ok()) {
        return Ok(());
    }
    storing::run(relay, kept, |batches| {
        receive_all(Receiving::new(relay, kept, batches, end)?, log, source.uuid, Some(server))
    })
}

/// A log as it comes in.
trait Incoming {
    /// See [`RemoteLog::next_piece`].
    fn next_piece(&mut self) -> source::Result<Option<EventPiece<'_>>>;
    /// Whether more is at hand.
    fn has_input(&self) -> bool;
    /// What the connection is compressed with.
    fn compression(&self) -> Option<Compression>;
    /// Everything up to there is safe here.
    fn acknowledge(&mut self, name: &[u8], position: u64) -> source::Result<()>;
}

impl Incoming for RemoteLog {
    fn next_piece(&mut self) -> source::Result<Option<EventPiece<'_>>> {
        self.next_piece()
    }

    fn has_input(&self) -> bool {
        self.has_input()
    }

    fn compression(&self) -> Option<Compression> {
        self.compression()
    }

    fn acknowledge(&mut self, name: &[u8], position: u64) -> source::Result<()> {
        self.acknowledge(name, position)
    }
}

/// Receives until the connection ends.
fn receive_all(
    mut receiving: Receiving<'_>,
    mut log: impl Incoming,
    source: ServerUuid,
    server: Option<&ConnectOptions>,
) -> Result<()> {
    let relay = receiving.relay;
    let mut tail = None;
    let mut told = false;
    let mut pieces = 0_u64;
    let mut drained = true;
    let ended = loop {
        let piece = match log.next_piece() {
            Ok(Some(piece)) => piece,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        let first = (!std::mem::replace(&mut told, true))
            .then(|| format!("{} from {}", String::from_utf8_lossy(piece.name), piece.offset));
        let is_heartbeat = is_heartbeat(&piece);
        if is_heartbeat {
            receiving.check_disk()?;
        }
        if is_heartbeat
            && let Some(server) = server
            && let Some(change) = receiving.change(&mut tail, server)?
        {
            break Err(Error::Refused(format!("the source's log was reset or put back: {change}")));
        }
        if drained {
            relay.lag.begins(Instant::now());
        }
        let acknowledge = receiving.piece(&piece)?;
        let (size, timestamp) =
            if piece.is_stored() { (piece.bytes.len(), piece.header.timestamp) } else { (0, 0) };
        let name = piece.name.to_vec();
        relay.meters.received(size, !log.has_input());
        if let Some(place) = first {
            let compressed = log.compression().map_or(String::new(), |how| format!(", over {}", how.name()));
            relay.say(&format!("receiving {place} of {source}{compressed}"));
            relay.control.enter(Phase::Receiving);
        }
        if let Some(position) = acknowledge {
            receiving.flush()?;
            receiving.batches.drain()?;
            relay.sync()?;
            relay.wait_for_replicas();
            log.acknowledge(&name, position)?;
        } else if receiving.whole && (receiving.spool.size() >= COLLECT_SIZE || !log.has_input()) {
            receiving.flush()?;
        }
        pieces += 1;
        drained = receiving.whole && !log.has_input();
        if !log.has_input() || is_heartbeat || pieces.is_multiple_of(PIECES_PER_LOOK) {
            relay.lag.ends((Instant::now(), now()), timestamp, drained, is_heartbeat);
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

/// What the source's clock says, in seconds since 1970; `None`: it does not tell.
fn source_time(connection: &mut Connection) -> Result<Option<u64>> {
    let rows = match connection.query("SELECT UNIX_TIMESTAMP()") {
        Ok(rows) => rows,
        Err(error) if error.server_error().is_some() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let text = rows.into_iter().flatten().flatten().next();
    Ok(text.and_then(|text| String::from_utf8_lossy(&text).parse().ok()))
}

/// What the source says of itself.
struct Source {
    uuid: ServerUuid,
    has_gtids: bool,
    /// What its files' names begin with.
    base: String,
}

fn ask(server: &ConnectOptions) -> Result<(Source, Connection)> {
    let mut connection = Connection::open(server)?;
    let rows =
        connection.query("SELECT @@GLOBAL.server_uuid, @@GLOBAL.gtid_mode, @@GLOBAL.log_bin_basename")?;
    let mut row = rows
        .into_iter()
        .flatten()
        .map(|text| text.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default());
    let mut next = || row.next().unwrap_or_default();
    let (uuid, gtid_mode, basename) = (next(), next(), next());
    let base = basename.rsplit('/').next().unwrap_or_default().to_owned();
    if base.is_empty() {
        return Err(Error::Refused("the source has no binary log (log_bin is OFF)".into()));
    }
    Ok((Source { uuid: uuid.parse()?, has_gtids: gtid_mode == "ON", base }, connection))
}

/// Where the kept log ends, as the source counts.
struct End {
    position: Position,
    head: Head,
    noting: Noting,
}

impl End {
    fn of(kept: &Kept) -> Result<Option<End>> {
        let Some(now) = kept.store.positions() else { return Ok(None) };
        let file = now.durable.file;
        let (offset, noting) = go_to_end(kept, Form::Received, FormFile::first_of(file))?;
        Ok(Some(End { position: Position { file, offset }, head: Head::read(&kept.store, file)?, noting }))
    }
}

/// Behind the last whole transaction; an empty log with the file that it shall begin with.
fn start(kept: &Kept, has_gtids: bool, end: Option<&End>, first: String) -> DumpStart {
    let Some(End { position: Position { file, offset }, .. }) = end else {
        return DumpStart::Position { name: first, position: MAGIC.len() as u64 };
    };
    let (name, position) = (kept.store.names().log(*file), *offset);
    match has_gtids {
        // File and position say where to go on, the set what must not come again.
        true => DumpStart::GtidSet { gtid_set: kept.written_gtids(), name, position },
        false => DumpStart::Position { name, position },
    }
}
