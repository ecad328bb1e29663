//! Fetches damaged parts of the stored log from the source again.
//!
//! ```text
//! damage (binlogz-store) ─ where the hole begins in the source's file ─ its transactions, a dump from there on
//!                        ─ as they are stored, until the hole is full ─ the one after it must be the one that is kept
//!                        ─ into the hole; a copy of the damaged file stays beside it
//! ```
//!
//! A repair fills a hole to the exact byte, so that every position is unchanged in every form, and replicas being served
//! notice nothing. A transaction may compress to the same size at several levels, and only one of them wrote what was
//! there: the candidate is taken that differs least from what stands in the hole. For a large hole we try the current level
//! first, then all others.

use std::io::{self, Read, Write};

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::{FLAGS_OFFSET, HEADER_SIZE};
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{EventType, HeaderFlags, MAGIC, TransactionBoundaryParser};
use binlogz_payload::{CompressionLevel, Spool, SpoolMemory};
use binlogz_relay_forms::{Forms, Translator};
use binlogz_relay_log::{Error as LogError, Form, FormFile, GroupWalker, LineageLog, StoredHead};
use binlogz_source::{ConnectOptions, DumpOptions, RemoteLog};
use binlogz_store::{Damage, Hole};
use binlogz_wire::session::EventPiece;

use crate::error::{Error, Result};
use crate::receive::intake::Intake;
use crate::receive::mariadb;
use crate::receive::product;
use crate::receive::storing::{self, LevelCompressor, ReceivedBatch};
use crate::telemetry::say;

/// How many fetched bytes are held in memory; the rest goes to temporary files.
const SPOOL_SIZE: usize = 16 << 20;
/// A hole of at most so many bytes is filled at each level, to find the one that wrote it.
const EACH_LEVEL_MAX: u64 = 1 << 20;

/// Repairs the damage of a log's last file with what its source still has.
///
/// # Errors
///
/// The source can't be reached, or lacks the damaged part. It is asked again.
pub(crate) fn repair(intake: &Intake, kept: &LineageLog, server: &ConnectOptions) -> Result<Option<String>> {
    while let Some(damage) = kept.store.damage() {
        let Some(hole) = damage.holes.first() else { break };
        let name = server.server();
        say!(intake.telemetry, &format!("{damage}; {name} is asked for it"));
        let end = kept.store.positions().map_or(0, |now| now.durable.offset);
        let asking = HoleQuestion { intake, kept, server, damage: &damage, hole, end, is_closed: false };
        let bytes = match asking.fetch() {
            Ok(FetchedHole::Bytes(bytes)) => bytes,
            Ok(FetchedHole::Another(change)) => return Ok(Some(change)),
            Err(error) => {
                return Err(Error::Log(LogError::DamagedLog(format!(
                    "{damage}; {name} did not repair it: {error}"
                ))));
            }
        };
        let size = bytes.size();
        let repaired = kept.store.repair(&mut bytes.reader(0..size))?;
        kept.repaired(damage.file, &repaired.report.gtids);
        say!(
            intake.telemetry,
            &format!(
                "{} was repaired from {} to {} with what {name} has of it; as it was before it is kept as {}",
                damage.name, hole.from, hole.to, repaired.kept_as
            )
        );
    }
    Ok(None)
}

/// The bytes for the first hole of a closed file, from a server that still has the file.
///
/// # Errors
///
/// No server that has this log can be reached, or the server's bytes do not fit.
pub(crate) fn fetch_closed(intake: &Intake, kept: &LineageLog, damage: &Damage) -> Result<Spool> {
    let mut failed = None;
    for server in intake.servers.all() {
        match fetch_closed_from(intake, kept, damage, server) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => drop(failed.get_or_insert((server.server(), error))),
        }
    }
    Err(match failed {
        Some((name, error)) => Error::Log(LogError::DamagedLog(format!("{name} did not repair it: {error}"))),
        None => Error::Refused("there is no source to ask for it".into()),
    })
}

