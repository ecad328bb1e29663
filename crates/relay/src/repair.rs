//! Asks the source again for what is damaged of the log that is kept, and goes around the damage until then.
//!
//! ```text
//! damage (binlogz-store) ─ where the hole begins in the source's file ─ its transactions, a dump from there on
//!                        ─ as they are stored, until the hole is full ─ the one after it must be the one that is kept
//!                        ─ into the hole; a copy of the damaged file stays beside it
//! ```
//!
//! What fills a hole has its size to the byte, so that every position stays what it was, in every form, and replicas that
//! are being served notice nothing. Compressed again, a transaction has the same size at the same level: the level of now
//! is tried first, then all others.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::{FLAGS_OFFSET, HEADER_SIZE};
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{EventType, HeaderFlags, MAGIC, TransactionAssembler};
use binlogz_payload::{CompressionLevel, Spool, SpoolMemory};
use binlogz_source::{ConnectOptions, DumpOptions, RemoteLog};
use binlogz_store::{Damage, Hole};

use crate::checkpoints::Start;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::GroupWalker;
use crate::head::Head;
use crate::lineages::Kept;
use crate::parts::{FormFile, Part};
use crate::relay::{Relay, lock};
use crate::storing::{self, Batch, Compressing};
use crate::translate::Translator;

/// Of what is fetched, so much is held in memory; the rest in temporary files.
const SPOOL_SIZE: usize = 16 << 20;

/// Repairs what is damaged of a log with what its source still has.
///
/// # Errors
///
/// A source that can't be reached, or lacks what is damaged: it is asked again.
pub(crate) fn repair(relay: &Relay, kept: &Kept, server: &ConnectOptions) -> Result<Option<String>> {
    while let Some(damage) = kept.store.damage() {
        let Some(hole) = damage.holes.first() else { break };
        let name = server.server();
        relay.say(&format!("{damage}; {name} is asked for it"));
        let asking = Asking { relay, kept, server, damage: &damage, hole };
        let bytes = match asking.fetch() {
            Ok(Fetched::Bytes(bytes)) => bytes,
            Ok(Fetched::Another(change)) => return Ok(Some(change)),
            Err(error) => {
                return Err(Error::DamagedLog(format!("{damage}; {name} did not repair it: {error}")));
            }
        };
        let size = bytes.size();
        let repaired = kept.store.repair(&mut bytes.reader(0..size))?;
        kept.repaired(damage.file, &repaired.report.gtids);
        relay.say(&format!(
            "{} was repaired from {} to {} with what {name} has of it; as it was before it is kept as {}",
            damage.name, hole.from, hole.to, repaired.kept_as
        ));
    }
    Ok(None)
}

enum Fetched {
    /// What belongs into the hole.
    Bytes(Spool),
    /// The source's file of this name is another one.
    Another(String),
}

struct Asking<'a> {
    relay: &'a Relay,
    kept: &'a Kept,
    server: &'a ConnectOptions,
    damage: &'a Damage,
    hole: &'a Hole,
}

/// What the hole would hold at one level.
struct Attempt {
    level: Option<CompressionLevel>,
    stored: Spool,
    compressing: Compressing,
}

