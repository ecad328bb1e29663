//! Assembles pieces of events into whole transactions, and these into batches for the store.
//!
//! ```text
//! piece ─ event ─ TransactionBoundaryParser ─ whole? ─ Batch ─ storing.rs
//! format description ─ a file begins, with its previous GTIDs at once
//! ```
//!
//! Events that are not in the source's file are not stored: artificial rotates and format descriptions, and
//! heartbeats. An event at any other position than the end of the stored log is an error.

use std::sync::atomic::Ordering;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_binlog::event::transaction_payload::HEADER_SIZE_LIMIT;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::QUERY_PREFIX_SIZE_MAX;
use binlogz_binlog::{EventFrame, EventHeader, EventType, MAGIC, TransactionBoundaryParser};
use binlogz_payload::{Provenance, Spool, SpoolMemory, provenance};
use binlogz_relay_log::{Error as LogError, GtidCollector, LineageLog, StoredHead};
use binlogz_source::ConnectOptions;
use binlogz_store::Position;
use binlogz_wire::session::EventPiece;

use super::LogEnd;
use crate::error::{Error, Result};
use crate::receive::continuity::LogTail;
use crate::receive::intake::Intake;
use crate::receive::sizes::Sizes;
use crate::receive::storing::{Batches, ReceivedBatch, ReceivedTransaction};
use crate::telemetry::say;

/// Whole transactions are batched up to this size while more input is ready.
pub(crate) const COLLECT_SIZE: u64 = 1 << 20;
/// How many bytes of transactions not stored yet are held in memory; the rest goes to temporary files.
const SPOOL_SIZE: usize = 16 << 20;
/// Larger than any server's set: a million intervals.
const PREVIOUS_GTIDS_SIZE_MAX: usize = 16 << 20;
/// How much of a GTID event we read; 9.7 writes at most 150 bytes.
const GTID_EVENT_SIZE_MAX: usize = 64 << 10;
/// How much of a payload we read: its header fields and the beginning of its frame.
const PAYLOAD_FRONT_SIZE: usize = HEADER_SIZE + HEADER_SIZE_LIMIT + 8;

/// The facts in a GTID event: the GTID, unless it is anonymous, and the commit time.
type GtidFacts = (Option<Gtid>, u64);

/// A transaction that isn't complete yet.
struct OpenTransaction {
    /// Where the transaction begins in the source's file, in bytes.
    begin: u64,
    /// Present if it begins with a GTID event.
    told: Option<GtidFacts>,
    sizes: Sizes,
}

/// Received bytes that aren't stored yet.
pub(crate) struct ReceivedBytes<'a> {
    pub(crate) intake: &'a Intake,
    kept: &'a LineageLog,
    pub(crate) batches: &'a Batches<'a>,
    /// The end of the stored log, including bytes that were handed to the store.
    end: Option<Position>,
    /// The file's format description.
    head: Option<StoredHead>,
    /// Magic and format description of that file, until its previous GTIDs arrive. No crash may leave the file
    /// without them, since they say what all earlier files hold.
    begins: Option<Vec<u8>>,
    memory: SpoolMemory,
    pub(crate) spool: Spool,
    /// Whether the spool holds only whole transactions.
    pub(crate) whole: bool,
    assembler: TransactionBoundaryParser,
    /// The beginning of the current event, as much as is needed.
    event: Vec<u8>,
    event_wanted: usize,
    checksum_size: usize,
    /// The open transaction.
    open: Option<OpenTransaction>,
    /// GTIDs of the transactions in the spool.
    gtids: GtidSet,
    transactions: Vec<ReceivedTransaction>,
}

impl<'a> ReceivedBytes<'a> {
    pub(crate) fn new(
        intake: &'a Intake,
        kept: &'a LineageLog,
        batches: &'a Batches<'a>,
        end: Option<LogEnd>,
    ) -> Result<Self> {
        let (position, head) = match end {
            Some(LogEnd { position, head, noting }) => {
                batches.note_in(kept.places(position.file, &head), noting);
                (Some(position), Some(head))
            }
            None => (None, None),
        };
        let memory = SpoolMemory::new(SPOOL_SIZE);
        Ok(ReceivedBytes {
            intake,
            kept,
            batches,
            end: position,
            checksum_size: head.as_ref().map_or(0, |head| head.checksum().size()),
            head,
            begins: None,
            spool: Spool::new(&memory, Vec::new()),
            memory,
            whole: true,
            assembler: TransactionBoundaryParser::new(),
            event: Vec::new(),
            event_wanted: 0,
            open: None,
            gtids: GtidSet::new(),
            transactions: Vec::new(),
        })
    }