fn fetch_closed_from(
    intake: &Intake,
    kept: &LineageLog,
    damage: &Damage,
    server: &ConnectOptions,
) -> Result<Spool> {
    let whole = || Error::Refused("nothing is damaged".into());
    let hole = damage.holes.first().ok_or_else(whole)?;
    let uuid = mariadb::uuid_of(&mut product::connect(server)?)?;
    if uuid != kept.source {
        return Err(Error::Refused(format!("it is {uuid}, and the log is that of {}", kept.source)));
    }
    let end = kept.store.reader(damage.file, 0)?.end()?;
    match (HoleQuestion { intake, kept, server, damage, hole, end, is_closed: true }).fetch()? {
        FetchedHole::Bytes(bytes) => Ok(bytes),
        FetchedHole::Another(change) => Err(Error::Refused(change)),
    }
}

enum FetchedHole {
    /// The bytes for the hole.
    Bytes(Spool),
    /// The source's file of this name is a different one.
    Another(String),
}

#[derive(Clone, Copy)]
struct HoleQuestion<'a> {
    intake: &'a Intake,
    kept: &'a LineageLog,
    server: &'a ConnectOptions,
    damage: &'a Damage,
    hole: &'a Hole,
    /// Where the file ends for readers.
    end: u64,
    is_closed: bool,
}

/// The contents of the hole at one compression level.
struct Attempt {
    level: Option<CompressionLevel>,
    stored: Spool,
    compressing: LevelCompressor,
}

impl HoleQuestion<'_> {
    fn fetch(&self) -> Result<FetchedHole> {
        let now = self.intake.compression.lock().level();
        let others: Vec<_> =
            (1..=22).filter_map(CompressionLevel::new).map(Some).filter(|level| *level != now).collect();
        let first = if now.is_some() { vec![now, None] } else { vec![None] };
        let rounds = match self.hole.to - self.hole.from {
            ..=EACH_LEVEL_MAX => vec![[first, others].concat()],
            _ => vec![first, others],
        };
        for levels in rounds {
            if let Some(fetched) = self.fetch_at(&levels)? {
                return Ok(fetched);
            }
        }
        Err(Error::Refused("what it has there does not fit in the place of what is damaged".into()))
    }

    /// `None` if the source's transactions fill the hole at none of these levels.
    fn fetch_at(&self, levels: &[Option<CompressionLevel>]) -> Result<Option<FetchedHole>> {
        let mut filling = HoleFilling::new(*self, levels)?;
        let options = DumpOptions::to_the_end(&self.damage.name, filling.begin);
        let options = DumpOptions { verify_checksums: true, ..options };
        let mut log = RemoteLog::open(self.server, options)?;
        while let Some(piece) = log.next_piece()? {
            if !piece.is_stored() {
                continue;
            }
            if piece.name != self.damage.name.as_bytes() {
                break;
            }
            match filling.take(&piece)? {
                FillingStep::More => {}
                FillingStep::Unfit => break,
                FillingStep::Another(change) => return Ok(Some(FetchedHole::Another(change))),
                FillingStep::Filled(bytes) => {
                    drop(log);
                    return match self.follows(filling.begin)? {
                        true => Ok(Some(FetchedHole::Bytes(bytes))),
                        false => Ok(None),
                    };
                }
            }
        }
        Ok(None)
    }

    /// The candidate that differs least from the bytes in the hole; of several the first.
    fn closest(&self, candidates: impl Iterator<Item = Spool>) -> Result<Option<Spool>> {
        let HoleQuestion { kept, damage, hole, .. } = *self;
        let mut closest = None;
        for candidate in candidates {
            let size = candidate.size();
            let differing = kept.store.differing(damage.file, hole, &mut candidate.reader(0..size))?;
            if closest.as_ref().is_none_or(|(least, _)| differing < *least) {
                closest = Some((differing, candidate));
            }
        }
        Ok(closest.map(|(_, candidate)| candidate))
    }

    /// Whether the source's next transaction is the one we store after the hole.
    fn follows(&self, at: u64) -> Result<bool> {
        let HoleQuestion { kept, damage, hole, .. } = *self;
        if hole.to >= self.end || hole.from == 0 {
            return Ok(true);
        }
        let framing = StoredHead::read(&kept.store, damage.file)?.framing();
        let mut walker = GroupWalker::new(kept.store.reader(damage.file, hole.to)?, framing, hole.to);
        let ours = walker.next_group()?;
        let options = DumpOptions { verify_checksums: true, ..DumpOptions::to_the_end(&damage.name, at) };
        let mut log = RemoteLog::open(self.server, options)?;
        while let Some(piece) = log.next_piece()? {
            if !piece.is_stored() || piece.header.event_type == EventType::FORMAT_DESCRIPTION {
                continue;
            }
            let Some(ours) = &ours else { return Ok(true) };
            let theirs = piece.header;
            let is_same = theirs.timestamp == ours.first.timestamp
                && theirs.event_type == ours.first.event_type
                && theirs.event_size == ours.first.event_size;
            return Ok(
                is_same && gtid_of(&piece, self.kept, damage)?.is_none_or(|gtid| Some(gtid) == ours.gtid)
            );
        }
        Ok(ours.is_none())
    }
}

