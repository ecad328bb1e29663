//! Receives the source's log and stores it: its own file names, its own bytes.
//!
//! ```text
//! piece of an event ─ spool ─ at the end of a transaction ─ storing.rs ─ (sync thread) ─ durable
//!                                                                      └ semi-sync: sync, then acknowledge
//! ```
//!
//! What is not in the source's file is not stored: rotates and format descriptions that the sender makes,
//! heartbeats. Only whole transactions are appended, so that a connection that breaks inside one leaves nothing
//! behind; the next one asks for what follows the last whole one. An event that stands anywhere else than the kept
//! log ends is an error. All positions here are the source's.

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod crashes;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod simulated;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::event::transaction_payload::HEADER_SIZE_LIMIT;
use binlogz_binlog::gtid::{Gtid, GtidSet, ServerUuid};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{EventFrame, EventHeader, EventType, MAGIC, TransactionAssembler};
use binlogz_payload::{Provenance, Spool, SpoolMemory, provenance};
use binlogz_source::{self as source, ConnectOptions, Connection, DumpOptions, RemoteLog};
use binlogz_store::Position;
use binlogz_wire::session::{DumpStart, EventPiece, Profile, ReplicaProfile};

use crate::checkpoints::Noting;
use crate::continuity::Tail;
use crate::control::Phase;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::head::Head;
use crate::identity::server_id_of;
use crate::lineages::Kept;
use crate::relay::Relay;
use crate::start::{StartAt, check_server, first_file};
use crate::storing::{self, Batch, Batches, Transaction};
use crate::translate::go_to_end;

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
/// Whole transactions are collected up to this size while more is at hand.
const COLLECT_SIZE: u64 = 1 << 20;
/// Of transactions that are not stored yet, so much is held in memory; the rest in temporary files.
const SPOOL_SIZE: usize = 16 << 20;
/// More than the set of any server: a million intervals.
const PREVIOUS_GTIDS_SIZE_MAX: usize = 16 << 20;
/// Bytes of a GTID event that are looked at; 9.7 writes at most 150.
const GTID_EVENT_SIZE_MAX: usize = 64 << 10;
/// Of a payload: whatever may stand in front of it, and the beginning of its frame.
const PAYLOAD_FRONT_SIZE: usize = HEADER_SIZE + HEADER_SIZE_LIMIT + 8;

/// Receives for ever, unless something must be decided or repaired first.
pub(crate) fn run(relay: &Relay) {
    let mut wait = RETRY_FIRST;
    let mut followed: Option<Instant> = None;
    loop {
        relay.control.wait_until_wanted();
        let began = Instant::now();
        let before = relay.meters.transactions.load(Ordering::Relaxed);
        let received = receive(relay);
        if relay.control.seen().phase == Phase::Receiving {
            followed = Some(Instant::now());
        }
        relay.control.disconnected();
        if !relay.control.is_wanted() {
            relay.control.enter(Phase::Stopped);
            relay.say("receiving was stopped");
            continue;
        }
        let error = match received {
            Ok(()) => Error::Refused("the source ended its log".into()),
            Err(error) if error.is_final() => {
                relay.control.enter(Phase::Failed);
                let line = format!("{error}; nothing more is received, what is durable is served");
                relay.complain(&error, &line);
                continue;
            }
            Err(error) => error,
        };
        let got_on = relay.meters.transactions.load(Ordering::Relaxed) > before;
        if got_on || began.elapsed() > GOOD_AFTER {
            wait = RETRY_FIRST;
        }
        // Another server of the source may be there at once.
        let is_its_turn = followed.is_none_or(|then| then.elapsed() > FAILOVER_AFTER);
        if is_its_turn && !relay.sources.next() {
            let instead = relay.sources.current().map_or(String::new(), ConnectOptions::server);
            relay.complain(&error, &format!("{error}; trying {instead} instead"));
            continue;
        }
        relay.complain(&error, &format!("{error}; trying again in {} ms", wait.as_millis()));
        relay.control.enter(Phase::Waiting);
        relay.control.pause(wait);
        wait = (wait * 2).min(RETRY_MAX);
    }
}