impl Asking<'_> {
    fn fetch(&self) -> Result<Fetched> {
        let now = lock(&self.relay.compression).level();
        let others = (1..=22).filter_map(CompressionLevel::new);
        let others: Vec<_> = others.map(Some).filter(|level| *level != now).collect();
        let first = if now.is_some() { vec![now, None] } else { vec![None] };
        for levels in [first, others] {
            if let Some(fetched) = self.fetch_at(&levels)? {
                return Ok(fetched);
            }
        }
        Err(Error::Refused("what it has there does not fit in the place of what is damaged".into()))
    }

    /// `None`: at none of these levels the source's transactions fill the hole.
    fn fetch_at(&self, levels: &[Option<CompressionLevel>]) -> Result<Option<Fetched>> {
        let Asking { kept, damage, hole, .. } = *self;
        let mut head = match hole.from {
            0 => None,
            _ => Some(Head::read(&kept.store, damage.file)?),
        };
        let from = match hole.from {
            0 => MAGIC.len() as u64,
            _ => source_offset(kept, damage, hole)?,
        };
        let memory = SpoolMemory::new(SPOOL_SIZE);
        let new = |level: &Option<CompressionLevel>| Attempt {
            level: *level,
            stored: Spool::new(&memory, Vec::new()),
            compressing: Compressing::default(),
        };
        let mut attempts: Vec<_> = levels.iter().map(new).collect();
        let options = DumpOptions { verify_checksums: true, ..DumpOptions::to_the_end(&damage.name, from) };
        let mut log = RemoteLog::open(self.server, options)?;
        let mut assembler = TransactionAssembler::new();
        // The transaction that comes, and the beginning of its event that does.
        let (mut open, mut event) = (Spool::new(&memory, Vec::new()), Vec::new());
        let mut begin = from;
        let mut is_described = false;
        while let Some(piece) = log.next_piece()? {
            if !piece.is_stored() {
                continue;
            }
            if piece.name != damage.name.as_bytes() {
                break;
            }
            if piece.header.event_type == EventType::FORMAT_DESCRIPTION {
                let sent = Head::decode(piece.bytes)?;
                if head.as_ref().is_some_and(|head| !head.is_of_the_same_file(&sent)) {
                    let change = format!("its {} is another file than the one that is kept", damage.name);
                    return Ok(Some(Fetched::Another(change)));
                }
                if hole.from == 0 && !is_described {
                    for attempt in &mut attempts {
                        attempt.put(&front(piece.bytes))?;
                    }
                    begin = MAGIC.len() as u64 + piece.bytes.len() as u64;
                }
                is_described = true;
                head.get_or_insert(sent);
                continue;
            }
            if piece.begins {
                if piece.offset != begin + open.size() {
                    return Err(Error::Gap {
                        name: damage.name.clone(),
                        offset: piece.offset,
                        expected: format!("{} at {}", damage.name, begin + open.size()),
                    });
                }
                event.clear();
            }
            open.append(piece.bytes).map_err(Error::io("hold a transaction"))?;
            let room = (HEADER_SIZE + QUERY_PREFIX_SIZE_MAX).saturating_sub(event.len());
            event.extend_from_slice(piece.bytes.get(..room).unwrap_or(piece.bytes));
            if !piece.ends {
                continue;
            }
            let Some(head) = &head else { break };
            let end = (piece.header.event_size as usize).saturating_sub(head.checksum().size());
            assembler.feed(&piece.header, event.get(HEADER_SIZE..end.min(event.len())).unwrap_or_default());
            if assembler.is_open() {
                continue;
            }
            for attempt in &mut attempts {
                attempt.add(&open, begin, head, hole.from, &memory)?;
            }
            begin += open.size();
            open = Spool::new(&memory, Vec::new());
            let size = hole.to - hole.from;
            attempts.retain(|attempt| attempt.stored.size() <= size);
            if attempts.is_empty() {
                break;
            }
            if let Some(full) = attempts.iter().position(|attempt| attempt.stored.size() == size) {
                drop(log);
                let found = attempts.swap_remove(full);
                return match self.follows(begin)? {
                    true => Ok(Some(Fetched::Bytes(found.stored))),
                    false => Ok(None),
                };
            }
        }
        Ok(None)
    }

    /// Whether the source's next transaction is the one that is kept after the hole.
    fn follows(&self, at: u64) -> Result<bool> {
        let Asking { kept, damage, hole, .. } = *self;
        let durable = kept.store.positions().map_or(0, |now| now.durable.offset);
        if hole.to >= durable || hole.from == 0 {
            return Ok(true);
        }
        let framing = Head::read(&kept.store, damage.file)?.framing();
        let mut walker = GroupWalker::new(kept.store.reader(damage.file, hole.to)?, framing, hole.to);
        let ours = walker.next()?;
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

/// The GTID of an event that came whole.
fn gtid_of(
    piece: &binlogz_wire::session::EventPiece<'_>,
    kept: &Kept,
    damage: &Damage,
) -> Result<Option<Gtid>> {
    if !(piece.header.event_type.is_gtid() && piece.begins && piece.ends) {
        return Ok(None);
    }
    let checksum_size = Head::read(&kept.store, damage.file)?.checksum().size();
    let frame = binlogz_binlog::EventFrame::from_bytes(piece.bytes, checksum_size)?;
    let event = binlogz_binlog::event::AnyGtidEvent::decode_frame(&frame)?;
    Ok(event.and_then(|event| event.gtid()))
}

impl Attempt {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.stored.append(bytes).map_err(Error::io("hold what repairs a log"))
    }

    /// Adds a transaction, or an event between transactions.
    fn add(&mut self, one: &Spool, offset: u64, head: &Head, from: u64, memory: &SpoolMemory) -> Result<()> {
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
        let batch = Batch {
            spool,
            offset,
            context: head.context(),
            announced: head.announces_payloads(),
            gtids: GtidSet::new(),
            transactions: Vec::new(),
        };
        let at = from + self.stored.size();
        let Attempt { level, stored, compressing } = self;
        storing::stored_as(batch, *level, memory, compressing, at, &mut Into(stored))
    }
}