    /// Takes bytes of an event. Returns the end of a transaction that the source wants acknowledged.
    pub(crate) fn piece(&mut self, piece: &EventPiece<'_>) -> Result<Option<u64>> {
        if !piece.is_stored() {
            return Ok(None);
        }
        if piece.header.event_type == EventType::FORMAT_DESCRIPTION {
            // The session delivers these whole.
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

    /// Called while the source is silent: checks the disk, which may have failed elsewhere.
    pub(crate) fn check_disk(&self) -> Result<()> {
        self.intake.mend_older();
        if let Some(first) = self.kept.store.refuses_since() {
            return Err(binlogz_store::Error::Latched { first }.into());
        }
        let all_durable = self.kept.store.positions().is_none_or(|now| now.written == now.durable);
        if all_durable && self.intake.control.is_ailing() {
            self.intake.mended();
        }
        Ok(())
    }

    /// Called whenever the source has nothing more to send: a reader may have found damage in the file in use. Nothing can be
    /// written until it is repaired, and that is done when the source is connected to again.
    pub(crate) fn check_damage(&self) -> Result<()> {
        let damage = self.kept.store.damage();
        damage.map_or(Ok(()), |damage| Err(Error::Log(LogError::DamagedLog(damage.to_string()))))
    }

    /// Whether the source's log has been replaced, provided nothing of it is in flight. `tail`: what was last
    /// compared.
    pub(crate) fn change(
        &self,
        tail: &mut Option<(Position, LogTail)>,
        server: &ConnectOptions,
    ) -> Result<Option<String>> {
        let now = self.kept.store.positions();
        let Some(durable) = now.filter(|now| now.written == now.durable).map(|now| now.durable) else {
            return Ok(None);
        };
        let known = tail.take().filter(|(at, _)| *at == durable);
        let (_, tail) = match known {
            Some(known) => tail.insert(known),
            None => tail.insert((durable, LogTail::of(self.intake.conversions.of(self.kept), durable.file)?)),
        };
        tail.change(self.kept, server)
    }

    /// A file begins or continues.
    fn file(&mut self, piece: &EventPiece<'_>) -> Result<()> {
        let name = String::from_utf8_lossy(piece.name).into_owned();
        let sent = StoredHead::decode(piece.bytes)?;
        self.checksum_size = sent.checksum().size();
        let store = &self.kept.store;
        let number = store.names().number(&name);
        let expected = match self.end {
            Some(end) if number == Some(end.file) => {
                let stored = StoredHead::read(store, end.file)?;
                if stored.is_of_the_same_file(&sent) {
                    return Ok(());
                }
                return Err(Error::OfSource(format!(
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
        // The source never completed what is left, but it is in the source's file all the same.
        self.flush()?;
        self.batches.drain()?;
        self.begin_file(&[])?;
        let bytes = [&MAGIC, piece.bytes].concat();
        self.end = Some(Position { file: number, offset: bytes.len() as u64 });
        (self.begins, self.head) = (Some(bytes), Some(sent));
        self.assembler = TransactionBoundaryParser::new();
        self.open = None;
        Ok(())
    }

    /// Begins the waiting file, if there is one, with the events before its transactions.
    fn begin_file(&mut self, more: &[u8]) -> Result<()> {
        let (Some(mut bytes), Some(end)) = (self.begins.take(), self.end) else { return Ok(()) };
        bytes.extend_from_slice(more);
        let store = &self.kept.store;
        let before = store.positions().map(|now| now.written.file);
        let key = self.intake.encrypt.as_deref();
        self.end = Some(store.writer()?.begin_file(end.file, &bytes, key)?);
        // At once: a later error must not lose what the file says about earlier files.
        self.intake.written(self.kept, &std::mem::take(&mut self.gtids));
        if let Some(before) = before {
            // Durable and closed: save what we know about it.
            let head = StoredHead::read(store, before)?;
            let _ = self.kept.places(before, &head).save(u64::MAX - 1, true);
        }
        self.intake.lineages.retire();
        let head = StoredHead::read(store, end.file)?;
        self.batches.note_in(self.kept.places(end.file, &head), GtidCollector::default());
        self.head = Some(head);
        say!(self.intake.telemetry, &format!("{} begins", store.names().log(end.file)));
        Ok(())
    }

    /// An event begins: it must be at the end of the stored log.
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
            _ => HEADER_SIZE + TransactionBoundaryParser::body_wanted(&piece.header),
        };
        self.open.get_or_insert(OpenTransaction { begin: offset, told: None, sizes: Sizes::default() });
        Ok(())
    }

    /// An event is complete.
    fn end_event(&mut self, header: &EventHeader) -> Result<()> {
        if header.event_type != EventType::PREVIOUS_GTIDS {
            self.begin_file(&[])?;
        }
        // A statement ends where the checksum begins.
        let end = (header.event_size as usize).saturating_sub(self.checksum_size).min(self.event.len());
        let body = self.event.get(HEADER_SIZE..end).unwrap_or_default();
        self.assembler.feed(header, body);
        if header.event_type.is_gtid() {
            let frame = EventFrame::from_bytes(&self.event, self.checksum_size)?;
            let event = AnyGtidEvent::decode_frame(&frame)?;
            let committed = event.as_ref().and_then(AnyGtidEvent::commit_timestamps);
            let told = (event.and_then(|event| event.gtid()), committed.map_or(0, |times| times.immediate));
            self.open.iter_mut().for_each(|open| open.told = Some(told));
        } else if header.event_type == EventType::PREVIOUS_GTIDS {
            // Of the first file: what the source had purged, or what should not be stored here.
            self.gtids.union(&GtidSet::decode(body)?.0);
            if self.begins.is_some() {
                let event = std::mem::take(&mut self.event);
                self.begin_file(&event)?;
                self.spool = Spool::new(&self.memory, Vec::new());
            }
        } else if header.event_type == EventType::TRANSACTION_PAYLOAD {
            let body_size = u64::from(header.event_size) - HEADER_SIZE as u64;
            let told = provenance(body, body_size)?;
            if let (Some(open), Some((_, fields))) = (&mut self.open, &told) {
                open.sizes.came_as(fields);
            }
            if told.is_some_and(|(maker, _)| maker == Provenance::Binlogz) {
                return Err(Error::Log(LogError::Lineage(
                    "the source sends a payload with the mark of those that binlogz makes in a store: it could not be \
                     told from our own"
                        .into(),
                )));
            }
        }
        if !header.event_type.is_gtid()
            && let Some(open) = &mut self.open
        {
            open.sizes.events += u64::from(header.event_size).saturating_sub(self.checksum_size as u64);
        }
        if !self.assembler.is_open() {
            self.whole = true;
            let end = self.end.map_or(0, |end| end.offset) + self.spool.size();
            if let Some(OpenTransaction { begin, told: Some((gtid, committed)), sizes }) = self.open.take() {
                if let Some(gtid) = gtid {
                    self.gtids.add(gtid);
                }
                self.intake.telemetry.meters.transactions.fetch_add(1, Ordering::Relaxed);
                self.transactions.push(ReceivedTransaction { range: begin..end, gtid, committed, sizes });
            }
        }
        Ok(())
    }

    /// Hands the received transactions to the store.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let size = self.spool.size();
        let (Some(end), Some(head)) = (&mut self.end, &self.head) else { return Ok(()) };
        if size == 0 {
            return Ok(());
        }
        let spool = std::mem::replace(&mut self.spool, Spool::new(&self.memory, Vec::new()));
        let batch = ReceivedBatch {
            spool,
            offset: end.offset,
            context: head.context(),
            generation: head.generation(),
            announced: head.announces_payloads(),
            gtids: std::mem::take(&mut self.gtids),
            transactions: std::mem::take(&mut self.transactions),
        };
        end.offset += size;
        self.whole = true;
        self.batches.bring(batch)
    }
}