/// Connects, and receives until that ends.
fn receive(relay: &Relay) -> Result<()> {
    let server = relay.sources.current()?;
    relay.control.connect(server.server());
    let (source, mut connection) = ask(server)?;
    relay.set_source_has_gtids(source.has_gtids);
    let may_change = source.has_gtids && relay.options.sources.len() > 1;
    let has_all = may_change && check_server(relay, &mut connection)?;
    let mut kept = relay.keep(&source.base, source.uuid, has_all)?;
    relay.sync()?;
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
    let ended = loop {
        let piece = match log.next_piece() {
            Ok(Some(piece)) => piece,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        if !std::mem::replace(&mut told, true) {
            let name = String::from_utf8_lossy(piece.name);
            relay.say(&format!("receiving {name} from {} of {source}", piece.offset));
            relay.control.enter(Phase::Receiving);
        }
        if matches!(piece.header.event_type, EventType::HEARTBEAT | EventType::HEARTBEAT_V2)
            && let Some(server) = server
            && let Some(change) = receiving.change(&mut tail, server)?
        {
            break Err(Error::Refused(format!("the source's log was reset or put back: {change}")));
        }
        let acknowledge = receiving.piece(&piece)?;
        let (size, timestamp) =
            if piece.is_stored() { (piece.bytes.len(), piece.header.timestamp) } else { (0, 0) };
        let name = piece.name.to_vec();
        relay.meters.received(size, timestamp, !log.has_input());
        if let Some(position) = acknowledge {
            receiving.flush()?;
            receiving.batches.drain()?;
            relay.sync()?;
            log.acknowledge(&name, position)?;
        } else if receiving.whole && (receiving.spool.size() >= COLLECT_SIZE || !log.has_input()) {
            receiving.flush()?;
        }
    };
    if receiving.whole {
        receiving.flush()?;
    }
    receiving.batches.drain()?;
    ended
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
        let (offset, noting) = go_to_end(kept, Form::Received, file)?;
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

/// What a GTID event says: the GTID, if it is not anonymous, and the commit time.
type Told = (Option<Gtid>, u64);

/// What has come and is not stored yet.
struct Receiving<'a> {
    relay: &'a Relay,
    kept: &'a Kept,
    batches: &'a Batches<'a>,
    /// Where the kept log ends with what was brought to the store.
    end: Option<Position>,
    /// What the file begins with.
    head: Option<Head>,
    /// Magic and format description of that file, while it waits for its previous GTIDs: no crash shall leave it
    /// without them, since they say what all files before hold.
    begins: Option<Vec<u8>>,
    memory: SpoolMemory,
    spool: Spool,
    /// Whether the spool holds whole transactions only.
    whole: bool,
    assembler: TransactionAssembler,
    /// The beginning of the event that comes, as far as somebody looks at it.
    event: Vec<u8>,
    event_wanted: usize,
    checksum_size: usize,
    /// Of the transaction that is open: where it begins, and if it begins with a GTID event, what that says.
    open: Option<(u64, Option<Told>)>,
    /// Of those in the spool.
    gtids: GtidSet,
    transactions: Vec<Transaction>,
}

impl<'a> Receiving<'a> {
    fn new(relay: &'a Relay, kept: &'a Kept, batches: &'a Batches<'a>, end: Option<End>) -> Result<Self> {
        let (position, head) = match end {
            Some(End { position, head, noting }) => {
                batches.note_in(kept.places(position.file, &head), noting);
                (Some(position), Some(head))
            }
            None => (None, None),
        };
        let memory = SpoolMemory::new(SPOOL_SIZE);
        Ok(Receiving {
            relay,
            kept,
            batches,
            end: position,
            checksum_size: head.as_ref().map_or(0, |head| head.checksum().size()),
            head,
            begins: None,
            spool: Spool::new(&memory, Vec::new()),
            memory,
            whole: true,
            assembler: TransactionAssembler::new(),
            event: Vec::new(),
            event_wanted: 0,
            open: None,
            gtids: GtidSet::new(),
            transactions: Vec::new(),
        })
    }

    /// Takes bytes of an event. Gives where a transaction ends that the source wants acknowledged.
    fn piece(&mut self, piece: &EventPiece<'_>) -> Result<Option<u64>> {
        if !piece.is_stored() {
            return Ok(None);
        }
        if piece.header.event_type == EventType::FORMAT_DESCRIPTION {
            // The session hands those on whole.
            self.file(piece)?;
            return Ok(None);
        }
        if piece.begins {
            self.begin(piece)?;
        }
        self.spool.append(piece.bytes).map_err(Error::io("hold a transaction"))?;
        self.whole = false;
        let room = self.event_wanted.saturating_sub(self.event.len());
        self.event.extend_from_slice(piece.bytes.get(..room).unwrap_or(piece.bytes));
        if !piece.ends {
            return Ok(None);
        }
        self.end_event(&piece.header)?;
        Ok((piece.wants_ack && self.whole).then(|| piece.end_offset()))
    }

    /// Whether the source's log is another one by now, as far as nothing of it is on its way here. `tail`: what was
    /// looked for the last time.
    fn change(&self, tail: &mut Option<(Position, Tail)>, server: &ConnectOptions) -> Result<Option<String>> {
        let now = self.kept.store.positions();
        let Some(durable) = now.filter(|now| now.written == now.durable).map(|now| now.durable) else {
            return Ok(None);
        };
        let known = tail.take().filter(|(at, _)| *at == durable);
        let (_, tail) = match known {
            Some(known) => tail.insert(known),
            None => tail.insert((durable, Tail::of(self.kept, durable.file)?)),
        };
        tail.change(self.kept, server)
    }

    /// A file begins, or goes on.
    fn file(&mut self, piece: &EventPiece<'_>) -> Result<()> {
        let name = String::from_utf8_lossy(piece.name).into_owned();
        let sent = Head::decode(piece.bytes)?;
        self.checksum_size = sent.checksum().size();
        let store = &self.kept.store;
        let number = store.names().number(&name);
        let expected = match self.end {
            Some(end) if number == Some(end.file) => {
                let stored = Head::read(store, end.file)?;
                if stored.is_of_the_same_file(&sent) {
                    return Ok(());
                }
                return Err(Error::Refused(format!(
                    "{name} of the source is another file than the one that is kept: its log was reset"
                )));
            }
            Some(end) => Some(end.file.next()),
            None => number,
        };
        let Some(number) = number.filter(|number| Some(*number) == expected) else {
            let expected = expected.map_or("a file of its log".to_owned(), |next| store.names().log(next));
            return Err(Error::Gap { name, offset: piece.offset, expected });
        };
        // What is left was never completed by the source; it stands in its file all the same.
        self.flush()?;
        self.batches.drain()?;
        self.begin_file(&[])?;
        let bytes = [&MAGIC, piece.bytes].concat();
        self.end = Some(Position { file: number, offset: bytes.len() as u64 });
        (self.begins, self.head) = (Some(bytes), Some(sent));
        self.assembler = TransactionAssembler::new();
        self.open = None;
        Ok(())
    }

    /// Begins the file that waits, if one does, with what it has in front of its transactions.
    fn begin_file(&mut self, more: &[u8]) -> Result<()> {
        let (Some(mut bytes), Some(end)) = (self.begins.take(), self.end) else { return Ok(()) };
        bytes.extend_from_slice(more);
        let store = &self.kept.store;
        let before = store.positions().map(|now| now.written.file);
        let key = self.relay.options.encrypt.as_deref();
        self.end = Some(store.writer()?.begin_file(end.file, &bytes, key)?);
        if let Some(before) = before {
            // Durable and closed: what is known of it is kept.
            let head = Head::read(store, before)?;
            let _ = self.kept.places(before, &head).save(u64::MAX - 1, true);
        }
        self.relay.lineages.retire();
        let head = Head::read(store, end.file)?;
        self.batches.note_in(self.kept.places(end.file, &head), Noting::default());
        self.head = Some(head);
        self.relay.say(&format!("{} begins", store.names().log(end.file)));
        Ok(())
    }

    /// An event begins: it must stand where the kept log ends.
    fn begin(&mut self, piece: &EventPiece<'_>) -> Result<()> {
        let name = self.end.map(|end| self.kept.store.names().log(end.file)).unwrap_or_default();
        let offset = self.end.map_or(0, |end| end.offset) + self.spool.size();
        if piece.name != name.as_bytes() || piece.offset != offset {
            return Err(Error::Gap {
                name: String::from_utf8_lossy(piece.name).into_owned(),
                offset: piece.offset,
                expected: format!("{name} at {offset}"),
            });
        }
        self.event.clear();
        self.event_wanted = match piece.header.event_type {
            EventType::QUERY => HEADER_SIZE + QUERY_PREFIX_SIZE_MAX,
            EventType::TRANSACTION_PAYLOAD => PAYLOAD_FRONT_SIZE,
            EventType::PREVIOUS_GTIDS => PREVIOUS_GTIDS_SIZE_MAX,
            event_type if event_type.is_gtid() => GTID_EVENT_SIZE_MAX,
            _ => HEADER_SIZE,
        };
        self.open.get_or_insert((offset, None));
        Ok(())
    }

    /// An event is whole.
    fn end_event(&mut self, header: &EventHeader) -> Result<()> {
        if header.event_type != EventType::PREVIOUS_GTIDS {
            self.begin_file(&[])?;
        }
        // A statement ends where the checksum begins.
        let end = (header.event_size as usize).saturating_sub(self.checksum_size).min(self.event.len());
        let body = self.event.get(HEADER_SIZE..end).unwrap_or_default();
        self.assembler.feed(header, body);
        if header.event_type.is_gtid() {
            let frame = EventFrame::from_checked(&self.event, self.checksum_size)?;
            let event = AnyGtidEvent::decode_frame(&frame)?;
            let committed = event.as_ref().and_then(AnyGtidEvent::commit_timestamps);
            let told = (event.and_then(|event| event.gtid()), committed.map_or(0, |times| times.immediate));
            self.open = self.open.map(|(begin, _)| (begin, Some(told)));
        } else if header.event_type == EventType::PREVIOUS_GTIDS {
            // Of the first file: what the source had purged, or what is not to be kept here.
            self.gtids.union(&GtidSet::decode(body)?.0);
            if self.begins.is_some() {
                let event = std::mem::take(&mut self.event);
                self.begin_file(&event)?;
                self.spool = Spool::new(&self.memory, Vec::new());
                self.relay.written(self.kept, &std::mem::take(&mut self.gtids));
            }
        } else if header.event_type == EventType::TRANSACTION_PAYLOAD {
            let body_size = u64::from(header.event_size) - HEADER_SIZE as u64;
            if provenance(body, body_size)? == Some(Provenance::Binlogz) {
                return Err(Error::Lineage(
                    "the source sends a payload with the mark of those that binlogz makes in a store: it could not be \
                     told from our own"
                        .into(),
                ));
            }
        }
        if !self.assembler.is_open() {
            self.whole = true;
            let end = self.end.map_or(0, |end| end.offset) + self.spool.size();
            if let Some((begin, Some((gtid, committed)))) = self.open.take() {
                if let Some(gtid) = gtid {
                    self.gtids.add(gtid);
                }
                self.relay.meters.transactions.fetch_add(1, Ordering::Relaxed);
                self.transactions.push(Transaction { range: begin..end, gtid, committed });
            }
        }
        Ok(())
    }

    /// Brings what has come to the store.
    fn flush(&mut self) -> Result<()> {
        let size = self.spool.size();
        let (Some(end), Some(head)) = (&mut self.end, &self.head) else { return Ok(()) };
        if size == 0 {
            return Ok(());
        }
        let spool = std::mem::replace(&mut self.spool, Spool::new(&self.memory, Vec::new()));
        let batch = Batch {
            spool,
            offset: end.offset,
            context: head.context(),
            announced: head.announces_payloads(),
            gtids: std::mem::take(&mut self.gtids),
            transactions: std::mem::take(&mut self.transactions),
        };
        end.offset += size;
        self.whole = true;
        self.batches.bring(batch)
    }
}