/// The GTID of a complete event.
fn gtid_of(piece: &EventPiece<'_>, kept: &LineageLog, damage: &Damage) -> Result<Option<Gtid>> {
    if !(piece.header.event_type.is_gtid() && piece.begins && piece.ends) {
        return Ok(None);
    }
    let checksum_size = StoredHead::read(&kept.store, damage.file)?.checksum().size();
    let frame = binlogz_binlog::EventFrame::from_bytes(piece.bytes, checksum_size)?;
    let event = binlogz_binlog::event::AnyGtidEvent::decode_frame(&frame)?;
    Ok(event.and_then(|event| event.gtid()))
}

/// A hole that is being filled with the transactions of the source, at several compression levels.
struct HoleFilling<'a> {
    question: HoleQuestion<'a>,
    memory: SpoolMemory,
    attempts: Vec<Attempt>,
    /// The beginning of the file. `None`: the hole has it, and the source hasn't sent it yet.
    head: Option<StoredHead>,
    is_described: bool,
    boundaries: TransactionBoundaryParser,
    /// The open transaction, which begins at this offset of the source's file, and the first bytes of its last event.
    open: Spool,
    begin: u64,
    event: Vec<u8>,
}

/// What a piece of the source's log makes of a hole.
enum FillingStep {
    /// The hole isn't full yet.
    More,
    /// The source's transactions fill it at none of the levels.
    Unfit,
    /// The source's file of this name is a different one.
    Another(String),
    Filled(Spool),
}

impl<'a> HoleFilling<'a> {
    fn new(question: HoleQuestion<'a>, levels: &[Option<CompressionLevel>]) -> Result<Self> {
        let HoleQuestion { intake, kept, damage, hole, .. } = question;
        let memory = SpoolMemory::new(SPOOL_SIZE);
        let attempts = levels.iter().map(|level| Attempt {
            level: *level,
            stored: Spool::new(&memory, Vec::new()),
            compressing: LevelCompressor::default(),
        });
        let attempts = attempts.collect();
        let head = match hole.from {
            0 => None,
            _ => Some(StoredHead::read(&kept.store, damage.file)?),
        };
        let begin = match hole.from {
            0 => MAGIC.len() as u64,
            _ => source_offset(intake.conversions.of(kept), damage, hole)?,
        };
        Ok(HoleFilling {
            question,
            attempts,
            head,
            is_described: false,
            boundaries: TransactionBoundaryParser::new(),
            open: Spool::new(&memory, Vec::new()),
            begin,
            event: Vec::new(),
            memory,
        })
    }

    /// Takes the next piece of the source's file.
    fn take(&mut self, piece: &EventPiece<'_>) -> Result<FillingStep> {
        if piece.header.event_type == EventType::FORMAT_DESCRIPTION {
            return self.format_description(piece.bytes);
        }
        self.append(piece)?;
        if !piece.ends {
            return Ok(FillingStep::More);
        }
        let Some(head) = &self.head else { return Ok(FillingStep::Unfit) };
        let end = (piece.header.event_size as usize).saturating_sub(head.checksum().size());
        let body = self.event.get(HEADER_SIZE..end.min(self.event.len())).unwrap_or_default();
        self.boundaries.feed(&piece.header, body);
        if self.boundaries.is_open() {
            return Ok(FillingStep::More);
        }
        for attempt in &mut self.attempts {
            attempt.add(&self.open, self.begin, head, self.question.hole.from, &self.memory)?;
        }
        self.begin += self.open.size();
        self.open = Spool::new(&self.memory, Vec::new());
        self.compare()
    }