struct Into<'a>(&'a mut Spool);

impl Write for Into<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a stored file begins with that is in use.
fn front(description: &[u8]) -> Vec<u8> {
    let mut front = [&MAGIC, description].concat();
    if let Some(flags) = front.get_mut(MAGIC.len() + FLAGS_OFFSET) {
        *flags |= HeaderFlags::IN_USE.0 as u8;
    }
    front
}

/// Where the hole begins in the source's file: what stands before it says so.
fn source_offset(kept: &Kept, damage: &Damage, hole: &Hole) -> Result<u64> {
    let mut log = Translator::new(kept, Form::Received, FormFile::first_of(damage.file), io::sink())?;
    log.put_front()?;
    while log.walker().offset() < hole.from {
        let Some(group) = log.walker().next()? else { break };
        match log.keeps_size(&group) {
            true => log.pass(&group)?,
            false => log.put(&group)?,
        }
    }
    Ok(log.offset())
}

/// Where a client begins that has everything which is damaged, and all before it; `None`: it does not, or where that is
/// in this form can't be told, since something that can be read is not where it is stored.
pub(crate) fn behind_damage(
    kept: &Kept,
    form: Form,
    part: &Arc<Part>,
    has: &GtidSet,
) -> Result<Option<Start>> {
    let damage = kept.store.damage();
    let Some(damage) = damage.filter(|damage| damage.file == part.of.file && part.of.part == 0) else {
        return Ok(None);
    };
    let is_had = |hole: &&Hole| {
        hole.before.is_subset(has) && hole.lost.as_ref().is_some_and(|lost| lost.is_subset(has))
    };
    let Some(last) = damage.holes.iter().take_while(is_had).last() else { return Ok(None) };
    let mut from = part.stored_head.end();
    for to in damage.holes.iter().map(|hole| (hole.from, hole.to)).chain([(u64::MAX, 0)]) {
        if !stands_as_stored(kept, form, part, from..to.0)? {
            return Ok(None);
        }
        from = to.1;
    }
    Ok(Some(Start { stored: last.to, at: last.to }))
}

/// Whether every transaction of a range is in this form where it is stored.
fn stands_as_stored(kept: &Kept, form: Form, part: &Arc<Part>, range: Range<u64>) -> Result<bool> {
    let start = Start { stored: range.start, at: range.start };
    let mut log = Translator::at(kept, form, part, &start, io::sink())?;
    while log.walker().offset() < range.end {
        let Some(group) = log.walker().next()? else { break };
        match log.keeps_size(&group) {
            true => log.pass(&group)?,
            false => log.write(&group)?,
        }
        if log.offset() != group.end {
            return Ok(false);
        }
    }
    Ok(true)
}