    fn format_description(&mut self, bytes: &[u8]) -> Result<FillingStep> {
        let HoleQuestion { damage, hole, is_closed, .. } = self.question;
        let sent = StoredHead::decode(bytes)?;
        if self.head.as_ref().is_some_and(|head| !head.is_of_the_same_file(&sent)) {
            let change = format!("its {} is another file than the one that is kept", damage.name);
            return Ok(FillingStep::Another(change));
        }
        if hole.from == 0 && !self.is_described {
            for attempt in &mut self.attempts {
                attempt.put(&front(bytes, is_closed))?;
            }
            self.begin = MAGIC.len() as u64 + bytes.len() as u64;
        }
        self.is_described = true;
        self.head.get_or_insert(sent);
        Ok(FillingStep::More)
    }

    /// Adds a piece to the open transaction.
    fn append(&mut self, piece: &EventPiece<'_>) -> Result<()> {
        if piece.begins {
            let expected = self.begin + self.open.size();
            if piece.offset != expected {
                let name = self.question.damage.name.clone();
                let expected = format!("{name} at {expected}");
                return Err(Error::Gap { name, offset: piece.offset, expected });
            }
            self.event.clear();
        }
        self.open.append(piece.bytes).map_err(Error::io("hold a transaction"))?;
        let room = (HEADER_SIZE + QUERY_PREFIX_SIZE_MAX).saturating_sub(self.event.len());
        self.event.extend_from_slice(piece.bytes.get(..room).unwrap_or(piece.bytes));
        Ok(())
    }

    /// Compares the attempts with the size of the hole, and drops those that are too large.
    fn compare(&mut self) -> Result<FillingStep> {
        let size = self.question.hole.to - self.question.hole.from;
        self.attempts.retain(|attempt| attempt.stored.size() <= size);
        if self.attempts.is_empty() {
            return Ok(FillingStep::Unfit);
        }
        let full = self.attempts.extract_if(.., |attempt| attempt.stored.size() == size);
        let closest = self.question.closest(full.map(|attempt| attempt.stored))?;
        Ok(closest.map_or(FillingStep::More, FillingStep::Filled))
    }
}

impl Attempt {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.stored.append(bytes).map_err(Error::io("hold what repairs a log"))
    }

    /// Adds a transaction, or an event between transactions.
    fn add(
        &mut self,
        one: &Spool,
        offset: u64,
        head: &StoredHead,
        from: u64,
        memory: &SpoolMemory,
    ) -> Result<()> {
        let mut spool = Spool::new(memory, Vec::new());
        let mut chunk = vec![0; 64 << 10];
        let mut reader = one.reader(0..one.size());
        loop {
            match reader.read(&mut chunk).map_err(Error::io("read a temporary file"))? {
                0 => break,
                count => spool
                    .append(chunk.get(..count).unwrap_or_default())
                    .map_err(Error::io("hold a transaction"))?,
            }
        }
        let batch = ReceivedBatch {
            spool,
            offset,
            context: head.context(),
            generation: head.generation(),
            announced: head.announces_payloads(),
            gtids: GtidSet::new(),
            transactions: Vec::new(),
        };
        let at = from + self.stored.size();
        let Attempt { level, stored, compressing } = self;
        storing::stored_as(batch, *level, memory, compressing, at, &mut SpoolWriter(stored))
    }
}

struct SpoolWriter<'a>(&'a mut Spool);

impl Write for SpoolWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The beginning of a stored file. The flag that says whether it is in use counts in no checksum.
fn front(description: &[u8], is_closed: bool) -> Vec<u8> {
    let mut front = [&MAGIC, description].concat();
    if let Some(flags) = front.get_mut(MAGIC.len() + FLAGS_OFFSET) {
        *flags &= !(HeaderFlags::IN_USE.0 as u8);
        *flags |= if is_closed { 0 } else { HeaderFlags::IN_USE.0 as u8 };
    }
    front
}

/// The start of the hole in the source's file, computed from what precedes it.
fn source_offset(forms: Forms<'_>, damage: &Damage, hole: &Hole) -> Result<u64> {
    let mut log = Translator::new(forms, Form::Received, FormFile::first_of(damage.file), io::sink())?;
    log.put_front()?;
    while log.walker().offset() < hole.from {
        let Some(group) = log.walker().next_group()? else { break };
        match log.keeps_size(&group) {
            true => log.pass(&group)?,
            false => log.put(&group)?,
        }
    }
    Ok(log.offset())
}
